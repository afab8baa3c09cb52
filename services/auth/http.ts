/**
 * HTTP that arrives as data over the bus: routes it to the provider or to a page of our own. auth has no port; the
 * provider's callback runs on an in-memory request.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import inject from 'light-my-request';
import type { Provider } from 'oidc-provider';
import type { HttpReply, HttpRequest } from '../../contracts/auth.ts';
import { ALL_SCOPES, type Clients } from './clients.ts';
import { type Form, interact } from './interactions.ts';
import { type KeyRing, publicKeys } from './keys.ts';
import * as pages from './pages/pages.ts';
import { hashLinkToken, hashPassword, PASSWORD_MIN_CHARS, passwordProblem } from './passwords.ts';
import type { PresentedTokens } from './provider/presented-tokens.ts';
import { apiResource, PATHS } from './provider/provider.ts';
import type { AuthStore } from './store/store.ts';

export interface HttpParts {
  provider: Provider;
  ring: KeyRing;
  store: AuthStore;
  clients: Clients;
  presentedTokens: PresentedTokens;
  /** Ends every grant and browser session of a user. */
  revokeUser(tenantId: string, userId: string): Promise<unknown>;
  /** A person has just signed in. */
  signedIn(tenantId: string, userId: string): void;
}

export const BASE_URL_HEADER = 'x-platform-base-url';
const BODY_MAX_BYTES = 56 * 1024;
/** Belongs to one connection, not to the message; the gateway writes its own. */
const CONNECTION_HEADERS = new Set(['connection', 'keep-alive', 'transfer-encoding', 'date', 'content-length']);

const one = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value);

/** The public address of a request: what the deployment says, else what the gateway says. */
export function baseUrl(request: HttpRequest, configured: string): string {
  const given = URL.parse(one(request.headers[BASE_URL_HEADER]) ?? '');
  return given && /^https?:$/.test(given.protocol) ? given.origin : configured;
}

export async function handle(parts: HttpParts, received: HttpRequest): Promise<HttpReply> {
  const { body } = received;
  // Bytes may arrive as a plain Uint8Array, whose toString() would list numbers.
  const request = { ...received, body: body && Buffer.from(body.buffer, body.byteOffset, body.byteLength) };
  const url = URL.parse(request.url, parts.provider.issuer);
  if (!url || !request.url.startsWith('/') || request.url.startsWith('//'))
    return page(pages.failure('not_found', null, 404));
  if ((request.body?.length ?? 0) > BODY_MAX_BYTES) return page(pages.failure('invalid_request', 'too large', 413));
  const { pathname } = url;
  if (hasNul(request)) return refuseNul(pathname);

  if (pathname.startsWith('/.well-known/oauth-protected-resource')) return protectedResource(parts, request, pathname);
  const interaction = /^\/oauth2\/interaction\/([\w-]{1,100})$/.exec(pathname);
  if (interaction) return withForm(request, (form) => interactionReply(parts, interaction[1]!, form, request));
  const password = /^\/password\/([\w-]{1,100})$/.exec(pathname);
  if (password) return withForm(request, (form) => passwordReply(parts, password[1]!, form, pathname));
  if (pathname === PATHS.introspection || pathname === PATHS.revocation)
    return parts.presentedTokens.during(
      request.body?.toString('utf8') ?? '',
      { keys: publicKeys(parts.ring) as never },
      parts.provider.issuer,
      (body) => run(parts.provider, { ...request, body: request.body && Buffer.from(body) }),
    );
  return run(parts.provider, withConsentForOfflineAccess(request, url));
}

/** No value of OAuth has a NUL (RFC 6749 appendix A), and PostgreSQL cannot store or compare one. */
const hasNul = ({ url, body }: HttpRequest): boolean =>
  url.includes('%00') || (body !== null && (body.includes(0) || Buffer.from(body).includes('%00')));

