/** The pages behind links to a mail address: its user confirms it, or objects to a new one. */
import { escapeHtml } from '../../../lib/values/html.ts';
import type { Page } from './layout.ts';

export interface AddressView {
  action: string;
  purpose: 'confirm' | 'object';
  address: string;
  username: string;
}

export function address(view: AddressView): Page {
  const [title, text, button] =
    view.purpose === 'confirm'
      ? [
          'Is this your mail address?',
          'From now on, links with which you choose a password go to this address:',
          'Yes, it is mine',
        ]
      : [
          'Do you object?',
          'Your account was given this mail address. If you object, mails go on to the earlier one:',
          'I object',
        ];
  return {
    title,
    status: 200,
    body: `<h1>${title}</h1>
<p class="lead">for <strong>${escapeHtml(view.username)}</strong></p>
<p>${text}</p>
<p class="secret">${escapeHtml(view.address)}</p>
<form method="post" action="${escapeHtml(view.action)}">
<button type="submit" name="decision" value="${view.purpose}">${button}</button>
</form>`,
  };
}

export const addressSettled = ({ purpose, address: text }: Pick<AddressView, 'purpose' | 'address'>): Page =>
  purpose === 'confirm'
    ? {
        title: 'Your address is confirmed',
        status: 200,
        body: `<h1 class="done">Your address is confirmed</h1>
<p>Mails for you go to <strong>${escapeHtml(text)}</strong>. You can close this page.</p>`,
      }
    : {
        title: 'The address is not used',
        status: 200,
        body: `<h1 class="done">The address is not used</h1>
<p>Mails go on to the address until now, and not to <strong>${escapeHtml(text)}</strong>. Tell your administrator what has
happened, so that your account is put right.</p>`,
      };

export const addressLinkSpent = (): Page => ({
  title: 'This link is not valid any more',
  status: 410,
  body: `<h1>This link is not valid any more</h1>
<p>It was used already, it has expired, or the address was changed again meanwhile.</p>`,
});
