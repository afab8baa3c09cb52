/** The pages of sign-in. Each is a function from what it shows to HTML; none decides anything. */
import { escapeHtml } from '../../lib/values/html.ts';
import { ERROR_TITLES } from '../../lib/values/page-frame.ts';
import { type Page, RETRY_AFTER_SECONDS } from './layout.ts';
import { hiddenInput, passkeyForm, problem, waitText } from './parts.ts';

export { headers, type Page, render } from './layout.ts';

export interface SignInView {
  action: string;
  csrf: string;
  clientName: string;
  username: string;
  /** The reason why a signed-in user is asked again; null: not signed in. */
  again: 'tooOld' | 'tooWeak' | null;
  problem:
    | { kind: 'refused'; provider: string | null }
    | { kind: 'passkeyRefused' }
    | { kind: 'wait'; seconds: number }
    | null;
  /** URL for a forgotten password; null: none. */
  forgotten: string | null;
  /** Password of all people of the demo; null: it is not public, or there is no demo. */
  demoPassword: string | null;
  /** Options of WebAuthn for a sign-in with a passkey alone, as JSON. */
  passkeyOptions: string;
  formTargets: readonly string[];
}

const AGAIN = {
  tooOld: 'You signed in too long ago for this. Confirm that it is you.',
  tooWeak: 'You are signed in with one factor, and this needs two. Confirm that it is you.',
};

/** The same for every name of a domain, so that it does not reveal which exist. */
function refusedText({ username, problem: refused }: SignInView): string {
  const text = 'Username and password do not match. Check both and try again.';
  if (refused?.kind !== 'refused' || refused.provider === null) return text;
  return `${text} To sign in with ${refused.provider}, leave the password of ${username.slice(0, 100)} empty.`;
}

export function signIn(view: SignInView): Page {
  const refused = view.problem?.kind === 'refused';
  const wait = view.problem?.kind === 'wait' ? view.problem.seconds : 0;
  const passkeyRefused = view.problem?.kind === 'passkeyRefused';
  const alert = refused
    ? problem('You are not signed in', refusedText(view))
    : passkeyRefused
      ? problem('You are not signed in', 'The passkey was not accepted. Try again, or use your password.')
      : wait > 0
        ? problem('Too many attempts', waitText(wait))
        : '';
  const invalid = refused ? ' aria-invalid="true"' : '';
  return {
    title: view.problem ? 'Problem: sign in' : 'Sign in',
    status: wait > 0 ? 429 : refused || passkeyRefused ? 401 : 200,
    ...(wait > 0 ? { retryAfterSeconds: wait } : {}),
    formTargets: view.formTargets,
    passkeys: true,
    body: `${alert}<h1>Sign in</h1>
<p class="lead">to continue to <strong>${escapeHtml(view.clientName)}</strong></p>
${view.again ? `<p>${AGAIN[view.again]}</p>` : ''}
<form method="post" action="${escapeHtml(view.action)}">
${hiddenInput('csrf', view.csrf)}
<div class="field"><label for="username">Username</label>
<input id="username" name="username" type="text" autocomplete="username webauthn" autocapitalize="none" spellcheck="false"
required maxlength="320"${invalid} value="${escapeHtml(view.username)}"${view.username ? '' : ' autofocus'}></div>
<div class="field"><label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password"
maxlength="800" aria-describedby="password-hint"${invalid}${view.username ? ' autofocus' : ''}>
<p class="hint" id="password-hint">${
      view.demoPassword === null
        ? 'Leave it empty if your company signs you in.'
        : `People of the demo have the password <code>${escapeHtml(view.demoPassword)}</code>.`
    }</p></div>
<button type="submit" name="decision" value="signIn">Sign in</button>
<button type="submit" class="quiet" name="decision" value="cancel" formnovalidate>Cancel</button>
</form>
${view.forgotten ? `<p class="hint spaced"><a href="${escapeHtml(view.forgotten)}">Forgotten your password?</a></p>\n` : ''}<p class="or" data-with-passkeys hidden>or</p>
${passkeyForm({ action: view.action, csrf: view.csrf, use: 'autofill', options: view.passkeyOptions, decision: 'passkey', button: 'Sign in with a passkey', quiet: true })}`,
  };
}

