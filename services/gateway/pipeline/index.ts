/**
 * The checks of every operation, in their one order; the first failure answers. Idempotency, visibility, permissions,
 * preconditions and rules follow in the service that owns the data. Source: docs/reference/http.md, "Order of checks".
 */
import { LIMITS } from '../../../config/limits.ts';
import { CLI_CLIENT_ID, type GrantState, STEP_UP_MAX_AGE_SECONDS } from '../../../contracts/auth.ts';
import { MCP_PATH, MCP_SCOPES } from '../../../contracts/mcp.ts';
import { stepUpDemanded } from '../../../contracts/step-up.ts';
import { holdsPermission, permissionDenied } from '../../../lib/access/system-permission.ts';
import { API_PREFIX, protectedResourceUrl } from '../../../lib/addresses.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { apiAccessDisabled } from '../../../lib/errors/access.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { isObject } from '../../../lib/json/objects.ts';
import { givesAccess, type Operation, type OperationReply, type Scope } from '../../../lib/operation.ts';
import { referencesIn } from '../../../lib/query/expand.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { isWithin } from '../../../mixins/address-ranges.ts';
import { nextPiece } from '../../../mixins/long-work.ts';
import type { Turns } from '../../../mixins/turns.ts';
import { mark } from '../../../mixins/watchdog/work.ts';
import type { Exchange } from '../edge/exchange.ts';
import { checkContentType, hasBody, limitBody, readBytes } from '../edge/intake.ts';
import { ANY_ORIGIN } from '../edge/reply.ts';
import { coverBody, decode, readForm } from './form.ts';
import type { Budgets, Connection } from './rate/budget.ts';
import { allowed, type Router } from './router.ts';
import { enterRun, isAgent, type RunCalls, runOf } from './run-calls.ts';
import type { Session, Sessions } from './session.ts';

export interface Gate {
  readonly baseUrl: string;
  readonly router: Router;
  readonly sessions: Sessions;
  readonly budgets: Budgets;
  /** One body of many megabytes of each tenant is received and answered at a time. */
  readonly hugeBodies: Turns;
  readonly originAllowed: (origin: string, clientId?: string) => boolean | Promise<boolean>;
  readonly runs: RunCalls;
  readonly forward: (x: Exchange) => Promise<OperationReply>;
  /** Called with every request that a check refused. */
  readonly refused: (x: Exchange, error: unknown) => void;
  readonly now: () => number;
}

/** What a client of the endpoint for assistants asks for first; each tool says what it needs besides. */
const MCP_FIRST_SCOPE: Scope = 'setup:read';
const BODYLESS_MAX_BYTES = 64 * 1024;
/** Reading it takes a millisecond or more. */
const LARGE_BODY_BYTES = 32 * 1024;
/** Without it, the records of objects that give access cannot be written. */
const ACCESS_PERMISSION = 'manageUsers';

type Step = (gate: Gate, x: Exchange) => void | Promise<void>;

/** What the caller of an operation has to pass, whichever way the call comes. */
const OF_CALLER: readonly Step[] = [
  checkGrant,
  checkApiPermission,
  checkScope,
  checkPermission,
  checkSignIn,
  spendOperation,
];

const BEFORE_BODY: readonly Step[] = [findRoute, authenticate, ...OF_CALLER];
const FROM_FORM: readonly Step[] = [
  giveWay,
  checkForm,
  giveWay,
  identify,
  chooseChecked,
  checkAccessScope,
  spendExpansions,
  askRun,
];
const FROM_BODY: readonly Step[] = [receiveBody, ...FROM_FORM];

const OF_MCP_REQUEST: readonly Step[] = [openSession, checkGrant, checkOrigin, checkApiPermission, spendMcpRequest];
/** Its session is known; a grant that has ended since the request came gets no further. */
const OF_MCP_OPERATION: readonly Step[] = [findRoute, ...OF_CALLER, ...FROM_FORM];

