/**
 * The one door to the jobs of a process: a pg-boss on the connections of our own database door. A job is enqueued in the
 * transaction that causes it, and any process that offers the work takes it. A round of periodic work is a job whose end
 * enqueues the next one. Work may run twice (a process died, a connection was lost), so it must be safe to repeat.
 * Source: docs/decisions/periodic-work-as-jobs.md.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Db, JobWithMetadata, PgBoss, SendOptions } from 'pg-boss';
import { membersOf } from '../../lib/json/objects.ts';
import { type Database, sqlState, type Tx } from '../database/database.ts';
import { askedNumbers } from '../metrics/asked-numbers.ts';
import type { Metrics, Sample } from '../metrics/metrics.ts';
import { traceWork } from '../tracing/traced-work.ts';
import { failureName } from '../tracing/tracing.ts';
import { DEAD_LETTERS, type JobPayload, type JobQueue, type PeriodicQueue } from './queue.ts';

interface JobsOptions {
  /**
   * The queues' tables are made when they are missing. Default true; the logins of services cannot, install() is
   * before.
   */
  readonly install?: boolean;
  readonly warn: (error: unknown, message: string) => void;
}

/** Work that is under way when the queue is closed has this long to end; then it goes to another process. */
const STOP_TIMEOUT_MS = 8_000;
/** Workers that nobody calls look this often. */
const UNCALLED_LOOK_SECONDS = 60;
/** Before a job that got on begins again. */
const GOT_ON_AGAIN_SECONDS = 1;
/** Between attempts to offer periodic work while the database is away. */
const OFFER_AGAIN_MS = 5_000;
/** Error codes of objects that another starting process created at the same moment: a schema, a type, a table. */
const MADE_MEANWHILE: ReadonlySet<string | null> = new Set(['23505', '42P06', '42P07', '42710']);
const INSTALL_ATTEMPTS = 5;

/** Of jobs that are due and that no process has taken: for how long the oldest of each queue waits; dead letters apart. */
const WAITING = `SELECT coalesce(source_name, name) AS queue, count(*) FILTER (WHERE name = '${DEAD_LETTERS.name}')::int AS dead,
    coalesce(extract(epoch FROM now() - min(start_after) FILTER (WHERE name <> '${DEAD_LETTERS.name}')), 0)::float8 AS seconds
  FROM pgboss.job WHERE state < 'active' AND start_after < now() GROUP BY 1`;

const DEAD = `SELECT source_name AS queue, data ->> 'tenantId' AS "tenantId", data AS payload, output ->> 'message' AS failure,
    created_on::text AS "failedAt"
  FROM pgboss.job WHERE name = '${DEAD_LETTERS.name}' AND state < 'active' ORDER BY created_on, id LIMIT $1`;

/** A job whose last attempt has failed. */
interface DeadLetter {
  readonly queue: string;
  readonly tenantId: string;
  readonly payload: object;
  /** Name of the last failure. */
  readonly failure: string | null;
  readonly failedAt: string;
}

/** A job that this process has. */
interface Job<P extends JobPayload> {
  readonly payload: P;
  /** Aborted when the process stops, or another one is going to take the job. */
  readonly signal: AbortSignal;
}

/** Thrown by a job that got on before it failed: it begins again soon, with all its attempts. */
export class GotOn extends Error {
  override readonly name = 'GotOn';
}

interface EnqueueOptions {
  /** The transaction that causes the job: both are committed, or neither. */
  readonly tx?: Tx;
  /** Key of the job, in a queue with one job for each key. */
  readonly key?: string;
  readonly afterSeconds?: number;
}

/** This process's totals of a queue since its start. */
interface Done {
  done: number;
  failed: number;
  /** Attempts at jobs that failed and are repeated. */
  retried: number;
  seconds: number;
  /** Tenants of its rounds whose part failed. */
  tenantFailures: number;
}

export class Jobs {
  readonly #database: Database;
  readonly #options: JobsOptions;
  /** Loaded by the start: most processes of a cluster have no jobs, and it takes 6 MB. */
  #boss!: PgBoss;
  readonly #stopping = new AbortController();
  /** Queues that this process works on. */
  readonly #worked = new Set<string>();
  /** By queue that this process offers to work on. */
  readonly #done = new Map<string, Done>();
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #leaving: (() => Promise<void>)[] = [];
  #started: Promise<void> | undefined;
  #left: Promise<void> | undefined;
  #stopped: Promise<void> | undefined;

