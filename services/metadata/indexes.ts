/**
 * Gives the tables of tenants that an older version of the platform made the indexes that this version works with,
 * while records are read and written: an index is made next to the writers, by one process at a time. A process that
 * dies meanwhile leaves an invalid index, which the next one drops and makes again. Source:
 * docs/reference/metadata.md#storage.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { tenantSchema } from '../../lib/context.ts';
import { required } from '../../lib/values/required.ts';
import { identifier } from '../../lib/values/sql-text.ts';
import { type Database, sqlState, type Tx } from '../../mixins/database/database.ts';
import { ownerRole, serviceRole } from '../../mixins/database/roles.ts';
import { RESTORE_TIME_LIMITS } from '../../mixins/database/session.ts';
import {
  createIndexSql,
  type ExistingIndex,
  INDEX_GENERATION,
  type IndexChanges,
  indexChanges,
  leftOver,
  successor,
  type WantedIndex,
  wantedIndexes,
} from './physical/indexes.ts';
import { physicalModel } from './physical/model.ts';
import { loadState, requireTenant } from './store.ts';
import { DDL_LIMITS, inConfiguration, lockConfiguration, requireCurrentSchema } from './tenants.ts';

/** Advisory lock of the process that makes indexes. */
const LOCK = 7_164_004;
/** A configuration that keeps changing is read again this often; then it is left for later. */
const ROUNDS_MAX = 5;
/** Until the next attempt, when another process makes indexes or one could not be made. */
const AGAIN_MS = 5 * 60_000;

/** Another process makes indexes. */
class Busy extends Error {}
class Stopped extends Error {}

export class IndexUpkeep {
  readonly #database: Database;
  readonly #failed: (tenantId: string | null, error: unknown) => void;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  /** The connection that is making an index. */
  #backend: number | null = null;

  constructor(database: Database, failed: (tenantId: string | null, error: unknown) => void) {
    this.#database = database;
    this.#failed = failed;
  }

  /** Works in the background until every tenant has its indexes. */
  start(): void {
    this.#running = this.#untilDone().catch(() => {});
  }

  /** Cancels the index that is being made; the next start makes it. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    if (this.#backend !== null)
      await this.#database.query('SELECT pg_cancel_backend($1)', [this.#backend]).catch(() => {});
    await this.#running;
  }

  async #untilDone(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const { left } = await this.run();
      if (left === 0) return;
      await pause(AGAIN_MS, undefined, { signal, ref: false });
    }
  }

  /** One look at all tenants: how many were brought up to date, and how many are left for later. */
  async run(): Promise<{ done: number; left: number }> {
    let done = 0;
    let left = 0;
    try {
      for (const tenantId of await this.#outdated()) {
        if (this.#stopping.signal.aborted) break;
        try {
          await this.#bring(tenantId);
          done++;
        } catch (error) {
          left++;
          if (!(error instanceof Busy) && !this.#stopping.signal.aborted) this.#failed(tenantId, error);
        }
      }
    } catch (error) {
      left++;
      this.#failed(null, error);
    }
    return { done, left };
  }

  async #outdated(): Promise<string[]> {
    const { rows } = await this.#database.query<{ id: string }>(
      'SELECT id FROM metadata.tenants WHERE index_generation < $1 AND erasing_since IS NULL ORDER BY id',
      [INDEX_GENERATION],
    );
    return rows.map(({ id }) => id);
  }

  async #bring(tenantId: string): Promise<void> {
    for (let round = 1; round <= ROUNDS_MAX; round++) {
      const seen = await readChanges(this.#database, tenantId);
      if (seen.missing.length + seen.changed.length > 0) await this.#make(tenantId, seen);
      if (this.#stopping.signal.aborted) throw new Stopped();
      if (await this.#settle(tenantId, seen)) return;
    }
    throw new Error('The configuration kept changing.');
  }

  /** Outside a transaction, as PostgreSQL wants it; waiting for old transactions blocks none. */
  async #make(tenantId: string, { missing, changed }: IndexChanges): Promise<void> {
    const schema = identifier(tenantSchema(tenantId));
    await this.#database.session(ownerRole(tenantId), async (tx) => {
      const { mine, pid } = await tx.one<{ mine: boolean; pid: number }>({
        text: 'SELECT pg_try_advisory_lock($1) AS mine, pg_backend_pid() AS pid',
        values: [LOCK],
      });
      if (!mine) throw new Busy();
      try {
        await tx.query('SET lock_timeout = 0');
        await tx.query('SET statement_timeout = 0');
        this.#backend = pid;
        const existing = new Map((await readExisting(tx, tenantId)).map((index) => [index.name, index]));
        for (const index of [...missing, ...changed]) {
          if (this.#stopping.signal.aborted) return;
          const succeeds = changed.includes(index);
          const name = succeeds ? successor(index.name) : index.name;
          // Half made, or made for a configuration that has passed.
          const found = existing.get(name);
          if (found && (succeeds || !found.valid))
            await tx.query(`DROP INDEX CONCURRENTLY IF EXISTS ${schema}.${identifier(name)}`);
          await tx.query(createIndexSql(index, { name, schema, concurrently: true }));
        }
      } catch (error) {
        // A deployment was faster: what there is to do is computed again.
        if (!OVERTAKEN.has(sqlState(error) ?? '')) throw error;
      } finally {
        this.#backend = null;
        await tx.query(RESTORE_TIME_LIMITS).catch(() => {});
        await tx.query('SELECT pg_advisory_unlock($1)', [LOCK]).catch(() => {});
      }
    });
  }