const OF_PROVISIONING: readonly Step[] = [openSession, checkGrant, refuseAgent, ...OF_CALLER];

/** The checks of a request to the endpoint for assistants, before its body is received. */
export const admit = (gate: Gate, x: Exchange): Promise<void> => check(gate, x, OF_MCP_REQUEST);

/** The checks of a request to the endpoint for provisioning, whose route is known, before its body is received. */
export const admitProvisioning = (gate: Gate, x: Exchange): Promise<void> => check(gate, x, OF_PROVISIONING);

/** Runs an operation within such a request, whose session and body `x` has. */
export async function answerWithin(gate: Gate, x: Exchange): Promise<OperationReply> {
  await check(gate, x, OF_MCP_OPERATION);
  return x.outcome ?? forward(gate, x);
}

/** Runs the checks, then the operation. */
export async function answer(gate: Gate, x: Exchange): Promise<OperationReply> {
  await check(gate, x, BEFORE_BODY);
  const rest = async (): Promise<OperationReply> => {
    await check(gate, x, FROM_BODY);
    return x.outcome ?? forward(gate, x);
  };
  if (!x.session || !mayBeHuge(x)) return rest();
  return gate.hugeBodies.take(x.session.tenantId, rest);
}

/** Services that demand a stronger sign-in do not know where their caller finds out how to get a token. */
function forward(gate: Gate, x: Exchange): Promise<OperationReply> {
  return gate.forward(x).catch((error) => {
    const demanded = error instanceof PlatformError && error.code === 'AUTHENTICATION_INSUFFICIENT';
    throw demanded ? signInInsufficient(gate, x) : error;
  });
}

async function check(gate: Gate, x: Exchange, steps: readonly Step[]): Promise<void> {
  try {
    for (const step of steps) {
      const waiting = step(gate, x);
      if (waiting) await waiting;
    }
  } catch (error) {
    gate.refused(x, error);
    throw error;
  }
}

/** Whether the body may take much memory; a compressed one does not say. */
function mayBeHuge({ route, req }: Exchange): boolean {
  if ((route.operation.requestBody?.maxBytes ?? 0) <= LIMITS.body_max_bytes) return false;
  const { 'content-length': length, 'content-encoding': encoding } = req.headers;
  return length === undefined || encoding !== undefined || Number(length) > LARGE_BODY_BYTES;
}

function findRoute(gate: Gate, x: Exchange): void {
  const match = gate.router.match(x.path.slice(API_PREFIX.length), gate.now());
  const method = x.method === 'HEAD' ? 'GET' : x.method;
  if (!match || match.ended.has(method))
    throw new PlatformError('ROUTE_NOT_FOUND', 'There is no operation at this path.');
  const route = match.methods.get(method);
  if (!route)
    throw new PlatformError('METHOD_NOT_ALLOWED', 'The request method is not supported for this path.', {
      headers: { Allow: allowed(match.methods) },
    });
  x.routed(route, match.values);
}

function authenticate(gate: Gate, x: Exchange): void | Promise<void> {
  if (x.route.operation.scopes === 'public') {
    x.budget = gate.budgets.anonymous(x.ip);
    x.allowedOrigin = ANY_ORIGIN;
    return undefined;
  }
  return openSession(gate, x);
}

/** Finds out who is calling, and whether the page they call from may read the answer. */
function openSession(gate: Gate, x: Exchange): void | Promise<void> {
  const { origin } = x.req.headers;
  let session: Session | Promise<Session>;
  try {
    session = gate.sessions.open(x.req.headers.authorization, gate.now(), x.door);
  } catch (error) {
    return refuseToken(gate, x, error);
  }
  if (!(session instanceof Promise) && origin === undefined) {
    x.session = session;
    return undefined;
  }
  return Promise.resolve(session).then(
    (opened) => {
      x.session = opened;
      return origin === undefined ? undefined : allowOrigin(gate, x, origin, opened.clientId);
    },
    (error) => refuseToken(gate, x, error),
  );
}

