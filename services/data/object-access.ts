/** The object and record that a request names, as its user may see them. */
import type { ObjectAccess } from '../../lib/access/types.ts';
import { apiAccessDisabled } from '../../lib/errors/access.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { ownEntry } from '../../lib/schema/lookup.ts';
import { isUuid } from '../../lib/values/ids.ts';
import type { View } from './view.ts';

/** The user's access to the object of a request, or 404: absent, unpublished and unreadable look the same. */
export function visibleObject(view: View, apiName: string): ObjectAccess {
  requireApi(view);
  const access = ownEntry(view.access.objects, apiName);
  if (!access) throw objectNotFound();
  return access;
}

/** The object that a request names, and the id of the record; 404 when the caller cannot see the one or it is no id. */
export function namedRecord(
  view: View,
  { path }: { path: { objectApiName: string; id: string } },
): { access: ObjectAccess; id: string } {
  const access = visibleObject(view, path.objectApiName);
  const id = path.id.toLowerCase();
  if (!isUuid(id)) throw recordNotFound();
  return { access, id };
}

/** 403 for users without the API permission. */
export function requireApi(view: View): void {
  if (!view.access.system.has('apiEnabled')) throw apiAccessDisabled();
}

const objectNotFound = (): PlatformError =>
  new PlatformError('OBJECT_NOT_FOUND', 'The object does not exist, or you have no access to it.');

export const recordNotFound = (): PlatformError =>
  new PlatformError('RECORD_NOT_FOUND', 'The record does not exist, or you have no access to it.');
