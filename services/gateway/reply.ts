/**
 * Writes answers: the headers that every response carries, bodies as the services made them, errors in the one form of
 * docs/reference/errors.md. Nothing that a caller sent is ever written back into a header.
 */
import { gzip } from 'node:zlib';
import Negotiator from 'negotiator';
import { CATALOGUE } from '../../lib/errors/catalogue.ts';
import type { PlatformError } from '../../lib/errors/platform-error.ts';
import { VIOLATIONS_MAX } from '../../lib/errors/violation-list.ts';
import type { OperationReply } from '../../lib/operation.ts';
import type { Exchange } from './exchange.ts';
import { tightest } from './rate/budget.ts';

export const API_VERSION = '1.0.0';
const PROBLEM_JSON = 'application/problem+json';
const COMPRESS_FROM_BYTES = 2_048;
const PIECE_BYTES = 256 * 1024;

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
  const headers = commonHeaders(x, options, reply.headers);
  if (body)
    headers.push(
      'Content-Type',
      reply.headers?.['Content-Type'] ?? operation.response.contentType ?? 'application/json',
    );
  send(x, status, headers, body);
}

/** Sends the Error body of docs/reference/errors.md. */
export function sendError(x: Exchange, error: PlatformError, options: ReplyOptions): void {
  const problem = prefersProblemJson(x);
  const body = errorBody(error, x.requestId, options.baseUrl, problem);
  const headers = errorHeaders(x, error, options);
  headers.push('Content-Type', problem ? PROBLEM_JSON : 'application/json');
  send(x, error.status, headers, Buffer.from(JSON.stringify(body)));
}

/** The headers of an error, but for its Content-Type. */
export function errorHeaders(x: Exchange, error: PlatformError, options: ReplyOptions): string[] {
  const headers = commonHeaders(x, options, error.headers);
  if (error.retryAfterSeconds !== undefined) headers.push('Retry-After', String(error.retryAfterSeconds));
  return headers;
}

export function errorBody(error: PlatformError, requestId: string, baseUrl: string, problem: boolean): object {
  const { code, message, status, retryable, retryAfterSeconds, errors, details } = error;
  return {
    code,
    message,
    status,
    requestId,
    type: `${baseUrl}/api/v1/versions/${API_VERSION}/docs/errors/${code}`,
    retryable,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    ...(errors && errors.length > 0 ? { errors: errors.slice(0, VIOLATIONS_MAX) } : {}),
    ...(details ? { details } : {}),
    ...(problem ? { title: CATALOGUE[code].title, detail: message, instance: `urn:request:${requestId}` } : {}),
  };
}

/** Pairs of header names and values that every response has, and those of the service. */
export function commonHeaders(x: Exchange, options: ReplyOptions, own: Record<string, string> | undefined): string[] {
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
  if (options.baseUrl.startsWith('https:')) headers.push('Strict-Transport-Security', HSTS);
  let cached = false;
  let vary = 'Authorization, Accept';
  if (own)
    for (const name in own) {
      const value = own[name] ?? '';
      const lower = name.toLowerCase();
      if (lower === 'content-type' || lower === 'content-length') continue;
      if (lower === 'cache-control') cached = true;
      if (lower === 'vary') vary += `, ${value}`;
      else headers.push(name, value);
    }
  if (!cached) headers.push('Cache-Control', 'no-store');
  if (x.req.headers.origin !== undefined || cached) vary += ', Origin';
  if (x.req.headers['accept-encoding'] !== undefined) vary += ', Accept-Encoding';
  headers.push('Vary', vary);
  if (x.allowedOrigin !== null)
    headers.push('Access-Control-Allow-Origin', x.allowedOrigin, 'Access-Control-Expose-Headers', EXPOSED_HEADERS);
  return headers;
}

/**
 * Writes status, headers and body; compresses a large one when the client asks for it. Throws
 * CONCURRENCY_LIMIT_EXCEEDED when too many answers wait for the caller to send another large one.
 */
export function send(x: Exchange, status: number, headers: string[], body: Uint8Array | null): void {
  if (x.answered) return;
  const { res, deliveries } = x;
  const isGone = res.destroyed || res.headersSent;
  if (body && !isGone && x.method !== 'HEAD') deliveries.begin(x, body.length);
  x.answered = true;
  if (isGone) return;
  if (body && body.length >= COMPRESS_FROM_BYTES && acceptsGzip(x)) {
    gzip(body, { level: 1 }, (error, compressed) => {
      if (res.destroyed) return;
      if (error) write(x, status, headers, body);
      else {
        deliveries.shrink(x, compressed.length);
        write(x, status, [...headers, 'Content-Encoding', 'gzip'], compressed);
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
    x.deliveries.sent(x, PIECE_BYTES);
    writePieces(x, body, next);
  });
}

/** True when the client accepts gzip at all, by name or by `*`; identity may rank higher. */
function acceptsGzip(x: Exchange): boolean {
  return x.req.headers['accept-encoding'] !== undefined && new Negotiator(x.req).encodings(['gzip']).length > 0;
}

/** Parameters of a media type other than its quality: they say nothing about which of two types is preferred. */
const TYPE_PARAMETER = /;(?!\s*q=)[^;,]*/gi;

/** True when the client prefers application/problem+json to application/json. */
function prefersProblemJson(x: Exchange): boolean {
  const { accept } = x.req.headers;
  if (!accept?.includes('problem+json')) return false;
  const headers = { accept: accept.replace(TYPE_PARAMETER, '') };
  return new Negotiator({ headers }).mediaType([PROBLEM_JSON, 'application/json']) === PROBLEM_JSON;
}
