/**
 * Sign-in, tokens and discovery: sent over the bus to auth as they came, and answered as auth answers. The gateway adds
 * the real network address of the caller and the public address of the platform.
 */
import type { ServiceBroker } from 'moleculer';
import { AUTH_ROOTS, type HttpReply, type HttpRequest } from '../../../contracts/auth.ts';
import { call } from '../../../contracts/call.ts';
import type { Exchange } from '../edge/exchange.ts';
import { commonHeaders, type ReplyOptions, send, sendShared } from '../edge/reply.ts';
import { abortable } from '../pipeline/index.ts';

const AUTH_PATHS = new RegExp(`^/(?:${AUTH_ROOTS.map((root) => root.replace('.', '\\.')).join('|')})(?:[/.-]|$)`);
const AUTH_BODY_MAX_BYTES = 64 * 1024;
const NOT_FORWARDED = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'content-length',
  'content-encoding',
  'forwarded',
  'accept-encoding',
  // The form of the caller's copy is known here.
  'if-none-match',
]);
/** Headers of a public answer that the gateway sets itself. */
const OF_SHARED = new Set(['etag', 'content-type', 'vary', 'access-control-allow-origin', 'x-content-type-options']);

export const belongsToAuth = (path: string): boolean => AUTH_PATHS.test(path);

/** Sends the request to auth and answers as auth does. */
export async function passToAuth(
  x: Exchange,
  gateway: { baseUrl: string; broker: ServiceBroker; replyOptions(): ReplyOptions },
): Promise<void> {
  x.label = 'auth.http';
  const request = await toAuthRequest(x, gateway.baseUrl);
  const reply = await abortable(x, call(gateway.broker, 'auth.http.handle', request));
  sendAuthReply(x, reply, gateway.replyOptions());
}

async function toAuthRequest(x: Exchange, baseUrl: string): Promise<HttpRequest> {
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(x.headers)) {
    if (value === undefined || NOT_FORWARDED.has(name)) continue;
    if (name.startsWith('x-platform-') || name.startsWith('x-forwarded-')) continue;
    headers[name] = value;
  }
  const body = await x.receive(AUTH_BODY_MAX_BYTES);
  headers['x-platform-base-url'] = baseUrl;
  headers['x-request-id'] = x.requestId;
  if (body) headers['content-length'] = String(body.length);
  return {
    method: x.method,
    url: x.rawQuery === '' ? x.path : `${x.path}?${x.rawQuery}`,
    headers,
    body,
    remoteAddress: x.ip,
  };
}

function sendAuthReply(x: Exchange, reply: HttpReply, options: ReplyOptions): void {
  const own = new Map(Object.entries(reply.headers).map(([name, value]) => [name.toLowerCase(), value]));
  own.delete('x-request-id');
  const [etag, contentType] = [own.get('etag'), own.get('content-type')];
  if (reply.status === 200 && typeof etag === 'string' && String(own.get('cache-control')).startsWith('public')) {
    const kept = [...own].filter(([name]) => !OF_SHARED.has(name) && !NOT_FORWARDED.has(name) && name !== 'date');
    const { buffer, byteOffset, length } = reply.body;
    sendShared(
      x,
      {
        body: Buffer.from(buffer, byteOffset, length),
        contentType: String(contentType),
        etag,
        headers: Object.fromEntries(kept.map(([name, value]) => [name, String(value)])),
      },
      options,
    );
    return;
  }
  const headers = withoutHeaders(commonHeaders(x, options, undefined), own);
  for (const [name, value] of own) {
    if (NOT_FORWARDED.has(name) || name === 'date') continue;
    for (const one of Array.isArray(value) ? value : [value]) headers.push(name, String(one));
  }
  const { status, body } = reply;
  const empty = status === 204 || status === 304;
  send(x, status, headers, empty ? null : Buffer.from(body.buffer, body.byteOffset, body.length));
}

/** Pairs of names and values without those whose name is in `names`. */
function withoutHeaders(pairs: readonly string[], names: ReadonlyMap<string, unknown>): string[] {
  const kept: string[] = [];
  for (const [i, name] of pairs.entries())
    if (i % 2 === 0 && !names.has(name.toLowerCase())) kept.push(...pairs.slice(i, i + 2));
  return kept;
}
