/** The page on which a person allows an application to act for them, or does not. */
import type { TokenResource } from '../../lib/schema/snapshot.ts';
import { escapeHtml } from '../../lib/values/html.ts';
import type { Page } from '../sign-in/layout.ts';
import { hiddenInput } from '../sign-in/parts.ts';
import { scopeList } from './scope-texts.ts';

/** Audiences of tokens in words for people. */
const RESOURCE_NAMES: Readonly<Record<TokenResource, string>> = {
  api: 'the API (<code>/api/v1</code>)',
  mcp: 'the endpoint for assistants (<code>/mcp</code>)',
};

export interface ConsentView {
  action: string;
  csrf: string;
  clientName: string;
  /** The application works by itself. */
  agent: boolean;
  username: string;
  /** The company in which the person acts. */
  tenantName: string;
  /** Audiences of the tokens; none: they only identify the user. */
  resources: readonly TokenResource[];
  scopes: readonly string[];
  /** Host that receives the answer; null on a device, or where an installed application receives it. */
  redirectHost: string | null;
  /** Host by which the client is known; null when its name is enough. */
  publishedAt: string | null;
  /** Another account can take the place of this one; a device has to ask anew. */
  canSwitch: boolean;
  formTargets: readonly string[];
}

const FORM = 'consent';

export function consent(view: ConsentView): Page {
  const name = escapeHtml(view.clientName);
  const { resources } = view;
  const readsOnly = !resources.includes('api');
  const list = scopeList(view.scopes, { readsOnly, id: 'area', heading: 'h2' });
  const notes = [
    resources.length > 0 && readsOnly ? 'It can read and check there, and change nothing.' : '',
    view.publishedAt ? `It is published by <b>${escapeHtml(view.publishedAt)}</b>.` : '',
  ];
  return {
    title: `Allow ${view.clientName}?`,
    status: 200,
    formTargets: view.formTargets,
    body: `<h1>Allow ${name}?</h1>
<p class="who">You are <strong>${escapeHtml(view.username)}</strong> in <strong>${escapeHtml(view.tenantName)}</strong>.
${notYou(view)}</p>
<p>${purpose(view)}</p>
${view.agent ? '<p class="agent"><strong>It is an AI agent</strong>: it decides by itself what to do next.</p>' : ''}
${notes.filter(Boolean).map(hint).join('\n')}
<p class="sum">${sum(list.count, list.farReaching)}</p>
${list.html}
<div class="after">
${view.redirectHost ? hint(`Afterwards you return to <b>${escapeHtml(view.redirectHost)}</b>.`) : ''}
${hint(`You can take this back at any time on the page <a href="/account" target="_blank" rel="noopener">Your account<span class="visually-hidden"> (opens in a new tab)</span></a>: it ends at once.`)}
</div>
<form method="post" id="${FORM}" action="${escapeHtml(view.action)}">
${hiddenInput('csrf', view.csrf)}
<button type="submit" name="decision" value="allow">Allow</button>
<button type="submit" class="quiet" name="decision" value="cancel">Do not allow</button>
</form>`,
  };
}

const hint = (html: string): string => `<p class="hint">${html}</p>`;

const notYou = ({ canSwitch }: ConsentView): string =>
  canSwitch
    ? `<button type="submit" class="link" form="${FORM}" name="decision" value="switch">Not you?
<span class="visually-hidden">Sign in with another account</span></button>`
    : 'Not you? Choose “Do not allow”, and <a href="/oauth2/logout">sign out</a>.';

function purpose({ resources, tenantName }: ConsentView): string {
  if (resources.length === 0)
    return `It wants to know who you are, to sign you in there. It gets no access to the data of ${escapeHtml(tenantName)}.`;
  const where = resources.map((resource) => RESOURCE_NAMES[resource]).join(' and ');
  return `It asks to act for you, within what you may do yourself, through ${where}.`;
}

/** `8 permissions, 3 of them far-reaching:` */
function sum(count: number, farReaching: number): string {
  const all = count === 1 ? '1 permission' : `${count} permissions`;
  if (farReaching === 0) return `${all}:`;
  return `${all}, <strong>${farReaching === count ? 'far-reaching' : `${farReaching} of them far-reaching`}</strong>:`;
}
