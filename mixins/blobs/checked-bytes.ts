/** Checks bytes against their declared length and digest while they pass, so that a store keeps nothing else. */
import { createHash, type Hash } from 'node:crypto';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { tooLarge } from '../../lib/errors/too-large.ts';

interface Expected {
  readonly maxBytes: number;
  /** In lower-case hex; null: any. */
  readonly sha256: string | null;
  /** A SHA-256 that goes on with the bytes; it is the caller's to give up when they do not arrive. */
  readonly whole?: Hash | null;
}

/** Bytes on their way, counted and hashed; ends with an error when they are too many or not those that were declared. */
export class CheckedBytes implements AsyncIterable<Uint8Array> {
  readonly #source: AsyncIterable<Uint8Array>;
  readonly #expected: Expected;
  readonly #hash = createHash('sha256');
  #bytes = 0;
  #sha256: string | null = null;

  constructor(source: AsyncIterable<Uint8Array>, expected: Expected) {
    this.#source = source;
    this.#expected = expected;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** In lower-case hex. Only when all have passed. */
  get sha256(): string {
    if (this.#sha256 === null) throw new Error('The bytes have not passed yet.');
    return this.#sha256;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    const { maxBytes, sha256, whole } = this.#expected;
    for await (const chunk of this.#source) {
      this.#bytes += chunk.length;
      if (this.#bytes > maxBytes) throw tooLarge(maxBytes);
      this.#hash.update(chunk);
      whole?.update(chunk);
      yield chunk;
    }
    this.#sha256 = this.#hash.digest('hex');
    if (sha256 !== null && sha256 !== this.#sha256)
      throw new PlatformError(
        'UPLOAD_CHECKSUM_MISMATCH',
        'The body does not have the SHA-256 that Content-Digest declares.',
      );
  }
}
