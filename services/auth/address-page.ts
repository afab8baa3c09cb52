/** The page behind a link to a mail address, which confirms it, agrees or objects to it. */
import type { HttpReply } from '../../contracts/auth.ts';
import type { Clients } from './clients.ts';
import type { Form } from './form.ts';
import * as pages from './pages/address.ts';
import { suspended } from './pages/pages.ts';
import { hashLinkToken } from './passwords.ts';
import { pageReply } from './reply.ts';
import type { AddressDecision, AddressLink } from './store/addresses.sql.ts';
import type { AuthStore } from './store/store.ts';
import { signInName } from './usernames.ts';

interface AddressPageParts {
  store: AuthStore;
  clients: Clients;
}

/** Shows what the link does, or does it. `action` is the form's own address. */
export async function addressReply(
  { store, clients }: AddressPageParts,
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
  const decision = decisionOf(link, form);
  if (!decision) return pageReply(pages.address({ action, username, ...link }));
  const outcome = await store.addresses.decide(link, tokenHash, decision);
  if (!outcome) return pageReply(pages.addressLinkSpent());
  return pageReply(pages.addressDecided(decision, outcome, link.address));
}

/** null: the form says nothing that its link could do. */
function decisionOf({ purpose }: AddressLink, form: Form): AddressDecision | null {
  const decision = form.get('decision');
  if (purpose === 'confirm') return decision === 'confirm' ? decision : null;
  return decision === 'agree' || decision === 'object' ? decision : null;
}
