/** How long tokens, codes, sessions and grants are valid. */

import type { Context, Grant, Token } from 'oidc-provider';
import { platformTime } from '../../../lib/values/clock.ts';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export const LIFETIMES = {
  access_token_seconds: HOUR,
  access_token_agent_seconds: 15 * MINUTE,
  authorization_code_seconds: MINUTE,
  device_code_seconds: 10 * MINUTE,
  pushed_request_seconds: MINUTE,
  refresh_token_idle_seconds: 30 * DAY,
  refresh_token_absolute_seconds: 180 * DAY,
  session_seconds: 12 * HOUR,
  /** Of a browser before sign-in: as long as the request that it came for. */
  session_without_user_seconds: HOUR,
  interaction_seconds: HOUR,
} as const;

/** A grant with less time left is not used for a new authorization: an access token must not outlive its grant. */
export const GRANT_REUSE_MIN_SECONDS = 2 * HOUR;

export const nowSeconds = (): number => Math.floor(platformTime() / 1000);

/** Access tokens of a client are valid as long as its configuration says, at most as long as the platform allows. */
export function accessTokenSeconds(client: Context): number {
  const limit = client.agent ? LIFETIMES.access_token_agent_seconds : LIFETIMES.access_token_seconds;
  return Math.max(MINUTE, Math.min(limit, client.accessTokenSeconds ?? limit));
}

const accessToken = (_ctx: Context, token: Token): number =>
  token.resourceServer?.accessTokenTTL ?? LIFETIMES.access_token_seconds;

/** A grant without a refresh token only has to outlive the sign-in session that renews its access tokens. */
const grant = (_ctx: Context, { openid }: Grant): number =>
  (openid?.scope ?? '').split(' ').includes('offline_access') ? LIFETIMES.refresh_token_absolute_seconds : DAY;

/** Each use makes a refresh token valid for the idle time again, up to the end of its absolute time. */
function refreshToken(_ctx: Context, token: Token): number {
  const end = (token.iiat ?? nowSeconds()) + LIFETIMES.refresh_token_absolute_seconds;
  return Math.max(1, Math.min(LIFETIMES.refresh_token_idle_seconds, end - nowSeconds()));
}

const session = (_ctx: Context, { accountId }: { accountId?: string }): number =>
  accountId === undefined ? LIFETIMES.session_without_user_seconds : LIFETIMES.session_seconds;

/** The provider's `ttl`: a number of seconds, or a function that returns it. */
export const TIMES_TO_LIVE = {
  AccessToken: accessToken,
  ClientCredentials: accessToken,
  AuthorizationCode: LIFETIMES.authorization_code_seconds,
  DeviceCode: LIFETIMES.device_code_seconds,
  IdToken: LIFETIMES.access_token_seconds,
  PushedAuthorizationRequest: LIFETIMES.pushed_request_seconds,
  Interaction: LIFETIMES.interaction_seconds,
  Session: session,
  Grant: grant,
  RefreshToken: refreshToken,
};
