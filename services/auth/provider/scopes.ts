/** Which scopes a client may ask for, and which it gets. */
import { type Context, errors } from 'oidc-provider';
import { MCP_SCOPES } from '../../../contracts/mcp.ts';
import { ALL_SCOPES } from '../clients.ts';

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
    if (scope !== 'openid' && !ALL_SCOPES.includes(scope)) throw new errors.InvalidScope('unknown scope', scope);
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
  scopes.filter((scope) => ASSISTANTS_HAVE.has(scope));
