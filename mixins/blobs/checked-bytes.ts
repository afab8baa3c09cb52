/** Checks bytes against their declared length and digest while they pass, so that a store keeps nothing else. */
import { createHash, type Hash } from 'node:crypto';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { tooLarge } from '../../lib/errors/too-large.ts';

interface Expected {
  readonly maxBytes: number;
  /** In lower-case hex; null: any. */
  readonly sha256: string | null;
  /** A SHA-256 to continue with the bytes. When they do not arrive completely, the caller must discard it. */
  readonly whole?: Hash | null;
}

/** Counts and hashes bytes while they pass. Throws REQUEST_TOO_LARGE, or UPLOAD_CHECKSUM_MISMATCH at their end. */
export class CheckedBytes implements AsyncIterable<Uint8Array> {
  readonly #source: AsyncIterable<Uint8Array>;
  readonly #expected: Expected;
  readonly #hash = createHash('sha256');
  #bytes = 0;
  #sha256: string | null = null;
  #passed = false;

  constructor(source: AsyncIterable<Uint8Array>, expected: Expected) {
    this.#source = source;
    this.#expected = expected;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** All bytes have passed, and are as they should be. */
  get passed(): boolean {
    return this.#passed;
  }

  /** In lower-case hex. Throws before all bytes have passed. */
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
    this.#passed = true;
  }
}
