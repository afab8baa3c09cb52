/** Paths of the authorization server's endpoints, and the audiences of its tokens. */
import { MCP_PATH } from '../../../contracts/mcp.ts';
import { apiUrl } from '../../../lib/addresses.ts';
import { TOKEN_RESOURCES, type TokenResource } from '../../../lib/schema/snapshot.ts';

export const PATHS = {
  authorization: '/oauth2/authorize',
  token: '/oauth2/token',
  device_authorization: '/oauth2/device_authorization',
  code_verification: '/device',
  pushed_authorization_request: '/oauth2/par',
  revocation: '/oauth2/revoke',
  introspection: '/oauth2/introspect',
  jwks: '/oauth2/jwks',
  registration: '/oauth2/register',
  end_session: '/oauth2/logout',
  userinfo: '/oauth2/userinfo',
} as const;

export const INTERACTION_ROOT = '/oauth2/interaction/';

/** The pages of a sign-in under way. */
export const interactionPath = (uid: string): string => `${INTERACTION_ROOT}${uid}`;

/** The resource that access tokens are for, unless the client names another one. */
export const apiResource = apiUrl;

/** The endpoint for assistants, which has tokens of its own (RFC 8707). */
export const mcpResource = (issuer: string): string => issuer + MCP_PATH;

/** Audience of tokens with scopes of OpenID Connect alone: the identity of the user. */
export const userinfoResource = (issuer: string): string => issuer + PATHS.userinfo;

export const addressOf = (issuer: string, resource: TokenResource): string =>
  resource === 'api' ? apiResource(issuer) : mcpResource(issuer);

/** The resource at an address; null: there is none. */
export const resourceAt = (issuer: string, address: string): TokenResource | null =>
  TOKEN_RESOURCES.find((resource) => addressOf(issuer, resource) === address) ?? null;
