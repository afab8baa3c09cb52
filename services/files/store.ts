/** Makes files of bytes that are in the store, in the transaction of the mutation. */
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { tooLarge } from '../../lib/errors/too-large.ts';
import { LIMITS } from '../../lib/limits.ts';
import { uuidv7 } from '../../lib/values/ids.ts';
import type { Tx } from '../../mixins/database/database.ts';
import type { Unit } from '../../mixins/mutation/unit.ts';
import type { FilesDeps } from './deps.ts';
import {
  type AttachmentCounts,
  attachSql,
  deleteUploadSql,
  type FileRow,
  fileSql,
  forgetBlobSql,
  insertFileSql,
  keepContentSql,
  noteBlobSql,
  takeBlobsSql,
  usageSql,
} from './files.sql.ts';
import { SCANS } from './scan.ts';

/** Notes a new key, before anything is stored under it. */
export async function newBlob({ database, blobs }: FilesDeps, tenantId: string): Promise<string> {
  const key = blobs.newKey(tenantId);
  await database.shared('files', tenantId, (tx) => tx.query(noteBlobSql(tenantId, key)));
  return key;
}

/** Forgets a key under which nothing can be. What may be there is left to the sweep, which removes the bytes before their key. */
export async function forgetBlob(
  { database }: FilesDeps,
  tenantId: string,
  { key, mayBeStored }: { readonly key: string; readonly mayBeStored: boolean },
): Promise<void> {
  if (!mayBeStored) await database.shared('files', tenantId, (tx) => tx.query(forgetBlobSql(tenantId, key)));
}

/** Throws REQUEST_TOO_LARGE when the tenant has no room for `more` bytes. */
export async function refuseOverflow(tx: Tx, tenantId: string, more: number): Promise<void> {
  const used = (await tx.first<{ bytes: number }>(usageSql(tenantId)))?.bytes ?? 0;
  const left = LIMITS.files_of_tenant_max_bytes - used;
  if (more <= left) return;
  const maxBytes = Math.max(0, left);
  throw new PlatformError('REQUEST_TOO_LARGE', `The files of the tenant leave room for ${maxBytes} bytes.`, {
    details: { maxBytes },
  });
}

interface StoredBytes {
  readonly sha256: string;
  readonly bytes: number;
  /** The blob that holds them, or the upload to which they belong. */
  readonly from: { readonly key: string } | { readonly uploadId: string };
}

interface FileToMake {
  readonly name: string;
  readonly contentType: string;
  readonly content: StoredBytes;
  readonly attachTo: FileRow['records'][number] | null;
}

/**
 * Makes a file. Files of a tenant with equal contents share one.
 * @throws PlatformError REQUEST_TOO_LARGE, TOO_MANY_ITEMS, or SERVICE_UNAVAILABLE when the sweep has removed the bytes.
 */
export async function makeFile(
  { jobs, scans }: FilesDeps,
  { tx, request }: Unit,
  { name, contentType, content, attachTo }: FileToMake,
): Promise<FileRow> {
  const { tenantId, userId } = request;
  const { sha256, bytes, from } = content;
  const kept = await tx.one<{ isNew: boolean }>(
    keepContentSql(tenantId, { sha256, bytes, state: scans ? 'scanning' : 'ready' }),
  );
  if (kept.isNew) {
    const { rowCount } = await tx.query(
      takeBlobsSql(tenantId, sha256, 'key' in from ? { key: from.key, bytes } : from),
    );
    if (rowCount === 0 && bytes > 0)
      throw new PlatformError('SERVICE_UNAVAILABLE', 'The bytes were removed meanwhile. Send them again.', {
        retryAfterSeconds: 1,
      });
  }
  if (scans) await jobs.enqueue(SCANS, { tenantId, sha256 }, { tx });
  if ('uploadId' in from) await tx.query(deleteUploadSql(tenantId, from.uploadId, userId));
  const fileId = uuidv7();
  await tx.query(insertFileSql(tenantId, { fileId, name, contentType, sha256, userId, scanned: !scans }));
  await refuseOverflow(tx, tenantId, 0);
  if (attachTo) await attach(tx, tenantId, fileId, attachTo);
  return tx.one<FileRow>(fileSql(tenantId, fileId));
}

export async function attach(
  tx: Tx,
  tenantId: string,
  fileId: string,
  target: FileRow['records'][number],
): Promise<void> {
  const [insert, count] = attachSql(tenantId, fileId, target);
  await tx.query(insert);
  const { ofFile, ofRecord } = await tx.one<AttachmentCounts>(count);
  refuseTooMany(ofFile, LIMITS.file_attachments_max, 'A file can be attached to at most', 'records');
  refuseTooMany(ofRecord, LIMITS.record_files_max, 'A record can have at most', 'attached files');
}

export function refuseTooMany(count: number, max: number, what: string, noun: string): void {
  if (count > max) throw new PlatformError('TOO_MANY_ITEMS', `${what} ${max} ${noun}.`, { details: { max } });
}

/** Throws REQUEST_TOO_LARGE when the declared length exceeds the limit. */
export function refuseLonger(declared: number | null, maxBytes: number): void {
  if (declared !== null && declared > maxBytes) throw tooLarge(maxBytes);
}
