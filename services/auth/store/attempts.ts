/** Failed sign-ins by username and by network address. The table holds no tenant's data: no tenant is known yet. */
import type { Database } from '../../../mixins/database/database.ts';
import type { AttemptCounter } from '../attempt-limits.ts';
import { countAttempt, deleteAttempts, uncountAttempt } from './attempts.sql.ts';

export class Attempts {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Counts an attempt before it is judged, so that attempts in parallel cannot outrun the count: in each counter in
   * turn, and in none behind one that refuses it. Returns the seconds to wait: 0 when the attempt may be judged. From
   * `freeFailures` on, each failure doubles the wait.
   */
  async count(counters: readonly AttemptCounter[]): Promise<number> {
    for (const { key, limit } of counters) {
      const { counted, waitSeconds } = await this.#database.login((tx) =>
        tx.one<{ counted: boolean; waitSeconds: number }>(countAttempt(key, limit.freeFailures, limit.waitMaxSeconds)),
      );
      if (!counted) return Math.max(1, Math.ceil(waitSeconds));
    }
    return 0;
  }

  /** Takes back a counted attempt: it was a success after all. */
  async takeBack(counters: readonly AttemptCounter[]): Promise<void> {
    await Promise.all(
      counters.map(({ key, shared }) => this.#database.query(shared ? uncountAttempt(key) : deleteAttempts(key))),
    );
  }
}
