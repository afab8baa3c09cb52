/**
 * Bulk jobs in a cluster whose processes are killed, whose user is deactivated, and whose tenant is suspended: every row is
 * written once or not at all, and its outcome says which. BULK_SEED repeats a failure.
 */
import assert from 'node:assert/strict';
import { createHash, randomInt } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import type { ServiceName } from '../../config/services.ts';
import { call } from '../../contracts/call.ts';
import { LIMITS } from '../../lib/limits.ts';
import { createJob, upload } from '../api/bulk/bulk.ts';
import { type Answer, type Api, api, tokenFor } from '../support/client.ts';
import type { TestDatabase } from '../support/database.ts';
import { type NatsServer, startSecureNats } from '../support/nats.ts';
import { createPlatformDatabase, startPlatform, type TestPlatform } from '../support/platform.ts';
import { type ServiceProcess, startProcess } from '../support/processes.ts';
import { randomNumbers } from '../support/random.ts';
import { insist, until } from './stage.ts';

const SEED = Number(process.env['BULK_SEED'] ?? randomInt(1_000_000));
const ROWS = 1_200;
const KILLS = 4;
/** Requests that are made one by one are made so many at a time, each on rows that have nothing to do with the others. */
const GROUPS = 6;
const HEADER = ['accountNumber', 'name', 'TaxId__c', 'employees'] as const;

type Row = Readonly<Partial<Record<(typeof HEADER)[number], string>>>;

/** What has become of a row. */
interface Outcome {
  readonly id: string | null;
  readonly errors: readonly string[];
}

interface ShownJob {
  readonly jobId: string;
  readonly state: string;
  readonly counts: Readonly<Record<string, number>>;
  readonly finishedAt: string | null;
  readonly error: { readonly code: string } | null;
}

