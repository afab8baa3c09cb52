/** The file of a tenant on disk, or on standard output and input. */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import type { Database } from '../../../mixins/database/database.ts';
import { ArchiveWriter, readArchive } from './archive.ts';
import { type ExportOptions, exportTenant } from './export.ts';
import { type Imported, type ImportOptions, TenantImport } from './import.ts';
import { type Head, MovingRefused } from './items.ts';
import { Stopped, shown } from './progress.ts';

/** Standard output, standard input. */
const STANDARD = '-';
/** Readable for its owner alone. */
const MODE = 0o600;

interface Exported {
  readonly head: Head;
  readonly bytes: number;
  readonly sha256: string;
}

/** Writes a tenant to `path`, which must not be there yet: what is there under that name is whole. */
export async function exportToFile(
  database: Database,
  key: string,
  path: string,
  stopped: AbortSignal,
  options: ExportOptions,
): Promise<Exported> {
  if (path === STANDARD) return write(database, key, process.stdout, stopped, options);
  if (await exists(path)) throw new MovingRefused(`${path} is there already.`);
  const partial = `${path}.partial-${process.pid}`;
  try {
    const file = await open(partial, 'wx', MODE);
    const written = await write(database, key, createWriteStream(partial, { fd: file }), stopped, options);
    if (await exists(path)) throw new MovingRefused(`${path} is there already.`);
    await rename(partial, path);
    return written;
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}

async function write(
  database: Database,
  key: string,
  out: Writable,
  stopped: AbortSignal,
  options: ExportOptions,
): Promise<Exported> {
  const archive = new ArchiveWriter(out);
  const { sink, done } = shown((item) => archive.add(item), stopped);
  try {
    const head = await exportTenant(database, key, options, sink);
    await archive.finish();
    return { head, bytes: archive.bytes, sha256: archive.sha256 };
  } catch (error) {
    await archive.abort();
    throw error;
  } finally {
    done();
  }
}

/** Reads a file to its end, and answers its head. Throws when it is not whole. */
export async function checkFile(path: string, stopped: AbortSignal): Promise<{ head: Head; sha256: string }> {
  const hash = createHash('sha256');
  const file = createReadStream(path).on('data', (chunk) => hash.update(chunk));
  let head: Head | null = null;
  for await (const item of readArchive(file)) {
    if (stopped.aborted) throw new Stopped();
    if (item.kind === 'head') head = item.head;
  }
  if (!head) throw new MovingRefused('The file is no export of a tenant. Nothing was imported.');
  return { head, sha256: hash.digest('hex') };
}

/**
 * Makes a tenant of a file. One on disk is read to its end before anything is made; of standard input everything is taken
 * back when the end is not right.
 */
export async function importFromFile(
  database: Database,
  path: string,
  options: Omit<ImportOptions, 'key'> & { readonly key?: string | undefined },
  stopped: AbortSignal,
): Promise<Imported> {
  const checked = path === STANDARD ? null : await checkFile(path, stopped);
  let tenant: TenantImport | null = null;
  return database
    .transaction(async (tx) => {
      const file = path === STANDARD ? process.stdin : createReadStream(path);
      // It may be a FIFO that waits for a peer.
      stopped.addEventListener('abort', () => file.destroy(new Stopped()));
      const { sink, done } = shown(async (item) => {
        const key = options.key ?? (item.kind === 'head' ? item.head.tenant.key : '');
        tenant ??= new TenantImport(tx, { ...options, key, ...(checked ? { sha256: checked.sha256 } : {}) });
        await tenant.accept(item);
      }, stopped);
      try {
        for await (const item of readArchive(file)) await sink(item);
        if (stopped.aborted) throw new Stopped();
        return await tenant!.finish();
      } catch (error) {
        throw stopped.aborted ? new Stopped() : error;
      } finally {
        done();
      }
    })
    .catch((error: unknown) => discarded(tenant, error));
}

/** Throws the error, after nothing is left of the tenant. */
async function discarded(tenant: TenantImport | null, error: unknown): Promise<never> {
  await tenant?.discard();
  throw error;
}

/** Makes a tenant of another one of the same database, without a file. */
export async function copyTenant(
  database: Database,
  from: string,
  what: ExportOptions,
  options: Omit<ImportOptions, 'region'>,
  stopped: AbortSignal,
): Promise<Imported> {
  let tenant: TenantImport | null = null;
  return database
    .transaction(async (tx) => {
      const original = await tx.first<{ region: string }>({
        text: 'SELECT region FROM metadata.tenants WHERE key = $1',
        values: [from],
      });
      const made = new TenantImport(tx, { ...options, region: original?.region ?? null });
      tenant = made;
      const { sink, done } = shown((item) => made.accept(item), stopped);
      try {
        await exportTenant(database, from, what, sink);
        if (stopped.aborted) throw new Stopped();
        return await made.finish();
      } finally {
        done();
      }
    })
    .catch((error: unknown) => discarded(tenant, error));
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );
