/**
 * HTTP that arrives as data over the bus: routes it to the provider or to a page of our own. auth has no port; the
 * provider's callback runs on an in-memory request.
 */
import { errors, type Provider } from 'oidc-provider';
import type { AuthActions, GrantState, HttpReply, HttpRequest } from '../../contracts/auth.ts';
import { MCP_SCOPES } from '../../contracts/mcp-offers.ts';
import { PROTECTED_RESOURCE_PATH } from '../../lib/addresses.ts';
import { matchesEtag, strongEtag } from '../../lib/values/etags.ts';
import { networkOf } from '../../lib/values/network.ts';
import { isWithin } from '../../mixins/address-ranges.ts';
import * as mailsPages from '../../web/account/mails.ts';
import { tooManyCodes } from '../../web/sign-in/pages.ts';
import { refused } from '../../web/sign-in/single-sign-on.ts';
import { accountPage } from './account-page.ts';
import { addressReply } from './address-page.ts';
import { DEVICE_CODE_ATTEMPTS } from './attempt-limits.ts';
import { ACCOUNT_PATH, ALL_SCOPES, type Clients, DEVICE_CODE } from './clients.ts';
import { dispatch } from './dispatch.ts';
import type { SecondFactors } from './factors/factors.ts';
import { FORGOTTEN_PATH, forgottenReply } from './forgotten-page.ts';
import type { Answer, Form } from './form.ts';
import { browserIn, browserOf, interact } from './interactions.ts';
import { type KeyRing, publicKeys } from './keys.ts';
import type { Mail } from './mail/mail.ts';
import { UNSUBSCRIBE_ROOT } from './mail/messages.ts';
import { passwordReply } from './password-page.ts';
import { USER_CODE_MAX_CHARS } from './provider/device-flow.ts';
import { parameterProblem } from './provider/parameters.ts';
import { apiResource, INTERACTION_ROOT, interactionPath, mcpResource, PATHS } from './provider/paths.ts';
import type { PresentedTokens, TokenClaims } from './provider/presented-tokens.ts';
import { renameStepUp } from './provider/step-up.ts';
import type { AttemptOrigin, Refusal } from './refusals.ts';
import { failureReply, pageReply, reply } from './reply.ts';
import { CALLBACK_ROOT, type SingleSignOn } from './single-sign-on/single-sign-on.ts';
import type { AuthStore } from './store/store.ts';

interface HttpParts {
  provider: Provider;
  ring: KeyRing;
  store: AuthStore;
  clients: Clients;
  factors: SecondFactors;
  singleSignOn: SingleSignOn;
  presentedTokens: PresentedTokens;
  /** Liveness of grants, as the gateway asks. */
  checkGrants(checked: AuthActions['auth.grants.check']['params']): Promise<GrantState[]>;
  mail: Mail;
  demoPassword: string | null;
  /** Ends mails about notifications by the token of a link. */
  stopMails(token: string): Promise<unknown>;
  /** True while the maker of a link may let its user in. */
  mayLetIn(link: { tenantId: string; userId: string; madeBy: string }): Promise<boolean>;
  /** Ends every grant and browser session of a user. */
  revokeUser(tenantId: string, userId: string): Promise<unknown>;
  grantsEnded(grantIds: string[]): void;
  /** Ends one connection of a user; false: there is no such connection. */
  revokeConnection(user: { tenantId: string; userId: string }, connectionId: string): Promise<boolean>;
  /** A person has just signed in. */
  signedIn(tenantId: string, userId: string): void;
  signInRefused(refusal: Refusal, origin: AttemptOrigin): void;
}

const BASE_URL_HEADER = 'x-platform-base-url';
const BODY_MAX_BYTES = 56 * 1024;
const DISCOVERY: ReadonlySet<string> = new Set([
  '/.well-known/oauth-authorization-server',
  '/.well-known/openid-configuration',
]);

const single = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value);

