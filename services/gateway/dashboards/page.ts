/**
 * The page on which dashboards are drawn, for every address below /dashboards: one document without data, and the
 * scripts and the stylesheet that it may load. What it shows it asks of the public API, with the token of the person
 * who has signed in (docs/decisions/dashboards-page.md).
 */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { DASHBOARDS_CLIENT_ID, DASHBOARDS_PATH, DASHBOARDS_SCOPES } from '../../../contracts/auth.ts';
import { escapeHtml } from '../../../lib/values/html.ts';
import { DESIGN, MARK } from '../../../lib/values/page-design.ts';
import type { Exchange } from '../exchange.ts';
import { pageNotFound } from '../failures.ts';
import type { Gateway } from '../gateway.ts';
import { HTML_TYPE } from '../html.ts';
import { commonHeaders, send } from '../reply.ts';

const JAVASCRIPT = 'text/javascript; charset=utf-8';
const CSS = 'text/css; charset=utf-8';
/** Modules in the order in which they need each other, the first one begins. */
const MODULES = [
  'main.js',
  'sign-in.js',
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

interface Asset {
  contentType: string;
  body: Buffer;
}

const own = (name: string): Buffer => readFileSync(new URL(`browser/${name}`, import.meta.url));

/** The build of Chart.js that needs no other file. */
const chartLibrary = (): Buffer => readFileSync(new URL('chart.umd.min.js', import.meta.resolve('chart.js')));

const ASSETS: ReadonlyMap<string, Asset> = new Map([
  ['chart-library.js', { contentType: JAVASCRIPT, body: chartLibrary() }],
  ['dashboards.css', { contentType: CSS, body: Buffer.concat([Buffer.from(DESIGN), own('dashboards.css')]) }],
  ...MODULES.map((name): [string, Asset] => [name, { contentType: JAVASCRIPT, body: own(name) }]),
]);

/** Stands in the path of the assets, so that a browser keeps them until there is another version. */
const VERSION = hash('sha256', Buffer.concat([...ASSETS.values()].map(({ body }) => body)), 'hex').slice(0, 16);
const ASSET = /^\/dashboards\/assets\/([0-9a-f]{16})\/([a-z-]+\.(?:js|css))$/;
const VIEW = /^\/dashboards(?:\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?$/i;

const KEPT = { 'Cache-Control': 'public, max-age=31536000, immutable' };
/** While two versions of the gateway run: the newer page may ask the older gateway. */
const NOT_KEPT = { 'Cache-Control': 'no-store' };

const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** For lists of what is reachable. */
export const DASHBOARD_PAGES: readonly string[] = [DASHBOARDS_PATH, `${DASHBOARDS_PATH}/…`];

export const belongsToDashboards = (path: string): boolean =>
  path === DASHBOARDS_PATH || path.startsWith(`${DASHBOARDS_PATH}/`);

/** Answers the page at each of its addresses, and what it loads. */
export function answerDashboards(x: Exchange, gateway: Gateway): void {
  x.label = 'dashboards';
  if (x.method !== 'GET' && x.method !== 'HEAD') throw pageNotFound();
  const [, version, name = ''] = ASSET.exec(x.path) ?? [];
  const asset = ASSETS.get(name);
  if (asset) {
    reply(x, gateway, version === VERSION ? KEPT : NOT_KEPT, asset);
    return;
  }
  if (!VIEW.test(x.path)) throw pageNotFound();
  reply(x, gateway, PAGE_HEADERS, { contentType: HTML_TYPE, body: Buffer.from(page(gateway.baseUrl)) });
}

function reply(x: Exchange, gateway: Gateway, own: Record<string, string>, { contentType, body }: Asset): void {
  const headers = commonHeaders(x, gateway.replyOptions(), own);
  headers.push('Content-Type', contentType);
  send(x, 200, headers, body);
}

const address = (name: string): string => `${DASHBOARDS_PATH}/assets/${VERSION}/${name}`;

const page = (baseUrl: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
<title>Dashboards · ERP platform</title>
<link rel="stylesheet" href="${address('dashboards.css')}">
${MODULES.map((name) => `<link rel="modulepreload" href="${address(name)}">`).join('\n')}
<script type="module" src="${address('main.js')}"></script>
<script defer src="${address('chart-library.js')}"></script>
</head>
<body data-base="${escapeHtml(baseUrl)}" data-client="${DASHBOARDS_CLIENT_ID}" data-scope="${DASHBOARDS_SCOPES.join(' ')}">
<a class="skip" href="#main">Skip to the content</a>
<header><a class="brand" href="${DASHBOARDS_PATH}">${MARK}<span>ERP platform</span></a>
<nav aria-label="Account"><span id="who"></span><a href="/account">Account</a><a id="leave" href="/oauth2/logout">Sign out</a></nav>
</header>
<main id="main" tabindex="-1"><p class="lead" id="starting">Loading…</p>
<noscript><p>This page draws charts with a script. Switch on JavaScript to see it.</p></noscript></main>
<p class="visually-hidden" id="announcements" role="status"></p>
</body>
</html>
`;
