/** Contents of files on this machine: their hash and type, and downloads that resume. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rename, stat } from 'node:fs/promises';
import { extname } from 'node:path';
import { usage } from '../failure.ts';
import { networkFailure } from '../http/transport.ts';
import type { Progress } from '../output/progress.ts';

/** The platform detects the type of contents itself, but cannot tell kinds of text apart. */
const TEXT_TYPES: Readonly<Record<string, string>> = {
  '.csv': 'text/csv',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.txt': 'text/plain',
};

export const typeOf = (path: string): string => TEXT_TYPES[extname(path).toLowerCase()] ?? 'application/octet-stream';

/** The size and SHA-256 of a file. */
export async function measure(path: string): Promise<{ size: number; sha256: string }> {
  const found = await stat(path).catch((error: unknown) => {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    throw usage(isMissing ? `There is no such file: ${path}` : error instanceof Error ? error.message : String(error));
  });
  if (!found.isFile()) throw usage(`${path} is not a file.`);
  const hash = createHash('sha256');
  const source: AsyncIterable<Buffer> = createReadStream(path);
  for await (const chunk of source) hash.update(chunk);
  return { size: found.size, sha256: hash.digest('hex') };
}

/** Attempts to resume a download without any progress in between. */
const ATTEMPTS_MAX = 5;

interface Download {
  /** The content from a byte on. */
  readonly ask: (from: number) => Promise<Response>;
  readonly path: string;
  readonly what: string;
  readonly progress: Progress;
}

/** Downloads content into a file, which appears when it is complete. Resumes an earlier attempt. Returns the length in bytes. */
export async function download({ ask, path, what, progress }: Download): Promise<number> {
  const partial = `${path}.part`;
  const file = await open(partial, 'a+');
  try {
    let { size } = await file.stat();
    for (let attempts = 0; ; attempts++) {
      const response = await ask(size);
      // Without the range, or of another version: from the beginning.
      if (response.status !== 206 && size > 0) {
        await file.truncate(0);
        size = 0;
      }
      const total = size + Number(response.headers.get('content-length') ?? 0);
      const before = size;
      try {
        for await (const chunk of response.body ?? []) {
          await file.appendFile(chunk);
          size += chunk.byteLength;
          progress.update(what, size, total);
        }
        break;
      } catch (error) {
        if (size > before) attempts = 0;
        if (attempts >= ATTEMPTS_MAX) throw networkFailure(error, new URL(response.url), 0);
      }
    }
    await rename(partial, path);
    return size;
  } finally {
    await file.close();
  }
}