const DEVICE_PROBLEMS: Record<string, string> = {
  NoCodeError: 'Type the code that your device shows.',
  NotFoundError: 'This code is not known. Compare it with the one on your device.',
  ExpiredError: 'This code has expired. Ask your device for a new one.',
  AlreadyUsedError: 'This code was used already. Ask your device for a new one.',
  AbortedError: 'The sign-in was stopped. Your device gets no access.',
};

export function deviceCode(csrf: string, userCode: string, errorName?: string): Page {
  const text = errorName ? (DEVICE_PROBLEMS[errorName] ?? 'Something went wrong. Type the code again.') : null;
  return {
    title: text ? 'Problem: connect a device' : 'Connect a device',
    status: 200,
    body: `${text ? problem('The device is not connected', text) : ''}<h1>Connect a device</h1>
<p class="lead">Your device or command line shows a code of eight letters.</p>
<form method="post" action="/device">
${hiddenInput('xsrf', csrf)}
<div class="field"><label for="user_code">Code</label>
<input id="user_code" name="user_code" class="code" type="text" value="${escapeHtml(userCode)}"
autocomplete="off" autocapitalize="characters" spellcheck="false" required maxlength="20"
aria-describedby="code-hint"${text ? ' aria-invalid="true"' : ''} autofocus>
<p class="hint" id="code-hint">Upper or lower case and the hyphen do not matter.</p></div>
<button type="submit">Continue</button>
</form>`,
  };
}

export function deviceConfirm(csrf: string, userCode: string, clientName: string): Page {
  return {
    title: 'Is this your device?',
    status: 200,
    body: `<h1>Is this your device?</h1>
<p class="lead"><strong>${escapeHtml(clientName)}</strong> must show exactly this code.
If somebody else sent it to you, stop here.</p>
<p class="usercode">${escapeHtml(userCode)}</p>
<form method="post" action="/device">
${hiddenInput('xsrf', csrf)}${hiddenInput('user_code', userCode)}${hiddenInput('confirm', 'yes')}
<button type="submit">Yes, continue</button>
<button type="submit" class="quiet" name="abort" value="yes">No, stop</button>
</form>`,
  };
}

export const deviceDone = (clientName: string): Page => ({
  title: 'Your device is connected',
  status: 200,
  body: `<h1 class="done">Your device is connected</h1>
<p>You can close this page and go on with <strong>${escapeHtml(clientName)}</strong>.</p>`,
});

export const signOut = (csrf: string): Page => ({
  title: 'Sign out?',
  status: 200,
  body: `<h1>Sign out?</h1>
<p class="lead">You leave every application that you opened in this browser.</p>
<form method="post" action="/oauth2/logout/confirm">
${hiddenInput('xsrf', csrf)}
<button type="submit" name="logout" value="yes">Sign out</button>
<button type="submit" class="quiet">Stay signed in</button>
</form>`,
});

export const signedOut = (): Page => ({
  title: 'You are signed out',
  status: 200,
  body: '<h1 class="done">You are signed out</h1>\n<p>You can close this page.</p>',
});

export function setPassword(view: {
  action: string;
  /** Comes back with the form. */
  formToken: string;
  username: string;
  problem: string | null;
  minChars: number;
}): Page {
  return {
    title: view.problem ? 'Problem: choose a password' : 'Choose a password',
    status: view.problem ? 422 : 200,
    body: `${view.problem ? problem('The password is not set', view.problem) : ''}<h1>Choose a password</h1>
<p class="lead">for <strong>${escapeHtml(view.username)}</strong></p>
<form method="post" action="${escapeHtml(view.action)}">
<input type="hidden" name="form" value="${escapeHtml(view.formToken)}">
<input type="hidden" name="username" autocomplete="username" value="${escapeHtml(view.username)}">
<div class="field"><label for="password">New password</label>
<input id="password" name="password" type="password" autocomplete="new-password" required
minlength="${view.minChars}" maxlength="800"
aria-describedby="password-hint"${view.problem ? ' aria-invalid="true"' : ''} autofocus>
<p class="hint" id="password-hint">At least ${view.minChars} characters.
A few words in a row are easy to keep in mind.</p></div>
<div class="field"><label for="repeated">New password, once more</label>
<input id="repeated" name="repeated" type="password" autocomplete="new-password" required
maxlength="800"${view.problem ? ' aria-invalid="true"' : ''}></div>
<button type="submit">Set password</button>
</form>`,
  };
}

