/** Queues the deliveries of subscriptions: one job at a time for each. */
import type { Database } from '../../../mixins/database/database.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import type { Jobs } from '../../../mixins/jobs/jobs.ts';
import { jobQueue } from '../../../mixins/jobs/queue.ts';
import { rangeStatement } from './delivery.sql.ts';
import { activeStatement, dueSubscriptionsStatement } from './subscription.sql.ts';

export interface Delivering {
  readonly tenantId: string;
  readonly subscriptionId: string;
}

/** A job mostly waits: for its receiver, or for further events. */
const PER_TENANT = 32;

export const DELIVERIES = jobQueue<Delivering>('events.deliver', {
  attempts: 3,
  retrySeconds: 5,
  retryMaxSeconds: 60,
  pollSeconds: 1,
  concurrency: 64,
  perTenant: PER_TENANT,
  oneForEachKey: true,
});

/** Interval at which one process looks at what is due. */
export const ROUND_SECONDS = 20;

const AGAIN_MS = 500;

export class DeliveryQueue {
  readonly #jobs: Jobs;
  readonly #database: Database;
  /** Subscriptions that are queued once more when their job has ended: it may have looked for the last time. */
  readonly #again = new Set<string>();
  /** Jobs at work in this process, by tenant. */
  readonly #running = new Map<string, number>();

  constructor(jobs: Jobs, database: Database) {
    this.#jobs = jobs;
    this.#database = database;
  }

  /** Counts a job of the tenant while it does its work. */
  async run<T>({ tenantId }: Delivering, work: () => Promise<T>): Promise<T> {
    this.#running.set(tenantId, (this.#running.get(tenantId) ?? 0) + 1);
    try {
      return await work();
    } finally {
      const left = (this.#running.get(tenantId) ?? 1) - 1;
      if (left > 0) this.#running.set(tenantId, left);
      else this.#running.delete(tenantId);
    }
  }

  /** Another job of the tenant could begin. */
  hasRoom(tenantId: string): boolean {
    return (this.#running.get(tenantId) ?? 0) < PER_TENANT;
  }

  /** A subscription that waits already is not queued twice. */
  async add(work: Delivering): Promise<void> {
    const { subscriptionId } = work;
    if ((await this.#jobs.enqueue(DELIVERIES, work, { key: subscriptionId })) || this.#again.has(subscriptionId))
      return;
    this.#again.add(subscriptionId);
    setTimeout(() => {
      this.#again.delete(subscriptionId);
      this.#jobs.enqueue(DELIVERIES, work, { key: subscriptionId }).catch(() => {}); // the next round does
    }, AGAIN_MS).unref();
  }

  /** All subscriptions of the tenant that are active, when there are new events. */
  async addTenant(tenantId: string): Promise<void> {
    await this.#add(tenantId, activeStatement(tenantId));
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
    for (const { subscriptionId } of found) await this.add({ tenantId, subscriptionId });
  }
}
