/**
 * The audit trail of a tenant, newest first, for those who may see who did what. Source: docs/reference/audit.md.
 */

import type { Handler, OperationInput } from '../../../contracts/operations.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { firstUuidv7 } from '../../../lib/values/ids.ts';
import { sealFor } from '../../../lib/values/sealed.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { ReadDeps } from '../read/read.ts';
import { columnType } from '../sql.ts';
import { assertFresh, requireApi } from '../tenants.ts';
import type { View } from '../view.ts';
import { isDecimal } from './changes-json.ts';
import { pageReply } from './page.ts';
import { type ListOf, openPlace, sealPlace } from './place.ts';

/** Ids carry the time at which they were made: a range of time is a range of ids, with room for clocks that differ. */
const CLOCKS_DIFFER_MS = 60 * 60 * 1_000;

/** Entries that one page looks through for what no index finds. */
const LOOKED_THROUGH = 50_000;

export const listAudit: Handler<'events.audit.list', ReadDeps> = async (deps, request, call) => {
  const { tenantId, userId } = request;
  const { take: asked, cursor, ...filters } = call.query;
  const { take, takeClamped } = parseListQuery({ ...(asked === undefined ? {} : { take: asked }) }, 'query');
  return deps.tenants.withView(tenantId, userId, async (view) => {
    requireApi(view);
    requireViewAudit(view);
    const list: ListOf = { name: 'audit', bound: { take, ...filters } };
    const seal = sealFor(request, deps.sealingKey, Date.now());
    const after = cursor === undefined ? null : openPlace(list, cursor, seal);
    const { found, looked } = await deps.database.tenant(tenantId, async (tx) => {
      const sql = new Sql();
      const sifted = siftedSql(sql, filters);
      const text = `SELECT s.metadata_version, s.access_version, e.entry::text, e.audit_id::text
        FROM ${tx.schema}._state s LEFT JOIN LATERAL (
          SELECT a.audit_id, (SELECT row_to_json(x) FROM (SELECT a.audit_id AS "auditId", a.at,
              (SELECT row_to_json(p) FROM (SELECT a.user_id AS "userId", a.client_id AS "clientId", a.agent_run_id AS "agentRunId") p) AS actor,
              a.channel, a.operation_id AS "operationId", a.outcome, a.code, a.request_id AS "requestId",
              a.object AS "objectApiName", a.record_id AS "recordId", ${changesOf(sql, view, call.ieee754Compatible ?? false)} AS changes,
              a.ip, c.position, encode(c.prev_hash, 'hex') AS "prevHash", encode(c.hash, 'hex') AS hash) x) AS entry
          FROM (SELECT * FROM (SELECT * ${placedSql(sql, tx.schema, filters, after)} LIMIT ${LOOKED_THROUGH}) a
            ${sifted} ORDER BY a.audit_id DESC LIMIT ${take + 1}) a
          LEFT JOIN ${tx.schema}._audit_chain c ON c.audit_id = a.audit_id ORDER BY a.audit_id DESC) e ON true`;
      const found = (await tx.arrays({ text, values: sql.values })).rows;
      if (sifted === '' || found.length > take) return { found, looked: null };
      const end = new Sql();
      const { rows } = await tx.arrays({
        text: `SELECT a.audit_id::text ${placedSql(end, tx.schema, filters, after)} LIMIT 1 OFFSET ${LOOKED_THROUGH - 1}`,
        values: end.values,
      });
      return { found, looked: (rows[0]?.[0] ?? null) as string | null };
    });
    assertFresh(view, found[0]![0], found[0]![1]);
    const entries = found.filter((row) => row[2] !== null);
    const last = entries.length > take ? (entries[take - 1]![3] as string) : looked;
    return pageReply(
      { take, takeClamped },
      entries.slice(0, take).map((row) => row[2] as string),
      last === null ? null : sealPlace(list, [last], seal),
    );
  });
};

function requireViewAudit({ access }: View): void {
  if (access.system.has('viewAudit')) return;
  throw new PlatformError('OBJECT_PERMISSION_DENIED', 'The user lacks the system permission viewAudit.', {
    details: { objectApiName: null, operation: 'read', layer: 'objectPermission', permission: 'viewAudit' },
  });
}

type Filters = Omit<OperationInput<'events.audit.list'>['query'], 'take' | 'cursor'>;

const whereSql = (conditions: readonly string[]): string =>
  conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : '';

const equalSql = (sql: Sql, column: string, value: string | undefined, type: string): string[] =>
  value === undefined ? [] : [`a.${column} = ${sql.bind(value, type)}`];

