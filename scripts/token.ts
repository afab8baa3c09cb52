/**
 * `npm run --silent token -- --user sam@demo.example [--scope "data:read data:write"] [--base-url URL]`: signs a user
 * in through the real authorization-code flow with PKCE (RFC 6749, RFC 7636) as the client `erp-cli`, as a browser
 * without JavaScript would, and prints the access token alone on stdout. Without --scope: all scopes of the client.
 * The password is in DEMO_PASSWORD (default: that of the demo tenants). Problems go to stderr, with exit code 1.
 */
import { createHash, randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';

const CLIENT_ID = 'erp-cli';
/** Nobody listens here: the flow ends when the server sends us to it. */
const REDIRECT_URI = 'http://127.0.0.1:8976/callback';
const STEPS_MAX = 15;

class Failure extends Error {}

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
  decode(/<main>([\s\S]*?)<\/main>/.exec(html)?.[1] ?? html)
    .replace(/<[^>]+>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, 300);

/** The form of a page, filled in and sent by its first button. */
function fill(html: string, page: URL, answers: Record<string, string>): { url: URL; form: URLSearchParams } {
  const [, opening, content] = /<form\b([^>]*)>([\s\S]*?)<\/form>/.exec(html) ?? [];
  if (opening === undefined || content === undefined) throw new Failure(readable(html));
  const form = new URLSearchParams();
  for (const [tag] of content.matchAll(/<input\b[^>]*>/g)) {
    const { name, value } = attributes(tag);
    if (name) form.set(name, answers[name] ?? value ?? '');
  }
  const button = attributes(/<button\b[^>]*>/.exec(content)?.[0] ?? '');
  if (button['name']) form.set(button['name'], button['value'] ?? '');
  return { url: new URL(attributes(opening)['action'] ?? '', page), form };
}

async function token(user: string, password: string, scope: string | undefined, baseUrl: string): Promise<string> {
  const discovery = await fetch(`${baseUrl}/.well-known/oauth-authorization-server`);
  if (!discovery.ok) throw new Failure(`${baseUrl} does not answer as an authorization server (${discovery.status}).`);
  const server = (await discovery.json()) as ServerMetadata;
  // The server may know itself by another name than the one we reach it by.
  const at = (address: string): URL => new URL(new URL(address).pathname, baseUrl);

  const verifier = randomBytes(32).toString('base64url');
  const state = randomBytes(16).toString('base64url');
  let url = at(server.authorization_endpoint);
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: CLIENT_ID,
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
        throw new Failure(
          answer.get('error_description') ?? answer.get('error') ?? 'The answer is not to our request.',
        );
      return exchange(at(server.token_endpoint), code, verifier);
    }
    if (location) {
      url = new URL(location, url);
      form = null;
    } else if (!response.ok) {
      throw new Failure(readable(html));
    } else {
      ({ url, form } = fill(html, url, { username: user, password }));
    }
  }
  throw new Failure('The sign-in does not come to an end.');
}

async function exchange(endpoint: URL, code: string, verifier: string): Promise<string> {
  const response = await fetch(endpoint, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: CLIENT_ID,
      redirect_uri: REDIRECT_URI,
      code,
      code_verifier: verifier,
    }),
  });
  const answer = (await response.json()) as { access_token?: string; error?: string; error_description?: string };
  if (!answer.access_token) throw new Failure(answer.error_description ?? answer.error ?? `Status ${response.status}`);
  return answer.access_token;
}

try {
  const { values } = parseArgs({
    options: { user: { type: 'string' }, scope: { type: 'string' }, 'base-url': { type: 'string' } },
  });
  if (!values.user) throw new Failure('Say who signs in: --user sam@demo.example');
  const password = process.env['DEMO_PASSWORD'] || 'demo-password';
  const baseUrl = (values['base-url'] ?? process.env['BASE_URL'] ?? `http://localhost:${process.env['PORT'] || 3000}`)
    .trim()
    .replace(/\/+$/, '');
  console.log(await token(values.user, password, values.scope, baseUrl));
} catch (error) {
  const cause = (error as { cause?: { code?: string } }).cause?.code;
  console.error(`token: ${error instanceof Error ? error.message : error}${cause ? ` (${cause})` : ''}`);
  process.exitCode = 1;
}
