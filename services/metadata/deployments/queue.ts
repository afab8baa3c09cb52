/**
 * The queue of deployments is their table: each process looks for tenants whose first open deployment is unclaimed, and
 * works on a few of them at a time. So whatever becomes of a worker, its process or the database, the next look finds
 * what is left. Source: docs/decisions/deployments-as-their-own-queue.md.
 */
import { LEASE_CONNECTIONS } from '../../../config/services.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { failureOf } from '../../../mixins/database/failures.ts';
import { workOn } from '../../../mixins/watchdog/work.ts';
import { dueTenantsStatement } from './queue.sql.ts';

/** How often a process looks, about: what another one has accepted or lost is taken so soon. */
const LOOK_MS = 1_000;
/**
 * Deployments that one process works on at a time. Each has a connection for its lease and the looks have one, so that a
 * renewal waits for nothing else: not for a slow look, nor for the row of another deployment that is about to commit.
 */
const CONCURRENCY = LEASE_CONNECTIONS - 1;
/**
 * A tenant whose deployments cannot be worked on, or not by this process, keeps no others waiting: it is left alone for
 * longer each time.
 */
const REST_MS = 1_000;
const REST_MAX_MS = 60_000;
/** Work that is under way when the process stops has this long to be given back. */
const STOP_TIMEOUT_MS = 8_000;

interface DeploymentQueueOptions {
  /** Works on the first open deployment of a tenant; false: it was not to be had. */
  readonly run: (tenantId: string) => Promise<boolean>;
  /** A look or a run failed; it is tried again. `tenantId` null: of a look. */
  readonly failed: (error: unknown, tenantId: string | null) => void;
}

interface Rest {
  readonly until: number;
  readonly ms: number;
}

export class DeploymentQueue {
  readonly #database: Database;
  readonly #options: DeploymentQueueOptions;
  readonly #running = new Map<string, Promise<void>>();
  readonly #resting = new Map<string, Rest>();
  #isStopping = false;
  #isAway = false;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | null = null;
  #again = false;
  #stopped: Promise<void> | undefined;

  constructor(database: Database, options: DeploymentQueueOptions) {
    this.#database = database;
    this.#options = options;
  }

  /** Begins to look. */
  start(): void {
    this.wake();
  }

  /** Looks at once: after the commit that accepted a deployment, or the end of one. */
  wake(): void {
    if (this.#isStopping) return;
    this.#again = true;
    this.#looking ??= this.#lookUntilDone().finally(() => {
      this.#looking = null;
      if (this.#again) this.wake();
      else if (!this.#isStopping) this.#timer = setTimeout(() => this.wake(), LOOK_MS * (0.75 + Math.random() / 2));
    });
  }

  /** Takes no more. What is under way was asked to end before, and gets some time for it. */
  stop(): Promise<void> {
    return (this.#stopped ??= this.#stop());
  }

  async #stop(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#timer);
    let limit: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      limit = setTimeout(resolve, STOP_TIMEOUT_MS);
    });
    const ended = Promise.all([this.#looking, ...this.#running.values()]);
    await Promise.race([ended, late]).finally(() => clearTimeout(limit));
  }

  async #lookUntilDone(): Promise<void> {
    clearTimeout(this.#timer);
    while (this.#again && !this.#isStopping) {
      this.#again = false;
      try {
        await this.#look();
        this.#isAway = false;
      } catch (error) {
        // Once per outage: the next look is soon.
        if (!this.#isAway) this.#options.failed(error, null);
        this.#isAway = true;
      }
    }
  }

  async #look(): Promise<void> {
    const free = CONCURRENCY - this.#running.size;
    if (free <= 0) return;
    const now = performance.now();
    for (const [tenantId, { until }] of this.#resting) if (now - until > REST_MAX_MS) this.#resting.delete(tenantId);
    const resting = [...this.#resting].filter(([, { until }]) => until > now).map(([tenantId]) => tenantId);
    const left = [...this.#running.keys(), ...resting];
    const due = await this.#database.login((tx) => tx.all<{ tenantId: string }>(dueTenantsStatement(left, free)));
    if (this.#isStopping) return;
    for (const { tenantId } of due) this.#running.set(tenantId, this.#run(tenantId));
  }

  async #run(tenantId: string): Promise<void> {
    try {
      const work = { label: 'metadata.deployments', requestId: null };
      if (await workOn(work, () => this.#options.run(tenantId))) this.#resting.delete(tenantId);
      // Or the next look would find it at once, and the next, for as long as only others may take it.
      else this.#rest(tenantId, this.#resting.get(tenantId)?.ms ?? 0);
    } catch (error) {
      // A database that fails says so elsewhere, and the deployments go on as soon as it is back.
      const isAway = failureOf(error) !== null;
      this.#rest(tenantId, isAway ? 0 : (this.#resting.get(tenantId)?.ms ?? 0));
      if (!this.#isStopping && !isAway) this.#options.failed(error, tenantId);
    } finally {
      this.#running.delete(tenantId);
      this.wake();
    }
  }

  /** Twice as long as before. */
  #rest(tenantId: string, beforeMs: number): void {
    const ms = Math.min(Math.max(REST_MS, 2 * beforeMs), REST_MAX_MS);
    this.#resting.set(tenantId, { until: performance.now() + ms, ms });
  }
}
