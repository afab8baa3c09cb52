/** Who looks at dashboards, as far as that decides which ones and with what result. */
import type { UserAccess } from '../../contracts/data.ts';
import type { RequestContext } from '../../lib/context.ts';

export interface Viewer extends UserAccess {
  readonly tenantId: string;
  readonly userId: string;
  /** They reach every dashboard like its owner: somebody must, when an owner has left. */
  readonly modifiesAll: boolean;
  /** The connection may change dashboards at all. */
  readonly mayRun: boolean;
}

export type FindAccess = (tenantId: string, userId: string) => Promise<UserAccess>;

export async function viewerOf(findAccess: FindAccess, request: RequestContext): Promise<Viewer> {
  const { tenantId, userId, scopes } = request;
  const access = await findAccess(tenantId, userId);
  return {
    ...access,
    tenantId,
    userId,
    modifiesAll: access.systemPermissions.includes('modifyAllData'),
    mayRun: scopes.includes('analytics:run'),
  };
}
