/** Counts of deprecated operations that clients of a tenant call. */
import type { DeprecatedUse } from '../../../contracts/auth.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { addUses, type UseRow, usesOfTenant } from './deprecated-uses.sql.ts';

export class DeprecatedUses {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async add(tenantId: string, uses: readonly DeprecatedUse[]): Promise<void> {
    await this.#database.shared('auth', tenantId, (tx) => tx.query(addUses(tenantId, uses)));
  }

  list(tenantId: string, operationIds: readonly string[], limit: number): Promise<UseRow[]> {
    return this.#database.shared('auth', tenantId, (tx) => tx.all<UseRow>(usesOfTenant(tenantId, operationIds, limit)));
  }
}
