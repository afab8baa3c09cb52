/** Who must have a second factor: the tenant's setting, and what a person may do. */
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

/** Whether the user must have a second factor to sign in. Fails while data cannot say what the user may do. */
export async function demandsSecondFactor(parts: PolicyParts, user: UserKey): Promise<boolean> {
  const setting = (await parts.clients.secondFactor(user.tenantId)) ?? parts.secondFactor;
  if (setting !== 'administrators') return setting === 'everyone';
  return (await parts.systemPermissions(user)).some((permission) => ADMINISTRATION.has(permission));
}
