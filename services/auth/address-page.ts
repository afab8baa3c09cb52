/** The page behind a link to a mail address, which confirms it or objects to it. */
import type { HttpReply } from '../../contracts/auth.ts';
import type { Clients } from './clients.ts';
import type { Form } from './form.ts';
import * as pages from './pages/address.ts';
import { suspended } from './pages/pages.ts';
import { hashLinkToken } from './passwords.ts';
import { pageReply } from './reply.ts';
import type { AddressLink } from './store/addresses.sql.ts';
import type { AuthStore } from './store/store.ts';
import { signInName } from './usernames.ts';

interface AddressPageParts {
  store: AuthStore;
  clients: Clients;
  /** For the audit trail. */
  addressSettled(link: AddressLink): Promise<void>;
}

/** Shows what the link does, or does it. `action` is the form's own address. */
export async function addressReply(
  { store, clients, addressSettled }: AddressPageParts,
  token: string,
  form: Form | null,
  action: string,
): Promise<HttpReply> {
  const tokenHash = hashLinkToken(token);
  const link = await store.addresses.byLink(tokenHash);
  const credential = link && (await store.credentials.find(link.tenantId, link.userId));
  if (!link || !credential) return pageReply(pages.addressLinkSpent());
  if (await clients.isSuspended(link.tenantId)) return pageReply(suspended());
  const username = await signInName(credential, { store, clients });
  // A mail scanner that opens the link must not use it up: only the form does.
  if (!form) return pageReply(pages.address({ action, username, ...link }));
  if (!(await store.addresses.settle(link, tokenHash))) return pageReply(pages.addressLinkSpent());
  await addressSettled(link);
  return pageReply(pages.addressSettled(link));
}