  constructor(database: Database, options: JobsOptions) {
    this.#database = database;
    this.#options = options;
  }

  /** Makes the tables of the queues, as the owner of the database. Nothing is worked on. */
  async install(): Promise<void> {
    await (this.#started ??= this.#start());
    await this.stop();
  }

  /** Makes the queue exist with its options. Starts pg-boss with the first one. */
  async declare({ name, options }: Pick<PeriodicQueue, 'name' | 'options'>): Promise<void> {
    await (this.#started ??= this.#start());
    if (options.deadLetter !== undefined) await this.declare(DEAD_LETTERS);
    await this.#boss.createQueue(name, options);
    // An earlier version may have made it with other options; its policy alone is for good.
    const { policy: _, ...changeable } = options;
    await this.#boss.updateQueue(name, changeable);
  }

  /**
   * A round of the work every so many seconds, in one of the processes that offer to do it. A round that fails waits
   * for the next one; that of a process that died is begun again by another.
   */
  async repeat(queue: PeriodicQueue, round: (signal: AbortSignal) => Promise<void>): Promise<void> {
    await this.declare(queue);
    this.#doneOf(queue.name);
    const begin = (): Promise<void> =>
      this.#beginRounds(queue, round).catch((error) => {
        this.#options.warn(error, `The work ${queue.name} could not be begun; it is tried again.`);
        this.#after(OFFER_AGAIN_MS, begin);
      });
    this.#after(queue.firstAfterSeconds * 1_000 * (1 + 2 * Math.random()), begin);
  }

  /** Adds a job. The queue must be declared in this process. False: one with its key waits or is at work. */
  async enqueue<P extends JobPayload>(
    { name }: JobQueue<P>,
    payload: P,
    { tx, key, afterSeconds = 0 }: EnqueueOptions = {},
  ): Promise<boolean> {
    const options: SendOptions = {
      group: { id: payload.tenantId },
      startAfter: afterSeconds,
      ...(key === undefined ? {} : { singletonKey: key }),
    };
    const id = tx
      ? await tx.asLogin(() => this.#boss.send(name, payload, { ...options, db: inTransaction(tx) }))
      : await this.#boss.send(name, payload, options);
    return id !== null;
  }

  /**
   * Offers to work on the jobs of the queue. A job that fails is repeated with back-off and becomes a dead letter after
   * its last attempt. One that fails because the process stops goes to another one, as if it had not been tried, and so
   * does one that throws GotOn: an import of many hours must not wait the longest for every outage after its tenth.
   */
  async work<P extends JobPayload>(queue: JobQueue<P>, handle: (job: Job<P>) => Promise<void>): Promise<void> {
    await this.declare(queue);
    const { name, pollSeconds, concurrency, perTenant } = queue;
    this.#doneOf(name);
    if (this.#stopping.signal.aborted) return;
    const options = {
      pollingIntervalSeconds: UNCALLED_LOOK_SECONDS,
      groupConcurrency: perTenant,
      includeMetadata: true as const,
    };
    // Workers that look at the same moment do not see what the others take of a tenant, and each look costs a statement:
    // one of them looks at a time, and calls the next one when it has found a job.
    const free = new Set<string>();
    const callOne = (): void => {
      const [id] = free;
      if (id !== undefined) this.#boss.notifyWorker(id);
    };
    const offer = async (): Promise<void> => {
      let id = '';
      id = await this.#boss.work(name, options, async ([job]: JobWithMetadata<P>[]) => {
        if (!job) return;
        free.delete(id);
        callOne();
        try {
          await this.#attempt(job, handle);
        } finally {
          free.add(id);
          this.#boss.notifyWorker(id);
        }
      });
      free.add(id);
    };
    for (let n = 1; n < concurrency; n++) this.#after((n * pollSeconds * 1_000) / concurrency, offer);
    await offer();
    this.#timers.add(setInterval(callOne, pollSeconds * 1_000).unref());
    this.#worked.add(name);
  }

  /** The oldest dead letters of all queues. */
  async deadLetters(take: number): Promise<DeadLetter[]> {
    const { rows } = await this.#database.query<DeadLetter>(DEAD, [take]);
    return rows;
  }

  /** Sends the dead letters of a queue again, as new jobs; answers how many there were. */
  async sendDeadAgain(queue: string): Promise<number> {
    await this.declare(DEAD_LETTERS);
    return this.#boss.redrive(DEAD_LETTERS.name, { sourceName: queue });
  }

