/** Browsers and networks from which users have signed in. */
import type { Database } from '../../../mixins/database/database.ts';
import { rememberOrigins } from './known-origins.sql.ts';

/** Of one user; who signs in from more places is asked to wait there like a stranger when somebody guesses. */
const KEPT_PER_USER = 20;

export class KnownOrigins {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async remember(tenantId: string, userId: string, origins: readonly Buffer[]): Promise<void> {
    await this.#database.shared('auth', tenantId, async (tx) => {
      for (const statement of rememberOrigins(tenantId, userId, origins, KEPT_PER_USER)) await tx.query(statement);
    });
  }
}