/** The public address of a request as the gateway reports it, else `known`. */
export function baseUrl(request: HttpRequest, known: string): string {
  const reported = URL.parse(single(request.headers[BASE_URL_HEADER]) ?? '');
  return reported && /^https?:$/.test(reported.protocol) ? reported.origin : known;
}

export async function handle(parts: HttpParts, received: HttpRequest): Promise<HttpReply> {
  const { body } = received;
  // Bytes may arrive as a plain Uint8Array, whose toString() would list numbers.
  const request = { ...received, body: body && Buffer.from(body.buffer, body.byteOffset, body.byteLength) };
  const url = URL.parse(request.url, parts.provider.issuer);
  if (!url || !request.url.startsWith('/') || request.url.startsWith('//'))
    return failureReply(request, 'not_found', null, 404);
  if ((request.body?.length ?? 0) > BODY_MAX_BYTES)
    return failureReply(request, 'invalid_request', `the body is larger than ${BODY_MAX_BYTES} bytes`, 413);
  if (hasNul(request)) return refuseParameters(request, url.pathname, 'a value contains a NUL character');
  const problem = parameterProblem(url.pathname, url.searchParams, request.body?.toString('utf8') ?? null);
  if (problem !== null) return refuseParameters(request, url.pathname, problem);
  return route(parts, request, url);
}

function route(parts: HttpParts, request: HttpRequest, url: URL): HttpReply | Promise<HttpReply> {
  const { pathname } = url;
  if (pathname.startsWith(PROTECTED_RESOURCE_PATH)) return protectedResource(parts.provider.issuer, request, pathname);
  if (DISCOVERY.has(pathname) && isRead(request)) return discovery(parts.provider, request);
  const uid = lastSegment(INTERACTION_ROOT, pathname);
  if (uid !== null) return withForm(request, (form) => interactionReply(parts, uid, form, request));
  if (pathname.startsWith(CALLBACK_ROOT) && isRead(request)) return fromIdentityProvider(parts, url);
  if (pathname === ACCOUNT_PATH) return withForm(request, (form) => accountReply(parts, url, form, request));
  if (pathname === FORGOTTEN_PATH)
    return withForm(request, (form) =>
      forgottenReply(parts, { query: url.searchParams, form, browser: browserIn(request.headers), request }),
    );
  const { outbox } = parts.mail;
  const address = lastSegment(`${ACCOUNT_PATH}/address/`, pathname);
  if (address !== null) return withForm(request, (form) => addressReply({ ...parts, outbox }, address, form, pathname));
  const mails = lastSegment(UNSUBSCRIBE_ROOT, pathname);
  if (mails !== null) return mailsReply(parts, mails, request, pathname);
  const token = lastSegment('/password/', pathname);
  if (token !== null) return withForm(request, (form) => passwordReply({ ...parts, outbox }, token, form, pathname));
  if (pathname === PATHS.token) return withoutHurry(parts, request);
  if (pathname === PATHS.code_verification && request.method === 'POST') return withCodeGuard(parts, request);
  if (pathname === PATHS.introspection || pathname === PATHS.revocation) return withPresentedToken(parts, request);
  if (pathname === PATHS.userinfo && request.method !== 'OPTIONS') return userinfo(parts, request, url);
  return runProvider(parts.provider, adapted(request, url));
}

/**
 * A browser that comes back from an OpenID provider goes on at its own interaction, whose cookie it has to bring: the
 * answer to a sign-in that began in another browser counts for nothing, nor does one on the way of another provider.
 */
async function fromIdentityProvider(
  { singleSignOn }: HttpParts,
  { pathname, search, searchParams }: URL,
): Promise<HttpReply> {
  const uid = await singleSignOn.interactionOf(searchParams.get('state') ?? '', pathname);
  if (uid === null)
    return pageReply(refused({ code: 'SINGLE_SIGN_ON_EXPIRED', label: '', username: null, back: null }));
  return reply(303, { location: interactionPath(uid) + search, 'cache-control': 'no-store' }, '');
}

