/**
 * Deleting a record: what depends on it is found level by level and locked, then one statement moves everything to the
 * recycle bin and travels together with COMMIT.
 */

import { LIMITS } from '../../../config/limits.ts';
import { requireObject } from '../../../lib/access/decide.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { isMasterDetail } from '../../../lib/schema/field-types/registry.ts';
import { fieldOf, objectOf } from '../../../lib/schema/lookup.ts';
import type { ChildRelationship, FieldMeta, ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { identifier } from '../../../lib/values/sql-text.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { completeKeySql } from '../../../mixins/mutation/key.sql.ts';

import { changesSql, outputOf, reachSql, storedFields, table } from '../sql.ts';
import { own } from '../tenants.ts';
import { noteEffect } from './check-only.ts';
import { claimSql, readLock } from './checks.ts';
import { type Along, actorSql, parentLocksSql } from './rollups.ts';
import { reachedSql, requireReached } from './sharing.ts';
import { randomTrailIds, trailSql } from './trail.ts';
import { matchVersion } from './update.ts';
import type { Reached, Step, Write } from './write.ts';

/** In the order of the checks of every mutation. */
export const DELETE_STEPS: readonly Step[] = [
  lockRecord,
  mayDelete,
  refuseUnreached,
  matchVersion,
  removeWithDependents,
];

/** More records than this are not deleted along with one. */
const CASCADE_MAX = 10_000;

async function lockRecord(write: Write): Promise<void> {
  const { view, object, schema, tx } = write;
  const sql = new Sql();
  const id = sql.bind(write.id, 'uuid');
  const parents = parentLocksSql(write, {
    object: object.apiName,
    id,
    changed: null,
    along: goingAlong(write, object, id).slice(0, ALONG_LOCKED_MAX),
    gate: ' AND EXISTS (SELECT FROM k)',
  });
  const { rows } = await tx.arrays(
    sql.statement(`WITH
      ${claimSql(write, sql)},
      ${parents.ctes.map((cte) => `${cte},\n      `).join('')}o AS MATERIALIZED (SELECT * FROM ${table(schema, object.apiName)} t WHERE "id" = ${id} AND EXISTS (SELECT FROM k)${parents.after} AND ${reachSql(view, sql, object.apiName, 'read', 't')} FOR UPDATE)
      SELECT s.m, s.a, (SELECT count(*)::int FROM k), o."recordVersion", ${reachedSql(write, sql, 'o', 'delete')} FROM s LEFT JOIN o ON true${actorSql(write, sql, true)}`),
  );
  const row = rows[0]!;
  await readLock(write, row);
  write.reached = row.at(-1) as Reached;
}

/** So many kinds of details, and so deep, have their other parents locked beforehand; beyond, writers may have to repeat. */
const ALONG_LOCKED_MAX = 20;
const ALONG_LEVELS_MAX = 3;

/** What goes along with records whose ids `ids` gives, as far as the configuration tells. */
function goingAlong(write: Write, object: ObjectMeta, ids: string, level = 1): Along[] {
  const links = linksTo(write, object).filter((link) => link.onDelete === 'cascade');
  return links.slice(0, ALONG_LOCKED_MAX).flatMap(({ child, field }) => {
    const those = `FROM ${table(write.schema, child.apiName)} x WHERE x.${identifier(field.apiName)} IN (${ids})`;
    const further = level < ALONG_LEVELS_MAX ? goingAlong(write, child, `SELECT x."id" ${those}`, level + 1) : [];
    return [{ object: child.apiName, named: (reference) => `SELECT x.${identifier(reference)} ${those}` }, ...further];
  });
}

function refuseUnreached({ reached }: Write): void {
  requireReached(reached, 'delete');
}

function mayDelete({ view, object, access }: Write): void {
  if (object.apiName === 'User' && !access.permission.delete)
    throw new PlatformError('OBJECT_PERMISSION_DENIED', 'Users are deactivated, never deleted.', {
      details: { objectApiName: object.apiName, operation: 'delete', layer: 'objectPermission' },
    });
  requireObject(view.access, object.apiName, 'delete');
}

interface Link {
  readonly child: ObjectMeta;
  readonly field: FieldMeta;
  readonly onDelete: 'setNull' | 'restrict' | 'cascade';
}

/** How other objects refer to records of this one. A detail goes with its master unless that is forbidden. */
export function linksTo(write: Pick<Write, 'view'>, object: ObjectMeta): Link[] {
  return object.childRelationships.flatMap((relationship: ChildRelationship): Link[] => {
    const child = objectOf(write.view.snapshot, relationship.objectApiName);
    const field = child && fieldOf(child, relationship.field);
    if (!child || !field) return [];
    const fallback = isMasterDetail(field) ? 'cascade' : 'setNull';
    return [{ child, field, onDelete: relationship.onDelete ?? field.onDelete ?? fallback }];
  });
}

/** SQL of the ids of child rows that refer to the bound ids. */
const refersTo = (schema: string, sql: Sql, link: Link, ids: readonly string[]): string =>
  `${table(schema, link.child.apiName)} t WHERE ${identifier(link.field.apiName)} = ANY(${sql.bind(ids, 'uuid[]')})`;

async function removeWithDependents(write: Write): Promise<void> {
  const { schema, tx } = write;
  // A record goes along whatever its own sharing says; that it did is told only of those the user can see.
  const hidden = new Set<string>();
  const doomed = await collectCascade(write, hidden);
  // Records that depend on these, and how many of them the user can see.
  const restricted = new Map<string, number>();
  const detached: { link: Link; ids: readonly string[] }[] = [];
  const counts: Promise<void>[] = [];
  for (const [apiName, ids] of doomed)
    for (const link of linksTo(write, write.view.snapshot.objects[apiName]!)) {
      if (link.onDelete === 'setNull') detached.push({ link, ids: [...ids] });
      if (link.onDelete !== 'restrict') continue;
      const sql = new Sql();
      const spared = doomed.get(link.child.apiName);
      const seen = reachSql(write.view, sql, link.child.apiName, 'read', 't');
      const text = `SELECT count(*)::int, (count(*) FILTER (WHERE ${seen}))::int FROM ${refersTo(schema, sql, link, [...ids])}${
        spared ? ` AND NOT "id" = ANY(${sql.bind([...spared], 'uuid[]')})` : ''
      }`;
      counts.push(
        tx.arrays(sql.statement(text)).then(({ rows }) => {
          const [count, visible] = rows[0] as [number, number];
          if (count) restricted.set(link.child.apiName, (restricted.get(link.child.apiName) ?? 0) + visible);
        }),
      );
    }
  await all(counts);
  if (restricted.size)
    throw new PlatformError('DELETE_RESTRICTED', 'Other records depend on this one; delete or change them first.', {
      // Objects and records that the caller cannot see are not told of.
      details: { dependents: visibleCounts(write, restricted) },
    });
  await detach(write, doomed, detached);
  await remove(write, doomed, hidden);
}

const visibleCounts = (write: Write, counts: ReadonlyMap<string, number>) =>
  [...counts]
    .filter(([apiName, count]) => count > 0 && own(write.view.access.objects, apiName))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([objectApiName, count]) => ({ objectApiName, count }));

