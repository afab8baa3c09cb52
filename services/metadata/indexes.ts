/**
 * Gives the tables of tenants that an older version of the platform made the indexes that this version works with. It
 * happens while everybody works: an index is made next to the writers, by one process at a time, and a process that dies
 * over it leaves an index that the next one drops and makes again. Source: docs/reference/metadata.md#storage.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { tenantSchema } from '../../lib/context.ts';
import { type Database, sqlState, type Tx } from '../../mixins/database/database.ts';
import { type ExistingIndex, INDEX_GENERATION, type IndexChanges, indexChanges } from './physical/indexes.ts';
import { physicalModel, quote } from './physical/model.ts';
import { loadState } from './store.ts';
import { enterTenant, lockTenant, retryLocked } from './tenants.ts';

/** Advisory lock of whoever makes indexes. */
const LOCK = 7_164_004;
/** A configuration that keeps changing is looked at again this often; then another time. */
const ROUNDS_MAX = 5;
/** Somebody else makes them, or something stood against it. */
const AGAIN_MS = 5 * 60_000;

/** Another process makes indexes. */
class Busy extends Error {}

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

  /** An index that is being made is given up; the next start makes it. */
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
      'SELECT id FROM metadata.tenants WHERE index_generation < $1 ORDER BY id',
      [INDEX_GENERATION],
    );
    return rows.map(({ id }) => id);
  }

  async #bring(tenantId: string): Promise<void> {
    for (let round = 1; round <= ROUNDS_MAX; round++) {
      const changes = await this.#database.transaction((tx) => readChanges(tx, tenantId));
      if (changes.missing.length > 0) await this.#make(tenantId, changes);
      if (await this.#settle(tenantId)) return;
    }
    throw new Error('The configuration kept changing.');
  }

  /** Outside a transaction, as PostgreSQL wants it; waiting for old transactions keeps nobody out. */
  async #make(tenantId: string, { broken, missing }: IndexChanges): Promise<void> {
    const schema = quote(tenantSchema(tenantId));
    await this.#database.session(async (tx) => {
      const { rows } = await tx.query<{ mine: boolean; pid: number }>(
        'SELECT pg_try_advisory_lock($1) AS mine, pg_backend_pid() AS pid',
        [LOCK],
      );
      if (!rows[0]!.mine) throw new Busy();
      try {
        await tx.query('SET lock_timeout = 0');
        await tx.query('SET statement_timeout = 0');
        this.#backend = rows[0]!.pid;
        if (this.#stopping.signal.aborted) return;
        for (const name of broken) await tx.query(`DROP INDEX CONCURRENTLY IF EXISTS ${schema}.${quote(name)}`);
        for (const { name, unique, on } of missing) {
          const kind = unique ? 'UNIQUE INDEX' : 'INDEX';
          await tx.query(`CREATE ${kind} CONCURRENTLY IF NOT EXISTS ${quote(name)} ON ${on}`);
        }
      } catch (error) {
        // A deployment was faster: what there is to do is worked out again.
        if (!OVERTAKEN.has(sqlState(error) ?? '')) throw error;
      } finally {
        this.#backend = null;
        await tx.query('RESET lock_timeout').catch(() => {});
        await tx.query('RESET statement_timeout').catch(() => {});
        await tx.query('SELECT pg_advisory_unlock($1)', [LOCK]).catch(() => {});
      }
    });
  }

  /** With the configuration held still: drops what nothing calls for, and notes that all is there. False: it is not. */
  #settle(tenantId: string): Promise<boolean> {
    return retryLocked(() =>
      this.#database.transaction(async (tx) => {
        await tx.query(enterTenant(tenantId));
        await lockTenant(tx, tenantId);
        const { missing, leftOver } = await readChanges(tx, tenantId);
        if (missing.length > 0) return false;
        const schema = quote(tenantSchema(tenantId));
        for (const name of leftOver) await tx.query(`DROP INDEX ${schema}.${quote(name)}`);
        await tx.query('UPDATE metadata.tenants SET index_generation = $2 WHERE id = $1', [tenantId, INDEX_GENERATION]);
        return true;
      }),
    );
  }
}

/** The table or column is gone, or other work had the locks. */
const OVERTAKEN: ReadonlySet<string> = new Set(['42P01', '42703', '42P07', '40P01', '55P03']);

async function readChanges(tx: Tx, tenantId: string): Promise<IndexChanges> {
  const schema = tenantSchema(tenantId);
  await tx.query(`SET LOCAL app.tenant_id = '${tenantId}'`);
  const state = await loadState(tx, tenantId);
  const { rows } = await tx.query<ExistingIndex>(
    `SELECT c.relname AS name, i.indisvalid AS valid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
      JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1`,
    [schema],
  );
  return indexChanges(physicalModel(state), rows, quote(schema));
}
