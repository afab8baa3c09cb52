/** mixins/jobs on a real PostgreSQL: what is promised about jobs of a transaction and about periodic work. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { Database } from '../../mixins/database/database.ts';
import { ensureServiceRole } from '../../mixins/database/migrate.ts';
import { Jobs } from '../../mixins/jobs/jobs.ts';
import { periodicQueue, type Queue } from '../../mixins/jobs/queue.ts';
import { repeatForTenants } from '../../mixins/jobs/tenants.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';

const NUMBERS: Queue<{ n: number }> = {
  name: 'test.numbers',
  pollSeconds: 1,
  concurrency: 1,
  options: { retryLimit: 3, retryDelay: 0, expireInSeconds: 60 },
};

describe('jobs', function () {
  this.timeout(60_000);
  let server: TestDatabase;
  let database: Database;
  const opened: Jobs[] = [];
  const problems: string[] = [];
  /** The jobs of one more process. */
  const aProcess = (): Jobs => {
    const jobs = new Jobs(database, {
      services: ['one'],
      warn: (error, message) => problems.push(`${message} ${error}`),
    });
    opened.push(jobs);
    return jobs;
  };
  const until = async (done: () => boolean | Promise<boolean>): Promise<void> => {
    while (!(await done())) await pause(20);
  };

  before(async () => {
    server = await createDatabase();
    database = new Database(server.url, { size: 6, applicationName: 'jobs test' });
    await database.query('CREATE SCHEMA one');
    await ensureServiceRole(database, 'one');
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

  it('exist exactly when the transaction that enqueued them commits', async () => {
    const jobs = aProcess();
    const done: number[] = [];
    await jobs.work(NUMBERS, async ({ n }) => void done.push(n));
    const abandoned = database.transaction(async (tx) => {
      await jobs.enqueue(tx, NUMBERS, { n: 1 });
      throw new Error('rolled back');
    });
    await assert.rejects(abandoned, /rolled back/);
    await database.transaction((tx) => jobs.enqueue(tx, NUMBERS, { n: 2 }));
    jobs.wake(NUMBERS);
    await until(() => done.length > 0);
    assert.deepEqual(done, [2]);
  });

  it('can be enqueued as the role of a service, which sees nothing else of the queue', async () => {
    const jobs = aProcess();
    const done: number[] = [];
    await jobs.work(NUMBERS, async ({ n }) => void done.push(n));
    await database.shared('one', null, (tx) => jobs.enqueue(tx, NUMBERS, { n: 3 }));
    jobs.wake(NUMBERS);
    await until(() => done.length > 0);
    const reading = database.shared('one', null, (tx) => tx.query('SELECT data FROM pgboss.job_common'));
    await assert.rejects(reading, /permission denied/);
  });

  it('are tried again when their work throws, with the options the queue has now', async () => {
    const jobs = aProcess();
    let tries = 0;
    await jobs.work({ ...NUMBERS, options: { ...NUMBERS.options, retryLimit: 2 } }, async () => {
      tries++;
      throw new Error('not yet');
    });
    await database.transaction((tx) => jobs.enqueue(tx, NUMBERS, { n: 4 }));
    const state = async () =>
      (await database.query<{ state: string }>("SELECT state FROM pgboss.job WHERE data->>'n' = '4'")).rows[0]?.state;
    await until(async () => (await state()) === 'failed');
    assert.equal(tries, 3);
  });

  it('let work under way end when the process stops, and nothing new begins', async () => {
    const jobs = aProcess();
    let begun = 0;
    let ended = false;
    await jobs.work(NUMBERS, async (_, signal) => {
      begun++;
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      await pause(50);
      ended = true;
    });
    for (const n of [5, 6]) await database.transaction((tx) => jobs.enqueue(tx, NUMBERS, { n }));
    jobs.wake(NUMBERS);
    await until(() => begun === 1);
    await jobs.stop();
    assert.deepEqual([begun, ended], [1, true]);
    const { rows } = await database.query<{ state: string }>(
      "SELECT state FROM pgboss.job WHERE data->>'n' IN ('5', '6') ORDER BY data->>'n'",
    );
    assert.deepEqual(
      rows.map((row) => row.state),
      ['completed', 'created'],
    );
    await database.query("DELETE FROM pgboss.job WHERE name = 'test.numbers'");
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

    it('are done by one of several processes, once per period', async () => {
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
      await until(() => rounds.length >= 4);
      const periods = rounds.slice(1).map((at, index) => at - rounds[index]!);
      for (const period of periods) assert.ok(period >= 900 && period < 4_000, `${periods}`);
    });

    it('go on after a round that failed', async () => {
      let rounds = 0;
      await aProcess().repeat(TICK, async () => {
        if (++rounds === 1) throw new Error('a bad round');
      });
      await until(() => rounds >= 2);
      assert.deepEqual(problems.splice(0), ['A round of test.tick failed. Error: a bad round']);
    });

    it('are taken over from a process that died in the middle of a round', async () => {
      await aProcess().declare(TICK);
      // What a killed process leaves: a round at work, of which no sign of life has come for longer than allowed.
      await database.query(
        `INSERT INTO pgboss.job (name, policy, state, started_on, heartbeat_on, heartbeat_seconds, retry_limit, expire_seconds)
          SELECT name, policy, 'active', now() - interval '1 minute', now() - interval '31 seconds', heartbeat_seconds,
            retry_limit, expire_seconds FROM pgboss.queue WHERE name = 'test.tick'`,
      );
      let rounds = 0;
      await aProcess().repeat(TICK, async () => void rounds++);
      await until(() => rounds >= 1);
      assert.equal((await waiting()).length, 1);
    });

    it('stop within the tenant they are at, and leave the next round to others', async () => {
      const jobs = aProcess();
      const done: string[] = [];
      const failed: string[] = [];
      await repeatForTenants(jobs, {
        queue: TICK,
        tenants: async (after) => (after === undefined ? ['a', 'b'] : after === 'b' ? ['c'] : []).map((id) => ({ id })),
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
