/**
 * The end of a tenant: when its grace period is over, everything that the platform holds of it is removed, and a proof
 * says how much, and that nothing is left. Each step is a transaction that writes its numbers into the proof, so that a
 * process may die at any moment and the next round goes on with true numbers. Source: docs/reference/tenants.md.
 */
import type { MetadataActions, TenantDeletion } from '../../../contracts/metadata.ts';
import { tenantSchema } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { isUuid, uuidv7 } from '../../../lib/values/ids.ts';
import type { Database, Tx } from '../../../mixins/database/database.ts';
import { ownerRole, serviceRole } from '../../../mixins/database/roles.ts';
import type { Jobs } from '../../../mixins/jobs/jobs.ts';
import { periodicQueue } from '../../../mixins/jobs/queue.ts';
import { DDL_LIMITS, retryLocked } from '../tenants.ts';
import {
  beginSql,
  countSql,
  DUE,
  dropSql,
  eraseRowsSql,
  eraseTenantSql,
  findTracesSql,
  noteRemovedSql,
  noteRolesSql,
  noteTracesSql,
  proofOf,
  proofsSql,
  tablesSql,
  UNFINISHED,
} from './erase.sql.ts';

const ERASURE = periodicQueue('metadata.erasure', { everySeconds: 60, pollSeconds: 15, firstAfterSeconds: 10 });

/** Rows removed in one transaction. */
const ROWS = 5_000;
/** Tables of the tenant dropped in one transaction: each takes locks on what belongs to it. */
const TABLES = 10;
const PROOFS_MAX = 200;

interface ErasureOptions {
  /** Removes some contents of files from their store; how many it removed. */
  readonly eraseContents: (tenantId: string) => Promise<number>;
  /** A tenant is gone. */
  readonly erased: (tenantId: string) => void;
  /** It is tried again in the next round. */
  readonly failed: (tenantId: string, error: unknown) => void;
  /** Data is left although everything was removed: an operator must look. */
  readonly left: (tenantId: string, remaining: Readonly<Record<string, number>>) => void;
}

/** One round: begins what is due, goes on with what has begun, and looks once more at what was left. */
export async function eraseDue(database: Database, options: ErasureOptions, signal?: AbortSignal): Promise<void> {
  const due = await database.login((tx) => tx.all<{ tenantId: string }>(DUE));
  for (const { tenantId } of due) {
    if (signal?.aborted) return;
    try {
      if (await eraseTenant(database, tenantId, options, signal)) options.erased(tenantId);
    } catch (error) {
      options.failed(tenantId, error);
    }
  }
  const unfinished = await database.login((tx) => tx.all<{ tenantId: string }>(UNFINISHED));
  for (const { tenantId } of unfinished) {
    if (signal?.aborted) return;
    try {
      const { remaining } = await prove(database, tenantId);
      if (Object.keys(remaining).length > 0) options.left(tenantId, remaining);
    } catch (error) {
      options.failed(tenantId, error);
    }
  }
}

/** True when the tenant is gone; false: its deletion was taken back at the last moment, or the process stops. */
async function eraseTenant(
  database: Database,
  tenantId: string,
  { eraseContents }: ErasureOptions,
  signal?: AbortSignal,
): Promise<boolean> {
  if ((await database.login((tx) => tx.all(beginSql(tenantId, uuidv7())))).length === 0) return false;
  // The rows say where they are.
  while ((await eraseContents(tenantId)) > 0) if (signal?.aborted) return false;
  for (const step of [eraseRows, dropTables]) {
    let more = true;
    while (more) {
      if (signal?.aborted) return false;
      more = await retryLocked(() => database.transaction((tx) => step(tx, tenantId)), signal);
    }
  }
  await retryLocked(
    () =>
      database.transaction(async (tx) => {
        await tx.query(DDL_LIMITS);
        const { rolesRemoved } = await tx.one<{ rolesRemoved: boolean }>(eraseTenantSql(tenantId));
        await tx.query(noteRolesSql(tenantId, rolesRemoved));
      }),
    signal,
  );
  return true;
}

/** Rows in the tables of all services; whether there may be more. */
async function eraseRows(tx: Tx, tenantId: string): Promise<boolean> {
  const { removed } = await tx.one<{ removed: Record<string, number> }>(eraseRowsSql(tenantId, ROWS));
  if (Object.keys(removed).length === 0) return false;
  await tx.query(noteRemovedSql(tenantId, removed));
  return true;
}

/** Tables of the tenant's own schema. */
async function dropTables(tx: Tx, tenantId: string): Promise<boolean> {
  const schema = tenantSchema(tenantId);
  const tables = await tx.all<{ name: string }>(tablesSql(schema, TABLES));
  if (tables.length === 0) return false;
  await tx.query(DDL_LIMITS);
  tx.actAs(ownerRole(tenantId));
  const removed: Record<string, number> = {};
  for (const { name } of tables) {
    removed[`tenant.${name}`] = (await tx.one<{ rows: number }>(countSql(schema, name))).rows;
    await tx.query(dropSql(schema, name));
  }
  tx.actAs(serviceRole('metadata', tenantId));
  await tx.query(noteRemovedSql(tenantId, removed));
  return true;
}

type Traces = MetadataActions['metadata.tenants.findTraces']['result'];

const look = async (tx: Tx, tenantId: string): Promise<Traces> => {
  await tx.query(DDL_LIMITS);
  const { tables, traces } = await tx.one<{ tables: number; traces: Record<string, number> }>(findTracesSql(tenantId));
  return { tablesChecked: tables, remaining: traces };
};

function prove(database: Database, tenantId: string): Promise<Traces> {
  return database.transaction(async (tx) => {
    const traces = await look(tx, tenantId);
    await tx.query(noteTracesSql(tenantId, traces.tablesChecked, traces.remaining));
    return traces;
  });
}

/** The same for an operator, at any time. Throws PARAMETER_INVALID when no proof names the tenant. */
export async function findTraces(database: Database, tenantId: unknown): Promise<Traces> {
  const known =
    isUuid(tenantId) &&
    (await database.login((tx) =>
      tx.first({ text: 'SELECT FROM metadata.deletions WHERE deleted = $1', values: [tenantId] }),
    ));
  if (!known) throw new PlatformError('PARAMETER_INVALID', 'tenantId must be the id of an erased tenant.');
  return database.transaction((tx) => look(tx, tenantId));
}

/** The newest proofs. */
export function listDeletions(database: Database, key: string | undefined): Promise<TenantDeletion[]> {
  return database.login(async (tx) =>
    (await tx.all<TenantDeletion>(proofsSql(key === undefined ? null : String(key), PROOFS_MAX))).map(proofOf),
  );
}

/** Offers to do it in this process. */
export const erasePeriodically = (database: Database, jobs: Jobs, options: ErasureOptions): Promise<void> =>
  jobs.repeat(ERASURE, (signal) => eraseDue(database, options, signal));
