/**
 * Signs a user in as a browser without JavaScript would: follows redirects, keeps cookies, fills in the forms it is
 * shown, until the server sends it back to the client with a code (RFC 6749 section 4.1, RFC 7636).
 */
import { createHash, randomBytes } from 'node:crypto';
import { CLI_CLIENT_ID } from '../contracts/auth.ts';
import { membersOf } from '../lib/json/objects.ts';
import { IDENTITY_SCOPES } from '../lib/operation.ts';

/** No server listens here: the flow ends when the authorization server redirects to it. */
const REDIRECT_URI = 'http://127.0.0.1:8976/callback';
const STEPS_MAX = 15;

/** The sign-in was refused or did not complete; the message is the server's. */
export class SignInFailure extends Error {}

export interface SignIn {
  baseUrl: string;
  user: string;
  password: string;
  /** Of the user's authenticator app, where the account has a second factor. */
  code?: string | undefined;
  /** Space-separated; default: everything the server offers. */
  scope?: string | undefined;
  /** Default: erp-cli. */
  clientId?: string;
  /** Resource of the token (RFC 8707); default: the API. */
  resource?: string | undefined;
}

/** Answer of the token endpoint (RFC 6749 section 5.1). */
export interface Tokens {
  access_token: string;
  refresh_token?: string;
  expires_in: number;
  scope: string;
  token_type: string;
}

interface ServerMetadata {
  authorization_endpoint: string;
  token_endpoint: string;
  scopes_supported: string[];
}

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };
const decode = (text: string): string =>
  text.replace(/&(amp|lt|gt|quot|#39);/g, (entity, name: string) => entities[name] ?? entity);
const attributes = (tag: string): Record<string, string> =>
  Object.fromEntries(
    [...tag.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, name = '', value = '']) => [name, decode(value)]),
  );

/** The text of a page, for an error message. */
const readable = (html: string): string =>
  decode((/role="alert">([\s\S]*?)<\/div>/.exec(html) ?? /<main>([\s\S]*?)<\/main>/.exec(html))?.[1] ?? html)
    .replace(/<\/h[12]>/g, ': ')
    .replace(/<[^>]+>/g, ' ')
    .replace(/\s+/g, ' ')
    .replace(/ :/g, ':')
    .trim()
    .slice(0, 300);

/** The form that takes a sign-in on: attributes and content. Only a browser can do what some pages ask for. */
function nextForm(html: string, page: URL, answers: Record<string, string>): [string, string] {
  const forms = [...html.matchAll(/<form\b([^>]*)>([\s\S]*?)<\/form>/g)];
  const deciding = (decision: string) => forms.find(([form]) => form.includes(`name="decision" value="${decision}"`));
  let next = deciding('signIn');
  if (!next && deciding('addApp'))
    throw new SignInFailure(
      `This account needs a second factor and has none yet. Sign in with a browser at ${page.origin}/account, set up an authenticator app, and come back with its code: --code 123456`,
    );
  const byCode = next ? undefined : deciding('code');
  if (byCode && !answers['code'])
    throw new SignInFailure('This account needs a second factor: add a code of its authenticator app, --code 123456');
  if (!next && !byCode && (deciding('passkey') || deciding('recovery')))
    throw new SignInFailure(
      `This account needs a second factor, and its passkey works in a browser alone. Sign in with a browser at ${page.origin}/account, set up an authenticator app besides, and come back with its code: --code 123456`,
    );
  next ??= byCode ?? forms[0];
  const [, opening, content] = next ?? [];
  if (opening === undefined || content === undefined) throw new SignInFailure(readable(html));
  return [opening, content];
}

