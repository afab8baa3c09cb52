/** The operator's view of a tenant's runs, and how to end them. */
import type { ActiveRun, AgentActions } from '../../../contracts/agent.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { time } from '../runs/present.ts';
import { activeRunsOfTenantStatement } from './upkeep.sql.ts';
import { cancelRuns } from './upkeep.ts';

const active = (database: Database, tenantId: string): Promise<ActiveRun[]> => {
  if (!isUuid(tenantId)) throw new PlatformError('VALIDATION_FAILED', 'tenantId must be the id of a tenant.');
  return database.login((tx) => tx.all<ActiveRun>(activeRunsOfTenantStatement(tenantId)));
};

export async function listRunsOfTenant(
  database: Database,
  { tenantId }: AgentActions['agent.tenants.listRuns']['params'],
): Promise<AgentActions['agent.tenants.listRuns']['result']> {
  const runs = await active(database, tenantId);
  return { runs: runs.map((run) => ({ ...run, createdAt: time(run.createdAt), expiresAt: time(run.expiresAt) })) };
}

/** Without `runIds`: all of them. What has ended meanwhile stays as it ended. */
export async function cancelRunsOfTenant(
  database: Database,
  { tenantId, runIds }: AgentActions['agent.tenants.cancelRuns']['params'],
): Promise<AgentActions['agent.tenants.cancelRuns']['result']> {
  const runs = (await active(database, tenantId)).filter(({ runId }) => runIds?.includes(runId) ?? true);
  const ended = await cancelRuns(
    database,
    runs.map(({ runId }) => ({ tenantId, runId })),
    'agent.tenants.cancelRuns',
  );
  return { canceled: ended.map(({ runId }) => runId) };
}
