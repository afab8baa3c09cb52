/** Uploads in chunks (the offsets of tus 1.0). Source: docs/reference/files.md#uploads. */
import { hash } from 'node:crypto';
import type { UploadBody } from '../../contracts/files.ts';
import { addressOf, type Handler } from '../../contracts/operations.ts';
import type { RequestContext } from '../../lib/context.ts';
import { PlatformError, violation } from '../../lib/errors/platform-error.ts';
import { LIMITS } from '../../lib/limits.ts';
import type { OperationCall, OperationReply } from '../../lib/operation.ts';
import { uuidv7 } from '../../lib/values/ids.ts';
import { formatTimestamp } from '../../lib/values/time.ts';
import { earlierReply } from '../../mixins/mutation/earlier.ts';
import { namedRecord, requireRecord } from './access.ts';
import { digestOf, headOf, inTime } from './bytes.ts';
import { contentTypeOf } from './content-type.ts';
import type { FilesDeps } from './deps.ts';
import { type FileForField, fileForField, giveToField, requireFileField } from './field.ts';
import {
  appendSql,
  countUploadsSql,
  deleteUploadSql,
  type FileRow,
  insertUploadSql,
  noteDigestSql,
  type PartRow,
  partsSql,
  type UploadRow,
  uploadSql,
} from './files.sql.ts';
import { created } from './items.ts';
import { change } from './mutation.ts';
import { forgetBlob, makeFile, newBlob, refuseLonger, refuseOverflow, refuseTooMany } from './store.ts';

export const createUpload: Handler<'files.uploads.create', FilesDeps> = async (deps, request, call) => {
  const { tenantId, userId } = request;
  const { name, contentType, size, sha256 = null } = call.body;
  const attachTo = namedRecord(call.body.attachTo);
  if (attachTo) await requireRecord(deps, request, attachTo);
  if (attachTo?.field !== undefined) await requireFileField(deps, request, attachTo.objectApiName, attachTo.field);
  return change(deps, request, call, async ({ tx }) => {
    const upload = await tx.one<UploadRow>(
      insertUploadSql(tenantId, userId, {
        uploadId: uuidv7(),
        name,
        contentType,
        size,
        sha256,
        objectApiName: attachTo?.objectApiName ?? null,
        recordId: attachTo?.recordId ?? null,
        field: attachTo?.field ?? null,
      }),
    );
    await refuseOverflow(tx, tenantId, 0);
    const { ofTenant, ofUser } = await tx.one<{ ofTenant: number; ofUser: number }>(countUploadsSql(tenantId, userId));
    refuseTooMany(ofUser, LIMITS.file_uploads_of_user_max, 'A user can have at most', 'open uploads');
    refuseTooMany(ofTenant, LIMITS.file_uploads_of_tenant_max, 'A tenant can have at most', 'open uploads');
    const Location = addressOf('files.uploads.head', { uploadId: upload.uploadId });
    return { status: 201, headers: { Location }, body: presentUpload(upload) };
  });
};

export const headUpload: Handler<'files.uploads.head', FilesDeps> = async (deps, request, { path }) => {
  const upload = await openUpload(deps, request, path.uploadId);
  return { headers: offsetHeaders(upload.received, upload.size), body: presentUpload(upload) };
};

export const appendChunk: Handler<'files.uploads.append', FilesDeps> = async (deps, request, call) => {
  const { tenantId } = request;
  const { body } = call;
  const { received } = body;
  if (received && 'failed' in received) {
    await forgetBlob(deps, tenantId, received);
    return { body: null };
  }
  const upload = await openUpload(deps, request, call.path.uploadId);
  if (Number(call.headers.uploadOffset) !== upload.received) throw otherOffset(upload.received);
  const maxBytes = Math.min(LIMITS.file_chunk_max_bytes, upload.size - upload.received);
  refuseLonger(body.bytes, maxBytes);
  refuseShort(received?.bytes ?? body.bytes, upload);
  if (!received)
    return {
      body: null,
      receive: {
        key: await newBlob(deps, tenantId),
        maxBytes,
        continues: { id: upload.uploadId, from: upload.received },
      },
    };
  const grown = await deps.database.shared('files', tenantId, (tx) =>
    tx.first<{ received: number }>(appendSql(tenantId, upload, received)),
  );
  // Another chunk was faster, or the upload has ended meanwhile.
  if (!grown) throw otherOffset((await openUpload(deps, request, call.path.uploadId)).received);
  return { status: 204, headers: offsetHeaders(grown.received, upload.size), body: null };
};

export const completeUpload: Handler<'files.uploads.complete', FilesDeps> = async (deps, request, call) => {
  const { tenantId, userId } = request;
  const { uploadId } = call.path;
  const earlier = await earlierReply(deps, request, call);
  if (earlier) return earlier;
  const making = makingCall(call, uploadId);
  const upload = await findUpload(deps, request, uploadId);
  if (!upload) {
    const made = await earlierReply(deps, request, making);
    if (!made) throw uploadNotFound();
    const file = fileForField(made);
    await requireFileField(deps, request, file.objectApiName, file.field);
    return giveToField(deps, request, call, file);
  }
  if (upload.received !== upload.size) throw otherOffset(upload.received);
  const parts = await deps.database.shared('files', tenantId, (tx) =>
    tx.all<PartRow>(partsSql(tenantId, { uploadId })),
  );
  const { sha256 } = call.body;
  if ((upload.sha256 ?? sha256) !== sha256 || (await digestOfUpload(deps, request, upload, parts)) !== sha256)
    throw new PlatformError('UPLOAD_CHECKSUM_MISMATCH', 'What was uploaded does not have this SHA-256.');
  const target = targetOf(upload);
  if (target) await requireRecord(deps, request, target);
  const { name, field } = upload;
  const forField = target && field !== null ? { ...target, field } : null;
  if (forField) await requireFileField(deps, request, forField.objectApiName, forField.field);
  const contentType = await contentTypeOf(upload.contentType, await headOf(deps.blobs, parts));
  const attachTo = forField ? null : target;
  const make = (one: typeof call): Promise<OperationReply> =>
    change(deps, request, one, async (unit) => {
      if (!(await unit.tx.first(uploadSql(tenantId, uploadId, userId, true)))) throw uploadNotFound();
      const content = { sha256, bytes: upload.size, from: { uploadId } };
      const row = await makeFile(deps, unit, { name, contentType, content, attachTo });
      const reply = created(unit, row, attachTo);
      return forField ? { body: { fileId: row.fileId, ...forField } satisfies FileForField } : reply;
    });
  if (!forField) return make(call);
  return giveToField(deps, request, call, fileForField(await make(making)));
};