/** The id or token behind a path; null when it is another path, or nothing that we have made. */
function lastSegment(prefix: string, pathname: string): string | null {
  if (!pathname.startsWith(prefix)) return null;
  const segment = pathname.slice(prefix.length);
  return /^[\w-]{1,100}$/.test(segment) ? segment : null;
}

async function runProvider(provider: Provider, request: HttpRequest): Promise<HttpReply> {
  const answer = await dispatch(provider.issuer, request, provider.callback());
  // For unknown routes the provider's framework answers with plain text.
  const isPlain = single(answer.headers['content-type'])?.startsWith('text/plain');
  return answer.status === 404 && isPlain ? notFound(request) : answer;
}

const notFound = (request: HttpRequest): HttpReply =>
  single(request.headers['accept'])?.includes('text/html')
    ? failureReply(request, 'not_found', null, 404)
    : jsonReply(404, { error: 'not_found', error_description: 'there is no such page or method' });

const withPresentedToken = ({ provider, ring, presentedTokens }: HttpParts, request: HttpRequest): Promise<HttpReply> =>
  presentedTokens.during(request.body?.toString('utf8') ?? '', { keys: publicKeys(ring) }, provider.issuer, (form) =>
    runProvider(provider, { ...request, body: request.body && Buffer.from(form) }),
  );

/** The userinfo endpoint (OpenID Connect Core section 5.3), for a valid access token. */
async function userinfo(parts: HttpParts, request: HttpRequest, url: URL): Promise<HttpReply> {
  const { provider, ring, presentedTokens, checkGrants } = parts;
  const form = new URLSearchParams(request.body?.toString('utf8') ?? '');
  if (url.searchParams.has('access_token') || form.has('access_token'))
    return jsonReply(400, {
      error: 'invalid_request',
      error_description: 'the access token belongs in the Authorization header',
    });
  // The gateway leaves the body away for HEAD.
  const asked = isRead(request) ? { ...request, method: 'GET' } : request;
  const [, token] = /^bearer +([^ ]+) *$/i.exec(single(request.headers['authorization']) ?? '') ?? [];
  if (token === undefined) return runProvider(provider, asked);
  const isLive = async (claims: TokenClaims): Promise<boolean> => {
    const [state] = await checkGrants({ grants: [claims] });
    return state !== undefined && isUsable(state, request.remoteAddress);
  };
  return presentedTokens.asking(token, { keys: publicKeys(ring) }, provider.issuer, isLive, (handle) =>
    runProvider(provider, { ...asked, headers: { ...asked.headers, authorization: `Bearer ${handle}` } }),
  );
}

const isUsable = ({ active, clientActive, tenantSuspended, ipRanges }: GrantState, address: string): boolean =>
  active && clientActive && !tenantSuspended && (ipRanges.length === 0 || isWithin(address, ipRanges));

/** A device that asks for its tokens too often is asked to slow down (RFC 8628 section 3.5). */
async function withoutHurry({ provider, store }: HttpParts, request: HttpRequest): Promise<HttpReply> {
  const form = new URLSearchParams(request.body?.toString('utf8') ?? '');
  const code = form.get('grant_type') === DEVICE_CODE ? form.get('device_code') : null;
  if (code !== null && !(await store.artifacts.mayPoll(code)))
    return jsonReply(400, {
      error: 'slow_down',
      error_description: 'ask less often: wait five seconds more each time',
    });
  return runProvider(provider, request);
}

/** A delay after unknown codes prevents guessing. */
async function withCodeGuard({ provider, store }: HttpParts, request: HttpRequest): Promise<HttpReply> {
  const typed = new URLSearchParams(request.body?.toString('utf8') ?? '').get('user_code');
  if (typed === null) return runProvider(provider, request);
  const counters = [{ key: `code ${networkOf(request.remoteAddress)}`, limit: DEVICE_CODE_ATTEMPTS, shared: true }];
  const seconds = await store.attempts.count(counters);
  if (seconds > 0) return pageReply(tooManyCodes(seconds));
  const known = await store.artifacts.find('DeviceCode', 'user_code', normalizedCode(typed));
  if (known) await store.attempts.takeBack(counters);
  return runProvider(provider, request);
}

