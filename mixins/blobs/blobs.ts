/**
 * The only access to bytes that are too many for the bus and the database: blobs, in a folder or a store that speaks S3.
 * A service keeps the key, which is used once, among its rows; the process that receives or sends the bytes moves
 * them. Reasons: docs/decisions/bytes-beside-the-bus.md.
 */
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { uuidv7 } from '../../lib/values/ids.ts';

/** `bytes` bytes of a blob, at least one, beginning at `from`. */
export interface Range {
  readonly from: number;
  readonly bytes: number;
}

export interface Blobs {
  /** A new key in a folder of the store. */
  newKey(folder: string): string;
  /**
   * Stores a blob completely or not at all: when the source or the store fails, nothing can be read under the key. Reads the
   * source no faster than the store accepts it. Throws SERVICE_UNAVAILABLE, or the reason of `signal` once it is aborted.
   */
  write(key: string, source: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void>;
  /** Throws SERVICE_UNAVAILABLE, also when the blob does not exist. The caller must begin to read: a source that is never read keeps its file or connection. */
  read(key: string, range: Range): Promise<AsyncIterable<Uint8Array>>;
  /** Succeeds also when the blob does not exist. */
  remove(key: string): Promise<void>;
  /**
   * Makes an address of the store from which whoever has it can download the blob for a while. Absent, or null: there is
   * none, because callers cannot reach the store, or it holds encrypted bytes.
   */
  signedUrl?(key: string, download: Download): Promise<string | null>;
}

/** Headers that the store sends with a content, and how long its address is valid. */
export interface Download {
  readonly contentType: string;
  /** Content-Disposition. */
  readonly disposition: string;
  readonly validSeconds: number;
}

const KEY = /^[a-z0-9][a-z0-9-]{0,99}(?:\/[a-z0-9][a-z0-9-]{0,99}){0,9}$/;

/** Throws for a malformed key, which could lead to another place in the store. */
export function checkKey(key: string): void {
  if (!KEY.test(key)) throw new Error(`${JSON.stringify(key)} is not a valid blob key.`);
}

export const newBlobKey = (folder: string): string => `${folder}/${uuidv7()}`;

/** The result of a call to the store. Throws SERVICE_UNAVAILABLE when it fails, or the reason of the signal once it is aborted. */
export async function ofStore<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    signal?.throwIfAborted();
    throw storeFailure(cause);
  }
}

export const storeFailure = (cause: unknown): PlatformError =>
  unavailable('The store of file contents does not answer. Try again.', cause);

/** A key leads to nothing: the wrong store, or one that was put back to an earlier time. An operator can bring the bytes back. */
export const blobMissing = (key: string, cause: unknown): PlatformError =>
  unavailable(
    'The store does not have the bytes of the content. Try again later.',
    new Error(`There is no blob ${key}.`, { cause }),
  );

const unavailable = (message: string, cause: unknown): PlatformError =>
  new PlatformError('SERVICE_UNAVAILABLE', message, { cause, retryAfterSeconds: 5 });
