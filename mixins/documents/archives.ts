/**
 * The documents of each version of the API: published ones from published/, the draft of the current version from
 * .documents/. A file is looked up by its name among those of the archive; nothing that a caller sends becomes a path.
 * Source: docs/reference/versioning.md.
 */
import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { extract } from 'tar-stream';
import { API_VERSION } from '../../lib/addresses.ts';
import { CountedCache } from '../metrics/counted-cache.ts';
import type { CacheNumbers } from '../metrics/metrics.ts';

/** A row of published/versions.json. */
interface PublishedVersion {
  readonly version: string;
  /** Day of the publication, after which nothing changes. */
  readonly published: string;
  /** SHA-256 of its list of checksums. */
  readonly checksums: string;
}

/** The draft has no day and no checksums. */
export type Version = PublishedVersion | { readonly version: string; readonly published: null };

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
/** The draft, not in git. An image contains it, without the sources. */
const DRAFT = new URL(`../../.documents/${API_VERSION}.tar.gz`, import.meta.url);
const BUILD = new URL('../../scripts/documents.ts', import.meta.url);

const unpack = promisify(gunzip);

interface Draft {
  readonly version: string;
  /** Its archive. */
  readonly read: () => Promise<Buffer>;
}

const ownDraft: Draft = {
  version: API_VERSION,
  read: async () => {
    // Builds it unless its sources are unchanged, in a process of its own: this one goes on serving.
    if (existsSync(BUILD)) await promisify(execFile)(process.execPath, [fileURLToPath(BUILD)]);
    return readFile(DRAFT);
  },
};

export class Archives {
  /** Oldest first. */
  readonly versions: readonly Version[];
  readonly #folder: URL;
  readonly #draft: Draft;
  readonly #kept = new CountedCache<string, Promise<Archive>>({ max: ARCHIVES_KEPT });

  constructor(folder: URL = PUBLISHED, draft: Draft = ownDraft) {
    this.#folder = folder;
    this.#draft = draft;
    const published: Version[] = publishedVersions(folder);
    if (!published.some(({ version }) => version === draft.version))
      published.push({ version: draft.version, published: null });
    this.versions = published.toSorted((a, b) => a.version.localeCompare(b.version, 'en', { numeric: true }));
  }

  /** The newest published version, or the draft while there is none. */
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
  open(one: Version): Promise<Archive> {
    const { version } = one;
    let archive = this.#kept.get(version);
    if (!archive) {
      archive = this.#read(one);
      this.#kept.set(version, archive);
      // A failed read is retried by the next request.
      archive.catch(() => this.#kept.delete(version));
    }
    return archive;
  }

  async #read(one: Version): Promise<Archive> {
    const { version, published } = one;
    const file = new URL(`${version}.tar.gz`, this.#folder);
    const packed = await (published === null ? this.#draft.read() : readFile(file));
    const bodies = await entriesOf(await unpack(packed, { maxOutputLength: ARCHIVE_MAX_BYTES }));
    const list = bodies.get(CHECKSUMS) ?? Buffer.of();
    if (published !== null && hash('sha256', list) !== one.checksums)
      throw new Error(`The archive of version ${version} does not have the checksums of published/versions.json.`);
    const known = new Map(namedIn(list.toString()));
    return new Map(
      [...bodies].map(([name, body]) => [name, { body, checksum: known.get(name) ?? hash('sha256', body) }]),
    );
  }
}

export const publishedVersions = (folder: URL = PUBLISHED): PublishedVersion[] =>
  JSON.parse(readFileSync(new URL('versions.json', folder), 'utf8'));

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
