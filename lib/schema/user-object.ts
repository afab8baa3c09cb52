/** The standard object User: its records are the users of the tenant. */
import type { ObjectMeta } from './snapshot.ts';

export const isUserObject = ({ apiName }: Pick<ObjectMeta, 'apiName'>): boolean => apiName === 'User';

/** When a user last signed in: kept by the platform, outside the version, the history and the change feed of the record. */
export const LAST_SIGN_IN_FIELD = 'lastSignInAt';
