/**
 * A database that is restored, recovered or failed over, with real servers: followers of changes get a reset and
 * misses nothing, and the audit trail goes on.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { call } from '../../contracts/call.ts';
import { Database } from '../../mixins/database/database.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { unsealedRowsStatement } from '../../services/data/trail/chain.sql.ts';
import { sealTenant } from '../../services/data/trail/chain.ts';
import { type Answer, type Api, api, demoPassword, tokenFor } from '../support/client.ts';
import { exampleNamed } from '../support/examples.ts';
import { startPlatform, type TestPlatform, testEnvironment } from '../support/platform.ts';
import { postgresPrograms, type Server, Servers } from '../support/postgres.ts';
import { insist } from './stage.ts';

const OBJECT = `type: CustomObject
apiName: Crate__c
label: Crate
labelPlural: Crates
nameField:
  label: Name
  fieldType: text
sharingDefault: readWrite
api:
  published: true
features:
  history: true
`;

/** Somebody who keeps a copy as the guide says. */
class Follower {
  readonly copy = new Map<string, number>();
  readonly told: string[] = [];
  cursor = '';
  /** Times that it had to start over. */
  expired = 0;

  async begin(user: Api): Promise<this> {
    this.cursor = (await read(user, '/data/Crate__c/changes')).body.resumeCursor;
    await this.#fill(user);
    return this;
  }

  async #fill(user: Api): Promise<void> {
    this.copy.clear();
    for (const { id, recordVersion } of await list(user)) this.copy.set(id, recordVersion);
  }

  async follow(user: Api): Promise<void> {
    for (let cursor: string | null = this.cursor; cursor !== null; ) {
      const answer: Answer = await insist(() => user.get(`/data/Crate__c/changes?take=200&cursor=${cursor}`));
      if (answer.status === 400) {
        assert.equal(answer.body.code, 'SYNC_TOKEN_EXPIRED', answer.text);
        this.expired++;
        this.cursor = answer.body.details.oldestCursor;
        await this.#fill(user);
        cursor = this.cursor;
        continue;
      }
      assert.equal(answer.status, 200, answer.text);
      for (const { id, change, record } of answer.body.records) {
        this.told.push(id);
        if (change === 'upserted') this.copy.set(id, record.recordVersion);
        else this.copy.delete(id);
      }
      this.cursor = answer.body.resumeCursor;
      cursor = answer.body.nextCursor;
    }
  }

  /** Its copy is what the user sees. */
  async assertRight(user: Api): Promise<void> {
    const seen = (await list(user)).map(({ id, recordVersion }) => [id, recordVersion]);
    assert.deepEqual([...this.copy].sort(), seen.sort());
  }
}

async function read(user: Api, path: string): Promise<Answer> {
  const answer = await insist(() => user.get(path));
  assert.equal(answer.status, 200, answer.text);
  return answer;
}

const list = async (user: Api): Promise<{ id: string; recordVersion: number }[]> =>
  (await read(user, '/data/Crate__c?take=200&includeTotal=true')).body.records;

async function make(user: Api, name: string, times = 1): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < times; i++) {
    const idempotencyKey = randomUUID();
    const { status, body, text } = await insist(() => user.post('/data/Crate__c', { name }, { idempotencyKey }));
    assert.equal(status, 201, text);
    ids.push(body.id);
  }
  return ids;
}

