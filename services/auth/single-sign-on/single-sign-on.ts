/**
 * Sign-in at the OpenID provider of a tenant: on the way there and back it belongs to one interaction of one browser, and
 * its state is used once. Source: docs/reference/authentication.md#single-sign-on.
 */
import { createHash, randomBytes } from 'node:crypto';
import { MULTI_FACTOR_ACR } from '../../../contracts/auth.ts';
import type { SignInRefusalCode } from '../../../contracts/data.ts';
import type { SystemPermission } from '../../../lib/schema/snapshot.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { networkOf } from '../../../lib/values/network.ts';
import { FEDERATED_AMR } from '../factors/assurance.ts';
import type { Credential } from '../store/credentials.ts';
import type { UserKey } from '../store/factors.ts';
import { typedName } from '../usernames.ts';
import { type Claims, type Expected, type OpenIdClient, ProviderError } from './openid.ts';
import { type PeopleParts, userOf } from './people.ts';
import { providerOf, providerOfUser, type TenantProvider } from './providers.ts';
import type { ProviderSecrets } from './secrets.ts';

/** Every way back from a provider begins with it. */
export const CALLBACK_ROOT = '/oauth2/sso/callback/';

/**
 * The way back from a provider, which no other one has: an answer that arrives on another way than its sign-in left for
 * is none, so that no provider gets a code of another one redeemed (RFC 9700 section 4.4).
 */
export async function callbackPath(
  clients: Pick<PeopleParts['clients'], 'tenant'>,
  { tenantId, apiName }: { tenantId: string; apiName: string },
): Promise<string> {
  const tenant = await clients.tenant({ tenantId });
  return `${CALLBACK_ROOT}${tenant?.key ?? tenantId}/${apiName}`;
}

export interface SingleSignOnParts extends PeopleParts {
  readonly openid: OpenIdClient;
  readonly secrets: ProviderSecrets;
  systemPermissions(user: UserKey): Promise<readonly string[]>;
  /** A provider did not do its part: for the log. */
  providerFailed(provider: TenantProvider, reason: string): void;
}

/** A sign-in on its way to a provider. */
interface Departure {
  /** Of the interaction, which belongs to the browser. */
  readonly uid: string;
  readonly address: string;
  readonly baseUrl: string;
  readonly loginHint: string;
  readonly maxAge: number | null;
  readonly again: boolean;
  readonly secondFactor: boolean;
}

/** `suspended`: a person of that tenant, for which nothing is written. */
type Return =
  | { readonly credential: Credential; readonly amr: readonly string[]; readonly authTime: number | null }
  | { readonly suspended: string }
  | {
      readonly refused: SignInRefusalCode | 'SINGLE_SIGN_ON_EXPIRED' | 'SINGLE_SIGN_ON_CANCELLED';
      readonly provider: TenantProvider | null;
      readonly userId: string | null;
      readonly username: string | null;
    };

const MODEL = 'SingleSignOn';
const STATE_SECONDS = 600;
const STATE = /^[\w-]{43}$/;
/** Between the clock of a provider and ours. */
const CLOCK_TOLERANCE_SECONDS = 60;
/** Error codes of a provider for a person who declined or may not continue. */
const CANCELLED: ReadonlySet<string> = new Set(['access_denied', 'login_required', 'interaction_required']);
/** Its holders may sign in with a password and a second factor when the provider is away or misconfigured. */
const BREAKS_GLASS: SystemPermission = 'manageAccess';

interface Waiting extends Expected {
  readonly uid: string;
  readonly tenantId: string;
  readonly apiName: string;
  readonly issuer: string;
  readonly clientId: string;
  /** On which the provider sends the browser back. */
  readonly callback: string;
  /** Seconds since 1970. */
  readonly startedAt: number;
  readonly maxAge: number | null;
}

/** A sign-in as it was stored when it began. */
const waitingOf = (stored: Record<string, unknown>): Waiting => ({
  state: String(stored['state']),
  nonce: String(stored['nonce']),
  verifier: String(stored['verifier']),
  uid: String(stored['uid']),
  tenantId: String(stored['tenantId']),
  apiName: String(stored['apiName']),
  issuer: String(stored['issuer']),
  clientId: String(stored['clientId']),
  callback: String(stored['callback']),
  startedAt: Number(stored['startedAt']),
  maxAge: stored['maxAge'] === null ? null : Number(stored['maxAge']),
});

const random = (): string => randomBytes(32).toString('base64url');
/** The database does not store what brings a sign-in back. */
const keyOf = (state: string): string => createHash('sha256').update(state).digest('base64url');
const nowSeconds = (): number => Math.floor(platformTime() / 1_000);

export class SingleSignOn {
  readonly #parts: SingleSignOnParts;

  constructor(parts: SingleSignOnParts) {
    this.#parts = parts;
  }

