/**
 * The documents of each version of the API, read from published/ when somebody asks for them. A file is looked up by its
 * name among those of the archive; nothing that a caller sends becomes a path. Source: docs/reference/versioning.md.
 */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { extract } from 'tar-stream';
import { CountedCache } from '../metrics/counted-cache.ts';
import type { CacheNumbers } from '../metrics/metrics.ts';

export interface Version {
  readonly version: string;
  /** Day of the publication, after which nothing changes; null: a draft. */
  readonly published: string | null;
  /** SHA-256 of its list of checksums. */
  readonly checksums: string;
}

/** A file of a version. */
export interface DocumentFile {
  readonly body: Buffer;
  /** SHA-256 of the body. */
  readonly checksum: string;
}

/** The files of a version by their names, such as `guides/first-request.html`. */
export type Archive = ReadonlyMap<string, DocumentFile>;

/** The file with the checksum of every other one. */
export const CHECKSUMS = 'checksums.txt';
const ARCHIVES_KEPT = 4;
/** Of one archive, unpacked. */
const ARCHIVE_MAX_BYTES = 64 * 1024 * 1024;
const PUBLISHED = new URL('../../published/', import.meta.url);

const unpack = promisify(gunzip);

export class Archives {
  /** Oldest first. */
  readonly versions: readonly Version[];
  readonly #folder: URL;
  readonly #kept = new CountedCache<string, Promise<Archive>>({ max: ARCHIVES_KEPT });

  constructor(folder: URL = PUBLISHED) {
    this.#folder = folder;
    this.versions = (JSON.parse(readFileSync(new URL('versions.json', folder), 'utf8')) as Version[]).toSorted((a, b) =>
      a.version.localeCompare(b.version, 'en', { numeric: true }),
    );
  }

  /** The newest published version, or the newest draft while there is none. */
  get latest(): Version | undefined {
    return this.versions.findLast(({ published }) => published !== null) ?? this.versions.at(-1);
  }

  find(version: string): Version | undefined {
    return this.versions.find((one) => one.version === version);
  }

  /** Of unpacked archives, for metrics. */
  get numbers(): CacheNumbers {
    return this.#kept;
  }

  /** Reads an archive, once for all who ask meanwhile. */
  open({ version, checksums }: Version): Promise<Archive> {
    let archive = this.#kept.get(version);
    if (!archive) {
      archive = this.#read(version, checksums);
      this.#kept.set(version, archive);
      // What could not be read is read again by the next one who asks.
      archive.catch(() => this.#kept.delete(version));
    }
    return archive;
  }

  async #read(version: string, checksums: string): Promise<Archive> {
    const packed = await readFile(new URL(`${version}.tar.gz`, this.#folder));
    const bodies = await entriesOf(await unpack(packed, { maxOutputLength: ARCHIVE_MAX_BYTES }));
    const list = bodies.get(CHECKSUMS);
    if (!list || hash('sha256', list) !== checksums)
      throw new Error(`The archive of version ${version} does not have the checksums of published/versions.json.`);
    const known = new Map([[CHECKSUMS, checksums], ...namedIn(list.toString())]);
    return new Map(
      [...bodies].map(([name, body]) => [name, { body, checksum: known.get(name) ?? hash('sha256', body) }]),
    );
  }
}

let shared: Archives | undefined;

/** Those of this process: a version is unpacked once, whichever of its services asks. */
export function archives(): Archives {
  shared ??= new Archives();
  return shared;
}

async function entriesOf(tar: Buffer): Promise<Map<string, Buffer>> {
  const bodies = new Map<string, Buffer>();
  const reading = extract();
  reading.end(tar);
  for await (const entry of reading) {
    // A copy, so that a small file does not keep the whole of the archive in memory.
    bodies.set(entry.header.name, await buffer(entry));
  }
  return bodies;
}

/** Lines as `sha256sum` writes them. */
function namedIn(list: string): [string, string][] {
  return list
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [checksum = '', name = ''] = line.split('  ');
      return [name, checksum];
    });
}
