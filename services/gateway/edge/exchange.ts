/** One HTTP request and its answer: the call that it makes, and what is left of it to read and to send. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { MCP_PATH } from '../../../contracts/mcp.ts';
import { isScimPath } from '../../../contracts/scim.ts';
import { API_PREFIX, LLMS_PATH, VERSIONS_ROOT } from '../../../lib/addresses.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { requestId } from '../../../lib/values/ids.ts';
import { Call } from '../pipeline/call.ts';
import type { Bearer, Door } from '../pipeline/session.ts';
import { arrivingBytes, readBytes } from './intake.ts';
import type { UnsentResponse, UnsentResponses } from './unsent-responses.ts';

/** A request may name us in full (RFC 9112 section 3.2.2); whom it names decides nothing. */
const originForm = (url: string): string =>
  url.charCodeAt(0) === 0x2f ? url : url.replace(/^https?:\/\/[^/?#]*\/?/i, '/');

function doorOf(url: string): Door {
  if (url.startsWith(API_PREFIX)) {
    const next = url[API_PREFIX.length];
    if (next === '/') return url.startsWith(VERSIONS_ROOT, API_PREFIX.length) ? 'documents' : 'api';
    if (next === undefined || next === '?') return 'api';
  }
  const mark = url.indexOf('?');
  const path = mark < 0 ? url : url.slice(0, mark);
  if (path === LLMS_PATH || path.startsWith(VERSIONS_ROOT)) return 'documents';
  return path === MCP_PATH ? 'mcp' : isScimPath(path) ? 'scim' : 'pages';
}

export class Exchange extends Call {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** When it came, on the clock that never jumps. */
  readonly started = performance.now();
  /** The client waits for `100 Continue` before it sends the body. */
  expectsContinue = false;
  answered = false;
  /** The work is done; the client has taken the answer, or is gone. */
  worked = false;
  left = false;
  readonly unsentResponses: UnsentResponses;
  /** The answer while its client has not taken all of it. */
  unsentResponse: UnsentResponse | null = null;
  /** Code of the error that was answered, for the log. */
  code: string | null = null;

  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    { ip, now, unsentResponses, bearer }: { ip: string; now: number; unsentResponses: UnsentResponses; bearer: Bearer },
  ) {
    const url = originForm(req.url ?? '/');
    super({
      method: req.method ?? 'GET',
      url,
      headers: req.headers,
      ip,
      door: doorOf(url),
      requestId: requestId(now),
      startedAt: now,
      bearer,
    });
    this.req = req;
    this.res = res;
    this.unsentResponses = unsentResponses;
  }

  override receive(maxBytes: number): Promise<Buffer | null> {
    return readBytes(this, maxBytes);
  }

  override stream(signal: AbortSignal): AsyncIterable<Uint8Array> {
    return arrivingBytes(this, signal);
  }
}

/**
 * Headers that say what a request is may come once: Node keeps the first and drops the others in silence, a proxy
 * before us may have judged by another one. HTTP/1.1 needs a Host (RFC 9112 section 3.2). Node takes the chunks off a body in a further
 * transfer coding and hands over the rest as if it were the body. Throws REQUEST_MALFORMED.
 */
export function checkHead(x: Exchange): void {
  const { rawHeaders, headers, httpVersionMajor, httpVersionMinor } = x.req;
  if (httpVersionMajor !== 1) throw new PlatformError('REQUEST_MALFORMED', 'Only HTTP/1.0 and HTTP/1.1 are supported.');
  if (headers.host === undefined && httpVersionMinor > 0)
    throw new PlatformError('REQUEST_MALFORMED', 'The request has no Host header.');
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || httpVersionMinor === 0)) {
    x.res.shouldKeepAlive = false; // the end of such a body is uncertain (RFC 9112 section 6.1)
    throw new PlatformError('REQUEST_MALFORMED', 'Transfer-Encoding may only be chunked, in HTTP/1.1.');
  }
  let seen = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    const bit = SINGLE_BY_LENGTH[name.length];
    if (bit === undefined || name.toLowerCase() !== bit.name) continue;
    if (seen & bit.mask) throw new PlatformError('REQUEST_MALFORMED', `${name} may be given only once.`);
    seen |= bit.mask;
  }
}

/** Reading one takes time that grows with the square of its length. */
const PREFERENCE_MAX_CHARS = 1_024;
const PREFERENCES = ['accept', 'accept-encoding', 'accept-language'] as const;

/** Drops preference headers longer than any client needs, before they are parsed. */
export function dropLongPreferences({ headers }: IncomingMessage): void {
  for (const name of PREFERENCES) if ((headers[name]?.length ?? 0) > PREFERENCE_MAX_CHARS) delete headers[name];
}

/** Throws URI_TOO_LONG. */
export function checkUri({ req }: Exchange): void {
  if ((req.url?.length ?? 0) > LIMITS.uri_max_bytes)
    throw new PlatformError('URI_TOO_LONG', `The request URI exceeds the limit of ${LIMITS.uri_max_bytes} bytes.`);
}

/** By the length of the name, so that other headers cost one look-up. */
const SINGLE_BY_LENGTH: Readonly<Record<number, { name: string; mask: number }>> = {
  4: { name: 'host', mask: 1 },
  13: { name: 'authorization', mask: 2 },
  12: { name: 'content-type', mask: 4 },
};

/** The longest IPv6 address with a zone, in brackets and with a port, is shorter. */
const ENTRY_MAX_CHARS = 100;

/**
 * Network address of the caller. Entries of X-Forwarded-For count only as far as the trusted proxies wrote them, and
 * only when they are addresses; some proxies write the port as well.
 */
export function callerAddress(req: IncomingMessage, trustedProxies: number): string {
  const direct = socketAddress(req.socket);
  if (trustedProxies === 0) return direct;
  const chain = [...String(req.headers['x-forwarded-for'] ?? '').split(','), direct]
    .map((one) => one.trim())
    .filter(Boolean);
  return addressOf(chain[Math.max(0, chain.length - 1 - trustedProxies)] ?? '') ?? direct;
}

function addressOf(text: string): string | null {
  if (text.length > ENTRY_MAX_CHARS) return null;
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  return isIP(bare) === 0 ? null : plainAddress(bare);
}

/** Network address at the other end of a connection. */
export const socketAddress = (socket: Socket): string => plainAddress(socket.remoteAddress ?? '');

/** IPv4 addresses as such, also on a socket that speaks IPv6. */
const plainAddress = (address: string): string => address.replace(/^::ffff:/, '');
