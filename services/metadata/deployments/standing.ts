/**
 * Decides whether a validation can be quick deployed and a deployment rolled back. Pure; the facts come from standing.sql.ts.
 * Source: docs/reference/metadata.md#quick-deploy and #rollback.
 */
import type { RollbackBlocker } from '../../../contracts/metadata.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { BLOCKERS_MAX, type Standing } from './standing.sql.ts';

type QuickDeployReason = 'NOT_FOUND' | 'NOT_SUCCEEDED' | 'EXPIRED' | 'ALREADY_USED' | 'DRIFT' | 'PERMISSION';

const QUICK_DEPLOY_MESSAGES: Readonly<Record<QuickDeployReason, string>> = {
  NOT_FOUND: 'There is no such recorded validation.',
  NOT_SUCCEEDED: 'The validation has not succeeded.',
  EXPIRED: 'The validation is too old, or its files are not kept any more: validate again.',
  ALREADY_USED: 'Another deployment has used the validation.',
  DRIFT: 'The plan is not the one that was validated any more: validate again.',
  PERMISSION: 'The deployment hands out what you do not hold.',
};

export const quickDeployRefusal = (reason: QuickDeployReason, details: Record<string, unknown> = {}): PlatformError =>
  new PlatformError('QUICK_DEPLOY_NOT_ELIGIBLE', QUICK_DEPLOY_MESSAGES[reason], { details: { reason, ...details } });

/** Why a validation cannot be used, as far as its row says; null: it can. */
export function unusable(standing: Standing | null): QuickDeployReason | null {
  if (standing?.kind !== 'validation') return 'NOT_FOUND';
  if (standing.status !== 'SUCCEEDED') return 'NOT_SUCCEEDED';
  if (standing.usedByDeploymentId !== null) return 'ALREADY_USED';
  return standing.validationExpired || !standing.kept ? 'EXPIRED' : null;
}

/** Obstacles to rolling back a deployment; empty: none. */
export function rollbackBlockers(deploymentId: string, standing: Standing | null): RollbackBlocker[] {
  const whole = (reason: RollbackBlocker['reason']): RollbackBlocker[] => [
    { type: 'Deployment', fullName: deploymentId, reason },
  ];
  if (!standing) return whole('NOT_FOUND');
  if (standing.checkOnly) return whole('NOT_APPLIED');
  if (standing.status !== 'SUCCEEDED') return whole('NOT_SUCCEEDED');
  if (!standing.changed) return whole('NOTHING_CHANGED');
  if (standing.revertedByDeploymentId !== null) return whole('ALREADY_ROLLED_BACK');
  if (standing.rollbackExpired) return whole('EXPIRED');
  if (!standing.kept) return whole('NOT_KEPT');
  return [
    ...standing.irreversible.map((one) => ({ ...one, reason: 'IRREVERSIBLE' as const })),
    ...standing.changedLater.map((one) => ({ ...one, reason: 'CHANGED_LATER' as const })),
  ].slice(0, BLOCKERS_MAX);
}

export function rollbackRefusal(blockers: readonly RollbackBlocker[]): PlatformError {
  const [first] = blockers;
  const why = first ? `${first.type} ${first.fullName}: ${first.reason}` : 'nothing stands against it';
  return new PlatformError('ROLLBACK_NOT_ELIGIBLE', `The deployment cannot be rolled back (${why}).`, {
    details: { blockers },
  });
}
