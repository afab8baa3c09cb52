/** The account page: passkeys, authenticator app, recovery codes, connections, the link to the calendar, sessions. */
import { APP_CLIENTS } from '../../contracts/auth.ts';
import { escapeHtml } from '../../lib/values/html.ts';
import { scopeList } from '../consent/scope-texts.ts';
import type { Page } from '../sign-in/layout.ts';
import { hiddenInput, passkeyForm, passkeysNeedMore, problem } from '../sign-in/parts.ts';
import { setUpApp } from '../sign-in/second-step.ts';

export interface AccountView {
  action: string;
  csrf: string;
  username: string;
  /** The company in which the person acts. */
  tenantName: string;
  /** IANA name of its time zone. */
  timezone: string;
  /** The sign-in is recent enough for changes. */
  recent: boolean;
  passkeysMax: number;
  passkeys: readonly {
    id: string;
    name: string;
    backedUp: boolean;
    createdAt: string;
    lastUsedAt: string | null;
  }[];
  authenticator: boolean;
  recoveryCodes: number;
  /** Applications that act in the person's name, newest first. */
  connections: readonly {
    connectionId: string;
    clientId: string;
    clientName: string;
    scopes: readonly string[];
    createdAt: string;
    lastUsedAt: string | null;
    agent: boolean;
  }[];
  /** There are older ones than those shown. */
  moreConnections: boolean;
  /** When the link to the calendar was created; null: there is none. */
  calendarLinkAt: string | null;
  /** Options for another passkey; null: there can be none, or the sign-in is not recent. */
  passkeyOptions: string | null;
  /** The action just done. */
  done: string | null;
  problem: string | null;
}

const DONE: ReadonlyMap<string, string> = new Map([
  ['passkeyAdded', 'The passkey is added.'],
  ['passkeyRenamed', 'The passkey is renamed.'],
  ['passkeyRemoved', 'The passkey is removed here. Delete it on your device as well.'],
  ['authenticatorAdded', 'The authenticator app is set up.'],
  ['authenticatorRemoved', 'The authenticator app is removed.'],
  ['connectionRevoked', 'The connection has ended. The application has to ask you again.'],
  ['calendarLinkRevoked', 'The calendar link is revoked. Programs that have it see nothing any more.'],
  ['applicationRevoked', 'The connections of the application have ended. It has to ask you again.'],
]);

/** A form of one button. */
const button = (view: AccountView, decision: string, label: string, fields = ''): string =>
  `<form method="post" action="${escapeHtml(view.action)}">${hiddenInput('csrf', view.csrf)}${fields}
<button type="submit" class="quiet" name="decision" value="${decision}">${escapeHtml(label)}</button></form>`;

const day = (at: string): string => {
  const date = new Date(at);
  return Number.isNaN(date.getTime())
    ? ''
    : `<time datetime="${date.toISOString()}">${date.toLocaleDateString('en-GB', { dateStyle: 'medium', timeZone: 'UTC' })}</time>`;
};

function listed(view: AccountView, passkey: AccountView['passkeys'][number], index: number): string {
  const { id, name, backedUp, createdAt, lastUsedAt } = passkey;
  const field = `name-${index}`;
  const changes = `<details><summary>Rename or remove<span class="visually-hidden"> ${escapeHtml(name)}</span></summary>
<form method="post" action="${escapeHtml(view.action)}">${hiddenInput('csrf', view.csrf)}${hiddenInput('id', id)}
<div class="field"><label for="${field}">Name</label>
<input id="${field}" name="name" type="text" maxlength="60" required value="${escapeHtml(name)}"></div>
<button type="submit" class="quiet" name="decision" value="renamePasskey">Rename</button>
<button type="submit" class="quiet" name="decision" value="removePasskey" formnovalidate>Remove</button></form>
</details>`;
  return `<li><b>${escapeHtml(name)}</b>
<p class="hint">Added ${day(createdAt)} · ${lastUsedAt ? `last used ${day(lastUsedAt)}` : 'not used yet'} ·
${backedUp ? 'synced between your devices' : 'on one device'}</p>
${view.recent ? changes : ''}</li>`;
}

