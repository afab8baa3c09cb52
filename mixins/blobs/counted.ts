/** Counts the operations of a store of blobs, and reports a read that breaks off like other failures of the store. */
import { PlatformError } from '../../lib/errors/platform-error.ts';
import type { Metrics, Sample } from '../metrics/metrics.ts';
import { type Blobs, type Download, type Range, storeFailure } from './blobs.ts';

type Operation = 'write' | 'read' | 'remove';

export class CountedBlobs implements Blobs {
  readonly #blobs: Blobs;
  readonly #done: Record<Operation, number> = { write: 0, read: 0, remove: 0 };
  readonly #failed: Record<Operation, number> = { write: 0, read: 0, remove: 0 };
  readonly #bytes = { written: 0, read: 0 };

  constructor(blobs: Blobs) {
    this.#blobs = blobs;
  }

  newKey(folder: string): string {
    return this.#blobs.newKey(folder);
  }

  write(key: string, source: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void> {
    return this.#count('write', this.#blobs.write(key, this.#counted(source, 'written'), signal));
  }

  async read(key: string, range: Range): Promise<AsyncIterable<Uint8Array>> {
    return this.#counted(this.#whole(await this.#count('read', this.#blobs.read(key, range))), 'read');
  }

  remove(key: string): Promise<void> {
    return this.#count('remove', this.#blobs.remove(key));
  }

  /** Asks the store for nothing. */
  async signedUrl(key: string, download: Download): Promise<string | null> {
    return (await this.#blobs.signedUrl?.(key, download)) ?? null;
  }

  register(metrics: Metrics): void {
    metrics.counters(
      'erp_store_operations_total',
      'What this process asked of the store of contents.',
      ['operation', 'outcome'],
      () =>
        (['write', 'read', 'remove'] as const).flatMap((operation): Sample[] => [
          [{ operation, outcome: 'done' }, this.#done[operation]],
          [{ operation, outcome: 'failed' }, this.#failed[operation]],
        ]),
    );
    metrics.counters('erp_store_bytes_total', 'Bytes to and from the store of contents.', ['direction'], () =>
      Object.entries(this.#bytes).map(([direction, bytes]): Sample => [{ direction }, bytes]),
    );
  }

  /** Any other error is not a failure of the store, but of the caller, such as a client that has gone. */
  async #count<T>(operation: Operation, work: Promise<T>): Promise<T> {
    try {
      const result = await work;
      this.#done[operation]++;
      return result;
    } catch (error) {
      if (error instanceof PlatformError && error.code === 'SERVICE_UNAVAILABLE') this.#failed[operation]++;
      throw error;
    }
  }

  async *#whole(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const chunks = source[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await chunks.next().catch((error: unknown) => {
          this.#failed.read++;
          throw storeFailure(error);
        });
        if (next.done) return;
        yield next.value;
      }
    } finally {
      await chunks.return?.();
    }
  }

  async *#counted(source: AsyncIterable<Uint8Array>, direction: 'written' | 'read'): AsyncGenerator<Uint8Array> {
    for await (const chunk of source) {
      this.#bytes[direction] += chunk.length;
      yield chunk;
    }
  }
}
