/** The public API as a caller sees it: real OAuth tokens, plain HTTP. */
import { randomUUID } from 'node:crypto';
import { signIn } from '../../scripts/sign-in.ts';
import { assertDescribed } from './described.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests assert what bodies hold, they need no types for it
type Anything = any;

export interface Answer<T = Anything> {
  status: number;
  headers: Headers;
  /** Parsed when it is JSON, else the text; null when empty. */
  body: T;
  text: string;
}

export interface CallOptions {
  headers?: Record<string, string>;
  /** Default: a new one for every mutation; null sends none. */
  idempotencyKey?: string | null;
  /** Sent as If-Match. */
  etag?: string;
}

export interface Api {
  get<T = Anything>(path: string, options?: CallOptions): Promise<Answer<T>>;
  post<T = Anything>(path: string, body?: unknown, options?: CallOptions): Promise<Answer<T>>;
  put<T = Anything>(path: string, body?: unknown, options?: CallOptions): Promise<Answer<T>>;
  patch<T = Anything>(path: string, body?: unknown, options?: CallOptions): Promise<Answer<T>>;
  delete<T = Anything>(path: string, options?: CallOptions): Promise<Answer<T>>;
  /** Any method; the body goes out as it is when it is a string or bytes. */
  send<T = Anything>(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer<T>>;
}

export const demoPassword = (): string => process.env['DEMO_PASSWORD'] || 'demo-password';

const tokens = new Map<string, Promise<string>>();

/**
 * An access token for a user by the real authorization-code flow; remembered per address, user and scope. `user` may be
 * `sam` for `sam@demo.example`.
 */
export function tokenFor(baseUrl: string, user: string, scope?: string): Promise<string> {
  const username = user.includes('@') ? user : `${user}@${user === 'eve' ? 'acme' : 'demo'}.example`;
  const key = JSON.stringify([baseUrl, username, scope]);
  let token = tokens.get(key);
  if (!token) {
    token = signIn({
      baseUrl,
      user: username,
      password: demoPassword(),
      scope,
    }).then((answer) => answer.access_token);
    token.catch(() => tokens.delete(key));
    tokens.set(key, token);
  }
  return token;
}

/** The instance at this address has stopped; the next one there may be another, with the same keys and other grants. */
export function forgetTokens(baseUrl: string): void {
  for (const key of tokens.keys()) if (key.startsWith(`["${baseUrl}",`)) tokens.delete(key);
}

/** The beginning of a stream of events, up to the end of the first one. */
async function firstEvent({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const bytes of body!) {
    text += decoder.decode(bytes, { stream: true });
    const event = /\nid: .*?\n\n/s.exec(text);
    if (event) return text.slice(0, event.index + event[0].length);
  }
  return text;
}

/** Calls below /api/v1. Without a token: as a stranger. */
export function api(baseUrl: string, token?: string): Api {
  const send = async <T>(
    method: string,
    path: string,
    body?: unknown,
    options: CallOptions = {},
  ): Promise<Answer<T>> => {
    const raw = typeof body === 'string' || body instanceof Uint8Array;
    const headers: Record<string, string> = {
      ...(token ? { authorization: `Bearer ${token}` } : {}),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(method === 'GET' || method === 'HEAD' || options.idempotencyKey === null
        ? {}
        : { 'idempotency-key': options.idempotencyKey ?? randomUUID() }),
      ...(options.etag ? { 'if-match': options.etag } : {}),
      ...options.headers,
    };
    const response = await fetch(`${baseUrl}/api/v1${path}`, {
      method,
      headers,
      redirect: 'manual',
      ...(body === undefined ? {} : { body: raw ? (body as string) : JSON.stringify(body) }),
    });
    const isStream = response.headers.get('content-type') === 'text/event-stream';
    const text = isStream ? await firstEvent(response) : await response.text();
    const isJson = /^application\/(.*\+)?json/.test(response.headers.get('content-type') ?? '');
    const answer = {
      status: response.status,
      headers: response.headers,
      body: (text === '' ? null : isJson ? JSON.parse(text) : text) as T,
      text,
    };
    assertDescribed(method, path, answer.status, answer.body);
    return answer;
  };
  return {
    send,
    get: (path, options) => send('GET', path, undefined, options),
    post: (path, body, options) => send('POST', path, body, options),
    put: (path, body, options) => send('PUT', path, body, options),
    patch: (path, body, options) => send('PATCH', path, body, options),
    delete: (path, options) => send('DELETE', path, undefined, options),
  };
}
