/**
 * What is found outside the API: the home page, health, readiness and metrics for operators, the files that every host
 * has, the page of dashboards and auth's pages.
 * moleculer-web routes to them; each handler answers by itself, also its errors, because the router would wrap them.
 */

import { answerApprovals, belongsToApprovals } from './approvals/page.ts';
import { answerDashboards, belongsToDashboards } from './dashboards/page.ts';
import { prefersPage } from './error-page.ts';
import type { Exchange } from './exchange.ts';
import { methodNotAllowed, pageNotFound } from './failures.ts';
import type { Gateway } from './gateway.ts';
import { belongsToAuth, passToAuth } from './passthrough.ts';
import { answerReference, belongsToReference } from './reference/page.ts';
import { commonHeaders, type SharedAnswer, send, sendShared } from './reply.ts';
import { SITE_FILES } from './site/files.ts';
import { SECURITY_PATH } from './site/security-file.ts';

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
    use: [authHandler(gateway), approvalsHandler(gateway), dashboardsHandler(gateway), referenceHandler(gateway)],
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

function authHandler(gateway: () => Gateway): Handler {
  return (request, _response, next) => {
    const x = request.$ctx.params.exchange;
    if (belongsToAuth(x.path) && !PAGES.has(x.path)) answerSafely(gateway(), x, () => passToAuth(x, gateway()));
    else next();
  };
}

/** Below one path, so no alias: the page has an address for each dashboard. */
function dashboardsHandler(gateway: () => Gateway): Handler {
  return (request, _response, next) => {
    const x = request.$ctx.params.exchange;
    if (belongsToDashboards(x.path)) answerSafely(gateway(), x, () => answerDashboards(x, gateway()));
    else next();
  };
}

/** Below one path: the page has an address for each approval. */
function approvalsHandler(gateway: () => Gateway): Handler {
  return (request, _response, next) => {
    const x = request.$ctx.params.exchange;
    if (belongsToApprovals(x.path)) answerSafely(gateway(), x, () => answerApprovals(x, gateway()));
    else next();
  };
}

function referenceHandler(gateway: () => Gateway): Handler {
  return (request, _response, next) => {
    const x = request.$ctx.params.exchange;
    const { reference } = gateway();
    if (belongsToReference(x.path))
      answerSafely(gateway(), x, () => answerReference(x, reference, gateway().replyOptions()));
    else next();
  };
}

function answerSafely(gateway: Gateway, x: Exchange, answer: () => Promise<void>): void {
  answer().catch((error) => gateway.fail(x, error));
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

function securityContact(x: Exchange, gateway: Gateway): void {
  const file = gateway.securityFile();
  if (!file) throw pageNotFound();
  answerKept(x, gateway, file);
}

const answerKept = (x: Exchange, gateway: Gateway, file: SharedAnswer): void => {
  sendShared(x, file, gateway.replyOptions());
};

const sendJson = (x: Exchange, gateway: Gateway, status: number, body: object): void =>
  sendText(x, gateway, status, 'application/json', JSON.stringify(body));

function sendText(x: Exchange, gateway: Gateway, status: number, contentType: string, body: string): void {
  const headers = commonHeaders(x, gateway.replyOptions(), undefined);
  headers.push('Content-Type', contentType);
  if (status === 503) headers.push('Retry-After', '1');
  send(x, status, headers, Buffer.from(body));
}