export const passwordSet = (username: string): Page => ({
  title: 'Your password is set',
  status: 200,
  body: `<h1 class="done">Your password is set</h1>
<p>Sign in as <strong>${escapeHtml(username)}</strong>: in your application, to <a href="/dashboards">your dashboards</a>
or to <a href="/account">your account</a>. This link is used up.</p>`,
});

export const linkSpent = (): Page => ({
  title: 'This link is not valid any more',
  status: 410,
  body: `<h1>This link is not valid any more</h1>
<p>It was used already, it has expired, or access has changed since it was made.
<a href="/password/forgotten">Ask for another mail</a>, or your administrator for a new link.</p>`,
});

/** For users of a tenant that the operator has suspended. */
export const suspended = (): Page => ({
  title: 'Access is suspended',
  status: 403,
  body: `<div role="alert"><h1>Access is suspended</h1>
<p>The operator of this platform has suspended your company. Nothing is lost; your administrator can ask the operator why.</p></div>
<p><a href="/">Start page</a></p>`,
});

/** Too many unknown codes were typed in this network. */
export const tooManyCodes = (seconds: number): Page => ({
  title: 'Problem: connect a device',
  status: 429,
  retryAfterSeconds: seconds,
  body: `${problem('Too many attempts', waitText(seconds))}
<h1>Connect a device</h1>
<p class="lead"><a href="/device">Type the code again</a></p>`,
});

const FAILURES: Record<string, string> = {
  invalid_client: 'The application that sent you here is not known, or it is switched off.',
  invalid_redirect_uri: 'The application asked to return to an address that is not registered for it.',
  access_denied: 'Access was not granted.',
  temporarily_unavailable: 'Sign-in is not available at this moment. Try again in a few seconds.',
  server_error: 'Something went wrong on our side. Try again in a few seconds.',
};

/** Texts of failures for the pages that show them. */
export interface Failure {
  code: string;
  description: string | null;
  status?: number;
  /** By which the log finds the request; null: not known. */
  requestId: string | null;
}

export const unavailable = (requestId: string | null): Page => ({
  ...failure({ code: 'temporarily_unavailable', description: null, status: 503, requestId }),
  retryAfterSeconds: RETRY_AFTER_SECONDS,
});

/** By status, where it says more than the code. */
const TITLES: ReadonlyMap<number, string> = new Map(
  Object.entries(ERROR_TITLES).map(([status, title]) => [Number(status), title]),
);

const ADVICE: ReadonlyMap<number, string> = new Map([
  [404, 'The address may be mistyped, or the link may be an old one.'],
  [405, 'Open the address of the page without sending anything to it.'],
]);

/** An error that cannot be sent to the client: a sentence for the person, code and description for the developer. */
export function failure({ code, description, status = 400, requestId }: Failure): Page {
  const title = TITLES.get(status) ?? 'This did not work';
  const advice = FAILURES[code] ?? ADVICE.get(status) ?? 'Go back to your application and start again.';
  const request = requestId === null ? '' : ` Request <code>${escapeHtml(requestId)}</code>.`;
  return {
    title,
    status,
    body: `<div role="alert"><h1>${title}</h1>
<p>${escapeHtml(advice)}</p></div>
<p><a href="/">Start page</a></p>
<p class="hint">For the developer of the application:
<code>${escapeHtml(code)}</code>${description ? ` – ${escapeHtml(description)}` : ''}.${request}</p>`,
  };
}