/** Endpoints that programs call, and that answer in JSON. */
const PROGRAM_PATHS: ReadonlySet<string> = new Set([
  PATHS.token,
  PATHS.revocation,
  PATHS.introspection,
  PATHS.pushed_authorization_request,
  PATHS.device_authorization,
]);

function refuseNul(pathname: string): HttpReply {
  const [error, description] = ['invalid_request', 'a value holds a NUL character'];
  if (!PROGRAM_PATHS.has(pathname)) return page(pages.failure(error, description, 400));
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' };
  return reply(400, headers, JSON.stringify({ error, error_description: description }));
}

/**
 * A refresh token outlives the browser, so a person must say yes to it (OpenID Connect Core section 11). Clients that
 * ask for offline_access mean that; they need not add prompt=consent.
 */
function withConsentForOfflineAccess(request: HttpRequest, url: URL): HttpRequest {
  const adjust = (parameters: URLSearchParams): boolean => {
    if (parameters.has('prompt') || !(parameters.get('scope') ?? '').split(' ').includes('offline_access'))
      return false;
    parameters.set('prompt', 'consent');
    return true;
  };
  if (url.pathname === PATHS.authorization && request.method === 'GET' && adjust(url.searchParams))
    return { ...request, url: url.pathname + url.search };
  if (url.pathname === PATHS.pushed_authorization_request && request.method === 'POST' && request.body) {
    const parameters = new URLSearchParams(request.body.toString('utf8'));
    if (adjust(parameters)) return { ...request, body: Buffer.from(parameters.toString()) };
  }
  return request;
}

/** RFC 9728. */
function protectedResource({ provider }: HttpParts, request: HttpRequest, pathname: string): HttpReply {
  if (pathname !== '/.well-known/oauth-protected-resource/api/v1') return page(pages.failure('not_found', null, 404));
  const cors = { 'access-control-allow-origin': '*' };
  if (request.method === 'OPTIONS')
    return reply(204, { ...cors, 'access-control-allow-methods': 'GET', 'access-control-max-age': '3600' }, '');
  if (request.method !== 'GET' && request.method !== 'HEAD') return reply(405, { allow: 'GET, HEAD, OPTIONS' }, '');
  const body = {
    resource: apiResource(provider.issuer),
    resource_name: 'ERP platform API',
    authorization_servers: [provider.issuer],
    scopes_supported: ALL_SCOPES,
    bearer_methods_supported: ['header'],
  };
  const headers = { ...cors, 'content-type': 'application/json', 'cache-control': 'max-age=300' };
  return reply(200, headers, JSON.stringify(body));
}

/** GET shows, POST acts; a POST from another site is refused before anything else looks at it. */
async function withForm(request: HttpRequest, work: (form: Form | null) => Promise<HttpReply>): Promise<HttpReply> {
  if (request.method === 'GET' || request.method === 'HEAD') return work(null);
  if (request.method !== 'POST') return reply(405, { allow: 'GET, HEAD, POST' }, '');
  const type = one(request.headers['content-type']) ?? '';
  if (!/^application\/x-www-form-urlencoded\b/i.test(type))
    return page(pages.failure('invalid_request', 'the form must be application/x-www-form-urlencoded', 415));
  const site = one(request.headers['sec-fetch-site']);
  const origin = one(request.headers['origin']);
  const foreign =
    site !== undefined
      ? site !== 'same-origin' && site !== 'none'
      : origin !== undefined && URL.parse(origin)?.host !== one(request.headers['host']);
  if (foreign) return page(pages.failure('invalid_request', 'the form is not from this site', 403));
  return work(new URLSearchParams(request.body?.toString('utf8') ?? ''));
}

