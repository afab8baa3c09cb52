/** Public operations and internal actions of data. */
import type { Operation } from '../../lib/operation.ts';

export interface UserIdentity {
  id: string;
  username: string;
  displayName: string;
  email: string | null;
  active: boolean;
  locale: string | null;
  timezone: string | null;
  profileApiName: string;
  roleApiName: string | null;
  apiEnabled: boolean;
  systemPermissions: string[];
}

export interface DataActions {
  /** The user behind a token, with what decides about access; null when absent. */
  'data.users.get': { params: { tenantId: string; userId: string }; result: UserIdentity | null };
  /** User by username, for sign-in; null when absent. */
  'data.users.find': { params: { tenantId: string; username: string }; result: UserIdentity | null };
  /** Creates User records (administrator of a new tenant, demo users) as the platform, idempotent by username. */
  'data.users.provision': {
    params: {
      tenantId: string;
      users: {
        username: string;
        email: string;
        displayName: string;
        profileApiName: string;
        roleApiName?: string | null;
        permissionSetApiNames?: string[];
        managerUsername?: string | null;
        password?: string;
      }[];
    };
    result: { userIds: Record<string, string> };
  };
  /** Loads generated rows of one object as the platform: ids given, no history or events. Only for templates' sample data. */
  'data.samples.load': {
    params: { tenantId: string; objectApiName: string; columns: string[]; rows: unknown[][] };
    result: { inserted: number };
  };
}

export const DATA_OPERATIONS: readonly Operation[] = [];
