/**
 * Paths outside the API: the home page, health, readiness and metrics for operators, the files that every host
 * has, the page of dashboards, auth's pages, and calendars behind links.
 * moleculer-web routes to them; each handler answers by itself, also its errors, because the router would wrap them.
 */

import type { ServiceBroker } from 'moleculer';
import { CALENDARS_ROOT, REFERENCE_PATH } from '../../../lib/addresses.ts';
import type { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { Condition } from '../../../mixins/health.ts';
import { ADMINISTRATION_PAGE } from '../../../web/administration/page.ts';
import { APP_PAGE_HEADERS, type AppPage } from '../../../web/app-page.ts';
import { APPROVALS_PAGE } from '../../../web/approvals/page.ts';
import { HTML_TYPE } from '../../../web/assets.ts';
import { DASHBOARDS_PAGE } from '../../../web/dashboards/page.ts';
import { EVENTS_PAGE } from '../../../web/events/page.ts';
import { IMPORT_PAGE } from '../../../web/import/page.ts';
import type { SharedAnswer } from '../../../web/kept.ts';
import { NOTIFICATIONS_PAGE } from '../../../web/notifications/page.ts';
import { REFERENCE_ASSETS } from '../../../web/reference/page.ts';
import { SITE_FILES } from '../../../web/site/files.ts';
import type { home } from '../../../web/site/home.ts';
import { SECURITY_PATH } from '../../../web/site/security-file.ts';
import { WORKSPACE_PAGE } from '../../../web/workspace/page.ts';
import type { DoorKeeper, HttpEdge } from '../edge/edge.ts';
import type { Exchange } from '../edge/exchange.ts';
import { commonHeaders, prefersPage, type ReplyOptions, send, sendErrorToPeople, sendFile } from '../edge/reply.ts';
import type { Budgets } from '../pipeline/budget.ts';
import { methodNotAllowed, pageNotFound } from '../pipeline/failures.ts';
import { chargeAddress } from '../pipeline/index.ts';
import { belongsToAuth, passToAuth } from './auth.ts';
import { answerCalendar } from './calendars.ts';

/** Parameters of a moleculer-web handler; `exchange` is our own parameter of its action `rest`. */
export interface PageRequest {
  readonly $ctx: { readonly params: { readonly exchange: Exchange } };
}

/** The part of the gateway that the pages use. */
export interface PageSources {
  readonly baseUrl: string;
  readonly broker: ServiceBroker;
  readonly budgets: Budgets;
  readonly home: ReturnType<typeof home>;
  readonly reference: SharedAnswer;
  replyOptions(): ReplyOptions;
  fail(x: Exchange, error: unknown): void;
  readiness(): Promise<Record<string, boolean>>;
  condition(): Condition;
  publicMetrics(): Promise<{ contentType: string; text: string } | null>;
  securityFile(): SharedAnswer | null;
}

/** Answered without a look at anything: the answer costs less than counting it. */
const FREE_PAGES: ReadonlySet<string> = new Set(['/healthz']);

export class PagesDoor implements DoorKeeper {
  readonly #edge: HttpEdge;
  readonly #budgets: Budgets;
  readonly #answerPage: (x: Exchange) => Promise<boolean>;

  /** `answerPage`: false when there is no page at the path. */
  constructor(edge: HttpEdge, budgets: Budgets, answerPage: (x: Exchange) => Promise<boolean>) {
    this.#edge = edge;
    this.#budgets = budgets;
    this.#answerPage = answerPage;
  }

  async answer(x: Exchange): Promise<void> {
    if (!FREE_PAGES.has(x.path)) await chargeAddress(this.#budgets, x);
    x.budget ??= this.#budgets.anonymous(x.ip);
    if (!(await this.#answerPage(x))) throw pageNotFound();
  }

  sendError(x: Exchange, error: PlatformError): void {
    sendErrorToPeople(x, error, this.#edge.replyOptions());
  }
}

type Page = (x: Exchange, gateway: PageSources) => void | Promise<void>;
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

const APP_PAGES = [
  ADMINISTRATION_PAGE,
  APPROVALS_PAGE,
  DASHBOARDS_PAGE,
  EVENTS_PAGE,
  IMPORT_PAGE,
  NOTIFICATIONS_PAGE,
  WORKSPACE_PAGE,
];

/** Pages that have addresses of their own below the first one. */
export const PAGE_ROOTS: readonly string[] = [...APP_PAGES.map(({ root }) => root), REFERENCE_PATH];

/**
 * The one route of moleculer-web. `restrict`: a path without an alias reaches no action; parsers of bodies and logging
 * are off, since a page reads its own body within a limit and every request is logged once.
 */
export function pageRoute(gateway: () => PageSources): object {
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
      handler(gateway, (path) => path.startsWith(CALENDARS_ROOT), answerCalendar),
    ],
    aliases: Object.fromEntries(aliases),
  };
}

/** moleculer-web compares paths without case and without a slash at the end; a page answers at exactly its path. */
function pageHandler(gateway: () => PageSources, path: string, label: string, answer: Page): Handler {
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
  gateway: () => PageSources,
  belongs: (path: string) => boolean,
  answer: (x: Exchange, gateway: PageSources) => Promise<void>,
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

function answerSafely(gateway: PageSources, x: Exchange, answer: () => Promise<void>): void {
  answer().catch((error) => gateway.fail(x, error));
}

/** Answers the document at each of its addresses, and what it loads. */
async function answerAppPage(x: Exchange, gateway: PageSources, { label, assets, view, html }: AppPage): Promise<void> {
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

async function answerReference(x: Exchange, gateway: PageSources): Promise<void> {
  x.label = 'reference';
  const found = x.path === REFERENCE_PATH ? gateway.reference : REFERENCE_ASSETS.at(x.path);
  if (!found) throw pageNotFound();
  if (x.method !== 'GET' && x.method !== 'HEAD') throw methodNotAllowed();
  await sendFile(x, found, gateway.replyOptions());
}

async function readiness(x: Exchange, gateway: PageSources): Promise<void> {
  const checks = await gateway.readiness();
  const ready = Object.values(checks).every(Boolean);
  sendJson(x, gateway, ready ? 200 : 503, { status: ready ? 'ready' : 'unready', checks, ...gateway.condition() });
}

async function metrics(x: Exchange, gateway: PageSources): Promise<void> {
  const found = await gateway.publicMetrics();
  if (!found) throw pageNotFound();
  sendText(x, gateway, 200, found.contentType, found.text);
}

async function securityContact(x: Exchange, gateway: PageSources): Promise<void> {
  const file = gateway.securityFile();
  if (!file) throw pageNotFound();
  await answerKept(x, gateway, file);
}

async function answerKept(x: Exchange, gateway: PageSources, file: SharedAnswer): Promise<void> {
  await sendFile(x, file, gateway.replyOptions());
}

const sendJson = (x: Exchange, gateway: PageSources, status: number, body: object): void =>
  sendText(x, gateway, status, 'application/json', JSON.stringify(body));

function sendText(x: Exchange, gateway: PageSources, status: number, contentType: string, body: string): void {
  const headers = commonHeaders(x, gateway.replyOptions(), undefined);
  headers.push('Content-Type', contentType);
  if (status === 503) headers.push('Retry-After', '1');
  send(x, status, headers, Buffer.from(body));
}
