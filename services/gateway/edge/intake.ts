/** Reads the body of a request within its limit, whatever its encoding. Source: docs/reference/http.md, "Sizes". */
import type { IncomingMessage } from 'node:http';
import { createGunzip } from 'node:zlib';
import { parse } from 'content-type';
import { LIMITS } from '../../../config/limits.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { Operation } from '../../../lib/operation.ts';
import type { Exchange } from './exchange.ts';

/**
 * A compressed body may become so many times as large, once it is larger than what any request may have. Configuration
 * in YAML compresses to a tenth, with many equal files to a fiftieth.
 */
const EXPANSION_MAX = 100;
const EXPANSION_FREE_BYTES = 1024 * 1024;

const tooLarge = (maxBytes: number): PlatformError =>
  new PlatformError('REQUEST_TOO_LARGE', `The body exceeds the limit of ${maxBytes} bytes.`, { details: { maxBytes } });

/** Throws REQUEST_TOO_LARGE for a body that is longer than what it turned out to be for may be. */
export function limitBody({ body }: Exchange, maxBytes: number): void {
  if (body !== null && body.length > maxBytes) throw tooLarge(maxBytes);
}

const expandsTooMuch = (): PlatformError =>
  new PlatformError('REQUEST_TOO_LARGE', `The body expands to more than ${EXPANSION_MAX} times its compressed size.`, {
    details: { maxExpansion: EXPANSION_MAX },
  });

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

/** What a client prefers counts as not said where it is longer than any client needs; before anything reads it. */
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

/** True when the request says that a body follows. */
export const hasBody = (x: Exchange): boolean =>
  x.req.headers['transfer-encoding'] !== undefined || Number(x.req.headers['content-length'] ?? 0) > 0;

/** The media type must be one that the operation takes; its only charset is UTF-8. Throws MEDIA_TYPE_UNSUPPORTED. */
export function checkContentType(x: Exchange, operation: Operation): void {
  const accepted = ['application/json', ...(operation.requestBody?.contentTypes ?? [])];
  checkMediaType(x, accepted);
}

/** Throws MEDIA_TYPE_UNSUPPORTED unless the body is of one of these types, in UTF-8. */
export function checkMediaType(x: Exchange, accepted: readonly string[]): void {
  const given = x.req.headers['content-type'] ?? '';
  if (!accepted.includes(given)) checkType(given, accepted);
  checkContentEncoding(x);
}

function checkType(given: string, accepted: readonly string[]): void {
  const { type, parameters } = parse(given);
  if (!accepted.includes(type)) throw unsupported(`Content-Type must be ${accepted.join(' or ')}.`, accepted);
  // parse() keeps the first of several; a proxy may have read another one.
  const repeated = (given.match(/;\s*charset\s*=/gi)?.length ?? 0) > 1;
  if (repeated || !/^utf-?8$/i.test(parameters['charset'] ?? 'utf-8'))
    throw unsupported('The charset must be UTF-8.', accepted);
}

const unsupported = (message: string, accepted: readonly string[]): PlatformError =>
  new PlatformError('MEDIA_TYPE_UNSUPPORTED', message, { details: { accepted } });

function checkContentEncoding(x: Exchange): void {
  const encoding = x.req.headers['content-encoding']?.trim().toLowerCase();
  if (encoding !== undefined && encoding !== 'gzip' && encoding !== 'identity')
    throw unsupported('Content-Encoding must be gzip or absent.', ['gzip']);
}

/** The body as bytes, null when it is empty. The limit holds after decompression, and while the bytes arrive. */
export async function readBytes(x: Exchange, maxBytes: number): Promise<Buffer | null> {
  const { req } = x;
  const gzip = req.headers['content-encoding']?.trim().toLowerCase() === 'gzip';
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes);
  if (x.expectsContinue) x.res.writeContinue();
  const gunzip = gzip ? createGunzip() : null;
  const source = gunzip ? req.pipe(gunzip) : req;
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const fail = (error: Error): void => {
      source.removeAllListeners('data');
      source.on('error', () => {});
      if (gunzip) {
        req.unpipe(gunzip);
        req.resume();
      }
      reject(error);
    };
    source.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) fail(tooLarge(maxBytes));
      else if (gunzip && size > EXPANSION_FREE_BYTES && size > EXPANSION_MAX * gunzip.bytesWritten)
        fail(expandsTooMuch());
      else chunks.push(chunk);
    });
    source.on('end', () => resolve(joined(chunks, size)));
    source.on('error', (error) =>
      fail(
        gzip
          ? new PlatformError('REQUEST_MALFORMED', 'The body is not valid gzip.', { cause: error })
          : new ClientGone(),
      ),
    );
    req.on('error', () => fail(new ClientGone()));
    req.on('aborted', () => fail(new ClientGone()));
  });
}

function joined(chunks: readonly Buffer[], size: number): Buffer | null {
  const [first] = chunks;
  if (!first || size === 0) return null;
  return chunks.length === 1 ? first : Buffer.concat(chunks, size);
}

/** The client closed the connection; there is nobody to answer. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}
