/**
 * The page on which people manage their passkeys, their second factor, what acts in their name and the link to their
 * calendar. It is shown to users who have signed in with this browser; a change needs a sign-in within the last five
 * minutes, with two factors once there are two.
 */

import { errors, type Provider, type Session } from 'oidc-provider';
import { ACCOUNT_CLIENT_ID, MULTI_FACTOR_ACR } from '../../contracts/auth.ts';
import { CALENDARS_ROOT } from '../../lib/addresses.ts';
import * as pages from '../../web/account/page.ts';
import { failure, suspended } from '../../web/sign-in/pages.ts';
import { recoveryCodes } from '../../web/sign-in/second-step.ts';
import { ACCOUNT_PATH, type Clients } from './clients.ts';
import { presentConnections } from './connections.ts';
import { csrfFor, isSameText } from './csrf.ts';
import { acrOf, PASSWORD_AMR, withSecondFactor } from './factors/assurance.ts';
import type { FactorEvent } from './factors/events.ts';
import { attemptFactor } from './factors/factor-attempts.ts';
import type { SecondFactors } from './factors/factors.ts';
import { passkeyName } from './factors/passkeys.ts';
import { makeRecoveryCodes } from './factors/recovery-codes.ts';
import type { Answer, Form } from './form.ts';
import { hashLinkToken, newLinkToken } from './passwords.ts';
import { nowSeconds } from './provider/lifetimes.ts';
import { PATHS } from './provider/paths.ts';
import { SUSPENDED_DESCRIPTION } from './provider/suspended.ts';
import type { Credential } from './store/credentials.ts';
import { type FactorCounts, PASSKEYS_MAX } from './store/factors.ts';
import type { AuthStore } from './store/store.ts';

/** A change needs a sign-in that is no older. */
const RECENT_SECONDS = 300;
/** More of them are seen through the API. */
const CONNECTIONS_SHOWN = 50;

interface AccountParts {
  provider: Provider;
  store: AuthStore;
  clients: Clients;
  factors: SecondFactors;
  cookieKey: string;
  session: Session;
  address: string;
  /** The value of the browser's cookie; null without one. */
  browser: string | null;
  /** Ends every grant and browser session of a user. */
  revokeUser(tenantId: string, userId: string): Promise<unknown>;
  /** Ends one connection of a user; false: there is no such connection. */
  revokeConnection(user: { tenantId: string; userId: string }, connectionId: string): Promise<boolean>;
}

/** One request of a signed-in user. */
interface Visit extends AccountParts {
  user: Credential;
  has: FactorCounts;
  csrf: string;
}

/** Shows the page, or makes the change that a form asks for. */
export async function accountPage(parts: AccountParts, query: URLSearchParams, form: Form | null): Promise<Answer> {
  const { session, store, provider } = parts;
  const found = session.accountId ? await store.credentials.byUser(session.accountId) : null;
  // Of the session: it may have ended since, and with it the right to change anything.
  const user = found && { ...found, sessionGeneration: session.sessionGeneration ?? NONE };
  if (user && (await parts.clients.isSuspended(user.tenantId))) return suspended();
  if (!user?.active) {
    const error = query.get('error');
    // A user who cancels the sign-in is not asked again and again.
    return error === null
      ? { redirect: signInAddress(provider.issuer, {}) }
      : query.get('error_description') === SUSPENDED_DESCRIPTION
        ? suspended()
        : failure({ code: error.slice(0, 100), description: null, requestId: null });
  }
  const has = await store.factors.counts(user);
  const visit: Visit = { ...parts, user, has, csrf: csrfFor(parts.cookieKey, `account ${session.uid}`) };
  if (form && !isSameText(form.get('csrf') ?? '', visit.csrf))
    throw new errors.InvalidRequest('the form is not from this page');
  if (isRecent(visit)) return form ? change(visit, form) : overview(visit, query.get('done'));
  if (form) return overview(visit, null, isStale(visit) ? STALE : WEAK);
  return query.has('confirm') ? { redirect: confirmation(visit) } : overview(visit, query.get('done'));
}

/** No generation of sessions. */
const NONE = -1;

const STALE = 'You signed in more than five minutes ago. Confirm that it is you, then make the change again.';
const WEAK = 'You signed in with one factor, and have two by now. Confirm that it is you, then make the change again.';

const hasFactor = ({ has }: Visit): boolean => has.passkeys > 0 || has.authenticator;

