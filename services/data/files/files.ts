/** Answers questions of the service files: who can read a record can read its files. Source: docs/reference/files.md. */
import type { DataActions } from '../../../contracts/data.ts';
import type { FileQuestion, FileRecord } from '../../../contracts/files.ts';
import type { Asker } from '../../../lib/context.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { recordNotFound, visibleObject } from '../object-access.ts';
import type { ReadDeps } from '../read/read.ts';
import { checkedRow } from '../read/versions.ts';
import { assertFresh, type Tenants } from '../tenants.ts';
import {
  type FilesOfRecordRow,
  filesOfRecordSql,
  referencedFilesSql,
  type SeenFileRow,
  seenFilesSql,
} from './files.sql.ts';

/** The records through which the user reads files, out of the rows of seenFilesSql. */
export const recordsOf = (rows: readonly SeenFileRow[]): FileRecord[] =>
  rows.flatMap((row) => {
    if (row.fileId === null) return [];
    const { fileId, objectApiName, recordId, field, edits } = row;
    return [{ fileId, objectApiName, recordId, field, edits }];
  });

/** The records through which the user reads each of the files. */
export const seenFiles = (
  { database, tenants }: ReadDeps,
  { tenantId, userId, deniedObjects }: Asker,
  { files }: FileQuestion,
): Promise<FileRecord[]> =>
  tenants.withView(tenantId, userId, async (view) => {
    const statement = seenFilesSql(view, files, deniedObjects);
    const rows = await database.tenant(tenantId, (tx) => tx.all<SeenFileRow>(statement));
    checkedRow(view, rows);
    return recordsOf(rows);
  });

/** Ids of the files in fields of a record that the user can read. Throws RECORD_NOT_FOUND, OBJECT_NOT_FOUND. */
export const filesOfRecord = (
  { database, tenants }: ReadDeps,
  { tenantId, userId }: Asker,
  { objectApiName, recordId }: DataActions['data.files.ofRecord']['params'],
): Promise<string[]> =>
  tenants.withView(tenantId, userId, async (view) => {
    const { object } = visibleObject(view, objectApiName);
    const statement = filesOfRecordSql(view, object, recordId);
    const row = await database.tenant(tenantId, (tx) => tx.one<FilesOfRecordRow>(statement));
    assertFresh(view, row.metadataVersion, row.accessVersion);
    if (row.fileIds === null) throw recordNotFound();
    return [...row.fileIds];
  });

/** Ids of those of the files that any record has, also one in the recycle bin, whoever can read it. */
export async function referencedFiles(
  database: Database,
  tenants: Tenants,
  { tenantId, files }: DataActions['data.files.referenced']['params'],
): Promise<string[]> {
  const snapshot = await tenants.snapshot(tenantId);
  if (!snapshot) throw new Error('The configuration of the tenant is not available.');
  const statement = referencedFilesSql(tenantId, snapshot, files);
  if (!statement) return [];
  const rows = await database.tenant(tenantId, (tx) => tx.all<{ id: string }>(statement));
  return rows.map(({ id }) => id);
}
