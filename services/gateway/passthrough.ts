/**
 * Sign-in, tokens and discovery: handed over the bus to auth as they came, and answered as auth answers. The gateway
 * adds who is asking (the real network address) and under which address the platform is known.
 */
import type { HttpReply, HttpRequest } from '../../contracts/auth.ts';
import type { Exchange } from './exchange.ts';
import { readBytes } from './intake.ts';
import { commonHeaders, type ReplyOptions, send } from './reply.ts';

const AUTH_PATHS = /^\/(?:oauth2|\.well-known|device|password|signin|signout|interaction|consent|auth)(?:[/.-]|$)/;
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
]);

export const belongsToAuth = (path: string): boolean => AUTH_PATHS.test(path);

export async function toAuthRequest(x: Exchange, baseUrl: string): Promise<HttpRequest> {
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(x.req.headers)) {
    if (value === undefined || NOT_FORWARDED.has(name)) continue;
    if (name.startsWith('x-platform-') || name.startsWith('x-forwarded-')) continue;
    headers[name] = value;
  }
  const body = await readBytes(x, AUTH_BODY_MAX_BYTES);
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

export function sendAuthReply(x: Exchange, reply: HttpReply, options: ReplyOptions): void {
  const headers = commonHeaders(x, options, undefined);
  const own = new Map(Object.entries(reply.headers).map(([name, value]) => [name.toLowerCase(), value]));
  const merged: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const lower = headers[i]!.toLowerCase();
    if (lower === 'vary' && own.has('vary')) continue;
    if (!own.has(lower) || lower === 'x-request-id') merged.push(headers[i]!, headers[i + 1]!);
  }
  for (const [name, value] of own) {
    if (NOT_FORWARDED.has(name) || name === 'date' || name === 'x-request-id') continue;
    for (const one of Array.isArray(value) ? value : [value]) merged.push(name, String(one));
  }
  const empty = reply.status === 204 || reply.status === 304;
  send(
    x,
    reply.status,
    merged,
    empty ? null : Buffer.from(reply.body.buffer, reply.body.byteOffset, reply.body.length),
  );
}
