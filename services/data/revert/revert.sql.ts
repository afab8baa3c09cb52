/** The statements of reverting an agent run: what it has changed, what a record was before, what refers to it. */

import { DATA_OPERATIONS } from '../../../contracts/data.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { recordChangeOf } from '../../../lib/operation.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import type { ObjectMeta, Snapshot } from '../../../lib/schema/snapshot.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { memoize } from '../../../lib/values/memoize.ts';
import { literal } from '../../../lib/values/sql-text.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { auditSql, CallerSql } from '../../../mixins/mutation/audit.ts';
import type { IdempotencyKey } from '../../../mixins/mutation/key.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import { columnName, schemaOf, table } from '../sql.ts';
import { VERSION_COLUMNS, type Versions, type View } from '../view.ts';
import { linksTo } from '../write/delete.sql.ts';
import { referencesOf } from '../write/restore.sql.ts';
import { type ChangeKind, randomTrailIds } from '../write/trail.ts';

export const REVERT_OPERATION = 'agent.runs.revert';

/** The operations that share records by hand. */
const SHARING = DATA_OPERATIONS.filter((row) => recordChangeOf(row)?.needs.includes('share'))
  .map(({ operationId }) => literal(operationId))
  .join(', ');

/** A record that a run has changed, from the entries that it left in the audit trail. */
export interface ChangedRecord {
  readonly objectApiName: string;
  readonly id: string;
  /** The run's first and last change of it. */
  readonly first: ChangeKind;
  readonly last: ChangeKind;
  /** The version of its first change. */
  readonly firstVersion: number;
  /** The run changed fields, or restored the record without a reference to what was gone by then. */
  readonly updated: boolean;
  /** A revert has restored it without a reference to what was gone by then, and none has set that one since. */
  readonly owed: boolean;
  /** A transition was taken in one of the requests that changed it. */
  readonly transitioned: boolean;
  /** Changes of it by reverts of the run. */
  readonly undone: readonly ChangeKind[];
  /** Why a request with this key has left it as it is; null: none has. */
  readonly noted: string | null;
  /** A request with this key has tried it again, and no record of the run was reverted since. */
  readonly settled: boolean;
}

/** True when a record existed before the run, by the run's first change of it. */
export const wasThere = (first: ChangeKind): boolean => first !== 'create' && first !== 'restore';

/** Rollup fields by object: they follow other changes, in both directions. */
const rollupFields = memoize((objects: Snapshot['objects']): string =>
  JSON.stringify(
    Object.fromEntries(
      Object.values(objects).flatMap(({ apiName, fields }) => {
        const names = Object.values(fields).flatMap((field) => (field.rollup ? [field.apiName] : []));
        return names.length > 0 ? [[apiName, names]] : [];
      }),
    ),
  ),
);

/**
 * The records that a run has changed, in the order in which they are reverted: the newest change first, but a created
 * record by its creation, because later ones may refer to it. Of one transaction, restored records come before others,
 * and the root of a deletion before what was deleted with it.
 */