/** The form of a page, filled in and submitted with its first button. */
function fill(html: string, page: URL, answers: Record<string, string>): { url: URL; form: URLSearchParams } {
  const [opening, content] = nextForm(html, page, answers);
  const form = new URLSearchParams();
  for (const [tag] of content.matchAll(/<input\b[^>]*>/g)) {
    const { name, value } = attributes(tag);
    if (name) form.set(name, answers[name] ?? value ?? '');
  }
  const button = attributes(/<button\b[^>]*>/.exec(content)?.[0] ?? '');
  if (button['name']) form.set(button['name'], button['value'] ?? '');
  return { url: new URL(attributes(opening)['action'] ?? '', page), form };
}

/** Walks the authorization-code flow with PKCE. Throws SignInFailure with what the server said. */
export async function signIn({
  baseUrl,
  user,
  password,
  code: typed,
  scope,
  clientId = CLI_CLIENT_ID,
  resource,
}: SignIn): Promise<Tokens> {
  const server = await discover(baseUrl);
  // The server's own address may differ from the one we reach it at.
  const at = (address: string): URL => new URL(new URL(address).pathname, baseUrl);

  const verifier = randomBytes(32).toString('base64url');
  const state = randomBytes(16).toString('base64url');
  const start = at(server.authorization_endpoint);
  start.search = new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: REDIRECT_URI,
    scope: scope ?? server.scopes_supported.filter((name) => !(name in IDENTITY_SCOPES)).join(' '),
    state,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...(resource === undefined ? {} : { resource }),
  }).toString();

  const answer = await walk(start, { username: user, password, ...(typed ? { code: typed } : {}) });
  const code = answer.get('code');
  if (!code || answer.get('state') !== state)
    throw new SignInFailure(
      answer.get('error_description') ?? answer.get('error') ?? 'The response does not belong to this request.',
    );
  return exchange(at(server.token_endpoint), clientId, code, verifier);
}

async function discover(baseUrl: string): Promise<ServerMetadata> {
  const response = await fetch(`${baseUrl}/.well-known/oauth-authorization-server`).catch((cause: unknown) => {
    throw new SignInFailure(`No server answers at ${baseUrl}. Is the platform running?`, { cause });
  });
  if (!response.ok)
    throw new SignInFailure(`${baseUrl} is not an authorization server: its metadata answered ${response.status}.`);
  const { authorization_endpoint, token_endpoint, scopes_supported } = membersOf(await response.json());
  return {
    authorization_endpoint: String(authorization_endpoint),
    token_endpoint: String(token_endpoint),
    scopes_supported: Array.isArray(scopes_supported) ? scopes_supported.map(String) : [],
  };
}

/** Follows redirects and fills in forms until the server redirects to the client; returns the parameters it sends there. */
export async function walk(start: URL, answers: Record<string, string>): Promise<URLSearchParams> {
  const cookies = new Map<string, string>();
  let url = start;
  let form: URLSearchParams | null = null;
  for (let step = 0; step < STEPS_MAX; step++) {
    const response: Response = await fetch(url, {
      method: form ? 'POST' : 'GET',
      ...(form ? { body: form } : {}),
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '), accept: 'text/html' },
      redirect: 'manual',
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      if (name) cookies.set(name, value ?? '');
    }
    const html = await response.text();
    const location = response.headers.get('location');
    if (location?.startsWith(REDIRECT_URI)) return new URL(location).searchParams;
    if (location) {
      url = new URL(location, url);
      form = null;
    } else if (!response.ok) {
      throw new SignInFailure(readable(html));
    } else {
      ({ url, form } = fill(html, url, answers));
    }
  }
  throw new SignInFailure(`The sign-in did not complete within ${STEPS_MAX} steps.`);
}

async function exchange(endpoint: URL, clientId: string, code: string, verifier: string): Promise<Tokens> {
  const response = await fetch(endpoint, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: clientId,
      redirect_uri: REDIRECT_URI,
      code,
      code_verifier: verifier,
    }),
  });
  const answer = (await response.json()) as Tokens & { error?: string; error_description?: string };
  if (!answer.access_token)
    throw new SignInFailure(answer.error_description ?? answer.error ?? `Status ${response.status}`);
  return answer;
}
