/** mixins/jobs on a real PostgreSQL: what is promised about periodic work. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { Database } from '../../mixins/database/database.ts';
import { Jobs } from '../../mixins/jobs/jobs.ts';
import { periodicQueue } from '../../mixins/jobs/queue.ts';
import { repeatForTenants } from '../../mixins/jobs/tenants.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';

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
  const until = async (done: () => boolean | Promise<boolean>): Promise<void> => {
    while (!(await done())) await pause(20);
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
      await until(() => rounds.length >= 4);
      const periods = rounds.slice(1).map((at, index) => at - rounds[index]!);
      for (const period of periods) assert.ok(period >= 900 && period < 4_000, `${periods}`);
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
      await until(() => rounds >= 1);
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
