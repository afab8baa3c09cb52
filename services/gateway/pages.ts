/**
 * What is found outside the API: health, readiness and metrics for operators, a page that points on, the page of
 * dashboards and auth's pages.
 * moleculer-web routes to them; each handler answers by itself, also its errors, because the router would wrap them.
 */

import { DASHBOARDS_PATH } from '../../contracts/auth.ts';
import { escapeHtml } from '../../lib/values/html.ts';
import { answerDashboards, belongsToDashboards } from './dashboards/page.ts';
import type { Exchange } from './exchange.ts';
import { pageNotFound } from './failures.ts';
import type { Gateway } from './gateway.ts';
import { HTML_HEADERS, HTML_TYPE, htmlPage } from './html.ts';
import { belongsToAuth, passToAuth } from './passthrough.ts';
import { API_VERSION, commonHeaders, send } from './reply.ts';

/** What moleculer-web hands to a handler; `exchange` is our own parameter of its action `rest`. */
export interface PageRequest {
  readonly $ctx: { readonly params: { readonly exchange: Exchange } };
}

type Page = (x: Exchange, gateway: Gateway) => void | Promise<void>;
type Handler = (request: PageRequest, response: unknown, next: () => void) => void;

const PAGES = new Map<string, { label: string; answer: Page }>([
  ['/', { label: 'welcome', answer: welcome }],
  ['/healthz', { label: 'healthz', answer: (x, gateway) => sendJson(x, gateway, 200, { status: 'ok' }) }],
  ['/readyz', { label: 'readyz', answer: readiness }],
  ['/metrics', { label: 'metrics', answer: metrics }],
]);

export const PAGE_PATHS: readonly string[] = [...PAGES.keys()];

/**
 * The one route of moleculer-web. `restrict`: a path without an alias reaches no action; parsers of bodies and logging
 * are off, since a page reads its own body within a limit and every request is logged once.
 */
export function pageRoute(gateway: () => Gateway): object {
  const aliases = [...PAGES].flatMap(([path, { label, answer }]) => {
    const handler = pageHandler(gateway, path, label, answer);
    return [
      [`GET ${path}`, handler],
      [`HEAD ${path}`, handler],
    ];
  });
  return {
    path: '/',
    mappingPolicy: 'restrict',
    bodyParsers: false,
    logging: false,
    etag: false,
    use: [authHandler(gateway), dashboardsHandler(gateway)],
    aliases: Object.fromEntries(aliases),
  };
}

/**
 * moleculer-web compares paths without case and without a slash at the end, and takes OPTIONS for the method that a
 * preflight announces; a page answers GET and HEAD of exactly its path.
 */
function pageHandler(gateway: () => Gateway, path: string, label: string, answer: Page): Handler {
  return (request) => {
    const x = request.$ctx.params.exchange;
    answerSafely(gateway(), x, async () => {
      if (x.path !== path || (x.method !== 'GET' && x.method !== 'HEAD')) throw pageNotFound();
      x.label = label;
      await answer(x, gateway());
    });
  };
}

function authHandler(gateway: () => Gateway): Handler {
  return (request, _response, next) => {
    const x = request.$ctx.params.exchange;
    if (belongsToAuth(x.path)) answerSafely(gateway(), x, () => passToAuth(x, gateway()));
    else next();
  };
}

/** Below one path, so no alias: the page has an address for each dashboard. */
function dashboardsHandler(gateway: () => Gateway): Handler {
  return (request, _response, next) => {
    const x = request.$ctx.params.exchange;
    if (belongsToDashboards(x.path)) answerSafely(gateway(), x, async () => answerDashboards(x, gateway()));
    else next();
  };
}

function answerSafely(gateway: Gateway, x: Exchange, answer: () => Promise<void>): void {
  answer().catch((error) => gateway.fail(x, error));
}

async function readiness(x: Exchange, gateway: Gateway): Promise<void> {
  const checks = await gateway.readiness();
  const ready = Object.values(checks).every(Boolean);
  sendJson(x, gateway, ready ? 200 : 503, { status: ready ? 'ready' : 'unready', checks, ...gateway.degradation() });
}

async function metrics(x: Exchange, gateway: Gateway): Promise<void> {
  const found = await gateway.publicMetrics();
  if (!found) throw pageNotFound();
  sendText(x, gateway, 200, found.contentType, found.text);
}

function welcome(x: Exchange, gateway: Gateway): void {
  const { baseUrl } = gateway;
  const api = `${baseUrl}/api/v1`;
  const links = {
    api,
    openapi: `${api}/openapi.json`,
    capabilities: `${api}/capabilities`,
    scopes: `${api}/scopes`,
    dashboards: `${baseUrl}${DASHBOARDS_PATH}`,
    authorizationServer: `${baseUrl}/.well-known/oauth-authorization-server`,
    health: `${baseUrl}/healthz`,
  };
  if (x.req.headers.accept?.includes('text/html')) sendText(x, gateway, 200, HTML_TYPE, welcomeHtml(api, links));
  else sendJson(x, gateway, 200, { name: 'ERP platform', apiVersion: API_VERSION, links });
}

function welcomeHtml(api: string, links: Record<string, string>): string {
  const items = Object.entries(links)
    .map(([name, url]) => `<li>${name}: <a href="${escapeHtml(url)}">${escapeHtml(url)}</a></li>`)
    .join('');
  return htmlPage(
    'ERP platform',
    `<p>This is the public API, version ${API_VERSION}. Get an access token from the authorization server and start with ` +
      `<code>GET ${escapeHtml(api)}/identity</code>.</p><ul>${items}</ul>`,
  );
}

const sendJson = (x: Exchange, gateway: Gateway, status: number, body: object): void =>
  sendText(x, gateway, status, 'application/json', JSON.stringify(body));

function sendText(x: Exchange, gateway: Gateway, status: number, contentType: string, body: string): void {
  const headers = commonHeaders(x, gateway.replyOptions(), undefined);
  headers.push('Content-Type', contentType);
  if (status === 503) headers.push('Retry-After', '1');
  if (contentType === HTML_TYPE) headers.push(...HTML_HEADERS);
  send(x, status, headers, Buffer.from(body));
}
