/** OAuth 2.0 against the platform: sign-in in a browser or with a device code, refresh, revocation. */
import * as oauth from 'openid-client';
import { CLI_CLIENT_ID } from '../../contracts/auth.ts';
import { EXIT, Failure, signInNeeded } from '../failure.ts';
import { boundedBody } from '../http/transport.ts';
import type { Credentials } from './store.ts';

const TIMEOUT_SECONDS = 20;

/** The authorization server of a platform. */
export async function discover(baseUrl: string): Promise<oauth.Configuration> {
  const server = await found(baseUrl);
  refuseForeign(server, new URL(baseUrl).origin);
  return server;
}

/**
 * Everything about the sign-in belongs to the platform itself: what is opened in a browser, and where tokens are sent.
 * An address of another kind, such as file:, would be opened by another program.
 */
function refuseForeign(server: oauth.Configuration, origin: string): void {
  for (const [name, value] of Object.entries(server.serverMetadata()))
    if (name.endsWith('_endpoint') && !(typeof value === 'string' && isOf(origin, value)))
      throw new Failure(
        'CLIENT_PROTOCOL',
        EXIT.error,
        `The ${name} that ${origin} names is not an address of its own.`,
      );
}

const isOf = (origin: string, address: string): boolean => URL.canParse(address) && new URL(address).origin === origin;

async function found(baseUrl: string): Promise<oauth.Configuration> {
  try {
    return await oauth.discovery(new URL(baseUrl), CLI_CLIENT_ID, undefined, oauth.None(), {
      algorithm: 'oauth2',
      timeout: TIMEOUT_SECONDS,
      [oauth.customFetch]: async (url, { body, ...options }) => {
        const response = await fetch(url, { ...options, ...(body === undefined ? {} : { body }) });
        const { status, statusText, headers } = response;
        return new Response(boundedBody(response, new URL(url)), { status, statusText, headers });
      },
      // parseBaseUrl lets plain http through for this machine alone.
      ...(baseUrl.startsWith('http:') ? { execute: [oauth.allowInsecureRequests] } : {}),
    });
  } catch (error) {
    const name = otherName(error);
    if (name !== null)
      throw new Failure('CLIENT_BASE_URL', EXIT.error, `The platform at ${baseUrl} calls itself ${name}.`, {
        cause: error,
        hint: `If you trust that address: --base-url ${name}`,
      });
    throw new Failure('CLIENT_NETWORK', EXIT.error, `No platform answers at ${baseUrl}.`, {
      cause: error,
      hint: 'Is the address right, and is the platform running?',
    });
  }
}

/**
 * The address by which an authorization server goes, where that is not the one it was asked at: tokens that it gives are
 * for that address alone (RFC 8414, section 3.3). Null: the discovery has failed otherwise.
 */
function otherName(error: unknown): string | null {
  if (!(error instanceof oauth.ClientError && error.code === 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED')) return null;
  const { cause } = error;
  if (typeof cause !== 'object' || cause === null || !('body' in cause)) return null;
  const { body } = cause;
  if (typeof body !== 'object' || body === null || !('issuer' in body)) return null;
  const { issuer } = body;
  return typeof issuer === 'string' && URL.canParse(issuer) ? new URL(issuer).href.replace(/\/$/, '') : null;
}

/** The token endpoint's answer, as stored. */
export function credentialsOf(
  answer: oauth.TokenEndpointResponse & oauth.TokenEndpointResponseHelpers,
  before?: Credentials,
): Credentials {
  return {
    accessToken: answer.access_token,
    refreshToken: answer.refresh_token ?? before?.refreshToken ?? null,
    expiresAt: Math.floor(Date.now() / 1000) + (answer.expiresIn() ?? 300),
    scopes: answer.scope?.split(' ') ?? before?.scopes ?? [],
  };
}

/** New tokens for used ones. */
export async function refresh(baseUrl: string, found: Credentials, login: string): Promise<Credentials> {
  const server = await discover(baseUrl);
  try {
    return credentialsOf(await oauth.refreshTokenGrant(server, found.refreshToken ?? ''), found);
  } catch (error) {
    if (error instanceof oauth.ResponseBodyError && error.error === 'invalid_grant')
      throw signInNeeded('The sign-in has ended: it was revoked, or not used for too long.', login);
    throw signInFailed(error);
  }
}

/** Ends a grant at the platform. */
export async function revoke(baseUrl: string, credentials: Credentials): Promise<void> {
  const server = await discover(baseUrl);
  try {
    await oauth.tokenRevocation(server, credentials.refreshToken ?? credentials.accessToken);
  } catch (error) {
    throw signInFailed(error);
  }
}

/** A failure of the authorization server in words; never with what was sent, which is secret. */
export function signInFailed(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof oauth.ResponseBodyError || error instanceof oauth.AuthorizationResponseError)
    return new Failure('CLIENT_SIGN_IN', EXIT.authentication, error.error_description ?? error.error, { cause: error });
  return new Failure('CLIENT_SIGN_IN', EXIT.error, 'The sign-in failed: the platform gave no valid answer.', {
    cause: error,
  });
}
