/** "May I?": yes or no for one operation, by the rules of rules.ts. Source: docs/reference/access.md. */
import { PlatformError } from '../errors/platform-error.ts';
import type { Access, Capabilities, DataOperation, ObjectAccess, ScopeSet } from './types.ts';

/** The layer that refused, as access explanations and error details name it. */
export type Layer = 'publication' | 'objectPermission' | 'fieldPermission' | 'sharing';

export type Decision =
  | { readonly allowed: true }
  | {
      readonly allowed: false;
      readonly layer: Layer;
      readonly code: 'OBJECT_NOT_FOUND' | 'OBJECT_PERMISSION_DENIED' | 'RECORD_NOT_FOUND' | 'RECORD_ACCESS_DENIED';
    };

/** What sharing looks at. */
export interface SharedRecord {
  readonly id: string;
  readonly ownerId: string | null;
}

const ALLOWED: Decision = { allowed: true };
const ABSENT: Decision = { allowed: false, layer: 'publication', code: 'OBJECT_NOT_FOUND' };
const DENIED: Decision = { allowed: false, layer: 'objectPermission', code: 'OBJECT_PERMISSION_DENIED' };

/**
 * One operation on an object, or on one record of it when `record` is given. Records of a readable object are open to
 * everybody who has the object permission.
 */
export function decide(
  access: Access,
  objectApiName: string,
  operation: DataOperation,
  _record?: SharedRecord,
): Decision {
  const object = access.objects[objectApiName];
  if (!object) return ABSENT;
  return object.permission[operation] ? ALLOWED : DENIED;
}

const VERBS: Readonly<Record<DataOperation, string>> = {
  create: 'create',
  read: 'read',
  update: 'change',
  delete: 'delete',
};

/** The object's access, or the error that a caller without it gets: 404 OBJECT_NOT_FOUND, 403 OBJECT_PERMISSION_DENIED. */
export function requireObject(access: Access, objectApiName: string, operation: DataOperation): ObjectAccess {
  const object = access.objects[objectApiName];
  if (!object) throw new PlatformError('OBJECT_NOT_FOUND', 'There is no such object for this user.');
  if (!object.permission[operation])
    throw new PlatformError(
      'OBJECT_PERMISSION_DENIED',
      `You may not ${VERBS[operation]} records of ${objectApiName}.`,
      {
        details: { objectApiName, operation, layer: 'objectPermission' },
      },
    );
  return object;
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
