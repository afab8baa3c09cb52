/**
 * Blobs that the store does not understand: AES-256-GCM in blocks, so that any range can be read by itself. A block is a random
 * nonce, 64 KiB of the content (the last one less) and the tag, which also covers the place of the block in its blob. Every
 * blob has a key of its own, derived from its name and the key of the installation; the name ends with the id of the latter, so
 * that blobs of earlier keys, and those from before there was one, stay readable, and nothing in the store can claim to be one of them.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { type Blobs, type Range, storeFailure } from './blobs.ts';

const BLOCK = 64 * 1024;
const NONCE = 12;
const TAG = 16;
const SEALED = BLOCK + NONCE + TAG;
const KEY_ID = /-k([0-9a-f]{8})$/;

const derived = (key: string, salt: string, purpose: string, bytes: number): Buffer =>
  Buffer.from(hkdfSync('sha256', key, salt, purpose, bytes));

export class SealedBlobs implements Blobs {
  readonly #blobs: Blobs;
  readonly #keys: ReadonlyMap<string, string>;
  /** Of the key for new blobs. */
  readonly #newest: string;

  /** `keys`: the one for new blobs first. */
  constructor(blobs: Blobs, keys: readonly [string, ...string[]]) {
    this.#blobs = blobs;
    const entries = keys.map((key): [string, string] => [
      derived(key, '', 'id of a key of blobs', 4).toString('hex'),
      key,
    ]);
    this.#keys = new Map(entries);
    this.#newest = derived(keys[0], '', 'id of a key of blobs', 4).toString('hex');
  }

  newKey(folder: string): string {
    return `${this.#blobs.newKey(folder)}-k${this.#newest}`;
  }

  async write(name: string, source: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void> {
    const key = this.#keyOf(name);
    await this.#blobs.write(name, key ? sealedBlocks(key, source) : source, signal);
  }

  async read(name: string, { from, bytes }: Range): Promise<AsyncIterable<Uint8Array>> {
    const key = this.#keyOf(name);
    if (!key) return this.#blobs.read(name, { from, bytes });
    const first = Math.floor(from / BLOCK);
    const count = Math.ceil((from + bytes) / BLOCK) - first;
    const source = await this.#blobs.read(name, { from: first * SEALED, bytes: count * SEALED });
    return openedBlocks(key, source, { first, skip: from - first * BLOCK, bytes });
  }

  remove(name: string): Promise<void> {
    return this.#blobs.remove(name);
  }

  /** The key of a blob; null: it is not encrypted. */
  #keyOf(name: string): Buffer | null {
    const id = KEY_ID.exec(name)?.[1];
    if (id === undefined) return null;
    const key = this.#keys.get(id);
    if (key === undefined) throw storeFailure(new Error(`FILES_KEY and FILES_KEYS_PREVIOUS have no key ${id}.`));
    return derived(key, name, 'contents of a blob', 32);
  }
}

/** Which block of its blob it is: a block cannot be put in the place of another one. */
function place(index: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(index));
  return bytes;
}

async function* sealedBlocks(key: Buffer, source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let index = 0;
  for await (const block of blocksOf(source, BLOCK)) {
    const nonce = randomBytes(NONCE);
    const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG });
    cipher.setAAD(place(index++));
    yield Buffer.concat([nonce, cipher.update(block), cipher.final(), cipher.getAuthTag()]);
  }
}

/** `bytes` bytes behind the first `skip` of the blocks from `first` on. */
async function* openedBlocks(
  key: Buffer,
  source: AsyncIterable<Uint8Array>,
  { first, skip, bytes }: { readonly first: number; readonly skip: number; readonly bytes: number },
): AsyncGenerator<Uint8Array> {
  let index = first;
  let from = skip;
  let left = bytes;
  for await (const block of blocksOf(source, SEALED)) {
    const decipher = createDecipheriv('aes-256-gcm', key, block.subarray(0, NONCE), { authTagLength: TAG });
    decipher.setAAD(place(index++));
    decipher.setAuthTag(block.subarray(-TAG));
    const opened = Buffer.concat([decipher.update(block.subarray(NONCE, -TAG)), decipher.final()]);
    const wanted = opened.subarray(from, from + left);
    from = 0;
    left -= wanted.length;
    yield wanted;
  }
}

/** The bytes in blocks of a size; the last one may be shorter. A block is valid until the next one is asked for. */
async function* blocksOf(source: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Buffer> {
  const block = Buffer.allocUnsafe(size);
  let length = 0;
  for await (const chunk of source)
    for (let at = 0; at < chunk.length; ) {
      const taken = Math.min(size - length, chunk.length - at);
      block.set(chunk.subarray(at, at + taken), length);
      at += taken;
      length += taken;
      if (length < size) continue;
      yield block;
      length = 0;
    }
  if (length > 0) yield block.subarray(0, length);
}
