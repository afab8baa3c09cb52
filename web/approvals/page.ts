/**
 * The page on which people decide about requests of agents, for every address below /approvals: one document without data,
 * with scripts that ask the public API in the name of the person. Source: docs/reference/pages.md.
 */
import { readFileSync } from 'node:fs';
import { APPROVALS_CLIENT_ID, APPROVALS_PATH, APPROVALS_SCOPES } from '../../contracts/auth.ts';
import { escapeHtml } from '../../lib/values/html.ts';
import { DESIGN, FORMS, TABLES } from '../../lib/values/page-design.ts';
import { framed, ICON_LINK } from '../../lib/values/page-frame.ts';
import type { AppPage } from '../app-page.ts';
import { Assets } from '../assets.ts';

const own = (name: string): Buffer => readFileSync(new URL(`browser/${name}`, import.meta.url));
const ofDashboards = (name: string): Buffer => readFileSync(new URL(`../dashboards/browser/${name}`, import.meta.url));

/** Modules in the order in which they need each other; the first one begins. */
const MODULES = ['main.js', 'approvals.js', 'proposal.js'];
/** Shared with the page of dashboards. */
const SHARED = ['api.js', 'format.js', 'elements.js'];

const ASSETS = new Assets(APPROVALS_PATH, [
  ['approvals.css', Buffer.concat([Buffer.from(`${DESIGN}${FORMS}${TABLES}`), own('approvals.css')])],
  ['sign-in.js', readFileSync(new URL('../shared/sign-in.js', import.meta.url))],
  ...MODULES.map((name): [string, Buffer] => [name, own(name)]),
  ...SHARED.map((name): [string, Buffer] => [name, ofDashboards(name)]),
]);

const VIEW = /^\/approvals(?:\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?$/i;

const HEAD = `${ICON_LINK}
<link rel="stylesheet" href="${ASSETS.address('approvals.css')}">
${['sign-in.js', ...MODULES, ...SHARED].map((name) => `<link rel="modulepreload" href="${ASSETS.address(name)}">`).join('\n')}
<script type="module" src="${ASSETS.address('main.js')}"></script>`;

const html = (baseUrl: string): string =>
  framed({
    title: 'Approvals',
    head: HEAD,
    bodyAttributes: `data-base="${escapeHtml(baseUrl)}" data-client="${APPROVALS_CLIENT_ID}" data-scope="${APPROVALS_SCOPES.join(' ')}" data-home="${APPROVALS_PATH}"`,
    home: APPROVALS_PATH,
    nav: '<span id="who"></span><a href="/">Home</a><a href="/dashboards">Dashboards</a><a href="/account">Account</a><a id="leave" href="/oauth2/logout">Sign out</a>',
    main: `<p class="lead" id="starting">Loading…</p>
<noscript><p>This page reads what waits for your approval with a script. Switch on JavaScript to use it.</p></noscript>`,
    afterwards: '<p class="visually-hidden" id="announcements" role="status"></p>\n',
  });

export const APPROVALS_PAGE: AppPage = { label: 'approvals', root: APPROVALS_PATH, assets: ASSETS, view: VIEW, html };
