/** The identity of the user: scopes of OpenID Connect, their claims in the ID token, and the userinfo endpoint. */
import assert from 'node:assert/strict';
import * as oauth from 'openid-client';
import { call } from '../../../contracts/call.ts';
import { authorize, authorizeUrl, Browser, claims, pkce, post, type TokenAnswer } from './browser.ts';
import { type AuthHarness, DEMO, externalClient, PASSWORD, SAM, startAuth } from './harness.ts';

const HOME = 'https://portal.example/callback';
const ORIGIN = 'https://portal.example';
const ABOUT_SAM = {
  sub: SAM,
  tenant_id: DEMO,
  name: 'Sam Keller',
  preferred_username: 'sam@demo.example',
  locale: 'de',
  zoneinfo: 'Europe/Berlin',
  updated_at: 1_767_225_600,
  email: 'sam@demo.example',
  email_verified: true,
};

describe('OpenID Connect', () => {
  let auth: AuthHarness;
  before(async () => {
    auth = await startAuth();
    auth.clients['Portal'] = externalClient({
      apiName: 'Portal',
      redirectUris: [HOME],
      scopes: ['openid', 'profile', 'email', 'setup:read', 'data:read', 'offline_access'],
      origins: [ORIGIN],
    });
    auth.clients['Plain'] = externalClient({ apiName: 'Plain', redirectUris: [HOME], scopes: ['data:read'] });
    await auth.bump();
  });
  after(() => auth.stop());

  async function signIn(scope: string, more: Record<string, string> = {}): Promise<TokenAnswer> {
    const { verifier, challenge } = pkce();
    const { resource, client_id = 'demo-Portal' } = more;
    const url = authorizeUrl(auth.baseUrl, challenge, { client_id, redirect_uri: HOME, scope, ...more });
    const back = await authorize(new Browser(), url);
    if (back.searchParams.get('error')) return Object.fromEntries(back.searchParams);
    const code = back.searchParams.get('code') ?? '';
    const { body } = await post(`${auth.baseUrl}/oauth2/token`, {
      grant_type: 'authorization_code',
      client_id,
      redirect_uri: HOME,
      code,
      code_verifier: verifier,
      ...(resource === undefined ? {} : { resource }),
    });
    return body;
  }
  const renew = async (refresh_token: string, more: Record<string, string> = {}): Promise<TokenAnswer> =>
    (
      await post(`${auth.baseUrl}/oauth2/token`, {
        grant_type: 'refresh_token',
        client_id: 'demo-Portal',
        refresh_token,
        ...more,
      })
    ).body;
  async function userinfo(token: string | null, init: RequestInit = {}, query = '') {
    const response = await fetch(`${auth.baseUrl}/oauth2/userinfo${query}`, {
      ...init,
      headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...init.headers },
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text ? JSON.parse(text) : null };
  }
  const idTokenOf = ({ id_token }: TokenAnswer): Record<string, unknown> => {
    const {
      iss: _i,
      aud: _a,
      exp: _e,
      iat: _t,
      nonce: _n,
      sid: _s,
      at_hash: _h,
      acr: _c,
      amr: _m,
      ...rest
    } = claims(id_token);
    const { auth_time: _time, ...about } = rest;
    return about;
  };

  it('works as a login with a library without knowledge of the platform', async () => {
    const server = await oauth.discovery(
      new URL(auth.baseUrl),
      'demo-Portal',
      { id_token_signed_response_alg: 'ES256' },
      oauth.None(),
      {
        execute: [oauth.allowInsecureRequests],
      },
    );
    assert.equal(server.serverMetadata().userinfo_endpoint, `${auth.baseUrl}/oauth2/userinfo`);
    for (const scope of ['openid', 'profile', 'email'])
      assert.ok(server.serverMetadata().scopes_supported!.includes(scope), scope);
    for (const claim of Object.keys(ABOUT_SAM))
      assert.ok(server.serverMetadata().claims_supported!.includes(claim), claim);
    const pkceCodeVerifier = oauth.randomPKCECodeVerifier();
    const [expectedState, expectedNonce] = [oauth.randomState(), oauth.randomNonce()];
    const url = oauth.buildAuthorizationUrl(server, {
      redirect_uri: HOME,
      scope: 'openid profile email',
      state: expectedState,
      nonce: expectedNonce,
      code_challenge: await oauth.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
    });
    const back = await authorize(new Browser(), url);
    const answer = await oauth.authorizationCodeGrant(server, back, { pkceCodeVerifier, expectedState, expectedNonce });
    assert.deepEqual(await oauth.fetchUserInfo(server, answer.access_token, answer.claims()!.sub), ABOUT_SAM);
    assert.deepEqual(idTokenOf(answer), ABOUT_SAM);
  });

  it('discloses only the scopes that the user granted', async () => {
    const { sub, tenant_id, email, email_verified, ...profile } = ABOUT_SAM;
    for (const [scope, about] of [
      ['openid', { sub, tenant_id }],
      ['openid profile', { sub, tenant_id, ...profile }],
      ['openid email', { sub, tenant_id, email, email_verified }],
    ] as const) {
      const answer = await signIn(scope);
      assert.equal(answer.scope, scope);
      assert.deepEqual(idTokenOf(answer), about);
      assert.deepEqual((await userinfo(answer.access_token)).body, about);
    }
  });

  it('issues a token for the userinfo endpoint alone, unless the API is requested', async () => {
    const alone = claims((await signIn('openid profile offline_access')).access_token);
    assert.equal(alone.aud, `${auth.baseUrl}/oauth2/userinfo`);
    assert.equal(alone.scope, 'openid profile offline_access');
    for (const more of [{}, { resource: `${auth.baseUrl}/mcp` }]) {
      const answer = await signIn('openid profile setup:read', more);
      assert.equal(claims(answer.access_token).aud, 'resource' in more ? more.resource : `${auth.baseUrl}/api/v1`);
      assert.equal(answer.scope, 'openid profile setup:read');
      assert.equal(claims(answer.access_token).scope, answer.scope);
      assert.equal((await userinfo(answer.access_token)).body.name, 'Sam Keller');
    }
    const asked = await signIn('openid', { resource: `${auth.baseUrl}/api/v1` });
    assert.equal(claims(asked.access_token).aud, `${auth.baseUrl}/api/v1`, 'a client that names the API gets it');
  });

  it('accepts the token only in the header, by GET, HEAD and POST', async () => {
    const { access_token } = await signIn('openid');
    for (const method of ['GET', 'POST']) {
      const { status, headers, body } = await userinfo(access_token, { method });
      assert.deepEqual([status, body.sub, headers.get('cache-control')], [200, SAM, 'no-store']);
    }
    assert.equal((await userinfo(access_token, { method: 'HEAD' })).status, 200);
    const body = new URLSearchParams({ access_token });
    for (const [init, query] of [
      [{ method: 'POST', body }, ''],
      [{}, `?${body}`],
    ] as const) {
      const refused = await userinfo(null, init, query);
      assert.deepEqual([refused.status, refused.body.error], [400, 'invalid_request']);
      assert.match(refused.body.error_description, /Authorization header/);
    }
    const none = await userinfo(null);
    assert.deepEqual([none.status, none.headers.get('www-authenticate')!.includes('error=')], [401, false]);
    for (const token of ['nonsense', `${access_token.slice(0, -8)}AAAAAAAA`, 'x.y.z']) {
      const refused = await userinfo(token);
      assert.deepEqual([refused.status, refused.body.error], [401, 'invalid_token']);
      assert.match(refused.headers.get('www-authenticate')!, /^Bearer .*error="invalid_token"/);
    }
    assert.equal((await userinfo(access_token, { method: 'DELETE' })).status, 404);
  });

  it("is open to scripts of the client's origins", async () => {
    const { access_token } = await signIn('openid');
    const preflight = await userinfo(null, {
      method: 'OPTIONS',
      headers: {
        origin: ORIGIN,
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'authorization',
      },
    });
    assert.equal(preflight.status, 204);
    assert.equal(preflight.headers.get('access-control-allow-headers'), 'authorization');
    const own = await userinfo(access_token, { headers: { origin: ORIGIN } });
    assert.deepEqual([own.status, own.headers.get('access-control-allow-origin')], [200, ORIGIN]);
    const foreign = await userinfo(access_token, { headers: { origin: 'https://evil.example' } });
    assert.deepEqual([foreign.status, foreign.headers.get('access-control-allow-origin')], [400, null]);
    assert.equal(foreign.body.sub, undefined);
  });

  it('requires openid, and scopes that the client declares', async () => {
    const { access_token } = await signIn('data:read');
    const without = await userinfo(access_token);
    assert.deepEqual([without.status, without.body.error], [403, 'insufficient_scope']);
    assert.equal((await signIn('profile data:read')).error, 'invalid_scope');
    for (const scope of ['openid profile', 'openid email data:read']) {
      const answer = await signIn(scope, { client_id: 'demo-Plain' });
      assert.equal(answer.error, 'invalid_scope');
    }
    assert.equal((await signIn('openid data:read', { client_id: 'demo-Plain' })).scope, 'openid data:read');
  });

  it("follows refreshed tokens and the client's current scopes", async () => {
    const first = await signIn('openid profile email data:read offline_access');
    const second = await renew(first.refresh_token);
    assert.deepEqual((await userinfo(second.access_token)).body, ABOUT_SAM);
    assert.deepEqual(idTokenOf(second), ABOUT_SAM);
    const narrow = await renew(second.refresh_token, { scope: 'openid data:read' });
    assert.equal(narrow.scope, 'openid data:read');
    assert.deepEqual(Object.keys((await userinfo(narrow.access_token)).body).sort(), ['sub', 'tenant_id']);
    const declared = auth.clients['Portal']!;
    auth.clients['Portal'] = { ...declared, scopes: declared.scopes.filter((scope) => scope !== 'email') };
    await auth.bump();
    const third = await renew(narrow.refresh_token);
    const { email: _, email_verified: __, ...rest } = ABOUT_SAM;
    assert.deepEqual(idTokenOf(third), rest);
    assert.deepEqual((await userinfo(third.access_token)).body, rest);
    auth.clients['Portal'] = declared;
    await auth.bump();
  });

  it('reports an address as verified when its domain is', async () => {
    await call(auth.broker, 'auth.domains.remove', { tenantId: DEMO, domain: 'demo.example' });
    const browser = new Browser();
    try {
      const { verifier, challenge } = pkce();
      const url = authorizeUrl(auth.baseUrl, challenge, {
        client_id: 'demo-Portal',
        redirect_uri: HOME,
        scope: 'openid email',
      });
      const back = await authorize(browser, url, 'demo\\sam@demo.example', PASSWORD);
      const { body } = await post(`${auth.baseUrl}/oauth2/token`, {
        grant_type: 'authorization_code',
        client_id: 'demo-Portal',
        redirect_uri: HOME,
        code: back.searchParams.get('code') ?? '',
        code_verifier: verifier,
      });
      assert.equal(idTokenOf(body)['email_verified'], false);
      assert.equal((await userinfo(body.access_token)).body.email_verified, false);
    } finally {
      await call(auth.broker, 'auth.domains.add', { tenantId: DEMO, domain: 'demo.example' });
    }
  });

  it('reports an address that its user has not confirmed as not verified', async () => {
    const addresses = (email: string, pending: string | null) =>
      auth.database.query('UPDATE auth.credentials SET email = $2, pending_email = $3 WHERE user_id = $1', [
        SAM,
        email,
        pending,
      ]);
    await addresses('sam.before@demo.example', 'Sam@demo.example');
    try {
      const tokens = await signIn('openid email');
      assert.equal(idTokenOf(tokens)['email_verified'], false);
      assert.equal((await userinfo(tokens.access_token)).body.email_verified, false);
    } finally {
      await addresses('sam@demo.example', null);
    }
    assert.equal((await userinfo((await signIn('openid email')).access_token)).body.email_verified, true);
  });

  it('ends with the token, for every cause', async () => {
    const refused = async (token: string): Promise<void> => {
      const { status, body } = await userinfo(token);
      assert.deepEqual([status, body.error], [401, 'invalid_token']);
    };
    const revoked = (await signIn('openid')).access_token;
    await post(`${auth.baseUrl}/oauth2/revoke`, { client_id: 'demo-Portal', token: revoked });
    await refused(revoked);

    const { access_token } = await signIn('openid');
    const declared = auth.clients['Portal']!;
    for (const changed of [{ active: false }, { ipRanges: ['192.0.2.0/24'] }]) {
      auth.clients['Portal'] = { ...declared, ...changed };
      await auth.bump();
      await refused(access_token);
      auth.clients['Portal'] = declared;
      await auth.bump();
    }
    auth.suspended.add(DEMO);
    await auth.bump();
    await refused(access_token);
    auth.suspended.delete(DEMO);
    await auth.bump();
    assert.equal((await userinfo(access_token)).status, 200);
    const user = { userId: SAM, username: 'sam@demo.example', email: 'sam@demo.example' };
    await call(auth.broker, 'auth.users.sync', { tenantId: DEMO, users: [{ ...user, active: false }] });
    await refused(access_token);
    await call(auth.broker, 'auth.users.sync', { tenantId: DEMO, users: [{ ...user, active: true }] });
  });
});