/** Waits for all, then throws the first failure: no statement is left running behind a rollback. */
async function all(promises: Promise<unknown>[]): Promise<void> {
  const failed = (await Promise.allSettled(promises)).find((result) => result.status === 'rejected');
  if (failed) throw failed.reason;
}

/** Ids by object of everything that goes along, locked in id order within an object. The record itself comes first. */
async function collectCascade(write: Write, hidden: Set<string>): Promise<Map<string, Set<string>>> {
  const { schema, tx } = write;
  const doomed = new Map<string, Set<string>>([[write.object.apiName, new Set([write.id])]]);
  let total = 1;
  let level = new Map<string, string[]>([[write.object.apiName, [write.id]]]);
  while (level.size) {
    const next = new Map<string, string[]>();
    const found: Promise<void>[] = [];
    for (const [apiName, ids] of level)
      for (const link of linksTo(write, write.view.snapshot.objects[apiName]!)) {
        if (link.onDelete !== 'cascade') continue;
        const sql = new Sql();
        const seen = reachSql(write.view, sql, link.child.apiName, 'read', 't');
        const text = `SELECT "id", ${seen} FROM ${refersTo(schema, sql, link, ids)} ORDER BY "id" LIMIT ${CASCADE_MAX + 1} FOR UPDATE`;
        found.push(
          tx.arrays(sql.statement(text)).then(({ rows }) => {
            const known = doomed.get(link.child.apiName) ?? new Set();
            const fresh = rows.map((row) => row[0] as string).filter((id) => !known.has(id));
            if (fresh.length === 0) return;
            for (const [id, visible] of rows) if (!visible) hidden.add(id as string);
            for (const id of fresh) known.add(id);
            doomed.set(link.child.apiName, known);
            next.set(link.child.apiName, [...(next.get(link.child.apiName) ?? []), ...fresh]);
            total += fresh.length;
          }),
        );
      }
    await all(found);
    if (total > CASCADE_MAX + 1)
      throw new PlatformError('TOO_MANY_ITEMS', 'Too many records depend on this one to delete them together.', {
        details: { max: CASCADE_MAX },
      });
    level = next;
  }
  return doomed;
}

