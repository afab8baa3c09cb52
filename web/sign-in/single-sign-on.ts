/** The pages on the way to the OpenID provider of a company and back. */

import type { SignInRefusalCode } from '../../contracts/data.ts';
import { escapeHtml } from '../../lib/values/html.ts';
import { type Page, RETRY_AFTER_SECONDS } from './layout.ts';

/** Browsers go on by themselves; the link is for those that do not. */
export const departure = ({ label, url }: { label: string; url: URL }): Page => ({
  title: `Sign in with ${label}`,
  status: 200,
  continueTo: url,
  footer: 'Look at the address there before you type your password.',
  body: `<h1>Sign in with ${escapeHtml(label)}</h1>
<p class="lead">You go on at <strong>${escapeHtml(url.host)}</strong>.</p>
<p><a href="${escapeHtml(url.href)}">Continue</a></p>`,
});

export const notAvailable = ({ label, back }: { label: string; back: string }): Page => ({
  title: `${label} does not answer`,
  status: 503,
  retryAfterSeconds: RETRY_AFTER_SECONDS,
  body: `<div role="alert"><h1>${escapeHtml(label)} does not answer</h1>
<p>Your company signs you in, and cannot be reached at this moment. Try again in a few seconds. If it stays so, tell your administrator.</p></div>
<p><a href="${escapeHtml(back)}">Back to the sign-in</a></p>`,
});

/** A set-password link of a user who may have none by now. */
export const noPassword = ({ label }: { label: string }): Page => ({
  title: 'You need no password',
  status: 410,
  body: `<h1>You need no password</h1>
<p>You sign in with <strong>${escapeHtml(label)}</strong>. Open your application, type your username and leave the password empty.</p>`,
});

type Code = SignInRefusalCode | 'SINGLE_SIGN_ON_EXPIRED' | 'SINGLE_SIGN_ON_CANCELLED';

/** Text for each reason. The person has signed in at their company, so they may know about their own account. */
function textOf(code: Code, label: string, name: string): readonly [title: string, text: string, status: number] {
  switch (code) {
    case 'SINGLE_SIGN_ON_EXPIRED':
      return ['This sign-in is over', 'It was completed already, took too long, or began in another browser.', 400];
    case 'SINGLE_SIGN_ON_CANCELLED':
      return ['You are not signed in', `The sign-in with ${label} was stopped.`, 401];
    case 'USER_UNKNOWN':
      return ['You have no account here', `Nobody has made an account for ${name} yet. Ask your administrator.`, 403];
    case 'USER_INACTIVE':
      return ['Your account is switched off', `The account of ${name} is not active. Ask your administrator.`, 403];
    case 'IDENTITY_OF_ANOTHER':
      return [
        'This account belongs to another sign-in',
        `The account of ${name} is connected with another identity at ${label}. Ask your administrator.`,
        403,
      ];
    case 'IDENTITY_NOT_VERIFIED':
      return [
        'You cannot be recognised',
        `${label} did not say who you are in a way that counts here. Ask your administrator to check the sign-in.`,
        403,
      ];
    case 'CLIENT_NOT_ALLOWED':
      return ['This application is not for you', 'It belongs to another company.', 403];
    default:
      return [
        'You are not signed in',
        `The sign-in with ${label} did not work. Try again, or tell your administrator.`,
        401,
      ];
  }
}

/** The sign-in failed; `username`: the person's name at the provider, null where it does not matter. */
export function refused(view: { code: Code; label: string; username: string | null; back: string | null }): Page {
  const [title, text, status] = textOf(view.code, view.label || 'your company', view.username ?? 'you');
  return {
    title,
    status,
    body: `<div role="alert"><h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(text)}</p></div>
${view.back === null ? '<p><a href="/">Start page</a></p>' : `<p><a href="${escapeHtml(view.back)}">Back to the sign-in</a></p>`}`,
  };
}
