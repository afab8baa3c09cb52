/**
 * Permissions that users hold and may therefore grant: users cannot give or take a permission they lack, unless they
 * manage access. Source: docs/reference/access.md#handing-out-permissions.
 */
import type { ObjectPermission, PermissionBundle, SystemPermission } from '../schema/snapshot.ts';
import { isUserObject } from '../schema/user-object.ts';
import { fieldPermission, objectPermission } from './rules.ts';
import type { Access, FieldAccess } from './types.ts';

/** One entry of a profile or permission set. */
export type Permission =
  | { readonly kind: 'system'; readonly name: SystemPermission }
  | { readonly kind: 'object'; readonly object: string; readonly right: keyof ObjectPermission }
  /** `field` is `<Object>.<field>`. */
  | { readonly kind: 'field'; readonly field: string; readonly right: keyof FieldAccess }
  /** `action` is `<Object>.<key>`. */
  | { readonly kind: 'action'; readonly action: string };

/** Profiles and permission sets as far as they give something. */
export type Giving = Pick<PermissionBundle, 'system' | 'objects' | 'fields' | 'actions'>;

/** The holders of this may give and take everything: they decide who may do what. */
export const managesAccess = ({ system }: Pick<Access, 'system'>): boolean => system.has('manageAccess');

/** The entries of a profile or permission set; what an entry includes is not listed besides. */
export function* permissionsOf({ system, objects, fields, actions }: Giving): Generator<Permission, undefined> {
  for (const name of system) yield { kind: 'system', name };
  for (const [object, given] of Object.entries(objects))
    for (const right of OBJECT_RIGHTS) if (given[right]) yield { kind: 'object', object, right };
  for (const [field, given] of Object.entries(fields))
    for (const right of FIELD_RIGHTS) if (given[right]) yield { kind: 'field', field, right };
  for (const action of actions) yield { kind: 'action', action };
}

const OBJECT_RIGHTS = ['create', 'read', 'update', 'delete', 'viewAll', 'modifyAll'] as const;
const FIELD_RIGHTS = ['read', 'edit'] as const;

/** True when the bundles together give a permission, directly or by one that includes it. */
export function givenBy(bundles: readonly Giving[]): (permission: Permission) => boolean {
  const system = new Set(bundles.flatMap((bundle) => bundle.system));
  const actions = new Set(bundles.flatMap((bundle) => bundle.actions));
  const managesUsers = (object: string): boolean => system.has('manageUsers') && isUserObject({ apiName: object });
  return (permission) => {
    switch (permission.kind) {
      case 'system':
        return system.has(permission.name);
      case 'object':
        return (
          managesUsers(permission.object) || objectPermission(permission.object, bundles, system)[permission.right]
        );
      case 'field':
        return (
          // Custom fields of users follow their own entries.
          (managesUsers(permission.field.slice(0, permission.field.indexOf('.'))) &&
            !permission.field.endsWith('__c')) ||
          fieldPermission(permission.field, bundles, system)[permission.right]
        );
      default:
        return actions.has(permission.action);
    }
  };
}

/** True when a user holds a permission that profiles and permission sets give. */
export const heldBy = ({ bundles }: Pick<Access, 'bundles'>): ((permission: Permission) => boolean) =>
  givenBy(bundles.map(({ bundle }) => bundle));

/** True when `user` holds something that `other` does not: a permission, a role or a group membership. */
export function holdsMore(user: Access, other: Access): boolean {
  if (user.memberships.roles.some((role) => !other.memberships.roles.includes(role))) return true;
  if (!user.memberships.groups.isSubsetOf(other.memberships.groups)) return true;
  const held = heldBy(other);
  const shared = new Set(other.bundles.map(({ bundle }) => bundle));
  return user.bundles.some(({ bundle }) => !shared.has(bundle) && !permissionsOf(bundle).every(held));
}

/** True when an assignment would give a user something that neither they nor the giver hold. */
export function givesBeyond(after: Access, before: Access, giver: Access): boolean {
  const [held, had] = [heldBy(giver), heldBy(before)];
  const isKnown = (permission: Permission): boolean => held(permission) || had(permission);
  const roles = new Set([...giver.memberships.roles, ...before.memberships.roles]);
  return (
    after.bundles.some(({ bundle }) => !permissionsOf(bundle).every(isKnown)) ||
    after.memberships.roles.some((role) => !roles.has(role)) ||
    !after.memberships.groups.isSubsetOf(giver.memberships.groups.union(before.memberships.groups))
  );
}

/** A permission as messages name it. */
export function nameOfPermission(permission: Permission): string {
  switch (permission.kind) {
    case 'system':
      return permission.name;
    case 'object':
      return `${permission.right} on ${permission.object}`;
    case 'field':
      return `${permission.right} on ${permission.field}`;
    default:
      return permission.action;
  }
}