function isStale({ session }: Visit): boolean {
  const signedInAt = session.authTime();
  return signedInAt === undefined || nowSeconds() - signedInAt > RECENT_SECONDS;
}

const isRecent = (visit: Visit): boolean =>
  !isStale(visit) && (!hasFactor(visit) || visit.session.acr === MULTI_FACTOR_ACR);

const confirmation = (visit: Visit): string =>
  signInAddress(visit.provider.issuer, {
    max_age: String(RECENT_SECONDS),
    login_hint: visit.user.username.slice(0, 255),
    ...(hasFactor(visit) ? { acr_values: MULTI_FACTOR_ACR } : {}),
  });

function signInAddress(issuer: string, more: Record<string, string>): string {
  const parameters = new URLSearchParams({
    client_id: ACCOUNT_CLIENT_ID,
    response_type: 'none',
    scope: 'openid',
    redirect_uri: issuer + ACCOUNT_PATH,
    ...more,
  });
  return `${PATHS.authorization}?${parameters}`;
}

/** The challenge of a passkey that is added here is good in this browser session alone. */
const binding = ({ session }: Visit): string => `account ${session.uid}`;

async function overview(visit: Visit, done: string | null, problem: string | null = null): Promise<Answer> {
  const { factors, user, has, csrf } = visit;
  const recent = isRecent(visit);
  const connections = await visit.store.grants.connections(user, null, CONNECTIONS_SHOWN + 1);
  const tenant = await visit.clients.tenant({ tenantId: user.tenantId });
  return pages.account({
    action: ACCOUNT_PATH,
    csrf,
    username: user.username,
    tenantName: tenant?.name ?? '',
    timezone: tenant?.timezone ?? 'UTC',
    recent,
    passkeysMax: PASSKEYS_MAX,
    passkeys: has.passkeys > 0 ? await visit.store.factors.passkeys(user) : [],
    authenticator: has.authenticator,
    recoveryCodes: has.recoveryCodes,
    connections: await presentConnections(visit, user.tenantId, connections.slice(0, CONNECTIONS_SHOWN)),
    moreConnections: connections.length > CONNECTIONS_SHOWN,
    calendarLinkAt: await visit.store.calendarLinks.createdAt(user),
    passkeyOptions:
      recent && has.passkeys < PASSKEYS_MAX ? await factors.passkeys.registrationOptions(user, binding(visit)) : null,
    done,
    problem,
  });
}

function change(visit: Visit, form: Form): Promise<Answer> {
  const id = form.get('id') ?? '';
  switch (form.get('decision')) {
    case 'addPasskey':
      return addPasskey(visit, form);
    case 'renamePasskey':
      return renamePasskey(visit, id, form.get('name') ?? '');
    case 'removePasskey':
      return removePasskey(visit, id);
    case 'startApp':
      return startApp(visit, form, null);
    case 'addApp':
      return addApp(visit, form);
    case 'removeApp':
      return removeApp(visit);
    case 'newCodes':
      return newCodes(visit);
    case 'revokeConnection':
      return revokeConnection(visit, form.get('connection') ?? '');
    case 'revokeApplication':
      return revokeApplication(visit, form.get('client') ?? '');
    case 'createCalendarLink':
      return createCalendarLink(visit);
    case 'revokeCalendarLink':
      return revokeCalendarLink(visit);
    case 'endSessions':
      return endSessions(visit);
    default:
      return overview(visit, null);
  }
}

async function addPasskey(visit: Visit, form: Form): Promise<Answer> {
  const { factors, user } = visit;
  const answer = form.get('credential') ?? '';
  if (!(await factors.passkeys.register(user, binding(visit), answer, form.get('name') ?? '')))
    return overview(visit, null, 'The passkey was not stored. Try again.');
  return added(visit, 'passkeyAdded', 'user');
}

async function renamePasskey(visit: Visit, id: string, name: string): Promise<Answer> {
  const renamed = await visit.store.factors.renamePasskey(visit.user, id, passkeyName(name));
  return renamed ? finished('passkeyRenamed') : overview(visit, null, GONE);
}

async function removePasskey(visit: Visit, id: string): Promise<Answer> {
  const { has, store, user } = visit;
  if (await isLast(visit, has.passkeys + Number(has.authenticator))) return overview(visit, null, LAST_FACTOR);
  if (!(await store.factors.removePasskey(user, id))) return overview(visit, null, GONE);
  return finished('passkeyRemoved');
}