/** Clears references to the deleted records in records that stay. */
async function detach(
  write: Write,
  doomed: ReadonlyMap<string, ReadonlySet<string>>,
  detached: readonly { link: Link; ids: readonly string[] }[],
): Promise<void> {
  const { schema, tx, request } = write;
  const byChild = Map.groupBy(detached, ({ link }) => link.child.apiName);
  const statements: Promise<unknown>[] = [];
  for (const [apiName, references] of byChild) {
    const child = references[0]!.link.child;
    const sql = new Sql();
    const name = table(schema, apiName);
    // A field may be reached over several parents of the cascade; each field is set once.
    const fields = new Map<FieldMeta, string[]>();
    for (const { link, ids } of references) fields.set(link.field, [...(fields.get(link.field) ?? []), ...ids]);
    const bound = [...fields].map(([field, ids]) => ({ field, list: sql.bind(ids, 'uuid[]') }));
    const spared = sql.bind([...(doomed.get(apiName) ?? [])], 'uuid[]');
    const hit = (alias: string): string =>
      bound.map(({ field, list }) => `${alias}.${identifier(field.apiName)} = ANY(${list})`).join(' OR ');
    const changed = bound.map(({ field }) => field);
    const text = `WITH o AS MATERIALIZED (SELECT * FROM ${name} t WHERE (${hit('t')}) AND NOT t."id" = ANY(${spared}) ORDER BY t."id" FOR NO KEY UPDATE),
      u AS (UPDATE ${name} t SET ${bound
        .map(
          ({ field, list }) =>
            `${identifier(field.apiName)} = CASE WHEN t.${identifier(field.apiName)} = ANY(${list}) THEN NULL ELSE t.${identifier(field.apiName)} END`,
        )
        .join(
          ', ',
        )}, "recordVersion" = t."recordVersion" + 1, "updatedAt" = statement_timestamp(), "updatedById" = ${sql.bind(request.userId, 'uuid')}
        FROM o WHERE t."id" = o."id" RETURNING t.*),
      c AS MATERIALIZED (SELECT u."id" AS record_id, u."recordVersion" AS record_version, 0 AS position, ${randomTrailIds}, ${changesSql(
        changed,
        (field) => outputOf('o', field),
        (field) => outputOf('u', field),
      )} AS changes FROM u JOIN o ON o."id" = u."id")${trailSql(write, sql, child, {
        kind: 'update',
        from: 'c',
        transactionSize: countOf(doomed),
      })
        .map((cte) => `,\n${cte}`)
        .join('')}
      SELECT count(*)::int FROM o t WHERE ${reachSql(write.view, sql, apiName, 'read', 't')}`;
    statements.push(
      tx.arrays(sql.statement(text)).then(({ rows }) => {
        const count = rows[0]![0] as number;
        if (count)
          noteEffect(write, 'update', child, { id: null, count, fields: changed.map((field) => field.apiName) });
      }),
    );
  }
  await all(statements);
}

