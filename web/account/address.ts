/** The pages behind links about a changed mail address. */
import { escapeHtml } from '../../lib/values/html.ts';
import type { Page } from '../sign-in/layout.ts';

interface AddressView {
  action: string;
  username: string;
  address: string;
  /** Restored by the link; null: the link confirms. */
  earlierAddress: string | null;
}

export function address(view: AddressView): Page {
  const { title, text, button, hint } = view.earlierAddress === null ? CONFIRM : UNDO;
  return {
    title,
    status: 200,
    body: `<h1>${title}</h1>
<p class="lead">for <strong>${escapeHtml(view.username)}</strong></p>
<p>${text}</p>
<p class="secret">${escapeHtml(view.address)}</p>
<form method="post" action="${escapeHtml(view.action)}">
<button type="submit">${button}</button>
${hint}</form>`,
  };
}

const CONFIRM = {
  title: 'Is this your mail address?',
  text: 'Links with which you choose a password are to go to this address:',
  button: 'Yes, it is mine',
  hint: '',
};

const UNDO = {
  title: 'Undo the change of your mail address?',
  text: 'Your account was given this mail address:',
  button: 'Undo the change',
  hint: `<p class="hint">Mails go on to the earlier address, whatever your administrator has entered, and your account is signed
out everywhere. You know of the change? Then close this page.</p>
`,
};

const done = (title: string, text: string): Page => ({
  title,
  status: 200,
  body: `<h1 class="done">${title}</h1>
<p>${text}</p>`,
});

export const addressConfirmed = (address: string): Page =>
  done(
    'Your address is confirmed',
    `Mails for you go to <strong>${escapeHtml(address)}</strong>. You can close this page.`,
  );

export const addressRestored = (address: string, { passwordReplaced }: { passwordReplaced: boolean }): Page =>
  done(
    'The change is undone',
    `Mails for you go to <strong>${escapeHtml(address)}</strong>, and your account was signed out everywhere.${
      passwordReplaced
        ? ' Your password does not work any more: <a href="/password/forgotten">choose a new one</a>.'
        : ''
    } Tell your administrator what has happened, so that your account is put right.`,
  );

/** The link is not used up: the mail to the earlier address may still be on its way. */
export const addressNotNotified = (): Page => ({
  title: 'Your address is not confirmed yet',
  status: 409,
  body: `<h1>Your address is not confirmed yet</h1>
<p>A mail about the change has to go to your earlier address first. Open the link again in a few minutes. If this page stays, ask your
administrator to enter the earlier address tomorrow, and then the new one once more.</p>`,
});

export const addressLinkSpent = (): Page => ({
  title: 'This link is not valid any more',
  status: 410,
  body: `<h1>This link is not valid any more</h1>
<p>It was used already, it has expired, or the address was changed again meanwhile.</p>`,
});
