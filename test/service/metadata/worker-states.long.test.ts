import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { derivedUrl } from '../../../mixins/database/logins.ts';
import { LEASE_SECONDS } from '../../../services/metadata/deployments/lease.ts';
import { createMetadataTenant, fieldFile, type MetadataTenant, objectFiles } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { processStarted, processStopped } from '../../support/processes.ts';
import { insertQuietly, leaveAlone } from '../../support/quiet-deployment.ts';

/** Maximum time until lost work resumes, as docs/reference/metadata.md promises. */
const TAKEN_MS = 5_000;

const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

describe('metadata: a worker killed in any state', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let t: MetadataTenant;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform({ seed: false });
    t = await createMetadataTenant(platform);
  });
  after(async () => {
    await t?.database.close();
    await platform?.stop();
  });

  const startWorker = (): ChildProcess => {
    const worker = spawn(
      process.execPath,
      [
        '--input-type=module',
        '-e',
        "await import('./worker-process.ts')",
        // As the processes of metadata sign in: a worker ends the transactions of its own login alone.
        derivedUrl(platform.database.url, 'metadata')!,
        t.tenantId,
        String(LEASE_SECONDS),
      ],
      { cwd: import.meta.dirname, stdio: ['ignore', 'inherit', 'inherit'] },
    );
    processStarted(worker, 'doomed worker');
    worker.once('exit', () => processStopped(worker));
    return worker;
  };
  /** Answers when it was. */
  const kill = async (worker: ChildProcess): Promise<number> => {
    const now = performance.now();
    // One that went on may have ended by itself: it does not exit twice.
    if (worker.exitCode !== null || worker.signalCode !== null) return now;
    worker.kill('SIGKILL');
    await once(worker, 'exit');
    return now;
  };
  /** The platform has taken it again in time, and ends it. */
  const takenOver = async (deploymentId: string, lost: number): ReturnType<MetadataTenant['finished']> => {
    while (((await stateOf(deploymentId))?.takes ?? 0) < 2) await pause(20);
    const took = performance.now() - lost;
    assert.ok(took < TAKEN_MS, `It was taken again after ${Math.round(took)} ms.`);
    return t.finished(deploymentId);
  };
  /** Read behind the API, which cannot find the user who asks while the users are locked. */
  const stateOf = async (deploymentId: string): Promise<{ status: string; takes: number } | undefined> =>
    (
      await t.database.query<{ status: string; takes: number }>(
        'SELECT status, takes FROM metadata.deployments WHERE deployment_id = $1',
        [deploymentId],
      )
    ).rows[0];
  const until = async (deploymentId: string, status: string, takes = 1): Promise<void> => {
    for (;;) {
      const now = await stateOf(deploymentId);
      if (now?.status === status && now.takes === takes) return;
      await pause(20);
    }
  };
  /** Keeps a lock on the users, for which planning (exclusive) or changing the table (shared) waits. */
  const whileLocked = async <T>(mode: string, work: () => Promise<T>): Promise<T> => {
    const blocker = await t.database.pool.connect();
    try {
      await blocker.query('BEGIN');
      await blocker.query(`LOCK TABLE ${t.schema}."User" IN ${mode} MODE`);
      return await work();
    } finally {
      await blocker.query('ROLLBACK');
      blocker.release();
    }
  };
  const hasField = async (name: string): Promise<boolean> =>
    (
      await t.database.query(
        'SELECT FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = $2 AND NOT attisdropped',
        [`${t.schema}."User"`, name],
      )
    ).rowCount === 1;

  it('VALIDATING, with another one QUEUED behind it: the next worker does both, in order', async () => {
    const first = await insertQuietly(t, fieldFile('User', 'Validating__c', 'fieldType: text'));
    const { deploymentId: second } = await t.accept(objectFiles('Queued__c'));
    const lost = await whileLocked('ACCESS EXCLUSIVE', async () => {
      const worker = startWorker();
      await until(first, 'VALIDATING');
      assert.equal((await stateOf(second))?.status, 'QUEUED');
      return kill(worker);
    });
    const [one, two] = [await takenOver(first, lost), await t.finished(second)];
    assert.deepEqual([one.status, two.status], ['SUCCEEDED', 'SUCCEEDED']);
    assert.equal(two.metadataVersionBefore, one.metadataVersionAfter);
  });

  it('VALIDATING a recorded validation: it is validated by the next one', async () => {
    const checked = await insertQuietly(t, fieldFile('User', 'Checked__c', 'fieldType: text'), { checkOnly: true });
    const lost = await whileLocked('ACCESS EXCLUSIVE', async () => {
      const worker = startWorker();
      await until(checked, 'VALIDATING');
      return kill(worker);
    });
    const { status } = await takenOver(checked, lost);
    assert.deepEqual([status, await hasField('Checked__c')], ['SUCCEEDED', false]);
  });

  it('APPLYING: no partial change remains, and the next one applies it once', async () => {
    const applied = await insertQuietly(t, fieldFile('User', 'Applying__c', 'fieldType: text'));
    const lost = await whileLocked('ACCESS SHARE', async () => {
      const worker = startWorker();
      await until(applied, 'APPLYING');
      return kill(worker);
    });
    assert.equal(await hasField('Applying__c'), false);
    const done = await takenOver(applied, lost);
    assert.deepEqual([done.status, done.metadataVersionAfter], ['SUCCEEDED', done.metadataVersionBefore + 1]);
    assert.equal(await hasField('Applying__c'), true);
  });

  it('CANCELING: the next one makes it CANCELED', async () => {
    const canceled = await insertQuietly(t, fieldFile('User', 'Canceling__c', 'fieldType: text'));
    const lost = await whileLocked('ACCESS SHARE', async () => {
      const worker = startWorker();
      await until(canceled, 'APPLYING');
      worker.kill('SIGSTOP');
      const { json } = await t.call('metadata.deployments.cancel', {
        path: { deploymentId: canceled },
        body: { reason: 'It hangs.' },
        headers: { idempotencyKey: `cancel-${canceled}` },
      });
      assert.equal(json.status, 'CANCELING');
      return kill(worker);
    });
    const done = await takenOver(canceled, lost);
    assert.deepEqual(
      [done.status, done.cancelReason, await hasField('Canceling__c')],
      ['CANCELED', 'It hangs.', false],
    );
    assert.equal((await t.deploy(objectFiles('AfterCancel__c'))).status, 'SUCCEEDED');
  });

  it('a hanging worker loses its lease and locks, and cannot commit afterwards', async () => {
    const taken = await insertQuietly(t, fieldFile('User', 'Taken__c', 'fieldType: text'));
    let worker: ChildProcess | undefined;
    const lost = await whileLocked('ACCESS SHARE', async () => {
      worker = startWorker();
      await until(taken, 'APPLYING');
      worker.kill('SIGSTOP');
      return performance.now();
    });
    const done = await takenOver(taken, lost);
    worker?.kill('SIGCONT');
    await pause(1_000);
    assert.deepEqual([done.status, done.metadataVersionAfter], ['SUCCEEDED', done.metadataVersionBefore + 1]);
    assert.deepEqual((await t.finished(taken)).finishedAt, done.finishedAt);
    const { rowCount } = await t.database.query('SELECT FROM metadata.versions WHERE deployment_id = $1', [taken]);
    assert.equal(rowCount, 1);
    if (worker) await kill(worker);
  });

  it('gives up after the third', async () => {
    const lost = await insertQuietly(t, fieldFile('User', 'Lost__c', 'fieldType: text'));
    for (let i = 0; i < 3; i++) {
      await whileLocked('ACCESS SHARE', async () => {
        const worker = startWorker();
        await until(lost, 'APPLYING', i + 1);
        await kill(worker);
        if (i < 2) await leaveAlone(t.database, lost);
      });
    }
    const { status, error } = await t.finished(lost);
    assert.deepEqual([status, error.code, await hasField('Lost__c')], ['FAILED', 'WORKER_LOST', false]);
    assert.equal((await t.deploy(objectFiles('AfterLost__c'))).status, 'SUCCEEDED');
  });

  it('a connection cut while applying: it is still applied, without waiting for the lease', async () => {
    const began = performance.now();
    let accepted: { deploymentId: string } | undefined;
    await whileLocked('ACCESS SHARE', async () => {
      accepted = await t.accept(fieldFile('User', 'Cut__c', 'fieldType: text'));
      const cut = async (): Promise<boolean> =>
        (
          await t.database.query(
            `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
              WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name = $1`,
            [`deployment ${accepted!.deploymentId}`],
          )
        ).rowCount > 0;
      while (!(await cut())) await pause(20);
    });
    const done = await t.finished(accepted!.deploymentId);
    assert.deepEqual([done.status, await hasField('Cut__c')], ['SUCCEEDED', true]);
    assert.ok(performance.now() - began < TAKEN_MS);
  });

  it('is either canceled or succeeded when both race', async function () {
    const outcomes: Record<string, number> = {};
    for (let i = 0; i < 40; i++) {
      const name = `Race${i}__c`;
      const { deploymentId } = await t.accept(fieldFile('User', name, 'fieldType: text'));
      await pause(Math.random() * 120);
      const answer = await t
        .call('metadata.deployments.cancel', {
          path: { deploymentId },
          headers: { idempotencyKey: `race-${deploymentId}` },
        })
        .then(
          ({ json }) => json.status as string,
          (error: { code: string }) => error.code,
        );
      const done = await t.finished(deploymentId);
      const applied = done.status === 'SUCCEEDED';
      assert.equal(await hasField(name), applied, `${answer}, then ${done.status}`);
      assert.equal(done.metadataVersionAfter !== null, applied);
      const expected: Record<string, [status: string, requested: boolean]> = {
        CANCELED: ['CANCELED', true],
        CANCELING: ['CANCELED', true],
        SUCCEEDED: ['SUCCEEDED', true],
        DEPLOYMENT_NOT_CANCELABLE: ['SUCCEEDED', false],
      };
      assert.deepEqual([done.status, done.cancelRequested], expected[answer], answer);
      outcomes[answer] = (outcomes[answer] ?? 0) + 1;
    }
    assert.ok(Object.keys(outcomes).length > 1, JSON.stringify(outcomes));
    this.test!.title += ` (${JSON.stringify(outcomes)})`;
  });
});