async function startApp(visit: Visit, form: Form, problem: string | null): Promise<Answer> {
  const { factors, user, csrf } = visit;
  const setup = factors.authenticators.setup(user, form.get('setup') ?? undefined);
  return pages.setUpAppPage({ action: ACCOUNT_PATH, csrf, username: user.username, setup, problem });
}

async function addApp(visit: Visit, form: Form): Promise<Answer> {
  const { factors, store, user } = visit;
  const judged = await attemptFactor(store, visit, () =>
    factors.authenticators.confirm(user, form.get('setup') ?? '', form.get('code') ?? ''),
  );
  if (judged.outcome === 'accepted') return added(visit, 'authenticatorAdded', 'otp');
  const text = judged.outcome === 'wait' ? `Wait ${judged.seconds} s, then try again.` : 'The code is not right.';
  return startApp(visit, form, text);
}

async function removeApp(visit: Visit): Promise<Answer> {
  const { has, store, user } = visit;
  if (await isLast(visit, has.passkeys + Number(has.authenticator))) return overview(visit, null, LAST_FACTOR);
  if (!(await store.factors.removeAuthenticator(user))) return overview(visit, null, GONE);
  return finished('authenticatorRemoved');
}

async function newCodes(visit: Visit): Promise<Answer> {
  if (!hasFactor(visit)) return overview(visit, null, 'Set up a passkey or an app first.');
  return showCodes(visit, { asked: true });
}

async function revokeConnection(visit: Visit, id: string): Promise<Answer> {
  const revoked = await visit.revokeConnection(visit.user, id);
  return revoked ? finished('connectionRevoked') : overview(visit, null, CONNECTION_GONE);
}

/** Ends the connections of one application, as far as the page shows them. */
async function revokeApplication(visit: Visit, clientId: string): Promise<Answer> {
  const shown = await visit.store.grants.connections(visit.user, null, CONNECTIONS_SHOWN);
  let ended = false;
  for (const { id } of shown.filter((one) => one.clientId === clientId))
    ended = (await visit.revokeConnection(visit.user, id)) || ended;
  return ended ? finished('applicationRevoked') : overview(visit, null, CONNECTION_GONE);
}

async function createCalendarLink({ provider, store, user }: Visit): Promise<Answer> {
  const token = newLinkToken();
  const created = await store.calendarLinks.replace(user, hashLinkToken(token));
  // All sessions have ended meanwhile: the page asks for a sign-in.
  return created
    ? pages.calendarLink({ action: ACCOUNT_PATH, url: `${provider.issuer}${CALENDARS_ROOT}${token}.ics` })
    : { redirect: ACCOUNT_PATH };
}

async function revokeCalendarLink(visit: Visit): Promise<Answer> {
  const revoked = await visit.store.calendarLinks.remove(visit.user);
  return revoked ? finished('calendarLinkRevoked') : overview(visit, null, GONE);
}

async function endSessions({ user, revokeUser }: Visit): Promise<Answer> {
  await revokeUser(user.tenantId, user.userId);
  return pages.sessionsEnded(ACCOUNT_PATH);
}

const GONE = 'It was removed already.';
const CONNECTION_GONE = 'This connection has ended already.';
const LAST_FACTOR = 'A second factor is required for you. Add another one before you remove this one.';

/** True when the only second factor of a user who must have one would be removed. */
const isLast = async ({ factors, user }: Visit, count: number): Promise<boolean> =>
  count <= 1 && (await factors.isDemanded(user));

/** The first second factor brings recovery codes with it. */
async function added(visit: Visit, event: FactorEvent, method: 'user' | 'otp'): Promise<Answer> {
  if (!hasFactor(visit)) await countAsTwoFactors(visit, method);
  return visit.has.recoveryCodes > 0 ? finished(event) : showCodes(visit);
}

/**
 * A user who has just typed the password and then used the new factor has proved both, as in a sign-in that sets one
 * up. The time of the sign-in stays what it was.
 */
async function countAsTwoFactors({ session }: Visit, method: 'user' | 'otp'): Promise<void> {
  session.amr = withSecondFactor(session.amr ?? PASSWORD_AMR, [method]);
  session.acr = acrOf(session.amr);
  await session.persist();
}

async function showCodes({ store, user, csrf }: Visit, { asked = false } = {}): Promise<Answer> {
  const codes = await makeRecoveryCodes(store, user, { asked });
  return recoveryCodes({ action: ACCOUNT_PATH, csrf, username: user.username, formTargets: [], codes });
}

const finished = (done: string): Answer => ({ redirect: `${ACCOUNT_PATH}?done=${done}` });
