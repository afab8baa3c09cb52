/**
 * The last commit of the repository around a folder. Repositories come from others, and their configuration names programs
 * that git starts: file monitors, filters, hooks, transports of missing objects. Only `ls-tree` is called, which reads the
 * objects of the commit and neither index nor work tree; contents are compared here.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { environment } from '../environment.ts';

/** `ls-tree` needs none of these; they hold should git come to use more of the configuration. */
const SETTINGS = ['core.fsmonitor=false', 'core.hooksPath=/dev/null', 'protocol.allow=never', 'core.pager=cat'];

/** Missing objects of a partial clone are not fetched: the repository chooses the program of their transport. */
const NO_TRANSPORT = { GIT_NO_LAZY_FETCH: '1', GIT_ALLOW_PROTOCOL: 'none' };

const MAX_BYTES = 64 * 1024 * 1024;

/** Files below a folder, by their paths from it, with the hashes of their contents; empty without git or a commit. */
export async function committedBlobs(folder: string): Promise<ReadonlyMap<string, string>> {
  try {
    const { stdout } = await promisify(execFile)(
      'git',
      ['--no-pager', '--no-optional-locks', ...SETTINGS.flatMap((one) => ['-c', one]), 'ls-tree', '-r', '-z', 'HEAD'],
      { cwd: folder, maxBuffer: MAX_BYTES, env: environment.inherited(NO_TRANSPORT) },
    );
    return new Map(
      [...stdout.matchAll(/\d+ blob ([0-9a-f]+)\t([^\0]+)\0/g)].map(([, hash = '', path = '']) => [path, hash]),
    );
  } catch {
    return new Map();
  }
}

/** True when a file holds the committed content, with the line ends of the commit or those of a check-out on Windows. */
export const isBlob = (content: Buffer, hash: string): boolean =>
  blobHash(content, hash.length) === hash ||
  blobHash(Buffer.from(content.toString('latin1').replaceAll('\r\n', '\n'), 'latin1'), hash.length) === hash;

/** The name that git has for a content: SHA-1, or SHA-256 in repositories that chose it. */
const blobHash = (content: Buffer, length: number): string =>
  createHash(length === 64 ? 'sha256' : 'sha1')
    .update(`blob ${content.length}\0`)
    .update(content)
    .digest('hex');
