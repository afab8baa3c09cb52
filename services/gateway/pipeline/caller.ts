/**
 * Checks of an operation's caller: token, grant, API permission, scopes, permission, sign-in, and the units
 * that the call costs. Source: docs/reference/http.md, "Order of checks".
 */
import { type GrantState, STEP_UP_MAX_AGE_SECONDS } from '../../../contracts/auth.ts';
import { holdsPermission, permissionDenied } from '../../../lib/access/system-permission.ts';
import { apiAccessDisabled } from '../../../lib/errors/access.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { isObject } from '../../../lib/json/objects.ts';
import { givesAccess, type Operation, type Scope } from '../../../lib/operation.ts';
import { referencesIn } from '../../../lib/query/expand.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { isWithin } from '../../../mixins/address-ranges.ts';
import { BODYLESS_MAX_BYTES, limitBody } from './body.ts';
import type { Connection } from './budget.ts';
import { ANY_ORIGIN, type Call, expansionCost } from './call.ts';
import { allowOrigin, refuseToken, scopeInsufficient, signInInsufficient } from './challenge.ts';
import { decode } from './form.ts';
import type { Gate } from './gate.ts';
import { isAgent, type UserRights } from './session.ts';
import type { Session } from './tokens.ts';

/** Without it, the records of objects that give access cannot be written. */
const ACCESS_PERMISSION = 'manageUsers';

export function authenticate(gate: Gate, x: Call): void | Promise<void> {
  if (x.route.operation.scopes === 'public') {
    x.budget = gate.budgets.anonymous(x.ip);
    x.allowedOrigin = ANY_ORIGIN;
    return undefined;
  }
  return openSession(gate, x);
}

