/**
 * Runs the DDL of a validation in a transaction that is rolled back. Writers wait meanwhile, so it is done only where it
 * takes little: what the plan and the records say about a validation has been found before, next to writers. Source:
 * docs/decisions/ddl-next-to-writers.md#validations.
 */
import { literal } from '../../../lib/values/sql-text.ts';
import { type Database, sqlState, type Tx } from '../../../mixins/database/database.ts';
import { ownerRole } from '../../../mixins/database/roles.ts';
import type { Ddl } from '../physical/ddl.ts';
import type { Tenant } from '../store.ts';
import { DDL_LIMITS, inConfiguration, lockConfiguration, requireCurrentSchema } from '../tenants.ts';
import { bytesSql } from './ahead.sql.ts';
import { holdTables } from './ahead.ts';
import { nameTransaction } from './lease.ts';

/** Total row limit of all altered tables. */
const BYTES_MAX = 1024 * 1024;
/** For all of the DDL, which is one statement. */
const TRIED_MS = 500;

const TOOK_TOO_LONG = '57014';

/** It was tried, or there is no use in trying it: everything is rolled back. */
class Tried extends Error {}

interface TryOutOptions {
  readonly deploymentId: string;
  /** Does the work on the connection so that it can be stopped. */
  readonly over: (tx: Tx, work: () => Promise<void>) => Promise<void>;
  readonly signal: AbortSignal;
}

/** Fails as the DDL does. Leaves it at what is known where the DDL would take long, or belongs to a former version. */
export async function tryOut(
  database: Database,
  tenant: Tenant,
  { statements, altered }: Ddl,
  { deploymentId, over, signal }: TryOutOptions,
): Promise<void> {
  if (statements.length === 0 || signal.aborted) return;
  const { id: tenantId, metadataVersion } = tenant;
  const all = statements.map(({ sql }) => sql).join(';\n');
  const trying = async (tx: Tx): Promise<void> => {
    await tx.query(`${DDL_LIMITS}; ${nameTransaction(deploymentId)}`);
    await requireCurrentSchema(tx, tenantId);
    tx.actAs(ownerRole(tenantId));
    const { bytes } = await tx.one<{ bytes: number }>(bytesSql(tx.schema, altered));
    if (bytes > BYTES_MAX) throw new Tried();
    await holdTables(tx, tenantId, altered);
    await tx.query(DDL_LIMITS);
    const now = await lockConfiguration(tx, tenantId);
    if (now.metadataVersion !== metadataVersion) throw new Tried();
    tx.actAs(ownerRole(tenantId));
    await tx.query(`SET LOCAL statement_timeout = ${TRIED_MS}`);
    await tx.query(`DO ${literal(`BEGIN EXECUTE ${literal(all)}; END`)}`).catch((error) => {
      throw sqlState(error) === TOOK_TOO_LONG ? new Tried() : error;
    });
    throw new Tried();
  };
  try {
    await inConfiguration(database, tenantId, (tx) => over(tx, () => trying(tx)), signal);
  } catch (error) {
    if (!(error instanceof Tried)) throw error;
  }
}
