/**
 * Bringing a deleted record back, with everything that was deleted along with it. It comes back as it was: rules and
 * duplicates are not asked. Source: docs/reference/records.md#restoring.
 */

import { requireObject } from '../../../lib/access/decide.ts';
import { type Violation, violation } from '../../../lib/errors/platform-error.ts';
import { isMasterDetail, isReference, typeOf } from '../../../lib/schema/field-types/registry.ts';
import { objectOf } from '../../../lib/schema/lookup.ts';
import type { FieldMeta, ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { literal } from '../../../lib/values/sql-text.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { completeKeySql } from '../../../mixins/mutation/key.sql.ts';

import {
  changesSql,
  columnName,
  columnType,
  etagOf,
  outputOf,
  reachSql,
  recordJson,
  storedFields,
  table,
} from '../sql.ts';
import { own } from '../tenants.ts';
import { defaultOf } from './body.ts';
import { noteEffect } from './check-only.ts';
import { claimSql, readLock } from './checks.ts';
import { countOf, linksTo } from './delete.ts';
import { type Along, actorSql, parentLocksSql } from './rollups.ts';
import { reachedSql, requireReached } from './sharing.ts';
import { randomTrailIds, trailSql } from './trail.ts';
import { pointerTo, validationFailed } from './violations.ts';
import type { Reached, Step, Write } from './write.ts';

/** In the order of the checks of every mutation. */
export const RESTORE_STEPS: readonly Step[] = [lockDeleted, mayRestore, refuseUnreached, bringBack];

/** Ids by object. */
type Ids = ReadonlyMap<string, ReadonlySet<string>>;

/** The row that a deleted record was: only what is still a field, and only values that its column still takes. */
function formerRow(write: Write, sql: Sql, object: ObjectMeta, record: string): string {
  const typed = storedFields(object).filter((field) => CHECKED_TYPES.test(columnType(field)!));
  const names = sql.bind(
    typed.map((field) => field.apiName),
    'text[]',
  );
  const types = sql.bind(
    typed.map((field) => columnType(field)),
    'text[]',
  );
  return `jsonb_populate_record(NULL::${table(write.schema, object.apiName)}, ${record} - ARRAY(
    SELECT v.name FROM unnest(${names}, ${types}) v (name, type) WHERE ${record} ->> v.name IS NOT NULL AND NOT pg_input_is_valid(${record} ->> v.name, v.type)))`;
}

/** Columns that do not take any text. */
const CHECKED_TYPES = /^(?:numeric|bigint|boolean|date|time|interval|uuid)/;

/** Claims the key and locks the deleted record. Of two restores one finds it gone. */
async function lockDeleted(write: Write): Promise<void> {
  const { view, object, schema, tx } = write;
  const sql = new Sql();
  const { rows } = await tx.arrays(
    sql.statement(`WITH
      ${claimSql(write, sql)},
      b AS MATERIALIZED (SELECT * FROM ${schema}._recycle_bin WHERE object = ${sql.bind(object.apiName, 'text')} AND record_id = ${sql.bind(write.id, 'uuid')}
        AND restorable_until > now() AND EXISTS (SELECT FROM k) FOR UPDATE)
      SELECT s.m, s.a, (SELECT count(*)::int FROM k), t.version, t.reached FROM s LEFT JOIN (
        SELECT b.record_version AS version, ${reachedSql(write, sql, 't', 'delete')} AS reached
        FROM b, LATERAL ${formerRow(write, sql, object, 'b.record')} t WHERE ${reachSql(view, sql, object.apiName, 'read', 't')}) t ON true${actorSql(write, sql, true)}`),
  );
  const row = rows[0]!;
  if (!(await readLock(write, row))) return;
  write.reached = row[4] as Reached;
}

function mayRestore({ view, object }: Write): void {
  requireObject(view.access, object.apiName, 'delete');
}

function refuseUnreached({ reached }: Write): void {
  requireReached(reached, 'delete');
}

async function bringBack(write: Write): Promise<void> {
  const { schema, object, tx, key } = write;
  const returning = await collect(write);
  await lockParents(write, returning);
  const gone = await goneReferences(write, returning);
  await insert(write, returning, gone);
  const sql = new Sql();
  // Rollups of the record have been worked out again by now.
  const { rows } = await tx.arrays(
    sql.statement(
      `SELECT t."recordVersion", ${recordJson('t', write.access.readable, write.call.ieee754Compatible)}::text FROM ${table(schema, object.apiName)} t WHERE t."id" = ${sql.bind(write.id, 'uuid')}`,
    ),
  );
  const [version, body] = rows[0] as [number, string];
  const headers = { ETag: etagOf(version), Location: `/api/v1/data/${object.apiName}/${write.id}` };
  await noteEffects(write, returning);
  const last = new Sql();
  const outcome = {
    status: '201',
    headers: last.bind(JSON.stringify(headers), 'jsonb'),
    body: last.bind(body, 'text'),
  };
  await write.commit(last.statement(completeKeySql(schema, key, last.bind, outcome)));
  write.reply = { status: 201, headers, body: Buffer.from(body) };
}

/**
 * What comes back, locked: with the root of a deletion everything that it took along, with another record of it what
 * that one would have taken along. The record itself comes first. Objects that are gone stay gone.
 */
async function collect(write: Write): Promise<Ids> {
  const { view, object, schema, tx } = write;
  const found = new Map<string, Set<string>>([[object.apiName, new Set([write.id])]]);
  const add = (apiName: string, id: string): boolean => {
    const ids = found.get(apiName) ?? new Set();
    if (ids.has(id) || !objectOf(view.snapshot, apiName)) return false;
    found.set(apiName, ids.add(id));
    return true;
  };
  const all = new Sql();
  const deletion = await tx.arrays(
    all.statement(`SELECT root_id, object, record_id FROM ${schema}._recycle_bin
      WHERE root_id = (SELECT root_id FROM ${schema}._recycle_bin WHERE object = ${all.bind(object.apiName, 'text')} AND record_id = ${all.bind(write.id, 'uuid')})
      ORDER BY object, record_id FOR UPDATE`),
  );
  const root = deletion.rows[0]![0] as string;
  if (root === write.id) {
    for (const [, apiName, id] of deletion.rows) add(apiName as string, id as string);
    return found;
  }
  for (const queue: [ObjectMeta, string[]][] = [[object, [write.id]]]; queue.length; ) {
    const [parent, ids] = queue.shift()!;
    for (const link of linksTo(write, parent)) {
      if (link.onDelete !== 'cascade') continue;
      const sql = new Sql();
      const { rows } = await tx.arrays(
        sql.statement(
          `SELECT record_id FROM ${schema}._recycle_bin WHERE root_id = ${sql.bind(root, 'uuid')} AND object = ${sql.bind(link.child.apiName, 'text')}
            AND record ->> ${literal(link.field.apiName)} = ANY(${sql.bind(ids, 'text[]')}) ORDER BY record_id FOR UPDATE`,
        ),
      );
      const fresh = rows.map((row) => row[0] as string).filter((id) => add(link.child.apiName, id));
      if (fresh.length) queue.push([link.child, fresh]);
    }
  }
  return found;
}

/** The parents whose rollups take the returning records in, in the order of all writers. */
async function lockParents(write: Write, returning: Ids): Promise<void> {
  const { schema, object, tx } = write;
  const sql = new Sql();
  const along = [...returning].map(
    ([apiName, ids]): Along => ({
      object: apiName,
      named: (reference) => `SELECT (b.record ->> ${literal(reference)})::uuid FROM ${schema}._recycle_bin b
        WHERE b.object = ${sql.bind(apiName, 'text')} AND b.record_id = ANY(${sql.bind([...ids], 'uuid[]')})`,
    }),
  );
  const { ctes, after } = parentLocksSql(write, {
    object: object.apiName,
    id: null,
    changed: new Set(),
    along,
    gate: '',
  });
  if (ctes.length > 0) await tx.arrays(sql.statement(`WITH ${ctes.join(',\n')} SELECT 1 WHERE true${after}`));
}

const referencesOf = (object: ObjectMeta): FieldMeta[] =>
  storedFields(object).filter((field) => isReference(field) && !field.system);

/**
 * Ids that the returning records refer to and that are not there, by field. What is there is locked until the end. 422
 * when a record cannot be without them: it needs a value, or it belongs to what is gone.
 */
async function goneReferences(write: Write, returning: Ids): Promise<ReadonlyMap<FieldMeta, readonly string[]>> {
  const { view, schema, tx } = write;
  const asked = [...returning].flatMap(([apiName, ids]) => {
    const object = objectOf(view.snapshot, apiName)!;
    return referencesOf(object).map((field) => ({ object, field, ids }));
  });
  const gone = new Map<FieldMeta, readonly string[]>();
  if (asked.length === 0) return gone;
  const sql = new Sql();
  const parts = asked.map(({ object, field, ids }, index) => {
    const target = field.referenceTo[0]!;
    const along = sql.bind([...(returning.get(target) ?? [])], 'uuid[]');
    return `SELECT ${index} AS index, array_agg(x.ref::text) AS refs, bool_or(x.of_root) AS of_root FROM (
      SELECT (b.record ->> ${literal(field.apiName)})::uuid AS ref, bool_or(b.record_id = ${sql.bind(write.id, 'uuid')}) AS of_root FROM ${schema}._recycle_bin b
      WHERE b.object = ${sql.bind(object.apiName, 'text')} AND b.record_id = ANY(${sql.bind([...ids], 'uuid[]')}) AND b.record ->> ${literal(field.apiName)} IS NOT NULL GROUP BY 1) x
      WHERE NOT x.ref = ANY(${along}) AND NOT EXISTS (SELECT FROM ${table(schema, target)} t WHERE t."id" = x.ref FOR KEY SHARE)`;
  });
  const { rows } = await tx.arrays(sql.statement(parts.join('\nUNION ALL ')));
  const violations: Violation[] = [];
  for (const [index, refs, ofRoot] of rows as [number, string[] | null, boolean][]) {
    if (!refs) continue;
    const { object, field } = asked[index]!;
    gone.set(field, refs);
    if (field.required || isMasterDetail(field) || field.onDelete === 'cascade')
      violations.push(missing(write, object, field, ofRoot));
  }
  if (violations.length) throw validationFailed(violations);
  return gone;
}

/** A field that the caller cannot read is not named. */
function missing(write: Write, object: ObjectMeta, field: FieldMeta, ofRoot: boolean): Violation {
  const readable = own(own(write.view.access.objects, object.apiName)?.fields ?? {}, field.apiName)?.read;
  const name = readable ? field.apiName : null;
  const message = 'A record that this one belongs to is gone; restore that one first.';
  return violation(ofRoot && name !== null ? pointerTo(name) : '', 'REFERENCE_NOT_FOUND', message, {
    field: name,
    params: name === null ? {} : { objectApiName: object.apiName },
  });
}

/** One statement for all objects, so that it does not matter who refers to whom. */
async function insert(write: Write, returning: Ids, gone: ReadonlyMap<FieldMeta, readonly string[]>): Promise<void> {
  const { schema, request, tx } = write;
  const sql = new Sql();
  const user = sql.bind(request.userId, 'uuid');
  let position = 0;
  const ctes = [...returning].flatMap(([apiName, ids], index) => {
    const object = objectOf(write.view.snapshot, apiName)!;
    const first = position;
    position += ids.size;
    const fields = storedFields(object);
    const columns = fields.map(columnName).join(', ');
    const values = fields.map((field) => valueSql(sql, field, user, gone.get(field) ?? []));
    const kept = fields.filter((field) => !field.system);
    return [
      `d${index} AS (DELETE FROM ${schema}._recycle_bin WHERE object = ${sql.bind(apiName, 'text')} AND record_id = ANY(${sql.bind([...ids], 'uuid[]')}) RETURNING record_id, record, record_version)`,
      `n${index} AS (INSERT INTO ${table(schema, apiName)} (${columns}) SELECT ${values.join(', ')} FROM d${index} d, LATERAL ${formerRow(write, sql, object, 'd.record')} r RETURNING *)`,
      `c${index} AS MATERIALIZED (SELECT n."id" AS record_id, n."recordVersion" AS record_version, ${first} + (row_number() OVER (ORDER BY n."id" <> ${sql.bind(write.id, 'uuid')}))::int - 1 AS position, ${randomTrailIds}, ${changesSql(
        kept,
        (field) =>
          `CASE WHEN n.${columnName(field)} IS NULL THEN nullif(d.record -> ${literal(field.apiName)}, 'null') END`,
        (field) => outputOf('n', field),
      )} AS changes FROM n${index} n JOIN d${index} d ON d.record_id = n."id")`,
      ...trailSql(write, sql, object, {
        kind: 'restore',
        from: `c${index}`,
        transactionSize: countOf(returning),
        suffix: String(index),
      }),
    ];
  });
  await tx.arrays(sql.statement(`WITH ${ctes.join(',\n')}\nSELECT count(*) FROM n0`));
}

/** What a column of the former row `r` gets; `d` is its row in the recycle bin. */
function valueSql(sql: Sql, field: FieldMeta, user: string, gone: readonly string[]): string {
  const column = `r.${columnName(field)}`;
  if (gone.length) return `CASE WHEN ${column} = ANY(${sql.bind(gone, 'uuid[]')}) THEN NULL ELSE ${column} END`;
  switch (field.system ? field.apiName : '') {
    case 'recordVersion':
      return 'd.record_version + 1';
    case 'updatedAt':
      return 'statement_timestamp()';
    case 'updatedById':
      return user;
  }
  // A field that became required meanwhile has given its default to the records that were there.
  const fallback = field.required && !isReference(field) ? defaultOf(field) : null;
  if (fallback === null || fallback === undefined) return column;
  const parsed = typeOf(field).parseInput(fallback, field, '');
  return parsed.ok ? `coalesce(${column}, ${sql.bind(parsed.value, typeOf(field).bindType)})` : column;
}

/** For a dry run: the record, and how many of those the caller can see come back with it. */
async function noteEffects(write: Write, returning: Ids): Promise<void> {
  if (!write.checkOnly) return;
  const { view, object, schema, tx } = write;
  noteEffect(write, 'create', object, { id: write.id, fields: storedFields(object).map((field) => field.apiName) });
  for (const [apiName, ids] of returning) {
    const child = own(view.access.objects, apiName)?.object;
    if (!child) continue;
    const sql = new Sql();
    const others = sql.bind(
      [...ids].filter((id) => id !== write.id),
      'uuid[]',
    );
    const { rows } = await tx.arrays(
      sql.statement(
        `SELECT count(*)::int FROM ${table(schema, apiName)} t WHERE t."id" = ANY(${others}) AND ${reachSql(view, sql, apiName, 'read', 't')}`,
      ),
    );
    const count = rows[0]![0] as number;
    if (count) noteEffect(write, 'create', child, { id: null, count });
  }
}
