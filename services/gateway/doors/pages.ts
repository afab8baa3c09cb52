/**
 * What is found outside the API: the home page, health, readiness and metrics for operators, the files that every host
 * has, the page of dashboards and auth's pages.
 * moleculer-web routes to them; each handler answers by itself, also its errors, because the router would wrap them.
 */

import { REFERENCE_PATH } from '../../../lib/addresses.ts';
import { APP_PAGE_HEADERS, type AppPage } from '../../../web/app-page.ts';
import { APPROVALS_PAGE } from '../../../web/approvals/page.ts';
import { HTML_TYPE } from '../../../web/assets.ts';
import { DASHBOARDS_PAGE } from '../../../web/dashboards/page.ts';
import type { SharedAnswer } from '../../../web/kept.ts';
import { REFERENCE_ASSETS } from '../../../web/reference/page.ts';
import { SITE_FILES } from '../../../web/site/files.ts';
import { SECURITY_PATH } from '../../../web/site/security-file.ts';
import type { Exchange } from '../edge/exchange.ts';
import { commonHeaders, prefersPage, send, sendFile } from '../edge/reply.ts';
import type { Gateway } from '../gateway.ts';
import { methodNotAllowed, pageNotFound } from '../pipeline/failures.ts';
import { belongsToAuth, passToAuth } from './auth.ts';

/** What moleculer-web hands to a handler; `exchange` is our own parameter of its action `rest`. */
export interface PageRequest {
  readonly $ctx: { readonly params: { readonly exchange: Exchange } };
}

type Page = (x: Exchange, gateway: Gateway) => void | Promise<void>;
type Handler = (request: PageRequest, response: unknown, next: () => void) => void;

const PAGES = new Map<string, { label: string; answer: Page }>([
  [
    '/',
    { label: 'home', answer: (x, gateway) => answerKept(x, gateway, gateway.home[prefersPage(x) ? 'html' : 'json']) },
  ],
  ['/healthz', { label: 'healthz', answer: (x, gateway) => sendJson(x, gateway, 200, { status: 'ok' }) }],
  ['/readyz', { label: 'readyz', answer: readiness }],
  ['/metrics', { label: 'metrics', answer: metrics }],
  [SECURITY_PATH, { label: 'security.txt', answer: securityContact }],
  ...[...SITE_FILES].map(([path, file]): [string, { label: string; answer: Page }] => [
    path,
    { label: path.slice(1), answer: (x, gateway) => answerKept(x, gateway, file) },
  ]),
]);

export const PAGE_PATHS: readonly string[] = [...PAGES.keys()];

const APP_PAGES = [APPROVALS_PAGE, DASHBOARDS_PAGE];

/** Pages that have addresses of their own below the first one. */
export const PAGE_ROOTS: readonly string[] = [...APP_PAGES.map(({ root }) => root), REFERENCE_PATH];

/**
 * The one route of moleculer-web. `restrict`: a path without an alias reaches no action; parsers of bodies and logging
 * are off, since a page reads its own body within a limit and every request is logged once.
 */
export function pageRoute(gateway: () => Gateway): object {
  const aliases = [...PAGES].map(([path, { label, answer }]) => [path, pageHandler(gateway, path, label, answer)]);
  return {
    path: '/',
    mappingPolicy: 'restrict',
    bodyParsers: false,
    logging: false,
    etag: false,
    use: [
      handler(gateway, (path) => belongsToAuth(path) && !PAGES.has(path), passToAuth),
      ...APP_PAGES.map((page) => handler(gateway, isBelow(page.root), (x, at) => answerAppPage(x, at, page))),
      handler(gateway, isBelow(REFERENCE_PATH), answerReference),
    ],
    aliases: Object.fromEntries(aliases),
  };
}

/** moleculer-web compares paths without case and without a slash at the end; a page answers at exactly its path. */
function pageHandler(gateway: () => Gateway, path: string, label: string, answer: Page): Handler {
  return (request) => {
    const x = request.$ctx.params.exchange;
    answerSafely(gateway(), x, async () => {
      if (x.path !== path) throw pageNotFound();
      x.label = label;
      if (x.method !== 'GET' && x.method !== 'HEAD') throw methodNotAllowed();
      await answer(x, gateway());
    });
  };
}

/** Of paths without an alias. */
function handler(
  gateway: () => Gateway,
  belongs: (path: string) => boolean,
  answer: (x: Exchange, gateway: Gateway) => Promise<void>,
): Handler {
  return (request, _response, next) => {
    const x = request.$ctx.params.exchange;
    if (belongs(x.path)) answerSafely(gateway(), x, () => answer(x, gateway()));
    else next();
  };
}

const isBelow =
  (root: string) =>
  (path: string): boolean =>
    path === root || path.startsWith(`${root}/`);

function answerSafely(gateway: Gateway, x: Exchange, answer: () => Promise<void>): void {
  answer().catch((error) => gateway.fail(x, error));
}

/** Answers the document at each of its addresses, and what it loads. */
async function answerAppPage(x: Exchange, gateway: Gateway, { label, assets, view, html }: AppPage): Promise<void> {
  x.label = label;
  const asset = assets.at(x.path);
  if (!asset && !view.test(x.path)) throw pageNotFound();
  if (x.method !== 'GET' && x.method !== 'HEAD') throw methodNotAllowed();
  if (asset) {
    await sendFile(x, asset, gateway.replyOptions());
    return;
  }
  const headers = commonHeaders(x, gateway.replyOptions(), APP_PAGE_HEADERS);
  headers.push('Content-Type', HTML_TYPE);
  send(x, 200, headers, Buffer.from(html(gateway.baseUrl)));
}

async function answerReference(x: Exchange, gateway: Gateway): Promise<void> {
  x.label = 'reference';
  const found = x.path === REFERENCE_PATH ? gateway.reference : REFERENCE_ASSETS.at(x.path);
  if (!found) throw pageNotFound();
  if (x.method !== 'GET' && x.method !== 'HEAD') throw methodNotAllowed();
  await sendFile(x, found, gateway.replyOptions());
}

async function readiness(x: Exchange, gateway: Gateway): Promise<void> {
  const checks = await gateway.readiness();
  const ready = Object.values(checks).every(Boolean);
  sendJson(x, gateway, ready ? 200 : 503, { status: ready ? 'ready' : 'unready', checks, ...gateway.condition() });
}

async function metrics(x: Exchange, gateway: Gateway): Promise<void> {
  const found = await gateway.publicMetrics();
  if (!found) throw pageNotFound();
  sendText(x, gateway, 200, found.contentType, found.text);
}

async function securityContact(x: Exchange, gateway: Gateway): Promise<void> {
  const file = gateway.securityFile();
  if (!file) throw pageNotFound();
  await answerKept(x, gateway, file);
}

async function answerKept(x: Exchange, gateway: Gateway, file: SharedAnswer): Promise<void> {
  await sendFile(x, file, gateway.replyOptions());
}

const sendJson = (x: Exchange, gateway: Gateway, status: number, body: object): void =>
  sendText(x, gateway, status, 'application/json', JSON.stringify(body));

function sendText(x: Exchange, gateway: Gateway, status: number, contentType: string, body: string): void {
  const headers = commonHeaders(x, gateway.replyOptions(), undefined);
  headers.push('Content-Type', contentType);
  if (status === 503) headers.push('Retry-After', '1');
  send(x, status, headers, Buffer.from(body));
}
