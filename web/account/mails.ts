/** The pages behind the link of a mail about notifications. */
import { escapeHtml } from '../../lib/values/html.ts';
import type { Page } from '../sign-in/layout.ts';

export const endMails = (action: string): Page => ({
  title: 'No more mails about notifications?',
  status: 200,
  body: `<h1>No more mails about notifications?</h1>
<p>Your notifications stay in their list, and mails about your account go on.</p>
<form method="post" action="${escapeHtml(action)}">
<button type="submit">No more mails</button>
</form>`,
});

export const mailsEnded = (): Page => ({
  title: 'You get no more of these mails',
  status: 200,
  body: `<h1 class="done">You get no more of these mails</h1>
<p>You can turn them on again in the preferences of your notifications. You can close this page.</p>`,
});
