/**
 * One tenant comes back from a backup of the whole database, while the others go on: by the commands that the guide for
 * operators prints, with a real dump and an owner of the database who is no superuser.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { call } from '../../contracts/call.ts';
import { Database } from '../../mixins/database/database.ts';
import { derivedUrl } from '../../mixins/database/logins.ts';
import { eraseDue } from '../../services/metadata/lifecycle/erase.ts';
import { type Api, api, demoPassword, forgetTokens, tokenFor } from '../support/client.ts';
import { exampleNamed, likeExample } from '../support/examples.ts';
import { type NatsServer, startNats } from '../support/nats.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { postgresPrograms, type Server, Servers } from '../support/postgres.ts';
import { root } from '../support/sources.ts';
import { NPM_RUN } from './printed-shell.ts';

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

describe('a tenant restored from a backup', function () {
  this.timeout(120_000);
  let servers: Servers;
  let nats: NatsServer;
  let server: Server;
  let folder: string;
  let platform: TestPlatform;
  const people = new Map<string, Api>();

  const url = (database: string): string => server.url(database).replace('postgres:unused', 'erp:unused');
  /** Commands that the guide prints in this section, with the addresses of this server; what they print. */
  const printed = (section: string, lines: (text: string) => string = (text) => text): Promise<string> =>
    run(lines(exampleNamed(`docs/guides/operators.md#${section}`)));
  const run = async (block: string): Promise<string> => {
    const text = block.replaceAll('db.internal:5432', `127.0.0.1:${server.port}`).replaceAll('erp:…@', 'erp:unused@');
    const { stdout } = await promisify(execFile)('bash', ['--norc', '-ec', NPM_RUN + text], {
      cwd: folder,
      env: {
        PATH: `${postgresPrograms()}:${process.env['PATH']}`,
        NODE: process.execPath,
        ROOT: root,
        LANG: 'C.UTF-8',
        DATABASE_URL: url('erp'),
        NATS_URL: nats.url,
        PGHOST: '127.0.0.1',
        PGPORT: String(server.port),
        PGUSER: 'postgres',
      },
    });
    return stdout;
  };
  const idOf = async (key: string): Promise<string> =>
    (await call(platform.broker, 'metadata.tenants.describe', { key }))[0]!.id;
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
    nats = await startNats();
    server = await servers.create('server');
    await server.query('CREATE ROLE erp LOGIN CREATEROLE', 'postgres');
    await server.query('ALTER DATABASE erp OWNER TO erp', 'postgres');
    folder = await mkdtemp(join(tmpdir(), 'erp-operator-'));
    platform = await startPlatform({
      seed: false,
      natsUrl: nats.url,
      database: { name: 'erp', url: url('erp'), drop: async () => {} },
    });
    for (const key of ['lakeside', 'other']) {
      const name = key === 'lakeside' ? 'Lakeside Bakery Ltd' : key;
      const { tenantId } = await call(platform.broker, 'metadata.tenants.create', { key, name });
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
    await nats?.stop();
    await servers?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it('has its earlier content, beside the current one and in its place', async () => {
    const [one, two] = [people.get('lakeside')!, people.get('other')!];
    const then = await crates(one);
    await server.query(exampleNamed('docs/guides/operators.md#backup'), 'postgres');
    await printed('backup 2');

    // The mistake that one of them wants undone; the other one goes on.
    const { records } = (await one.get('/data/Crate__c?take=10')).body;
    for (const { id } of records) {
      const { headers } = await one.get(`/data/Crate__c/${id}`);
      assert.equal((await one.delete(`/data/Crate__c/${id}`, { etag: headers.get('etag')! })).status, 200);
    }
    await make(two, 'After');
    const today = await crates(two);

    await printed('one-tenant');
    await printed('one-tenant 2');
    assert.match(await printed('one-tenant 3'), /file +whole/);

    await printed('one-tenant 4');
    const seen = await crates(await person('lakesidethen', await idOf('lakesidethen'), 'lakeside'));
    assert.deepEqual(
      seen.map(([name, version]) => [name, version]),
      then.map(([name, version]) => [name, version]),
    );

    const importing = (text: string): string[] => text.split(/(?<=\n)(?=.* import )/);
    await printed('one-tenant 5', (text) => importing(text)[0]!);
    const again = (): Promise<string> => printed('one-tenant 5', (text) => importing(text)[1]!);
    await assert.rejects(again(), /There is a tenant lakeside here, which is going to be erased/);
    // Requests that were admitted before have a minute.
    await server.query(`UPDATE metadata.tenants SET delete_at = now() - interval '1 s' WHERE key = 'lakeside'`, 'erp');
    const login = new Database(derivedUrl(url('erp'), 'metadata')!, { size: 2, applicationName: 'test' });
    await eraseDue(login, {
      eraseContents: async () => 0,
      erased: () => {},
      failed: (_, error) => assert.fail(String(error)),
      left: () => {},
    });
    await login.close();
    const [command = '', ...proof] = exampleNamed('docs/reference/tenants.md#the-proof').split(/(?<=\n)/);
    assert.match(await run(command.replace('$ ', '')), likeExample(proof.join('')));
    await again();
    const tenantId = await idOf('lakeside');
    const back = await person('lakeside', tenantId);
    assert.deepEqual(await crates(back), then);
    assert.equal((await call(platform.broker, 'data.audit.verify', { tenantId })).broken, null);
    await make(back, 'And on');
    assert.deepEqual(await crates(two), today);
  });
});
