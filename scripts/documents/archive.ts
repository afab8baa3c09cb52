/** The files of a version as one archive: the same files give the same bytes. */
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import type { Files } from './page.ts';

/** Byte of the header of gzip that names the system on which it was made; 255: unknown. */
const SYSTEM_AT = 9;
const SYSTEM_UNKNOWN = 255;

export async function archive(files: Files): Promise<Buffer> {
  const tar = pack();
  const whole = buffer(tar);
  for (const name of [...files.keys()].sort())
    tar.entry({ name, mtime: new Date(0), mode: 0o644, uid: 0, gid: 0 }, files.get(name) ?? '');
  tar.finalize();
  const compressed = gzipSync(await whole, { level: 9 });
  compressed[SYSTEM_AT] = SYSTEM_UNKNOWN;
  return compressed;
}
