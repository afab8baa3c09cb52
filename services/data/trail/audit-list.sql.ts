import { tenantSchema } from '../../../lib/context.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { firstUuidv7 } from '../../../lib/values/ids.ts';
import { identifier } from '../../../lib/values/sql-text.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { columnType } from '../sql.ts';
import { VERSION_COLUMNS, type Versions, type View } from '../view.ts';
import { isDecimal } from './field-changes.sql.ts';

/** Ids contain the time at which they were made: a range of time is a range of ids, give or take what clocks differ. */
export const CLOCKS_DIFFER_MS = 60 * 60 * 1_000;

/** Entries that one page examines for filters that have no index. */
const EXAMINED_MAX = 50_000;

export interface AuditFilters {
  readonly actorId: string | null;
  readonly recordId: string | null;
  readonly agentRunId: string | null;
  /** Milliseconds since 1970. */
  readonly from: number | null;
  readonly to: number | null;
  /** These have no index. */
  readonly objectApiName: string | null;
  readonly operationId: string | null;
  readonly outcome: string | null;
  /** Objects whose entries are left out. */
  readonly withoutObjects: readonly string[];
}

/** There is at least one row; its entry is null when there is none to return. */
export type AuditRow = Versions &
  ({ readonly entry: string; readonly auditId: string } | { readonly entry: null; readonly auditId: null });

/** The newest entries that match the filters, after the id of an entry. */
export function auditStatement(
  view: View,
  filters: AuditFilters,
  afterId: string | null,
  limit: number,
  ieee754Compatible: boolean,
): Statement {
  const sql = new Sql();
  const schema = identifier(tenantSchema(view.tenantId));
  const text = `SELECT ${VERSION_COLUMNS}, page.entry::text, page.audit_id::text AS "auditId"
    FROM ${schema}._state state
    LEFT JOIN LATERAL (
      SELECT audit.audit_id, (SELECT row_to_json(entry) FROM (
          SELECT audit.audit_id AS "auditId", audit.at,
            (SELECT row_to_json(actor) FROM (
              SELECT audit.user_id AS "userId", audit.client_id AS "clientId",
                audit.agent_run_id AS "agentRunId") actor) AS actor,
            audit.channel, audit.operation_id AS "operationId", audit.outcome, audit.code,
            audit.request_id AS "requestId", audit.object AS "objectApiName", audit.record_id AS "recordId",
            ${changesSql(sql, view, ieee754Compatible)} AS changes, audit.ip, link.position,
            encode(link.prev_hash, 'hex') AS "prevHash", encode(link.hash, 'hex') AS hash) entry) AS entry
      FROM (
        SELECT * FROM (SELECT * ${examinedSql(sql, schema, filters, afterId)} LIMIT ${EXAMINED_MAX}) audit
        ${unindexedWhere(sql, filters)} ORDER BY audit.audit_id DESC LIMIT ${limit}) audit
      LEFT JOIN ${schema}._audit_chain link ON link.audit_id = audit.audit_id
      ORDER BY audit.audit_id DESC) page ON true`;
  return { text, values: sql.values };
}

/** The id of the last entry that a page examines at most; no row when there are fewer. */
export function lastExaminedStatement(schema: string, filters: AuditFilters, afterId: string | null): Statement {
  const sql = new Sql();
  const examined = examinedSql(sql, schema, filters, afterId);
  const text = `SELECT audit.audit_id::text AS "auditId" ${examined} LIMIT 1 OFFSET ${EXAMINED_MAX - 1}`;
  return { text, values: sql.values };
}

const whereSql = (conditions: readonly string[]): string =>
  conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : '';

const equalSql = (sql: Sql, column: string, value: string | null, type: string): string[] =>
  value === null ? [] : [`audit.${column} = ${sql.bind(value, type)}`];

/** `WHERE …` of the filters that have no index. */
const unindexedWhere = (sql: Sql, { objectApiName, operationId, outcome, withoutObjects }: AuditFilters): string =>
  whereSql([
    ...(withoutObjects.length > 0 ? [`audit.object = ANY (${sql.bind(withoutObjects, 'text[]')}) IS NOT TRUE`] : []),
    ...equalSql(sql, 'object', objectApiName, 'text'),
    ...equalSql(sql, 'operation_id', operationId, 'text'),
    ...equalSql(sql, 'outcome', outcome, 'text'),
  ]);

/** `FROM … WHERE … ORDER BY …` of the entries after an id that match the filters with an index, newest first. */
function examinedSql(sql: Sql, schema: string, filters: AuditFilters, afterId: string | null): string {
  const { actorId, recordId, agentRunId, from, to } = filters;
  const conditions = [
    ...equalSql(sql, 'user_id', actorId, 'uuid'),
    ...equalSql(sql, 'record_id', recordId, 'uuid'),
    ...equalSql(sql, 'agent_run_id', agentRunId, 'uuid'),
    ...(afterId === null ? [] : [`audit.audit_id < ${sql.bind(afterId, 'uuid')}`]),
  ];
  if (from !== null)
    conditions.push(
      `audit.at >= ${sql.bind(new Date(from).toISOString(), 'timestamptz')}`,
      `audit.audit_id >= ${sql.bind(firstUuidv7(from - CLOCKS_DIFFER_MS), 'uuid')}`,
    );
  if (to !== null)
    conditions.push(
      `audit.at <= ${sql.bind(new Date(to).toISOString(), 'timestamptz')}`,
      `audit.audit_id <= ${sql.bind(firstUuidv7(to + CLOCKS_DIFFER_MS), 'uuid')}`,
    );
  return `FROM ${schema}._audit audit ${whereSql(conditions)} ORDER BY audit.audit_id DESC`;
}

/**
 * The changes of an entry as a list. Callers who may see all data get all of them, also of fields that no longer exist;
 * others those of fields that they can read. What is not a change of a field has no previous value.
 */
function changesSql(sql: Sql, view: View, ieee754Compatible: boolean): string {
  const decimals = sql.bind(JSON.stringify(ieee754Compatible ? fieldNames(view, isDecimal) : {}), 'jsonb');
  const { system } = view.access;
  let shown = '';
  if (!system.has('viewAllData') && !system.has('modifyAllData')) {
    const readable = sql.bind(JSON.stringify(fieldNames(view, (field) => columnType(field) !== null)), 'jsonb');
    shown = ` AND (audit.object IS NULL OR ${readable} -> audit.object ? change.key)`;
  }
  const value = (side: 'from' | 'to'): string =>
    `CASE WHEN ${decimals} -> audit.object ? change.key
            THEN to_jsonb(change.value ->> '${side}') ELSE change.value -> '${side}' END`;
  return `(SELECT coalesce(json_agg((SELECT row_to_json(item) FROM (SELECT change.key AS field,
          CASE WHEN change.value ? 'to' THEN ${value('from')} END AS "from",
          CASE WHEN change.value ? 'to' THEN ${value('to')} ELSE change.value END AS "to") item)
        ORDER BY change.key), '[]'::json)
      FROM jsonb_each(CASE WHEN jsonb_typeof(audit.changes) = 'object' THEN audit.changes ELSE '{}'::jsonb END) change
      WHERE true${shown})`;
}

/** Names of readable fields by object. */
function fieldNames(view: View, wanted: (field: FieldMeta) => boolean): Record<string, string[]> {
  return Object.fromEntries(
    Object.entries(view.access.objects).map(([apiName, { readable }]) => [
      apiName,
      readable.filter(wanted).map((field) => field.apiName),
    ]),
  );
}
