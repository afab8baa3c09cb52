import type { Access, ObjectAccess } from './types.ts';

/** Access to an object that the user is known to see. */
export function accessTo(access: Access, objectApiName: string): ObjectAccess {
  const object = access.objects[objectApiName];
  if (object === undefined) throw new Error(`The user has no access to ${objectApiName}.`);
  return object;
}
