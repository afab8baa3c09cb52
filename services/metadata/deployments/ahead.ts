/**
 * Makes what a deployment needs of indexes and foreign keys of large tables before its transaction, next to readers and
 * writers, who see nothing of it. What a worker that was lost has left is used when the deployment still calls for it,
 * and dropped else. Source: docs/decisions/ddl-next-to-writers.md.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { type Database, sqlState, type Tx } from '../../../mixins/database/database.ts';
import { ownerRole } from '../../../mixins/database/roles.ts';
import { RESTORE_TIME_LIMITS } from '../../../mixins/database/session.ts';
import type { AheadStep } from '../physical/ahead.ts';
import { dropIndexSql, dropSql, keepUpkeepOutSql, largeTablesSql, type Made, readMade } from './ahead.sql.ts';

/** Size of a table from which on it is worth while; making everything in a smaller one takes some ten milliseconds. */
const FROM_BYTES = 1024 * 1024;
/** Advisory lock of the worker that makes it, with a number made of the tenant. */
const LOCK = 7_164_005;
/** A request waiting for a table lock blocks all later ones. */
const LOCK_MS = 200;
const LOCK_ATTEMPTS = 60;
/** Lock of a deployment for making indexes; it blocks no other work. */
const UPKEEP_MS = 10_000;
const PAUSE_MAX_MS = 1_000;
const STATEMENT_MAX = '1h';
const TAKE_OVER_ATTEMPTS = 100;
const TAKE_OVER_MS = 100;

const UNIQUE_VIOLATION = '23505';
const OTHERS_HAD_THE_LOCK: ReadonlySet<string | null> = new Set(['55P03', '40P01']);

interface AheadOptions {
  /** Does the work on the connection so that it can be stopped. */
  readonly over?: (tx: Tx, work: () => Promise<void>) => Promise<void>;
  readonly fromBytes?: number;
}

/**
 * Makes these steps and drops everything else that was made ahead. Only for the worker that has the tenant's
 * deployment: work of another one is ended.
 */
export async function workAhead(
  database: Database,
  tenantId: string,
  steps: readonly AheadStep[],
  { over = (_, work) => work(), fromBytes = FROM_BYTES }: AheadOptions = {},
): Promise<void> {
  await inSession(database, tenantId, async (tx) => {
    const first = await todo(tx, steps, fromBytes);
    if (first.drops.length + first.makes.length === 0) return;
    await takeOver(database, tx, tenantId);
    await over(tx, async () => {
      const { drops, makes } = await todo(tx, steps, fromBytes);
      await drop(tx, drops);
      for (const step of makes) await make(tx, step);
    });
  });
}

/** Drops what was made ahead, unless another worker has taken over. */
export async function clearAhead(database: Database, tenantId: string): Promise<void> {
  await inSession(database, tenantId, async (tx) => {
    if ((await readMade(tx)).length === 0 || !(await tryLock(tx, tenantId))) return;
    await drop(tx, await readMade(tx));
  });
}

/** The same within the transaction of a deployment that has come to nothing. Acts as the owner of the schema. */
export async function dropAhead(tx: Tx): Promise<void> {
  const made = await readMade(tx);
  const indexes = made.filter(({ kind }) => kind === 'index').map(({ name }) => dropIndexSql(tx.schema, name));
  const all = [...indexes, ...dropSql(tx.schema, made).map(([, sql]) => sql)];
  if (all.length > 0) await tx.query(all.join(';\n'));
}

/**
 * Waits until only readers and writers use these tables: within a transaction that blocks none yet,
 * since autovacuum goes only a second after it was asked.
 */
export async function holdTables(tx: Tx, tenantId: string, tables: readonly string[]): Promise<void> {
  if (tables.length === 0) return;
  tx.actAs(ownerRole(tenantId));
  await tx.query(`SET LOCAL lock_timeout = '${UPKEEP_MS}ms'; ${keepUpkeepOutSql(tx.schema, tables)}`);
}