export function changedRecordsStatement(
  { snapshot, tenantId }: View,
  agentRunId: string,
  key: IdempotencyKey,
  limit: number,
): Statement {
  const sql = new Sql();
  const schema = schemaOf(tenantId);
  const run = sql.bind(agentRunId, 'uuid');
  const rollups = sql.bind(rollupFields(snapshot.objects), 'jsonb');
  const forward = 'FILTER (WHERE NOT reverts)';
  return sql.statement(`WITH
    entries AS MATERIALIZED (
      SELECT object, record_id, kind, record_version, at, tx::text::bigint AS tx, request_id,
        kind = 'restore' AND jsonb_path_exists(changes, '$.* ? (@.from != null)') AS clears,
        operation_id = ${literal(REVERT_OPERATION)} AS reverts,
        CASE WHEN operation_id = ${literal(REVERT_OPERATION)} AND kind IN ('restore', 'update') THEN changes END
          AS undoing
      FROM ${schema}._audit
      WHERE agent_run_id = ${run} AND kind IS NOT NULL
        AND NOT (kind = 'update' AND ${rollups} ? object
          AND changes - ARRAY(SELECT jsonb_array_elements_text(${rollups} -> object)) = '{}')),
    records AS (
      SELECT object, record_id,
        (array_agg(kind ORDER BY record_version, kind = 'delete') ${forward})[1] AS first,
        (array_agg(kind ORDER BY record_version DESC, kind = 'delete' DESC) ${forward})[1] AS last,
        min(record_version) ${forward} AS first_version,
        bool_or(kind = 'update') ${forward} AS updated, bool_or(clears) ${forward} AS cleared,
        bool_or(request_id IN (SELECT request_id FROM entries WHERE kind = 'transition')) ${forward} AS transitioned,
        coalesce(array_agg(DISTINCT kind) FILTER (WHERE reverts), '{}') AS undone,
        min(at) ${forward} AS first_at, max(at) ${forward} AS last_at,
        min(tx) ${forward} AS first_tx, max(tx) ${forward} AS last_tx
      FROM entries GROUP BY object, record_id HAVING bool_or(NOT reverts)),
    owed AS (
      SELECT DISTINCT restored.object, restored.record_id FROM entries restored
      CROSS JOIN LATERAL jsonb_each(restored.undoing) cleared
      WHERE restored.reverts AND restored.clears AND cleared.value -> 'from' <> 'null'
        AND NOT EXISTS (SELECT FROM entries later WHERE later.record_id = restored.record_id AND later.reverts
          AND later.kind = 'update' AND later.object = restored.object AND later.undoing ? cleared.key)),
    notes AS (
      SELECT object, record_id, (array_agg(code ORDER BY at DESC))[1] AS code,
        count(*) > 1 AND max(at) > coalesce((SELECT max(at) FROM entries WHERE reverts), '-infinity') AS settled
      FROM ${schema}._audit
      WHERE agent_run_id = ${run} AND operation_id = ${literal(REVERT_OPERATION)} AND outcome <> 'committed'
        AND record_id IS NOT NULL AND at > now() - interval '${LIMITS.idempotency_retention_hours} hours'
        AND user_id = ${sql.bind(key.userId, 'uuid')}
        AND client_id = ${sql.bind(key.clientId, 'text')} AND idempotency_key = ${sql.bind(key.key, 'text')}
      GROUP BY object, record_id)
    SELECT found.object AS "objectApiName", found.record_id AS id, first, last, first_version AS "firstVersion",
      updated OR (cleared AND first NOT IN ('create', 'restore')) AS updated, transitioned, undone,
      owed.record_id IS NOT NULL AS owed, notes.code AS noted,
      coalesce(notes.settled, false) AS settled
    FROM records found
    CROSS JOIN LATERAL (SELECT first IN ('create', 'restore') AND last <> 'delete' AS goes) it
    LEFT JOIN ${schema}._recycle_bin bin ON bin.object = found.object AND bin.record_id = found.record_id
    LEFT JOIN owed ON owed.object = found.object AND owed.record_id = found.record_id
    LEFT JOIN notes ON notes.object = found.object AND notes.record_id = found.record_id
    ORDER BY CASE WHEN goes THEN first_at ELSE last_at END DESC, CASE WHEN goes THEN first_tx ELSE last_tx END DESC,
      last <> 'delete', bin.root_id IS DISTINCT FROM found.record_id, goes, found.record_id
    LIMIT ${limit}`);
}

