/** Users who must have a second factor, by the tenant's setting and their permissions. */
import { KEPT_PERMISSIONS } from '../../../lib/access/administrators.ts';
import type { SecondFactorPolicy } from '../../../lib/schema/snapshot.ts';
import type { Clients } from '../clients.ts';
import type { UserKey } from '../store/factors.ts';

/** A user who holds one of these changes what others may do, or the configuration: an administrator. */
const ADMINISTRATION: ReadonlySet<string> = new Set(KEPT_PERMISSIONS);

export interface PolicyParts {
  clients: Clients;
  /** For tenants whose settings do not say. */
  secondFactor: SecondFactorPolicy;
  /** The system permissions of a user, from data. */
  systemPermissions(user: UserKey): Promise<readonly string[]>;
}

/** True when the user must sign in with a second factor. Fails while data is unavailable for the user's permissions. */
export async function demandsSecondFactor(parts: PolicyParts, user: UserKey): Promise<boolean> {
  const setting = (await parts.clients.secondFactor(user.tenantId)) ?? parts.secondFactor;
  if (setting !== 'administrators') return setting === 'everyone';
  return (await parts.systemPermissions(user)).some((permission) => ADMINISTRATION.has(permission));
}
