/** Statements that remove what nothing needs any more. */
import { LIMITS } from '../../lib/limits.ts';
import { Sql } from '../../mixins/database/sql.ts';
import type { Statement } from '../../mixins/database/statement.ts';
import type { FileRow } from './files.sql.ts';

/** No request can still use a blob that has belonged to nothing for this long: twice BLOB_TAKEN_HOURS of files.sql.ts. */
const UNUSED_HOURS = 24;

const AGAIN = `now() + make_interval(days => ${LIMITS.file_unattached_days})`;

export function expiredUploadsSql(tenantId: string, take: number): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  return sql.statement(`DELETE FROM files.uploads WHERE tenant_id = ${tenant} AND upload_id IN (
    SELECT upload_id FROM files.uploads WHERE tenant_id = ${tenant} AND expires_at < now()
    LIMIT ${sql.bind(take, 'int')} FOR UPDATE SKIP LOCKED)`);
}

export type CheckedFile = Pick<FileRow, 'fileId' | 'records'>;

/** Files due for the check (`check_at`) whether a record has them. */
export function filesToCheckSql(tenantId: string, take: number): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT f.file_id AS "fileId",
      (SELECT coalesce(json_agg(json_build_object('objectApiName', a.object_api_name, 'recordId', a.record_id)), '[]')
        FROM files.attachments a WHERE a.tenant_id = f.tenant_id AND a.file_id = f.file_id) AS records
    FROM files.files f WHERE f.tenant_id = ${sql.bind(tenantId, 'uuid')} AND f.check_at <= now()
    ORDER BY f.check_at LIMIT ${sql.bind(take, 'int')}`);
}

/** Removes files that no record has now, nor had at the previous check. files.hold keeps a file that a record is about to get. */
export function removeFilesSql(tenantId: string, ids: readonly string[]): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM files.files WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}
    AND file_id = ANY (${sql.bind(ids, 'uuid[]')}) AND unattached AND check_at <= now()`);
}

/** Stores the outcome of the check, and when the next one is due. */
export function checkedFilesSql(tenantId: string, ids: readonly string[], attached: readonly string[]): Statement {
  const sql = new Sql();
  return sql.statement(`UPDATE files.files SET check_at = ${AGAIN}, unattached = file_id <> ALL (${sql.bind(attached, 'uuid[]')})
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND file_id = ANY (${sql.bind(ids, 'uuid[]')})`);
}

/** Locks contents that no file has, so that no new file takes them. */
export function unusedContentsSql(tenantId: string, take: number): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT sha256 FROM files.contents c WHERE c.tenant_id = ${sql.bind(tenantId, 'uuid')} AND NOT EXISTS (
      SELECT FROM files.files f WHERE f.tenant_id = c.tenant_id AND f.sha256 = c.sha256)
    LIMIT ${sql.bind(take, 'int')} FOR UPDATE SKIP LOCKED`);
}

/** Removes locked contents. Tests again: a file may have taken one before it was locked. */
export function removeContentsSql(tenantId: string, hashes: readonly string[]): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM files.contents c WHERE c.tenant_id = ${sql.bind(tenantId, 'uuid')}
    AND c.sha256 = ANY (${sql.bind(hashes, 'text[]')}) AND NOT EXISTS (
      SELECT FROM files.files f WHERE f.tenant_id = c.tenant_id AND f.sha256 = c.sha256)`);
}

/** Blobs of no upload and no content; `all`: every blob, for the erasure of a tenant. */
export function unusedBlobsSql(tenantId: string, take: number, all = false): Statement {
  const sql = new Sql();
  const unused = ` AND upload_id IS NULL AND sha256 IS NULL AND noted_at < now() - interval '${UNUSED_HOURS} hours'`;
  return sql.statement(`SELECT key FROM files.blobs WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}${all ? '' : unused}
    LIMIT ${sql.bind(take, 'int')}`);
}

export function forgetBlobsSql(tenantId: string, keys: readonly string[]): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM files.blobs
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND key = ANY (${sql.bind(keys, 'text[]')})`);
}

/** Contents of files that have waited for their scan for so long that its job may be lost. */
export function unscannedSql(tenantId: string, take: number): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT DISTINCT sha256 FROM files.files WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}
    AND NOT scanned AND created_at < now() - interval '1 hour' LIMIT ${sql.bind(take, 'int')}`);
}
