/** Changed mail addresses that become effective after the time for objections. */
import type { Clients } from './clients.ts';
import type { ChangedAddress } from './store/addresses.sql.ts';
import type { Addresses } from './store/addresses.ts';

interface UnopposedParts {
  readonly addresses: Addresses;
  readonly clients: Pick<Clients, 'isSuspended'>;
  onError(error: unknown): void;
}

/** Settles them, each with its entry in the audit trail. Source: docs/reference/mail.md#a-changed-address. */
export async function settleUnopposed(parts: UnopposedParts): Promise<void> {
  for (const changed of await parts.addresses.unopposed()) await settleOne(parts, changed).catch(parts.onError);
}

async function settleOne({ addresses, clients }: UnopposedParts, changed: ChangedAddress): Promise<void> {
  // Nobody could object there: its links lead to a page that says so.
  if (await clients.isSuspended(changed.tenantId)) return addresses.awaitConsent(changed);
  await addresses.settle(changed);
}
