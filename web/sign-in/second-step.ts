/** The pages after the first factor: proving the second factor, setting one up, and its recovery codes. */
import { escapeHtml } from '../../lib/values/html.ts';
import type { Page } from './layout.ts';
import { codeField, hiddenInput, passkeyForm, passkeysNeedMore, problem, waitText } from './parts.ts';

export interface StepView {
  action: string;
  csrf: string;
  username: string;
  formTargets: readonly string[];
}

/** The kind of factor answered with. */
export type StepAnswer = 'code' | 'recovery' | 'passkey';

export type StepProblem =
  | ({ by: StepAnswer } & ({ kind: 'refused'; text: string } | { kind: 'wait'; seconds: number }))
  | null;

const isRefused = (given: StepProblem, by: StepAnswer): boolean => given?.kind === 'refused' && given.by === by;

const alertFor = (title: string, given: StepProblem): string =>
  given?.kind === 'wait'
    ? problem('Too many attempts', waitText(given.seconds))
    : given
      ? problem(title, given.text)
      : '';

const statusOf = (given: StepProblem): Pick<Page, 'status' | 'retryAfterSeconds'> =>
  given?.kind === 'wait' ? { status: 429, retryAfterSeconds: given.seconds } : { status: given ? 401 : 200 };

const startAgain = ({ action, csrf }: StepView): string => `<form method="post" action="${escapeHtml(action)}">
${hiddenInput('csrf', csrf)}<button type="submit" class="quiet" name="decision" value="restart">Start again</button>
</form>`;

export interface SecondStepView extends StepView {
  authenticator: boolean;
  recoveryCodes: boolean;
  /** null: the person has no passkey. */
  passkeyOptions: string | null;
  problem: StepProblem;
}

/** Asks for the user's second factor. */
export function secondStep(view: SecondStepView): Page {
  const { action, csrf } = view;
  const opening = `<form method="post" action="${escapeHtml(action)}">${hiddenInput('csrf', csrf)}`;
  const byRecovery = view.problem?.by === 'recovery';
  const app = `${opening}
${codeField({ invalid: isRefused(view.problem, 'code'), focus: !byRecovery })}
<button type="submit" name="decision" value="code">Continue</button>
</form>`;
  const passkey = view.passkeyOptions
    ? `${view.authenticator ? '<p class="or" data-with-passkeys hidden>or</p>' : ''}
${passkeyForm({ action, csrf, use: 'get', options: view.passkeyOptions, decision: 'passkey', button: 'Use a passkey', quiet: view.authenticator })}
${view.authenticator ? '' : passkeysNeedMore}`
    : '';
  const recovery = `<details${byRecovery || !(view.authenticator || view.passkeyOptions) ? ' open' : ''}>
<summary>Use a recovery code</summary>
${opening}
<div class="field"><label for="recovery">Recovery code</label>
<input id="recovery" name="recovery" type="text" autocomplete="off" autocapitalize="characters" spellcheck="false"
required maxlength="40" aria-describedby="recovery-hint"${isRefused(view.problem, 'recovery') ? ' aria-invalid="true"' : ''}${byRecovery ? ' autofocus' : ''}>
<p class="hint" id="recovery-hint">One of the codes that you kept. Each works once.</p></div>
<button type="submit" class="quiet" name="decision" value="recovery">Continue with this code</button>
</form>
</details>`;
  return {
    title: view.problem ? 'Problem: confirm it is you' : 'Confirm it is you',
    ...statusOf(view.problem),
    formTargets: view.formTargets,
    passkeys: view.passkeyOptions !== null,
    body: `${alertFor('You are not signed in yet', view.problem)}<h1>Confirm it is you</h1>
<p class="lead">The second step for <strong>${escapeHtml(view.username)}</strong></p>
${view.authenticator ? app : ''}${passkey}${view.recoveryCodes ? recovery : ''}
${startAgain(view)}`,
  };
}

export interface SetUpView extends StepView {
  /** null: the person cannot have another passkey. */
  passkeyOptions: string | null;
  /** The authenticator app to be. */
  setup: { sealed: string; secret: string; qrCode: string };
  problem: StepProblem;
  /** Set up by choice, on the account page. */
  optional?: boolean;
}

/** The form with which an authenticator app is set up. */
export const setUpApp = (view: Pick<SetUpView, 'action' | 'csrf' | 'setup' | 'problem'>, decision: string): string =>
  `<p>Scan this with an authenticator app, then type the code that it shows.</p>
<div class="qr" role="img" aria-label="QR code for your authenticator app">${view.setup.qrCode}</div>
<details><summary>Type the key instead</summary><p class="secret">${escapeHtml(view.setup.secret)}</p></details>
<form method="post" class="spaced" action="${escapeHtml(view.action)}">
${hiddenInput('csrf', view.csrf)}${hiddenInput('setup', view.setup.sealed)}
${codeField({ invalid: isRefused(view.problem, 'code'), focus: true })}
<button type="submit" name="decision" value="${decision}">Turn on the app</button>
</form>`;

/** Asks the user to set up the second factor that the tenant, or the application, requires. */
export function setUp(view: SetUpView): Page {
  const { action, csrf } = view;
  const passkey = view.passkeyOptions
    ? `${passkeyForm({ action, csrf, use: 'create', options: view.passkeyOptions, decision: 'addPasskey', button: 'Create a passkey' })}
<p class="hint" data-with-passkeys hidden>Fingerprint, face or PIN of this device, or a security key.
Next time it signs you in without a password.</p>
<p class="or" data-with-passkeys hidden>or use an app</p>`
    : '';
  return {
    title: view.problem ? 'Problem: protect your account' : 'Protect your account',
    ...statusOf(view.problem),
    formTargets: view.formTargets,
    passkeys: view.passkeyOptions !== null,
    body: `${alertFor('The second step is not set up', view.problem)}<h1>Protect your account</h1>
<p class="lead">A second step is required for <strong>${escapeHtml(view.username)}</strong>.</p>
${passkey}
${setUpApp(view, 'addApp')}
${startAgain(view)}`,
  };
}

/** Shows recovery codes, this once. */
export const recoveryCodes = (view: StepView & { codes: readonly string[] }): Page => ({
  title: 'Keep your recovery codes',
  status: 200,
  formTargets: view.formTargets,
  body: `<h1>Keep your recovery codes</h1>
<p class="lead">Each of them signs you in once if you lose your passkey or app.
They are shown only now: print them, or put them into a password manager.</p>
<ul class="codes">
${view.codes.map((code) => `<li>${escapeHtml(code)}</li>`).join('\n')}
</ul>
<form method="post" action="${escapeHtml(view.action)}">
${hiddenInput('csrf', view.csrf)}
<button type="submit" name="decision" value="finish">I have kept them, continue</button>
</form>`,
});

/** For a user who returns to a sign-in whose second factor was just set up. */
export const secondFactorReady = (view: StepView): Page => ({
  title: 'The second step is set up',
  status: 200,
  formTargets: view.formTargets,
  body: `<h1 class="done">The second step is set up</h1>
<form method="post" action="${escapeHtml(view.action)}">
${hiddenInput('csrf', view.csrf)}
<button type="submit" name="decision" value="finish">Continue</button>
</form>`,
});
