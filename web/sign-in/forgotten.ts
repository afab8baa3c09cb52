/** The pages for a forgotten password. */
import { escapeHtml } from '../../lib/values/html.ts';
import type { Page } from './layout.ts';
import { hiddenInput, problem, waitText } from './parts.ts';

export type ForgottenProblem = { kind: 'empty' } | { kind: 'wait'; seconds: number } | null;

interface ForgottenView {
  action: string;
  client: string;
  signIn: string;
  /** The sign-in from which it was opened. */
  back: string | null;
  problem: ForgottenProblem;
}

export function forgotten(view: ForgottenView): Page {
  const wait = view.problem?.kind === 'wait' ? view.problem.seconds : 0;
  const empty = view.problem?.kind === 'empty';
  const alert =
    wait > 0
      ? problem('Too many attempts', waitText(wait))
      : empty
        ? problem('Nothing was sent', 'Type your username.')
        : '';
  return {
    title: view.problem ? 'Problem: forgotten password' : 'Forgotten password',
    status: wait > 0 ? 429 : empty ? 422 : 200,
    ...(wait > 0 ? { retryAfterSeconds: wait } : {}),
    body: `${alert}<h1>Forgotten password</h1>
<p class="lead">You get a mail with a link with which you choose a new one.</p>
<form method="post" action="${escapeHtml(view.action)}">
${view.client ? hiddenInput('client', view.client) : ''}
${view.signIn ? hiddenInput('sign_in', view.signIn) : ''}
<div class="field"><label for="username">Username</label>
<input id="username" name="username" type="text" autocomplete="username" autocapitalize="none" spellcheck="false"
required maxlength="320" aria-describedby="username-hint"${empty ? ' aria-invalid="true"' : ''} autofocus>
<p class="hint" id="username-hint">What you type to sign in.</p></div>
<button type="submit">Send the link</button>
</form>
${wayBack(view.back)}`,
  };
}

const wayBack = (back: string | null): string =>
  back === null ? '' : `<p class="spaced"><a href="${escapeHtml(back)}">Back to the sign-in</a></p>`;

/** For any name that was given. `again`: the page before, for another name. */
export const requested = (view: { again: string; back: string | null }): Page => ({
  title: 'Look into your mailbox',
  status: 200,
  body: `<h1 class="done">Look into your mailbox</h1>
<p>If there is an account of this name, a mail is on its way to its address. The link in it works for an hour.</p>
<p class="hint">Nothing arrives? Look among unwanted mails, or <a href="${escapeHtml(view.again)}">ask again with another
username</a>. Otherwise ask your administrator for a link.</p>
${wayBack(view.back)}`,
});

export const noMails = (): Page => ({
  title: 'Forgotten password',
  status: 200,
  body: `<h1>Forgotten password</h1>
<p>Ask your administrator for a link with which you choose a new one: this platform sends no mails.</p>`,
});