function passkeys(view: AccountView): string {
  const list = view.passkeys.map((passkey, index) => listed(view, passkey, index)).join('\n');
  const fields = `<div class="field"><label for="name">Name, such as the device</label>
<input id="name" name="name" type="text" maxlength="60" autocomplete="off"></div>
`;
  const add = view.passkeyOptions
    ? passkeyForm({
        action: view.action,
        csrf: view.csrf,
        use: 'create',
        options: view.passkeyOptions,
        decision: 'addPasskey',
        button: 'Add a passkey',
        fields,
      })
    : '';
  const full =
    view.passkeys.length >= view.passkeysMax
      ? `<p class="hint">You have ${view.passkeys.length} passkeys, and there can be no more: remove one to add another.</p>`
      : '';
  return `<section aria-labelledby="passkeys"><h2 id="passkeys">Passkeys</h2>
<p class="hint"${add ? ' data-with-passkeys hidden' : ''}>Sign in with fingerprint, face or PIN, without a password.</p>
${list ? `<ul class="keys">${list}</ul>` : ''}${add ? add + passkeysNeedMore : full}</section>`;
}

const app = (view: AccountView): string => `<section aria-labelledby="app"><h2 id="app">Authenticator app</h2>
<p class="hint">${view.authenticator ? 'Set up. It is asked for after your password.' : 'Not set up.'}</p>
${
  view.recent
    ? button(view, 'startApp', view.authenticator ? 'Change to another app' : 'Set up an app') +
      (view.authenticator ? button(view, 'removeApp', 'Remove the app') : '')
    : ''
}</section>`;

const codes = (view: AccountView): string =>
  view.passkeys.length > 0 || view.authenticator
    ? `<section aria-labelledby="codes"><h2 id="codes">Recovery codes</h2>
<p class="hint">${view.recoveryCodes} left. Each signs you in once without your passkey or app.</p>
${view.recent ? button(view, 'newCodes', 'Make new codes') : ''}</section>`
    : '';

type Connection = AccountView['connections'][number];

/** Of several connections that were allowed on one day it is the time that says which is which. */
const moment = ({ timezone: timeZone }: AccountView, at: string): string => {
  const date = new Date(at);
  const text = date.toLocaleString('en-GB', {
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    timeZone,
    timeZoneName: 'short',
  });
  return `<time datetime="${date.toISOString()}">${escapeHtml(text)}</time>`;
};

/** One connection of an application; `which` tells it from the others of the same one. */
function connection(view: AccountView, one: Connection, which: string): string {
  const list = scopeList(one.scopes, { readsOnly: false, id: `may-${one.connectionId}`, heading: 'h4' });
  const end = `<form method="post" action="${escapeHtml(view.action)}">${hiddenInput('csrf', view.csrf)}
${hiddenInput('connection', one.connectionId)}
<button type="submit" class="quiet" name="decision" value="revokeConnection">Revoke<span class="visually-hidden">
the connection of ${which}</span></button></form>`;
  const reach = list.farReaching > 0 ? `, ${list.farReaching} far-reaching` : '';
  const lastUse = one.lastUsedAt ? `last used ${moment(view, one.lastUsedAt)}` : 'not used yet';
  return `<p class="hint">Allowed ${moment(view, one.createdAt)} · ${lastUse}</p>
<details><summary>What it may do (${list.count}${reach})<span class="visually-hidden">: ${which}</span></summary>
${list.html}</details>
${view.recent ? end : ''}`;
}

/** An application with all of its connections, of which there is one for each computer or browser that was allowed. */
function application(view: AccountView, [first, ...others]: readonly [Connection, ...Connection[]]): string {
  const name = escapeHtml(first.clientName);
  const all = [first, ...others].map((one, index) =>
    connection(view, one, others.length > 0 ? `${name}, number ${index + 1}` : name),
  );
  const end = button(view, 'revokeApplication', `Revoke all ${all.length}`, hiddenInput('client', first.clientId));
  const parts =
    others.length > 0
      ? `<ul class="keys">${all.map((one) => `<li>${one}</li>`).join('\n')}</ul>${view.recent ? end : ''}`
      : all[0];
  return `<li><h3>${name}${others.length > 0 ? ` <span class="count">${all.length}</span>` : ''}</h3>
${first.agent ? '<p class="hint">AI agent: it decides by itself what to do next.</p>' : ''}
${parts}</li>`;
}

function connections(view: AccountView): string {
  const byApplication = Map.groupBy(view.connections, ({ clientId }) => clientId);
  const list = [...byApplication.values()]
    .flatMap(([first, ...others]) => (first ? application(view, [first, ...others]) : []))
    .join('\n');
  const more = view.moreConnections ? `<p class="hint">The ${view.connections.length} newest ones are shown.</p>` : '';
  return `<section aria-labelledby="connections"><h2 id="connections">Connections</h2>
<p class="hint">${list ? 'Applications that act in your name. One that is revoked stops at once.' : 'No application acts in your name.'}</p>
${list ? `<ul class="keys">${list}</ul>` : ''}${more}</section>`;
}