/** Records in all. */
export const countOf = (ids: ReadonlyMap<string, ReadonlySet<string>>): number =>
  [...ids.values()].reduce((sum, of) => sum + of.size, 0);

/** One statement for all objects, so that it does not matter who refers to whom. */
async function remove(
  write: Write,
  doomed: ReadonlyMap<string, ReadonlySet<string>>,
  hidden: ReadonlySet<string>,
): Promise<void> {
  const { schema, request, key, object } = write;
  const sql = new Sql();
  const deletedAt = new Date();
  const restorableUntil = new Date(deletedAt.getTime() + LIMITS.recycle_bin_days * 86_400_000);
  const user = sql.bind(request.userId, 'uuid');
  const root = sql.bind(write.id, 'uuid');
  const at = sql.bind(deletedAt.toISOString(), 'timestamptz');
  const until = sql.bind(restorableUntil.toISOString(), 'timestamptz');
  let position = 0;
  const ctes = [...doomed].flatMap(([apiName, ids], index) => {
    const child = write.view.snapshot.objects[apiName]!;
    const first = position;
    position += ids.size;
    const kept = storedFields(child).filter((field) => !field.system);
    return [
      `d${index} AS (DELETE FROM ${table(schema, apiName)} WHERE "id" = ANY(${sql.bind([...ids], 'uuid[]')}) RETURNING *)`,
      `b${index} AS (INSERT INTO ${schema}._recycle_bin (object, record_id, root_id, record, record_version, deleted_at, deleted_by_id, restorable_until)
        SELECT ${sql.bind(apiName, 'text')}, d."id", ${root}, to_jsonb(d), d."recordVersion", ${at}, ${user}, ${until} FROM d${index} d)`,
      `c${index} AS MATERIALIZED (SELECT d."id" AS record_id, d."recordVersion" AS record_version, ${first} + (row_number() OVER ())::int - 1 AS position, ${randomTrailIds}, ${changesSql(
        kept,
        (field) => outputOf('d', field),
        () => 'NULL',
      )} AS changes FROM d${index} d)`,
      ...trailSql(write, sql, child, {
        kind: 'delete',
        from: `c${index}`,
        transactionSize: countOf(doomed),
        suffix: String(index),
      }),
    ];
  });
  const counts = new Map(
    [...doomed].map(([apiName, ids]) => [apiName, [...ids].filter((id) => !hidden.has(id)).length]),
  );
  const own = counts.get(object.apiName)! - 1;
  if (own) counts.set(object.apiName, own);
  else counts.delete(object.apiName);
  const body = JSON.stringify({
    id: write.id,
    objectApiName: object.apiName,
    deleted: true,
    deletedAt: formatTimestamp(deletedAt),
    restorableUntil: formatTimestamp(restorableUntil),
    cascaded: visibleCounts(write, counts),
  });
  ctes.push(
    `k AS (${completeKeySql(schema, key, sql.bind, { status: '200', headers: "'{}'::jsonb", body: sql.bind(body, 'text') })})`,
  );
  await write.commit(sql.statement(`WITH ${ctes.join(',\n')}\nSELECT count(*) FROM d0`));
  noteEffect(write, 'delete', object, { id: write.id });
  for (const { objectApiName, count } of visibleCounts(write, counts))
    noteEffect(write, 'delete', write.view.snapshot.objects[objectApiName]!, { id: null, count });
  write.reply = { status: 200, headers: {}, body: Buffer.from(body) };
}
