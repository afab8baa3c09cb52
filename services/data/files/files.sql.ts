/** Statements that find the records which files belong to. */
import type { AttachedFile, FileRecord } from '../../../contracts/files.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { isFile } from '../../../lib/schema/field-types/registry.ts';
import type { ObjectMeta, Snapshot } from '../../../lib/schema/snapshot.ts';
import { memoize } from '../../../lib/values/memoize.ts';
import { literal } from '../../../lib/values/sql-text.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { columnName, reachSql, schemaOf, table } from '../sql.ts';
import { VERSION_COLUMNS, type Versions, type View } from '../view.ts';

/** The fields of an object that hold files. */
export const fileFields = memoize((object: ObjectMeta) => Object.values(object.fields).filter(isFile));

/** There is at least one row; its fileId is null when the user can read no file. */
export type SeenFileRow = Versions & ({ readonly fileId: null } | FileRecord);

/** Ids of the files, bound once, by the first part of the statement that needs them. */
const idsOf = (files: readonly AttachedFile[], sql: Sql) => {
  let bound: string | null = null;
  return (): string =>
    (bound ??= sql.bind(
      files.map(({ fileId }) => fileId),
      'uuid[]',
    ));
};

const attachmentsOf = (files: readonly AttachedFile[], sql: Sql) => {
  const pairs = files.flatMap(({ fileId, records }) => records.map((record) => ({ fileId, ...record })));
  const byObject = Map.groupBy(pairs, ({ objectApiName }) => objectApiName);
  /** Files and records of an object; null: there are none. */
  return ({ apiName }: ObjectMeta): string | null => {
    const found = byObject.get(apiName);
    return found
      ? `unnest(${sql.bind(
          found.map(({ fileId }) => fileId),
          'uuid[]',
        )}, ${sql.bind(
          found.map(({ recordId }) => recordId),
          'uuid[]',
        )})`
      : null;
  };
};

/** The records that the user can read, through which they can read the files. */
export function seenFilesSql(
  view: View,
  files: readonly AttachedFile[],
  deniedObjects: readonly string[] = [],
): Statement {
  const sql = new Sql();
  const schema = schemaOf(view.tenantId);
  const ids = idsOf(files, sql);
  const attached = attachmentsOf(files, sql);
  const seen = Object.values(view.access.objects).flatMap(({ object, fields, permission }) => {
    if (deniedObjects.includes(object.apiName)) return [];
    const pairs = attached(object);
    const readable = fileFields(object).filter(({ apiName }) => fields[apiName]?.read);
    if (!pairs && readable.length === 0) return [];
    const records = table(schema, object.apiName);
    const visible = reachSql(view, sql, object.apiName, 'read', 't');
    const edits = permission.update ? reachSql(view, sql, object.apiName, 'edit', 't') : 'false';
    const columns = (fileId: string, field: string): string =>
      `SELECT ${fileId} AS "fileId", ${literal(object.apiName)} AS "objectApiName", t."id" AS "recordId",
        ${field} AS field, ${edits} AS edits`;
    return [
      ...(pairs
        ? [
            `${columns('asked.file_id', 'NULL::text')} FROM ${pairs} asked(file_id, record_id)
              JOIN ${records} t ON t."id" = asked.record_id WHERE ${visible}`,
          ]
        : []),
      ...readable.map(
        (field) => `SELECT found.* FROM unnest(${ids()}) asked(file_id), LATERAL (
          ${columns('asked.file_id', literal(field.apiName))} FROM ${records} t
          WHERE t.${columnName(field)} = asked.file_id AND ${visible} LIMIT ${LIMITS.file_records_shown_max}) found`,
      ),
    ];
  });
  const found = seen.length > 0 ? seen.join('\nUNION ALL ') : 'SELECT NULL::uuid AS "fileId" WHERE false';
  return sql.statement(
    `SELECT ${VERSION_COLUMNS}, found.* FROM ${schema}._state state LEFT JOIN (${found}) found ON true`,
  );
}

export interface FilesOfRecordRow extends Versions {
  /** null: the user cannot read the record. */
  readonly fileIds: readonly string[] | null;
}

/** The files in fields of a record that the user can read. */
export function filesOfRecordSql(view: View, object: ObjectMeta, recordId: string): Statement {
  const sql = new Sql();
  const schema = schemaOf(view.tenantId);
  const access = view.access.objects[object.apiName];
  const columns = fileFields(object).filter(({ apiName }) => access?.fields[apiName]?.read);
  const values = columns.map((field) => `t.${columnName(field)}`).join(', ');
  return sql.statement(`SELECT ${VERSION_COLUMNS}, found.ids AS "fileIds" FROM ${schema}._state state LEFT JOIN (
      SELECT array_remove(ARRAY[${values}]::uuid[], NULL) AS ids FROM ${table(schema, object.apiName)} t
      WHERE t."id" = ${sql.bind(recordId, 'uuid')} AND ${reachSql(view, sql, object.apiName, 'read', 't')}) found ON true`);
}

/** Those of the files that a record has, whoever can read it; null: no object of the tenant can have one. */
export function referencedFilesSql(
  tenantId: string,
  { objects }: Snapshot,
  files: readonly AttachedFile[],
): Statement | null {
  const sql = new Sql();
  const schema = schemaOf(tenantId);
  const ids = idsOf(files, sql);
  const attached = attachmentsOf(files, sql);
  const found = Object.values(objects).flatMap((object) => {
    const pairs = attached(object);
    const records = table(schema, object.apiName);
    const name = literal(object.apiName);
    return [
      ...(pairs
        ? [
            `SELECT asked.file_id AS id FROM ${pairs} asked(file_id, record_id)
              WHERE EXISTS (SELECT FROM ${records} t WHERE t."id" = asked.record_id)
                OR EXISTS (SELECT FROM ${schema}._recycle_bin bin WHERE bin.object = ${name} AND bin.record_id = asked.record_id)`,
          ]
        : []),
      ...fileFields(object).flatMap((field) => [
        `SELECT asked.id FROM unnest(${ids()}) asked(id)
          WHERE EXISTS (SELECT FROM ${records} t WHERE t.${columnName(field)} = asked.id)`,
        `SELECT (bin.record ->> ${literal(field.apiName)})::uuid FROM ${schema}._recycle_bin bin
          WHERE bin.object = ${name} AND bin.record ->> ${literal(field.apiName)} = ANY (${ids()}::text[])`,
      ]),
    ];
  });
  return found.length > 0 ? sql.statement(found.join('\nUNION ')) : null;
}

export interface HeldFileRow {
  readonly fileId: string;
  readonly createdById: string;
  readonly objectApiName: string | null;
  readonly recordId: string | null;
}

/** Files that a record is about to refer to: until the transaction ends none of them is deleted. */
export function holdFilesSql(tenantId: string, ids: readonly string[]): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT file_id AS "fileId", created_by_id AS "createdById", object_api_name AS "objectApiName",
      record_id AS "recordId"
    FROM files.hold(${sql.bind(tenantId, 'uuid')}, ${sql.bind(ids, 'uuid[]')})`);
}
