/** Deployments as the API shows them. */
import type { DeploymentError } from '../../../contracts/metadata.ts';
import type { OperationOutput } from '../../../contracts/operations.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import type { Standing } from '../deployments/standing.sql.ts';
import { rollbackBlockers, unusable } from '../deployments/standing.ts';
import type { DeploymentSummary } from '../deployments/store.ts';

const time = (value: string | null): string | null => (value === null ? null : formatTimestamp(new Date(value)));

/** An error to those who may not read configuration: its message can name components, which are hidden from them. */
const ERRORS_WITHOUT_NAMES: Readonly<Record<DeploymentError['code'], string>> = {
  PLAN_BLOCKED: 'The plan has problems.',
  METADATA_DRIFT: 'The configuration has changed since the version that it is based on.',
  PLAN_CHANGED: 'The plan is not the one that was reviewed.',
  WORKER_LOST: 'Its worker was lost.',
  APPLY_FAILED: 'Nothing was applied.',
  QUICK_DEPLOY_NOT_ELIGIBLE: 'The plan is not the one that was validated.',
  ROLLBACK_NOT_ELIGIBLE: 'It cannot be rolled back.',
};

/** A deployment without its plan. `reads`: for a caller who may read configuration. */
export function presentSummary(
  row: DeploymentSummary,
  reads: boolean,
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
    error: row.error && (reads ? row.error : { ...row.error, message: ERRORS_WITHOUT_NAMES[row.error.code] }),
    cancelRequested: row.cancelRequested,
    canceledBy: row.canceledById,
    cancelReason: reads ? row.cancelReason : null,
  };
}

const NO_PLAN = JSON.stringify({
  changes: { creates: [], updates: [], deletes: [], noops: [] },
  blocked: [],
  warnings: [],
} satisfies Pick<OperationOutput<'metadata.deployments.get'>, 'changes' | 'blocked' | 'warnings'>);

/**
 * A deployment with its plan, which is JSON as the database has it; null: it has none, or it is not shown. `standing`:
 * what becomes of it after its end.
 */
export const presentDeployment = (
  row: DeploymentSummary,
  standing: Standing,
  plan: string | null,
  reads: boolean,
): Buffer =>
  Buffer.from(
    joined([
      JSON.stringify(presentSummary(row, reads)),
      plan ?? NO_PLAN,
      JSON.stringify(presentStanding(standing, plan)),
    ]),
  );

type Shown = Pick<OperationOutput<'metadata.deployments.get'>, 'quickDeploy' | 'rollback'>;

/** Components are named to those who are shown the plan. */
function presentStanding(standing: Standing, plan: string | null): Shown {
  if (standing.kind === 'validation')
    return {
      quickDeploy: {
        eligible: unusable(standing) === null && !standing.drifted,
        validUntil: time(standing.validUntil),
        usedByDeploymentId: standing.usedByDeploymentId,
      },
      rollback: null,
    };
  const blockers = rollbackBlockers(standing.deploymentId, standing);
  return {
    quickDeploy: null,
    rollback: {
      eligible: blockers.length === 0,
      blockers: plan === null ? blockers.filter(({ type }) => type === 'Deployment') : blockers,
      revertedByDeploymentId: standing.revertedByDeploymentId,
      revertsDeploymentId: standing.revertsDeploymentId,
    },
  };
}

/** JSON objects as one. */
const joined = (objects: readonly string[]): string => `{${objects.map((text) => text.slice(1, -1)).join()}}`;