/** Records whose sharing a run has changed by hand. */
export function sharedRecordsStatement({ tenantId }: View, agentRunId: string, limit: number): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT DISTINCT object AS "objectApiName", record_id AS id FROM ${schemaOf(tenantId)}._audit
    WHERE agent_run_id = ${sql.bind(agentRunId, 'uuid')} AND outcome = 'committed'
      AND operation_id IN (${SHARING})
    ORDER BY record_id LIMIT ${limit}`);
}

/** A changed record as it is now. */
export interface RecordState extends Versions {
  /** null: it is not there. */
  readonly version: number | null;
  /** Its version in the recycle bin; null: it is not there. */
  readonly deletedVersion: number | null;
  /** Changed by another caller since the run first changed it. */
  readonly changedSince: boolean;
  /** JSON of the value that each changed field had before the run; null: it changed none. */
  readonly before: Readonly<Record<string, string>> | null;
  /** References that named, before the run, what is not there now. */
  readonly gone: readonly string[];
}

export function stateStatement(
  { tenantId }: View,
  object: ObjectMeta,
  agentRunId: string,
  { id, first: firstChange, firstVersion }: ChangedRecord,
): Statement {
  const sql = new Sql();
  const schema = schemaOf(tenantId);
  const run = sql.bind(agentRunId, 'uuid');
  const first = sql.bind(firstVersion, 'integer');
  const record = sql.bind(id, 'uuid');
  // A restore, of a revert as well, says under `from` what could not come back. What was deleted before the run goes
  // there again.
  const kinds = sql.bind(wasThere(firstChange) ? ['update', 'restore'] : ['update'], 'text[]');
  const entries = `FROM ${schema}._audit audit
        WHERE audit.record_id = ${record} AND audit.object = ${literal(object.apiName)}
          AND audit.record_version >= ${first}`;
  const gone = referencesOf(object).map((field) => {
    const name = literal(field.apiName);
    return `SELECT ${name} FROM (SELECT CASE WHEN before ? ${name} THEN (before ->> ${name})::jsonb #>> '{}'
          ELSE bin.record ->> ${name} END AS ref) named
        WHERE ref IS NOT NULL AND NOT EXISTS (SELECT FROM ${table(schema, field.referenceTo[0] ?? '')} t
          WHERE t."id" = CASE WHEN erp.input_is_valid(ref, 'uuid') THEN ref::uuid END)`;
  });
  return sql.statement(`SELECT ${VERSION_COLUMNS}, live."recordVersion" AS version,
      bin.record_version AS "deletedVersion",
      EXISTS (SELECT ${entries} AND audit.kind IS NOT NULL AND audit.agent_run_id IS DISTINCT FROM ${run}
        AND (audit.record_version > ${first} OR audit.kind = 'delete')) AS "changedSince",
      before, ${gone.length > 0 ? `ARRAY(${gone.join('\n      UNION ALL ')})` : "'{}'::text[]"} AS gone
    FROM ${schema}._state state
    LEFT JOIN ${table(schema, object.apiName)} live ON live."id" = ${record}
    LEFT JOIN ${schema}._recycle_bin bin ON bin.object = ${literal(object.apiName)} AND bin.record_id = ${record}
    CROSS JOIN LATERAL (
      SELECT jsonb_object_agg(change.key, (change.value -> 'from')::text ORDER BY run.record_version DESC) AS before
      FROM (SELECT audit.record_version, audit.kind, audit.changes ${entries} AND audit.kind = ANY(${kinds})
        AND audit.agent_run_id = ${run}
        AND (audit.kind = 'restore' OR audit.operation_id <> ${literal(REVERT_OPERATION)})) run
      CROSS JOIN LATERAL jsonb_each(run.changes) change
      WHERE run.kind = 'update' OR change.value -> 'from' <> 'null') of_run`);
}

/**
 * Gives references of a deleted record the values of `body`: those that name what is gone, and those of `lost`. null:
 * it has none for any.
 */
export function repointStatement(
  schema: string,
  object: ObjectMeta,
  id: string,
  body: Readonly<Record<string, unknown>>,
  lost: readonly string[],
): Statement | null {
  const sql = new Sql();
  const changes = referencesOf(object).flatMap((field) => {
    const value = ownEntry(body, field.apiName);
    if (value !== null && !(typeof value === 'string' && isUuid(value))) return [];
    const name = literal(field.apiName);
    const change = `jsonb_build_object(${name}, ${sql.bind(value, 'uuid')})`;
    if (lost.includes(field.apiName)) return change;
    return `CASE WHEN bin.record ->> ${name} IS NOT NULL
        AND NOT EXISTS (SELECT FROM ${table(schema, field.referenceTo[0] ?? '')} t
          WHERE t."id" = (bin.record ->> ${name})::uuid)
      THEN ${change} ELSE '{}' END`;
  });
  if (changes.length === 0) return null;
  return sql.statement(`UPDATE ${schema}._recycle_bin bin SET record = bin.record || ${changes.join(' || ')}
    WHERE bin.object = ${sql.bind(object.apiName, 'text')} AND bin.record_id = ${sql.bind(id, 'uuid')}`);
}

/**
 * SQL that is true when another record refers to this one; null: no object can. `companions` are records that will be deleted as
 * well: they may refer to it, as far as that only clears their reference, or (`anyLink`) however they do.
 */
export function dependsStatement(
  view: View,
  { object, id }: { readonly object: ObjectMeta; readonly id: string },
  companions: readonly string[],
  anyLink: boolean,
): Statement | null {
  const links = linksTo(view, object);
  if (links.length === 0) return null;
  const schema = schemaOf(view.tenantId);
  const sql = new Sql();
  const record = sql.bind(id, 'uuid');
  const along = (link: string): string =>
    anyLink || link === 'setNull' ? ` AND NOT t."id" = ANY(${sql.bind(companions, 'uuid[]')})` : '';
  const found = links.map(({ child, field, onDelete }) => {
    const itself = child.apiName === object.apiName ? ` AND t."id" <> ${record}` : '';
    return `EXISTS (SELECT FROM ${table(schema, child.apiName)} t
      WHERE t.${columnName(field)} = ${record}${itself}${along(onDelete)})`;
  });
  return sql.statement(`SELECT ${found.join(' OR ')} AS depends`);
}

/** Entries of the audit trail about records that a revert has left as they are for one reason. */
export function skippedStatement(
  { request, key }: Pick<Unit, 'request' | 'key'>,
  reason: string,
  records: readonly Pick<ChangedRecord, 'objectApiName' | 'id'>[],
): Statement {
  const sql = new Sql();
  const outcome = reason === 'NOT_PERMITTED' || reason === 'RECORD_NOT_FOUND' ? 'denied' : 'failed';
  const entry = { operationId: REVERT_OPERATION, outcome, code: reason, idempotencyKey: key.key } as const;
  const ofRow = { auditId: 'audit_id', object: 'object', recordId: 'record_id' };
  const objects = sql.bind(
    records.map(({ objectApiName }) => objectApiName),
    'text[]',
  );
  const ids = sql.bind(
    records.map(({ id }) => id),
    'uuid[]',
  );
  return sql.statement(`${auditSql(schemaOf(request.tenantId), sql, new CallerSql(sql.for(request)), entry, ofRow)}
    FROM (SELECT object, record_id, ${randomTrailIds}
      FROM unnest(${objects}, ${ids}) named(object, record_id)) skipped`);
}
