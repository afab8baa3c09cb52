/** The pages behind links to a mail address: its user confirms it, and agrees or objects from the one before. */
import { escapeHtml } from '../../../lib/values/html.ts';
import { type AddressDecision, type AddressOutcome, OBJECTION_DAYS } from '../store/addresses.sql.ts';
import type { Page } from './layout.ts';

export interface AddressView {
  action: string;
  purpose: 'confirm' | 'object';
  address: string;
  username: string;
}

export function address(view: AddressView): Page {
  const { title, text, buttons } = QUESTIONS[view.purpose];
  return {
    title,
    status: 200,
    body: `<h1>${title}</h1>
<p class="lead">for <strong>${escapeHtml(view.username)}</strong></p>
<p>${text}</p>
<p class="secret">${escapeHtml(view.address)}</p>
<form method="post" action="${escapeHtml(view.action)}">
${buttons}
</form>`,
  };
}

const decisionButton = (decision: AddressDecision, text: string, quiet = false): string =>
  `<button type="submit" name="decision" value="${decision}"${quiet ? ' class="quiet"' : ''}>${text}</button>`;

const QUESTIONS: Readonly<Record<AddressView['purpose'], { title: string; text: string; buttons: string }>> = {
  confirm: {
    title: 'Is this your mail address?',
    text: 'Links with which you choose a password are to go to this address:',
    buttons: decisionButton('confirm', 'Yes, it is mine'),
  },
  object: {
    title: 'Is this your new mail address?',
    text: 'Your account was given this mail address, to which mails are to go:',
    buttons: `${decisionButton('agree', 'Yes, I agree')}
${decisionButton('object', 'No, I object', true)}
<p class="hint">If you object, mails go on to the earlier address, whatever your administrator has entered.</p>`,
  },
};

const done = (title: string, text: string): Page => ({
  title,
  status: 200,
  body: `<h1 class="done">${title}</h1>
<p>${text}</p>`,
});

/** `waiting`: the other side has not confirmed the address yet. */
export function addressDecided(decision: AddressDecision, outcome: AddressOutcome, text: string): Page {
  const address = `<strong>${escapeHtml(text)}</strong>`;
  if (decision === 'object')
    return done(
      'The address is not used',
      `Mails go on to the address until now, and not to ${address}. Tell your administrator what has happened, so that your
account is put right.`,
    );
  const title = decision === 'confirm' ? 'Your address is confirmed' : 'You have agreed';
  if (outcome === 'settled') return done(title, `Mails for you go to ${address}. You can close this page.`);
  if (decision === 'agree')
    return done(title, `Mails for you go to ${address} once you have confirmed it with the link that was sent there.`);
  return done(
    title,
    outcome === 'waiting'
      ? `Mails for you go to ${address} once you have agreed with the link that was sent to the earlier address, or
${OBJECTION_DAYS} days after the change if nobody objects there.`
      : `Mails for you go to ${address} once you have agreed, and you could not be asked at your earlier address. If no link has
arrived there, ask your administrator to enter the earlier address tomorrow, and then this one once more.`,
  );
}

export const addressLinkSpent = (): Page => ({
  title: 'This link is not valid any more',
  status: 410,
  body: `<h1>This link is not valid any more</h1>
<p>It was used already, it has expired, or the address was changed again meanwhile.</p>`,
});
