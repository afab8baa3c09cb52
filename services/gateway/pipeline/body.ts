/** The body of a call: what it may be, how long, and when it is received. Source: docs/reference/http.md, "Sizes". */
import { parse } from 'content-type';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { tooLarge } from '../../../lib/errors/too-large.ts';
import type { Operation } from '../../../lib/operation.ts';
import { nextPiece } from '../../../mixins/long-work.ts';
import { mark } from '../../../mixins/watchdog/work.ts';
import type { Call } from './call.ts';

export const BODYLESS_MAX_BYTES = 64 * 1024;
/** Reading it takes a millisecond or more. */
export const LARGE_BODY_BYTES = 32 * 1024;

export function receiveBody(_gate: unknown, x: Call): Promise<void> {
  const { operation } = x.route;
  const declared = operation.requestBody;
  if (declared) checkContentType(x, operation);
  return x.receive(declared?.maxBytes ?? BODYLESS_MAX_BYTES).then((body) => {
    x.body = body;
    mark();
  });
}

/** Large bodies are read one after the other, and leave time to other requests. */
export function giveWay(_gate: unknown, { body }: Call): void | Promise<void> {
  return body !== null && body.length > LARGE_BODY_BYTES ? nextPiece().then(mark) : undefined;
}

/** Throws REQUEST_TOO_LARGE for a body that is longer than what it turned out to be for may be. */
export function limitBody({ body }: Call, maxBytes: number): void {
  if (body !== null && body.length > maxBytes) throw tooLarge(maxBytes);
}

/** The media type must be one that the operation takes; its only charset is UTF-8. Throws MEDIA_TYPE_UNSUPPORTED. */
function checkContentType(x: Call, operation: Operation): void {
  const accepted = ['application/json', ...(operation.requestBody?.contentTypes ?? [])];
  checkMediaType(x, accepted);
}

/** Throws MEDIA_TYPE_UNSUPPORTED unless the body is of one of these types, in UTF-8. */
export function checkMediaType(x: Call, accepted: readonly string[]): void {
  const given = x.headers['content-type'] ?? '';
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

function checkContentEncoding(x: Call): void {
  const encoding = x.headers['content-encoding']?.trim().toLowerCase();
  if (encoding !== undefined && encoding !== 'gzip' && encoding !== 'identity')
    throw unsupported('Content-Encoding must be gzip or absent.', ['gzip']);
}
