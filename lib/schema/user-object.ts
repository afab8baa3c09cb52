/** The standard object User: its records are the users of the tenant. */
import type { ObjectMeta } from './snapshot.ts';

export const isUserObject = ({ apiName }: Pick<ObjectMeta, 'apiName'>): boolean => apiName === 'User';
