/** Scopes that a client may request, and those that it gets. */
import { type Context, errors } from 'oidc-provider';
import { MCP_SCOPES } from '../../../contracts/mcp-offers.ts';
import { ALL_SCOPES, IDENTITY_SCOPE_NAMES } from '../clients.ts';
import { type ClientSources, declarationOf, declaredScopes } from './metadata-documents.ts';

/** Routes on which a client asks for scopes; the token endpoint gives what was granted. */
const ROUTES_WITH_SCOPES = new Set(['authorization', 'pushed_authorization_request', 'device_authorization']);

/**
 * The provider drops a scope it does not know. A misspelt one would then give a token that can do less than its owner
 * believes, so it is refused (RFC 6749 section 3.3), and so is a request for none.
 */
export function checkScopes({ oidc }: Context): void {
  const asksForScopes = ROUTES_WITH_SCOPES.has(oidc.route) || oidc.params.grant_type === 'client_credentials';
  if (!asksForScopes) return;
  const scopes: string[] = [...oidc.requestParamScopes];
  if (!scopes.length) throw new errors.InvalidScope('scope is required');
  for (const scope of scopes)
    if (!isIdentityScope(scope) && !ALL_SCOPES.includes(scope)) throw new errors.InvalidScope('unknown scope', scope);
  const identity = scopes.find(isIdentityScope);
  if (identity !== undefined && oidc.params.grant_type === 'client_credentials')
    throw new errors.InvalidScope('the scope is for applications in which people sign in', identity);
  if (identity !== undefined && !scopes.includes('openid'))
    throw new errors.InvalidScope('the scope needs openid besides', identity);
}

/** True for a scope of OpenID Connect, which no operation of the API requires. */
export const isIdentityScope = (scope: string): boolean => IDENTITY_SCOPE_NAMES.includes(scope);

/** True for a request for identity alone: its token cannot be used for the API. */
export function isAboutIdentityAlone({ oidc }: Context): boolean {
  const scopes: string[] = [...oidc.requestParamScopes];
  return scopes.includes('openid') && scopes.every((scope) => isIdentityScope(scope) || scope === 'offline_access');
}

/** Claims that a client may currently receive about its users. */
export async function identityScopesOf(ctx: Context, client: Context, sources: ClientSources): Promise<string[]> {
  const declared = await declarationOf(ctx, client, sources);
  const names = declared === null ? String(client.scope ?? '').split(' ') : declaredScopes(declared);
  return ['openid', ...IDENTITY_SCOPE_NAMES.filter((name) => name !== 'openid' && names.includes(name))];
}

/**
 * The scopes of OpenID Connect that a new access token has. The provider leaves them out of a token for a resource, and
 * its owner would not see what the userinfo endpoint will say.
 */
export async function identityScopesOfToken(ctx: Context, sources: ClientSources): Promise<string[]> {
  const { AuthorizationCode, DeviceCode, Grant, RefreshToken } = ctx.oidc.entities;
  const source = AuthorizationCode ?? DeviceCode ?? RefreshToken;
  if (!source || !Grant) return [];
  const asked = ctx.oidc.params.scope ?? source.scope ?? '';
  const granted = Grant.getOIDCScopeFiltered(new Set(String(asked).split(' '))).split(' ');
  const allowed = await identityScopesOf(ctx, ctx.oidc.client, sources);
  return allowed.filter((scope) => granted.includes(scope));
}

/** The scopes that a client may have today, as one text. */
export const scopesOf = (client: Context): string =>
  String(client.scope)
    .split(' ')
    .filter((scope) => ALL_SCOPES.includes(scope))
    .join(' ');

const ASSISTANTS_HAVE: ReadonlySet<string> = new Set([...MCP_SCOPES, 'offline_access']);

/** Of these scopes those that a token for the endpoint for assistants can have. */
export const forAssistants = (scopes: readonly string[]): string[] =>
  scopes.filter((scope) => ASSISTANTS_HAVE.has(scope) || isIdentityScope(scope));
