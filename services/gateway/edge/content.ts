/**
 * Sends the content of blobs: as a whole or a part, only when its client does not have it already, as fast as the client
 * takes it. Source: docs/decisions/bytes-beside-the-bus.md.
 */
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import type { BlobPart, FileContent } from '../../../lib/streams.ts';
import { digestHeader } from '../../../lib/values/digests.ts';
import { matchesEtag } from '../../../lib/values/etags.ts';
import type { Blobs } from '../../../mixins/blobs/blobs.ts';
import type { Streams } from '../pipeline/streams.ts';
import type { Exchange } from './exchange.ts';
import { rangeOf } from './ranges.ts';
import { commonHeaders, type ReplyOptions, send } from './reply.ts';

interface Source {
  readonly blobs: Blobs;
  readonly streams: Streams;
}

export async function sendContent(
  x: Exchange,
  reply: OperationReply,
  { parts, sha256, contentType }: FileContent,
  { blobs, streams }: Source,
  options: ReplyOptions,
): Promise<void> {
  const size = parts.reduce((sum, { bytes }) => sum + bytes, 0);
  const etag = `"${sha256}"`;
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch, 'if-range': ifRange, range } = x.headers;
  if (ifMatch !== undefined && !matchesEtag(ifMatch, etag))
    throw new PlatformError('ETAG_MISMATCH', 'The content is not the one that If-Match names.', {
      details: { currentETag: etag },
    });
  const headers = commonHeaders(x, options, {
    'Cache-Control': 'private, no-cache',
    ...reply.headers,
    ETag: etag,
    'Repr-Digest': digestHeader(sha256),
    'Accept-Ranges': 'bytes',
  });
  if (matchesEtag(ifNoneMatch, etag)) {
    send(x, 304, headers, null);
    return;
  }
  const isPart = x.method === 'GET' && (ifRange === undefined || ifRange === etag);
  const part = isPart ? rangeOf(range, size) : null;
  if (part === 'none')
    throw new PlatformError('RANGE_NOT_SATISFIABLE', `The content has ${size} bytes; the range begins behind them.`, {
      details: { bytes: size },
      headers: { 'Content-Range': `bytes */${size}` },
    });
  const { from, bytes } = part ?? { from: 0, bytes: size };
  headers.push('Content-Type', contentType, 'Content-Length', String(bytes));
  if (part) headers.push('Content-Range', `bytes ${from}-${from + bytes - 1}/${size}`);
  const status = part ? 206 : 200;
  if (x.method === 'HEAD' || bytes === 0) {
    x.res.writeHead(status, headers).end();
    x.answered = true;
    return;
  }
  const leave = streams.enter(x);
  const chunks = read(blobs, parts, from, bytes);
  try {
    // Before the head: a store that is away is an answer of its own.
    const first = await chunks.next();
    x.unsentResponses.begin(x, 0);
    // Until the head is written, a failure is an answer of its own.
    x.res.writeHead(status, headers);
    x.answered = true;
    for (let next = first; !next.done && !x.res.destroyed; next = await chunks.next()) {
      streams.bytes += next.value.length;
      await handOver(x, next.value);
    }
    x.res.end();
  } finally {
    await chunks.return();
    leave();
  }
}

/** `bytes` bytes of the parts from `from` on. */
async function* read(
  blobs: Blobs,
  parts: readonly BlobPart[],
  from: number,
  bytes: number,
): AsyncGenerator<Uint8Array, void, void> {
  let skipped = from;
  let left = bytes;
  for (const { key, bytes: length } of parts) {
    const wanted = Math.min(length - skipped, left);
    if (wanted <= 0) {
      skipped = Math.max(0, skipped - length);
      continue;
    }
    for await (const chunk of await blobs.read(key, { from: skipped, bytes: wanted })) {
      left -= chunk.length;
      yield chunk;
    }
    skipped = 0;
    if (left === 0) return;
  }
  throw new Error(`The blobs have ${left} bytes less than their service has noted.`);
}

/** Resolves when the client has taken enough for more, or is gone. */
async function handOver(x: Exchange, chunk: Uint8Array): Promise<void> {
  const { res, unsentResponses } = x;
  unsentResponses.add(x, chunk.length);
  const goesOn = res.write(chunk, (error) => {
    if (!error) unsentResponses.sent(x, chunk.length);
  });
  if (goesOn || res.destroyed) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      res.off('drain', done).off('close', done);
      resolve();
    };
    res.on('drain', done).on('close', done);
  });
}
