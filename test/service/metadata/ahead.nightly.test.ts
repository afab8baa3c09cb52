import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { tenantSchema } from '../../../lib/context.ts';
import { migrateServices } from '../../../main.ts';
import { Database } from '../../../mixins/database/database.ts';
import { workAhead } from '../../../services/metadata/deployments/ahead.ts';
import { DeploymentWorker } from '../../../services/metadata/deployments/run.ts';
import type { AheadStep } from '../../../services/metadata/physical/ahead.ts';
import { makePlan } from '../../../services/metadata/planner/plan.ts';
import { Planning } from '../../../services/metadata/planning/planning.ts';
import { prepare } from '../../../services/metadata/prepare.ts';
import { readProject } from '../../../services/metadata/project/project.ts';
import { loadState, requireTenant, tenantInfo } from '../../../services/metadata/store.ts';
import { createTenant, deployTemplate } from '../../../services/metadata/tenants.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { configuration } from '../../support/metadata-configurations.ts';
import { fieldFile, objectFiles, type StartedTenant, startMetadataTenant } from '../../support/metadata-tenant.ts';
import { insertQuietly } from '../../support/quiet-deployment.ts';
import { dumpSchema } from '../../support/schema-dump.ts';

type Files = Record<string, string>;

/** Indexes that a deployment of these files could build ahead. */
async function stepsOf(database: Database, tenantId: string, files: Files): Promise<readonly AheadStep[]> {
  const project = await readProject(files, null, { template: true });
  return database.shared('metadata', tenantId, async (tx) => {
    const [tenant, state] = [await requireTenant(tx, tenantId), await loadState(tx, tenantId)];
    const plan = makePlan(state, project, { platform: true, allowDestructiveChanges: false });
    const options = { deploymentId: null };
    return prepare(tenantInfo(tenant), tenant.metadataVersion + 1, state, plan, options)?.ddl.ahead ?? [];
  });
}

/** Names of what has been made ahead and is there. */
async function hidden(database: Database, tenantId: string): Promise<string[]> {
  const { rows } = await database.query<{ name: string }>(
    `SELECT attname::text AS name FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
       WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r' AND attname ~ '^_n[0-9a-f]{8}_' AND NOT attisdropped
     UNION ALL SELECT relname FROM pg_class WHERE relnamespace = $1::regnamespace AND relname ~ '^_n[0-9a-f]{8}_'
     UNION ALL SELECT conname FROM pg_constraint WHERE connamespace = $1::regnamespace AND conname ~ '^_n[0-9a-f]{8}_'
       AND contype = 'f'`,
    [`"${tenantSchema(tenantId)}"`],
  );
  return rows.map(({ name }) => name).sort();
}

