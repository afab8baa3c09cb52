/** The page for a forgotten password: the same answer to every name. */
import type { HttpReply, HttpRequest } from '../../contracts/auth.ts';
import { networkOf } from '../../lib/values/network.ts';
import { USERNAME_MAX_CHARS } from '../../lib/values/user-names.ts';
import * as pages from '../../web/sign-in/forgotten.ts';
import { RESET_REQUESTS } from './attempt-limits.ts';
import type { Form } from './form.ts';
import type { Mail } from './mail/mail.ts';
import { interactionPath } from './provider/paths.ts';
import { pageReply } from './reply.ts';
import type { AuthStore } from './store/store.ts';

export const FORGOTTEN_PATH = '/password/forgotten';

const CLIENT_ID_MAX_CHARS = 255;
/** Id of a sign-in under way. */
const SIGN_IN = /^[\w-]{1,64}$/;

/** The sign-in from which the page is opened; empty: it was opened by itself. */
interface From {
  readonly client: string;
  readonly signIn: string;
}

/** Its address with the client of the sign-in from which it is opened, and the way back there. */
export const forgottenAddress = ({ client, signIn }: From): string =>
  `${FORGOTTEN_PATH}?${new URLSearchParams({
    ...(client === '' ? {} : { client }),
    ...(signIn === '' ? {} : { sign_in: signIn }),
  })}`;

/** The request's return parameter, if it is one of ours: nothing that leads to another site. */
function fromWhere(query: URLSearchParams, form: Form | null): From {
  const given = (name: string): string => form?.get(name) ?? query.get(name) ?? '';
  const signIn = given('sign_in');
  return { client: given('client').slice(0, CLIENT_ID_MAX_CHARS), signIn: SIGN_IN.test(signIn) ? signIn : '' };
}

export async function forgottenReply(
  { mail, store }: { mail: Mail; store: AuthStore },
  {
    query,
    form,
    browser,
    request,
  }: { query: URLSearchParams; form: Form | null; browser: string | null; request: HttpRequest },
): Promise<HttpReply> {
  if (!mail.outbox.enabled) return pageReply(pages.noMails());
  const from = fromWhere(query, form);
  const { client, signIn } = from;
  const back = signIn === '' ? null : interactionPath(signIn);
  const show = (problem: pages.ForgottenProblem): HttpReply =>
    pageReply(pages.forgotten({ action: FORGOTTEN_PATH, ...from, back, problem }));
  if (!form) return show(null);
  const username = (form.get('username') ?? '').trim().slice(0, USERNAME_MAX_CHARS);
  if (username === '') return show({ kind: 'empty' });
  const counters = [{ key: `reset ${networkOf(request.remoteAddress)}`, limit: RESET_REQUESTS, shared: true }];
  const seconds = await store.attempts.count(counters);
  if (seconds > 0) return show({ kind: 'wait', seconds });
  const asked = { username, clientId: client === '' ? null : client, browser, address: request.remoteAddress };
  if (!(await mail.requestReset(asked))) return show({ kind: 'wait', seconds: RESET_REQUESTS.waitMaxSeconds });
  return pageReply(pages.requested({ again: forgottenAddress(from), back }));
}