/** As the provider reads it. */
const normalizedCode = (typed: string): string => typed.toUpperCase().replace(/\W/g, '').slice(0, USER_CODE_MAX_CHARS);

const jsonReply = (status: number, body: object): HttpReply =>
  reply(status, { 'content-type': 'application/json', 'cache-control': 'no-store' }, JSON.stringify(body));

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
  PATHS.userinfo,
]);

function refuseParameters(request: HttpRequest, pathname: string, description: string): HttpReply {
  const error = 'invalid_request';
  if (!PROGRAM_PATHS.has(pathname)) return failureReply(request, error, description, 400);
  return jsonReply(400, { error, error_description: description });
}

/** An authorization request as the provider takes it. */
function adapted(request: HttpRequest, url: URL): HttpRequest {
  const adapt = (parameters: URLSearchParams): boolean => {
    const changes = [addConsentForOfflineAccess(parameters), renameStepUp(parameters)];
    return changes.includes(true);
  };
  if (url.pathname === PATHS.authorization && request.method === 'GET' && adapt(url.searchParams))
    return { ...request, url: url.pathname + url.search };
  const posted = url.pathname === PATHS.pushed_authorization_request || url.pathname === PATHS.authorization;
  if (posted && request.method === 'POST' && request.body) {
    const parameters = new URLSearchParams(request.body.toString('utf8'));
    if (adapt(parameters)) return { ...request, body: Buffer.from(parameters.toString()) };
  }
  return request;
}

/**
 * A refresh token outlives the browser, so a person must consent to it (OpenID Connect Core section 11). Clients that
 * ask for offline_access mean that; they need not add prompt=consent.
 */
function addConsentForOfflineAccess(parameters: URLSearchParams): boolean {
  if (parameters.has('prompt') || !(parameters.get('scope') ?? '').split(' ').includes('offline_access')) return false;
  parameters.set('prompt', 'consent');
  return true;
}

/** Metadata of the API, or of the endpoint for assistants, as a protected resource (RFC 9728). */
function protectedResource(issuer: string, request: HttpRequest, pathname: string): HttpReply {
  const described = protectedResources(issuer).find(
    ({ resource }) => resource === issuer + pathname.slice(PROTECTED_RESOURCE_PATH.length),
  );
  if (!described) return failureReply(request, 'not_found', null, 404);
  const cors = { 'access-control-allow-origin': '*' };
  if (request.method === 'OPTIONS')
    return reply(204, { ...cors, 'access-control-allow-methods': 'GET', 'access-control-max-age': '3600' }, '');
  if (!isRead(request)) return reply(405, { allow: 'GET, HEAD, OPTIONS' }, '');
  const body = {
    ...described,
    authorization_servers: [issuer],
    bearer_methods_supported: ['header'],
  };
  return sharedReply(request, 'application/json', JSON.stringify(body));
}

const protectedResources = (
  issuer: string,
): { resource: string; resource_name: string; scopes_supported: readonly string[] }[] => [
  { resource: apiResource(issuer), resource_name: 'ERP platform API', scopes_supported: ALL_SCOPES },
  { resource: mcpResource(issuer), resource_name: 'ERP platform for assistants', scopes_supported: MCP_SCOPES },
];

/** The provider's answer to requests without an origin; the gateway drops the body for HEAD. */
async function discovery(provider: Provider, request: HttpRequest): Promise<HttpReply> {
  const { origin: _, ...headers } = request.headers;
  const answer = await runProvider(provider, { ...request, method: 'GET', headers });
  return answer.status === 200
    ? sharedReply(request, String(answer.headers['content-type']), answer.body.toString())
    : answer;
}

