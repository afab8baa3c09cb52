/** Statements about files, contents and blobs. */
import { LIMITS } from '../../lib/limits.ts';
import { Sql } from '../../mixins/database/sql.ts';
import type { Statement } from '../../mixins/database/statement.ts';

/** A blob can be used for this long after its key was noted. The sweep removes unused ones after twice that (UNUSED_HOURS). */
const BLOB_TAKEN_HOURS = 12;
const USABLE = `b.upload_id IS NULL AND b.sha256 IS NULL AND b.noted_at > now() - interval '${BLOB_TAKEN_HOURS} hours'`;

export interface FileRow {
  readonly fileId: string;
  readonly name: string;
  readonly description: string | null;
  readonly contentType: string;
  readonly size: number;
  readonly sha256: string;
  readonly state: 'scanning' | 'ready' | 'quarantined';
  readonly version: number;
  readonly createdAt: string;
  readonly createdById: string;
  readonly updatedAt: string;
  /** Records that it is attached to without a field. */
  readonly records: readonly { readonly objectApiName: string; readonly recordId: string }[];
}

const COLUMNS = `f.file_id AS "fileId", f.name, f.description, f.content_type AS "contentType", c.bytes AS size, f.sha256,
  CASE WHEN f.scanned THEN c.state ELSE 'scanning' END AS state, f.version, f.created_at AS "createdAt", f.created_by_id AS "createdById", f.updated_at AS "updatedAt",
  (SELECT coalesce(json_agg(json_build_object('objectApiName', a.object_api_name, 'recordId', a.record_id)), '[]')
    FROM files.attachments a WHERE a.tenant_id = f.tenant_id AND a.file_id = f.file_id) AS records`;

const FILES = 'files.files f JOIN files.contents c ON c.tenant_id = f.tenant_id AND c.sha256 = f.sha256';

export function fileSql(tenantId: string, fileId: string, lock = false): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT ${COLUMNS} FROM ${FILES}
    WHERE f.tenant_id = ${sql.bind(tenantId, 'uuid')} AND f.file_id = ${sql.bind(fileId, 'uuid')}${lock ? ' FOR UPDATE OF f' : ''}`);
}

interface FilesQuery {
  /** Files of a record, or those that a user has stored. */
  readonly of:
    | { readonly objectApiName: string; readonly recordId: string; readonly inFields: readonly string[] }
    | { readonly userId: string };
  readonly before: string | null;
  readonly take: number;
}

/** The newest files first. */
export function filesSql(tenantId: string, { of, before, take }: FilesQuery): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  const found =
    'userId' in of
      ? `f.created_by_id = ${sql.bind(of.userId, 'uuid')}`
      : `f.file_id IN (SELECT unnest(${sql.bind(of.inFields, 'uuid[]')}) UNION
          SELECT a.file_id FROM files.attachments a WHERE a.tenant_id = ${tenant}
            AND a.record_id = ${sql.bind(of.recordId, 'uuid')} AND a.object_api_name = ${sql.bind(of.objectApiName, 'text')})`;
  const older = before === null ? '' : ` AND f.file_id < ${sql.bind(before, 'uuid')}`;
  return sql.statement(`SELECT ${COLUMNS} FROM ${FILES} WHERE f.tenant_id = ${tenant} AND ${found}${older}
    ORDER BY f.file_id DESC LIMIT ${sql.bind(take, 'int')}`);
}

/** Notes a key before anything is stored under it. */
export function noteBlobSql(tenantId: string, key: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `INSERT INTO files.blobs (tenant_id, key) VALUES (${sql.bind(tenantId, 'uuid')}, ${sql.bind(key, 'text')})`,
  );
}

/** Forgets a key under which nothing can be. */
export function forgetBlobSql(tenantId: string, key: string): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM files.blobs b
    WHERE b.tenant_id = ${sql.bind(tenantId, 'uuid')} AND b.key = ${sql.bind(key, 'text')} AND ${USABLE}`);
}

interface ContentToKeep {
  readonly sha256: string;
  readonly bytes: number;
  readonly state: FileRow['state'];
}

/** Inserts a content unless the tenant has it, and locks it. Answers one row; `isNew`: takeBlobsSql must give it its bytes. */
export function keepContentSql(tenantId: string, { sha256, bytes, state }: ContentToKeep): Statement {
  const sql = new Sql();
  return sql.statement(`INSERT INTO files.contents (tenant_id, sha256, bytes, state)
    VALUES (${sql.bind(tenantId, 'uuid')}, ${sql.bind(sha256, 'text')}, ${sql.bind(bytes, 'bigint')}, ${sql.bind(state, 'text')})
    ON CONFLICT (tenant_id, sha256) DO UPDATE SET sha256 = excluded.sha256
    RETURNING xmax = 0 AS "isNew"`);
}