async function interactionReply(
  parts: HttpParts,
  uid: string,
  form: Form | null,
  request: HttpRequest,
): Promise<HttpReply> {
  return dispatch(parts.provider.issuer, request, async (req, res) => {
    try {
      const answer = await interact(
        { ...parts, cookieKey: parts.ring.cookies[0]! },
        uid,
        form,
        request.remoteAddress,
        req,
        res,
      );
      if ('redirect' in answer) write(res, reply(303, { location: answer.redirect, 'cache-control': 'no-store' }, ''));
      else write(res, page(answer));
    } catch (error) {
      const known = error as { error?: string; error_description?: string; statusCode?: number };
      if (typeof known.error !== 'string') throw error;
      write(res, page(pages.failure(known.error, known.error_description ?? null, known.statusCode ?? 400)));
    }
  });
}

async function passwordReply(
  { store, revokeUser }: HttpParts,
  token: string,
  form: Form | null,
  action: string,
): Promise<HttpReply> {
  const tokenHash = hashLinkToken(token);
  const credential = await store.credentials.byLink(tokenHash);
  if (!credential) return page(pages.linkSpent());
  const { username, tenantId, userId } = credential;
  const show = (problem: string | null): HttpReply =>
    page(pages.setPassword({ action, username, problem, minChars: PASSWORD_MIN_CHARS }));
  // A mail scanner that opens the link must not use it up: only the form does.
  if (!form) return show(null);
  const password = form.get('password') ?? '';
  const problem =
    passwordProblem(password, username) ??
    (password === form.get('repeated') ? null : 'The two entries are not the same.');
  if (problem) return show(problem);
  const spent = await store.credentials.spendLink(tenantId, tokenHash, await hashPassword(password));
  // Whoever had the old password may still be signed in with it.
  if (spent) await revokeUser(tenantId, userId);
  return page(spent ? pages.passwordSet() : pages.linkSpent());
}

const run = (provider: Provider, request: HttpRequest): Promise<HttpReply> =>
  dispatch(provider.issuer, request, provider.callback());

/** Runs a node:http handler on the request. Forwarded headers say what the gateway knows, never what a client sent. */
async function dispatch(
  issuer: string,
  request: HttpRequest,
  handler: (req: IncomingMessage, res: ServerResponse) => Promise<void>,
): Promise<HttpReply> {
  const { host, protocol } = new URL(issuer);
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(request.headers))
    if (!/^(x-forwarded-|forwarded$|x-platform-|content-length$|transfer-encoding$|expect$)/i.test(name))
      headers[name] = value;
  Object.assign(headers, {
    host,
    'x-forwarded-proto': protocol.slice(0, -1),
    'x-forwarded-for': request.remoteAddress,
  });
  let failed: unknown;
  const response = await inject(
    (req, res) => {
      handler(req as IncomingMessage, res as ServerResponse).catch((error) => {
        failed = error;
        res.destroy(error);
      });
    },
    {
      method: request.method,
      url: request.url,
      headers,
      remoteAddress: request.remoteAddress,
      ...(request.body?.length ? { payload: request.body } : {}),
    },
  ).catch((error) => {
    throw failed ?? error;
  });
  const out: Record<string, string | string[]> = { 'x-content-type-options': 'nosniff' };
  for (const [name, value] of Object.entries(response.headers))
    if (value !== undefined && !CONNECTION_HEADERS.has(name))
      out[name] = Array.isArray(value) ? value.map(String) : String(value);
  return { status: response.statusCode, headers: out, body: response.rawPayload };
}

function reply(status: number, headers: Record<string, string>, body: string): HttpReply {
  return { status, headers: { 'x-content-type-options': 'nosniff', ...headers }, body: Buffer.from(body) };
}

const page = (view: pages.Page): HttpReply =>
  reply(view.status, { 'content-type': 'text/html; charset=utf-8', ...pages.headers(view) }, pages.render(view));

export const unavailable = (): HttpReply => page(pages.unavailable());

function write(res: ServerResponse, answer: HttpReply): void {
  res.writeHead(answer.status, answer.headers);
  res.end(answer.body);
}
