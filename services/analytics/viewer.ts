/** A viewer of dashboards: the rights that decide which ones they see, with what result. */
import type { UserAccess } from '../../contracts/data.ts';
import type { RequestContext } from '../../lib/context.ts';
import type { AnalyticsDeps } from './deps.ts';

export interface Viewer extends UserAccess {
  readonly tenantId: string;
  readonly userId: string;
  /** Has an owner's access to every dashboard, so that those of former users stay manageable. */
  readonly modifiesAll: boolean;
  /** The connection may change dashboards at all. */
  readonly mayChange: boolean;
}

/** The user behind a request; when it is known, dashboards of the newest deployment are there. */
export async function viewerOf(
  deps: Pick<AnalyticsDeps, 'findAccess' | 'takeDeployed'>,
  request: Pick<RequestContext, 'tenantId' | 'userId' | 'scopes'>,
): Promise<Viewer> {
  const { tenantId, userId, scopes } = request;
  const access = await deps.findAccess(tenantId, userId);
  await deps.takeDeployed(tenantId, access.metadataVersion);
  return {
    ...access,
    tenantId,
    userId,
    modifiesAll: access.systemPermissions.includes('modifyAllData'),
    mayChange: scopes.includes('analytics:run'),
  };
}
