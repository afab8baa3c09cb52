/** Events of what becomes of a deployment. Source: docs/reference/events.md#types. */
import type { DeploymentStatus } from '../../../contracts/metadata.ts';

/** The deployment as its events name it. */
export interface ToldDeployment {
  readonly deploymentId: string;
  /** It was requested by this user. */
  readonly userId: string;
  readonly kind: string;
  readonly checkOnly: boolean;
}

/** One that is being canceled has no event: the end has. */
export type ToldStatus = Exclude<DeploymentStatus, 'CANCELING'>;

export const deploymentEvent = (
  status: ToldStatus,
  { deploymentId, userId, kind, checkOnly }: ToldDeployment,
): { type: string; data: ToldDeployment } => ({
  type: `metadata.deployment.${status.toLowerCase()}`,
  data: { deploymentId, userId, kind, checkOnly },
});