async function allowOrigin(gate: Gate, x: Exchange, origin: string, clientId?: string): Promise<void> {
  // The answer is sent in either case; without the header the browser keeps it from the page.
  if (await Promise.resolve(gate.originAllowed(origin, clientId)).catch(() => false)) x.allowedOrigin = origin;
}

/** Policies and budgets of agents are about operations; what they do not see, an agent does not do. */
function refuseAgent(_gate: Gate, { session }: Exchange): void {
  if (session && isAgent(session)) throw new PlatformError('AGENT_POLICY_DENIED', 'Agents cannot provision users.');
}

/** A page that no client of the caller lists has nothing to ask here (DNS rebinding). */
function checkOrigin(_gate: Gate, x: Exchange): void {
  if (x.req.headers.origin === undefined || x.allowedOrigin !== null) return;
  throw new PlatformError('ORIGIN_NOT_ALLOWED', 'The client does not list the origin of this page.');
}

/** A failed authentication is charged to the caller's network, and says where to get a token. */
async function refuseToken(gate: Gate, x: Exchange, error: unknown): Promise<never> {
  const { origin } = x.req.headers;
  if (origin !== undefined) await allowOrigin(gate, x, origin);
  if (!(error instanceof PlatformError) || error.status !== 401) throw error;
  x.budget = gate.budgets.anonymous(x.ip);
  x.charged = true;
  await gate.budgets.charge(x.budget, 1);
  throw challenge(gate, x, error);
}

function challenge(gate: Gate, x: Exchange, error: PlatformError): PlatformError {
  // A client of the endpoint for assistants asks for the scopes that it is refused for, and for more when it needs more.
  const asked = x.door === 'mcp' ? [`scope="${MCP_FIRST_SCOPE}"`] : [];
  const value =
    error.code === 'TOKEN_MISSING'
      ? `Bearer ${[...asked, resourceMetadata(gate, x)].join(', ')}`
      : bearerError(gate, x, 'invalid_token', error.message.replaceAll('"', "'"), asked);
  return new PlatformError(error.code, error.message, { headers: { 'WWW-Authenticate': value }, cause: error.cause });
}

/** The challenge of RFC 6750; `more`: parameters of the error. */
const bearerError = (
  gate: Gate,
  x: Exchange,
  error: string,
  description: string,
  more: readonly string[] = [],
): string =>
  `Bearer ${[`error="${error}"`, `error_description="${description}"`, ...more, resourceMetadata(gate, x)].join(', ')}`;

/** Where a client finds out how to get a token (RFC 9728). */
const resourceMetadata = ({ baseUrl }: Gate, { door }: Exchange): string =>
  `resource_metadata="${protectedResourceUrl(baseUrl, door === 'mcp' ? MCP_PATH : API_PREFIX)}"`;

function checkGrant(gate: Gate, x: Exchange): void | Promise<void> {
  const { session } = x;
  if (!session) return undefined;
  const grant = gate.sessions.grant(session);
  return grant instanceof Promise
    ? grant.then((state) => applyGrant(gate, x, session, state))
    : applyGrant(gate, x, session, grant);
}

function applyGrant(gate: Gate, x: Exchange, session: Session, grant: GrantState): void | Promise<void> {
  if (session.connection?.grant !== grant) session.connection = gate.budgets.connection(session, grant);
  session.grant = grant;
  if (!grant.active && grant.clientActive && !grant.tenantSuspended)
    return refuseToken(gate, x, new PlatformError('TOKEN_REVOKED', 'The access token was revoked.'));
  x.budget = session.connection;
  if (grant.tenantSuspended) throw new PlatformError('TENANT_SUSPENDED', 'The tenant is suspended.');
  if (!grant.clientActive) throw new PlatformError('CLIENT_DISABLED', 'The client application is disabled.');
  if (grant.ipRanges.length > 0 && !isWithin(x.ip, grant.ipRanges))
    throw new PlatformError('IP_NOT_ALLOWED', 'The client may not be used from this network address.');
  return undefined;
}

