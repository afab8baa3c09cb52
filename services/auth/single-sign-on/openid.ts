/**
 * The platform as a client of OpenID providers: authorization code with PKCE, state and nonce, ID tokens with signatures
 * that are checked. openid-client does the protocol; here it is decided what it may reach, and what is kept of it.
 */
import { LRUCache } from 'lru-cache';
import * as openid from 'openid-client';
import { membersOf } from '../../../lib/json/objects.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { type GuardedFetch, OutboundError } from '../../../mixins/outbound.ts';

/** A provider as configuration names it. */
interface ProviderAddress {
  readonly issuer: string;
  readonly clientId: string;
}

/** Values that the answer to one sign-in must match. */
export interface Expected {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

interface AuthorizationRequest extends Expected {
  readonly redirectUri: string;
  readonly loginHint: string | null;
  /** Seconds that the sign-in at the provider may be old; null: it does not matter. */
  readonly maxAge: number | null;
  /** The person has to prove themselves at the provider again. */
  readonly again: boolean;
  /** The level of assurance that is wanted, where the provider knows it. */
  readonly acr: string | null;
}

/** A provider's claims about a person. */
export interface Claims {
  readonly issuer: string;
  readonly subject: string;
  /** Seconds since 1970; null: it does not say when the person has proved themselves. */
  readonly authTime: number | null;
  readonly amr: readonly string[];
  readonly acr: string | null;
  claim(name: string): unknown;
}

/** The provider did not do its part. The message is for logs: it holds neither tokens nor what a provider wrote. */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';
  /** The error code that the provider sent the person back with; null: something else. */
  readonly answered: string | null;

  constructor(message: string, answered: string | null, cause: unknown) {
    super(message, { cause });
    this.answered = answered;
  }
}

const PROVIDERS_KNOWN = 500;
const METADATA_KEPT_MS = 15 * 60_000;
/** A provider that does not answer is not asked by every sign-in. */
const FAILURE_KEPT_MS = 10_000;
const TIMEOUT_SECONDS = 6;
/**
 * openid-client asks for the keys again, for a key that it does not know, once they are 60 s old. They count as older, so
 * that a provider may replace its keys at any time and is still asked a few times in a minute at most.
 */
const KEYS_AGED_SECONDS = 55;
/** Between the clock of a provider and ours, for `iat`; openid-client allows as much for `exp` and `nbf`. */
const CLOCK_TOLERANCE_SECONDS = 30;
const ID_TOKEN_MAX_AGE_SECONDS = 600;
const SCOPE = 'openid email profile';
const MESSAGE_MAX_CHARS = 200;

type Metadata = Readonly<openid.ServerMetadata>;

export class OpenIdClient {
  readonly #fetch: GuardedFetch;
  readonly #metadata = new LRUCache<string, Promise<Metadata>>({ max: PROVIDERS_KNOWN });
  readonly #keys = new LRUCache<string, openid.ExportedJWKSCache>({ max: PROVIDERS_KNOWN });

  constructor(fetch: GuardedFetch) {
    this.#fetch = fetch;
  }

  /** The provider's discovery document. Throws ProviderError. */
  discover(issuer: string): Promise<Metadata> {
    const known = this.#metadata.get(issuer);
    if (known) return known;
    const asked = this.#discover(issuer);
    this.#metadata.set(issuer, asked, { ttl: METADATA_KEPT_MS });
    asked.catch(() => this.#metadata.set(issuer, asked, { ttl: FAILURE_KEPT_MS }));
    return asked;
  }

  /** The next sign-in reads again what providers say of themselves. */
  forget(): void {
    this.#metadata.clear();
    this.#keys.clear();
  }

  /** The authorization URL for the browser. Throws ProviderError. */
  async authorizationUrl(provider: ProviderAddress, request: AuthorizationRequest): Promise<URL> {
    const metadata = await this.discover(provider.issuer);
    const { maxAge, again, acr, loginHint } = request;
    const knowsAcr = acr !== null && listed(metadata['acr_values_supported']).includes(acr);
    return openid.buildAuthorizationUrl(this.#configuration(provider, metadata, null), {
      redirect_uri: request.redirectUri,
      scope: SCOPE,
      state: request.state,
      nonce: request.nonce,
      code_challenge: await openid.calculatePKCECodeChallenge(request.verifier),
      code_challenge_method: 'S256',
      ...(loginHint === null ? {} : { login_hint: loginHint }),
      ...(maxAge === null ? {} : { max_age: String(maxAge) }),
      ...(again ? { prompt: 'login' } : {}),
      ...(knowsAcr ? { acr_values: acr } : {}),
    });
  }

