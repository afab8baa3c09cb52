/** Checks of users, roles and groups for services that share things with people. */
import type { DataActions, UserAccess } from '../../../contracts/data.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { assertFresh, type Tenants } from '../tenants.ts';
import { timezoneOf } from '../view.ts';
import { activeUsersSql } from './access.sql.ts';

/** The access of a user at the versions that hold now; throws TOKEN_REVOKED for one who is gone. */
export const accessOfUser = (tenants: Tenants, tenantId: string, userId: string): Promise<UserAccess> =>
  tenants.withView(tenantId, userId, async (view) => {
    const { metadataVersion, accessVersion } = await tenants.versions(tenantId);
    assertFresh(view, metadataVersion, accessVersion);
    const { system, memberships } = view.access;
    return {
      metadataVersion,
      accessVersion,
      timezone: timezoneOf(view),
      systemPermissions: [...system],
      roles: [...memberships.roles],
      groups: [...memberships.groups],
    };
  });

/** Indices of principals that cannot be shared with: no such role or group, or no user who can sign in. */
export async function unknownPrincipals(
  database: Database,
  tenants: Tenants,
  { tenantId, userId, principals }: DataActions['data.principals.check']['params'],
): Promise<number[]> {
  const userIds = principals.flatMap(({ principalType, principalId }) =>
    principalType === 'user' && isUuid(principalId) ? [principalId] : [],
  );
  return tenants.withView(tenantId, userId, async (view) => {
    const { metadataVersion, accessVersion } = await tenants.versions(tenantId);
    assertFresh(view, metadataVersion, accessVersion);
    const found =
      userIds.length === 0
        ? []
        : await database.tenant(tenantId, (tx) => tx.all<{ userId: string }>(activeUsersSql(tx.schema, userIds)));
    const users = new Set(found.map((user) => user.userId));
    const { roles, groups } = view.snapshot;
    return principals.flatMap(({ principalType, principalId }, place) => {
      if (principalType === 'user') return users.has(principalId) ? [] : [place];
      return Object.hasOwn(principalType === 'role' ? roles : groups, principalId) ? [] : [place];
    });
  });
}
