/** "May I?": yes or no for one operation, by the rules of rules.ts. Source: docs/reference/access.md. */
import { PlatformError } from '../errors/platform-error.ts';
import type { FieldMeta } from '../schema/snapshot.ts';
import { type Grant, grantsTo, parentFields, type RecordLevel, type SharedRecord } from './sharing.ts';
import type { Access, Capabilities, DataOperation, ObjectAccess, ScopeSet } from './types.ts';

/** The layer that refused, as access explanations and error details name it. */
export type Layer = 'publication' | 'objectPermission' | 'fieldPermission' | 'sharing';

type Decision =
  /** `grantedBy`: the ways that lead the user to the record; of an operation without a record there are none. */
  | { readonly allowed: true; readonly grantedBy: readonly Grant[] }
  | {
      readonly allowed: false;
      readonly layer: Layer;
      readonly code: 'OBJECT_NOT_FOUND' | 'OBJECT_PERMISSION_DENIED' | 'RECORD_NOT_FOUND' | 'RECORD_ACCESS_DENIED';
      /** Of a create: the field that names the parent which stands against it. */
      readonly parent?: FieldMeta;
    };

/**
 * What is done to a record. Whoever may update records of an object may also execute transitions and give them away.
 */
export type RecordOperation = DataOperation | 'transition' | 'changeOwner' | 'share';

/** What each operation needs, wherever it is decided: in a decision, in a statement or in an explanation. */
export const NEEDS: Readonly<Record<RecordOperation, { permission: DataOperation; level: RecordLevel }>> = {
  create: { permission: 'create', level: 'edit' },
  read: { permission: 'read', level: 'read' },
  update: { permission: 'update', level: 'edit' },
  transition: { permission: 'update', level: 'edit' },
  changeOwner: { permission: 'update', level: 'full' },
  delete: { permission: 'delete', level: 'full' },
  share: { permission: 'read', level: 'full' },
};

const ABSENT: Decision = { allowed: false, layer: 'publication', code: 'OBJECT_NOT_FOUND' };
const DENIED: Decision = { allowed: false, layer: 'objectPermission', code: 'OBJECT_PERMISSION_DENIED' };

const UNSEEN: Decision = { allowed: false, layer: 'sharing', code: 'RECORD_NOT_FOUND' };
const UNREACHED: Decision = { allowed: false, layer: 'sharing', code: 'RECORD_ACCESS_DENIED' };

/**
 * One operation on an object, or on one record of it when `record` is given: for a create the record as it would be,
 * of which sharing asks only for the parents that control it.
 */
export function decide(
  access: Access,
  objectApiName: string,
  operation: RecordOperation,
  record?: SharedRecord,
): Decision {
  const object = access.objects[objectApiName];
  if (!object) return ABSENT;
  const sharing = record ? decideSharing(access, objectApiName, operation, record) : null;
  if (sharing?.allowed === false && sharing.code === 'RECORD_NOT_FOUND' && operation !== 'create') return sharing;
  if (!object.permission[NEEDS[operation].permission]) return DENIED;
  return sharing ?? { allowed: true, grantedBy: [] };
}

/** What sharing alone says about a record of an object that the user may read. */
export function decideSharing(
  access: Access,
  objectApiName: string,
  operation: RecordOperation,
  record: SharedRecord,
): Decision {
  if (operation === 'create') return decideParents(access, access.objects[objectApiName]!, record);
  const grantedBy = grantsTo(access, objectApiName, NEEDS[operation].level, record);
  if (grantedBy.length > 0) return { allowed: true, grantedBy };
  return grantsTo(access, objectApiName, 'read', record).length > 0 ? UNREACHED : UNSEEN;
}

/** A record under a parent that controls its sharing is created by those who may edit the parent. */
function decideParents(access: Access, { object }: ObjectAccess, record: SharedRecord): Decision {
  const grantedBy: Grant[] = [];
  for (const field of parentFields(object)) {
    const parent = record.parents[field.apiName];
    const decision = parent ? decideSharing(access, field.referenceTo[0]!, 'update', parent) : UNSEEN;
    if (!decision.allowed) return { ...decision, parent: field };
    grantedBy.push(...decision.grantedBy);
  }
  return { allowed: true, grantedBy };
}

const VERBS: Readonly<Record<DataOperation, string>> = {
  create: 'create',
  read: 'read',
  update: 'change',
  delete: 'delete',
};

/**
 * The object's access, or the error that a caller without it gets: 404 OBJECT_NOT_FOUND, 403 OBJECT_PERMISSION_DENIED.
 */
export function requireObject(access: Access, objectApiName: string, operation: DataOperation): ObjectAccess {
  const object = access.objects[objectApiName];
  if (!object) throw new PlatformError('OBJECT_NOT_FOUND', 'There is no such object for this user.');
  const refusal = permissionRefusal(access, objectApiName, operation);
  if (refusal) throw refusal;
  return object;
}

/** 403 OBJECT_PERMISSION_DENIED of an object that the caller sees; null when they may. */
export function permissionRefusal(
  access: Access,
  objectApiName: string,
  operation: DataOperation,
): PlatformError | null {
  if (access.objects[objectApiName]?.permission[operation]) return null;
  return new PlatformError('OBJECT_PERMISSION_DENIED', `You may not ${VERBS[operation]} records of ${objectApiName}.`, {
    details: { objectApiName, operation, layer: 'objectPermission' },
  });
}

/** What this connection may do with an object: scopes ∩ publication ∩ object permission. */
export function capabilities(access: Access, objectApiName: string, scopes: ScopeSet): Capabilities {
  const permission = access.objects[objectApiName]?.permission;
  const writes = scopes.includes('data:write');
  const creatable = writes && permission?.create === true;
  const updateable = writes && permission?.update === true;
  const deletable = scopes.includes('data:delete') && permission?.delete === true;
  return { creatable, updateable, deletable, editable: creatable || updateable };
}
