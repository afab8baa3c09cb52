/** Permissions for reading and managing the configuration. */

import type { UserIdentity } from '../../contracts/data.ts';
import { holdsPermission, permissionDenied } from '../../lib/access/system-permission.ts';
import type { RequestContext } from '../../lib/context.ts';
import { apiAccessDisabled } from '../../lib/errors/access.ts';

export type FindUser = (tenantId: string, userId: string) => Promise<UserIdentity | null>;

const holds = (user: UserIdentity, needed: 'metadataRead' | 'metadataManage'): boolean =>
  holdsPermission(new Set(user.systemPermissions), needed);

/** True when the user may see configuration, for answers that show more to those who may. */
export const mayRead = (user: UserIdentity): boolean => holds(user, 'metadataRead');

/** The user behind the request, when they have the permission; `metadataManage` includes `metadataRead`. */
export async function requirePermission(
  findUser: FindUser,
  request: RequestContext,
  needed: 'metadataRead' | 'metadataManage',
): Promise<UserIdentity> {
  const user = await requireActiveUser(findUser, request);
  if (!holds(user, needed)) throw permissionDenied(needed);
  return user;
}

/** The user behind the request; 403 unless they are active and have the API permission. */
export async function requireActiveUser(findUser: FindUser, request: RequestContext): Promise<UserIdentity> {
  const user = await findUser(request.tenantId, request.userId);
  if (!user?.active || !user.apiEnabled) throw apiAccessDisabled();
  return user;
}