const calendar = (view: AccountView): string => {
  const { calendarLinkAt: at } = view;
  const buttons =
    button(view, 'createCalendarLink', at === null ? 'Create a link' : 'Replace the link') +
    (at === null ? '' : button(view, 'revokeCalendarLink', 'Revoke the link'));
  return `<section aria-labelledby="calendar"><h2 id="calendar">Calendar link</h2>
<p class="hint">${
    at === null
      ? 'With a secret link other calendar programs show your calendar, without a sign-in.'
      : `Created ${day(at)}. Whoever has the link sees your calendar.`
  }</p>
${view.recent ? buttons : ''}</section>`;
};

const sessions = (view: AccountView): string => `<section aria-labelledby="sessions"><h2 id="sessions">Sessions</h2>
<p class="hint">Sign out everywhere ends your sign-in in every browser, every connection and the calendar link above.</p>
${
  view.recent
    ? button(view, 'endSessions', 'Sign out everywhere')
    : '<p class="hint">Confirm at the top that it is you, and the button is here.</p>'
}
<p class="spaced"><a href="/oauth2/logout">Sign out of this browser</a>${APP_CLIENTS.map(
  ({ path, title }) => ` · <a href="${path}">Your ${title.toLowerCase()}</a>`,
).join('')}</p></section>`;

export function account(view: AccountView): Page {
  const done = view.done && DONE.get(view.done);
  const notice = done ? `<div class="notice" role="status"><p>${escapeHtml(done)}</p></div>` : '';
  const confirm = `<form method="get" action="${escapeHtml(view.action)}">
<p class="hint">To make changes, confirm that it is you.</p>
<button type="submit" class="quiet" name="confirm" value="yes">Confirm it is me</button></form>`;
  return {
    title: view.problem ? 'Problem: your account' : 'Your account',
    status: view.problem ? 422 : 200,
    passkeys: view.passkeyOptions !== null,
    body: `${view.problem ? problem('Nothing was changed', view.problem) : notice}<h1>Your account</h1>
<p class="lead"><strong>${escapeHtml(view.username)}</strong> in <strong>${escapeHtml(view.tenantName)}</strong>.
<a href="/oauth2/logout">Not you?<span class="visually-hidden"> Sign out</span></a></p>
${view.recent ? '' : confirm}
${passkeys(view)}
${app(view)}
${codes(view)}
${connections(view)}
${calendar(view)}
${sessions(view)}`,
  };
}

export interface SetUpAppView {
  action: string;
  csrf: string;
  username: string;
  setup: { sealed: string; secret: string; qrCode: string };
  problem: string | null;
}

export function setUpAppPage({ action, csrf, username, setup, problem: text }: SetUpAppView): Page {
  const refused = text === null ? null : { kind: 'refused' as const, by: 'code' as const, text };
  return {
    title: text ? 'Problem: set up an app' : 'Set up an app',
    status: text ? 422 : 200,
    body: `${text ? problem('The app is not set up', text) : ''}<h1>Set up an app</h1>
<p class="lead">for <strong>${escapeHtml(username)}</strong></p>
${setUpApp({ action, csrf, setup, problem: refused }, 'addApp')}
<p class="spaced"><a href="${escapeHtml(action)}">Back to your account</a></p>`,
  };
}

/** Shows a new link, this once. */
export const calendarLink = ({ action, url }: { action: string; url: string }): Page => ({
  title: 'Your calendar link',
  status: 200,
  copies: true,
  body: `<h1>Your calendar link</h1>
<p class="lead">Add it to a calendar program as a calendar from the internet, or by its URL. It is shown only now.</p>
<div class="field"><label for="link">Link</label>
<input id="link" type="text" readonly value="${escapeHtml(url)}" aria-describedby="link-hint">
<p class="hint" id="link-hint">Whoever has it sees your calendar, so give it to your programs alone. A new link ends the one before.</p></div>
<button type="button" data-copy="link" hidden>Copy the link</button>
<p class="hint" role="status"></p>
<p class="spaced"><a href="${escapeHtml(action)}">Back to your account</a></p>`,
});

export const sessionsEnded = (address: string): Page => ({
  title: 'You are signed out everywhere',
  status: 200,
  body: `<h1 class="done">You are signed out everywhere</h1>
<p>Every browser and application has to sign in again.</p>
<p><a href="${escapeHtml(address)}">Sign in again</a></p>`,
});