describe('a database that is a copy', function () {
  this.timeout(120_000);
  let servers: Servers;
  let first: Server;
  let settings: string[];
  let tenantId: string;
  let platform: TestPlatform | undefined;

  const stopPlatform = async (): Promise<void> => {
    await platform?.stop();
    platform = undefined;
  };
  const startOn = async (url: string): Promise<Api> => {
    await stopPlatform();
    platform = await startPlatform({ seed: false, database: { name: 'erp', url, drop: async () => {} } });
    return api(platform.baseUrl, await tokenFor(platform.baseUrl, 'admin@one.example'));
  };

  before(async () => {
    servers = new Servers();
    settings = [
      'wal_level=replica',
      'max_wal_senders=4',
      'archive_mode=on',
      `archive_command=cp %p ${servers.folder('archive')}/%f`,
    ];
    first = await servers.create('first', settings);
    await first.query(
      `CREATE FUNCTION pg_input_is_valid(input text, type text) RETURNS boolean LANGUAGE sql AS 'SELECT true'`,
    );
    // The copies are on servers that have seen less.
    await first.query('DO $$ BEGIN FOR i IN 1..20000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$');
    await startPlatform({ seed: false, database: { name: 'erp', url: first.url(), drop: async () => {} } }).then(
      async (made) => {
        platform = made;
        ({ tenantId } = await call(made.broker, 'metadata.tenants.create', {
          template: 'empty',
          key: 'one',
          name: 'one',
        }));
        await call(made.broker, 'auth.domains.add', { tenantId, domain: 'one.example' });
        await call(made.broker, 'metadata.templates.deploy', {
          tenantId,
          files: { 'objects/Crate__c/object.yaml': OBJECT },
        });
        await call(made.broker, 'data.users.provision', {
          tenantId,
          users: [
            {
              username: 'admin@one.example',
              email: 'admin@one.example',
              displayName: 'admin',
              profileApiName: 'Administrator',
              password: demoPassword(),
            },
          ],
        });
      },
    );
  });
  after(async () => {
    await platform?.stop();
    await servers?.stop();
  });

  const deploy = (apiName: string) =>
    call(platform!.broker, 'metadata.templates.deploy', {
      tenantId,
      files: { [`objects/${apiName}/object.yaml`]: OBJECT.replace('Crate__c', apiName) },
    });

  /** Checks for every copy: a follower from before starts over and misses nothing, and so does a new one. */
  async function assertGoesOn(user: Api, before: Follower): Promise<void> {
    const fresh = await new Follower().begin(user);
    await before.follow(user);
    assert.equal(before.expired, 1, 'it is told that its position means nothing here');
    const made = await make(user, 'Made in the copy', 15);
    for (const follower of [before, fresh]) {
      follower.told.length = 0;
      await follower.follow(user);
      assert.deepEqual([...follower.told].sort(), [...made].sort(), 'all that was made, each once');
      await follower.assertRight(user);
    }
    assert.deepEqual([before.expired, fresh.expired], [1, 0]);
    await assertSeals(user);
  }

  /** The chain is whole, and sealing reads what is new. */
  async function assertSeals(user: Api): Promise<void> {
    const database = new Database(platform!.database.url, { size: 2, applicationName: 'sealing' });
    try {
      await sealTenant(database, tenantId);
      await make(user, 'To be sealed', 2);
      const [unsealed] = await Promise.all([
        database.tenant(tenantId, async (tx) => {
          const { snapshot } = await tx.one<{ snapshot: string }>({
            text: `SELECT snapshot::text FROM ${tx.schema}._audit_head`,
          });
          assert.ok(snapshot);
          return tx.all(unsealedRowsStatement(tx.schema, snapshot, null));
        }),
      ]);
      assert.ok(unsealed.length <= 4, `${unsealed.length} entries are read to seal those of two writes`);
      await sealTenant(database, tenantId);
      const { broken, unsealed: left } = await call(platform!.broker, 'data.audit.verify', { tenantId });
      assert.deepEqual([broken, left], [null, 0]);
    } finally {
      await database.close();
    }
  }

  /** As the guide for operators prints it. */
  async function restore(dump: string, url: string): Promise<void> {
    const block = exampleNamed('docs/guides/operators.md#backup 3').replace('…', url).replace('erp.dump', dump);
    const PATH = `${postgresPrograms()}:${process.env['PATH']}`;
    await promisify(execFile)('bash', ['--norc', '-ec', block], { env: { PATH, LANG: 'C' } });
  }

  it('restored with pg_restore into a new server', async () => {
    const user = await startOn(first.url());
    const follower = await new Follower().begin(user);
    await make(user, 'Before the dump', 3);
    await follower.follow(user);
    assert.equal(follower.expired, 0);
    await servers.run('pg_dump', first.url(), '--format=custom', `--file=${servers.path('erp.dump')}`);
    const second = await servers.create('second');
    await restoreRoles(first, second);
    await restore(servers.path('erp.dump'), second.url());
    await assertGoesOn(await startOn(second.url()), follower);
    await stopPlatform();
    await second.stop('SIGINT');
  });

  it('restored with pg_restore beside the old one in its server', async () => {
    const user = await startOn(first.url());
    const follower = await new Follower().begin(user);
    await servers.run('pg_dump', first.url(), '--format=custom', `--file=${servers.path('beside.dump')}`);
    await make(user, 'After the dump', 2);
    await follower.follow(user);
    await first.query('CREATE DATABASE beside', 'postgres');
    await restore(servers.path('beside.dump'), first.url('beside'));
    await assertGoesOn(await startOn(first.url('beside')), follower);
  });

  it('restored with pg_restore --clean in its place', async () => {
    const user = await startOn(first.url());
    const follower = await new Follower().begin(user);
    await servers.run('pg_dump', first.url(), '--format=custom', `--file=${servers.path('place.dump')}`);
    await make(user, 'After the dump', 2);
    await follower.follow(user);
    await stopPlatform();
    // Some of what it would drop has gone with something else, which it reports and passes over.
    const clean = ['--clean', '--if-exists', '--dbname', first.url(), servers.path('place.dump')];
    await assert.rejects(servers.run('pg_restore', ...clean), /errors ignored on restore/);
    await assertGoesOn(await startOn(first.url()), follower);
  });

  it('recovered to a point in time from a base backup and the log', async () => {
    const user = await startOn(first.url());
    await servers.baseBackup(first, 'recovered');
    const follower = await new Follower().begin(user);
    await make(user, 'Before the point', 2);
    await first.query(`SELECT pg_create_restore_point('point')`);
    await make(user, 'After the point', 2);
    await follower.follow(user);
    await first.query('SELECT pg_switch_wal()');
    await archived(first);
    servers.configure(
      'recovered',
      [
        `restore_command = 'cp ${servers.path('archive')}/%f %p'`,
        `recovery_target_name = 'point'`,
        `recovery_target_action = 'promote'`,
        'archive_mode = off',
      ],
      'recovery.signal',
    );
    await stopPlatform();
    const recovered = await servers.start('recovered', await freePort());
    await promoted(recovered);
    await assertGoesOn(await startOn(recovered.url()), follower);
    await stopPlatform();
    await recovered.stop('SIGINT');
  });

  it('put back with its old disk, as declared by the operator', async () => {
    await stopPlatform();
    await first.stop('SIGINT');
    servers.copy('first', 'disk');
    first = await servers.start('first', first.port, settings);
    const user = await startOn(first.url());
    const follower = await new Follower().begin(user);
    await make(user, 'After the copy', 2);
    await follower.follow(user);
    await stopPlatform();
    const disk = await servers.start('disk', await freePort());
    const again = await startOn(disk.url());
    assert.match(await restored(disk), /changes of 1 of 1 tenants start over/);
    assert.match(await restored(disk), /changes of 0 of 1 tenants start over/);
    await assertGoesOn(again, follower);
    await stopPlatform();
    await disk.stop('SIGINT');
  });

  it('put back with its old disk, and read from a position ahead of it', async () => {
    await stopPlatform();
    await first.stop('SIGINT');
    servers.copy('first', 'behind');
    first = await servers.start('first', first.port, settings);
    await first.query('DO $$ BEGIN FOR i IN 1..5000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$');
    const user = await startOn(first.url());
    await make(user, 'After the copy');
    const follower = await new Follower().begin(user);
    await stopPlatform();
    const behind = await servers.start('behind', await freePort());
    const again = await startOn(behind.url());
    // From then on it is known; who has begun here before starts over as well.
    await follower.follow(again);
    await assertGoesOn(again, follower);
    await stopPlatform();
    await behind.stop('SIGINT');
  });

  it('taken over by a replica that lacks the last change, under running processes', async () => {
    const user = await startOn(first.url());
    await servers.baseBackup(first, 'replica', ['--write-recovery-conf']);
    const follower = await new Follower().begin(user);
    await deploy('Lost__c');
    await read(user, '/data/Lost__c');
    await make(user, 'Replicated or not', 2);
    await follower.follow(user);
    await first.stop('SIGQUIT');
    // At the address of the server that is gone.
    const replica = await servers.start('replica', first.port);
    await replica.query('SELECT pg_promote()', 'postgres');
    await promoted(replica);
    await assertGoesOn(user, follower);
    // The version of the configuration that was lost is given again.
    await deploy('Kept__c');
    await read(user, '/data/Kept__c');
    assert.equal((await user.get('/data/Lost__c')).status, 404);
  });
});