/** Finds out who is calling, and whether the page they call from may read the answer. */
export function openSession(gate: Gate, x: Call): void | Promise<void> {
  const { origin } = x.headers;
  let session: Session | Promise<Session>;
  try {
    session = gate.sessions.open(x.headers.authorization, platformTime(), x.door, x.bearer);
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

/** Policies and budgets of agents are about operations; what they do not see, an agent does not do. */
export function refuseAgent(_gate: Gate, { session }: Call): void {
  if (session && isAgent(session)) throw new PlatformError('AGENT_POLICY_DENIED', 'Agents cannot provision users.');
}

/** A page that no client of the caller lists has nothing to ask here (DNS rebinding). */
export function checkOrigin(_gate: Gate, x: Call): void {
  if (x.headers.origin === undefined || x.allowedOrigin !== null) return;
  throw new PlatformError('ORIGIN_NOT_ALLOWED', 'The client does not list the origin of this page.');
}

export function checkGrant(gate: Gate, x: Call): void | Promise<void> {
  const { session } = x;
  if (!session) return undefined;
  const grant = gate.sessions.grant(session);
  return grant instanceof Promise
    ? grant.then((state) => applyGrant(gate, x, session, state))
    : applyGrant(gate, x, session, grant);
}

function applyGrant(gate: Gate, x: Call, session: Session, grant: GrantState): void | Promise<void> {
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

export function checkApiPermission(gate: Gate, x: Call): void | Promise<void> {
  if (!x.session || x.routeIfKnown?.operation.apiPermission === false) return undefined;
  const user = gate.sessions.user(x.session);
  if (user instanceof Promise) return user.then(requireApi);
  requireApi(user);
  return undefined;
}

function requireApi({ apiEnabled }: UserRights): void {
  if (!apiEnabled) throw apiAccessDisabled();
}

export function checkScope(gate: Gate, x: Call): void {
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

function requireScopes(gate: Gate, x: Call, operation: Operation): void {
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
function requireAccessScope(gate: Gate, x: Call, operation: Operation, body?: unknown): void {
  const scope = operation.givesAccess?.scope;
  if (!scope || x.session?.scopes.includes(scope) || !givesAccess(operation, objectOf(x), body)) return;
  const message = `The access token lacks the scope ${scope}: the call changes what people may do or see.`;
  throw scopeInsufficient(gate, x, [...scopesOf(operation), scope], message);
}

/** The object that the path names; null: none. */
const objectOf = ({ route, pathValues }: Call): string | null =>
  decode(pathValues[route.parameterNames.indexOf('objectApiName')] ?? '') || null;

const scopesOf = ({ scopes }: Operation): readonly Scope[] => (typeof scopes === 'string' ? [] : scopes);

/** The first scope of the operation that the token lacks; null: it has them all. */
function missingScope({ session }: Call, operation: Operation): Scope | null {
  const granted = session?.scopes ?? [];
  for (const scope of scopesOf(operation)) if (!granted.includes(scope)) return scope;
  return null;
}

/** Before the body is received: what it costs to read is for those who may do something with it. */
export function checkPermission(gate: Gate, x: Call): void | Promise<void> {
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
export function checkSignIn(gate: Gate, x: Call): void | Promise<void> {
  const { stepUp } = x.route.operation;
  const { session } = x;
  if (stepUp === undefined || !session || !lacksStepUp(session, platformTime())) return undefined;
  // The permission that an operation needs as a whole has been checked before.
  if (stepUp === true) throw signInInsufficient(gate, x);
  const objectApiName = objectOf(x);
  if (objectApiName === null || !stepUp.includes(objectApiName)) return undefined;
  return gate.sessions.currentUser(session).then(({ systemPermissions }) => {
    if (holdsPermission(systemPermissions, ACCESS_PERMISSION)) throw signInInsufficient(gate, x);
  });
}

export function lacksStepUp({ grant, signedIn }: Session, now: number): boolean {
  if (!grant?.stepUp) return false;
  return !signedIn?.multiFactor || now - signedIn.at * 1_000 > STEP_UP_MAX_AGE_SECONDS * 1_000;
}

export function spendMcpRequest(gate: Gate, x: Call): void | Promise<void> {
  const connection = x.session?.connection;
  if (!connection) throw new Error('The grant has not been checked.');
  x.enterFlight(gate.budgets.enter(connection, 0));
  x.charged = true;
  return gate.budgets.charge(connection, 1);
}

export function spendOperation(gate: Gate, x: Call): void | Promise<void> {
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
async function reportLimits(gate: Gate, x: Call, connection: Connection, free: boolean): Promise<void> {
  x.charged = true;
  if (!free) await gate.budgets.charge(connection, 1);
  await gate.budgets.report(connection);
}

/** The key of a poll that is free once per second; null: the operation is no such poll. */
function freeOncePerSecond(x: Call, tenantId: string, connectionKey: string): string | null {
  const { operation } = x.route;
  if (!operation.freePoll) return null;
  if (x.pathValues.length === 0) return `${connectionKey}:${operation.operationId}`;
  // UUIDs compare case-insensitively.
  const id = decode(x.pathValues.at(-1) ?? '')?.toLowerCase();
  return isUuid(id) ? `${tenantId}:${operation.operationId}:${id}` : null;
}

/**
 * The operation of a dry run is known when the body has been read: its scope and its price are those of that operation, and
 * so is how long a body may be.
 */
export function chooseChecked(gate: Gate, x: Call): void {
  const { operation, checks } = x.route;
  if (!checks || !x.asked) return;
  const named = isObject(x.asked.body) ? x.asked.body['operation'] : undefined;
  const checked = typeof named === 'string' ? checks.get(named) : undefined;
  if (!checked) throw checkUnknown([...checks.keys()], named);
  requireScopes(gate, x, checked);
  requireAccessScope(gate, x, checked);
  limitBody(x, checked.requestBody?.maxBytes ?? BODYLESS_MAX_BYTES);
  x.checked = checked;
  const more = checked.cost - operation.cost;
  if (x.session?.connection && more > 0) gate.budgets.settle(x.session.connection, more);
}

/** Rechecked with the body, which may decide whether the call gives access. */
export function checkAccessScope(gate: Gate, x: Call): void {
  requireAccessScope(gate, x, x.route.operation, x.asked?.body);
}

function checkUnknown(names: readonly string[], named: unknown): PlatformError {
  const code = named === undefined ? 'PARAMETER_REQUIRED' : 'PARAMETER_INVALID';
  const message = `operation must be one of ${names.join(', ')}.`;
  return new PlatformError(code, message, { errors: [violation('/operation', code, message)] });
}

/** Charges the references along which a query leads, whose number is known once the form has been read. */
export function spendExpansions(gate: Gate, x: Call): void {
  const { asked, session } = x;
  if (!x.route.operation.expands || !asked) return;
  x.expanded = referencesIn(isObject(asked.body) ? asked.body : asked.query);
  const cost = expansionCost(x);
  if (session?.connection && cost > 0) gate.budgets.settle(session.connection, cost);
}
