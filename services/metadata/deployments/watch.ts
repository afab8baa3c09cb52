/**
 * Watches over a deployment while a worker has it: keeps its lease, and stops the work when the deployment is taken
 * away, because it is cancelled or because the lease went to another worker. It only makes that quick; that nothing
 * is committed then is decided by the statement that ends the deployment.
 */
import type { DeploymentStatus } from '../../../contracts/metadata.ts';
import type { Database, Tx } from '../../../mixins/database/database.ts';
import { type Progressed, renewLease, watchLease } from './lease.ts';

/** How often a worker looks whether it still may. */
const LOOK_MS = 400;
/** How often the lease is renewed before it would end. */
const RENEWALS = 4;
/** How often a statement is stopped that goes on. */
const STOP_AGAIN_MS = 250;

/** The deployment is canceled, or belongs to another worker: what this one did is rolled back. */
export class Withdrawn extends Error {}

interface Held {
  readonly tenantId: string;
  readonly deploymentId: string;
  readonly token: string;
  readonly leaseSeconds: number;
}

export class Watch {
  /** Connections that nothing else waits for, or a busy process would lose its lease. */
  readonly #database: Database;
  readonly #held: Held;
  readonly #withdrawn = new AbortController();
  readonly #timer: NodeJS.Timeout;
  #renewed = performance.now();
  #looking: Promise<void> | null = null;
  #progress: Progressed | null = null;
  #shown: Progressed | null = null;

  constructor(database: Database, held: Held) {
    this.#database = database;
    this.#held = held;
    this.#timer = setInterval(() => {
      this.#looking ??= this.#look()
        .catch(() => {})
        .finally(() => {
          this.#looking = null;
        });
    }, LOOK_MS);
  }

  /** Aborted when the work must end. */
  get signal(): AbortSignal {
    return this.#withdrawn.signal;
  }

  /** How far the work is, shown with the next look. */
  progress(done: number, total: number): void {
    this.#progress = { done, total };
  }

  /** Does work on a connection; a statement that runs there is stopped when the work must end. */
  async over<T>(tx: Tx, work: () => Promise<T>): Promise<T> {
    const { signal } = this;
    signal.throwIfAborted();
    const { pid } = await tx.one<{ pid: number }>({ text: 'SELECT pg_backend_pid() AS pid' });
    let stopping: Promise<unknown> = Promise.resolve();
    let again: NodeJS.Timeout | undefined;
    const stop = (): void => {
      stopping = stopping.then(() => this.#database.query('SELECT pg_cancel_backend($1)', [pid])).catch(() => {});
    };
    const begin = (): void => {
      stop();
      again = setInterval(stop, STOP_AGAIN_MS);
    };
    signal.addEventListener('abort', begin);
    try {
      // It may have come while the connection was asked who it is.
      signal.throwIfAborted();
      return await work();
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    } finally {
      signal.removeEventListener('abort', begin);
      clearInterval(again);
      // Afterwards the connection belongs to other work.
      await stopping;
    }
  }

  /** The process stops: the work ends, for another worker to begin it again. */
  end(): void {
    this.#withdrawn.abort(new Withdrawn('The worker is stopping.'));
  }

  /** Ends the watch. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { tenantId, deploymentId, token, leaseSeconds } = this.#held;
    const now = performance.now();
    const progress = this.#progress;
    const renews = progress !== this.#shown || now - this.#renewed > (leaseSeconds * 1_000) / RENEWALS;
    const status = await this.#database.shared(
      'metadata',
      tenantId,
      (tx): Promise<DeploymentStatus | null> =>
        renews
          ? renewLease(tx, tenantId, deploymentId, token, { leaseSeconds, progress })
          : watchLease(tx, tenantId, deploymentId, token),
    );
    if (renews) this.#renewed = now;
    this.#shown = progress;
    if (status === null || status === 'CANCELING')
      this.#withdrawn.abort(new Withdrawn('The deployment was withdrawn.'));
  }
}
