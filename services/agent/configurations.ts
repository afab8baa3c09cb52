/**
 * The configuration of tenants as this process knows it: it may be outdated at any moment, and a transaction that
 * decides by it proves first that it is not.
 */

import { LRUCache } from 'lru-cache';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import type { Snapshot } from '../../lib/schema/snapshot.ts';
import { entryBound } from '../../lib/values/entry-bound.ts';
import type { Database, Tx } from '../../mixins/database/database.ts';
import { serviceRole, tenantRole } from '../../mixins/database/roles.ts';
import type { Statement } from '../../mixins/database/statement.ts';
import type { SnapshotCache } from '../../mixins/snapshot-cache/snapshot-cache.ts';

/** A newer configuration was deployed. */
class Stale extends Error {
  constructor() {
    super('The configuration has changed.');
  }
}

const ATTEMPTS_MAX = 4;
const TENANTS_MAX = 20_000;

export class Configurations {
  readonly #database: Database;
  readonly #snapshots: SnapshotCache;
  readonly #applied: (tenantId: string, snapshot: Snapshot) => Promise<void>;
  readonly #versions = new LRUCache<string, number>(entryBound(TENANTS_MAX));

  /**
   * `applied` does what a configuration demands, before anything is decided or shown by it. Doing it twice does no
   * harm.
   */
  constructor(
    database: Database,
    snapshots: SnapshotCache,
    applied: (tenantId: string, snapshot: Snapshot) => Promise<void>,
  ) {
    this.#database = database;
    this.#snapshots = snapshots;
    this.#applied = applied;
    database.onReplaced(() => {
      this.#versions.clear();
      snapshots.clear();
    });
  }

  /** The configuration as it is now, with everything done that it demands. */
  async current(tenantId: string): Promise<Snapshot> {
    const { version } = await this.#database.tenant(tenantId, (tx) => tx.one<Version>(versionStatement(tx.schema)));
    return this.#snapshot(tenantId, version);
  }

  async #snapshot(tenantId: string, version: number | undefined): Promise<Snapshot> {
    const snapshot = await this.#snapshots.get(tenantId, version);
    if (!snapshot) throw new PlatformError('INTERNAL_ERROR', 'The configuration of the tenant is not available.');
    if (this.#versions.get(tenantId) !== snapshot.version) await this.#applied(tenantId, snapshot);
    this.#versions.set(tenantId, snapshot.version);
    return snapshot;
  }

  /**
   * A transaction as the role of this service that decides by the current configuration. `work` is done again with a
   * newer one; what it has written then is rolled back.
   */
  async transaction<T>(tenantId: string, work: (tx: Tx, snapshot: Snapshot) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const snapshot = await this.#snapshot(tenantId, this.#versions.get(tenantId));
      try {
        return await this.#database.shared('agent', tenantId, async (tx) => {
          const [current, worked] = await Promise.allSettled([
            proveCurrent(tx, tenantId, snapshot),
            work(tx, snapshot),
          ]);
          // A failure by an older configuration may succeed by the newer one.
          if (current.status === 'rejected') throw current.reason;
          if (worked.status === 'rejected') throw worked.reason;
          return worked.value;
        });
      } catch (error) {
        if (!(error instanceof Stale)) throw error;
        this.#versions.delete(tenantId);
        if (attempt === ATTEMPTS_MAX)
          throw new PlatformError('WRITE_CONTENTION', 'The configuration of the tenant keeps changing; try again.', {
            retryAfterSeconds: 1,
          });
      }
    }
  }
}

interface Version {
  readonly version: number;
}

const versionStatement = (schema: string): Statement => ({
  name: `agent version ${schema}`,
  text: `SELECT metadata_version AS version FROM ${schema}._state`,
});

/** Throws when there is a newer configuration. The question is sent ahead of the work, which does not wait for it. */
async function proveCurrent(tx: Tx, tenantId: string, snapshot: Snapshot): Promise<void> {
  tx.actAs(tenantRole(tenantId));
  const current = tx.one<Version>(versionStatement(tx.schema));
  tx.actAs(serviceRole('agent', tenantId));
  if ((await current).version !== snapshot.version) throw new Stale();
}
