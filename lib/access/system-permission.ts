/** System permissions that an operation needs as a whole: who holds them, and what those who do not are answered. */
import { PlatformError } from '../errors/platform-error.ts';
import type { SystemPermission } from '../schema/snapshot.ts';

/** Permissions that include another one. */
const INCLUDED_IN: Readonly<Partial<Record<SystemPermission, SystemPermission>>> = { metadataRead: 'metadataManage' };

/** True when these permissions are or include the required one. */
export function holdsPermission(held: ReadonlySet<string>, needed: SystemPermission): boolean {
  const wider = INCLUDED_IN[needed];
  return held.has(needed) || (wider !== undefined && held.has(wider));
}

/** 403 for users without a system permission; the gateway and the service that owns the operation refuse with it. */
export function permissionDenied(needed: SystemPermission): PlatformError {
  const message = `The user lacks the system permission ${needed}.`;
  const details = { layer: 'objectPermission', permission: needed };
  if (needed === 'metadataRead' || needed === 'metadataManage')
    return new PlatformError('METADATA_PERMISSION_DENIED', message, { details });
  return new PlatformError('OBJECT_PERMISSION_DENIED', message, {
    details: { objectApiName: null, operation: null, ...details },
  });
}
