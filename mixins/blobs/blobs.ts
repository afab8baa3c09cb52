/**
 * The one door to bytes that are too many for the bus and the database: blobs, in a folder or in a store that speaks S3.
 * A service keeps the key, which is used once, among its rows; the process that has the bytes at hand moves
 * them. Reasons: docs/decisions/bytes-beside-the-bus.md.
 */
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { uuidv7 } from '../../lib/values/ids.ts';

/** Bytes of a blob from `from` on, `bytes` of them, one at least. */
export interface Range {
  readonly from: number;
  readonly bytes: number;
}

export interface Blobs {
  /** A key that no blob has had, in a folder of the store. */
  newKey(folder: string): string;
  /**
   * Stores a blob. It is there as a whole or not at all: when the source or the store fails, nothing is left that could be
   * read. Takes from the source as fast as the store takes. Throws the reason of `signal` once it is aborted.
   */
  write(key: string, source: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void>;
  /** Throws when there is no such blob. The bytes must be taken, all or some of them: a source that nobody begins stays open. */
  read(key: string, range: Range): Promise<AsyncIterable<Uint8Array>>;
  /** Also of a blob that there is not. */
  remove(key: string): Promise<void>;
}

const KEY = /^[a-z0-9][a-z0-9-]{0,99}(?:\/[a-z0-9][a-z0-9-]{0,99}){0,9}$/;

/** Throws for a key that could mean another place in the store. */
export function checkKey(key: string): void {
  if (!KEY.test(key)) throw new Error(`${JSON.stringify(key)} is no key of a blob.`);
}

export const newBlobKey = (folder: string): string => `${folder}/${uuidv7()}`;

export const blobMissing = (key: string, cause: unknown): Error => new Error(`There is no blob ${key}.`, { cause });

/** The result of what is asked of the store; throws SERVICE_UNAVAILABLE when it fails, the reason of an aborted signal. */
export async function ofStore<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    signal?.throwIfAborted();
    throw storeFailure(cause);
  }
}

export const storeFailure = (cause: unknown): PlatformError =>
  new PlatformError('SERVICE_UNAVAILABLE', 'The store of file contents does not answer. Try again.', {
    cause,
    retryAfterSeconds: 5,
  });
