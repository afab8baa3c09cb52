import assert from 'node:assert/strict';
import {
  type CryptoKey,
  createLocalJWKSet,
  decodeProtectedHeader,
  exportJWK,
  generateKeyPair,
  jwtVerify,
  SignJWT,
} from 'jose';
import { call } from '../../../contracts/call.ts';
import type { ExternalClientMeta } from '../../../lib/schema/snapshot.ts';
import {
  authorize,
  authorizeUrl,
  Browser,
  claims,
  exchange,
  pkce,
  post,
  REDIRECT,
  type Seen,
  tokens,
} from './browser.ts';
import { ACME, type AuthHarness, DEMO, EVE, externalClient, SAM, startAuth } from './harness.ts';

describe('authorization code flow', () => {
  let auth: AuthHarness;
  before(async () => {
    auth = await startAuth();
  });
  after(() => auth.stop());

  it('issues an access token per RFC 9068 that the published keys verify', async () => {
    const answer = await tokens(auth.baseUrl, { scope: 'data:read data:write' });
    assert.equal(answer.token_type, 'Bearer');
    assert.equal(answer.expires_in, 3600);
    assert.equal(answer.scope, 'data:read data:write');
    assert.equal(answer.refresh_token, undefined, 'without offline_access there is no refresh token');
    const { keys } = await call(auth.broker, 'auth.keys.list', {});
    const { payload } = await jwtVerify(answer.access_token, createLocalJWKSet({ keys: keys as never }), {
      issuer: auth.baseUrl,
      audience: `${auth.baseUrl}/api/v1`,
      typ: 'at+jwt',
    });
    assert.equal(decodeProtectedHeader(answer.access_token).alg, 'ES256');
    assert.deepEqual(Object.keys(payload).sort(), [
      'acr',
      'amr',
      'aud',
      'auth_time',
      'client_id',
      'exp',
      'grant_id',
      'iat',
      'iss',
      'jti',
      'scope',
      'sub',
      'tenant_id',
    ]);
    assert.equal(payload.sub, SAM);
    assert.equal(payload['tenant_id'], DEMO);
    assert.equal(payload['client_id'], 'erp-cli');
    assert.equal(payload['scope'], 'data:read data:write');
    assert.equal(payload.exp! - payload.iat!, 3600);
  });

  it('redirects with state and iss to the requested address and port', async () => {
    const { challenge } = pkce();
    const back = await authorize(
      new Browser(),
      authorizeUrl(auth.baseUrl, challenge, { redirect_uri: 'http://[::1]:50123/callback' }),
    );
    assert.equal(back.origin + back.pathname, 'http://[::1]:50123/callback');
    assert.equal(back.searchParams.get('state'), 'the-state');
    assert.equal(back.searchParams.get('iss'), auth.baseUrl);
  });

  it('refuses a request without PKCE, and with the method plain', async () => {
    for (const more of [{}, { code_challenge: 'x'.repeat(43), code_challenge_method: 'plain' }]) {
      const seen = await new Browser().open(authorizeUrl(auth.baseUrl, null, more));
      assert.equal(seen.location?.searchParams.get('error'), 'invalid_request');
      assert.equal(seen.location?.searchParams.get('code'), null);
    }
  });

  it('never sends anything to a redirect address that is not registered', async () => {
    for (const redirect_uri of [
      'https://evil.example/callback',
      'http://127.0.0.1:4000/other',
      'http://localhost:4000/callback',
      'http://127.0.0.1.evil.example/callback',
      'http://127.0.0.1:4000/callback?x=1',
    ]) {
      const seen = await new Browser().open(authorizeUrl(auth.baseUrl, pkce().challenge, { redirect_uri }));
      assert.equal(seen.status, 400, redirect_uri);
      assert.equal(seen.location, null, redirect_uri);
      assert.match(seen.html, /invalid_redirect_uri/);
    }
  });

  it('refuses implicit, hybrid and password', async () => {
    for (const response_type of ['token', 'id_token', 'code id_token']) {
      const seen = await new Browser().open(
        authorizeUrl(auth.baseUrl, pkce().challenge, { response_type, scope: 'openid data:read', nonce: 'n' }),
      );
      const text = `${seen.location ?? ''} ${seen.html}`;
      assert.match(text, /unsupported_response_type|unauthorized_client|invalid_request/, response_type);
    }
    const { status, body } = await post(`${auth.baseUrl}/oauth2/token`, {
      grant_type: 'password',
      client_id: 'erp-cli',
      username: 'sam@demo.example',
      password: 'demo-password',
    });
    assert.equal(status, 400);
    assert.equal(body.error, 'unsupported_grant_type');
  });

  it('accepts a code once; a second use ends everything issued for it', async () => {
    const { verifier, challenge } = pkce();
    const back = await authorize(new Browser(), authorizeUrl(auth.baseUrl, challenge));
    const code = back.searchParams.get('code')!;
    const first = await exchange(auth.baseUrl, code, verifier);
    assert.equal(first.status, 200);
    const { grant_id } = claims(first.body.access_token);
    const second = await exchange(auth.baseUrl, code, verifier);
    assert.equal(second.status, 400);
    assert.equal(second.body.error, 'invalid_grant');
    assert.ok(auth.revoked.includes(grant_id), 'the grant was broadcast as revoked');
  });

  it('answers a code identically, however many requests send it at once', async () => {
    const { verifier, challenge } = pkce();
    const back = await authorize(new Browser(), authorizeUrl(auth.baseUrl, challenge));
    const code = back.searchParams.get('code')!;
    const answers = await Promise.all(Array.from({ length: 4 }, () => exchange(auth.baseUrl, code, verifier)));
    assert.ok(answers.filter((answer) => answer.status === 200).length <= 1);
    assert.ok(answers.filter((answer) => answer.status === 400).length >= 3);
  });

  it('refuses a code with the wrong verifier, redirect address or client', async () => {
    const { verifier, challenge } = pkce();
    for (const wrong of [
      { code_verifier: pkce().verifier },
      { redirect_uri: 'http://127.0.0.1:1/callback' },
      { client_id: 'demo-nobody' },
    ]) {
      const back = await authorize(new Browser(), authorizeUrl(auth.baseUrl, challenge));
      const { status, body } = await exchange(auth.baseUrl, back.searchParams.get('code')!, verifier, wrong);
      assert.ok(status === 400 || status === 401, JSON.stringify(body));
      assert.equal(body.access_token, undefined);
    }
  });

  it('redirects with access_denied when the user declines', async () => {
    const browser = new Browser();
    const page = await browser.visit(authorizeUrl(auth.baseUrl, pkce().challenge));
    const seen = await browser.submit(page, { decision: 'cancel' });
    assert.equal(seen.location?.searchParams.get('error'), 'access_denied');
    assert.equal(seen.location?.searchParams.get('state'), 'the-state');
  });

  it('accepts the API as resource and nothing else', async () => {
    const answer = await tokens(auth.baseUrl, { resource: `${auth.baseUrl}/api/v1` });
    assert.equal(claims(answer.access_token).aud, `${auth.baseUrl}/api/v1`);
    const seen = await new Browser().open(
      authorizeUrl(auth.baseUrl, pkce().challenge, { resource: 'https://other.example/' }),
    );
    assert.equal(seen.location?.searchParams.get('error'), 'invalid_target');
  });

  it('refuses a scope that does not exist, and a request without scopes', async () => {
    for (const scope of ['data:read data:raed', '']) {
      const seen = await new Browser().open(authorizeUrl(auth.baseUrl, pkce().challenge, { scope }));
      assert.equal(seen.location?.searchParams.get('error'), 'invalid_scope', scope);
      const device = await post(`${auth.baseUrl}/oauth2/device_authorization`, { client_id: 'erp-cli', scope });
      assert.equal(device.body.error, 'invalid_scope', scope);
    }
  });

  it('asks again in the same browser for consent, not for the password', async () => {
    const browser = new Browser();
    await authorize(browser, authorizeUrl(auth.baseUrl, pkce().challenge));
    const page = await browser.visit(authorizeUrl(auth.baseUrl, pkce().challenge));
    assert.match(page.html, /Allow ERP command line\?/);
    assert.doesNotMatch(page.html, /name="password"/);
    assert.equal((await browser.submit(page)).location?.origin, new URL(REDIRECT).origin);
  });

  it('accepts pushed authorization requests', async () => {
    const { verifier, challenge } = pkce();
    const pushed = await post(
      `${auth.baseUrl}/oauth2/par`,
      Object.fromEntries(authorizeUrl(auth.baseUrl, challenge).searchParams),
    );
    assert.equal(pushed.status, 201, JSON.stringify(pushed.body));
    const url = new URL('/oauth2/authorize', auth.baseUrl);
    url.search = new URLSearchParams({ client_id: 'erp-cli', request_uri: pushed.body.request_uri }).toString();
    const back = await authorize(new Browser(), url);
    const answer = await exchange(auth.baseUrl, back.searchParams.get('code')!, verifier);
    assert.equal(answer.status, 200);
    assert.ok(answer.body.refresh_token);
  });

  describe("a tenant's own client", () => {
    const redirect = 'https://app.example/cb';
    const ask = (more: Record<string, string> = {}): URL =>
      authorizeUrl(auth.baseUrl, pkce().challenge, {
        client_id: 'demo-Portal',
        redirect_uri: redirect,
        scope: 'data:read',
        ...more,
      });

    before(async () => {
      auth.clients['Portal'] = externalClient({
        apiName: 'Portal',
        name: 'Customer portal',
        redirectUris: [redirect],
        scopes: ['data:read', 'offline_access'],
        confidential: true,
        origins: ['https://app.example'],
        ipRanges: ['10.0.0.0/8'],
        accessTokenSeconds: 300,
      });
      auth.clients['Robot'] = externalClient({
        apiName: 'Robot',
        scopes: ['data:read'],
        grantTypes: ['client_credentials'],
        confidential: true,
        integrationUser: 'sam@demo.example',
      });
      auth.clients['Headless'] = externalClient({
        apiName: 'Headless',
        scopes: ['data:read'],
        grantTypes: ['client_credentials'],
        confidential: true,
      });
      await auth.bump();
    });

    it('shows the requested scopes before it gets a token', async () => {
      const browser = new Browser();
      const page = await browser.submit(await browser.visit(ask()), {
        username: 'sam@demo.example',
        password: 'demo-password',
      });
      assert.match(page.html, /Allow Customer portal\?/);
      assert.match(page.html, /Read the records that you can see\./);
      assert.match(page.html, /app\.example/);
      assert.match(page.headers.get('content-security-policy')!, /form-action 'self' https:\/\/app\.example;/);
    });

    it('gets at most the scopes that the tenant gave it', async () => {
      const seen = await new Browser().open(ask({ scope: 'data:read data:write' }));
      assert.equal(seen.location?.searchParams.get('error'), 'invalid_scope');
    });

    it('gets fewer scopes from an old refresh token once the tenant has removed one', async () => {
      const shrinking = {
        apiName: 'Shrinking',
        redirectUris: [REDIRECT],
        scopes: ['data:read', 'data:write', 'offline_access'],
      };
      auth.clients['Shrinking'] = externalClient(shrinking);
      await auth.bump();
      const client_id = 'demo-Shrinking';
      const scope = 'data:read data:write offline_access';
      const { verifier, challenge } = pkce();
      const back = await authorize(new Browser(), authorizeUrl(auth.baseUrl, challenge, { client_id, scope }));
      const first = await exchange(auth.baseUrl, back.searchParams.get('code')!, verifier, { client_id });
      assert.equal(claims(first.body.access_token).scope, scope, JSON.stringify(first.body));
      auth.clients['Shrinking'] = externalClient({ ...shrinking, scopes: ['data:read', 'offline_access'] });
      await auth.bump();
      const { refresh_token } = first.body;
      const renewed = await post(`${auth.baseUrl}/oauth2/token`, {
        grant_type: 'refresh_token',
        client_id,
        refresh_token,
      });
      assert.equal(claims(renewed.body.access_token).scope, 'data:read offline_access');
    });

    it('never signs in a user of another tenant, and does not reveal why', async () => {
      const browser = new Browser();
      const wrongTenant = await browser.submit(await browser.visit(ask()), {
        username: 'eve@acme.example',
        password: 'demo-password',
      });
      const wrongPassword = await browser.submit(wrongTenant, { username: 'eve@acme.example', password: 'wrong' });
      assert.equal(wrongTenant.status, 401);
      const withoutChallenge = ({ html }: Seen): string => html.replace(/data-options="[^"]*"/, '');
      assert.equal(withoutChallenge(wrongTenant), withoutChallenge(wrongPassword));

      const eve = new Browser();
      await authorize(eve, authorizeUrl(auth.baseUrl, pkce().challenge), 'eve@acme.example');
      assert.match((await eve.visit(ask())).html, /name="password"/, 'a session of another tenant counts for nothing');
    });

    it('authenticates with its secret, of which only a hash is stored', async () => {
      const { secret } = await call(auth.broker, 'auth.clients.rotateSecret', { tenantId: DEMO, apiName: 'Portal' });
      const { verifier, challenge } = pkce();
      const attempt = async (password: string) => {
        const back = await authorize(new Browser(), ask({ code_challenge: challenge }));
        return post(
          `${auth.baseUrl}/oauth2/token`,
          {
            grant_type: 'authorization_code',
            redirect_uri: redirect,
            code: back.searchParams.get('code')!,
            code_verifier: verifier,
          },
          { authorization: `Basic ${Buffer.from(`demo-Portal:${password}`).toString('base64')}` },
        );
      };
      const wrong = await attempt('not-the-secret');
      assert.equal(wrong.status, 401);
      assert.equal(wrong.body.error, 'invalid_client');
      const right = await attempt(secret);
      assert.equal(right.status, 200, JSON.stringify(right.body));
      assert.equal(right.body.expires_in, 300, 'the tenant made its access tokens shorter');
      const { rows } = await auth.database.query<{ n: number }>(
        'SELECT count(*)::int AS n FROM auth.client_secrets WHERE position(convert_to($1, $2) in secret_hash) > 0',
        [secret, 'UTF8'],
      );
      assert.equal(rows[0]!.n, 0);
    });

    it('acts without a user only as the integration user that the tenant named', async () => {
      const { secret } = await call(auth.broker, 'auth.clients.rotateSecret', { tenantId: DEMO, apiName: 'Robot' });
      const basic = { authorization: `Basic ${Buffer.from(`demo-Robot:${secret}`).toString('base64')}` };
      const form = { grant_type: 'client_credentials', scope: 'data:read' };
      const { status, body } = await post(`${auth.baseUrl}/oauth2/token`, form, basic);
      assert.equal(status, 200, JSON.stringify(body));
      const { sub, tenant_id, grant_id, client_id } = claims(body.access_token);
      assert.deepEqual({ sub, tenant_id, client_id }, { sub: SAM, tenant_id: DEMO, client_id: 'demo-Robot' });
      const [state] = await call(auth.broker, 'auth.grants.check', {
        grants: [{ tenantId: DEMO, grantId: grant_id, clientId: 'demo-Robot', userId: SAM }],
      });
      assert.equal(state!.active, true);
      const again = await post(`${auth.baseUrl}/oauth2/token`, form, basic);
      assert.equal(claims(again.body.access_token).grant_id, grant_id, 'one standing grant');

      const headless = await call(auth.broker, 'auth.clients.rotateSecret', { tenantId: DEMO, apiName: 'Headless' });
      const refused = await post(`${auth.baseUrl}/oauth2/token`, form, {
        authorization: `Basic ${Buffer.from(`demo-Headless:${headless.secret}`).toString('base64')}`,
      });
      assert.equal(refused.status, 400);
      assert.match(refused.body.error, /unauthorized_client|invalid_request/);
      assert.equal(refused.body.access_token, undefined);
    });

    it("loses its integration user's tokens when its keys change, but not with a new secret", async () => {
      const declare = async (changes: Partial<ExternalClientMeta>): Promise<void> => {
        auth.clients['Changing'] = externalClient({
          apiName: 'Changing',
          scopes: ['data:read'],
          grantTypes: ['client_credentials'],
          confidential: true,
          integrationUser: 'sam@demo.example',
          ...changes,
        });
        await auth.bump();
      };
      const token = async (): Promise<string> => {
        const { secret } = await call(auth.broker, 'auth.clients.rotateSecret', {
          tenantId: DEMO,
          apiName: 'Changing',
        });
        const { body } = await post(
          `${auth.baseUrl}/oauth2/token`,
          { grant_type: 'client_credentials', scope: 'data:read' },
          { authorization: `Basic ${Buffer.from(`demo-Changing:${secret}`).toString('base64')}` },
        );
        return claims(body.access_token).grant_id;
      };
      const isActive = async (grantId: string): Promise<boolean> => {
        const grant = { tenantId: DEMO, grantId, clientId: 'demo-Changing', userId: SAM };
        return (await call(auth.broker, 'auth.grants.check', { grants: [grant] }))[0]!.active;
      };
      await declare({});
      const first = await token();
      assert.equal(await token(), first, 'a new secret');
      assert.equal(await isActive(first), true);
      const { publicKey } = await generateKeyPair('ES256');
      await declare({ jwks: { keys: [{ ...(await exportJWK(publicKey)) }] } });
      assert.equal(await isActive(first), false);
      await declare({ agent: true });
      const second = await token();
      assert.notEqual(second, first);
      assert.equal(await isActive(second), true);
    });

    it('authenticates with a key of its own instead of a secret (private_key_jwt)', async () => {
      const { publicKey, privateKey } = await generateKeyPair('ES256');
      auth.clients['Signer'] = externalClient({
        apiName: 'Signer',
        scopes: ['data:read'],
        grantTypes: ['client_credentials'],
        confidential: true,
        integrationUser: 'sam@demo.example',
        jwks: { keys: [{ ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256', use: 'sig' }] },
      });
      await auth.bump();
      const ask = (assertion: string) =>
        post(`${auth.baseUrl}/oauth2/token`, {
          grant_type: 'client_credentials',
          scope: 'data:read',
          client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
          client_assertion: assertion,
        });
      const assertion = (key: CryptoKey, jti: string) =>
        new SignJWT({ jti })
          .setProtectedHeader({ alg: 'ES256', kid: 'one' })
          .setIssuer('demo-Signer')
          .setSubject('demo-Signer')
          .setAudience(auth.baseUrl)
          .setIssuedAt()
          .setExpirationTime('1 minute')
          .sign(key);
      const good = await assertion(privateKey, 'first');
      const answer = await ask(good);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      assert.equal(claims(answer.body.access_token).sub, SAM);
      assert.equal((await ask(good)).body.error, 'invalid_client', 'an assertion is good for one use');
      const twice = await assertion(privateKey, 'at once');
      const answers = await Promise.all([1, 2, 3, 4].map(() => ask(twice)));
      assert.equal(answers.filter((each) => each.status === 200).length, 1, 'also when copies come at once');
      const other = (await generateKeyPair('ES256')).privateKey;
      assert.equal((await ask(await assertion(other, 'second'))).body.error, 'invalid_client');
      await assert.rejects(call(auth.broker, 'auth.clients.rotateSecret', { tenantId: DEMO, apiName: 'Signer' }), {
        code: 'PARAMETER_INVALID',
      });
    });

    it('can neither introspect nor revoke tokens of another client', async () => {
      const { access_token } = await tokens(auth.baseUrl);
      const { secret } = await call(auth.broker, 'auth.clients.rotateSecret', { tenantId: DEMO, apiName: 'Robot' });
      const basic = { authorization: `Basic ${Buffer.from(`demo-Robot:${secret}`).toString('base64')}` };
      const seen = await post(`${auth.baseUrl}/oauth2/introspect`, { token: access_token }, basic);
      assert.deepEqual(seen.body, { active: false });
      await post(`${auth.baseUrl}/oauth2/revoke`, { token: access_token }, basic);
      const own = await post(`${auth.baseUrl}/oauth2/introspect`, { client_id: 'erp-cli', token: access_token });
      assert.equal(own.body.active, true);
    });

    it('is known to CORS by its listed origins while it is active', async () => {
      const allowed = async (origin: string, clientId?: string) =>
        (await call(auth.broker, 'auth.origins.check', clientId ? { origin, clientId } : { origin })).allowed;
      assert.equal(await allowed('https://app.example'), true);
      assert.equal(await allowed('https://app.example', 'demo-Portal'), true);
      assert.equal(await allowed('https://app.example', 'erp-cli'), false);
      assert.equal(await allowed('https://evil.example'), false);
    });

    it('is reported to the gateway with address ranges and limits; one of another tenant is unknown', async () => {
      const [ours, theirs] = await call(auth.broker, 'auth.grants.check', {
        grants: [
          { tenantId: DEMO, grantId: 'none', clientId: 'demo-Portal', userId: SAM },
          { tenantId: ACME, grantId: 'none', clientId: 'demo-Portal', userId: EVE },
        ],
      });
      assert.deepEqual(ours!.ipRanges, ['10.0.0.0/8']);
      assert.equal(ours!.active, false);
      assert.deepEqual(
        { name: theirs!.clientName, active: theirs!.active, clientActive: theirs!.clientActive },
        { name: '', active: false, clientActive: false },
      );
    });

    it('is refused once the tenant deactivates it', async () => {
      const off = externalClient({ ...auth.clients['Portal']!, active: false });
      auth.clients['Portal'] = off;
      await auth.bump();
      const seen = await new Browser().open(ask());
      assert.equal(seen.location, null);
      assert.match(seen.html, /invalid_client/);
    });
  });
});
