/** Where the endpoints of the authorization server stand, and what its tokens are for. */

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
} as const;

/** The resource that access tokens are for. */
export const apiResource = (issuer: string): string => `${issuer}/api/v1`;
