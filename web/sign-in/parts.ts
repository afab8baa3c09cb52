/** Shared by several pages. */
import { escapeHtml } from '../../lib/values/html.ts';

/** The one thing that went wrong, announced as soon as the page is read. It stands before the heading of the page. */
export const problem = (title: string, text: string): string =>
  `<div class="problem" role="alert"><p><strong>${escapeHtml(title)}</strong></p><p>${escapeHtml(text)}</p></div>`;

export const hiddenInput = (name: string, value: string): string =>
  `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`;

export const waitText = (seconds: number): string =>
  `Wait ${seconds === 1 ? 'one second' : `${seconds} seconds`}, then try again.`;

interface PasskeyForm {
  action: string;
  csrf: string;
  /** `autofill` also offers passkeys where the username is typed. */
  use: 'create' | 'get' | 'autofill';
  /** Options of WebAuthn as JSON. */
  options: string;
  decision: string;
  button: string;
  quiet?: boolean;
  /** More fields of the form. */
  fields?: string;
}

/** Hidden until the script of the page shows it. */
export const passkeyForm = (form: PasskeyForm): string =>
  `<form method="post" action="${escapeHtml(form.action)}" data-passkey="${form.use}" data-with-passkeys
data-options="${escapeHtml(form.options)}" hidden>
${hiddenInput('csrf', form.csrf)}${hiddenInput('decision', form.decision)}${hiddenInput('credential', '')}
${form.fields ?? ''}<button type="submit"${form.quiet ? ' class="quiet"' : ''}>${escapeHtml(form.button)}</button>
<p class="hint" role="status"></p>
</form>`;

/** A field for a code of six digits from an authenticator app. */
export const codeField = ({ invalid, focus }: { invalid: boolean; focus: boolean }): string =>
  `<div class="field"><label for="code">Code from your app</label>
<input id="code" name="code" class="code" type="text" inputmode="numeric" autocomplete="one-time-code" required
maxlength="20"${invalid ? ' aria-invalid="true"' : ''}${focus ? ' autofocus' : ''}></div>`;

/** Says why there is no button for a passkey where the page has nothing else to offer. */
export const passkeysNeedMore = `<noscript><p class="hint">Passkeys need JavaScript, which is off in this browser.</p></noscript>
<p class="hint" data-without-passkeys hidden>This browser cannot use passkeys here. Try a current version of another one.</p>`;
