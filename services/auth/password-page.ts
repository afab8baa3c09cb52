/** The page behind a set-password link. */
import type { HttpReply } from '../../contracts/auth.ts';
import type { Clients } from './clients.ts';
import type { Form } from './form.ts';
import type { Outbox } from './mail/outbox.ts';
import * as pages from './pages/pages.ts';
import { noPassword } from './pages/single-sign-on.ts';
import { hashLinkToken, hashPassword, PASSWORD_MIN_CHARS, passwordProblem } from './passwords.ts';
import { pageReply } from './reply.ts';
import type { SingleSignOn } from './single-sign-on/single-sign-on.ts';
import type { AuthStore } from './store/store.ts';
import { signInName } from './usernames.ts';

interface PasswordPageParts {
  store: AuthStore;
  clients: Clients;
  singleSignOn: Pick<SingleSignOn, 'replacesPassword'>;
  outbox: Outbox;
  /** Whether the maker of a link may still let its user in. */
  mayLetIn(link: { tenantId: string; userId: string; madeBy: string }): Promise<boolean>;
  /** Ends every grant and browser session of a user. */
  revokeUser(tenantId: string, userId: string): Promise<unknown>;
  /** For the audit trail. */
  passwordSet(tenantId: string, userId: string): Promise<void>;
}

/** Shows the form, or sets the password that was sent with it. `action` is the form's own address. */
export async function passwordReply(
  { store, clients, singleSignOn, outbox, mayLetIn, revokeUser, passwordSet }: PasswordPageParts,
  token: string,
  form: Form | null,
  action: string,
): Promise<HttpReply> {
  const tokenHash = hashLinkToken(token);
  const credential = await store.credentials.byLink(tokenHash);
  if (!credential) return pageReply(pages.linkSpent());
  if (await clients.isSuspended(credential.tenantId)) return pageReply(pages.suspended());
  const { username, tenantId, userId, madeBy } = credential;
  // Its user may have got more since, or its maker less: a link hands out no more than its maker holds now.
  if (madeBy !== null && !(await mayLetIn({ tenantId, userId, madeBy }))) return pageReply(pages.linkSpent());
  const provider = await singleSignOn.replacesPassword(credential);
  if (provider) return pageReply(noPassword({ label: provider.meta.label }));
  const shownName = await signInName(credential, { store, clients });
  const show = (problem: string | null): HttpReply =>
    pageReply(pages.setPassword({ action, username: shownName, problem, minChars: PASSWORD_MIN_CHARS }));
  // A mail scanner that opens the link must not use it up: only the form does.
  if (!form) return show(null);
  const password = form.get('password') ?? '';
  const problem =
    passwordProblem(password, username) ??
    (password === form.get('repeated') ? null : 'The two entries are not the same.');
  if (problem) return show(problem);
  const spent = await store.credentials.spendLink(tenantId, tokenHash, await hashPassword(password), outbox);
  if (!spent) return pageReply(pages.linkSpent());
  // Somebody who knew the old password may still be signed in with it.
  await revokeUser(tenantId, userId);
  await passwordSet(tenantId, userId);
  return pageReply(pages.passwordSet(shownName));
}
