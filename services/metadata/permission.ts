/** Who may read and who may manage the configuration. */
import type { RequestContext } from '../../lib/context.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import type { UserIdentity } from '../data/contract.ts';

export type FindUser = (tenantId: string, userId: string) => Promise<UserIdentity | null>;

/** The user behind the request, when they have the permission; `metadataManage` includes `metadataRead`. */
export async function requirePermission(
  findUser: FindUser,
  request: RequestContext,
  needed: 'metadataRead' | 'metadataManage',
): Promise<UserIdentity> {
  const user = await findUser(request.tenantId, request.userId);
  if (!user?.active || !user.apiEnabled)
    throw new PlatformError('API_ACCESS_DISABLED', 'The user has no permission to use the API.');
  const held = user.systemPermissions;
  if (!held.includes('metadataManage') && !(needed === 'metadataRead' && held.includes('metadataRead')))
    throw new PlatformError('METADATA_PERMISSION_DENIED', `The user lacks the system permission ${needed}.`);
  return user;
}
