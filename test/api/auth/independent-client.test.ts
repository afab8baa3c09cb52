/** The same flows through a client library without knowledge of the platform, by discovery alone. */
import assert from 'node:assert/strict';
import * as oauth from 'openid-client';
import { authorize, Browser, claims, REDIRECT } from './browser.ts';
import { type AuthHarness, SAM, startAuth } from './harness.ts';

describe('an independent client library (openid-client)', () => {
  let auth: AuthHarness;
  let client: oauth.Configuration;
  before(async () => {
    auth = await startAuth();
    client = await oauth.discovery(new URL(auth.baseUrl), 'erp-cli', undefined, oauth.None(), {
      algorithm: 'oauth2',
      execute: [oauth.allowInsecureRequests],
    });
  });
  after(() => auth.stop());

  it('discovers everything that is offered, and nothing else', () => {
    const server = client.serverMetadata();
    const base = auth.baseUrl;
    assert.equal(server.issuer, base);
    assert.equal(server.authorization_endpoint, `${base}/oauth2/authorize`);
    assert.equal(server.token_endpoint, `${base}/oauth2/token`);
    assert.equal(server.device_authorization_endpoint, `${base}/oauth2/device_authorization`);
    assert.equal(server.pushed_authorization_request_endpoint, `${base}/oauth2/par`);
    assert.equal(server.revocation_endpoint, `${base}/oauth2/revoke`);
    assert.equal(server.introspection_endpoint, `${base}/oauth2/introspect`);
    assert.equal(server.jwks_uri, `${base}/oauth2/jwks`);
    assert.equal(server.registration_endpoint, undefined);
    // Only the account page signs users in without a token: `none`.
    assert.deepEqual(server.response_types_supported, ['code', 'none']);
    assert.deepEqual(server.code_challenge_methods_supported, ['S256']);
    assert.deepEqual([...server.grant_types_supported!].sort(), [
      'authorization_code',
      'client_credentials',
      'refresh_token',
      'urn:ietf:params:oauth:grant-type:device_code',
    ]);
    assert.deepEqual([...server.token_endpoint_auth_methods_supported!].sort(), [
      'client_secret_basic',
      'none',
      'private_key_jwt',
    ]);
    assert.equal(server.authorization_response_iss_parameter_supported, true);
    assert.ok(server.scopes_supported!.includes('data:read'));
  });

  it('finds the authorization server from the protected resource (RFC 9728)', async () => {
    const response = await fetch(`${auth.baseUrl}/.well-known/oauth-protected-resource/api/v1`);
    assert.equal(response.headers.get('content-type'), 'application/json');
    const resource = (await response.json()) as Record<string, unknown>;
    assert.equal(resource['resource'], `${auth.baseUrl}/api/v1`);
    assert.deepEqual(resource['authorization_servers'], [auth.baseUrl]);
    assert.deepEqual(resource['bearer_methods_supported'], ['header']);
  });

  it('signs a user in, renews, introspects and revokes', async () => {
    const pkceCodeVerifier = oauth.randomPKCECodeVerifier();
    const expectedState = oauth.randomState();
    const url = oauth.buildAuthorizationUrl(client, {
      redirect_uri: REDIRECT,
      scope: 'data:read data:write offline_access',
      code_challenge: await oauth.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
      state: expectedState,
    });
    const back = await authorize(new Browser(), url);
    const answer = await oauth.authorizationCodeGrant(client, back, { pkceCodeVerifier, expectedState });
    assert.equal(claims(answer.access_token).sub, SAM);
    const renewed = await oauth.refreshTokenGrant(client, answer.refresh_token!);
    const state = await oauth.tokenIntrospection(client, renewed.access_token);
    assert.equal(state.active, true);
    await oauth.tokenRevocation(client, renewed.refresh_token!);
    await assert.rejects(oauth.refreshTokenGrant(client, renewed.refresh_token!), { error: 'invalid_grant' });
    assert.equal((await oauth.tokenIntrospection(client, renewed.access_token)).active, false);
  });

  it('gets a verified ID token when it requests openid', async () => {
    const oidc = await oauth.discovery(
      new URL(auth.baseUrl),
      'erp-cli',
      { id_token_signed_response_alg: 'ES256' },
      oauth.None(),
      {
        execute: [oauth.allowInsecureRequests],
      },
    );
    const pkceCodeVerifier = oauth.randomPKCECodeVerifier();
    const expectedNonce = oauth.randomNonce();
    const url = oauth.buildAuthorizationUrl(oidc, {
      redirect_uri: REDIRECT,
      scope: 'openid data:read',
      nonce: expectedNonce,
      code_challenge: await oauth.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
    });
    const back = await authorize(new Browser(), url);
    const answer = await oauth.authorizationCodeGrant(oidc, back, { pkceCodeVerifier, expectedNonce });
    assert.equal(answer.claims()?.sub, SAM);
    assert.equal(claims(answer.access_token).aud, `${auth.baseUrl}/api/v1`);
  });

  it('signs a device in', async () => {
    const device = await oauth.initiateDeviceAuthorization(client, { scope: 'data:read' });
    const browser = new Browser();
    let page = await browser.visit(device.verification_uri_complete!);
    page = await browser.submit(page);
    page = await browser.submit(page);
    page = await browser.submit(page, { username: 'sam@demo.example', password: 'demo-password' });
    page = await browser.submit(page);
    assert.match(page.html, /Your device is connected/);
    const answer = await oauth.pollDeviceAuthorizationGrant(client, { ...device, interval: 0.1 });
    assert.equal(answer.scope, 'data:read');
  });
});
