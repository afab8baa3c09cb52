import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { Database } from '../../../mixins/database/database.ts';
import { callAction } from '../../../scripts/console/call.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { exampleNamed } from '../../support/examples.ts';
import { deploymentEnded, fieldFile, objectFiles, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { until } from '../../support/until.ts';

describe('API: canceling a deployment', () => {
  let platform: TestPlatform;
  let database: Database;
  let schema: string;
  let ada: Api;
  let sam: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
    database = new Database(platform.database.url, { size: 4, applicationName: 'cancel test' });
    const { tenant } = (await ada.get('/identity')).body;
    schema = `"t_${tenant.id.replaceAll('-', '')}"`;
  });
  after(async () => {
    await database?.close();
    await platform?.stop();
  });

  const deploy = (files: Record<string, string>, more: object = {}): Promise<Answer> =>
    ada.post('/metadata/deploy', { files, package: wholePackage(files), ...more });
  const pathOf = ({ body }: Answer): string => `/metadata/deployments/${body.deploymentId}`;
  const cancel = (accepted: Answer, reason?: string, who = ada): Promise<Answer> =>
    who.post(`${pathOf(accepted)}/cancel`, reason === undefined ? undefined : { reason });
  const inState = async (accepted: Answer, status: string): Promise<void> => {
    for (let i = 0; i < 400; i++) {
      const { body } = await ada.get(pathOf(accepted));
      if (body.status === status) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.fail(`The deployment was never ${status}.`);
  };
  const waitingFor = async (event: string): Promise<number> =>
    (
      await database.query('SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = $1', [
        event,
      ])
    ).rowCount;
  /** Makes every deployment wait before it has its locks. */
  const whileHeld = async (work: () => Promise<void>): Promise<void> => {
    const holder = await database.pool.connect();
    try {
      await holder.query('BEGIN');
      await holder.query(`SELECT FROM ${schema}._state FOR SHARE`);
      await work();
    } finally {
      await holder.query('ROLLBACK');
      holder.release();
    }
  };

  it('rolls back a running one, and ends a waiting one at once', async () => {
    await whileHeld(async () => {
      const first = await deploy(objectFiles('Canceled__c'));
      const second = await deploy(objectFiles('Waiting__c'));
      await inState(first, 'APPLYING');
      const ended = await cancel(second);
      assert.deepEqual(
        [ended.status, ended.body.status, ended.body.cancelRequested, ended.body.progress.stage],
        [202, 'CANCELED', true, 'done'],
      );
      const asked = await cancel(first, 'Wrong branch.');
      assert.deepEqual([asked.status, asked.body.status], [202, 'CANCELING'], asked.text);
      const again = await cancel(first, 'Once more.');
      assert.deepEqual([again.status, again.body.cancelReason], [202, 'Wrong branch.']);
      const began = performance.now();
      const done = await deploymentEnded(ada, { ...first, status: 202 });
      assert.ok(performance.now() - began < 20_000, 'while the lock is still held');
      assert.deepEqual([done.status, done.cancelReason, done.error], ['CANCELED', 'Wrong branch.', null]);
      const { user } = (await ada.get('/identity')).body;
      assert.equal(done.canceledBy, user.id);
      const refused = await cancel(first);
      assert.deepEqual(
        [refused.status, refused.body.code, refused.body.details],
        [409, 'DEPLOYMENT_NOT_CANCELABLE', { status: 'CANCELED' }],
      );
    });
    assert.equal((await ada.get('/objects/Canceled__c/describe')).status, 404);
    const next = await deploymentEnded(ada, await deploy(objectFiles('Canceled__c')));
    assert.equal(next.status, 'SUCCEEDED', 'the next one works');
    const { rows: trail } = await database.query<{ changes: object }>(
      `SELECT changes FROM ${schema}._audit
        WHERE operation_id = 'metadata.deployments.cancel' AND changes ->> 'reason' = 'Wrong branch.'`,
    );
    assert.equal(trail.length, 1);
  });

  it('can be requested by an operator in the console as the guide prints it', async () => {
    const lines = exampleNamed('docs/guides/operators.md#deployments').matchAll(/^erp \$ call (\S+)(?: '(.+)')?$/gm);
    await whileHeld(async () => {
      const accepted = await deploy(objectFiles('Operated__c'));
      await inState(accepted, 'APPLYING');
      const id: string = accepted.body.deploymentId;
      for (const [line, action = '', params] of lines) {
        const typed = params?.replace('lakeside', 'demo').replace('<deploymentId>', id);
        assert.ok((await callAction(platform.broker, action, typed ? [typed] : [])).includes(id), line);
      }
      const done = await deploymentEnded(ada, { ...accepted, status: 202 });
      assert.deepEqual([done.status, done.cancelReason], ['CANCELED', 'It holds up the month end.']);
    });
  });

  it('stops a long-running statement', async () => {
    await deploymentEnded(ada, await deploy(objectFiles('Long__c', { A__c: 'fieldType: text' })));
    await database.query(`CREATE FUNCTION metadata.slow() RETURNS event_trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM pg_sleep(30); END $$`);
    await database.query(`CREATE EVENT TRIGGER slow_ddl ON ddl_command_end EXECUTE FUNCTION metadata.slow()`);
    try {
      const slow = await deploy(fieldFile('Long__c', 'B__c', 'fieldType: text'));
      const sleeping = async (): Promise<boolean> => (await waitingFor('PgSleep')) > 0;
      while (!(await sleeping())) await new Promise((resolve) => setTimeout(resolve, 20));
      const began = performance.now();
      assert.equal((await cancel(slow)).body.status, 'CANCELING');
      assert.equal((await deploymentEnded(ada, slow)).status, 'CANCELED');
      assert.ok(performance.now() - began < 20_000, 'before the statement ends');
    } finally {
      await database.query('DROP EVENT TRIGGER slow_ddl');
    }
    const { body } = await ada.get('/objects/Long__c/describe');
    assert.ok(!body.fields.some(({ apiName }: { apiName: string }) => apiName === 'B__c'));
  });

  it('shows its progress until then', async () => {
    const fields = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`F${i}__c`, 'fieldType: text']));
    const objects = ['Far0__c', 'Far1__c', 'Far2__c', 'Far3__c'];
    // Half of the tables exist when it sleeps.
    await database.query(`CREATE OR REPLACE FUNCTION metadata.slow() RETURNS event_trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM pg_sleep(30) FROM pg_event_trigger_ddl_commands() WHERE object_identity LIKE '%Far2__c%'; END $$`);
    await database.query('CREATE EVENT TRIGGER slow_ddl ON ddl_command_end EXECUTE FUNCTION metadata.slow()');
    try {
      const slow = await deploy(Object.assign({}, ...objects.map((name) => objectFiles(name, fields))));
      let progress: { stage?: string; done?: number; total?: number; position?: null } = {};
      // It stands still where the statement sleeps.
      await until(async () => {
        progress = (await ada.get(pathOf(slow))).body.progress;
        const [listed] = (await ada.get('/metadata/deployments?take=1')).body.records;
        return progress.stage === 'apply' && progress.done! > 0 && isDeepStrictEqual(listed.progress, progress);
      });
      assert.deepEqual([progress.total, progress.position, progress.done! < 244], [244, null, true]);
      await cancel(slow);
      assert.equal((await deploymentEnded(ada, slow)).status, 'CANCELED');
    } finally {
      await database.query('DROP EVENT TRIGGER slow_ddl');
    }
  });

  it('has no effect when the last step has begun: the deployment succeeds', async () => {
    // A slow commit, with the row of the deployment locked.
    await database.query(`CREATE FUNCTION metadata.hold() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NULL; END $$`);
    await database.query(`CREATE CONSTRAINT TRIGGER hold AFTER UPDATE ON metadata.deployments
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.status = 'SUCCEEDED' AND OLD.status = 'APPLYING')
      EXECUTE FUNCTION metadata.hold()`);
    const holder = await database.pool.connect();
    try {
      await holder.query('SELECT pg_advisory_lock(4711)');
      const accepted = await deploy(objectFiles('Late__c'));
      const committing = async (): Promise<boolean> => (await waitingFor('advisory')) > 0;
      while (!(await committing())) await new Promise((resolve) => setTimeout(resolve, 20));
      const asked = cancel(accepted, 'Too late.');
      const waits = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
        AND query LIKE 'SELECT status%FROM metadata.deployments%FOR UPDATE'`;
      await until(async () => (await database.query(waits)).rowCount > 0);
      await holder.query('SELECT pg_advisory_unlock(4711)');
      const answer = await asked;
      assert.deepEqual([answer.status, answer.body.status, answer.body.cancelRequested], [202, 'SUCCEEDED', true]);
      const done = (await ada.get(pathOf(accepted))).body;
      assert.deepEqual([done.status, done.cancelRequested, done.cancelReason], ['SUCCEEDED', true, 'Too late.']);
      assert.equal((await ada.get('/objects/Late__c/describe')).status, 200);
    } finally {
      await holder.query('SELECT pg_advisory_unlock_all()');
      holder.release();
      await database.query('DROP TRIGGER hold ON metadata.deployments');
    }
  });

  it('deletes the files of canceled deployments, however many there are', async () => {
    const files = { ...objectFiles('Forgotten__c') };
    for (const path of Object.keys(files)) files[path] += `# ${'x'.repeat(20_000)}\n`;
    const canceled: Answer[] = [];
    await whileHeld(async () => {
      canceled.push(await deploy(files));
      await inState(canceled[0]!, 'APPLYING');
      for (let n = 1; n <= 70; n++) {
        canceled.push(await deploy(files));
        assert.equal((await cancel(canceled[n]!)).body.status, 'CANCELED');
      }
      assert.equal((await cancel(canceled[0]!)).body.status, 'CANCELING');
      assert.equal((await deploymentEnded(ada, { ...canceled[0]!, status: 202 })).status, 'CANCELED');
    });
    const { rows } = await database.query<{ status: string; files: string; count: number }>(
      `SELECT status, left(files::text, 10) AS files, count(*)::integer FROM metadata.deployments
        WHERE deployment_id = ANY ($1) GROUP BY 1, 2`,
      [canceled.map(({ body }) => body.deploymentId)],
    );
    assert.deepEqual(rows, [{ status: 'CANCELED', files: '{}', count: 71 }]);
  });

  it('requires the permission, and finds only deployments of the tenant', async () => {
    const accepted = await deploy({}, { checkOnly: true, package: { version: 1, types: [] } });
    assert.equal((await cancel(accepted, 'no', sam)).body.code, 'METADATA_PERMISSION_DENIED');
    const eve = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'eve'));
    for (const id of [accepted.body.deploymentId, '0193d3c1-7a20-7c11-8a55-2f0e4b6c9d01'])
      assert.equal((await eve.post(`/metadata/deployments/${id}/cancel`, {})).body.code, 'DEPLOYMENT_NOT_FOUND');
    const long = await cancel(accepted, 'x'.repeat(2_001));
    assert.deepEqual([long.status, long.body.code], [400, 'PARAMETER_INVALID']);
    await deploymentEnded(ada, accepted);
  });
});
