/**
 * Access to the standard object User: changes need the system permission manageUsers,
 * every user with the API permission can read the users, all of them or none, and users are
 * deactivated instead of deleted. Source: docs/reference/access.md.
 */
import { isWritable } from '../schema/record-types.ts';
import type { FieldMeta, ObjectMeta, ObjectPermission, SystemPermission } from '../schema/snapshot.ts';
import type { DataOperation, FieldAccess } from './types.ts';

/** The permission on users, from what the same bundles would give on any other object. */
export function userPermission(given: ObjectPermission, system: ReadonlySet<SystemPermission>): ObjectPermission {
  const manages = system.has('manageUsers');
  return {
    create: manages,
    read: manages || given.read || system.has('apiEnabled'),
    update: manages,
    delete: false,
    viewAll: true,
    modifyAll: manages,
  };
}

/** Fields that tell who a user is. */
const isIdentity = (object: ObjectMeta, { apiName }: FieldMeta): boolean =>
  apiName === 'id' || apiName === 'displayName' || apiName === object.nameField;

/** Access to a field of users. `given`: what the same bundles would give on any other object and its field. */
export function userFieldAccess(
  object: ObjectMeta,
  field: FieldMeta,
  system: ReadonlySet<SystemPermission>,
  given: { readonly object: ObjectPermission; readonly field: FieldAccess },
): FieldAccess {
  const manages = system.has('manageUsers');
  if (manages && !field.custom) return { read: true, edit: isWritable(object, field) };
  const read = isIdentity(object, field) || ((manages || given.object.read) && (field.system || given.field.read));
  return { read, edit: manages && given.field.edit };
}

export const MANAGE_USERS_REMEDY = 'Give the system permission manageUsers in the profile or a permission set.';

/** How a missing permission on users can be given. */
export const userObjectRemedy = (permission: DataOperation): string =>
  permission === 'delete' ? 'Users cannot be deleted. Deactivate the user instead.' : MANAGE_USERS_REMEDY;
