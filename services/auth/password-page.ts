/** The page behind a set-password link. */
import { createHmac, randomBytes } from 'node:crypto';
import type { HttpReply } from '../../contracts/auth.ts';
import * as pages from '../../web/sign-in/pages.ts';
import { noPassword } from '../../web/sign-in/single-sign-on.ts';
import type { Clients } from './clients.ts';
import type { Form } from './form.ts';
import type { Outbox } from './mail/outbox.ts';
import { hashLinkToken, hashPassword, newLinkToken, PASSWORD_MIN_CHARS, passwordProblem } from './passwords.ts';
import { pageReply } from './reply.ts';
import type { SingleSignOn } from './single-sign-on/single-sign-on.ts';
import type { AuthStore } from './store/store.ts';
import { signInName } from './usernames.ts';

interface PasswordPageParts {
  store: AuthStore;
  clients: Clients;
  singleSignOn: Pick<SingleSignOn, 'replacesPassword'>;
  outbox: Outbox;
  /** True while the maker of a link may let its user in. */
  mayLetIn(link: { tenantId: string; userId: string; madeBy: string }): Promise<boolean>;
  /** Informs the gateways. */
  grantsEnded(grantIds: string[]): void;
}

/** Shows the form, or sets the password that was sent with it. `action` is the form's own address. */
export async function passwordReply(
  { store, clients, singleSignOn, outbox, mayLetIn, grantsEnded }: PasswordPageParts,
  token: string,
  form: Form | null,
  action: string,
): Promise<HttpReply> {
  const tokenHash = hashLinkToken(token);
  const usedWith = usedWithOf(token, form);
  const spent = async (): Promise<HttpReply> => {
    const user = form && (await store.credentials.byUsedLink(tokenHash, usedWith));
    return pageReply(user ? pages.passwordSet(await signInName(user, { store, clients })) : pages.linkSpent());
  };
  const credential = await store.credentials.byLink(tokenHash);
  if (!credential) return spent();
  if (await clients.isSuspended(credential.tenantId)) return pageReply(pages.suspended());
  const { username, tenantId, userId, madeBy } = credential;
  // Its user may have got more since, or its maker less: a link hands out no more than its maker holds now.
  if (madeBy !== null && !(await mayLetIn({ tenantId, userId, madeBy }))) return pageReply(pages.linkSpent());
  const provider = await singleSignOn.replacesPassword(credential);
  if (provider) return pageReply(noPassword({ label: provider.meta.label }));
  const shownName = await signInName(credential, { store, clients });
  const show = (problem: string | null): HttpReply =>
    pageReply(
      pages.setPassword({
        action,
        formToken: form?.get('form') ?? newLinkToken(),
        username: shownName,
        problem,
        minChars: PASSWORD_MIN_CHARS,
      }),
    );
  // A mail scanner that opens the link must not use it up: only the form does.
  if (!form) return show(null);
  const password = form.get('password') ?? '';
  const problem =
    passwordProblem(password, username) ??
    (password === form.get('repeated') ? null : 'The two entries are not the same.');
  if (problem) return show(problem);
  const link = { tenantId, userId, tokenHash, usedWith };
  const ended = await store.credentials.spendLink(link, await hashPassword(password), outbox);
  if (!ended) return spent();
  if (ended.length > 0) grantsEnded(ended);
  return pageReply(pages.passwordSet(shownName));
}

const FORM_TOKEN = /^[\w-]{43}$/;

/**
 * Recognizes a form that is sent again because its answer was lost: an HMAC over link and password. Its key is the token of the
 * form, which is not stored, so that neither the row nor the used link says anything about the password.
 */
function usedWithOf(token: string, form: Form | null): Buffer {
  const key = form?.get('form') ?? '';
  if (!FORM_TOKEN.test(key)) return randomBytes(32);
  return createHmac('sha256', key)
    .update(JSON.stringify([token, form?.get('password') ?? '']))
    .digest();
}
