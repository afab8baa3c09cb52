/** Reads contents from their store. */
import { createHash } from 'node:crypto';
import type { Blobs } from '../../mixins/blobs/blobs.ts';
import { HEAD_BYTES } from './content-type.ts';
import type { PartRow } from './files.sql.ts';

/** The bytes of the parts, one after the other. */
export async function* bytesOf(blobs: Blobs, parts: readonly PartRow[]): AsyncGenerator<Uint8Array> {
  for (const { key, bytes } of parts) yield* await blobs.read(key, { from: 0, bytes });
}

/** The first HEAD_BYTES of a content. */
export async function headOf(blobs: Blobs, parts: readonly PartRow[]): Promise<Uint8Array> {
  const [first] = parts;
  if (!first || first.bytes === 0) return new Uint8Array();
  const bytes = Math.min(first.bytes, HEAD_BYTES);
  return Buffer.concat(await Array.fromAsync(await blobs.read(first.key, { from: 0, bytes })));
}

/** SHA-256 of the parts, one after the other, in lower-case hex. Reads all of them. */
export async function digestOf(blobs: Blobs, parts: readonly PartRow[]): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of bytesOf(blobs, parts)) hash.update(chunk);
  return hash.digest('hex');
}
