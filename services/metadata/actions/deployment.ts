/** Deployments as the API shows them. */
import type { OperationOutput } from '../../../contracts/operations.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import type { DeploymentSummary } from '../deployments/store.ts';

const time = (value: string | null): string | null => (value === null ? null : formatTimestamp(new Date(value)));

/** A deployment without its plan. */
export function presentSummary(
  row: DeploymentSummary,
): OperationOutput<'metadata.deployments.list'>['records'][number] {
  return {
    deploymentId: row.deploymentId,
    status: row.status,
    kind: row.kind,
    checkOnly: row.checkOnly,
    allowDestructiveChanges: row.allowDestructiveChanges,
    createdAt: formatTimestamp(new Date(row.createdAt)),
    startedAt: time(row.startedAt),
    finishedAt: time(row.finishedAt),
    createdBy: {
      userId: row.createdByUserId,
      displayName: row.createdByDisplayName,
      clientId: row.createdByClientId,
      agentRunId: row.createdByAgentRunId,
    },
    progress: {
      stage: row.stage,
      position: row.position,
      done: row.done,
      total: row.total,
    },
    manifestHash: row.manifestHash,
    planHash: row.planHash,
    metadataVersionBefore: row.metadataVersionBefore,
    metadataVersionAfter: row.metadataVersionAfter,
    error: row.error,
    cancelRequested: row.cancelRequested,
    canceledBy: row.canceledById,
  };
}

const NO_PLAN = JSON.stringify({
  changes: { creates: [], updates: [], deletes: [], noops: [] },
  blocked: [],
  warnings: [],
} satisfies Pick<OperationOutput<'metadata.deployments.get'>, 'changes' | 'blocked' | 'warnings'>);

const RESERVED = JSON.stringify({ quickDeploy: null, rollback: null });

/** A deployment with its plan, which is JSON as the database has it; null: it has none, or it is not shown. */
export const presentDeployment = (row: DeploymentSummary, plan: string | null): Buffer =>
  Buffer.from(joined([JSON.stringify(presentSummary(row)), plan ?? NO_PLAN, RESERVED]));

/** JSON objects as one. */
const joined = (objects: readonly string[]): string => `{${objects.map((text) => text.slice(1, -1)).join()}}`;