function checkApiPermission(gate: Gate, x: Exchange): void | Promise<void> {
  if (!x.session || x.routeIfKnown?.operation.apiPermission === false) return undefined;
  const user = gate.sessions.user(x.session);
  const check = ({ apiEnabled }: { apiEnabled: boolean }): void => {
    if (!apiEnabled) throw apiAccessDisabled();
  };
  return user instanceof Promise ? user.then(check) : check(user);
}

function checkScope(gate: Gate, x: Exchange): void {
  const { operation, checks } = x.route;
  requireScopes(gate, x, operation);
  requireAccessScope(gate, x, operation);
  // Of what can be tried out, one thing at least: which one it is, the body says.
  if (!checks) return;
  const all = [...checks.values()];
  if (all.some((one) => missingScope(x, one) === null)) return;
  const scopes = [...new Set(all.flatMap(scopesOf))];
  throw scopeInsufficient(gate, x, scopes, `The access token has none of the scopes ${scopes.join(', ')}.`);
}

function requireScopes(gate: Gate, x: Exchange, operation: Operation): void {
  const { oneOfScopes } = operation;
  if (oneOfScopes && !oneOfScopes.some((scope) => x.session?.scopes.includes(scope)))
    throw scopeInsufficient(
      gate,
      x,
      oneOfScopes.slice(0, 1),
      `The access token lacks the scope ${oneOfScopes.join(' or ')}.`,
    );
  const missing = missingScope(x, operation);
  if (missing === null) return;
  throw scopeInsufficient(gate, x, scopesOf(operation), `The access token lacks the scope ${missing}.`);
}

/** Of a call that gives access, whatever client sends it. `body`: absent while it has not been read. */
function requireAccessScope(gate: Gate, x: Exchange, operation: Operation, body?: unknown): void {
  const scope = operation.givesAccess?.scope;
  if (!scope || x.session?.scopes.includes(scope) || !givesAccess(operation, objectOf(x), body)) return;
  const message = `The access token lacks the scope ${scope}: the call changes what people may do or see.`;
  throw scopeInsufficient(gate, x, [...scopesOf(operation), scope], message);
}

/** The object that the path names; null: none. */
const objectOf = ({ route, pathValues }: Exchange): string | null =>
  decode(pathValues[route.parameterNames.indexOf('objectApiName')] ?? '') || null;

const scopesOf = ({ scopes }: Operation): readonly Scope[] => (typeof scopes === 'string' ? [] : scopes);

/** The first scope of the operation that the token lacks; null: it has them all. */
function missingScope({ session }: Exchange, operation: Operation): Scope | null {
  const granted = session?.scopes ?? [];
  return scopesOf(operation).find((scope) => !granted.includes(scope)) ?? null;
}

function scopeInsufficient(gate: Gate, x: Exchange, required: readonly Scope[], message: string): PlatformError {
  return new PlatformError('SCOPE_INSUFFICIENT', message, {
    details: { required: [...required], granted: [...(x.session?.scopes ?? [])], layer: 'scope' },
    headers: { 'WWW-Authenticate': scopeChallenge(gate, x, required, message) },
  });
}

function scopeChallenge(gate: Gate, x: Exchange, required: readonly Scope[], message: string): string {
  if (x.door !== 'mcp') return `Bearer error="insufficient_scope", scope="${required.join(' ')}"`;
  // Who authorizes again for these alone would lose the others.
  const kept = MCP_SCOPES.filter((scope) => required.includes(scope) || x.session?.scopes.includes(scope));
  return bearerError(gate, x, 'insufficient_scope', message, [`scope="${kept.join(' ')}"`]);
}