  /**
   * With the configuration held still: puts successors in their places, drops what nothing calls for, and notes that
   * all is there. False: it is not, or the configuration is another one by now.
   */
  #settle(tenantId: string, { version, wanted, changed }: Seen): Promise<boolean> {
    const schema = identifier(tenantSchema(tenantId));
    return inConfiguration(this.#database, tenantId, async (tx) => {
      await tx.query(DDL_LIMITS);
      const tenant = await lockConfiguration(tx, tenantId);
      if (tenant.metadataVersion !== version) return false;
      tx.actAs(ownerRole(tenantId));
      const existing = await readExisting(tx, tenantId);
      const usable = new Set(existing.filter(({ valid }) => valid).map(({ name }) => name));
      if (!wanted.every(({ name }) => usable.has(name))) return false;
      if (!changed.every(({ name }) => usable.has(successor(name)))) return false;
      for (const { name } of changed) {
        await tx.query(`DROP INDEX ${schema}.${identifier(name)}`);
        await tx.query(`ALTER INDEX ${schema}.${identifier(successor(name))} RENAME TO ${identifier(name)}`);
      }
      const replaced = new Set(changed.map(({ name }) => successor(name)));
      for (const name of leftOver(wanted, existing).filter((other) => !replaced.has(other)))
        await tx.query(`DROP INDEX ${schema}.${identifier(name)}`);
      tx.actAs(serviceRole('metadata', tenantId));
      await tx.query('UPDATE metadata.tenants SET index_generation = $2 WHERE id = $1', [tenantId, INDEX_GENERATION]);
      return true;
    });
  }
}

/** The table or column is gone, or other work had the locks. */
const OVERTAKEN: ReadonlySet<string> = new Set(['42P01', '42703', '42P07', '40P01', '55P03']);

/** Work for a version of the configuration. */
interface Seen extends IndexChanges {
  readonly version: number;
  readonly wanted: readonly WantedIndex[];
}

/**
 * The wanted indexes are made on empty copies of the tables, which are rolled back and invisible to others: so
 * PostgreSQL gives their definitions in the form in which it gives those of the existing ones.
 */
async function readChanges(database: Database, tenantId: string): Promise<Seen> {
  const look = async (tx: Tx): Promise<never> => {
    await tx.query(DDL_LIMITS);
    await requireCurrentSchema(tx, tenantId);
    const { metadataVersion } = await requireTenant(tx, tenantId);
    const wanted = wantedIndexes(physicalModel(await loadState(tx, tenantId)));
    tx.actAs(ownerRole(tenantId));
    const existing = await readExisting(tx, tenantId);
    const copies = new Map([...new Set(wanted.map(({ table }) => table))].map((table, n) => [table, `_copy${n}`]));
    await tx.query(
      [
        ...copies
          .entries()
          .map(([table, copy]) => `CREATE TABLE ${tx.schema}.${copy} (LIKE ${tx.schema}.${identifier(table)})`),
        ...wanted.map((index, n) =>
          createIndexSql(
            { ...index, table: required(copies, index.table) },
            { name: `_copy_index${n}`, schema: tx.schema },
          ),
        ),
      ].join(';\n'),
    );
    const made = new Map((await readExisting(tx, tenantId)).map(({ name, definition }) => [name, definition]));
    const definitions = new Map(
      wanted.flatMap(({ name }, n) => {
        const definition = made.get(`_copy_index${n}`);
        return definition === undefined ? [] : [[name, definition] as const];
      }),
    );
    const changes = indexChanges(wanted, definitions, existing);
    throw new Looked({ version: metadataVersion, wanted, ...changes });
  };
  return inConfiguration(database, tenantId, look).catch((error) => {
    if (error instanceof Looked) return error.seen;
    throw error;
  });
}

/** The copies are rolled back. */
class Looked extends Error {
  readonly seen: Seen;

  constructor(seen: Seen) {
    super('The indexes have been compared.');
    this.seen = seen;
  }
}

const readExisting = (tx: Tx, tenantId: string): Promise<ExistingIndex[]> =>
  readIndexes(tx, `'${identifier(tenantSchema(tenantId))}'::regnamespace`);

async function readIndexes(tx: Tx, namespace: string): Promise<ExistingIndex[]> {
  const { rows } = await tx.query<ExistingIndex>(
    `SELECT c.relname AS name, i.indisvalid AS valid,
        i.indisunique || regexp_replace(pg_get_indexdef(i.indexrelid), '^.*? USING ', ' ') AS definition
      FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relnamespace = ${namespace}`,
  );
  return rows;
}