/** Makes a blob, or those of an upload, the bytes of a content. Answers no row when the sweep has removed them. */
export function takeBlobsSql(
  tenantId: string,
  sha256: string,
  from: { readonly key: string; readonly bytes: number } | { readonly uploadId: string },
): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  const content = sql.bind(sha256, 'text');
  return sql.statement(
    'key' in from
      ? `UPDATE files.blobs b SET sha256 = ${content}, position = 0, bytes = ${sql.bind(from.bytes, 'bigint')}
          WHERE b.tenant_id = ${tenant} AND b.key = ${sql.bind(from.key, 'text')} AND ${USABLE} RETURNING 1`
      : `UPDATE files.blobs b SET sha256 = ${content}, upload_id = NULL
          WHERE b.tenant_id = ${tenant} AND b.upload_id = ${sql.bind(from.uploadId, 'uuid')} RETURNING 1`,
  );
}

export function usageSql(tenantId: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT bytes FROM files.usage WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}`);
}

interface NewFile extends Pick<FileRow, 'fileId' | 'name' | 'contentType' | 'sha256'> {
  readonly userId: string;
  /** false: it is not readable before a scan of its content. */
  readonly scanned: boolean;
}

export function insertFileSql(tenantId: string, file: NewFile): Statement {
  const { fileId, name, contentType, sha256, userId, scanned } = file;
  const sql = new Sql();
  return sql.statement(`INSERT INTO files.files
      (tenant_id, file_id, name, content_type, sha256, created_by_id, scanned, check_at)
    VALUES (${sql.bind(tenantId, 'uuid')}, ${sql.bind(fileId, 'uuid')}, ${sql.bind(name, 'text')},
      ${sql.bind(contentType, 'text')}, ${sql.bind(sha256, 'text')}, ${sql.bind(userId, 'uuid')},
      ${sql.bind(scanned, 'boolean')}, now() + make_interval(days => ${LIMITS.file_unattached_days}))`);
}

export interface AttachmentCounts {
  readonly ofFile: number;
  readonly ofRecord: number;
}

/** Two statements: one attaches the file, the other then counts the attachments of file and record. */
export function attachSql(
  tenantId: string,
  fileId: string,
  target: FileRow['records'][number],
): [Statement, Statement] {
  const insert = new Sql();
  const count = new Sql();
  const values = (sql: Sql) => [
    sql.bind(tenantId, 'uuid'),
    sql.bind(fileId, 'uuid'),
    sql.bind(target.objectApiName, 'text'),
    sql.bind(target.recordId, 'uuid'),
  ];
  const [tenant, file, object, record] = values(count);
  return [
    insert.statement(`INSERT INTO files.attachments (tenant_id, file_id, object_api_name, record_id)
      VALUES (${values(insert).join(', ')}) ON CONFLICT DO NOTHING`),
    count.statement(`SELECT
        (SELECT count(*) FROM files.attachments WHERE tenant_id = ${tenant} AND file_id = ${file})::int AS "ofFile",
        (SELECT count(*) FROM files.attachments WHERE tenant_id = ${tenant} AND record_id = ${record}
          AND object_api_name = ${object})::int AS "ofRecord"`),
  ];
}

export function detachSql(tenantId: string, fileId: string, target: FileRow['records'][number]): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM files.attachments
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND file_id = ${sql.bind(fileId, 'uuid')}
      AND object_api_name = ${sql.bind(target.objectApiName, 'text')} AND record_id = ${sql.bind(target.recordId, 'uuid')}`);
}

export function updateFileSql(
  tenantId: string,
  fileId: string,
  { name, description }: Pick<FileRow, 'name' | 'description'>,
): Statement {
  const sql = new Sql();
  return sql.statement(`UPDATE files.files SET name = ${sql.bind(name, 'text')},
      description = ${sql.bind(description, 'text')}, version = version + 1, updated_at = now()
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND file_id = ${sql.bind(fileId, 'uuid')}`);
}