  /** The part of a tenant in a round failed: it is left for the next round. */
  noteTenantFailure({ name }: PeriodicQueue): void {
    this.#doneOf(name).tenantFailures++;
  }

  /** Adds the numbers of the queues to those of the process. */
  register(metrics: Metrics): void {
    const each = (read: (done: Done) => number) => (): Sample[] =>
      [...this.#done].map(([queue, done]) => [{ queue }, read(done)]);
    metrics.counters(
      'erp_job_runs_total',
      'Jobs and rounds of periodic work of this process.',
      ['queue', 'outcome'],
      () =>
        [...this.#done].flatMap(([queue, { done, failed, retried }]): Sample[] => [
          [{ queue, outcome: 'done' }, done],
          [{ queue, outcome: 'failed' }, failed],
          [{ queue, outcome: 'retried' }, retried],
        ]),
    );
    metrics.counters(
      'erp_job_seconds_total',
      'Time of this process in jobs and rounds of periodic work.',
      ['queue'],
      each(({ seconds }) => seconds),
    );
    metrics.counters(
      'erp_job_tenant_failures_total',
      'Tenants whose part of a round failed, and was left for the next one.',
      ['queue'],
      each(({ tenantFailures }) => tenantFailures),
    );
    const asked = askedNumbers<{ queue: string; seconds: number; dead: number }>(
      this.#database,
      () => ({ text: WAITING }),
      { none: [] },
    );
    const ofQueues = (name: 'seconds' | 'dead') => (): Sample[] => {
      // The login of a process without queues may not ask.
      if (this.#done.size === 0) return [];
      const numbers = new Map(asked().map((row) => [row.queue, row[name]]));
      return [...this.#done.keys()].map((queue): Sample => [{ queue }, numbers.get(queue) ?? 0]);
    };
    metrics.gauges(
      'erp_job_oldest_waiting_seconds',
      'For how long a job that is due waits for a process; the same in every process that works on the queue.',
      ['queue'],
      ofQueues('seconds'),
    );
    metrics.gauges(
      'erp_job_dead_letters',
      'Jobs whose last attempt has failed; the same in every process that works on the queue.',
      ['queue'],
      ofQueues('dead'),
    );
  }

  /** Work of another queue ends together with the jobs: `leave` is called as soon as the process is asked to end. */
  onLeave(leave: () => Promise<void>): void {
    this.#leaving.push(leave);
  }

  /** No further job begins, and what is under way is asked to end; resolves when it has. */
  leave(): Promise<void> {
    return (this.#left ??= this.#leave());
  }

  /** Closes the queue; what is under way gets some time to end, `waitMs`. */
  stop(waitMs = STOP_TIMEOUT_MS): Promise<void> {
    return (this.#stopped ??= this.#stop(waitMs));
  }

  async #leave(): Promise<void> {
    this.#stopping.abort();
    for (const timer of this.#timers) clearTimeout(timer);
    await Promise.all([this.#leaveQueues(), ...this.#leaving.map((leave) => leave())]);
  }

  async #leaveQueues(): Promise<void> {
    if (!this.#started) return;
    await this.#started.catch(() => {});
    await Promise.all([...this.#worked].map((name) => this.#boss.offWork(name)));
  }

  async #stop(waitMs: number): Promise<void> {
    const left = this.leave();
    await Promise.race([left, pause(waitMs, undefined, { ref: false })]);
    if (this.#started) await this.#boss?.stop({ graceful: false });
  }

  async #start(): Promise<void> {
    const { PgBoss } = await import('pg-boss');
    this.#boss = new PgBoss({
      db: ownConnections(this.#database),
      schema: 'pgboss',
      migrate: this.#options.install !== false,
      // Nothing uses its cron schedules or its job flows; periodic work is a chain of jobs, see repeat().
      schedule: false,
      flowIntervalSeconds: 3_600,
      // A lost worker is noticed within half a minute after its heartbeat has run out.
      superviseIntervalSeconds: 30,
      monitorIntervalSeconds: 30,
      maintenanceIntervalSeconds: 3_600,
    });
    this.#boss.on('error', (problem) => this.#options.warn(errorOf(problem), 'The job queue has a problem.'));
    for (let attempt = 1; ; attempt++)
      try {
        await this.#boss.start();
        return;
      } catch (error) {
        if (attempt === INSTALL_ATTEMPTS || !MADE_MEANWHILE.has(sqlState(error))) throw error;
        await pause(100 * attempt);
      }
  }

  #doneOf(queue: string): Done {
    let done = this.#done.get(queue);
    if (!done) this.#done.set(queue, (done = { done: 0, failed: 0, retried: 0, seconds: 0, tenantFailures: 0 }));
    return done;
  }

  #after(milliseconds: number, work: () => Promise<void>): void {
    if (this.#stopping.signal.aborted) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      void work();
    }, milliseconds).unref();
    this.#timers.add(timer);
  }

  async #beginRounds(queue: PeriodicQueue, round: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { signal } = this.#stopping;
    if (signal.aborted) return;
    // Nothing happens when a round waits already, or is at work in another process.
    await this.#boss.send(queue.name, {});
    if (this.#worked.has(queue.name)) return;
    await this.#boss.work(queue.name, { pollingIntervalSeconds: queue.pollSeconds }, async ([job]) => {
      if (!job) return;
      const began = performance.now();
      const done = this.#doneOf(queue.name);
      await traceWork({ label: queue.name, requestId: null }, () => round(signal)).then(
        () => done.done++,
        (error) => {
          done.failed++;
          this.#options.warn(error, `A round of ${queue.name} failed.`);
        },
      );
      const seconds = (performance.now() - began) / 1_000;
      done.seconds += seconds;
      await this.#endRound(queue, job.id, seconds);
    });
    this.#worked.add(queue.name);
  }

  async #attempt<P extends JobPayload>(job: JobWithMetadata<P>, handle: (job: Job<P>) => Promise<void>): Promise<void> {
    const { name, data: payload, retryCount, retryLimit } = job;
    const began = performance.now();
    const done = this.#doneOf(name);
    const signal = AbortSignal.any([this.#stopping.signal, job.signal]);
    try {
      const attributes = { 'erp.tenant_id': payload.tenantId };
      await traceWork({ label: name, requestId: null }, () => handle({ payload, signal }), attributes);
      done.done++;
    } catch (error) {
      if (this.#stopping.signal.aborted) return await this.#giveBack(job);
      if (error instanceof GotOn) {
        done.retried++;
        this.#options.warn(error.cause, `A job of ${name} failed after it got on; it is tried again.`);
        return await this.#giveBack(job, GOT_ON_AGAIN_SECONDS);
      }
      if (retryCount < retryLimit) {
        done.retried++;
        this.#options.warn(error, `A job of ${name} failed; it is tried again.`);
      } else {
        done.failed++;
        this.#options.warn(error, `A job of ${name} failed ${retryLimit + 1} times; it is a dead letter now.`);
      }
      // The text of an error may hold values of records, which are not for the tables of the queues.
      throw new Error(failureName(error));
    } finally {
      done.seconds += (performance.now() - began) / 1_000;
    }
  }

  /** The job waits again, with all its attempts. */
  async #giveBack<P extends JobPayload>(
    { name, id, data, singletonKey }: JobWithMetadata<P>,
    startAfter = 0,
  ): Promise<void> {
    await this.#database.transaction(async (tx) => {
      const db = inTransaction(tx);
      await this.#boss.complete(name, id, undefined, { db });
      const key = singletonKey === null ? {} : { singletonKey };
      await this.#boss.send(name, data, { db, startAfter, group: { id: data.tenantId }, ...key });
    });
  }