/** Before the body is received: what it costs to read is for those who may do something with it. */
function checkPermission(gate: Gate, x: Exchange): void | Promise<void> {
  const { permission } = x.route.operation;
  const { session } = x;
  if (permission === undefined || !session) return undefined;
  const known = gate.sessions.user(session);
  if (!(known instanceof Promise) && holdsPermission(known.systemPermissions, permission)) return undefined;
  return gate.sessions.currentUser(session).then(({ systemPermissions }) => {
    if (!holdsPermission(systemPermissions, permission)) throw permissionDenied(permission);
  });
}

/**
 * A person who changes what users may do, or the configuration, has just signed in with two factors (RFC 9470). A
 * person who may not do so gets the service's refusal instead.
 */
function checkSignIn(gate: Gate, x: Exchange): void | Promise<void> {
  const { stepUp } = x.route.operation;
  const { session } = x;
  if (stepUp === undefined || !session || !lacksStepUp(session, gate.now())) return undefined;
  // The permission that an operation needs as a whole has been checked before.
  if (stepUp === true) throw signInInsufficient(gate, x);
  const objectApiName = objectOf(x);
  if (objectApiName === null || !stepUp.includes(objectApiName)) return undefined;
  return gate.sessions.currentUser(session).then(({ systemPermissions }) => {
    if (holdsPermission(systemPermissions, ACCESS_PERMISSION)) throw signInInsufficient(gate, x);
  });
}

function lacksStepUp({ grant, signedIn }: NonNullable<Exchange['session']>, now: number): boolean {
  if (!grant?.stepUp) return false;
  return !signedIn?.multiFactor || now - signedIn.at * 1_000 > STEP_UP_MAX_AGE_SECONDS * 1_000;
}

function signInInsufficient(gate: Gate, x: Exchange): PlatformError {
  return stepUpDemanded(resourceMetadata(gate, x));
}

function spendMcpRequest(gate: Gate, x: Exchange): void | Promise<void> {
  const connection = x.session?.connection;
  if (!connection) throw new Error('The grant has not been checked.');
  x.enterFlight(gate.budgets.enter(connection, 0));
  x.charged = true;
  return gate.budgets.charge(connection, 1);
}

function spendOperation(gate: Gate, x: Exchange): void | Promise<void> {
  const { operation } = x.route;
  const { session } = x;
  const connection = session?.connection;
  if (!connection) {
    x.charged = true;
    return gate.budgets.charge(x.budget ?? gate.budgets.anonymous(x.ip), 1);
  }
  x.enterFlight(gate.budgets.enter(connection, operation.manyAtOnce ? 0 : operation.cost));
  const freeKey = freeOncePerSecond(x, session.tenantId, connection.key);
  const free = freeKey !== null && gate.budgets.freePoll(freeKey);
  if (operation.reportsLimits) return reportLimits(gate, x, connection, free);
  // A free read that is refused later, as one of an id that does not exist, is charged then.
  x.charged = !free && operation.cost > 0;
  return gate.budgets.charge(connection, free ? 0 : operation.cost);
}

/** The counters are asked for what is left, so that the answer is exact. */
async function reportLimits(gate: Gate, x: Exchange, connection: Connection, free: boolean): Promise<void> {
  x.charged = true;
  if (!free) await gate.budgets.charge(connection, 1);
  await gate.budgets.report(connection);
}

/** The key of a poll that is free once per second; null: the operation is no such poll. */
function freeOncePerSecond(x: Exchange, tenantId: string, connectionKey: string): string | null {
  const { operation } = x.route;
  if (!operation.freePoll) return null;
  if (x.pathValues.length === 0) return `${connectionKey}:${operation.operationId}`;
  // Another way to write an id is not another id.
  const id = decode(x.pathValues.at(-1) ?? '')?.toLowerCase();
  return isUuid(id) ? `${tenantId}:${operation.operationId}:${id}` : null;
}

function receiveBody(_gate: Gate, x: Exchange): void | Promise<void> {
  if (!hasBody(x)) return undefined;
  const { operation } = x.route;
  const declared = operation.requestBody;
  if (declared) checkContentType(x, operation);
  return readBytes(x, declared?.maxBytes ?? BODYLESS_MAX_BYTES).then((body) => {
    x.body = body;
    mark();
  });
}

