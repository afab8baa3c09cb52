/** Queues the deliveries of subscriptions: one job at a time for each. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Database } from '../../../mixins/database/database.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import type { Jobs } from '../../../mixins/jobs/jobs.ts';
import { jobQueue } from '../../../mixins/jobs/queue.ts';
import type { Numbered } from '../log/relay.sql.ts';
import { rangeStatement } from './delivery.sql.ts';
import { activeStatement, dueSubscriptionsStatement } from './subscription.sql.ts';

export interface Delivering {
  readonly tenantId: string;
  readonly subscriptionId: string;
}

/** A job mostly waits: for its receiver, or for further events. */
const CONCURRENCY = 128;
const PER_TENANT = 64;
/** Places of a process that stay free of jobs that only wait for further events. */
const SPARE = 32;

export const DELIVERIES = jobQueue<Delivering>('events.deliver', {
  attempts: 3,
  retrySeconds: 5,
  retryMaxSeconds: 60,
  pollSeconds: 1,
  concurrency: CONCURRENCY,
  perTenant: PER_TENANT,
  oneForEachKey: true,
});

/** Interval at which one process looks at what is due. */
export const ROUND_SECONDS = 20;

const AGAIN_MS = 500;

interface Due {
  readonly tenantId: string;
  readonly subscriptionIds: readonly string[];
}

/** The turn of a job: it is told here that there is more to deliver, so that it need not look. */
export class Turn {
  #hasNews = false;
  #wake = new AbortController();

  wake(): void {
    this.#hasNews = true;
    this.#wake.abort();
  }

  get hasNews(): boolean {
    return this.#hasNews;
  }

  /** What is told from now on is news. */
  look(): void {
    this.#hasNews = false;
    this.#wake = new AbortController();
  }

  /** Waits so long, or until there is news. */
  async rest(ms: number, signal: AbortSignal): Promise<void> {
    await pause(ms, undefined, { signal: AbortSignal.any([signal, this.#wake.signal]) }).catch(() => {});
  }
}

export class DeliveryQueue {
  readonly #jobs: Jobs;
  readonly #database: Database;
  readonly #tellAll: (due: Due) => void;
  /** Subscriptions that are queued once more when their job has ended: it may have looked for the last time. */
  readonly #again = new Set<string>();
  /** Jobs at work in this process, by tenant and subscription. */
  readonly #turns = new Map<string, Map<string, Turn>>();

  /** `tellAll`: has `wake` called in all processes, in this one too. */
  constructor(jobs: Jobs, database: Database, tellAll: (due: Due) => void) {
    this.#jobs = jobs;
    this.#database = database;
    this.#tellAll = tellAll;
  }

  /** Does the work of a job, which is told meanwhile what else there is to deliver. */
  async run(delivering: Delivering, work: (turn: Turn) => Promise<void>): Promise<void> {
    const { tenantId, subscriptionId } = delivering;
    const turns = this.#turns.get(tenantId) ?? new Map<string, Turn>();
    const turn = new Turn();
    this.#turns.set(tenantId, turns.set(subscriptionId, turn));
    try {
      await work(turn);
    } finally {
      turns.delete(subscriptionId);
      if (turns.size === 0) this.#turns.delete(tenantId);
    }
    if (turn.hasNews) await this.add({ tenantId, subscriptionIds: [subscriptionId] });
  }

  /** Tells the jobs of these subscriptions, those that are at work in this process. */
  wake({ tenantId, subscriptionIds }: Due): void {
    for (const id of subscriptionIds) this.#turns.get(tenantId)?.get(id)?.wake();
  }

  /** Other jobs could begin, of the tenant and of others. */
  hasRoom(tenantId: string): boolean {
    let all = 0;
    for (const { size } of this.#turns.values()) all += size;
    return (this.#turns.get(tenantId)?.size ?? 0) < PER_TENANT && all <= CONCURRENCY - SPARE;
  }

  /** Jobs of these subscriptions begin soon, or are told where they are at work: none is queued twice. */
  async add(due: Due): Promise<void> {
    const { tenantId, subscriptionIds } = due;
    if (subscriptionIds.length === 0) return;
    this.#tellAll(due);
    for (const subscriptionId of subscriptionIds)
      if (!this.#turns.get(tenantId)?.has(subscriptionId)) await this.#enqueue({ tenantId, subscriptionId });
  }

  async #enqueue(work: Delivering): Promise<void> {
    const { subscriptionId } = work;
    if ((await this.#jobs.enqueue(DELIVERIES, work, { key: subscriptionId })) || this.#again.has(subscriptionId))
      return;
    this.#again.add(subscriptionId);
    setTimeout(() => {
      this.#again.delete(subscriptionId);
      this.#jobs.enqueue(DELIVERIES, work, { key: subscriptionId }).catch(() => {}); // the next round does
    }, AGAIN_MS).unref();
  }

  /** Those subscriptions of the tenant that some of the new events may be sent to. */
  async addFor(tenantId: string, events: Pick<Numbered, 'types' | 'objects'>): Promise<void> {
    await this.#add(tenantId, activeStatement(tenantId, events));
  }

  /** Those whose deliveries are due before the next round, or were left by a process that died. */
  async addDue(tenantId: string): Promise<void> {
    const { last } = await this.#database.tenant(tenantId, (tx) => tx.one<{ last: number }>(rangeStatement(tx.schema)));
    await this.#add(tenantId, dueSubscriptionsStatement(tenantId, last, ROUND_SECONDS));
  }

  async #add(tenantId: string, statement: Statement): Promise<void> {
    const found = await this.#database.shared('events', tenantId, (tx) =>
      tx.all<{ subscriptionId: string }>(statement),
    );
    await this.add({ tenantId, subscriptionIds: found.map(({ subscriptionId }) => subscriptionId) });
  }
}