export function deleteFileSql(tenantId: string, fileId: string): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM files.files
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND file_id = ${sql.bind(fileId, 'uuid')}`);
}

export interface PartRow {
  readonly key: string;
  readonly bytes: number;
}

/** Blobs with the bytes of a content, or of an upload, in their order. */
export function partsSql(tenantId: string, of: { readonly sha256: string } | { readonly uploadId: string }): Statement {
  const sql = new Sql();
  const owner =
    'sha256' in of ? `b.sha256 = ${sql.bind(of.sha256, 'text')}` : `b.upload_id = ${sql.bind(of.uploadId, 'uuid')}`;
  return sql.statement(`SELECT b.key, b.bytes FROM files.blobs b
    WHERE b.tenant_id = ${sql.bind(tenantId, 'uuid')} AND ${owner} AND b.bytes > 0 ORDER BY b.position`);
}

export interface UploadRow {
  readonly uploadId: string;
  readonly name: string;
  readonly contentType: string;
  readonly size: number;
  readonly received: number;
  /** SHA-256 of the bytes that are there; null: not known. */
  readonly receivedSha256: string | null;
  readonly sha256: string | null;
  readonly objectApiName: string | null;
  readonly recordId: string | null;
  readonly field: string | null;
  readonly expiresAt: string;
}

const UPLOAD_COLUMNS = `upload_id AS "uploadId", name, content_type AS "contentType", bytes AS size, received, received_sha256 AS "receivedSha256", sha256,
  object_api_name AS "objectApiName", record_id AS "recordId", field, expires_at AS "expiresAt"`;

/** The upload of a user that has not expired. */
export function uploadSql(tenantId: string, uploadId: string, userId: string, lock = false): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT ${UPLOAD_COLUMNS} FROM files.uploads
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND upload_id = ${sql.bind(uploadId, 'uuid')}
      AND created_by_id = ${sql.bind(userId, 'uuid')} AND expires_at > now()${lock ? ' FOR UPDATE' : ''}`);
}

export function insertUploadSql(
  tenantId: string,
  userId: string,
  upload: Omit<UploadRow, 'received' | 'receivedSha256' | 'expiresAt'>,
): Statement {
  const sql = new Sql();
  return sql.statement(`INSERT INTO files.uploads
      (tenant_id, upload_id, created_by_id, name, content_type, bytes, sha256, object_api_name, record_id, field, expires_at)
    VALUES (${sql.bind(tenantId, 'uuid')}, ${sql.bind(upload.uploadId, 'uuid')}, ${sql.bind(userId, 'uuid')},
      ${sql.bind(upload.name, 'text')}, ${sql.bind(upload.contentType, 'text')}, ${sql.bind(upload.size, 'bigint')},
      ${sql.bind(upload.sha256, 'text')}, ${sql.bind(upload.objectApiName, 'text')}, ${sql.bind(upload.recordId, 'uuid')}, ${sql.bind(upload.field, 'text')},
      now() + make_interval(hours => ${LIMITS.file_upload_hours}))
    RETURNING ${UPLOAD_COLUMNS}`);
}

/** Open uploads of a tenant and of a user. */
export function countUploadsSql(tenantId: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT count(*)::int AS "ofTenant",
      (count(*) FILTER (WHERE created_by_id = ${sql.bind(userId, 'uuid')}))::int AS "ofUser"
    FROM files.uploads WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND expires_at > now()`);
}

/** Appends a blob to an upload. Answers no row when the upload does not end at the offset, or it or the blob is gone. */
export function appendSql(
  tenantId: string,
  { uploadId, received: offset }: Pick<UploadRow, 'uploadId' | 'received'>,
  { key, bytes, wholeSha256 }: PartRow & { readonly wholeSha256: string | null },
): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  const at = sql.bind(offset, 'bigint');
  const size = sql.bind(bytes, 'bigint');
  const blob = sql.bind(key, 'text');
  return sql.statement(`WITH grown AS (
      UPDATE files.uploads u SET received = received + ${size}, received_sha256 = ${sql.bind(wholeSha256, 'text')}
      WHERE u.tenant_id = ${tenant} AND u.upload_id = ${sql.bind(uploadId, 'uuid')} AND u.received = ${at}
        AND u.received + ${size} <= u.bytes AND u.expires_at > now()
        AND EXISTS (SELECT FROM files.blobs b WHERE b.tenant_id = ${tenant} AND b.key = ${blob} AND ${USABLE})
      RETURNING u.upload_id, u.received),
    taken AS (UPDATE files.blobs b SET upload_id = grown.upload_id, position = ${at}, bytes = ${size} FROM grown
      WHERE b.tenant_id = ${tenant} AND b.key = ${blob})
    SELECT received FROM grown`);
}

/** Stores the SHA-256 of a complete upload. */
export function noteDigestSql(tenantId: string, uploadId: string, sha256: string): Statement {
  const sql = new Sql();
  return sql.statement(`UPDATE files.uploads SET received_sha256 = ${sql.bind(sha256, 'text')}
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND upload_id = ${sql.bind(uploadId, 'uuid')} AND received = bytes`);
}

export function deleteUploadSql(tenantId: string, uploadId: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM files.uploads WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}
    AND upload_id = ${sql.bind(uploadId, 'uuid')} AND created_by_id = ${sql.bind(userId, 'uuid')} RETURNING 1`);
}