/** Large bodies are read one after the other, and leave time to other requests. */
function giveWay(_gate: Gate, { body }: Exchange): void | Promise<void> {
  return body !== null && body.length > LARGE_BODY_BYTES ? nextPiece().then(mark) : undefined;
}

function checkForm(_gate: Gate, x: Exchange): void {
  x.call = readForm(x, x.route);
}

function identify(_gate: Gate, x: Exchange): void {
  if (x.call) coverBody(x.call, x.route.operation);
}

/**
 * What a check tries out is known when its body has been read: its scope and its price are those of that operation, and
 * so is how long a body may be.
 */
function chooseChecked(gate: Gate, x: Exchange): void {
  const { operation, checks } = x.route;
  if (!checks || !x.call) return;
  const named = isObject(x.call.body) ? x.call.body['operation'] : undefined;
  const checked = typeof named === 'string' ? checks.get(named) : undefined;
  if (!checked) throw checkUnknown([...checks.keys()], named);
  requireScopes(gate, x, checked);
  requireAccessScope(gate, x, checked);
  limitBody(x, checked.requestBody?.maxBytes ?? BODYLESS_MAX_BYTES);
  x.checked = checked;
  const more = checked.cost - operation.cost;
  if (x.session?.connection && more > 0) gate.budgets.settle(x.session.connection, more);
}

/** Whether a call gives access may depend on its body. */
function checkAccessScope(gate: Gate, x: Exchange): void {
  requireAccessScope(gate, x, x.route.operation, x.call?.body);
}

function checkUnknown(names: readonly string[], named: unknown): PlatformError {
  const code = named === undefined ? 'PARAMETER_REQUIRED' : 'PARAMETER_INVALID';
  const message = `operation must be one of ${names.join(', ')}.`;
  return new PlatformError(code, message, { errors: [violation('/operation', code, message)] });
}

/** How many references a request expands is known when its form has been read. */
function spendExpansions(gate: Gate, x: Exchange): void {
  const { call, session } = x;
  if (!x.route.operation.expands || !call) return;
  x.expanded = referencesIn(call.query['expand'] ?? (isObject(call.body) ? call.body['expand'] : undefined));
  if (session?.connection && x.expanded.length > 0) gate.budgets.settle(session.connection, x.expanded.length);
}

/** A call that names a run needs its leave; an agent's call without one is refused. */
function askRun(gate: Gate, x: Exchange): void | Promise<void> {
  const runId = runOf(x);
  if (runId === null) return undefined;
  return enterRun(gate.runs, x, runId).then((outcome) => {
    x.outcome = outcome;
    mark();
  });
}

/** The context that is sent with the call: caller, tenant and deadline. */
export function requestContextOf(x: Exchange): RequestContext | undefined {
  const { session, run } = x;
  if (!session) return undefined;
  const context: RequestContext = {
    requestId: x.requestId,
    clientRequestId: x.clientRequestId,
    tenantId: session.tenantId,
    userId: session.userId,
    clientId: session.clientId,
    grantId: session.grantId,
    scopes: session.scopes,
    agent: isAgent(session),
    person: session.signedIn !== null && !isAgent(session),
    ...(lacksStepUp(session, platformTime()) ? { lacksStepUp: true } : {}),
    agentRunId: run?.runId ?? x.refusedByRun,
    tokenExpiresAt: session.tokenExpiresAt,
    ip: x.ip,
    channel: x.door === 'mcp' ? 'mcp' : session.clientId === CLI_CLIENT_ID ? 'cli' : 'api',
    deadline: x.startedAt + LIMITS.request_timeout_ms,
  };
  if (!run) return context;
  const { dryRun, approvalRequired, approval, deniedObjects } = run;
  return {
    ...context,
    dryRun,
    approvalRequired,
    ...(approval ? { approval } : {}),
    ...(deniedObjects ? { deniedObjects } : {}),
  };
}