  /**
   * The person behind an answer. `answer`: the address that the provider sent the browser to; `needed`: the claim that must be
   * there, from the ID token or else from the userinfo endpoint. Throws ProviderError.
   */
  async redeem(
    provider: ProviderAddress,
    secret: string | null,
    { answer, expected, needed }: { answer: URL; expected: Expected; needed: string },
  ): Promise<Claims> {
    const metadata = await this.discover(provider.issuer);
    const configuration = this.#configuration(provider, metadata, secret);
    try {
      const tokens = await openid.authorizationCodeGrant(configuration, answer, {
        expectedState: expected.state,
        expectedNonce: expected.nonce,
        pkceCodeVerifier: expected.verifier,
        idTokenExpected: true,
      });
      const token = tokens.claims();
      if (!token) throw new Error('there is no ID token');
      checkIdToken(token, provider.clientId);
      const info =
        token[needed] === undefined && metadata.userinfo_endpoint !== undefined
          ? await openid.fetchUserInfo(configuration, tokens.access_token, token.sub)
          : {};
      const claims: Record<string, unknown> = { ...info, ...token };
      return {
        issuer: token.iss,
        subject: token.sub,
        authTime: typeof token.auth_time === 'number' ? token.auth_time : null,
        amr: listed(token['amr']),
        acr: typeof token['acr'] === 'string' ? token['acr'] : null,
        claim: (name) => (Object.hasOwn(claims, name) ? claims[name] : undefined),
      };
    } catch (error) {
      throw failure(error);
    } finally {
      const keys = openid.getJwksCache(configuration);
      if (keys && keys.uat !== this.#keys.get(provider.issuer)?.uat)
        this.#keys.set(provider.issuer, { ...keys, uat: keys.uat - KEYS_AGED_SECONDS });
    }
  }

  async #discover(issuer: string): Promise<Metadata> {
    try {
      const configuration = await openid.discovery(new URL(issuer), 'discovery', undefined, openid.None(), {
        timeout: TIMEOUT_SECONDS,
        [openid.customFetch]: this.#fetchFor(issuer),
        ...(isInClear(issuer) ? { execute: [openid.allowInsecureRequests] } : {}),
      });
      const { ...metadata } = configuration.serverMetadata();
      for (const name of ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const) {
        const endpoint = URL.parse(metadata[name] ?? '');
        if (endpoint?.protocol !== 'https:' && !(endpoint?.protocol === 'http:' && isInClear(issuer)))
          throw new Error(`its ${name} is missing, or not https`);
      }
      return metadata;
    } catch (error) {
      throw failure(error);
    }
  }

  #fetchFor(issuer: string): openid.CustomFetch {
    return (address, options) => this.#fetch(address, options, issuer);
  }

  #configuration({ issuer, clientId }: ProviderAddress, metadata: Metadata, secret: string | null) {
    const configuration = new openid.Configuration(metadata, clientId, {}, authentication(metadata, secret));
    configuration.timeout = TIMEOUT_SECONDS;
    configuration[openid.customFetch] = this.#fetchFor(issuer);
    openid.enableNonRepudiationChecks(configuration);
    if (isInClear(issuer)) openid.allowInsecureRequests(configuration);
    const keys = this.#keys.get(issuer);
    if (keys) openid.setJwksCache(configuration, keys);
    return configuration;
  }
}

/** Only on the loopback, as the kind of component and the guard of requests have it. */
const isInClear = (issuer: string): boolean => issuer.startsWith('http:');

const listed = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [];

/** Without a secret PKCE alone protects the code. */
function authentication({ token_endpoint_auth_methods_supported: methods }: Metadata, secret: string | null) {
  if (secret === null) return openid.None();
  const byHeader = methods === undefined || methods.includes('client_secret_basic');
  return byHeader ? openid.ClientSecretBasic(secret) : openid.ClientSecretPost(secret);
}

/**
 * Checks that openid-client leaves out: `azp` of a token for one audience (OpenID Connect Core section 3.1.3.7), and the age of
 * a token, which was made for the code that has just been redeemed.
 */
function checkIdToken({ azp, iat }: { readonly azp?: unknown; readonly iat: number }, clientId: string): void {
  if (azp !== undefined && azp !== clientId) throw new Error('azp of the ID token names another client');
  const age = platformTime() / 1_000 - iat;
  if (age < -CLOCK_TOLERANCE_SECONDS) throw new Error('iat of the ID token is in the future');
  if (age > ID_TOKEN_MAX_AGE_SECONDS) throw new Error(`the ID token is older than ${ID_TOKEN_MAX_AGE_SECONDS} s (iat)`);
}

const ERROR_CODE = /^[a-z_]{1,60}$/;

function failure(error: unknown): ProviderError {
  if (error instanceof ProviderError) return error;
  const code = membersOf(error)['error'];
  const known = typeof code === 'string' && ERROR_CODE.test(code) ? code : null;
  if (error instanceof openid.AuthorizationResponseError)
    return new ProviderError(`it answered ${known ?? 'with an error'}`, known ?? 'error', error);
  if (error instanceof openid.ResponseBodyError)
    return new ProviderError(`its token endpoint answered ${known ?? 'with an error'}`, null, error);
  return new ProviderError(reasonOf(error), null, error);
}

/** The messages of the library and of the guard name claims and parameters, and none of their values. */
function reasonOf(error: unknown): string {
  let message = 'it failed';
  for (let one = error, depth = 0; one instanceof Error && depth < 5; one = one.cause, depth++) {
    message = one.message;
    if (one instanceof OutboundError) break;
  }
  return message.slice(0, MESSAGE_MAX_CHARS);
}
