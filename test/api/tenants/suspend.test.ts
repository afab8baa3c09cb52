/** A suspended tenant: closed to all users, without loss of data. Source: docs/reference/tenants.md. */
import assert from 'node:assert/strict';
import { call } from '../../../contracts/call.ts';
import { Database } from '../../../mixins/database/database.ts';
import { SignInFailure, signIn } from '../../../scripts/sign-in.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { authorize, authorizeUrl, Browser, exchange, pkce, type Seen } from '../auth/browser.ts';
import { type Company, makeCompany, PASSWORD, refresh, within } from './company.ts';

const REASON = 'The invoices of September are not paid.';

const CLIENT = {
  files: {
    'externalClients/Robot.yaml':
      'type: ExternalClient\napiName: Robot\nname: Robot\nactive: true\nconfidential: true\n' +
      'grantTypes: [client_credentials]\nscopes: [data:read]\nintegrationUser: ann@flour.example\n',
  },
  package: { version: 1, types: [{ name: 'ExternalClient', members: ['Robot'] }] },
};

describe('a suspended tenant', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let database: Database;
  let flour: Company;
  let other: Company;
  let robot: string;
  before(async () => {
    platform = await startPlatform({ seed: false });
    database = new Database(platform.database.url, { size: 2, applicationName: 'test' });
    flour = await makeCompany(platform, 'flour');
    other = await makeCompany(platform, 'other');
    await deployed(CLIENT);
    const { secret } = await call(platform.broker, 'auth.clients.rotateSecret', {
      tenantId: flour.tenantId,
      apiName: 'Robot',
    });
    robot = Buffer.from(`flour-Robot:${secret}`).toString('base64');
  });
  after(async () => {
    await database?.close();
    await platform?.stop();
  });

  const suspend = (key = 'flour') => call(platform.broker, 'metadata.tenants.suspend', { key, reason: REASON });
  const resume = (key = 'flour') => call(platform.broker, 'metadata.tenants.resume', { key });
  const answers = async () => (await flour.admin.get('/identity')).status;
  const deployed = async (body: object): Promise<string> => {
    const { body: accepted, text } = await flour.admin.post('/metadata/deploy', body);
    assert.ok(accepted.deploymentId, text);
    await within(20, async () => {
      const { body } = await flour.admin.get(`/metadata/deployments/${accepted.deploymentId}`);
      assert.notEqual(body.status, 'FAILED', JSON.stringify(body));
      return body.status === 'SUCCEEDED';
    });
    return accepted.deploymentId;
  };
  const robotToken = () =>
    fetch(`${platform.baseUrl}/oauth2/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${robot}` },
      body: new URLSearchParams({ grant_type: 'client_credentials', scope: 'data:read' }),
    });
  const mcp = async () => {
    const tokens = await signIn({
      baseUrl: platform.baseUrl,
      user: flour.adminName,
      password: PASSWORD,
      resource: `${platform.baseUrl}/mcp`,
    });
    return () =>
      fetch(`${platform.baseUrl}/mcp`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${tokens.access_token}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'initialize',
          params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
        }),
      });
  };

  it('answers no request, issues no token, and continues unchanged when it is resumed', async () => {
    const assistant = await mcp();
    const answered = await assistant();
    assert.equal(answered.status, 200, await answered.clone().text());
    const robotAnswered = await robotToken();
    assert.equal(robotAnswered.status, 200, await robotAnswered.clone().text());
    const { url } = await call(platform.broker, 'auth.users.createLink', {
      username: flour.adminName,
      tenantId: flour.tenantId,
    });
    const described = await suspend();
    assert.deepEqual([described.state, described.suspension?.reason], ['suspended', REASON]);
    await within(4, async () => (await answers()) === 403);

    const refused = await flour.admin.get('/data/User');
    assert.deepEqual([refused.status, refused.body.code, refused.body.retryable], [403, 'TENANT_SUSPENDED', false]);
    const written = await flour.admin.post('/data/User', { username: 'x' });
    assert.deepEqual([written.status, written.body.code], [403, 'TENANT_SUSPENDED']);
    assert.equal((await assistant()).status, 403);

    const denied = { error: 'access_denied', error_description: /suspended/ };
    for (const response of [await refresh(platform.baseUrl, flour.tokens.refresh_token!), await robotToken()]) {
      const body = (await response.json()) as Record<string, string>;
      assert.deepEqual([response.status, body['error']], [400, denied.error]);
      assert.match(body['error_description']!, denied.error_description);
    }
    const signingIn = (password: string) => signIn({ baseUrl: platform.baseUrl, user: flour.adminName, password });
    await assert.rejects(signingIn(PASSWORD), /access_denied|suspended/);
    // Callers without the password learn nothing about the tenant.
    await assert.rejects(signingIn('wrong'), (error: Error) => {
      assert.ok(error instanceof SignInFailure);
      assert.doesNotMatch(error.message, /suspend/);
      return true;
    });
    const page = await fetch(url);
    assert.equal(page.status, 403);
    assert.match(await page.text(), /Access is suspended/);

    // Other tenants are not affected.
    assert.equal((await other.admin.get('/data/User')).status, 200);
    await signIn({ baseUrl: platform.baseUrl, user: other.adminName, password: PASSWORD });

    assert.equal((await resume()).state, 'active');
    await within(4, async () => (await answers()) === 200);
    assert.equal((await robotToken()).status, 200);
    const again = await refresh(platform.baseUrl, flour.tokens.refresh_token!);
    assert.equal(again.status, 200, await again.clone().text());
    assert.equal((await fetch(url)).status, 200);
  });

  it('is refused at every entrance, and admitted again when it is resumed', async () => {
    const { baseUrl } = platform;
    const by = (token: string, path: string, init: RequestInit = {}) =>
      fetch(baseUrl + path, { ...init, headers: { authorization: `Bearer ${token}`, ...init.headers } });
    const as = async (scope: string) => signIn({ baseUrl, user: flour.adminName, password: PASSWORD, scope });
    const [provisioner, person, fresh] = [
      await as('users:manage'),
      await as('openid'),
      await as('data:read offline_access'),
    ];
    const link = async (): Promise<string> =>
      (await call(platform.broker, 'auth.users.createLink', { username: flour.adminName, tenantId: flour.tenantId }))
        .url;
    const setPassword = await link();
    const browser = new Browser();
    const account = async (): Promise<Seen> => {
      const seen = await browser.visit(`${baseUrl}/account`);
      if (!/name="password"/.test(seen.html)) return seen;
      return browser.submit(seen, { username: flour.adminName, password: PASSWORD });
    };
    const introspected = (): Promise<Response> =>
      fetch(`${baseUrl}/oauth2/introspect`, {
        method: 'POST',
        headers: { authorization: `Basic ${robot}` },
        body: new URLSearchParams({ token: flour.tokens.access_token }),
      });
    let refreshToken = fresh.refresh_token!;
    const refreshed = async (): Promise<Response> => {
      const response = await refresh(baseUrl, refreshToken);
      refreshToken = ((await response.clone().json()) as { refresh_token?: string }).refresh_token ?? refreshToken;
      return response;
    };
    const code = async (): Promise<{ status: number }> => {
      const { verifier, challenge } = pkce();
      const at = await authorize(new Browser(), authorizeUrl(baseUrl, challenge), flour.adminName, PASSWORD);
      const value = at.searchParams.get('code');
      return value === null ? { status: 0 } : exchange(baseUrl, value, verifier);
    };
    const assistant = await mcp();
    const json = { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } };
    /** The answer of each while the tenant works, and while it is suspended. */
    const entrances: readonly (readonly [
      what: string,
      ask: () => Promise<{ status: number }>,
      open: number,
      shut: number,
    ])[] = [
      ['a read', () => flour.admin.get('/identity'), 200, 403],
      ['a query', () => flour.admin.post('/data/User/query', {}), 200, 403],
      ['a change', () => flour.admin.post('/data/User', { username: 'x' }), 422, 403],
      ['an unknown object', () => flour.admin.get('/data/Nothing'), 404, 403],
      ['configuration', () => by(flour.tokens.access_token, '/api/v1/metadata/deploy', json), 400, 403],
      ['dashboards', () => flour.admin.get('/analytics/dashboards'), 200, 403],
      ['the change feed', () => flour.admin.get('/data/User/changes'), 200, 403],
      ['assistants', assistant, 200, 403],
      ['provisioning', () => by(provisioner.access_token, '/scim/v2/Users?count=1'), 200, 403],
      ['a program', robotToken, 200, 400],
      ['a refresh token', refreshed, 200, 400],
      ['who signed in', () => by(person.access_token, '/oauth2/userinfo'), 200, 401],
      ['a sign-in', code, 200, 0],
      ['the account', account, 200, 403],
      ['a link to a password', () => fetch(setPassword), 200, 403],
      ['the page of dashboards', () => fetch(`${baseUrl}/dashboards`), 200, 200],
      ['introspection', introspected, 200, 200],
    ];
    const seen = async (): Promise<Record<string, number>> => {
      const found: Record<string, number> = {};
      for (const [what, ask] of entrances) found[what] = (await ask()).status;
      return found;
    };
    const opened = Object.fromEntries(entrances.map(([what, , open]) => [what, open]));
    const shut = Object.fromEntries(entrances.map(([what, , , status]) => [what, status]));
    assert.deepEqual(await seen(), opened);
    await suspend();
    await within(4, async () => (await answers()) === 403);
    assert.deepEqual(await seen(), shut);
    await resume();
    await within(4, async () => (await answers()) === 200);
    assert.deepEqual(await seen(), opened, 'as before');
  });

  it('is suspended within seconds for a process that misses the event', async () => {
    const set = (suspended: boolean) =>
      database.query('UPDATE metadata.tenants SET suspended = $1 WHERE id = $2', [suspended, flour.tenantId]);
    assert.equal(await answers(), 200);
    await set(true);
    await within(8, async () => (await answers()) === 403);
    await set(false);
    await within(8, async () => (await answers()) === 200);
  });

  it('keeps its deployments waiting, and continues them', async () => {
    // Accepted before and not begun yet: as after the death of a worker.
    const deploymentId = await deployed({
      ...CLIENT,
      files: {
        'externalClients/Robot.yaml': CLIENT.files['externalClients/Robot.yaml'].replace(
          'name: Robot\n',
          'name: Robot 2\n',
        ),
      },
    });
    await suspend();
    await database.query(
      `UPDATE metadata.deployments SET status = 'QUEUED', finished_at = NULL, lease_until = NULL, stage = 'queue', check_only = true
       WHERE deployment_id = $1`,
      [deploymentId],
    );
    const status = async () =>
      (
        await database.query<{ status: string }>('SELECT status FROM metadata.deployments WHERE deployment_id = $1', [
          deploymentId,
        ])
      ).rows[0]!.status;
    // Each process polls about once a second.
    for (const end = performance.now() + 3_000; performance.now() < end; await new Promise((r) => setTimeout(r, 200)))
      assert.equal(await status(), 'QUEUED');
    await resume();
    await within(10, async () => (await status()) !== 'QUEUED');
  });

  it("has the operators' acts in its trail, without an actor", async () => {
    const { body } = await flour.admin.get('/events/audit?operationId=metadata.tenants.suspend');
    assert.equal(body.records.length, 3);
    assert.deepEqual(body.records[0].changes, [
      { field: 'reason', from: null, to: REASON },
      { field: 'suspended', from: false, to: true },
    ]);
    assert.equal(body.records[0].actor?.userId ?? null, null);
    // A repetition changes nothing, and leaves no entry.
    await suspend('other');
    await suspend('other');
    await resume('other');
    await resume('other');
    await within(4, async () => (await other.admin.get('/identity')).status === 200);
    const others = await other.admin.get('/events/audit?operationId=metadata.tenants.suspend');
    assert.equal(others.body.records.length, 1);
  });

  it('must exist, and needs a reason of one line', async () => {
    await assert.rejects(suspend('nobody'), /There is no tenant nobody\./);
    for (const reason of ['', ' ', 'x'.repeat(501), 'two\nlines', undefined])
      await assert.rejects(
        call(platform.broker, 'metadata.tenants.suspend', { key: 'flour', reason: reason as string }),
        /reason must be a line/,
      );
  });

  it('has its new name within seconds of renaming, and keeps its key', async () => {
    const renamed = await call(platform.broker, 'metadata.tenants.rename', { key: 'flour', name: 'Flour & Sons' });
    assert.equal(renamed.name, 'Flour & Sons');
    await within(4, async () => (await flour.admin.get('/identity')).body.tenant.name === 'Flour & Sons');
    const { body } = await flour.admin.get('/events/audit?operationId=metadata.tenants.rename');
    assert.deepEqual(body.records[0].changes, [{ field: 'name', from: 'flour Ltd', to: 'Flour & Sons' }]);
    // Repeating its creation still finds it.
    const same = { key: 'flour', name: 'flour Ltd', template: 'empty' } as const;
    assert.equal((await call(platform.broker, 'metadata.tenants.create', same)).created, false);
    await assert.rejects(
      call(platform.broker, 'metadata.tenants.rename', { key: 'flour', name: '' }),
      /name must be a name/,
    );
  });
});
