/**
 * Signs a user in as a browser without JavaScript would: follows redirects, keeps cookies, fills in the forms it is
 * shown, until the server sends it back to the client with a code (RFC 6749 section 4.1, RFC 7636).
 */
import { createHash, randomBytes } from 'node:crypto';

const CLIENT_ID = 'erp-cli';
/** Nobody listens here: the flow ends when the server sends us to it. */
const REDIRECT_URI = 'http://127.0.0.1:8976/callback';
const STEPS_MAX = 15;

/** Signing in was refused or led nowhere; the message is what the server said. */
export class SignInFailure extends Error {}

export interface SignIn {
  baseUrl: string;
  user: string;
  password: string;
  /** Space-separated; default: everything the server offers. */
  scope?: string | undefined;
  /** Default: erp-cli. */
  clientId?: string;
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
const decode = (text: string): string => text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => entities[name]!);
const attributes = (tag: string): Record<string, string> =>
  Object.fromEntries([...tag.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, name, value]) => [name!, decode(value!)]));

/** What a page says, for a person who reads an error. */
const readable = (html: string): string =>
  decode((/role="alert">([\s\S]*?)<\/div>/.exec(html) ?? /<main>([\s\S]*?)<\/main>/.exec(html))?.[1] ?? html)
    .replace(/<\/h[12]>/g, ': ')
    .replace(/<[^>]+>/g, ' ')
    .replace(/\s+/g, ' ')
    .replace(/ :/g, ':')
    .trim()
    .slice(0, 300);

/** The form of a page, filled in and sent by its first button. */
function fill(html: string, page: URL, answers: Record<string, string>): { url: URL; form: URLSearchParams } {
  const [, opening, content] = /<form\b([^>]*)>([\s\S]*?)<\/form>/.exec(html) ?? [];
  if (opening === undefined || content === undefined) throw new SignInFailure(readable(html));
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
export async function signIn({ baseUrl, user, password, scope, clientId = CLIENT_ID }: SignIn): Promise<Tokens> {
  const discovery = await fetch(`${baseUrl}/.well-known/oauth-authorization-server`).catch((cause: unknown) => {
    throw new SignInFailure(`Nobody answers at ${baseUrl}. Is the platform running?`, { cause });
  });
  if (!discovery.ok)
    throw new SignInFailure(`${baseUrl} does not answer as an authorization server (${discovery.status}).`);
  const server = (await discovery.json()) as ServerMetadata;
  // The server may know itself by another name than the one we reach it by.
  const at = (address: string): URL => new URL(new URL(address).pathname, baseUrl);

  const verifier = randomBytes(32).toString('base64url');
  const state = randomBytes(16).toString('base64url');
  let url = at(server.authorization_endpoint);
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: REDIRECT_URI,
    scope: scope ?? server.scopes_supported.filter((name) => name !== 'openid').join(' '),
    state,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  }).toString();

  const cookies = new Map<string, string>();
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
    if (location?.startsWith(REDIRECT_URI)) {
      const answer = new URL(location).searchParams;
      const code = answer.get('code');
      if (!code || answer.get('state') !== state)
        throw new SignInFailure(
          answer.get('error_description') ?? answer.get('error') ?? 'The answer is not to our request.',
        );
      return exchange(at(server.token_endpoint), clientId, code, verifier);
    }
    if (location) {
      url = new URL(location, url);
      form = null;
    } else if (!response.ok) {
      throw new SignInFailure(readable(html));
    } else {
      ({ url, form } = fill(html, url, { username: user, password }));
    }
  }
  throw new SignInFailure('The sign-in does not come to an end.');
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
