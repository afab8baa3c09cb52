import assert from 'node:assert/strict';
import { call } from '../../../contracts/call.ts';
import { authorizeUrl, Browser, claims, exchange, pkce, post, refresh, tokens } from './browser.ts';
import { ADA, type AuthHarness, DEMO, SAM, startAuth } from './harness.ts';

const OFFLINE = { scope: 'data:read offline_access' };

describe('grants and refresh tokens', () => {
  let auth: AuthHarness;
  before(async () => {
    auth = await startAuth();
  });
  after(() => auth.stop());

  const isActive = async (grantId: string, userId = SAM, tenantId = DEMO, clientId = 'erp-cli'): Promise<boolean> => {
    const [state] = await call(auth.broker, 'auth.grants.check', { grants: [{ tenantId, grantId, clientId, userId }] });
    return state!.active;
  };
  /** Moves the last use of every refresh token into the past. */
  const letSecondsPass = (seconds: number) =>
    auth.database.query('UPDATE auth.artifacts SET consumed_at = consumed_at - make_interval(secs => $1)', [seconds]);

  it('issue a new refresh token for each use, under the same grant', async () => {
    const first = await tokens(auth.baseUrl, OFFLINE);
    const second = await refresh(auth.baseUrl, first.refresh_token);
    assert.equal(second.status, 200, JSON.stringify(second.body));
    assert.notEqual(second.body.refresh_token, first.refresh_token);
    assert.equal(claims(second.body.access_token).grant_id, claims(first.access_token).grant_id);
    assert.equal(second.body.scope, 'data:read offline_access');
  });

  it('accept a used refresh token again for 30 seconds, because responses get lost', async () => {
    const first = await tokens(auth.baseUrl, OFFLINE);
    await refresh(auth.baseUrl, first.refresh_token);
    await letSecondsPass(25);
    const again = await refresh(auth.baseUrl, first.refresh_token);
    assert.equal(again.status, 200);
    assert.ok(await isActive(claims(first.access_token).grant_id));
  });

  it('end as a whole, and alone, when a used refresh token comes back after that', async () => {
    const other = await tokens(auth.baseUrl, OFFLINE);
    const first = await tokens(auth.baseUrl, OFFLINE);
    const second = await refresh(auth.baseUrl, first.refresh_token);
    await letSecondsPass(31);
    const stolen = await refresh(auth.baseUrl, first.refresh_token);
    assert.equal(stolen.status, 400);
    assert.equal(stolen.body.error, 'invalid_grant');
    const { grant_id } = claims(first.access_token);
    assert.equal(await isActive(grant_id), false);
    assert.ok(auth.revoked.includes(grant_id));
    assert.equal((await refresh(auth.baseUrl, second.body.refresh_token)).status, 400, 'the rightful one ended too');
    assert.ok(await isActive(claims(other.access_token).grant_id));
    assert.equal((await refresh(auth.baseUrl, other.refresh_token)).status, 200);
  });

  it('narrow a refreshed token to fewer scopes, and never widen it', async () => {
    const { refresh_token } = await tokens(auth.baseUrl, { scope: 'data:read data:write offline_access' });
    const form = { grant_type: 'refresh_token', client_id: 'erp-cli', refresh_token };
    const wider = await post(`${auth.baseUrl}/oauth2/token`, { ...form, scope: 'data:read data:delete' });
    assert.equal(wider.body.error, 'invalid_scope');
    const narrower = await post(`${auth.baseUrl}/oauth2/token`, { ...form, scope: 'data:read' });
    assert.equal(claims(narrower.body.access_token).scope, 'data:read');
  });

  it('store no refresh token and no code in clear', async () => {
    const { refresh_token } = await tokens(auth.baseUrl, OFFLINE);
    const { rows } = await auth.database.query<{ n: number }>(
      'SELECT count(*)::int AS n FROM auth.artifacts a WHERE position($1 in a::text) > 0',
      [refresh_token],
    );
    assert.equal(rows[0]!.n, 0);
  });

  for (const kind of ['access_token', 'refresh_token'] as const)
    it(`end at once when the ${kind.replace('_', ' ')} is revoked`, async () => {
      const answer = await tokens(auth.baseUrl, OFFLINE);
      const { grant_id } = claims(answer.access_token);
      assert.ok(await isActive(grant_id));
      const { status } = await post(`${auth.baseUrl}/oauth2/revoke`, { client_id: 'erp-cli', token: answer[kind] });
      assert.equal(status, 200);
      assert.equal(await isActive(grant_id), false);
      assert.ok(auth.revoked.includes(grant_id));
      assert.equal((await refresh(auth.baseUrl, answer.refresh_token)).body.error, 'invalid_grant');
    });

  it('answer a revocation of nonsense with 200, unchanged', async () => {
    const { access_token } = await tokens(auth.baseUrl, OFFLINE);
    const [head, body, signature] = access_token.split('.');
    const forged = `${head}.${body}.${signature.slice(0, -4)}AAAA`;
    for (const token of ['nonsense', forged])
      assert.equal((await post(`${auth.baseUrl}/oauth2/revoke`, { client_id: 'erp-cli', token })).status, 200);
    assert.ok(await isActive(claims(access_token).grant_id));
  });

  it('are active in introspection until revoked; every other token is inactive', async () => {
    const answer = await tokens(auth.baseUrl, OFFLINE);
    const introspect = async (token: string) =>
      (await post(`${auth.baseUrl}/oauth2/introspect`, { client_id: 'erp-cli', token })).body;
    const access = await introspect(answer.access_token);
    assert.equal(access.active, true, JSON.stringify(access));
    assert.equal(access.sub, SAM);
    assert.equal(access.scope, 'data:read offline_access');
    assert.equal(access.tenant_id, DEMO);
    assert.equal(access.client_id, 'erp-cli');
    assert.equal((await introspect(answer.refresh_token)).active, true);
    const [head, body, signature] = answer.access_token.split('.');
    for (const token of [`${head}.${body}.${signature.slice(0, -4)}AAAA`, 'nonsense', 'a.b.c'])
      assert.deepEqual(await introspect(token), { active: false });
    await post(`${auth.baseUrl}/oauth2/revoke`, { client_id: 'erp-cli', token: answer.refresh_token });
    assert.deepEqual(await introspect(answer.access_token), { active: false });
  });

  it('are valid only for their own tenant, user and client', async () => {
    const { grant_id } = claims((await tokens(auth.baseUrl, OFFLINE)).access_token);
    assert.equal(await isActive(grant_id), true);
    assert.equal(await isActive(grant_id, ADA), false);
    assert.equal(await isActive(grant_id, SAM, '01990000-0000-7000-8000-000000000002'), false);
    assert.equal(await isActive(grant_id, SAM, DEMO, 'demo-Portal'), false);
  });

  it('report a suspended tenant', async () => {
    const { grant_id } = claims((await tokens(auth.baseUrl, OFFLINE)).access_token);
    auth.suspended.add(DEMO);
    await auth.bump();
    const [state] = await call(auth.broker, 'auth.grants.check', {
      grants: [{ tenantId: DEMO, grantId: grant_id, clientId: 'erp-cli', userId: SAM }],
    });
    assert.equal(state!.tenantSuspended, true);
    auth.suspended.clear();
    await auth.bump();
  });

  describe('a device without a browser (RFC 8628)', () => {
    const begin = async () =>
      (await post(`${auth.baseUrl}/oauth2/device_authorization`, { client_id: 'erp-cli', ...OFFLINE })).body;
    const poll = (device_code: string) =>
      post(`${auth.baseUrl}/oauth2/token`, {
        grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
        client_id: 'erp-cli',
        device_code,
      });
    const person = { username: 'sam@demo.example', password: 'demo-password' };

    it('gets tokens once a user entered its code and consented', async () => {
      const device = await begin();
      assert.equal(device.verification_uri, `${auth.baseUrl}/device`);
      assert.equal(device.expires_in, 600);
      assert.equal((await poll(device.device_code)).body.error, 'authorization_pending');

      const browser = new Browser();
      let page = await browser.visit(device.verification_uri);
      page = await browser.submit(page, { user_code: device.user_code.toLowerCase() });
      assert.match(page.html, new RegExp(device.user_code), 'compare the code');
      page = await browser.submit(page);
      page = await browser.submit(page, person);
      assert.match(page.html, /Allow ERP command line\?/);
      page = await browser.submit(page);
      assert.match(page.html, /Your device is connected/);

      const answer = await poll(device.device_code);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      assert.equal(claims(answer.body.access_token).sub, SAM);
      assert.ok(answer.body.refresh_token);
      assert.equal(
        (await poll(device.device_code)).body.error,
        'invalid_grant',
        'a device code is good for one answer',
      );
    });

    it('fills the code in when the user comes by the complete address', async () => {
      const device = await begin();
      const page = await new Browser().visit(device.verification_uri_complete);
      assert.match(page.html, new RegExp(`value="${device.user_code}"`));
      assert.doesNotMatch(page.html, /<script/);
    });

    it('gets nothing when the user cancels, and the page confirms it', async () => {
      const device = await begin();
      const browser = new Browser();
      let page = await browser.visit(device.verification_uri);
      page = await browser.submit(page, { user_code: device.user_code });
      page = await browser.submit(page, { abort: 'yes' });
      assert.match(page.html, /role="alert"/);
      assert.equal((await poll(device.device_code)).body.error, 'access_denied');
    });

    it('tells the user that a code is unknown', async () => {
      const browser = new Browser();
      const page = await browser.submit(await browser.visit(`${auth.baseUrl}/device`), { user_code: 'ZZZZ-ZZZZ' });
      assert.match(page.html, /This code is not known/);
    });
  });

  describe('users', () => {
    const sync = (active: boolean) =>
      call(auth.broker, 'auth.users.sync', {
        tenantId: DEMO,
        users: [{ userId: ADA, username: 'ada@demo.example', email: 'ada@demo.example', active }],
      });

    it('lose everything the moment they are deactivated, and return without it', async () => {
      const browser = new Browser();
      const { verifier, challenge } = pkce();
      const url = authorizeUrl(auth.baseUrl, challenge);
      let page = await browser.submit(await browser.visit(url), {
        username: 'ada@demo.example',
        password: 'demo-password',
      });
      page = await browser.submit(page);
      const answer = (await exchange(auth.baseUrl, page.location!.searchParams.get('code')!, verifier)).body;
      const { grant_id } = claims(answer.access_token);
      assert.ok(await isActive(grant_id, ADA));

      await sync(false);
      assert.equal(await isActive(grant_id, ADA), false);
      assert.ok(auth.revoked.includes(grant_id));
      assert.equal((await refresh(auth.baseUrl, answer.refresh_token)).status, 400);
      assert.match((await browser.visit(url)).html, /name="password"/, 'the browser session is gone');
      const refused = await browser.submit(await browser.visit(url), {
        username: 'ada@demo.example',
        password: 'demo-password',
      });
      assert.equal(refused.status, 401);

      await sync(true);
      assert.equal(await isActive(grant_id, ADA), false);
      await tokens(auth.baseUrl, OFFLINE, 'ada@demo.example');
    });

    it('can be signed out everywhere by an administrator', async () => {
      const { grant_id } = claims((await tokens(auth.baseUrl, OFFLINE)).access_token);
      const { revoked } = await call(auth.broker, 'auth.users.revoke', { tenantId: DEMO, userId: SAM });
      assert.ok(revoked >= 1);
      assert.equal(await isActive(grant_id), false);
      const again = await call(auth.broker, 'auth.users.revoke', { tenantId: DEMO, userId: SAM });
      assert.equal(again.revoked, 0);
    });

    it('cannot take a username of another user of the tenant, in any case', async () => {
      await assert.rejects(
        call(auth.broker, 'auth.users.sync', {
          tenantId: DEMO,
          users: [
            {
              userId: '01990000-0000-7000-8000-0000000000c1',
              username: 'SAM@demo.example',
              email: 's@acme.example',
              active: true,
            },
          ],
        }),
        { code: 'UNIQUE_VALUE_CONFLICT' },
      );
    });

    it('are accepted only in valid form, with all violations at once', async () => {
      const sync = (params: unknown): Promise<unknown> => Promise.resolve(auth.broker.call('auth.users.sync', params));
      const user = { userId: SAM, username: 'sam@demo.example', email: 'sam@demo.example', active: true };
      const refused = (error: { code: string; errors: { pointer: string }[] }, pointers: string[]): true => {
        assert.equal(error.code, 'PARAMETER_INVALID');
        assert.deepEqual(error.errors.map(({ pointer }) => pointer).sort(), pointers);
        return true;
      };
      const wrong = { ...user, userId: 'sam', username: '', active: 'yes', admin: true };
      await assert.rejects(sync({ tenantId: DEMO, users: [user, wrong] }), (error: never) =>
        refused(error, ['/users/1/active', '/users/1/admin', '/users/1/userId', '/users/1/username']),
      );
      const long = { ...user, username: 'x'.repeat(513), email: 'a\0b' };
      await assert.rejects(sync({ tenantId: 'demo', users: [long] }), (error: never) =>
        refused(error, ['/tenantId', '/users/0/email', '/users/0/username']),
      );
      await assert.rejects(sync({}), (error: never) => refused(error, ['/tenantId', '/users']));
      const { rows } = await auth.database.query("SELECT FROM auth.credentials WHERE username LIKE 'x%'");
      assert.equal(rows.length, 0);
    });

    it('of one tenant are inaccessible to work for another, enforced by the database', async () => {
      const seen = await auth.database.shared('auth', '01990000-0000-7000-8000-000000000002', async (tx) => {
        const { rows } = await tx.query<{ username: string }>('SELECT username FROM auth.credentials');
        return rows.map((row) => row.username);
      });
      assert.deepEqual(seen, ['eve@acme.example']);
      await assert.rejects(
        auth.database.shared('auth', '01990000-0000-7000-8000-000000000002', (tx) =>
          tx.query("INSERT INTO auth.client_secrets (tenant_id, api_name, secret_hash) VALUES ($1, 'X', 'x')", [DEMO]),
        ),
        /row-level security/,
      );
    });
  });
});
