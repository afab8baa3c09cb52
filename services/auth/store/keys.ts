/** Signing keys and the key of cookie signatures. They belong to the platform, not to a tenant. */
import type { Database } from '../../../mixins/database/database.ts';
import * as statements from './keys.sql.ts';

interface StoredKey extends statements.NewKey {
  purpose: statements.KeyPurpose;
  createdAt: Date;
  retiredAt: Date | null;
}

interface KeyRow extends statements.NewKey {
  purpose: statements.KeyPurpose;
  createdAt: string;
  retiredAt: string | null;
}

export class StoredKeys {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** The newest first. */
  async all(): Promise<StoredKey[]> {
    const rows = await this.#database.login((tx) => tx.all<KeyRow>(statements.allKeys()));
    return rows.map((row) => ({
      ...row,
      createdAt: new Date(row.createdAt),
      retiredAt: row.retiredAt === null ? null : new Date(row.retiredAt),
    }));
  }

  /** Replaces what is stored of each key for which `changed` returns something; returns how many those were. */
  change(changed: (key: statements.NewKey) => statements.NewKey | null): Promise<number> {
    return this.#database.transaction(async (tx) => {
      await tx.query(statements.lockKeys());
      const keys = (await tx.all<KeyRow>(statements.allKeys())).map(changed).filter((key) => key !== null);
      for (const key of keys) await tx.query(statements.updateKey(key));
      return keys.length;
    });
  }

  /**
   * Adds a key and retires the older ones of its purpose; two nodes that do so at the same moment do it once. `make` is
   * called only when the newest key is older than `olderThanSeconds` (0: always).
   */
  replace(
    purpose: statements.KeyPurpose,
    { olderThanSeconds, keepRetiredSeconds }: { olderThanSeconds: number; keepRetiredSeconds: number },
    make: () => Promise<statements.NewKey>,
  ): Promise<boolean> {
    return this.#database.transaction(async (tx) => {
      await tx.query(statements.lockKeys());
      const { fresh } = await tx.one<{ fresh: boolean }>(statements.newestKeyIsFresh(purpose, olderThanSeconds));
      if (fresh) return false;
      const key = await make();
      await tx.query(statements.retireKeys(purpose));
      await tx.query(statements.insertKey(purpose, key));
      await tx.query(statements.deleteRetiredKeys(purpose, keepRetiredSeconds));
      return true;
    });
  }
}
