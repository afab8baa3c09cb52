/** "May I?": yes or no for one operation, by the rules of rules.ts. Source: docs/reference/access.md. */
import { PlatformError } from '../errors/platform-error.ts';
import { referredObject } from '../schema/lookup.ts';
import type { FieldMeta } from '../schema/snapshot.ts';
import { type Grant, grantsTo, parentFields, type RecordLevel, type SharedRecord } from './sharing.ts';
import type { Access, Capabilities, DataOperation, ObjectAccess, ScopeSet } from './types.ts';

type Decision =
  /** `grantedBy`: the grants through which the user reaches the record; empty for a create without a controlling parent. */
  | { readonly allowed: true; readonly grantedBy: readonly Grant[] }
  | {
      readonly allowed: false;
      readonly code: 'RECORD_NOT_FOUND' | 'RECORD_ACCESS_DENIED';
      /** Of a create: the field that refers to the parent because of which it is refused. */
      readonly parent?: FieldMeta;
    };

/**
 * An operation on a record. Permission to update includes transitions and changing the owner.
 */
export type RecordOperation = DataOperation | 'transition' | 'changeOwner' | 'share';

/** Requirements of each operation, shared by decisions, statements and explanations. */
export const NEEDS: Readonly<Record<RecordOperation, { permission: DataOperation; level: RecordLevel }>> = {
  create: { permission: 'create', level: 'edit' },
  read: { permission: 'read', level: 'read' },
  update: { permission: 'update', level: 'edit' },
  transition: { permission: 'update', level: 'edit' },
  changeOwner: { permission: 'update', level: 'full' },
  delete: { permission: 'delete', level: 'full' },
  share: { permission: 'read', level: 'full' },
};

const UNSEEN: Decision = { allowed: false, code: 'RECORD_NOT_FOUND' };
const UNREACHED: Decision = { allowed: false, code: 'RECORD_ACCESS_DENIED' };

/**
 * Decision of sharing alone about a record of an object that the user may read. For a create it is the record to be; only
 * the parents that control its sharing matter.
 */
export function decideSharing(
  access: Access,
  objectApiName: string,
  operation: RecordOperation,
  record: SharedRecord,
): Decision {
  if (operation === 'create') {
    const entry = access.objects[objectApiName];
    return entry ? decideParents(access, entry, record) : UNSEEN;
  }
  const grantedBy = grantsTo(access, objectApiName, NEEDS[operation].level, record);
  if (grantedBy.length > 0) return { allowed: true, grantedBy };
  return grantsTo(access, objectApiName, 'read', record).length > 0 ? UNREACHED : UNSEEN;
}

/** Creating a record under parents that control its sharing needs edit access to these parents. */
function decideParents(access: Access, { object }: ObjectAccess, record: SharedRecord): Decision {
  const grantedBy: Grant[] = [];
  for (const field of parentFields(object)) {
    const parent = record.parents[field.apiName];
    const decision = parent ? decideSharing(access, referredObject(field), 'update', parent) : UNSEEN;
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
  if (!object) throw new PlatformError('OBJECT_NOT_FOUND', 'The object does not exist, or you have no access to it.');
  const refusal = permissionRefusal(access, objectApiName, operation);
  if (refusal) throw refusal;
  return object;
}

/** 403 OBJECT_PERMISSION_DENIED for an object that the caller sees; null when the operation is permitted. */
export function permissionRefusal(
  access: Access,
  objectApiName: string,
  operation: DataOperation,
): PlatformError | null {
  if (access.objects[objectApiName]?.permission[operation]) return null;
  return new PlatformError(
    'OBJECT_PERMISSION_DENIED',
    `You lack the permission to ${VERBS[operation]} records of ${objectApiName}.`,
    {
      details: { objectApiName, operation, layer: 'objectPermission' },
    },
  );
}

/** Operations of this connection on an object: scopes ∩ publication ∩ object permission. */
export function capabilities(access: Access, objectApiName: string, scopes: ScopeSet): Capabilities {
  const permission = access.objects[objectApiName]?.permission;
  const writes = scopes.includes('data:write');
  const creatable = writes && permission?.create === true;
  const updateable = writes && permission?.update === true;
  const deletable = scopes.includes('data:delete') && permission?.delete === true;
  return { creatable, updateable, deletable, editable: creatable || updateable };
}
