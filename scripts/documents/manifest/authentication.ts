/** How a program gets a token, for itself or for the person in front of it. Source: docs/reference/authentication.md. */
import { CLI_CLIENT_ID } from '../../../contracts/auth.ts';
import { API_PREFIX, apiUrl, protectedResourceUrl } from '../../../lib/addresses.ts';
import { type Operation, SCOPES, waysToScopes } from '../../../lib/operation.ts';

const AUTHORIZATION_SERVER = '{base_url}/.well-known/oauth-authorization-server';
export const API = apiUrl('{base_url}');

const CLI = {
  clientId: CLI_CLIENT_ID,
  redirectUris: ['http://127.0.0.1:{port}/callback', 'http://[::1]:{port}/callback'],
  authentication: 'none',
  note: 'Built in for every tenant, for command lines and programs on the machine of the person. An application has a client of its own: an ExternalClient of the tenant.',
};
const OWN_CLIENT = {
  clientId: '{tenantKey}-{apiName}',
  authentication: 'client_secret_basic',
  note: 'An ExternalClient of the tenant with an integration user: it may do what that user may, as far as its scopes go. An operator makes its secret and shows it once.',
};
const OWN_CLIENT_WITH_KEY = {
  clientId: '{tenantKey}-{apiName}',
  authentication: 'private_key_jwt',
  note: 'As for the way "program", but its component has the public key in `jwks`, so no secret has to be handed over. A client with a key has no secret.',
};
/** There is no refresh token: the same request is sent again. */
const AGAIN =
  'Keep the token, and ask for another when less than a minute is left, not for every request. On 401 of the API ask once more; on `invalid_client` tell a person.';
const TOKENS = { access_token: '/access_token', refresh_token: '/refresh_token', expires_in: '/expires_in' };

/**
 * `endpoint` is a member of the metadata; `takes` are its parameters, in the query of a GET and in the form of a POST,
 * like `headers`, where `{name}` is a value that is given before or made by the program; `gives` says where values stand in the answer.
 */
const WAYS = [
  {
    id: 'person',
    grantType: 'authorization_code',
    whenToUse: 'A person with a browser is there.',
    client: CLI,
    steps: [
      {
        endpoint: 'authorization_endpoint',
        method: 'GET',
        note: 'Open it in the browser of the person, who signs in and agrees, and receive the redirect. PKCE: code_challenge is the base64url SHA-256 of code_verifier.',
        takes: {
          response_type: 'code',
          client_id: '{clientId}',
          redirect_uri: '{redirectUri}',
          scope: '{scope}',
          state: '{state}',
          code_challenge: '{codeChallenge}',
          code_challenge_method: 'S256',
        },
        gives: { code: 'query:code', state: 'query:state' },
      },
      {
        endpoint: 'token_endpoint',
        method: 'POST',
        takes: {
          grant_type: 'authorization_code',
          client_id: '{clientId}',
          redirect_uri: '{redirectUri}',
          code: '{code}',
          code_verifier: '{codeVerifier}',
        },
        gives: TOKENS,
      },
    ],
  },
  {
    id: 'device',
    grantType: 'urn:ietf:params:oauth:grant-type:device_code',
    whenToUse: 'A person is there, but no browser on this machine.',
    client: CLI,
    steps: [
      {
        endpoint: 'device_authorization_endpoint',
        method: 'POST',
        note: 'Show the person the address and the code.',
        takes: { client_id: '{clientId}', scope: '{scope}' },
        gives: {
          device_code: '/device_code',
          user_code: '/user_code',
          verification_uri: '/verification_uri',
          interval: '/interval',
        },
      },
      {
        endpoint: 'token_endpoint',
        method: 'POST',
        note: 'Every `interval` seconds, as long as the answer is the error authorization_pending; slow_down adds five seconds.',
        takes: {
          grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
          client_id: '{clientId}',
          device_code: '{device_code}',
        },
        gives: TOKENS,
      },
    ],
  },
  {
    id: 'program',
    grantType: 'client_credentials',
    whenToUse: 'No person is there: a program acts as the integration user of its client.',
    client: OWN_CLIENT,
    steps: [
      {
        endpoint: 'token_endpoint',
        method: 'POST',
        note: `clientCredentials is the Base64 of the client id, a colon and the secret. ${AGAIN}`,
        headers: { Authorization: 'Basic {clientCredentials}' },
        takes: { grant_type: 'client_credentials', scope: '{scope}' },
        gives: { access_token: '/access_token', expires_in: '/expires_in' },
      },
    ],
  },
  {
    id: 'program-with-key',
    grantType: 'client_credentials',
    whenToUse: 'As "program", where no secret is to travel or no operator is to be asked.',
    client: OWN_CLIENT_WITH_KEY,
    steps: [
      {
        endpoint: 'token_endpoint',
        method: 'POST',
        note: `clientAssertion is a JWT (RFC 7523), signed with the private key and its \`kid\`: \`iss\` and \`sub\` are the client id, \`aud\` is the \`issuer\` of the metadata, \`iat\` now, \`exp\` a minute later, \`jti\` new every time. ${AGAIN}`,
        takes: {
          grant_type: 'client_credentials',
          scope: '{scope}',
          client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
          client_assertion: '{clientAssertion}',
        },
        gives: { access_token: '/access_token', expires_in: '/expires_in' },
      },
    ],
  },
  {
    id: 'renewal',
    grantType: 'refresh_token',
    whenToUse: 'The access token has expired, and the person agreed to the scope offline_access.',
    client: CLI,
    steps: [
      {
        endpoint: 'token_endpoint',
        method: 'POST',
        note: 'A refresh token is good for one use; the answer has the next one.',
        takes: { grant_type: 'refresh_token', client_id: '{clientId}', refresh_token: '{refresh_token}' },
        gives: TOKENS,
      },
    ],
  },
] as const;

/** The section `auth` of the manifest. */
export const authentication = (operations: readonly Operation[]): object => ({
  scheme: 'oauth2',
  metadataUrl: AUTHORIZATION_SERVER,
  protectedResourceMetadataUrl: protectedResourceUrl('{base_url}', API_PREFIX),
  resource: API,
  header: { name: 'Authorization', value: 'Bearer {access_token}' },
  ways: WAYS,
  scopes: Object.entries(SCOPES).map(([scope, description]) => ({
    scope,
    description,
    operations: operations
      .filter((row) => waysToScopes(row).some((way) => way.some((one) => one === scope)))
      .map(({ operationId }) => operationId),
  })),
});
