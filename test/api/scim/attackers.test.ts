/** Provisioning under attack: rights, other tenants, races, and a lost process. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'mocha';
import pg from 'pg';
import { call } from '../../../contracts/call.ts';
import { tenantSchema } from '../../../lib/context.ts';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { expect, filtered, patch, refused, type ScimSend, scimClient, scimFor } from '../../support/scim.ts';

describe('provisioning under attack', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let ada: Api;
  let byAda: ScimSend;
  let bySam: ScimSend;
  const ids: Record<string, string> = {};

  before(async function () {
    this.timeout(600_000);
    platform = await startPlatform();
    const { baseUrl } = platform;
    ada = api(baseUrl, await tokenFor(baseUrl, 'ada'));
    byAda = await scimFor(baseUrl, 'ada');
    for (const { id, userName } of (await expect(200, byAda('GET', '/Users'))).Resources)
      ids[userName.split('@')[0]] = id;
    await deployOverHttp(ada, {
      'permissionSets/Provisioner.yaml':
        'type: PermissionSet\napiName: Provisioner\nlabel: Provisioner\nsystem: [manageUsers]\n',
      'permissionSets/Deputy.yaml': 'type: PermissionSet\napiName: Deputy\nlabel: Deputy\nsystem: [manageAccess]\n',
    });
    await expect(200, byAda('PATCH', '/Groups/Provisioner', add(ids['sam']!)));
    bySam = await scimFor(baseUrl, 'sam');
  });
  after(() => platform?.stop());

  const add = (...members: string[]): object =>
    patch({ op: 'add', path: 'members', value: members.map((value) => ({ value })) });

  it('requires scope and permission, and names the authorization server', async () => {
    const { baseUrl } = platform;
    const stranger = await scimClient(baseUrl, null)('GET', '/Users');
    assert.equal(stranger.status, 401);
    assert.match(stranger.headers.get('www-authenticate') ?? '', /resource_metadata="/);
    await refused(401, scimClient(baseUrl, 'nonsense')('GET', '/Users'));
    const unscoped = await scimFor(baseUrl, 'ada', 'data:read data:write setup:read');
    const { code } = await refused(403, unscoped('POST', '/Users', { userName: 'a@demo.example' }));
    assert.equal(code, 'SCOPE_INSUFFICIENT');
    const lesser = await scimFor(baseUrl, 'mia');
    for (const [method, path] of [
      ['GET', '/Users'],
      ['GET', `/Users/${ids['ada']}`],
      ['GET', '/Groups'],
      ['GET', '/ServiceProviderConfig'],
      ['POST', '/Users'],
      ['DELETE', `/Users/${ids['ada']}`],
      ['PATCH', '/Groups/OrderDesk'],
    ] as const)
      await refused(403, lesser(method, path, method === 'GET' ? undefined : '{"not even read'));
    await refused(403, (await scimFor(baseUrl, 'pat'))('GET', '/Users'));
    // The scope of provisioning alone opens nothing else.
    const other = api(baseUrl, await tokenFor(baseUrl, 'ada', 'users:manage'));
    assert.equal((await other.get('/data/User')).body.code, 'SCOPE_INSUFFICIENT');
  });

  it('grants no rights that its user does not hold', async () => {
    const user = (fields: object) => ({ userName: `${randomUUID()}@demo.example`, ...fields });
    await refused(403, bySam('POST', '/Users', user({ entitlements: [{ value: 'Administrator' }] })));
    await refused(403, bySam('POST', '/Users', user({ roles: ['Ceo'] })));
    const { id } = await expect(201, bySam('POST', '/Users', user({})));
    const change = (operation: object) => bySam('PATCH', `/Users/${id}`, patch(operation));
    await refused(403, change({ op: 'add', path: 'entitlements', value: [{ value: 'Administrator', primary: true }] }));
    await refused(403, change({ op: 'replace', path: 'entitlements.value', value: 'Administrator' }));
    await refused(403, bySam('PATCH', '/Groups/Deputy', add(id)));
    await refused(403, bySam('PATCH', '/Groups/Deputy', add(ids['sam']!)));
    await refused(403, bySam('PUT', `/Users/${ids['sam']}`, { userName: 'sam@demo.example', roles: ['Ceo'] }));
    // All or nothing: together with a user whom he may change.
    await refused(403, bySam('PATCH', '/Groups/Provisioner', add(id, ids['ada']!)));
    assert.equal((await expect(200, byAda('GET', `/Users/${id}`))).groups, undefined);
  });

  it('changes no user with more rights than its own', async () => {
    const target = `/Users/${ids['ada']}`;
    await refused(403, bySam('PATCH', target, patch({ op: 'replace', path: 'active', value: false })));
    await refused(403, bySam('PUT', target, { userName: 'taken@demo.example' }));
    await refused(403, bySam('DELETE', target));
    assert.equal((await expect(200, byAda('GET', target))).active, true);
    // Restoring a deleted administrator is no way to become one.
    const admin = { userName: 'former@demo.example', entitlements: [{ value: 'Administrator' }] };
    const { id } = await expect(201, byAda('POST', '/Users', admin));
    await expect(204, byAda('DELETE', `/Users/${id}`));
    await refused(403, bySam('POST', '/Users', { userName: admin.userName, emails: ['mine@demo.example'] }));
    assert.equal((await ada.get(`/data/User/${id}`)).body.active, false);
  });

  it('keeps the last administrator of a tenant, and prevents self-removal', async () => {
    await refused(400, byAda('DELETE', `/Users/${ids['ada']}`), 'invalidValue');
    const minimal = patch({ op: 'replace', path: 'entitlements', value: ['Minimal'] });
    await refused(400, byAda('PATCH', `/Users/${ids['ada']}`, minimal), 'invalidValue');
    assert.equal((await expect(200, byAda('GET', `/Users/${ids['ada']}`))).entitlements[0].value, 'Administrator');
  });

  it('shows no tenant to another', async () => {
    const byEve = await scimFor(platform.baseUrl, 'eve');
    const unknown = await refused(404, byEve('GET', `/Users/${randomUUID()}`));
    for (const [method, body] of [
      ['GET', undefined],
      ['PUT', { userName: 'x@acme.example' }],
      ['PATCH', patch({ op: 'replace', path: 'active', value: false })],
      ['DELETE', undefined],
    ] as const) {
      const found = await refused(404, byEve(method, `/Users/${ids['sam']}`, body));
      assert.deepEqual({ ...found, requestId: unknown.requestId }, unknown);
    }
    for (const filter of ['userName eq "sam@demo.example"', `id eq "${ids['sam']}"`, 'userName co "demo"'])
      assert.equal((await expect(200, byEve('GET', `/Users${filtered(filter)}`))).totalResults, 0, filter);
    const taken = await byEve('POST', '/Users', { userName: 'own@acme.example' });
    assert.equal(taken.status, 201);
    const foreign = patch({ op: 'add', path: 'members', value: [{ value: ids['sam'] }] });
    const groups = (await expect(200, byEve('GET', '/Groups'))).Resources;
    for (const { id } of groups.slice(0, 1))
      await refused(400, byEve('PATCH', `/Groups/${id}`, foreign), 'invalidValue');
    const manager = patch({ op: 'add', path: 'manager', value: ids['sam'] });
    await refused(400, byEve('PATCH', `/Users/${taken.body.id}`, manager), 'invalidValue');
  });

  it('creates one user for any number of requests at once', async () => {
    const body = { userName: 'racing@demo.example', externalId: 'race' };
    const answers = await Promise.all(Array.from({ length: 8 }, () => byAda('POST', '/Users', body)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, ...Array(7).fill(409)]);
    const found = await expect(200, byAda('GET', `/Users${filtered('userName eq "racing@demo.example"')}`));
    assert.equal(found.totalResults, 1);
  });

  it('loses no member of a group that is changed concurrently', async () => {
    const made = await Promise.all(
      Array.from({ length: 6 }, async (_, i) =>
        expect(201, byAda('POST', '/Users', { userName: `member${i}@demo.example` })),
      ),
    );
    await Promise.all(
      made.flatMap(({ id }) => [
        expect(200, byAda('PATCH', '/Groups/BillingApi', add(id))),
        expect(200, byAda('PATCH', '/Groups/CostInsight', add(id))),
        expect(200, byAda('PATCH', `/Users/${id}`, patch({ op: 'replace', path: 'locale', value: 'de-DE' }))),
      ]),
    );
    for (const { id } of made) {
      const { groups, locale } = await expect(200, byAda('GET', `/Users/${id}`));
      assert.deepEqual(groups.map(({ value }: { value: string }) => value).sort(), ['BillingApi', 'CostInsight']);
      assert.equal(locale, 'de-DE');
    }
  });

  it('applies a request completely or not at all, and identically when repeated after a lost process', async () => {
    const { body: me } = await ada.get('/identity');
    const schema = tenantSchema(me.tenant.id);
    const owner = new pg.Client(platform.database.url);
    await owner.connect();
    try {
      await owner.query(`CREATE FUNCTION ${schema}.fail() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'the process is lost here'; END $$`);
      await owner.query(
        `CREATE TRIGGER fail BEFORE INSERT ON ${schema}._external_ids EXECUTE FUNCTION ${schema}.fail()`,
      );
      const lost = await byAda('POST', '/Users', { userName: 'half@demo.example', externalId: 'half' });
      assert.equal(lost.status, 500);
      assert.doesNotMatch(JSON.stringify(lost.body), /process is lost/);
      await owner.query(`DROP TRIGGER fail ON ${schema}._external_ids`);
    } finally {
      await owner.end();
    }
    assert.equal(
      (await expect(200, byAda('GET', `/Users${filtered('userName eq "half@demo.example"')}`))).totalResults,
      0,
    );
    await expect(201, byAda('POST', '/Users', { userName: 'half@demo.example', externalId: 'half' }));
    // The bus repeats a call of a lost process: the gateway's very message a second time.
    const requestId = `req_${randomUUID().replaceAll('-', '').slice(0, 26).toUpperCase()}`;
    const asked = {
      operationId: 'scim.users.create',
      baseUrl: platform.baseUrl,
      path: {},
      query: {},
      headers: { idempotencyKey: `scim.${requestId}` },
      fingerprint: 'f'.repeat(64),
      body: Buffer.from(JSON.stringify({ userName: 'once@demo.example' })),
    };
    const request = {
      requestId,
      clientRequestId: null,
      tenantId: me.tenant.id,
      userId: me.user.id,
      clientId: me.connection.clientId,
      grantId: me.connection.grantId,
      scopes: ['users:manage'],
      agent: false,
      person: true,
      agentRunId: null,
      tokenExpiresAt: null,
      ip: null,
      channel: 'api',
      deadline: Date.now() + 30_000,
    };
    const send = () => call(platform.broker, 'data.scim.handle', asked, { meta: { request } });
    const [first, second] = [await send(), await send()];
    assert.deepEqual([first.status, second.status], [201, 201]);
    assert.deepEqual(second.body, first.body);
  });

  it('records completed and refused operations in the audit trail', async () => {
    const { id } = await expect(201, byAda('POST', '/Users', { userName: 'traced@demo.example' }));
    await expect(204, byAda('DELETE', `/Users/${id}`));
    const { body } = await ada.get(`/events/audit?objectApiName=User&recordId=${id}`);
    const entries = body.records.map((entry: { operationId: string; outcome: string }) => [
      entry.operationId,
      entry.outcome,
    ]);
    assert.deepEqual(entries.sort(), [
      ['scim.users.create', 'committed'],
      ['scim.users.delete', 'committed'],
    ]);
  });
});
