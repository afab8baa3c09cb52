/** Changed mail addresses that count by themselves, because nobody has objected in time. */
import type { Acts } from './acts.ts';
import type { Addresses } from './store/addresses.ts';

interface UnopposedParts {
  readonly addresses: Addresses;
  readonly acts: Acts;
  onError(error: unknown): void;
}

/** Settles them, each with its entry in the audit trail. Source: docs/reference/mail.md#a-changed-address. */
export async function settleUnopposed({ addresses, acts, onError }: UnopposedParts): Promise<void> {
  // The address counts, whether or not the entry can be written.
  for (const changed of await addresses.settleUnopposed()) await acts.addressUnopposed(changed).catch(onError);
}