  /**
   * The end of a round and its successor are one commit: a crash leaves the round to be begun again, or the next one.
   */
  async #endRound(queue: PeriodicQueue, jobId: string, tookSeconds: number): Promise<void> {
    await this.#database.transaction(async (tx) => {
      const db = inTransaction(tx);
      await this.#boss.complete(queue.name, jobId, undefined, { db });
      // Rounded down, so that the poll that falls on the moment finds it due.
      const startAfter = Math.max(0, Math.floor(queue.everySeconds - tookSeconds));
      await this.#boss.send(queue.name, {}, { db, startAfter });
    });
  }
}

/** pg-boss reports a failure as a plain object with the parts of the error, not as an Error. */
function errorOf(problem: unknown): Error {
  if (problem instanceof Error) return problem;
  const { message, stack, code } = membersOf(problem);
  const error = Object.assign(new Error(String(message ?? '')), code === undefined ? {} : { code });
  return stack === undefined ? error : Object.assign(error, { stack });
}

const inTransaction = (tx: Tx): Db => ({ executeSql: (text, values) => tx.query(text, values ?? []) });

/** pg-boss on our own connections, as the login role: no second pool, and the same settings for every connection. */
const ownConnections = (database: Database): Db => ({
  executeSql: (text, values) => database.script(text, values ?? []),
});
