/** A browser without JavaScript: cookies, redirects one at a time, forms as the page has them. */

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';

export const REDIRECT = 'http://127.0.0.1:49876/callback';

export interface Seen {
  status: number;
  url: URL;
  headers: Headers;
  html: string;
  /** The redirect address of the response; null: it is a page. */
  location: URL | null;
}

const decode = (text: string): string =>
  text
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');

export class Browser {
  readonly cookies = new Map<string, string>();
  readonly headers: Record<string, string>;

  constructor(headers: Record<string, string> = {}) {
    this.headers = headers;
  }

  async open(url: string | URL, body?: URLSearchParams, headers: Record<string, string> = {}): Promise<Seen> {
    const response = await fetch(url, {
      method: body ? 'POST' : 'GET',
      redirect: 'manual',
      headers: {
        accept: 'text/html',
        cookie: [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
        ...this.headers,
        ...headers,
      },
      ...(body ? { body } : {}),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie)!;
      if (/expires=Thu, 01 Jan 1970/i.test(cookie)) this.cookies.delete(name!);
      else this.cookies.set(name!, value!);
    }
    const location = response.headers.get('location');
    return {
      status: response.status,
      url: new URL(url),
      headers: response.headers,
      html: await response.text(),
      location: location ? new URL(location, url) : null,
    };
  }

  /** Follows redirects until a page, or until a redirect leaves this server. */
  async follow(seen: Seen): Promise<Seen> {
    let current = seen;
    for (let i = 0; i < 10 && current.location; i++) {
      if (current.location.origin !== seen.url.origin) return current;
      current = await this.open(current.location);
    }
    return current;
  }

  async visit(url: string | URL): Promise<Seen> {
    return this.follow(await this.open(url));
  }

  /** Sends the page's form with the given answers and its first button (or the named one). */
  async submit(page: Seen, answers: Record<string, string> = {}, headers: Record<string, string> = {}): Promise<Seen> {
    const form = /<form\b([^>]*)>([\s\S]*?)<\/form>/.exec(page.html);
    assert.ok(form, `a form on ${page.url.pathname}: ${page.html.replace(/<style>[\s\S]*<\/style>/, '')}`);
    const body = new URLSearchParams();
    for (const [tag] of form[2]!.matchAll(/<input\b[^>]*>/g)) {
      const name = / name="([^"]*)"/.exec(tag)?.[1];
      if (name) body.set(name, answers[name] ?? decode(/ value="([^"]*)"/.exec(tag)?.[1] ?? ''));
    }
    const button = /<button\b[^>]*>/.exec(form[2]!)?.[0] ?? '';
    const name = / name="([^"]*)"/.exec(button)?.[1];
    if (name) body.set(name, / value="([^"]*)"/.exec(button)?.[1] ?? '');
    for (const [key, value] of Object.entries(answers)) body.set(key, value);
    const action = / action="([^"]*)"/.exec(form[1]!)?.[1] ?? page.url.href;
    return this.follow(await this.open(new URL(decode(action), page.url), body, headers));
  }
}

interface Pkce {
  verifier: string;
  challenge: string;
}

export function pkce(): Pkce {
  const verifier = randomBytes(32).toString('base64url');
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') };
}

export function authorizeUrl(baseUrl: string, challenge: string | null, more: Record<string, string> = {}): URL {
  const url = new URL('/oauth2/authorize', baseUrl);
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: 'erp-cli',
    redirect_uri: REDIRECT,
    scope: 'data:read offline_access',
    state: 'the-state',
    ...(challenge === null ? {} : { code_challenge: challenge, code_challenge_method: 'S256' }),
    ...more,
  }).toString();
  return url;
}

/** Signs in and consents; returns the redirect to the client. */
export async function authorize(
  browser: Browser,
  url: URL,
  username = 'sam@demo.example',
  password = 'demo-password',
): Promise<URL> {
  let page = await browser.visit(url);
  if (/name="password"/.test(page.html)) page = await browser.submit(page, { username, password });
  if (!page.location) page = await browser.submit(page);
  assert.ok(page.location, `the way back to the client, not: ${page.html.slice(-2500)}`);
  return page.location;
}

// biome-ignore lint/suspicious/noExplicitAny: token answers have many members, tests read some
export type TokenAnswer = any;

export async function post(
  url: string,
  form: Record<string, string>,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: TokenAnswer; headers: Headers }> {
  const response = await fetch(url, { method: 'POST', body: new URLSearchParams(form), headers });
  const text = await response.text();
  return {
    status: response.status,
    body: text.startsWith('{') ? JSON.parse(text) : text,
    headers: response.headers,
  };
}

export const exchange = (
  baseUrl: string,
  code: string,
  verifier: string,
  more: Record<string, string> = {},
): ReturnType<typeof post> =>
  post(`${baseUrl}/oauth2/token`, {
    grant_type: 'authorization_code',
    client_id: 'erp-cli',
    redirect_uri: REDIRECT,
    code,
    code_verifier: verifier,
    ...more,
  });

/** The whole flow; returns the response of the token endpoint. */
export async function tokens(
  baseUrl: string,
  more: Record<string, string> = {},
  username?: string,
): Promise<TokenAnswer> {
  const { verifier, challenge } = pkce();
  const back = await authorize(new Browser(), authorizeUrl(baseUrl, challenge, more), username);
  const { status, body } = await exchange(baseUrl, back.searchParams.get('code')!, verifier);
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

export const refresh = (baseUrl: string, token: string): ReturnType<typeof post> =>
  post(`${baseUrl}/oauth2/token`, { grant_type: 'refresh_token', client_id: 'erp-cli', refresh_token: token });

export const claims = (token: string): TokenAnswer =>
  JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString());
