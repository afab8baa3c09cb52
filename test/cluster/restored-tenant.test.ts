/**
 * One tenant comes back from a backup of the whole database, while the others go on: as the guide for operators says, with a
 * real dump and an owner of the database who is no superuser.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { call } from '../../contracts/call.ts';
import { Database } from '../../mixins/database/database.ts';
import { derivedUrl } from '../../mixins/database/logins.ts';
import { eraseDue } from '../../services/metadata/life/erase.ts';
import { type Api, api, demoPassword, forgetTokens, tokenFor } from '../support/client.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { type Server, Servers } from '../support/postgres.ts';
import { root } from '../support/sources.ts';

const OBJECT = `type: CustomObject
apiName: Crate__c
label: Crate
labelPlural: Crates
nameField:
  label: Name
  fieldType: text
sharingDefault: private
api:
  published: true
features:
  history: true
  search: true
`;

describe('a tenant that is restored from a backup', function () {
  this.timeout(120_000);
  let servers: Servers;
  let server: Server;
  let platform: TestPlatform;
  const people = new Map<string, Api>();

  const url = (database: string): string => server.url(database).replace('postgres:unused', 'erp:unused');
  const tenant = async (database: string, ...args: string[]): Promise<Record<string, unknown>> => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [join(root, 'scripts/tenant.ts'), ...args, '--json'],
      { env: { ...process.env, DATABASE_URL: url(database) } },
    );
    return JSON.parse(stdout);
  };
  const person = async (key: string, tenantId: string, domain = key): Promise<Api> => {
    const username = `admin@${domain}.example`;
    const { signInNames } = await call(platform.broker, 'data.users.provision', {
      tenantId,
      users: [
        { username, email: username, displayName: 'Admin', profileApiName: 'Administrator', password: demoPassword() },
      ],
    });
    // The user of this name may have been one of a tenant that is gone.
    forgetTokens(platform.baseUrl);
    return api(platform.baseUrl, await tokenFor(platform.baseUrl, signInNames[username]!));
  };
  const make = async (user: Api, name: string): Promise<void> => {
    const answer = await user.post('/data/Crate__c', { name });
    assert.equal(answer.status, 201, answer.text);
  };
  const crates = async (user: Api): Promise<[string, number, string][]> =>
    (await user.get('/data/Crate__c?take=200')).body.records
      .map(({ name, recordVersion, ownerId }: Record<string, unknown>) => [name, recordVersion, ownerId])
      .sort();

  before(async () => {
    servers = new Servers();
    server = await servers.create('server');
    await server.query('CREATE ROLE erp LOGIN CREATEROLE', 'postgres');
    await server.query('CREATE DATABASE live OWNER erp', 'postgres');
    platform = await startPlatform({ seed: false, database: { name: 'live', url: url('live'), drop: async () => {} } });
    for (const key of ['one', 'two']) {
      const { tenantId } = await call(platform.broker, 'metadata.tenants.create', { key, name: key });
      await call(platform.broker, 'auth.domains.add', { tenantId, domain: `${key}.example` });
      await call(platform.broker, 'metadata.templates.deploy', {
        tenantId,
        files: { 'objects/Crate__c/object.yaml': OBJECT },
      });
      const user = await person(key, tenantId);
      people.set(key, user);
      for (let i = 0; i < 20; i++) await make(user, `Before ${i}`);
    }
  });
  after(async () => {
    await platform?.stop();
    await servers?.stop();
  });

  it('has what it had then, beside the one of today and in its place', async () => {
    const [one, two] = [people.get('one')!, people.get('two')!];
    const then = await crates(one);
    await server.query('CREATE ROLE backup LOGIN BYPASSRLS; GRANT pg_read_all_data TO backup', 'postgres');
    const dump = servers.path('erp.dump');
    const live = server.url('live').replace('postgres:unused', 'backup:unused');
    await servers.run('pg_dump', live, '--format=custom', `--file=${dump}`);

    // The mistake that one of them wants undone; the other one goes on.
    const { records } = (await one.get('/data/Crate__c?take=10')).body;
    for (const { id } of records) {
      const { headers } = await one.get(`/data/Crate__c/${id}`);
      assert.equal((await one.delete(`/data/Crate__c/${id}`, { etag: headers.get('etag')! })).status, 200);
    }
    await make(two, 'After');
    const today = await crates(two);

    await server.query('CREATE DATABASE scratch OWNER erp', 'postgres');
    for (const section of ['pre-data', 'data', 'post-data'])
      await servers.run(
        'pg_restore',
        '--exit-on-error',
        `--section=${section}`,
        '--dbname',
        server.url('scratch'),
        dump,
      );
    await promisify(execFile)(process.execPath, [join(root, 'scripts/migrate.ts')], {
      env: { ...process.env, DATABASE_URL: url('scratch') },
    });
    const file = servers.path('one.tar.gz');
    const exported = await tenant('scratch', 'export', 'one', '--to', file);

    const beside = await tenant('live', 'import', file, '--key', 'oneagain', '--without-domains');
    assert.equal(beside['newUserIds'], true);
    const seen = await crates(await person('oneagain', String(beside['tenantId']), 'one'));
    assert.deepEqual(
      seen.map(([name, version]) => [name, version]),
      then.map(([name, version]) => [name, version]),
    );

    await call(platform.broker, 'metadata.tenants.delete', { key: 'one', confirm: 'one', graceDays: 0 });
    await assert.rejects(tenant('live', 'import', file), /There is a tenant one here, which is going to be erased/);
    // Requests that were admitted before have a minute.
    await server.query(`UPDATE metadata.tenants SET delete_at = now() WHERE key = 'one'`, 'live');
    const login = new Database(derivedUrl(url('live'), 'metadata')!, { size: 2, applicationName: 'test' });
    await eraseDue(login, { erased: () => {}, failed: (_, error) => assert.fail(String(error)), left: () => {} });
    await login.close();
    const again = await tenant('live', 'import', file);
    assert.deepEqual([again['newUserIds'], again['domains']], [false, ['one.example']]);
    const back = await person('one', String(again['tenantId']));
    assert.deepEqual(await crates(back), then);
    const { broken, position } = await call(platform.broker, 'data.audit.verify', {
      tenantId: String(again['tenantId']),
      expect: exported['audit'] as { position: number; hash: string },
    });
    assert.equal(broken, null);
    assert.ok(position >= (exported['audit'] as { position: number }).position);
    await make(back, 'And on');
    assert.deepEqual(await crates(two), today);
  });
});
