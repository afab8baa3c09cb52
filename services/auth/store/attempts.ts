/** Failed sign-ins by username and by network address. The table holds no tenant's data: no tenant is known yet. */
import type { Database } from '../../../mixins/database/database.ts';
import type { AttemptLimit } from '../attempt-limits.ts';
import { countAttempt, deleteAttempts, uncountAttempt } from './attempts.sql.ts';

export class Attempts {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Counts an attempt before it is judged, so that attempts in parallel cannot outrun the count. Returns the seconds to
   * wait: 0 when the attempt may be judged. From `freeFailures` on, each failure doubles the wait.
   */
  async count(key: string, { freeFailures, waitMaxSeconds }: AttemptLimit): Promise<number> {
    const { counted, waitSeconds } = await this.#database.login((tx) =>
      tx.one<{ counted: boolean; waitSeconds: number }>(countAttempt(key, freeFailures, waitMaxSeconds)),
    );
    return counted ? 0 : Math.max(1, Math.ceil(waitSeconds));
  }

  async forget(key: string): Promise<void> {
    await this.#database.query(deleteAttempts(key));
  }

  /** Takes back one counted attempt: it was a success after all. */
  async uncount(key: string): Promise<void> {
    await this.#database.query(uncountAttempt(key));
  }
}
