/** Reads contents from their store. */
import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import type { Blobs } from '../../mixins/blobs/blobs.ts';
import { HEAD_BYTES } from './content-type.ts';
import type { PartRow } from './files.sql.ts';

/** The bytes of the parts, one after the other. */
export async function* bytesOf(blobs: Blobs, parts: readonly PartRow[]): AsyncGenerator<Uint8Array> {
  for (const { key, bytes } of parts) yield* await blobs.read(key, { from: 0, bytes });
}

/** The first HEAD_BYTES of a content. Throws SERVICE_UNAVAILABLE when the store takes too long for them. */
export async function headOf(blobs: Blobs, parts: readonly PartRow[]): Promise<Uint8Array> {
  const [first] = parts;
  if (!first || first.bytes === 0) return new Uint8Array();
  const bytes = Math.min(first.bytes, HEAD_BYTES);
  const chunks = blobs.read(first.key, { from: 0, bytes }).then((source) => Array.fromAsync(source));
  return Buffer.concat(await inTime(chunks));
}

/** A request waits this long for bytes, and has time left to say that they take longer. */
const WAIT_MS = 20_000;

/** The result of the work. Throws SERVICE_UNAVAILABLE when that takes too long; the work goes on. */
export async function inTime<T>(work: Promise<T>): Promise<T> {
  const timer = new AbortController();
  const late = pause(WAIT_MS, undefined, { signal: timer.signal }).then(() => {
    throw new PlatformError('SERVICE_UNAVAILABLE', 'The bytes are still being read. Send the same request again.', {
      retryAfterSeconds: 5,
    });
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    timer.abort();
    late.catch(() => {});
  }
}

/** SHA-256 of the parts, one after the other, in lower-case hex. Reads all of them. */
export async function digestOf(blobs: Blobs, parts: readonly PartRow[]): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of bytesOf(blobs, parts)) hash.update(chunk);
  return hash.digest('hex');
}
