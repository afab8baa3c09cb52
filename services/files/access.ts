/** Who may read and change a file: its owner, and who may read or change a record that it is attached to. */
import type { FileBody, FileRecord } from '../../contracts/files.ts';
import { addressOf } from '../../contracts/operations.ts';
import { askerOf, type RequestContext } from '../../lib/context.ts';
import { PlatformError, violation } from '../../lib/errors/platform-error.ts';
import type { OperationReply } from '../../lib/operation.ts';
import { formatTimestamp } from '../../lib/values/time.ts';
import { etagOf } from '../../mixins/mutation/version.ts';
import type { FilesDeps } from './deps.ts';
import { type FileRow, fileSql } from './files.sql.ts';

export const fileNotFound = (): PlatformError =>
  new PlatformError('FILE_NOT_FOUND', 'The file does not exist, or you have no access to it.');

export const recordNotFound = (): PlatformError =>
  new PlatformError('RECORD_NOT_FOUND', 'The record does not exist, or you have no access to it.');

/** The records through which the caller reads each of the files. */
export async function recordsOf(
  deps: FilesDeps,
  request: RequestContext,
  files: readonly Pick<FileRow, 'fileId' | 'records'>[],
): Promise<ReadonlyMap<string, readonly FileRecord[]>> {
  if (files.length === 0) return new Map();
  const asked = files.map(({ fileId, records }) => ({ fileId, records }));
  return Map.groupBy(await deps.seen({ asker: askerOf(request), files: asked }), ({ fileId }) => fileId);
}

interface SeenFile {
  readonly row: FileRow;
  readonly records: readonly FileRecord[];
  readonly owns: boolean;
  /** May rename and describe it. */
  readonly edits: boolean;
}

/** A file that the caller may read. Throws FILE_NOT_FOUND. */
export async function visibleFile(deps: FilesDeps, request: RequestContext, fileId: string): Promise<SeenFile> {
  const { tenantId, userId } = request;
  const row = await deps.database.shared('files', tenantId, (tx) => tx.first<FileRow>(fileSql(tenantId, fileId)));
  // An unknown file takes as long as one that the caller cannot read.
  const seen = await recordsOf(deps, request, [{ fileId, records: row?.records ?? [] }]);
  const records = seen.get(fileId) ?? [];
  const owns = row?.createdById === userId;
  if (!row || !(owns || records.length > 0)) throw fileNotFound();
  return { row, records, owns, edits: owns || records.some(({ edits }) => edits) };
}

/** Refuses a caller who may not change the record. A record that they cannot read looks like one that does not exist. */
export async function requireRecord(
  deps: FilesDeps,
  request: RequestContext,
  { objectApiName, recordId }: FileRow['records'][number],
): Promise<void> {
  const { tenantId, userId } = request;
  refuseDeniedObject(request, objectApiName);
  const { readsRecord, refusal } = await deps.checkAccess({
    tenantId,
    userId,
    objectApiName,
    record: { id: recordId },
    operations: ['update'],
    transitionKey: null,
    values: {},
    references: {},
  });
  if (!readsRecord) throw recordNotFound();
  if (refusal) throw PlatformError.fromWire(refusal);
}

/** An object that the policy of an agent denies looks like one that does not exist. */
export function refuseDeniedObject({ deniedObjects = [] }: RequestContext, objectApiName: string): void {
  if (deniedObjects.includes(objectApiName))
    throw new PlatformError('OBJECT_NOT_FOUND', 'The object does not exist, or you have no access to it.');
}

/** The record that a body names. UUIDs compare case-insensitively. */
export const namedRecord = <Named extends FileRow['records'][number]>(record: Named | undefined): Named | undefined =>
  record && { ...record, recordId: record.recordId.toLowerCase() };

/** The record that a query names; null when it names none. Throws PARAMETER_REQUIRED for half a name. */
export function recordInQuery(query: { objectApiName?: string; recordId?: string }): FileRow['records'][number] | null {
  const { objectApiName, recordId } = query;
  if (objectApiName === undefined && recordId === undefined) return null;
  if (objectApiName !== undefined && recordId !== undefined) return { objectApiName, recordId: recordId.toLowerCase() };
  const name = objectApiName === undefined ? 'objectApiName' : 'recordId';
  const message = `objectApiName and recordId name a record together: ${name} is missing.`;
  throw new PlatformError('PARAMETER_REQUIRED', message, {
    errors: [violation(`query:${name}`, 'PARAMETER_REQUIRED', message)],
  });
}

const time = (text: string): string => formatTimestamp(new Date(text));

export const presentFile = (row: FileRow, records: readonly FileRecord[]): FileBody => ({
  fileId: row.fileId,
  name: row.name,
  description: row.description,
  contentType: row.contentType,
  size: row.size,
  sha256: row.sha256,
  state: row.state,
  version: row.version,
  attachedTo: records.map(({ objectApiName, recordId, field }) => ({ objectApiName, recordId, field })),
  createdAt: time(row.createdAt),
  createdById: row.createdById,
  updatedAt: time(row.updatedAt),
});

/** The reply of a mutation that has made a file. */
export const madeFile = (row: FileRow, records: readonly FileRecord[]): OperationReply => ({
  status: 201,
  headers: { ETag: etagOf(row), Location: addressOf('files.items.get', { fileId: row.fileId }) },
  body: presentFile(row, records),
});

/** A new attachment, as the caller sees it: they can change the record, or could not have attached the file. */
export const attachedTo = (row: Pick<FileRow, 'fileId'>, target: FileRow['records'][number]): FileRecord => ({
  fileId: row.fileId,
  ...target,
  field: null,
  edits: true,
});
