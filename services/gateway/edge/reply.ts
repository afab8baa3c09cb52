/**
 * Writes answers: the headers that every response carries, bodies as the services made them, errors in the one form of
 * docs/reference/errors.md. Nothing that a caller sent is ever written back into a header.
 */
import { promisify } from 'node:util';
import { gzip, gzipSync } from 'node:zlib';
import Negotiator from 'negotiator';
import { API_VERSION, documentsUrl } from '../../../lib/addresses.ts';
import { CATALOGUE } from '../../../lib/errors/catalogue.ts';
import { errorBody } from '../../../lib/errors/error-body.ts';
import type { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { matchesEtag } from '../../../lib/values/etags.ts';
import { HTML_TYPE } from '../../../web/assets.ts';
import { ERROR_PAGE_HEADERS, errorPage } from '../../../web/error-page.ts';
import type { SharedAnswer } from '../../../web/kept.ts';
import { tightest } from '../pipeline/budget.ts';
import { ANY_ORIGIN } from '../pipeline/call.ts';
import { deprecationHeaders } from '../pipeline/deprecation.ts';
import type { Exchange } from './exchange.ts';

const PROBLEM_JSON = 'application/problem+json';
const COMPRESS_FROM_BYTES = 2_048;
const PIECE_BYTES = 256 * 1024;

const compress = promisify(gzip);

/** For a year; other hosts of the same domain are not ours to speak for. Sent where callers reach us over https. */
const HSTS = 'max-age=31536000';

/** Response headers that scripts of other origins may read. */
const EXPOSED_HEADERS = [
  'X-Request-Id',
  'X-RateLimit-Remaining',
  'X-API-Version',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'ETag',
  'Location',
  'Idempotency-Replayed',
  'X-Effective-Take',
  'Deprecation',
  'Sunset',
  'Link',
  'WWW-Authenticate',
  'Upload-Offset',
  'Upload-Length',
  'Accept-Ranges',
  'Content-Range',
  'Content-Disposition',
  'Repr-Digest',
].join(', ');

export interface ReplyOptions {
  baseUrl: string;
  now: number;
}

/** Sends the answer of an operation. */
export function sendReply(x: Exchange, reply: OperationReply, options: ReplyOptions): void {
  const operation = x.route.operation;
  const status = reply.status ?? operation.response.status;
  const body =
    reply.body === null || status === 204 || status === 304
      ? null
      : reply.body instanceof Uint8Array
        ? reply.body
        : Buffer.from(JSON.stringify(reply.body));
  const contentType = reply.headers?.['Content-Type'] ?? operation.response.contentType ?? 'application/json';
  const etag = reply.headers?.['ETag'];
  if (operation.scopes === 'public' && body && etag !== undefined) {
    sendShared(x, { body, contentType, etag, headers: reply.headers ?? {} }, options);
    return;
  }
  const headers = commonHeaders(x, options, reply.headers);
  if (body) headers.push('Content-Type', contentType);
  send(x, status, headers, body);
}

/**
 * Sends a public resource with headers for shared caches, or 304 when the ETag matches. Returns how many bytes
 * the answer has before compression.
 */
export function sendShared(
  x: Exchange,
  { body, contentType, etag, headers, variesOn }: SharedAnswer,
  options: ReplyOptions,
): number {
  const form = isCompressed(x, body) ? `${etag.slice(0, -1)}-gzip"` : etag;
  x.allowedOrigin = ANY_ORIGIN;
  const all = commonHeaders(x, options, { ...headers, ETag: form }, sharedVary(variesOn));
  if (matchesEtag(x.headers['if-none-match'], form)) {
    send(x, 304, all, null);
    return 0;
  }
  all.push('Content-Type', contentType);
  send(x, 200, all, body);
  return body.length;
}

/** Sends a file in the form that its caller takes, compressed once for all of them. */
export async function sendFile(x: Exchange, file: SharedAnswer, options: ReplyOptions): Promise<number> {
  await precompressed(file.body);
  return sendShared(x, file, options);
}

const REQUEST_HEADERS =
  'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-Expected-Revision, X-Duplicate-Confirmation, X-Agent-Run-Id, X-Request-Id, Accept-Language, Content-Digest, Upload-Offset, Range, If-Range, Last-Event-ID, traceparent, MCP-Protocol-Version, Mcp-Method, Mcp-Name';

/** Answers OPTIONS: a preflight for an allowed origin, else only what the address knows. */
export function sendOptions(x: Exchange, allow: string, options: ReplyOptions): void {
  const headers = commonHeaders(x, options, { Allow: allow });
  if (x.allowedOrigin !== null && x.headers['access-control-request-method'] !== undefined)
    headers.push(
      'Access-Control-Allow-Methods',
      allow,
      'Access-Control-Allow-Headers',
      REQUEST_HEADERS,
      'Access-Control-Max-Age',
      '600',
    );
  send(x, 204, headers, null);
}

/** Sends the Error body of docs/reference/errors.md. */
export function sendError(x: Exchange, error: PlatformError, options: ReplyOptions): void {
  const problem = prefersProblemJson(x);
  const plain = errorBody(error, x.requestId, options.baseUrl);
  const body = problem ? { ...plain, ...problemMembers(error, x.requestId) } : plain;
  const headers = errorHeaders(x, error, options);
  headers.push('Content-Type', problem ? PROBLEM_JSON : 'application/json');
  send(x, error.status, headers, Buffer.from(JSON.stringify(body)));
}

/** True when the client prefers a page to JSON, as browsers do that open an address. */
export const prefersPage = ({ headers }: Exchange): boolean =>
  headers.accept?.includes('text/html') === true &&
  new Negotiator({ headers }).mediaType(['application/json', 'text/html']) === 'text/html';

/** Sends the error as a page to browsers, with the status and the headers that the Error body would have. */
export function sendErrorToPeople(x: Exchange, error: PlatformError, options: ReplyOptions): void {
  if (!prefersPage(x)) {
    sendError(x, error, options);
    return;
  }
  const headers = errorHeaders(x, error, options);
  headers.push('Content-Type', HTML_TYPE, ...Object.entries(ERROR_PAGE_HEADERS).flat());
  send(x, error.status, headers, Buffer.from(errorPage(error, x)));
}

/** The headers of an error, but for its Content-Type. */
export function errorHeaders(x: Exchange, error: PlatformError, options: ReplyOptions): string[] {
  const headers = commonHeaders(x, options, error.headers);
  if (error.retryAfterSeconds !== undefined) headers.push('Retry-After', String(error.retryAfterSeconds));
  return headers;
}

/** Additional properties of RFC 9457. */
const problemMembers = ({ code, message }: PlatformError, requestId: string): object => ({
  title: CATALOGUE[code].title,
  detail: message,
  instance: `urn:request:${requestId}`,
});

/** Public resources are compressed once for each encoding, for all callers. */
export const sharedVary = (variesOn: readonly string[] = []): string => [...variesOn, 'Accept-Encoding'].join(', ');

/**
 * Pairs of header names and values that every response has, and those of the service. `vary`: the request headers that
 * choose the answer, where it is not for this caller alone.
 */
export function commonHeaders(
  x: Exchange,
  options: ReplyOptions,
  own: Record<string, string> | undefined,
  vary?: string,
): string[] {
  const headers = ['X-Request-Id', x.requestId, 'X-API-Version', API_VERSION, 'X-Content-Type-Options', 'nosniff'];
  if (x.budget) {
    const { name, remaining, resetSeconds } = tightest(x.budget, options.now);
    headers.push(
      'X-RateLimit-Remaining',
      String(remaining),
      'RateLimit-Policy',
      x.budget.policyHeader,
      'RateLimit',
      `"${name}";r=${remaining};t=${resetSeconds}`,
    );
  }
  const deprecated = x.routeIfKnown?.operation.deprecated;
  if (deprecated) headers.push(...deprecationHeaders(deprecated, documentsUrl(options.baseUrl)));
  if (options.baseUrl.startsWith('https:')) headers.push('Strict-Transport-Security', HSTS);
  let cached = false;
  let callersVary = 'Authorization, Accept';
  if (own)
    for (const name in own) {
      const value = own[name] ?? '';
      const lower = name.toLowerCase();
      if (lower === 'content-type' || lower === 'content-length') continue;
      if (lower === 'cache-control') cached = true;
      if (lower === 'vary') callersVary += `, ${value}`;
      else headers.push(name, value);
    }
  if (!cached) headers.push('Cache-Control', 'no-store');
  if ((x.headers.origin !== undefined || cached) && x.allowedOrigin !== ANY_ORIGIN) callersVary += ', Origin';
  if (x.headers['accept-encoding'] !== undefined) callersVary += ', Accept-Encoding';
  headers.push('Vary', vary ?? callersVary);
  if (x.allowedOrigin !== null)
    headers.push('Access-Control-Allow-Origin', x.allowedOrigin, 'Access-Control-Expose-Headers', EXPOSED_HEADERS);
  return headers;
}

/** The compressed form of bodies that never change. */
const compressedForms = new WeakMap<Uint8Array, Uint8Array>();
const compressing = new WeakMap<Uint8Array, Promise<void>>();

/** Compresses a shared body once, so that later requests cost no processor time. */
export function precompress(body: Uint8Array): void {
  if (body.length >= COMPRESS_FROM_BYTES) compressedForms.set(body, gzipSync(body));
}

/** The same when it is first sent, and without holding up others; for bodies of which few are asked for. */
async function precompressed(body: Uint8Array): Promise<void> {
  if (body.length < COMPRESS_FROM_BYTES || compressedForms.has(body)) return;
  let work = compressing.get(body);
  if (!work) {
    work = compress(body).then((form) => {
      compressedForms.set(body, form);
      compressing.delete(body);
    });
    compressing.set(body, work);
  }
  await work;
}

/**
 * Writes status, headers and body; compresses a large one when the client asks for it. Throws
 * CONCURRENCY_LIMIT_EXCEEDED when too many answers wait for the caller to send another large one.
 */
export function send(x: Exchange, status: number, headers: string[], body: Uint8Array | null): void {
  if (x.answered) return;
  const { res, unsentResponses } = x;
  const isGone = res.destroyed || res.headersSent;
  const compressed = !isGone && body !== null && isCompressed(x, body);
  const ready = compressed ? compressedForms.get(body) : undefined;
  if (body && !isGone && x.method !== 'HEAD') unsentResponses.begin(x, (ready ?? body).length);
  x.answered = true;
  if (isGone) return;
  if (ready) write(x, status, [...headers, 'Content-Encoding', 'gzip'], ready);
  else if (compressed) {
    gzip(body, { level: 1 }, (error, form) => {
      if (res.destroyed) return;
      if (error) write(x, status, headers, body);
      else {
        unsentResponses.shrink(x, form.length);
        write(x, status, [...headers, 'Content-Encoding', 'gzip'], form);
      }
    });
  } else write(x, status, headers, body);
}

function write(x: Exchange, status: number, headers: string[], body: Uint8Array | null): void {
  const { res } = x;
  if (body) headers.push('Content-Length', String(body.length));
  else if (status !== 204 && status !== 304) headers.push('Content-Length', '0');
  res.writeHead(status, headers);
  if (!body || x.method === 'HEAD') res.end();
  else if (body.length <= PIECE_BYTES) res.end(body);
  else writePieces(x, body);
}

/** Hands a large body over as fast as the client takes it, so that it is known how much it has taken. */
function writePieces(x: Exchange, body: Uint8Array, from = 0): void {
  const { res } = x;
  const next = from + PIECE_BYTES;
  if (next >= body.length) {
    res.end(body.subarray(from));
    return;
  }
  res.write(body.subarray(from, next), (error) => {
    if (error || res.destroyed) return;
    x.unsentResponses.sent(x, PIECE_BYTES);
    writePieces(x, body, next);
  });
}

const isCompressed = (x: Exchange, body: Uint8Array): boolean => body.length >= COMPRESS_FROM_BYTES && acceptsGzip(x);

/** True when the client accepts gzip at all, by name or by `*`; identity may rank higher. */
function acceptsGzip(x: Exchange): boolean {
  return x.headers['accept-encoding'] !== undefined && new Negotiator(x).encodings(['gzip']).length > 0;
}

/** Parameters of a media type other than its quality: they say nothing about which of two types is preferred. */
const TYPE_PARAMETER = /;(?!\s*q=)[^;,]*/gi;

/** True when the client prefers application/problem+json to application/json. */
function prefersProblemJson(x: Exchange): boolean {
  const { accept } = x.headers;
  if (!accept?.includes('problem+json')) return false;
  const headers = { accept: accept.replace(TYPE_PARAMETER, '') };
  return new Negotiator({ headers }).mediaType([PROBLEM_JSON, 'application/json']) === PROBLEM_JSON;
}
