/**
 * The administrators of a tenant: it never loses the last active holder of what it takes to give permissions back.
 * Source: docs/reference/access.md#administrators.
 */
import type { PermissionBundle, Snapshot, SystemPermission } from '../schema/snapshot.ts';

/** Each of these always has an active holder who may use the API; otherwise no user could repair the tenant. */
export const KEPT_PERMISSIONS = ['manageAccess', 'manageUsers', 'metadataManage'] as const;
export type KeptPermission = (typeof KEPT_PERMISSIONS)[number];

/** True when an active user's permissions make them such a holder. */
export const counts = (system: ReadonlySet<SystemPermission>, name: KeptPermission): boolean =>
  system.has('apiEnabled') && system.has(name);

type Bundles = Pick<Snapshot, 'profiles' | 'permissionSets'>;

/** SQL condition on the rows of User: active holders of a permission who may use the API. */
export function holderSql(
  bundles: Bundles,
  name: KeptPermission,
  bind: (value: string[], type: 'text[]') => string,
): string {
  const giving = (system: SystemPermission, of: Readonly<Record<string, PermissionBundle>>): string =>
    bind(
      Object.values(of)
        .filter((bundle) => bundle.system.includes(system))
        .map((bundle) => bundle.apiName),
      'text[]',
    );
  const has = (system: SystemPermission): string =>
    `("profileApiName" = ANY(${giving(system, bundles.profiles)})
      OR "permissionSetApiNames" && ${giving(system, bundles.permissionSets)})`;
  return `"active" IS NOT FALSE AND ${has('apiEnabled')} AND ${has(name)}`;
}

export const lastHolder = (name: KeptPermission): string =>
  `The tenant would have no active user left who holds ${name}; appoint another one first.`;
