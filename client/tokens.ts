/**
 * Access tokens by OAuth 2.0 (docs/reference/authentication.md). They stay in memory: neither scripts of other pages nor a
 * later visitor of the same browser find them.
 */
import { NetworkError, SignInError } from './errors.ts';
import type { TokenSource } from './http.ts';

export interface Server {
  /** Address of the platform. */
  readonly baseUrl: string;
  readonly clientId: string;
  /** Separated by blanks, such as `data:read data:write`. */
  readonly scope: string;
}

export interface Tokens {
  accessToken: string;
  refreshToken: string | undefined;
  /** Milliseconds since 1970. */
  expiresAt: number;
}

interface TokenAnswer {
  access_token?: string;
  refresh_token?: string;
  expires_in?: number;
  error?: string;
  error_description?: string;
}

/** A token is renewed that much before its end. */
const SPARE_MS = 30_000;

/** Tokens of a program that works for itself: client credentials. Only where the secret stays confidential. */
export function clientCredentials(options: Server & { readonly clientSecret: string }): TokenSource {
  const next = () =>
    tokenOf(
      options,
      { grant_type: 'client_credentials', scope: options.scope },
      basic(options.clientId, options.clientSecret),
    );
  return renewed(null, next);
}

/** Tokens of a person who has signed in elsewhere, by a refresh token. `onRefreshed` is given each next one, to store it. */
export function refreshing(
  options: Server & {
    readonly refreshToken: string;
    readonly onRefreshed?: (refreshToken: string) => void | Promise<void>;
  },
): TokenSource {
  return renewed(null, async (last = options.refreshToken) => {
    const tokens = await refresh(options, last);
    if (tokens.refreshToken) await options.onRefreshed?.(tokens.refreshToken);
    return tokens;
  });
}

/** Gives the token while it is good; calls that come together share one renewal. */
export function renewed(
  first: Tokens | null,
  next: (refreshToken: string | undefined) => Promise<Tokens>,
): TokenSource {
  let tokens = first;
  let renewal: Promise<Tokens> | undefined;
  return async (renew) => {
    if (tokens && !renew && tokens.expiresAt - SPARE_MS > Date.now()) return tokens.accessToken;
    renewal ??= next(tokens?.refreshToken).finally(() => {
      renewal = undefined;
    });
    tokens = await renewal;
    return tokens.accessToken;
  };
}

export const refresh = (server: Server, refreshToken: string): Promise<Tokens> =>
  tokenOf(server, { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: server.clientId });

export async function tokenOf(
  server: Server,
  parameters: Record<string, string>,
  headers: Record<string, string> = {},
): Promise<Tokens> {
  const url = new URL(`${base(server)}/oauth2/token`);
  const response = await fetch(url, { method: 'POST', body: new URLSearchParams(parameters), headers }).catch(
    (cause) => {
      throw new NetworkError(`${url.origin} gave no answer.`, { cause });
    },
  );
  // RFC 6749 sections 5.1 and 5.2; what is no JSON has none of it.
  const answer = (await response.json().catch(() => ({}))) as TokenAnswer;
  if (!response.ok || typeof answer.access_token !== 'string')
    throw new SignInError(answer.error ?? 'server_error', answer.error_description ?? `Status ${response.status}.`);
  return {
    accessToken: answer.access_token,
    refreshToken: answer.refresh_token,
    expiresAt: Date.now() + (answer.expires_in ?? 0) * 1_000,
  };
}

/** The address without a slash at its end, which is the issuer as well. */
export const base = ({ baseUrl }: Server): string => baseUrl.replace(/\/+$/, '');

/** RFC 6749 section 2.3.1: both are encoded like a form first. */
const basic = (id: string, secret: string): Record<string, string> => ({
  authorization: `Basic ${btoa(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`)}`,
});