  /** The provider that a typed name is signed in with, whether or not there is such a user. */
  async providerOf(typed: string, clientTenantId: string | null): Promise<TenantProvider | null> {
    return providerOf(this.#parts, await typedName(this.#parts.clients, typed), clientTenantId);
  }

  /** The provider without which a user does not sign in; null: the user may have a password. */
  async replacesPassword(user: Pick<Credential, 'tenantId' | 'userId' | 'username'>): Promise<TenantProvider | null> {
    const provider = await providerOfUser(this.#parts, user);
    return !provider || provider.meta.passwordSignIn || (await this.mayBreakGlass(user)) ? null : provider;
  }

  /** True when a provider of the domain forbids passwords for all but administrators of access. */
  async isOnlyWay(tenantId: string, username: string): Promise<boolean> {
    return (await providerOfUser(this.#parts, { tenantId, username }))?.meta.passwordSignIn === false;
  }

  /** True when the user may sign in although the provider is unusable. */
  async mayBreakGlass(user: UserKey): Promise<boolean> {
    return (await this.#parts.systemPermissions(user)).includes(BREAKS_GLASS);
  }

  /** The interaction that a sign-in comes back to on its own way; null: none is on its way. */
  async interactionOf(state: string, path: string): Promise<string | null> {
    const found = STATE.test(state) ? await this.#parts.store.artifacts.find(MODEL, 'id', keyOf(state)) : null;
    if (!found || found.consumedAt !== null) return null;
    const { uid, callback } = waitingOf(found.payload);
    return callback === path ? uid : null;
  }

  /** The authorization URL for the browser; null: the provider is unusable, which is logged. */
  async depart(provider: TenantProvider, departure: Departure): Promise<URL | null> {
    const { tenantId, meta } = provider;
    const { uid, maxAge, baseUrl, again, address } = departure;
    const expected: Expected = { state: random(), nonce: random(), verifier: random() };
    const callback = await callbackPath(this.#parts.clients, { tenantId, apiName: meta.apiName });
    let url: URL;
    try {
      url = await this.#parts.openid.authorizationUrl(meta, {
        ...expected,
        redirectUri: baseUrl + callback,
        loginHint: departure.loginHint,
        maxAge,
        again,
        acr: departure.secondFactor ? MULTI_FACTOR_ACR : null,
      });
    } catch (error) {
      this.#failed(provider, error);
      return null;
    }
    const { apiName, issuer, clientId } = meta;
    const payload: Waiting = {
      ...expected,
      uid,
      tenantId,
      apiName,
      issuer,
      clientId,
      callback,
      startedAt: nowSeconds(),
      maxAge: again ? 0 : maxAge,
    };
    await this.#parts.store.artifacts.save(
      {
        model: MODEL,
        id: keyOf(expected.state),
        payload,
        grantId: null,
        accountId: null,
        uid: null,
        userCode: null,
        signIn: null,
        network: networkOf(address),
      },
      STATE_SECONDS,
      { replace: false },
    );
    return url;
  }

  /** The person who returns to an interaction. `answer`: the query of the provider's redirect. */
  async arrive({ uid, baseUrl, answer }: { uid: string; baseUrl: string; answer: URLSearchParams }): Promise<Return> {
    const expired: Return = { refused: 'SINGLE_SIGN_ON_EXPIRED', provider: null, userId: null, username: null };
    const waiting = await this.#take(uid, answer.get('state') ?? '');
    if (!waiting) return expired;
    const { tenantId, apiName, issuer, clientId } = waiting;
    const providers = await this.#parts.clients.identityProviders(tenantId);
    const meta = providers.find((one) => one.apiName === apiName);
    // The configuration names another one by now.
    if (!meta?.active || meta.issuer !== issuer || meta.clientId !== clientId) return expired;
    const provider = { tenantId, meta };
    const refused = (code: Extract<Return, { refused: string }>['refused']): Return => ({
      refused: code,
      provider,
      userId: null,
      username: null,
    });
    let claims: Claims;
    try {
      claims = await this.#parts.openid.redeem(meta, await this.#parts.secrets.of({ tenantId, ...meta }), {
        answer: new URL(`${baseUrl}${waiting.callback}?${answer}`),
        expected: waiting,
        needed: meta.usernameClaim,
      });
    } catch (error) {
      this.#failed(provider, error);
      const answered = error instanceof ProviderError ? error.answered : null;
      return refused(
        answered !== null && CANCELLED.has(answered) ? 'SINGLE_SIGN_ON_CANCELLED' : 'SINGLE_SIGN_ON_FAILED',
      );
    }
    const { maxAge, startedAt } = waiting;
    if (maxAge !== null && (claims.authTime ?? 0) < startedAt - maxAge - CLOCK_TOLERANCE_SECONDS) {
      this.#parts.providerFailed(provider, 'it does not say that the person has signed in recently');
      return refused('SINGLE_SIGN_ON_FAILED');
    }
    const person = await userOf(this.#parts, provider, claims);
    if ('suspended' in person) return { suspended: tenantId };
    if ('refused' in person) return { ...person, provider };
    const isMultiFactor = claims.amr.includes('mfa') || claims.acr === MULTI_FACTOR_ACR;
    return {
      credential: person.credential,
      amr: isMultiFactor ? [...FEDERATED_AMR, 'mfa'] : FEDERATED_AMR,
      authTime: claims.authTime === null ? null : Math.min(claims.authTime, nowSeconds()),
    };
  }

  /** The sign-in of this interaction that waits for the state, used up; of several answers at once one gets it. */
  async #take(uid: string, state: string): Promise<Waiting | null> {
    if (!STATE.test(state)) return null;
    const { artifacts } = this.#parts.store;
    const found = await artifacts.find(MODEL, 'id', keyOf(state));
    if (!found || found.consumedAt !== null) return null;
    const waiting = waitingOf(found.payload);
    return waiting.uid === uid && (await artifacts.consume(MODEL, keyOf(state))) ? waiting : null;
  }

  #failed(provider: TenantProvider, error: unknown): void {
    if (!(error instanceof ProviderError)) throw error;
    this.#parts.providerFailed(provider, error.message);
  }
}