describe(`bulk jobs in a cluster that breaks (BULK_SEED=${SEED})`, function () {
  this.timeout(300_000);
  let nats: NatsServer;
  let database: TestDatabase;
  let client: pg.Client;
  /** In this process, whose broker suspends tenants. */
  let metadata: TestPlatform;
  const processes = new Map<ServiceName, ServiceProcess>();
  let baseUrl: string;
  let ada: Api;
  let schema: string;

  const run = async (service: ServiceName): Promise<void> => {
    const started = await startProcess({
      services: [service],
      databaseUrl: database.url,
      natsUrl: nats.url,
      env: nats.environment(service),
    });
    processes.set(service, started);
  };
  before(async () => {
    [nats, database] = await Promise.all([startSecureNats(), createPlatformDatabase()]);
    client = new pg.Client({ connectionString: database.url });
    await client.connect();
    metadata = await startPlatform({
      services: ['metadata'],
      natsUrl: nats.url,
      database,
      env: nats.environment('metadata'),
    });
    const services: readonly ServiceName[] = ['gateway', 'auth', 'ratelimit', 'data', 'bulk'];
    await Promise.all(services.map(run));
    ({ baseUrl } = processes.get('gateway')!);
    ada = await as('ada');
    schema = `t_${(await ada.get('/identity')).body.tenant.id.replaceAll('-', '')}`;
  });
  after(async () => {
    await Promise.all([...processes.values()].map((process) => process.stop()));
    await metadata?.stop();
    await client?.end();
    await nats?.stop();
    await database?.drop();
  });

  const as = async (user: string): Promise<Api> => api(baseUrl, await tokenFor(baseUrl, user));

  async function kill(service: ServiceName): Promise<void> {
    await processes.get(service)!.kill();
    processes.delete(service);
    // What the queue does half a minute after the last sign of life.
    if (service === 'bulk')
      await client.query(
        "UPDATE pgboss.job SET state = 'retry', start_after = now() WHERE name = 'bulk.work' AND state = 'active'",
      );
  }

  /** Rows some of which fail: without a name, with no number, or with what an earlier row has. */
  function rowsOf(seed: number, world: string): Row[] {
    const below = randomNumbers(seed);
    const earlier = (index: number): number => (index % GROUPS) + GROUPS * below(Math.floor(index / GROUPS) + 1);
    return Array.from({ length: ROWS }, (_, index) => ({
      accountNumber: `${world}-${10_000 + (below(8) === 0 ? earlier(index) : index)}`,
      name: below(15) === 0 ? '' : createHash('sha256').update(`${seed} ${index}`).digest('hex').slice(0, 20),
      TaxId__c: below(3) === 0 ? '' : `${world}${below(12) === 0 ? earlier(index) : index}`,
      employees: below(20) === 0 ? 'many' : String(index),
    }));
  }
  const csvOf = (rows: readonly Row[]): string =>
    [HEADER, ...rows.map((row) => HEADER.map((name) => row[name] ?? ''))].map((cells) => `${cells.join()}\n`).join('');

  async function start(who: Api, operation: string, parts: readonly (readonly Row[])[]): Promise<string> {
    const key = operation === 'upsert' ? { externalIdField: 'accountNumber' } : {};
    const jobId = await createJob(who, { operation, objectApiName: 'Account', ...key });
    for (const [index, rows] of parts.entries()) {
      const reply = await upload(who, jobId, index + 1, csvOf(rows));
      assert.equal(reply.status, 201, reply.text);
    }
    const reply = await who.post(`/bulk/jobs/${jobId}/start`);
    assert.equal(reply.status, 202, reply.text);
    return jobId;
  }

  /** The job once it is as `check` says. */
  async function job(jobId: string, check: (job: ShownJob) => boolean, who = ada): Promise<ShownJob> {
    let shown: ShownJob | undefined;
    await until(
      'the job gets on',
      async () => {
        const reply = await insist(() => who.get<ShownJob>(`/bulk/jobs/${jobId}`));
        assert.equal(reply.status, 200, reply.text);
        shown = reply.body;
        return check(shown);
      },
      150_000,
    );
    return shown!;
  }
  const hasEnded = ({ finishedAt }: ShownJob): boolean => finishedAt !== null;

  /** Outcomes of all rows, which are numbered without a gap; unprocessed ones have none. */
  async function outcomes(jobId: string, who = ada): Promise<(Outcome | null)[]> {
    const found: (Outcome | null)[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: Answer = await insist(() =>
        who.get(`/bulk/jobs/${jobId}/results?take=1000${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`),
      );
      assert.equal(page.status, 200, page.text);
      for (const { rowNumber, outcome, id, errors } of page.body.records) {
        assert.equal(rowNumber, found.length + 1);
        const named = errors.map((one: { code: string; column?: string }) => `${one.code} ${one.column ?? ''}`.trim());
        assert.equal(outcome === 'succeeded', id !== null && named.length === 0, JSON.stringify(page.body));
        found.push(outcome === 'unprocessed' ? null : { id, errors: named });
      }
      cursor = page.body.nextCursor;
    }
    return found;
  }

  async function oneByOne(operation: string, rows: readonly Row[]): Promise<Outcome[]> {
    const done: Outcome[] = [];
    const write = async ({ accountNumber = '', ...cells }: Row): Promise<Outcome> => {
      const given = Object.entries(cells).map(([name, cell]) => [name, cell === '' ? null : cell]);
      const isNew = operation === 'create';
      const fields = Object.fromEntries(isNew ? given.filter(([, value]) => value !== null) : given);
      const reply = isNew
        ? await ada.post('/data/Account', { accountNumber, ...fields })
        : await ada.put(`/data/Account/by/accountNumber/${accountNumber}`, fields);
      if (reply.status < 300) return { id: reply.body.id, errors: [] };
      const { code, errors } = reply.body;
      const named: { code: string; pointer: string }[] = errors ?? [{ code, pointer: '' }];
      return { id: null, errors: named.map((one) => `${one.code} ${one.pointer.slice(1)}`.trim()) };
    };
    await Promise.all(
      Array.from({ length: GROUPS }, async (_, group) => {
        for (let index = group; index < rows.length; index += GROUPS) done[index] = await write(rows[index]!);
      }),
    );
    return done;
  }

  /** The records of a world by id, without what names the world. */
  async function recordsOf(world: string): Promise<Map<string, string>> {
    const { rows } = await client.query(
      `SELECT "id", "accountNumber", "name", "TaxId__c", "employees"::text, "recordVersion",
        (SELECT count(*) FROM ${schema}._history h WHERE h.record_id = t."id")::int AS changes
      FROM ${schema}."Account" t WHERE "accountNumber" LIKE $1`,
      [`${world}-%`],
    );
    return new Map(rows.map(({ id, ...values }) => [id, JSON.stringify(values).replaceAll(world, '')]));
  }
  const idsOf = (done: readonly (Outcome | null)[]): string[] => [
    ...new Set(done.flatMap((outcome) => outcome?.id ?? [])),
  ];

  it('write every row once, as single requests would, whatever is killed', async () => {
    const below = randomNumbers(SEED);
    const worlds = [
      { operation: 'create', world: 'JC', single: 'SC', seed: below(2 ** 31) },
      { operation: 'upsert', world: 'JU', single: 'SU', seed: below(2 ** 31) },
    ];
    const jobs: string[] = [];
    for (const { operation, world, seed } of worlds) {
      const rows = rowsOf(seed, world);
      jobs.push(await start(ada, operation, [rows.slice(0, ROWS / 3), rows.slice(ROWS / 3)]));
    }
    for (let n = 0; n < KILLS; n++) {
      await pause(below(900));
      const victims: readonly ServiceName[] = [['bulk'], ['data'], ['data', 'bulk']][below(3)] as ServiceName[];
      await Promise.all(victims.map(kill));
      await Promise.all(victims.map(run));
    }
    for (const [index, { operation, world, single, seed }] of worlds.entries()) {
      const { state, counts } = await job(jobs[index]!, hasEnded);
      assert.deepEqual([state, counts['processed'], counts['unprocessed']], ['COMPLETED', ROWS, 0]);
      const done = await outcomes(jobs[index]!);
      assert.equal(done.length, ROWS);
      const expected = await oneByOne(operation, rowsOf(seed, single));
      assert.deepEqual(
        done.map((outcome) => outcome?.errors),
        expected.map(({ errors }) => errors),
      );
      assert.equal(counts['failed'], expected.filter(({ id }) => id === null).length);
      const [stored, apart] = [await recordsOf(world), await recordsOf(single)];
      assert.deepEqual([...stored.keys()].sort(), idsOf(done).sort());
      assert.deepEqual([...stored.values()].sort(), [...apart.values()].sort());
    }
  });

  /**
   * A job whose second chunk waits for a record that is held here, while `work` is done. `stopped`: its process is stopped
   * meanwhile, and the chunk ends without it.
   */
  async function inTheMiddle(
    world: string,
    who: Api,
    work: (jobId: string) => Promise<void>,
    { stopped }: { readonly stopped: boolean },
  ): Promise<{ jobId: string; rows: Row[] }> {
    const rows = rowsOf(randomNumbers(SEED)(2 ** 31), world);
    const held = `${world}-99999`;
    const made = await who.post('/data/Account', { name: `Held ${world}`, accountNumber: held });
    assert.equal(made.status, 201, made.text);
    rows.splice(LIMITS.rows_max + 100, 0, { accountNumber: held, name: `Changed ${world}` });
    await client.query('BEGIN');
    await client.query(`SELECT FROM ${schema}."Account" WHERE "id" = $1 FOR UPDATE`, [made.body.id]);
    const jobId = await start(who, 'upsert', [rows]);
    const { pid } = processes.get('bulk')!;
    try {
      await job(jobId, ({ counts }) => counts['processed'] === LIMITS.rows_max, who);
      await until('the second chunk waits', async () => (await waiting()) > 0, 60_000);
      if (stopped) process.kill(pid, 'SIGSTOP');
      else await work(jobId);
      await client.query('COMMIT');
      if (!stopped) return { jobId, rows };
      await until('the second chunk is written', async () => (await isWritten(jobId)) === 1, 60_000);
      await work(jobId);
    } finally {
      await client.query('ROLLBACK');
      if (stopped && processes.has('bulk')) process.kill(pid, 'SIGCONT');
    }
    return { jobId, rows };
  }
  const waiting = async (): Promise<number> => {
    const { rows } = await client.query('SELECT count(*)::int AS n FROM pg_locks WHERE NOT granted');
    return rows[0].n;
  };
  /** The second chunk of the job has its outcome, whether the job knows or not. */
  const isWritten = async (jobId: string): Promise<number> => {
    const { rows } = await client.query(
      `SELECT count(*)::int AS n FROM ${schema}._idempotency WHERE key = $1 AND state = 'COMPLETED'`,
      [`bulk-${jobId}-${LIMITS.rows_max + 1}`],
    );
    return rows[0].n;
  };

  /** Whole chunks have their outcomes, the rest has none, and what is stored is what they say. */
  async function assertWholeChunks(jobId: string, world: string, who = ada): Promise<void> {
    const done = await outcomes(jobId, who);
    const processed = done.filter((outcome) => outcome !== null).length;
    assert.ok(processed % LIMITS.rows_max === 0 && processed > 0 && processed < done.length, `${processed} rows`);
    assert.ok(done.slice(processed).every((outcome) => outcome === null));
    const stored = await recordsOf(world);
    const held = [...stored].filter(([, text]) => text.includes('"-99999"')).map(([id]) => id);
    assert.deepEqual([...stored.keys()].sort(), [...new Set([...idsOf(done), ...held])].sort());
  }

  it('keep what was done when they are canceled, and say what became of each row', async () => {
    const { jobId } = await inTheMiddle(
      'CA',
      ada,
      async (jobId) => {
        const reply = await ada.post(`/bulk/jobs/${jobId}/cancel`);
        assert.deepEqual([reply.status, reply.body.state], [202, 'CANCELING'], reply.text);
      },
      { stopped: false },
    );
    assert.equal((await job(jobId, hasEnded)).state, 'CANCELED');
    await assertWholeChunks(jobId, 'CA');
  });

  it('have the outcome of a chunk that was written for a process that was lost, also when they are canceled', async () => {
    const { jobId } = await inTheMiddle('CB', ada, () => kill('bulk'), { stopped: true });
    await client.query(
      "UPDATE pgboss.job SET start_after = now() + interval '1 hour' WHERE name = 'bulk.work' AND state = 'retry'",
    );
    await run('bulk');
    const reply = await insist(() => ada.post(`/bulk/jobs/${jobId}/cancel`));
    assert.equal(reply.body.state, 'CANCELING', reply.text);
    await client.query("UPDATE pgboss.job SET start_after = now() WHERE name = 'bulk.work' AND state = 'retry'");
    const { state, counts } = await job(jobId, hasEnded);
    assert.deepEqual([state, counts['processed']], ['CANCELED', 2 * LIMITS.rows_max]);
    await assertWholeChunks(jobId, 'CB');
  });

  it('end behind the chunk that was under way when their tenant is suspended', async () => {
    const suspend = () => call(metadata.broker, 'metadata.tenants.suspend', { key: 'demo', reason: 'A test.' });
    const { jobId } = await inTheMiddle('TS', ada, async () => void (await suspend()), { stopped: true });
    await until(
      'the job has ended',
      async () => {
        const { rows } = await client.query('SELECT FROM bulk.jobs WHERE job_id = $1 AND finished_at IS NOT NULL', [
          jobId,
        ]);
        return rows.length > 0;
      },
      150_000,
    );
    await call(metadata.broker, 'metadata.tenants.resume', { key: 'demo' });
    await until('the tenant is served', async () => (await ada.get('/bulk/jobs')).status === 200, 60_000);
    const { state, error, counts } = await job(jobId, hasEnded);
    assert.deepEqual([state, error?.code, counts['processed']], ['FAILED', 'TENANT_SUSPENDED', 2 * LIMITS.rows_max]);
    await assertWholeChunks(jobId, 'TS');
  });

  it('end behind the chunk that was under way when their user is deactivated', async () => {
    const sue = await as('sue');
    const { id } = (await sue.get('/identity')).body.user;
    const setActive = async (active: boolean): Promise<void> => {
      const { headers } = await ada.get(`/data/User/${id}`);
      const reply = await insist(() => ada.patch(`/data/User/${id}`, { active }, { etag: headers.get('etag')! }));
      assert.equal(reply.status, 200, reply.text);
    };
    const { jobId } = await inTheMiddle('DU', sue, () => setActive(false), { stopped: true });
    await until(
      'the job has ended',
      async () => {
        const { rows } = await client.query('SELECT FROM bulk.jobs WHERE job_id = $1 AND finished_at IS NOT NULL', [
          jobId,
        ]);
        return rows.length > 0;
      },
      150_000,
    );
    const { rows } = await client.query('SELECT state, error, processed::int FROM bulk.jobs WHERE job_id = $1', [
      jobId,
    ]);
    assert.equal(rows[0].state, 'FAILED');
    assert.ok(['TOKEN_REVOKED', 'API_ACCESS_DISABLED'].includes(rows[0].error.code), JSON.stringify(rows));
    assert.equal(rows[0].processed, 2 * LIMITS.rows_max);
  });
});
