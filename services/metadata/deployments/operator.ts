/** The operator's view of tenants' deployments, and how to end them. */
import { ENDED_STATUSES, type MetadataActions, type OpenDeployment } from '../../../contracts/metadata.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { writeOperatorEntry } from '../operator-entry.ts';
import { type CancelRow, cancelStatement, lockStatement } from './cancel.sql.ts';
import { deploymentNotFound, notCancelable } from './cancel.ts';
import { deploymentEvent } from './event.ts';
import { openDeploymentsStatement } from './queue.sql.ts';

type List = MetadataActions['metadata.tenants.listDeployments'];
type Cancel = MetadataActions['metadata.tenants.cancelDeployment'];

/** Deployments in one answer. */
const TAKE_MAX = 200;

/** The oldest deployments that have not ended: of a tenant, or of all. */
export async function listOpenDeployments(database: Database, { tenantId }: List['params']): Promise<List['result']> {
  if (tenantId !== undefined) requireId('tenantId', tenantId);
  const rows = await database.login((tx) =>
    tx.all<OpenDeployment>(openDeploymentsStatement(tenantId ?? null, TAKE_MAX)),
  );
  const time = (text: string | null): string | null => (text === null ? null : formatTimestamp(Date.parse(text)));
  return {
    deployments: rows.map((row) => ({
      ...row,
      createdAt: formatTimestamp(Date.parse(row.createdAt)),
      startedAt: time(row.startedAt),
    })),
  };
}

/** Asks for the end of one. Throws DEPLOYMENT_NOT_FOUND, DEPLOYMENT_NOT_CANCELABLE. */
export async function cancelForOperator(
  database: Database,
  { tenantId, deploymentId, reason }: Cancel['params'],
): Promise<Cancel['result']> {
  requireId('tenantId', tenantId);
  requireId('deploymentId', deploymentId);
  return database.shared('metadata', tenantId, async (tx) => {
    const before = await tx.first<CancelRow>(lockStatement(tenantId, deploymentId));
    if (!before) throw deploymentNotFound();
    if (ENDED_STATUSES.some((status) => status === before.status)) throw notCancelable(before.status);
    await tx.query(cancelStatement(tenantId, deploymentId, null, reason ?? null));
    const changes = { deploymentId, status: before.status, ...(reason === undefined ? {} : { reason }) };
    const canceled = deploymentEvent('CANCELED', { ...before, deploymentId });
    const told = before.status === 'QUEUED' ? [canceled] : [];
    await writeOperatorEntry(tx, tenantId, 'metadata.tenants.cancelDeployment', changes, told);
    return { deploymentId, status: before.status === 'QUEUED' ? 'CANCELED' : 'CANCELING' };
  });
}

function requireId(name: string, id: string): void {
  if (!isUuid(id)) throw new PlatformError('PARAMETER_INVALID', `${name} must be an id.`);
}
