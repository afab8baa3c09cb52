/**
 * The one door to bytes that are too many for the bus and the database: blobs, in a folder or in a store that speaks S3.
 * A service chooses the key, which is used once, and keeps it among its rows; the process that has the bytes at hand moves
 * them. Reasons: docs/decisions/bytes-beside-the-bus.md.
 */
import type { Readable } from 'node:stream';
import { PlatformError } from '../../lib/errors/platform-error.ts';

export interface Blobs {
  /**
   * Stores a blob. It is there as a whole or not at all: when the source or the store fails, nothing is left that could be
   * read. Takes from the source as fast as the store takes. Throws the reason of `signal` once it is aborted.
   */
  write(key: string, source: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void>;
  /** The bytes of a blob from `from` on, `bytes` of them, one at least. Throws when there is no such blob. */
  read(key: string, range: { readonly from: number; readonly bytes: number }): Promise<Readable>;
  /** Also of a blob that there is not. */
  remove(key: string): Promise<void>;
}

const KEY = /^[a-z0-9][a-z0-9-]{0,99}(?:\/[a-z0-9][a-z0-9-]{0,99}){0,9}$/;

/** Throws for a key that could mean another place in the store. */
export function checkKey(key: string): void {
  if (!KEY.test(key)) throw new Error(`${JSON.stringify(key)} is no key of a blob.`);
}

export const blobMissing = (key: string, cause: unknown): Error => new Error(`There is no blob ${key}.`, { cause });

/** The result of what is asked of the store; throws SERVICE_UNAVAILABLE when it fails, the reason of an aborted signal. */
export async function ofStore<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    signal?.throwIfAborted();
    throw new PlatformError('SERVICE_UNAVAILABLE', 'The store of file contents does not answer. Try again.', {
      cause,
      retryAfterSeconds: 5,
    });
  }
}