/** Runs the command, as the owner of the database. */
async function restored(server: Server): Promise<string> {
  const env = { ...testEnvironment(server.url()), PATH: process.env['PATH'] };
  return (await promisify(execFile)(process.execPath, ['scripts/restored.ts'], { env })).stdout;
}

/** Roles belong to the server. */
async function restoreRoles(from: Server, to: Server): Promise<void> {
  const roles = await from.query<{ name: string }>(
    `SELECT rolname AS name FROM pg_roles WHERE rolname !~ '^(pg_|postgres$)'`,
  );
  for (const { name } of roles) await to.query(`CREATE ROLE "${name}" LOGIN NOINHERIT`);
  const members = await from.query<{ role: string; member: string }>(
    `SELECT pg_get_userbyid(roleid) AS role, pg_get_userbyid(member) AS member FROM pg_auth_members
      WHERE roleid > 16383 AND member > 16383`,
  );
  for (const { role, member } of members) await to.query(`GRANT "${role}" TO "${member}"`);
}

async function promoted(server: Server): Promise<void> {
  for (const end = Date.now() + 30_000; Date.now() < end; await pause(50)) {
    const [row] = await server.query<{ waits: boolean }>('SELECT pg_is_in_recovery() AS waits');
    if (!row!.waits) return;
  }
  throw new Error('The server is still in recovery.');
}

async function archived(server: Server): Promise<void> {
  for (const end = Date.now() + 30_000; Date.now() < end; await pause(50)) {
    const [row] = await server.query<{ done: boolean }>(
      `SELECT coalesce(last_archived_wal >= pg_walfile_name(pg_current_wal_lsn() - 16777216), false) AS done FROM pg_stat_archiver`,
    );
    if (row!.done) return;
  }
  throw new Error('The log was not archived.');
}
