/**
 * Blobs as files of a folder. A blob is written beside the others and renamed when all of it is on the disk, so that a
 * process that is killed leaves nothing but a file that no key leads to.
 */
import { randomUUID } from 'node:crypto';
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { codeOf } from '../../lib/errors/thrown.ts';
import { type Blobs, blobMissing, checkKey, newBlobKey, ofStore, type Range } from './blobs.ts';

/** No key begins with a dot. */
const INCOMPLETE = '.incomplete';
/** A write in progress modifies its file more often than this. */
const ABANDONED_MS = 3_600_000;
const READ_BYTES = 256 * 1024;

export class FolderBlobs implements Blobs {
  readonly #folder: string;
  #tidiedAt = Number.NEGATIVE_INFINITY;

  constructor(folder: string) {
    this.#folder = folder;
  }

  newKey(folder: string): string {
    return newBlobKey(folder);
  }

  async write(key: string, source: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void> {
    checkKey(key);
    const path = join(this.#folder, key);
    const incomplete = join(this.#folder, INCOMPLETE, randomUUID());
    await ofStore(this.#prepare());
    const file = await ofStore(open(incomplete, 'wx', 0o600));
    try {
      for await (const chunk of source) await ofStore(writeAll(file, chunk));
      await ofStore(file.sync());
      await ofStore(file.close());
      signal?.throwIfAborted();
      await ofStore(publish(incomplete, path));
    } catch (error) {
      await file.close().catch(() => {});
      await rm(incomplete, { force: true }).catch(() => {});
      throw error;
    }
  }

  async read(key: string, { from, bytes }: Range): Promise<Readable> {
    checkKey(key);
    let file: FileHandle;
    try {
      file = await open(join(this.#folder, key));
    } catch (error) {
      throw codeOf(error) === 'ENOENT' ? blobMissing(key, error) : await ofStore(Promise.reject(error));
    }
    return file.createReadStream({ start: from, end: from + bytes - 1, highWaterMark: READ_BYTES });
  }

  async remove(key: string): Promise<void> {
    checkKey(key);
    await ofStore(rm(join(this.#folder, key), { force: true }));
  }

  /** Creates the folder of incomplete blobs. Once an hour, removes those that killed processes have left there. */
  async #prepare(): Promise<void> {
    const folder = join(this.#folder, INCOMPLETE);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const now = Date.now();
    if (now - this.#tidiedAt < ABANDONED_MS) return;
    this.#tidiedAt = now;
    for (const name of await readdir(folder)) {
      const path = join(folder, name);
      const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: now }));
      if (now - mtimeMs > ABANDONED_MS) await rm(path, { force: true });
    }
  }
}

async function writeAll(file: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let at = 0; at < chunk.length; ) at += (await file.write(chunk, at)).bytesWritten;
}

/** Gives the blob its name, and syncs the folders that lead to it, so that it survives a loss of power. */
async function publish(from: string, to: string): Promise<void> {
  const folder = dirname(to);
  const created = await mkdir(folder, { recursive: true, mode: 0o700 });
  await rename(from, to);
  await syncFolder(folder);
  if (created === undefined) return;
  for (let at = folder; at.length >= created.length; ) await syncFolder((at = dirname(at)));
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