/** `WHERE …` of what no index finds. */
const siftedSql = (sql: Sql, { objectApiName, operationId, outcome }: Filters): string =>
  whereSql([
    ...equalSql(sql, 'object', objectApiName, 'text'),
    ...equalSql(sql, 'operation_id', operationId, 'text'),
    ...equalSql(sql, 'outcome', outcome, 'text'),
  ]);

/** `FROM … WHERE … ORDER BY …` of the entries in question behind a place, as indexes find them: newest first. */
function placedSql(sql: Sql, schema: string, filters: Filters, after: readonly string[] | null): string {
  const { actorId, recordId, from, to } = filters;
  const conditions = [
    ...equalSql(sql, 'user_id', actorId?.toLowerCase(), 'uuid'),
    ...equalSql(sql, 'record_id', recordId?.toLowerCase(), 'uuid'),
    ...(after ? [`a.audit_id < ${sql.bind(after[0], 'uuid')}`] : []),
  ];
  const [begin, end] = [momentOf('from', from), momentOf('to', to)];
  if (begin !== null && end !== null && begin > end)
    throw new PlatformError('PARAMETER_CONFLICT', 'from must not be later than to.', {
      errors: [violation('query:from', 'PARAMETER_CONFLICT', 'from must not be later than to.')],
    });
  if (begin !== null)
    conditions.push(
      `a.at >= ${sql.bind(new Date(begin).toISOString(), 'timestamptz')} AND a.audit_id >= ${sql.bind(firstUuidv7(begin - CLOCKS_DIFFER_MS), 'uuid')}`,
    );
  if (end !== null)
    conditions.push(
      `a.at <= ${sql.bind(new Date(end).toISOString(), 'timestamptz')} AND a.audit_id <= ${sql.bind(firstUuidv7(end + CLOCKS_DIFFER_MS), 'uuid')}`,
    );
  return `FROM ${schema}._audit a ${whereSql(conditions)} ORDER BY a.audit_id DESC`;
}

function momentOf(name: string, text: string | undefined): number | null {
  if (text === undefined) return null;
  const moment = Date.parse(text);
  if (Number.isFinite(moment) && moment >= 0 && moment < LAST_MOMENT) return moment;
  const message = `${name} must be a time such as 2026-11-21T08:00:00Z.`;
  throw new PlatformError('PARAMETER_INVALID', message, {
    errors: [violation(`query:${name}`, 'PARAMETER_INVALID', message)],
  });
}

/** 48 bits of milliseconds fit into an id; one hour less, for the room that is added. */
const LAST_MOMENT = 2 ** 48 - 2 * CLOCKS_DIFFER_MS;

/**
 * SQL of the changes as a list. Whoever may see all data sees them whole, also of fields that are gone; everybody else
 * the fields that they can read. What is not a change of a field has no value before.
 */
function changesOf(sql: Sql, view: View, ieee754Compatible: boolean): string {
  const decimals = sql.bind(JSON.stringify(ieee754Compatible ? fieldNames(view, isDecimal) : {}), 'jsonb');
  const all = view.access.system.has('viewAllData') || view.access.system.has('modifyAllData');
  const shown = all
    ? ''
    : ` AND (a.object IS NULL OR ${sql.bind(JSON.stringify(fieldNames(view, (field) => columnType(field) !== null)), 'jsonb')} -> a.object ? e.key)`;
  const value = (side: string): string =>
    `CASE WHEN ${decimals} -> a.object ? e.key THEN to_jsonb(e.value ->> '${side}') ELSE e.value -> '${side}' END`;
  return `(SELECT coalesce(json_agg((SELECT row_to_json(y) FROM (SELECT e.key AS field,
      CASE WHEN e.value ? 'to' THEN ${value('from')} END AS "from",
      CASE WHEN e.value ? 'to' THEN ${value('to')} ELSE e.value END AS "to") y) ORDER BY e.key), '[]'::json)
    FROM jsonb_each(CASE WHEN jsonb_typeof(a.changes) = 'object' THEN a.changes ELSE '{}'::jsonb END) e WHERE true${shown})`;
}

function fieldNames(view: View, wanted: (field: Parameters<typeof isDecimal>[0]) => boolean): Record<string, string[]> {
  return Object.fromEntries(
    Object.entries(view.access.objects).map(([apiName, { readable }]) => [
      apiName,
      readable.filter(wanted).map((field) => field.apiName),
    ]),
  );
}
