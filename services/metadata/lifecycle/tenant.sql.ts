/** Statements on the lifecycle of a tenant. */
import type { TenantDescription } from '../../../contracts/metadata.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

export interface LifeRow extends Omit<TenantDescription, 'state' | 'suspension' | 'createdAt' | 'deleteAt'> {
  readonly createdAt: string;
  readonly suspendedAt: string | null;
  readonly suspendedReason: string | null;
  readonly deleteAt: string | null;
  readonly erasing: boolean;
}

const COLUMNS = `id, key, name, region, edition, sandbox, locale, timezone, currency, rate_limits AS "rateLimits",
  operator_limits AS "operatorLimits", metadata_version AS "metadataVersion", created_at AS "createdAt",
  template_pending AS "templatePending", suspended_at AS "suspendedAt", suspended_reason AS "suspendedReason",
  delete_at AS "deleteAt", erasing_since IS NOT NULL AS erasing`;

export function findSql(key: string, lock: boolean): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT ${COLUMNS} FROM metadata.tenants WHERE key = ${sql.bind(key, 'text')}${lock ? ' FOR UPDATE' : ''}`,
  );
}

export function listSql(after: string | null, take: number): Statement {
  const sql = new Sql();
  const first = sql.bind(after, 'uuid');
  return sql.statement(
    `SELECT ${COLUMNS} FROM metadata.tenants WHERE ${first} IS NULL OR id > ${first}
    ORDER BY id LIMIT ${sql.bind(take, 'integer')}`,
  );
}

/** `suspended` follows from the other two: what all services read. */
const changed = (sql: Sql, id: string, set: string): Statement =>
  sql.statement(`UPDATE metadata.tenants SET ${set} WHERE id = ${sql.bind(id, 'uuid')} RETURNING ${COLUMNS}`);

export function suspendSql(id: string, reason: string): Statement {
  const sql = new Sql();
  return changed(sql, id, `suspended = true, suspended_at = now(), suspended_reason = ${sql.bind(reason, 'text')}`);
}

export const resumeSql = (id: string): Statement =>
  changed(new Sql(), id, 'suspended = false, suspended_at = NULL, suspended_reason = NULL');

export function renameSql(id: string, name: string): Statement {
  const sql = new Sql();
  return changed(sql, id, `name = ${sql.bind(name, 'text')}`);
}

/** Not before requests that are under way have ended, and every process knows of it. */
export function deleteSql(id: string, graceDays: number, settleSeconds: number): Statement {
  const sql = new Sql();
  const days = sql.bind(graceDays, 'integer');
  const seconds = sql.bind(settleSeconds, 'integer');
  return changed(
    sql,
    id,
    `suspended = true,
     delete_at = now() + greatest(make_interval(days => ${days}), make_interval(secs => ${seconds}))`,
  );
}

export const undeleteSql = (id: string): Statement =>
  changed(new Sql(), id, 'suspended = suspended_at IS NOT NULL, delete_at = NULL');

const time = (text: string): string => formatTimestamp(Date.parse(text));

export function describe(row: LifeRow): TenantDescription {
  const { suspendedAt, suspendedReason, deleteAt, erasing, createdAt, ...tenant } = row;
  return {
    ...tenant,
    state: erasing ? 'erasing' : deleteAt ? 'deleting' : suspendedAt ? 'suspended' : 'active',
    createdAt: time(createdAt),
    suspension: suspendedAt ? { at: time(suspendedAt), reason: suspendedReason } : null,
    deleteAt: deleteAt && time(deleteAt),
  };
}
