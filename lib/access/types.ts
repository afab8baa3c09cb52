/**
 * Permissions of one user, computed once per (snapshot version, permission assignment) and then only looked up.
 * Effective permission = scope ∩ publication ∩ object permission ∩ field permission ∩ sharing.
 */
import type { Scope } from '../operation.ts';
import type {
  FieldMeta,
  ObjectMeta,
  ObjectPermission,
  PermissionBundle,
  Snapshot,
  SystemPermission,
} from '../schema/snapshot.ts';
import type { Directory } from './directory.ts';

/** The user of a request, from the User record of the tenant. */
export interface Principal {
  readonly userId: string;
  readonly username: string;
  readonly displayName: string;
  readonly active: boolean;
  readonly locale: string | null;
  readonly timezone: string;
  readonly profileApiName: string;
  readonly roleApiName: string | null;
  readonly permissionSetApiNames: readonly string[];
}

export interface FieldAccess {
  readonly read: boolean;
  readonly edit: boolean;
}

export interface ObjectAccess {
  readonly object: ObjectMeta;
  readonly permission: ObjectPermission;
  /** The readable fields, in the order of records in responses. */
  readonly readable: readonly FieldMeta[];
  /** Readable and editable fields by apiName; any other field is hidden from the user. */
  readonly fields: Readonly<Record<string, FieldAccess>>;
}

/** Permissions of a user before scopes. `hash` identifies the permission set union, for cache keys. */
export interface Access {
  readonly principal: Principal;
  readonly system: ReadonlySet<SystemPermission>;
  /** Published objects the user may at least read, by apiName. */
  readonly objects: Readonly<Record<string, ObjectAccess>>;
  readonly actions: ReadonlySet<string>;
  /** The profile and the permission sets whose union this is. */
  readonly bundles: readonly GivenBundle[];
  readonly snapshot: Snapshot;
  readonly directory: Directory;
  readonly memberships: Memberships;
  readonly hash: string;
}

export interface GivenBundle {
  readonly kind: 'profile' | 'permissionSet';
  readonly bundle: PermissionBundle;
}

/** Roles and groups through which the user receives shares. */
export interface Memberships {
  /** The user's role and those below it. */
  readonly roles: readonly string[];
  readonly groups: ReadonlySet<string>;
}

export type DataOperation = 'create' | 'read' | 'update' | 'delete';

export interface Capabilities {
  creatable: boolean;
  updateable: boolean;
  deletable: boolean;
  editable: boolean;
}

export type ScopeSet = readonly Scope[];