describe('metadata: indexes built ahead of a deployment', () => {
  let test: TestDatabase;
  let database: Database;
  let tenants = 0;
  before(async () => {
    test = await createDatabase();
    database = new Database(test.url, { size: 4, applicationName: 'ahead test' });
    await migrateServices(database, ['metadata']);
  });
  after(async () => {
    await database?.close();
    await test?.drop();
  });

  const tenantWith = async (files: Files): Promise<string> => {
    const { tenant } = await createTenant(database, 'local', { key: `ahead${tenants++}`, name: 'Ahead' });
    if (Object.keys(files).length > 0) await deployTemplate(database, tenant.id, files);
    return tenant.id;
  };
  const dump = async (tenantId: string): Promise<string> => {
    const schema = tenantSchema(tenantId);
    return (await dumpSchema(database, schema)).replaceAll(schema, 'T');
  };
  /** Deploys with and without work ahead, and compares what PostgreSQL knows afterwards, to the order of columns. */
  const compared = async (one: Files, two: Files): Promise<number> => {
    const [ahead, without] = [await tenantWith(one), await tenantWith(one)];
    const steps = await stepsOf(database, ahead, two);
    await workAhead(database, ahead, steps, { fromBytes: 0 });
    assert.equal((await hidden(database, ahead)).length, steps.length);
    if (Object.keys(two).length > 0)
      for (const tenantId of [ahead, without]) await deployTemplate(database, tenantId, two);
    assert.equal(await dump(ahead), await dump(without));
    assert.deepEqual(await hidden(database, ahead), []);
    return steps.length;
  };

  it('lead to the same schema as a deployment without them', async function () {
    this.timeout(120_000);
    let made = 0;
    await fc.assert(
      fc.asyncProperty(configuration, configuration, async (one, two) => {
        made += await compared(one, two);
      }),
      { numRuns: 20 },
    );
    assert.ok(made > 0, 'something was made ahead');
  });

  it('include indexes and keys of new columns, without changing names in constants', async function () {
    this.timeout(30_000);
    const deal = (more: Files = {}, head = ''): Files => ({
      ...objectFiles('Firm__c'),
      ...objectFiles('Deal__c', { Old__c: 'fieldType: text' }, head),
      ...more,
    });
    const more: Files = {
      ...fieldFile('Deal__c', 'Firm__c', 'fieldType: reference\nreferenceTo: [Firm__c]'),
      ...fieldFile('Deal__c', 'Code__c', 'fieldType: text\nunique: true'),
      ...fieldFile('Deal__c', 'Kind__c', 'fieldType: text\nrequired: true\ndefaultValue: plain'),
      ...fieldFile('Deal__c', 'Old__c', 'fieldType: text\nexternalId: true'),
      'groups/All.yaml': 'type: Group\napiName: All\nlabel: All\n',
      'objects/Deal__c/sharingRules/Odd.yaml':
        'type: SharingRule\napiName: Odd\nobject: Deal__c\nkind: criteria\n' +
        `criteria: record.Kind__c == '"Kind__c"'\nto:\n  group: All\naccess: read\n`,
    };
    assert.ok((await compared(deal(), deal(more, 'sharingDefault: private\n'))) >= 8);
  });

  it('omit a unique index whose values are no longer distinct, leaving no partial index', async () => {
    const files = objectFiles('Pair__c', { Code__c: 'fieldType: text' });
    const tenantId = await tenantWith(files);
    await database.tenant(tenantId, (tx) =>
      tx.query(
        `INSERT INTO ${tx.schema}."Pair__c" (id, "ownerId", "createdAt", "createdById", "updatedAt", "updatedById", "Code__c")
        SELECT gen_random_uuid(), $1, now(), $1, now(), $1, 'same' FROM generate_series(1, 2)`,
        [tenantId],
      ),
    );
    const steps = await stepsOf(database, tenantId, fieldFile('Pair__c', 'Code__c', 'fieldType: text\nunique: true'));
    assert.deepEqual(
      steps.map(({ kind }) => kind),
      ['index'],
    );
    await workAhead(database, tenantId, steps, { fromBytes: 0 });
    assert.deepEqual(await hidden(database, tenantId), []);
  });

  it('replace leftovers of another deployment', async () => {
    const tenantId = await tenantWith(objectFiles('Left__c', { Code__c: 'fieldType: text' }));
    const more = {
      ...fieldFile('Left__c', 'Code__c', 'fieldType: text\nunique: true'),
      ...fieldFile('Left__c', 'Up__c', 'fieldType: reference\nreferenceTo: [Left__c]'),
    };
    const empty = await dump(tenantId);
    await workAhead(database, tenantId, await stepsOf(database, tenantId, more), { fromBytes: 0 });
    assert.equal((await hidden(database, tenantId)).length, 4);
    await workAhead(database, tenantId, []);
    assert.equal(await dump(tenantId), empty);
  });
});