/** The same for all callers: scripts of any origin may read it, and caches may keep it. */
function sharedReply({ headers }: HttpRequest, contentType: string, body: string): HttpReply {
  const etag = strongEtag(body);
  const own = {
    'access-control-allow-origin': '*',
    'cache-control': 'public, max-age=300',
    etag,
    vary: 'Accept-Encoding',
  };
  if (matchesEtag(single(headers['if-none-match']), etag)) return reply(304, own, '');
  return reply(200, { ...own, 'content-type': contentType }, body);
}

const isRead = ({ method }: HttpRequest): boolean => method === 'GET' || method === 'HEAD';

/** GET shows, POST acts; a POST from another site is refused before anything else looks at it. */
/**
 * Shows what the link of a mail does, or does it. The token in it is the right to do so: mail programs send whatever form
 * they like, from wherever they are (RFC 8058). An unknown token is answered like a known one.
 */
async function mailsReply(
  { stopMails }: HttpParts,
  token: string,
  request: HttpRequest,
  action: string,
): Promise<HttpReply> {
  if (isRead(request)) return pageReply(mailsPages.endMails(action));
  if (request.method !== 'POST') return methodReply(request);
  await stopMails(token);
  return pageReply(mailsPages.mailsEnded());
}

async function withForm(request: HttpRequest, work: (form: Form | null) => Promise<HttpReply>): Promise<HttpReply> {
  if (isRead(request)) return work(null);
  if (request.method !== 'POST') return methodReply(request);
  const type = single(request.headers['content-type']) ?? '';
  if (!/^application\/x-www-form-urlencoded\b/i.test(type))
    return failureReply(request, 'invalid_request', 'the form must be application/x-www-form-urlencoded', 415);
  if (fromAnotherSite(request)) return failureReply(request, 'invalid_request', 'the form is not from this site', 403);
  return work(new URLSearchParams(request.body?.toString('utf8') ?? ''));
}

function methodReply(request: HttpRequest): HttpReply {
  const { headers, ...refusal } = failureReply(request, 'invalid_request', 'the method is not supported', 405);
  return { ...refusal, headers: { ...headers, allow: 'GET, HEAD, POST' } };
}

function fromAnotherSite({ headers }: HttpRequest): boolean {
  const site = single(headers['sec-fetch-site']);
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  const origin = single(headers['origin']);
  return origin !== undefined && URL.parse(origin)?.host !== single(headers['host']);
}

function accountReply(parts: HttpParts, url: URL, form: Form | null, request: HttpRequest): Promise<HttpReply> {
  const { provider, ring } = parts;
  return dispatch(provider.issuer, request, async (req, res) => {
    const session = await provider.Session.get(provider.createContext(req, res));
    const answer = await accountPage(
      { ...parts, cookieKey: ring.cookies[0], session, address: request.remoteAddress, browser: browserOf(req) },
      url.searchParams,
      form,
    ).then(answerReply, (error) => errorReply(request, error));
    res.writeHead(answer.status, answer.headers);
    res.end(answer.body);
  });
}

function interactionReply(parts: HttpParts, uid: string, form: Form | null, request: HttpRequest): Promise<HttpReply> {
  const { provider, ring } = parts;
  return dispatch(provider.issuer, request, async (req, res) => {
    const answer = await interact(
      { ...parts, cookieKey: ring.cookies[0] },
      uid,
      form,
      request.remoteAddress,
      req,
      res,
    ).then(answerReply, (error) => errorReply(request, error));
    res.writeHead(answer.status, answer.headers);
    res.end(answer.body);
  });
}

const answerReply = (answer: Answer): HttpReply =>
  'redirect' in answer ? reply(303, { location: answer.redirect, 'cache-control': 'no-store' }, '') : pageReply(answer);

function errorReply(request: HttpRequest, error: unknown): HttpReply {
  if (!(error instanceof errors.OIDCProviderError)) throw error;
  return failureReply(request, error.error, error.error_description ?? null, error.statusCode);
}