/** A connection of its own, which holds no locks and no settings of ours afterwards. */
async function inSession(database: Database, tenantId: string, work: (tx: Tx) => Promise<void>): Promise<void> {
  await database.session(ownerRole(tenantId), async (tx) => {
    try {
      await tx.query(`SET statement_timeout = '${STATEMENT_MAX}'`);
      await work(tx);
    } finally {
      await tx.query(`${RESTORE_TIME_LIMITS}; SELECT pg_advisory_unlock_all()`).catch(() => {});
    }
  });
}

/** Present indexes that are unwanted or half made; and wanted ones that are missing. */
async function todo(
  tx: Tx,
  steps: readonly AheadStep[],
  fromBytes: number,
): Promise<{ drops: readonly Made[]; makes: readonly AheadStep[] }> {
  const made = await readMade(tx);
  const tables = [...new Set(steps.map(({ table }) => table))];
  const large = new Set(
    tables.length > 0
      ? (await tx.all<{ name: string }>(largeTablesSql(tx.schema, tables, fromBytes))).map(({ name }) => name)
      : [],
  );
  const wanted = steps.filter(({ table }) => large.has(table));
  const names = new Set(wanted.map(({ name }) => name));
  const kept = new Set(made.filter(({ name, whole }) => whole && names.has(name)).map(({ name }) => name));
  return {
    drops: made.filter(({ name }) => !kept.has(name)),
    makes: wanted.filter(({ name }) => !kept.has(name)),
  };
}

/** A worker that has lost the deployment may not have noticed, and the server not that its process has died. */
async function takeOver(database: Database, tx: Tx, tenantId: string): Promise<void> {
  for (let attempt = 1; attempt <= TAKE_OVER_ATTEMPTS; attempt++) {
    if (await tryLock(tx, tenantId)) return;
    await database.query(
      `SELECT pg_terminate_backend(pid) FROM pg_locks
        WHERE locktype = 'advisory' AND granted AND classid = $1 AND objid::bigint = hashtext($2)::bigint & 4294967295
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      [LOCK, tenantId],
    );
    await pause(TAKE_OVER_MS);
  }
  throw new Error('Another worker goes on making what this one needs.');
}

const tryLock = async (tx: Tx, tenantId: string): Promise<boolean> =>
  (
    await tx.one<{ mine: boolean }>({
      text: 'SELECT pg_try_advisory_lock($1, hashtext($2)) AS mine',
      values: [LOCK, tenantId],
    })
  ).mine;

async function drop(tx: Tx, made: readonly Made[]): Promise<void> {
  for (const { name } of made.filter(({ kind }) => kind === 'index')) await dropIndex(tx, name);
  for (const [table, sql] of dropSql(tx.schema, made)) await quickly(tx, table, sql);
}

async function make(tx: Tx, { kind, table, name, quick, long }: AheadStep): Promise<void> {
  if (quick !== undefined) await quickly(tx, table, quick);
  if (long === undefined) return;
  try {
    await unhurriedly(tx, long);
  } catch (error) {
    if (kind !== 'index' || sqlState(error) !== UNIQUE_VIOLATION) throw error;
    // The deployment finds these values itself, and says how many they are.
    await dropIndex(tx, name);
  }
}

/** Waits for users of the table without blocking later ones. */
const dropIndex = (tx: Tx, name: string): Promise<void> => unhurriedly(tx, dropIndexSql(tx.schema, name, true));

async function unhurriedly(tx: Tx, sql: string): Promise<void> {
  await tx.query('SET lock_timeout = 0');
  await tx.query(sql);
}

/**
 * A lock that keeps writers out is not waited for long, and asked for again. Upkeep of the table (autovacuum) ends only
 * for one that waits for a second, and is awaited with a lock that blocks none.
 */
async function quickly(tx: Tx, table: string, sql: string): Promise<void> {
  const message = [
    'SET LOCAL lock_timeout = 0',
    keepUpkeepOutSql(tx.schema, [table]),
    `SET LOCAL lock_timeout = '${LOCK_MS}ms'`,
    sql,
  ].join('; ');
  for (let attempt = 1; ; attempt++)
    try {
      await tx.query(message);
      return;
    } catch (error) {
      if (attempt === LOCK_ATTEMPTS || !OTHERS_HAD_THE_LOCK.has(sqlState(error))) throw error;
      await pause(Math.min(25 * 2 ** attempt, PAUSE_MAX_MS));
    }
}
