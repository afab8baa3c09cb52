/**
 * A person at a browser without JavaScript: follows redirects, keeps cookies, fills in the forms it is shown, until the
 * authorization server sends it back to the client with a code (RFC 6749 section 4.1, RFC 7636).
 */
import { createHash, randomBytes } from 'node:crypto';

export interface SignIn {
  baseUrl: string;
  username: string;
  password: string;
  clientId?: string;
  /** Space-separated; default: everything the client may ask for. */
  scope?: string;
}

export interface Tokens {
  access_token: string;
  refresh_token?: string;
  expires_in: number;
  scope: string;
  token_type: string;
}

const REDIRECT = 'http://127.0.0.1:53682/callback';

const attribute = (tag: string, name: string): string | undefined => {
  const found = new RegExp(`\\b${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s>]+))`, 'i').exec(tag);
  const text = found?.[1] ?? found?.[2] ?? found?.[3];
  return text
    ?.replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&#x27;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');
};

/** The first form of a page with its fields as a browser would send them. */
function fillIn(html: string, page: URL, person: SignIn): { url: URL; body: URLSearchParams } {
  const form = /<form\b[^>]*>([\s\S]*?)<\/form>/i.exec(html);
  if (!form) throw new Error(`${page.pathname} shows no form: ${html.replace(/<[^>]+>/g, ' ').slice(0, 300)}`);
  const body = new URLSearchParams();
  for (const [tag] of form[1]!.matchAll(/<input\b[^>]*>/gi)) {
    const name = attribute(tag, 'name');
    const type = (attribute(tag, 'type') ?? 'text').toLowerCase();
    if (!name) continue;
    if (type === 'password') body.append(name, person.password);
    else if (type === 'text' || type === 'email') body.append(name, person.username);
    else if (type === 'hidden') body.append(name, attribute(tag, 'value') ?? '');
    else if (type === 'checkbox' && /\bchecked\b/i.test(tag)) body.append(name, attribute(tag, 'value') ?? 'on');
  }
  const button = /<button\b[^>]*>/i.exec(form[1]!)?.[0];
  const name = button && attribute(button, 'name');
  if (name) body.append(name, attribute(button, 'value') ?? '');
  const action = attribute(/<form\b[^>]*>/i.exec(form[0])![0], 'action');
  return { url: new URL(action || page.href, page), body };
}

/** Walks the authorization-code flow with PKCE and returns the token endpoint's answer. */
export async function signIn(person: SignIn): Promise<Tokens> {
  const clientId = person.clientId ?? 'erp-cli';
  const discovery = await fetch(`${person.baseUrl}/.well-known/oauth-authorization-server`);
  if (!discovery.ok) throw new Error(`No authorization server at ${person.baseUrl}: ${discovery.status}`);
  const server = (await discovery.json()) as {
    authorization_endpoint: string;
    token_endpoint: string;
    scopes_supported: string[];
  };
  const verifier = randomBytes(32).toString('base64url');
  const state = randomBytes(8).toString('base64url');
  let url = new URL(server.authorization_endpoint);
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: REDIRECT,
    scope: person.scope ?? server.scopes_supported.filter((scope) => scope !== 'openid').join(' '),
    state,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...((person.scope ?? 'offline_access').includes('offline_access') ? { prompt: 'consent' } : {}),
  }).toString();

  const cookies = new Map<string, string>();
  let body: URLSearchParams | undefined;
  for (let step = 0; step < 20; step++) {
    const response = await fetch(url, {
      method: body ? 'POST' : 'GET',
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(body ? { body } : {}),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [pair] = cookie.split(';');
      const at = pair!.indexOf('=');
      cookies.set(pair!.slice(0, at), pair!.slice(at + 1));
    }
    const location = response.headers.get('location');
    if (location) {
      await response.body?.cancel();
      const next = new URL(location, url);
      if (next.href.startsWith(REDIRECT)) {
        const code = next.searchParams.get('code');
        if (!code || next.searchParams.get('state') !== state)
          throw new Error(`Signing in ended with ${next.searchParams.get('error_description') ?? next.search}`);
        return exchange(server.token_endpoint, clientId, code, verifier);
      }
      url = next;
      body = undefined;
      continue;
    }
    const html = await response.text();
    if (response.status >= 500) throw new Error(`${url.pathname} answers ${response.status}: ${html.slice(0, 500)}`);
    if (body?.has('password') || (body && response.status >= 400))
      throw new Error(`Signing in as ${person.username} was refused: ${html.replace(/<[^>]+>/g, ' ').slice(0, 500)}`);
    ({ url, body } = fillIn(html, url, person));
  }
  throw new Error('Signing in does not come to an end.');
}

async function exchange(endpoint: string, clientId: string, code: string, verifier: string): Promise<Tokens> {
  const response = await fetch(endpoint, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: clientId,
      code,
      code_verifier: verifier,
      redirect_uri: REDIRECT,
    }),
  });
  if (!response.ok) throw new Error(`The token endpoint answers ${response.status}: ${await response.text()}`);
  return (await response.json()) as Tokens;
}
