/** The page behind a link about a changed mail address: it confirms the new address, or undoes the change. */
import { randomBytes } from 'node:crypto';
import type { HttpReply } from '../../contracts/auth.ts';
import * as pages from '../../web/account/address.ts';
import { suspended } from '../../web/sign-in/pages.ts';
import type { Clients } from './clients.ts';
import type { Form } from './form.ts';
import type { Outbox } from './mail/outbox.ts';
import { hashLinkToken, hashPassword } from './passwords.ts';
import { pageReply } from './reply.ts';
import type { AuthStore } from './store/store.ts';
import { signInName } from './usernames.ts';

interface AddressPageParts {
  store: AuthStore;
  clients: Clients;
  outbox: Outbox;
  /** Informs the gateways. */
  grantsEnded(grantIds: string[]): void;
}

/** Shows what the link does, or does it. `action` is the form's own address. */
export async function addressReply(
  { store, clients, outbox, grantsEnded }: AddressPageParts,
  token: string,
  form: Form | null,
  action: string,
): Promise<HttpReply> {
  const tokenHash = hashLinkToken(token);
  const link = await store.addresses.byLink(tokenHash);
  const credential = link && (await store.credentials.find(link.tenantId, link.userId));
  if (!link || !credential) return pageReply(pages.addressLinkSpent());
  const { earlierAddress } = link;
  // Undo works in a suspended tenant: it lets no one in, and its link would expire.
  if (earlierAddress === null && (await clients.isSuspended(link.tenantId))) return pageReply(suspended());
  // A mail scanner that opens the link must not use it up: only the form does.
  if (!form)
    return pageReply(pages.address({ action, username: await signInName(credential, { store, clients }), ...link }));
  if (earlierAddress === null) {
    const outcome = await store.addresses.confirm(link, tokenHash);
    if (outcome === 'spent') return pageReply(pages.addressLinkSpent());
    return pageReply(outcome === 'confirmed' ? pages.addressConfirmed(link.address) : pages.addressNotNotified());
  }
  // An unknown password: the user chooses another one.
  const passwordHash = await hashPassword(randomBytes(32).toString('base64url'));
  const undone = await store.addresses.undo({ ...link, earlierAddress }, tokenHash, passwordHash, outbox);
  if (!undone) return pageReply(pages.addressLinkSpent());
  if (undone.ended.length > 0) grantsEnded(undone.ended);
  return pageReply(pages.addressRestored(earlierAddress, undone));
}
