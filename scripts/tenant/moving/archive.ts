/**
 * A tenant as one file: a gzipped tar whose last entry is a manifest with the SHA-256 of all others, so that a file that was
 * cut off or changed is refused. Rows are JSON lines in entries of a few megabytes: nothing is held as a whole.
 */
import { createHash } from 'node:crypto';
import type { Readable, Writable } from 'node:stream';
import { finished, pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { extract, pack } from 'tar-stream';
import { asError } from '../../../lib/errors/thrown.ts';
import { headOf } from './head.ts';
import { ADDRESSES, COMPONENTS, FORMAT, FORMAT_VERSION, type Item, MovingRefused, objectOf, USERS } from './items.ts';
import { PARTS } from './parts.ts';

const HEAD = 'tenant.json';
const MANIFEST = 'manifest.json';
const FILES = 'configuration/';
const CONTENT = /^contents\/([0-9a-f]{64})\/\d{6}$/;
/** An entry is closed when its rows have so many characters. */
const ENTRY_CHARS = 4 * 1024 * 1024;
/** One row may be long; nothing that is written here is longer. */
const ENTRY_MAX_BYTES = 256 * 1024 * 1024;

interface Entry {
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly rows?: number;
}

interface Manifest {
  readonly format: typeof FORMAT;
  readonly formatVersion: number;
  readonly entries: readonly Entry[];
}

export class ArchiveWriter {
  /** SHA-256 of the file, once it is finished. */
  sha256 = '';
  bytes = 0;
  readonly #tar = pack();
  readonly #written: Promise<void>;
  /** Fails when the writing has ended. Made once: what waits for it must not keep the bodies of all entries. */
  readonly #closed: Promise<never>;
  readonly #entries: Entry[] = [];
  /** Of the export. */
  #at = new Date(0);
  #content = { sha256: '', pieces: 0 };
  #part: { readonly name: string; number: number; lines: string[]; chars: number } | null = null;

  constructor(out: Writable) {
    const hash = createHash('sha256');
    const gzip = createGzip({ level: 6 });
    gzip.on('data', (chunk: Buffer) => {
      hash.update(chunk);
      this.bytes += chunk.length;
    });
    this.#written = pipeline(this.#tar as unknown as Readable, gzip, out).then(() => {
      this.sha256 = hash.digest('hex');
    });
    this.#closed = this.#written.then(() => {
      throw new Error('The file is closed.');
    });
    this.#closed.catch(() => {});
  }

  async add(item: Item): Promise<void> {
    if (item.kind === 'head') this.#at = new Date(item.head.exportedAt);
    if (item.kind === 'head') return this.#entry(HEAD, `${JSON.stringify(item.head, null, 2)}\n`);
    if (item.kind === 'file') return this.#entry(`${FILES}${item.path}`, item.text);
    if (item.kind === 'content') {
      if (this.#content.sha256 !== item.sha256) {
        await this.#flush();
        this.#content = { sha256: item.sha256, pieces: 0 };
      }
      return this.#entry(`contents/${item.sha256}/${String(++this.#content.pieces).padStart(6, '0')}`, item.bytes);
    }
    if (this.#part?.name !== item.part) {
      await this.#flush();
      this.#part = { name: item.part, number: 0, lines: [], chars: 0 };
    }
    const part = this.#part;
    for (const line of item.lines) {
      part.lines.push(line);
      part.chars += line.length;
      if (part.chars >= ENTRY_CHARS) await this.#flush(part);
    }
  }

  async finish(): Promise<void> {
    await this.#flush();
    const manifest: Manifest = { format: FORMAT, formatVersion: FORMAT_VERSION, entries: this.#entries };
    await this.#entry(MANIFEST, `${JSON.stringify(manifest, null, 2)}\n`);
    this.#tar.finalize();
    await this.#written;
  }

  /** Ends the writing; the file is of no use. */
  async abort(): Promise<void> {
    this.#tar.destroy();
    await this.#written.catch(() => {});
  }

  /** Goes on with the next entry of `part`, without it with another part. */
  async #flush(part = this.#part): Promise<void> {
    if (part && part.lines.length > 0) {
      const name = `${part.name}/${String(++part.number).padStart(6, '0')}.jsonl`;
      await this.#entry(name, `${part.lines.join('\n')}\n`, part.lines.length);
      part.lines = [];
      part.chars = 0;
    }
  }

  async #entry(name: string, content: string | Buffer, rows?: number): Promise<void> {
    const body = Buffer.from(content);
    const sha256 = createHash('sha256').update(body).digest('hex');
    if (name !== MANIFEST)
      this.#entries.push({ name, bytes: body.length, sha256, ...(rows === undefined ? {} : { rows }) });
    const added = new Promise<void>((resolve, reject) => {
      const header = { name, size: body.length, mode: 0o600, mtime: this.#at, uid: 0, gid: 0 };
      this.#tar.entry(header, (error) => (error ? reject(error) : resolve())).end(body);
    });
    // A full disk ends the writer, and the entry has no consumer any more.
    await Promise.race([added, this.#closed]);
  }
}

const damaged = (why: string): MovingRefused =>
  new MovingRefused(`The file is damaged or cut off: ${why}. Nothing was imported.`);

const PARTS_KNOWN: ReadonlySet<string> = new Set([ADDRESSES, COMPONENTS, USERS, ...PARTS.map(({ name }) => name)]);

/** The items of a file, in order. Throws when the file is not whole, at its end at the latest. */
export async function* readArchive(file: Readable): AsyncGenerator<Item> {
  const entries = extract();
  let failure: unknown;
  const done = pipeline(file, createGunzip(), entries).catch((error) => {
    failure = error;
    entries.destroy(asError(error));
  });
  const seen: Entry[] = [];
  let manifest: Manifest | null = null;
  try {
    for await (const entry of entries) {
      const { name, size = 0, type } = entry.header;
      if (manifest) throw damaged('something follows its manifest');
      if (type !== 'file' || size > ENTRY_MAX_BYTES) throw damaged(`${printable(name)} is none of its entries`);
      const chunks: Buffer[] = [];
      for await (const chunk of entry) chunks.push(chunk as Buffer);
      const body = Buffer.concat(chunks);
      if (name === MANIFEST) {
        manifest = parsed<Manifest>(name, body);
        compare(manifest, seen);
        continue;
      }
      if (seen.length === 0 && name !== HEAD)
        throw new MovingRefused(
          'The file is no export of a tenant: it does not begin with tenant.json. Nothing was imported.',
        );
      const item = itemOf(name, body);
      const rows = item.kind === 'rows' ? { rows: item.lines.length } : {};
      seen.push({ name, bytes: body.length, sha256: createHash('sha256').update(body).digest('hex'), ...rows });
      yield item;
    }
    await done;
    if (failure) throw failure;
    if (!manifest) throw damaged('its manifest is missing');
  } catch (error) {
    if (error instanceof MovingRefused) throw error;
    const cause = failure ?? error;
    // Errors of an item's consumer do not pass here.
    throw damaged(cause instanceof Error ? cause.message : String(cause));
  } finally {
    file.destroy();
    entries.destroy();
    await finished(file).catch(() => {});
  }
}

function itemOf(name: string, body: Buffer): Item {
  if (name === HEAD) return { kind: 'head', head: headOf(parsed<unknown>(name, body)) };
  const [, sha256] = CONTENT.exec(name) ?? [];
  if (sha256 !== undefined) return { kind: 'content', sha256, bytes: body };
  const text = body.toString('utf8');
  if (name.startsWith(FILES)) return { kind: 'file', path: name.slice(FILES.length), text };
  const part = /^([a-zA-Z0-9_/-]{1,200})\/\d{6,9}\.jsonl$/.exec(name)?.[1];
  if (part === undefined || !(PARTS_KNOWN.has(part) || objectOf(part) !== null))
    throw damaged(`${printable(name)} is none of its entries`);
  return { kind: 'rows', part, lines: text.replace(/\n$/, '').split('\n') };
}

function parsed<T>(name: string, body: Buffer): T {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw damaged(`${printable(name)} is no JSON`);
  }
}

function compare({ entries }: Manifest, seen: readonly Entry[]): void {
  if (!Array.isArray(entries) || entries.length !== seen.length)
    throw damaged(`it has ${seen.length} entries, and its manifest names others`);
  for (const [i, entry] of seen.entries()) {
    const { name, bytes, sha256, rows } = entries[i] ?? {};
    if (entry.name !== name || entry.bytes !== bytes || entry.sha256 !== sha256 || entry.rows !== rows)
      throw damaged(`${printable(entry.name)} is not what its manifest says`);
  }
}

const printable = (name: string): string => name.slice(0, 200).replace(/[^\x20-\x7e]/g, '?');
