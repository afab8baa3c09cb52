/**
 * Computes what a user may do from a profile and permission sets: their union, without deny entries. Only this module
 * knows the meaning of permissions; `decide` and `constrain` look up its results. Source: docs/reference/access.md.
 */
import { createHash } from 'node:crypto';
import { fieldType } from '../schema/field-types/registry.ts';
import { ownEntry } from '../schema/lookup.ts';
import { isWritable } from '../schema/record-types.ts';
import type {
  FieldMeta,
  ObjectMeta,
  ObjectPermission,
  PermissionBundle,
  Snapshot,
  SystemPermission,
} from '../schema/snapshot.ts';
import { isUserObject } from '../schema/user-object.ts';
import { type Directory, groupsOf, NOBODY, rolesReceived } from './directory.ts';
import type { Access, FieldAccess, GivenBundle, Memberships, ObjectAccess, Principal } from './types.ts';
import { userFieldAccess, userPermission } from './user-object.ts';

/** Permissions of all users with the same profile and permission sets, computed once per snapshot. */
type SharedAccess = Omit<Access, 'principal' | 'directory' | 'memberships'>;

const shared = new WeakMap<Snapshot, Map<string, SharedAccess>>();

/**
 * The permissions of a user. Callers keep the result per (snapshot version, access version, user); two users with the
 * same profile and permission sets share all of it but what depends on the user. Without `directory` the user has no
 * subordinates, which is enough for decisions that do not concern records.
 */
export function accessFor(snapshot: Snapshot, principal: Principal, directory: Directory = NOBODY): Access {
  const names = [...new Set(principal.permissionSetApiNames)].sort();
  const key = principal.active ? JSON.stringify([principal.profileApiName, names]) : '';
  let known = shared.get(snapshot);
  if (!known) shared.set(snapshot, (known = new Map()));
  let access = known.get(key);
  if (!access) {
    const bundles: GivenBundle[] = [];
    if (principal.active) {
      const profile = ownEntry(snapshot.profiles, principal.profileApiName);
      if (profile) bundles.push({ kind: 'profile', bundle: profile });
      for (const name of names) {
        const bundle = ownEntry(snapshot.permissionSets, name);
        if (bundle) bundles.push({ kind: 'permissionSet', bundle });
      }
    }
    access = unionOf(snapshot, bundles, key);
    known.set(key, access);
  }
  return { principal, directory, memberships: membershipsOf(snapshot, principal), ...access };
}

function membershipsOf(snapshot: Snapshot, principal: Principal): Memberships {
  const roles = rolesReceived(snapshot, principal.roleApiName);
  return { roles, groups: groupsOf(snapshot, principal.username, roles) };
}

function unionOf(snapshot: Snapshot, given: readonly GivenBundle[], key: string): SharedAccess {
  const bundles = given.map(({ bundle }) => bundle);
  const system = new Set<SystemPermission>(bundles.flatMap((bundle) => bundle.system));
  const objects: Record<string, ObjectAccess> = Object.create(null);
  for (const [apiName, object] of Object.entries(snapshot.objects)) {
    if (!object.published) continue;
    const access = isUserObject(object) ? userAccess(object, bundles, system) : recordAccess(object, bundles, system);
    if (access.permission.read) objects[apiName] = access;
  }
  return {
    system,
    objects,
    actions: new Set(bundles.flatMap((bundle) => bundle.actions)),
    bundles: given,
    snapshot,
    hash: createHash('sha256').update(key).digest('base64url').slice(0, 22),
  };
}

function recordAccess(
  object: ObjectMeta,
  bundles: readonly PermissionBundle[],
  system: ReadonlySet<SystemPermission>,
): ObjectAccess {
  const permission = permissionGiven(object, bundles);
  return withFields(object, permission, (field) => {
    const mayEdit = permission.create || permission.update;
    if (field.system) return { read: true, edit: isWritable(object, field) && mayEdit };
    if (field.apiName === object.nameField) return { read: true, edit: mayEdit };
    const given = fieldPermission(fullName(object, field), bundles, system);
    return { read: given.read, edit: given.edit && mayEdit };
  });
}

function userAccess(
  object: ObjectMeta,
  bundles: readonly PermissionBundle[],
  system: ReadonlySet<SystemPermission>,
): ObjectAccess {
  const given = objectPermission(object.apiName, bundles, system);
  return withFields(object, userPermission(given, system), (field) =>
    userFieldAccess(object, field, system, {
      object: given,
      field: fieldPermission(fullName(object, field), bundles, system),
    }),
  );
}

/** The permission on an object that bundles give together. */
export function permissionGiven(object: ObjectMeta, bundles: readonly PermissionBundle[]): ObjectPermission {
  const system = new Set(bundles.flatMap((bundle) => bundle.system));
  const given = objectPermission(object.apiName, bundles, system);
  return isUserObject(object) ? userPermission(given, system) : given;
}

/** The entries on an object, with what they and system permissions include; users follow rules of their own. */
export function objectPermission(
  apiName: string,
  bundles: readonly Pick<PermissionBundle, 'objects'>[],
  system: ReadonlySet<SystemPermission>,
): ObjectPermission {
  const has = (name: keyof ObjectPermission): boolean =>
    bundles.some((bundle) => ownEntry(bundle.objects, apiName)?.[name]);
  const modifyAll = system.has('modifyAllData') || has('modifyAll');
  const viewAll = modifyAll || system.has('viewAllData') || has('viewAll');
  return {
    create: system.has('modifyAllData') || has('create'),
    read: viewAll || has('read'),
    update: modifyAll || has('update'),
    delete: modifyAll || has('delete'),
    viewAll,
    modifyAll,
  };
}

const fullName = (object: ObjectMeta, field: FieldMeta): string => `${object.apiName}.${field.apiName}`;

/** The entries on a field, by `<Object>.<field>`, with what they and system permissions include. */
export function fieldPermission(
  key: string,
  bundles: readonly Pick<PermissionBundle, 'fields'>[],
  system: ReadonlySet<SystemPermission>,
): FieldAccess {
  if (system.has('modifyAllData')) return { read: true, edit: true };
  const given = bundles.flatMap((bundle) => ownEntry(bundle.fields, key) ?? []);
  const edit = given.some((entry) => entry.edit);
  return { read: edit || system.has('viewAllData') || given.some((entry) => entry.read), edit };
}

function withFields(
  object: ObjectMeta,
  permission: ObjectPermission,
  accessOf: (field: FieldMeta) => FieldAccess,
): ObjectAccess {
  const fields: Record<string, FieldAccess> = Object.create(null);
  const readable: FieldMeta[] = [];
  for (const field of Object.values(object.fields)) {
    const given = accessOf(field);
    if (!given.read) continue;
    fields[field.apiName] = { read: true, edit: given.edit && fieldType(field.fieldType).writable };
    readable.push(field);
  }
  return { object, permission, fields, readable };
}