describe('metadata: deployments of large tables', () => {
  let t: StartedTenant;
  before(async function () {
    this.timeout(60_000);
    t = await startMetadataTenant();
    await t.deployed(objectFiles('Big__c', { Code__c: 'fieldType: text', Word__c: 'fieldType: text' }));
    await t.database.query(
      `INSERT INTO ${t.schema}."Big__c"
          (id, "ownerId", "createdAt", "createdById", "updatedAt", "updatedById", name, "Code__c", "Word__c")
        SELECT gen_random_uuid(), $1, now(), $1, now(), $1, 'n' || i, 'c' || i, repeat('w', 100)
        FROM generate_series(1, 10000) i`,
      [t.users['admin']],
    );
  });
  after(() => t?.stop());

  const UNIQUE = fieldFile('Big__c', 'Code__c', 'fieldType: text\nunique: true');
  const CODE_INDEX = /^_n[0-9a-f]{8}_u_[0-9a-f]{8}_Code__c$/;

  it('leave no index when they fail', async function () {
    this.timeout(30_000);
    await t.database.query(`ALTER TABLE ${t.schema}."Big__c" ADD COLUMN "Clash__c" text`);
    const failed = await t.deploy({ ...UNIQUE, ...fieldFile('Big__c', 'Clash__c', 'fieldType: text') });
    assert.deepEqual([failed.status, failed.error.code], ['FAILED', 'APPLY_FAILED']);
    assert.deepEqual(await hidden(t.database, t.tenantId), []);
    await t.database.query(`ALTER TABLE ${t.schema}."Big__c" DROP COLUMN "Clash__c"`);
  });

  /** A worker of its own process dies behind the work ahead, before the transaction. */
  const killed = async (files: Files): Promise<string> => {
    const deploymentId = await insertQuietly(t, files);
    const blocker = await t.database.pool.connect();
    try {
      await blocker.query('BEGIN');
      await blocker.query(`SELECT FROM ${t.schema}._state FOR SHARE`);
      const worker = spawn(
        process.execPath,
        ['--input-type=module', '-e', "await import('./worker-process.ts')", t.platform.database.url, t.tenantId, '60'],
        { cwd: import.meta.dirname, stdio: ['ignore', 'inherit', 'inherit'] },
      );
      const waiting = async (): Promise<boolean> =>
        (
          await t.database.query(
            `SELECT FROM pg_stat_activity WHERE datname = current_database()
              AND application_name LIKE 'deployment %' AND wait_event_type = 'Lock' AND query LIKE 'LOCK TABLE%_state%'`,
          )
        ).rowCount > 0;
      while (!(await waiting())) await pause(20);
      worker.kill('SIGKILL');
      await once(worker, 'exit');
    } finally {
      await blocker.query('ROLLBACK');
      blocker.release();
    }
    return deploymentId;
  };
  const release = (deploymentId: string): Promise<unknown> =>
    t.database.query('UPDATE metadata.deployments SET lease_until = now() WHERE deployment_id = $1', [deploymentId]);
  const fileOf = async (index: string): Promise<number | undefined> =>
    (
      await t.database.query<{ file: number }>(
        'SELECT relfilenode AS file FROM pg_class WHERE relnamespace = $1::regnamespace AND relname ~ $2',
        [t.schema, index],
      )
    ).rows[0]?.file;

  /** Works off what is open in this process; `planned` is called behind each plan. */
  const workOff = async (planned: () => Promise<void> = async () => {}): Promise<void> => {
    const planning = new Planning();
    const run = planning.run.bind(planning);
    planning.run = (tenantId, task, input, options) => {
      const running = run(tenantId, task, input, options);
      return task === 'conclude' ? running.finally(planned) : running;
    };
    try {
      await new DeploymentWorker(t.database, {
        planning,
        leaseSeconds: 60,
        rateLimits: t.platform.config.rateLimits,
        committed: () => {},
        failed: (error) => assert.fail(String(error)),
      }).run(t.tenantId);
    } finally {
      await planning.close();
    }
  };
  const set = (deploymentId: string, sql: string): Promise<unknown> =>
    t.database.query(`UPDATE metadata.deployments SET ${sql} WHERE deployment_id = $1`, [deploymentId]);

  it('leave no index when canceled while replanning', async function () {
    this.timeout(30_000);
    const deploymentId = await insertQuietly(t, UNIQUE);
    let plans = 0;
    await workOff(async () => {
      plans += 1;
      // Somebody's permissions change while the index is made.
      if (plans === 1) await t.database.query(`UPDATE ${t.schema}._state SET access_version = access_version + 1`);
      else await set(deploymentId, "status = 'CANCELING', cancel_requested = true");
    });
    assert.equal(plans, 2);
    assert.equal(await t.state(deploymentId), 'CANCELED');
    assert.deepEqual(await hidden(t.database, t.tenantId), []);
  });

  for (const [how, sql, ends] of [
    ['was lost while it canceled', "status = 'CANCELING', cancel_requested = true", 'CANCELED'],
    ['was lost too often', 'takes = 3', 'FAILED'],
  ] as const)
    it(`leave no index when their worker ${how}`, async function () {
      this.timeout(30_000);
      const deploymentId = await killed(UNIQUE);
      assert.equal((await hidden(t.database, t.tenantId)).length, 1);
      await set(deploymentId, `${sql}, lease_until = now() - interval '1 s'`);
      await workOff();
      assert.equal((await t.finished(deploymentId)).status, ends);
      assert.deepEqual(await hidden(t.database, t.tenantId), []);
    });

  it('reuse the indexes of a killed worker', async function () {
    this.timeout(30_000);
    const deploymentId = await killed(UNIQUE);
    const [name, ...more] = await hidden(t.database, t.tenantId);
    assert.match(name ?? '', CODE_INDEX);
    assert.deepEqual(more, []);
    // Writers are refused from now on what the deployment will refuse.
    await assert.rejects(t.database.query(`UPDATE ${t.schema}."Big__c" SET "Code__c" = 'c1' WHERE "Code__c" = 'c2'`), {
      code: '23505',
      constraint: name,
    });
    const file = await fileOf(CODE_INDEX.source);
    await release(deploymentId);
    await t.deployed(objectFiles('Next__c'));
    assert.equal((await t.finished(deploymentId)).status, 'SUCCEEDED');
    assert.deepEqual(await hidden(t.database, t.tenantId), []);
    assert.equal(await fileOf('^_u_[0-9a-f]{8}_Code__c$'), file, 'the index was not made again');
  });

  it('drop the indexes of an unfinished deployment', async function () {
    this.timeout(30_000);
    const files = {
      ...fieldFile('Big__c', 'Up__c', 'fieldType: reference\nreferenceTo: [Big__c]'),
      ...fieldFile('Big__c', 'Word__c', 'fieldType: text\nexternalId: true'),
    };
    const deploymentId = await killed(files);
    assert.equal((await hidden(t.database, t.tenantId)).length, 4);
    await t.database.query(
      `UPDATE metadata.deployments SET status = 'FAILED', lease_token = NULL, finished_at = now() WHERE deployment_id = $1`,
      [deploymentId],
    );
    await t.deployed(objectFiles('Last__c'));
    assert.deepEqual(await hidden(t.database, t.tenantId), []);
  });
});