/**
 * The call under the key of the upload. A file for a field is made under it and the upload ends; what comes back is stored as
 * long as keys are: a request that is sent again finds it, and goes on with the field.
 */
const makingCall = <Call extends OperationCall & { fingerprint: string }>(call: Call, uploadId: string): Call => ({
  ...call,
  headers: { ...call.headers, idempotencyKey: `upload-${uploadId}` },
  fingerprint: hash('sha256', uploadId),
});

export const deleteUpload: Handler<'files.uploads.delete', FilesDeps> = (deps, request, call) =>
  change(deps, request, call, async ({ tx }) => {
    const { rowCount } = await tx.query(deleteUploadSql(request.tenantId, call.path.uploadId, request.userId));
    if (rowCount === 0) throw uploadNotFound();
    return { status: 204, body: null };
  });

/**
 * SHA-256 of a complete upload. Reads its bytes only if no gateway has hashed all of them on the way, in turn with those of
 * other tenants. Throws SERVICE_UNAVAILABLE when that takes long: a later request finds what was read meanwhile.
 */
async function digestOfUpload(
  { blobs, database, digests, reading }: FilesDeps,
  request: RequestContext,
  { uploadId, receivedSha256 }: UploadRow,
  parts: readonly PartRow[],
): Promise<string> {
  if (receivedSha256 !== null) return receivedSha256;
  const { tenantId, userId } = request;
  let digest = digests.get(uploadId);
  if (!digest) {
    const read = async (): Promise<string> => {
      // Another process may have read them while this one waited for its turn.
      const upload = await database.shared('files', tenantId, (tx) =>
        tx.first<UploadRow>(uploadSql(tenantId, uploadId, userId)),
      );
      if (!upload) throw uploadNotFound();
      if (upload.receivedSha256 !== null) return upload.receivedSha256;
      const sha256 = await digestOf(blobs, parts);
      await database.shared('files', tenantId, (tx) => tx.query(noteDigestSql(tenantId, uploadId, sha256)));
      return sha256;
    };
    digest = reading.run({ key: tenantId, max: 1 }, read).finally(() => digests.delete(uploadId));
    digests.set(uploadId, digest);
  }
  return inTime(digest);
}

/** The upload of the caller, or UPLOAD_NOT_FOUND: nobody else can use it. */
async function openUpload(deps: FilesDeps, request: RequestContext, uploadId: string): Promise<UploadRow> {
  const upload = await findUpload(deps, request, uploadId);
  if (!upload) throw uploadNotFound();
  return upload;
}

function findUpload(
  { database }: FilesDeps,
  { tenantId, userId }: RequestContext,
  uploadId: string,
): Promise<UploadRow | null> {
  const statement = uploadSql(tenantId, uploadId, userId);
  return database.shared('files', tenantId, (tx) => tx.first<UploadRow>(statement));
}

const targetOf = ({ objectApiName, recordId }: UploadRow): FileRow['records'][number] | null =>
  objectApiName !== null && recordId !== null ? { objectApiName, recordId } : null;

/** Minimum length of a chunk: large enough that no upload has more than file_chunks_max chunks. */
const chunkMin = (size: number): number =>
  Math.max(LIMITS.file_chunk_min_bytes, Math.ceil(size / LIMITS.file_chunks_max));

function refuseShort(bytes: number | null, { received, size }: UploadRow): void {
  if (bytes === null || received + bytes === size || bytes >= chunkMin(size)) return;
  const message = `A chunk that is not the last one has ${chunkMin(size)} bytes at least.`;
  throw new PlatformError('PARAMETER_INVALID', message, {
    errors: [violation('header:Content-Length', 'PARAMETER_INVALID', message)],
  });
}

const offsetHeaders = (received: number, size: number): Record<string, string> => ({
  'Upload-Offset': String(received),
  'Upload-Length': String(size),
});

const presentUpload = ({ uploadId, name, received, size, expiresAt }: UploadRow): UploadBody => ({
  uploadId,
  name,
  offset: received,
  size,
  chunkMinBytes: chunkMin(size),
  chunkMaxBytes: LIMITS.file_chunk_max_bytes,
  expiresAt: formatTimestamp(new Date(expiresAt)),
  uploadUrl: addressOf('files.uploads.append', { uploadId }),
});

const uploadNotFound = (): PlatformError =>
  new PlatformError('UPLOAD_NOT_FOUND', 'The upload does not exist, has ended or has expired.');

const otherOffset = (offset: number): PlatformError =>
  new PlatformError('UPLOAD_OFFSET_CONFLICT', `The upload has ${offset} bytes.`, { details: { offset } });
