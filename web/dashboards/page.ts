/**
 * The page on which dashboards are drawn, for every address below /dashboards: one document without data, and the
 * scripts and the stylesheet that it may load. What it shows it asks of the public API, with the token of the person
 * who has signed in (docs/decisions/dashboards-page.md).
 */
import { readFileSync } from 'node:fs';
import { DASHBOARDS_CLIENT_ID, DASHBOARDS_PATH, DASHBOARDS_SCOPES } from '../../contracts/auth.ts';
import { escapeHtml } from '../../lib/values/html.ts';
import { DESIGN, FORMS, TABLES } from '../../lib/values/page-design.ts';
import { framed, ICON_LINK } from '../../lib/values/page-frame.ts';
import type { AppPage } from '../app-page.ts';
import { Assets } from '../assets.ts';

/** Modules in the order in which they need each other, the first one begins. */
const MODULES = [
  'main.js',
  'pages.js',
  'api.js',
  'list.js',
  'dashboard.js',
  'filters.js',
  'widget.js',
  'chart.js',
  'points.js',
  'tables.js',
  'result.js',
  'format.js',
  'elements.js',
];

const own = (name: string): Buffer => readFileSync(new URL(`browser/${name}`, import.meta.url));
/** Shared with other pages. */
const signIn = (): Buffer => readFileSync(new URL('../shared/sign-in.js', import.meta.url));

/** The build of Chart.js that needs no other file. */
const chartLibrary = (): Buffer => readFileSync(new URL('chart.umd.min.js', import.meta.resolve('chart.js')));

const STYLE = Buffer.concat([Buffer.from(`${DESIGN}${FORMS}${TABLES}`), own('dashboards.css')]);

const ASSETS = new Assets(DASHBOARDS_PATH, [
  ['chart-library.js', chartLibrary()],
  ['dashboards.css', STYLE],
  ['sign-in.js', signIn()],
  ...MODULES.map((name): [string, Buffer] => [name, own(name)]),
]);

const VIEW = /^\/dashboards(?:\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?$/i;

const HEAD = `${ICON_LINK}
<link rel="stylesheet" href="${ASSETS.address('dashboards.css')}">
${['sign-in.js', ...MODULES].map((name) => `<link rel="modulepreload" href="${ASSETS.address(name)}">`).join('\n')}
<script type="module" src="${ASSETS.address('main.js')}"></script>
<script defer src="${ASSETS.address('chart-library.js')}"></script>`;

const html = (baseUrl: string): string =>
  framed({
    title: 'Dashboards',
    head: HEAD,
    bodyAttributes: `data-base="${escapeHtml(baseUrl)}" data-client="${DASHBOARDS_CLIENT_ID}" data-scope="${DASHBOARDS_SCOPES.join(' ')}" data-home="${DASHBOARDS_PATH}"`,
    // To the list: leaving the page gives up its token.
    home: DASHBOARDS_PATH,
    nav: '<span id="who"></span><a href="/">Home</a><a href="/approvals">Approvals</a><a href="/account">Account</a><a id="leave" href="/oauth2/logout">Sign out</a>',
    main: `<p class="lead" id="starting">Loading…</p>
<noscript><p>This page draws charts with a script. Switch on JavaScript to see it.</p></noscript>`,
    afterwards: '<p class="visually-hidden" id="announcements" role="status"></p>\n',
  });

export const DASHBOARDS_PAGE: AppPage = {
  label: 'dashboards',
  root: DASHBOARDS_PATH,
  assets: ASSETS,
  view: VIEW,
  html,
};
