/** mixins/jobs on a real PostgreSQL: what is promised about jobs and periodic work. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Database } from '../../mixins/database/database.ts';
import { GotOn, Jobs } from '../../mixins/jobs/jobs.ts';
import { type JobPayload, jobQueue, periodicQueue } from '../../mixins/jobs/queue.ts';
import { repeatForTenants } from '../../mixins/jobs/tenants.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { until } from '../support/until.ts';

const NUMBERS = periodicQueue('test.numbers', { everySeconds: 60, pollSeconds: 1, firstAfterSeconds: 0 });

describe('jobs', function () {
  this.timeout(60_000);
  let server: TestDatabase;
  let database: Database;
  const opened: Jobs[] = [];
  const problems: string[] = [];
  /** The jobs of one more process. */
  const aProcess = (): Jobs => {
    const jobs = new Jobs(database, {
      warn: (error, message) => problems.push(`${message} ${error}`),
    });
    opened.push(jobs);
    return jobs;
  };

  before(async () => {
    server = await createDatabase();
    database = new Database(server.url, { size: 6, applicationName: 'jobs test' });
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((jobs) => jobs.stop()));
    assert.deepEqual(problems.splice(0), []);
  });
  after(async () => {
    await database?.close();
    await server?.drop();
  });

  it('installs itself once when several processes start on an empty database', async () => {
    await Promise.all([1, 2, 3].map(() => aProcess().declare(NUMBERS)));
    const { rowCount } = await database.query("SELECT FROM pgboss.queue WHERE name = 'test.numbers'");
    assert.equal(rowCount, 1);
  });

  describe('that are enqueued with a change', () => {
    interface Letter extends JobPayload {
      readonly letterId: number;
    }
    const TIMES = { attempts: 3, retrySeconds: 1, retryMaxSeconds: 1, pollSeconds: 0.5, concurrency: 2, perTenant: 2 };
    const LETTERS = jobQueue<Letter>('test.letters', { ...TIMES, oneForEachKey: false });
    const rows = async <R extends object>(sql: string): Promise<R[]> => (await database.query<R>(sql)).rows;
    afterEach(async () => {
      await Promise.all(opened.map((jobs) => jobs.stop()));
      await database.query("DELETE FROM pgboss.job WHERE name IN ('test.letters', 'jobs.dead')");
    });

    it('are committed with the change or not at all, whatever role the transaction has', async () => {
      const jobs = aProcess();
      const done: Letter[] = [];
      await jobs.work(LETTERS, async ({ payload }) => void done.push(payload));
      await database.query('CREATE ROLE jobs_test NOLOGIN; CREATE TABLE changes (n int)');
      await database.query('GRANT INSERT ON changes TO jobs_test; GRANT jobs_test TO CURRENT_USER');
      const role = { name: 'jobs_test', schema: '', enter: 'SET LOCAL ROLE jobs_test' };
      const change = (letterId: number, then: () => void) =>
        database.transaction(async (tx) => {
          tx.actAs(role);
          await jobs.enqueue(LETTERS, { tenantId: 'a', letterId }, { tx });
          assert.deepEqual(await tx.all({ text: 'SELECT current_user::text AS role' }), [{ role: 'jobs_test' }]);
          await tx.query('INSERT INTO changes VALUES ($1)', [letterId]);
          then();
        });
      try {
        await assert.rejects(
          change(1, () => {
            throw new Error('refused');
          }),
        );
        await change(2, () => {});
        await until(() => done.length > 0);
        await pause(600);
        assert.deepEqual(done, [{ tenantId: 'a', letterId: 2 }]);
        assert.deepEqual(await rows('SELECT n FROM changes'), [{ n: 2 }]);
      } finally {
        await database.query('DROP TABLE changes; DROP ROLE jobs_test');
      }
    });

    it('are repeated with back-off, then become dead letters that operators send again', async () => {
      const jobs = aProcess();
      let attempts = 0;
      await jobs.work(LETTERS, async () => {
        attempts++;
        throw Object.assign(new Error('the value is 4711'), { code: 'E_AWAY' });
      });
      await jobs.enqueue(LETTERS, { tenantId: 'a', letterId: 7 });
      const dead = () => jobs.deadLetters(10);
      await until(async () => (await dead()).length > 0, 50);
      assert.equal(attempts, 3);
      const [{ failedAt, ...letter }] = (await dead()) as [Awaited<ReturnType<typeof dead>>[number]];
      assert.ok(Date.parse(failedAt));
      const payload = { tenantId: 'a', letterId: 7 };
      assert.deepEqual(letter, { queue: 'test.letters', tenantId: 'a', payload, failure: 'E_AWAY' });
      assert.match(
        problems.splice(0).join('\n'),
        /A job of test\.letters failed; .*\n.*\n.* 3 times; it is a dead letter now/,
      );
      assert.deepEqual(await rows("SELECT FROM pgboss.job WHERE output::text LIKE '%4711%'"), [], 'no values are kept');
      assert.equal(await jobs.sendDeadAgain('test.letters'), 1);
      assert.deepEqual(await dead(), []);
      await until(() => attempts === 4, 50);
      await until(() => problems.splice(0).length > 0);
    });

    const states = () =>
      rows<{ state: string; n: number }>(
        "SELECT state::text, retry_count::int AS n FROM pgboss.job WHERE name = 'test.letters' AND state < 'completed'",
      );
    const isActive = async (): Promise<boolean> => (await states())[0]?.state === 'active';

    it('begin again with all attempts when they got on before they failed', async () => {
      const jobs = aProcess();
      const keyed = jobQueue<Letter>('test.letters', { ...TIMES, oneForEachKey: true });
      let times = 0;
      await jobs.work(keyed, async () => {
        if (++times <= TIMES.attempts) throw new GotOn('', { cause: new Error('no paper') });
      });
      await jobs.enqueue(keyed, { tenantId: 'a', letterId: 1 }, { key: 'letter' });
      await until(() => times > TIMES.attempts, 30);
      assert.deepEqual(await jobs.deadLetters(10), []);
      const expected = 'A job of test.letters failed after it got on; it is tried again. Error: no paper';
      assert.deepEqual(problems.splice(0), Array(TIMES.attempts).fill(expected));
    });

    it('go from a process that stops to another one, as if they had not been tried', async () => {
      const stopping = aProcess();
      await stopping.work(LETTERS, async ({ signal }) => {
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))));
      });
      await stopping.enqueue(LETTERS, { tenantId: 'a', letterId: 1 });
      await until(isActive);
      await stopping.leave();
      assert.deepEqual(await states(), [{ state: 'created', n: 0 }]);
    });

    it('are taken over from a process that was killed', async function () {
      this.timeout(120_000);
      const jobs = aProcess();
      await jobs.declare(LETTERS);
      await jobs.enqueue(LETTERS, { tenantId: 'a', letterId: 1 });
      const script = `
        const { Database } = await import('../../mixins/database/database.ts');
        const { Jobs } = await import('../../mixins/jobs/jobs.ts');
        const { jobQueue } = await import('../../mixins/jobs/queue.ts');
        const database = new Database(process.argv[1], { size: 2, applicationName: 'doomed jobs' });
        const queue = jobQueue('test.letters', ${JSON.stringify({ ...TIMES, oneForEachKey: false })});
        await new Jobs(database, { install: false, warn: console.error }).work(queue, () => new Promise(() => {}));`;
      const doomed = spawn(process.execPath, ['--input-type=module', '-e', script, server.url], {
        cwd: import.meta.dirname,
        stdio: ['ignore', 'inherit', 'inherit'],
      });
      await until(isActive);
      doomed.kill('SIGKILL');
      await once(doomed, 'exit');
      const done: number[] = [];
      await jobs.work(LETTERS, async ({ payload }) => void done.push(payload.letterId));
      await until(() => done.length > 0, 100);
      assert.deepEqual(done, [1]);
    });

    it('of one tenant keep no others waiting', async () => {
      const FAIR = jobQueue<Letter>('test.fair', { ...TIMES, concurrency: 2, perTenant: 1, oneForEachKey: false });
      const jobs = aProcess();
      await jobs.declare(FAIR);
      for (let n = 0; n < 5; n++) await jobs.enqueue(FAIR, { tenantId: 'many', letterId: n });
      await jobs.enqueue(FAIR, { tenantId: 'few', letterId: 9 });
      const done: string[] = [];
      await jobs.work(FAIR, async ({ payload: { tenantId } }) => {
        await pause(300);
        done.push(tenantId);
      });
      await until(() => done.length === 6);
      // Each of the two workers may have taken one of the others at the same moment.
      assert.ok(done.indexOf('few') <= 2, `${done}`);
    });

    it('wait once for each key, where the queue says so', async () => {
      const KEYED = jobQueue<Letter>('test.keyed', { ...TIMES, oneForEachKey: true });
      const jobs = aProcess();
      await jobs.declare(KEYED);
      const enqueue = (letterId: number, key: string) => jobs.enqueue(KEYED, { tenantId: 'a', letterId }, { key });
      assert.deepEqual([await enqueue(1, 'x'), await enqueue(2, 'x'), await enqueue(3, 'y')], [true, false, true]);
    });
  });

  describe('that repeat', () => {
    const TICK = periodicQueue('test.tick', { everySeconds: 2, pollSeconds: 0.5, firstAfterSeconds: 0 });
    const waiting = async () =>
      (
        await database.query<{ state: string }>(
          "SELECT state::text FROM pgboss.job WHERE name = 'test.tick' AND state <= 'active'",
        )
      ).rows.map((row) => row.state);
    afterEach(async () => {
      await Promise.all(opened.map((jobs) => jobs.stop()));
      await database.query("DELETE FROM pgboss.job WHERE name = 'test.tick'");
    });

    it('run in one of several processes, once per period', async () => {
      const rounds: number[] = [];
      let active = 0;
      const round = async (): Promise<void> => {
        assert.equal(++active, 1);
        rounds.push(Date.now());
        await pause(200);
        active--;
      };
      for (let n = 0; n < 3; n++) await aProcess().repeat(TICK, round);
      // The first one comes soon after the start, then every two seconds.
      await until(() => rounds.length >= 4, 50);
      const periods = rounds.slice(1).map((at, index) => at - rounds[index]!);
      // Below the heartbeat timeout of 30 s, after which an unfinished round is started again.
      for (const period of periods) assert.ok(period >= 900 && period < 15_000, `${periods}`);
    });

    it('continue after a failed round', async () => {
      let rounds = 0;
      await aProcess().repeat(TICK, async () => {
        if (++rounds === 1) throw new Error('a bad round');
      });
      await until(() => rounds >= 2);
      assert.deepEqual(problems.splice(0), ['A round of test.tick failed. Error: a bad round']);
    });

    it('are taken over from a process that died in the middle of a round', async () => {
      await aProcess().declare(TICK);
      // State after a killed process: a running round whose heartbeat is overdue.
      await database.query(
        `INSERT INTO pgboss.job (name, policy, state, started_on, heartbeat_on, heartbeat_seconds, retry_limit, expire_seconds)
          SELECT name, policy, 'active', now() - interval '1 minute', now() - interval '31 seconds', heartbeat_seconds,
            retry_limit, expire_seconds FROM pgboss.queue WHERE name = 'test.tick'`,
      );
      let rounds = 0;
      await aProcess().repeat(TICK, async () => void rounds++);
      await until(() => rounds >= 1, 50);
      assert.equal((await waiting()).length, 1);
    });

    it('stop within the current tenant, and leave the next round to others', async () => {
      const jobs = aProcess();
      const done: string[] = [];
      const failed: string[] = [];
      await repeatForTenants(jobs, {
        queue: TICK,
        tenants: async (after) =>
          (after === undefined ? ['a', 'b', 's'] : after === 's' ? ['c'] : []).map((id) => ({
            id,
            suspended: id === 's',
          })),
        alsoSuspended: false,
        work: async (id) => {
          if (id === 'a') throw new Error('away');
          done.push(id);
          if (id === 'b') setImmediate(() => void jobs.stop());
          await pause(100);
        },
        failed: (id) => void failed.push(id),
      });
      await until(() => done.length > 0);
      await jobs.stop();
      assert.deepEqual([done, failed], [['b'], ['a']]);
      assert.deepEqual(await waiting(), ['created']);
    });
  });
});
