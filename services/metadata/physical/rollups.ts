/**
 * Rollups as triggers: what keeps them right in the transaction that changes a child, whoever changes it. Like tables,
 * they are the difference between two configurations. Pure; every name is quoted.
 * Source: docs/decisions/rollups-by-triggers.md.
 */
import { createHash } from 'node:crypto';
import { typeOf } from '../../../lib/field-types/registry.ts';
import { emptyRollup, levelsAbove, parentLocks, type RollupEdge, rollupEdges } from '../../../lib/rollups.ts';
import type { FieldMeta, ObjectMeta } from '../../../lib/snapshot/types.ts';
import type { Component, State } from '../kinds/kind.ts';
import { rollupObjects, rollupsOf } from '../kinds/rollup.ts';
import { columnType } from './column-type.ts';
import { literal } from './ddl.ts';
import { quote } from './model.ts';

interface Column {
  readonly name: string;
  readonly type: string;
  /** SQL of the aggregate over rows `c` of the child. */
  readonly value: string;
  /** SQL of the value over no child. */
  readonly empty: 'NULL' | '0';
  /** SQL of the value in the trail, of the column of `b` and `u`. */
  readonly from: string;
  readonly to: string;
}

/** Everything that the functions and triggers of one edge are made of. */
interface Ties {
  readonly child: string;
  readonly referenceField: string;
  readonly parent: string;
  readonly features: { readonly history: boolean; readonly events: boolean };
  readonly columns: readonly Column[];
  readonly reads: readonly string[];
  /** Locked before anything is worked out; `{schema}` stands for the schema. */
  readonly locks: readonly { readonly object: string; readonly ids: readonly string[] }[];
  /** Triggers fire in the order of their names, which is the order of locks. */
  readonly order: number;
}

export type RollupModel = ReadonlyMap<string, Ties>;

const hash = (name: string): string => createHash('sha256').update(name).digest('hex').slice(0, 8);
const functionName = (child: string, referenceField: string): string => `_rollup_${hash(child)}_${referenceField}`;
const ownName = (parent: string): string => `_rollup_own_${hash(parent)}`;

/** What a configuration wants its triggers to be, by the name of their function. */
export function rollupModel(state: State): RollupModel {
  const edges = rollupEdges(rollupObjects(rollupsOf(state), state));
  const ranked = edges
    .map((edge) => ({ edge, rank: levelsAbove(edge, edges) }))
    .sort((a, b) => a.rank - b.rank || (a.edge.parent < b.edge.parent ? -1 : 1));
  return new Map(
    edges.map((edge) => [
      functionName(edge.child, edge.referenceField),
      tiesOf(
        edge,
        edges,
        ranked.findIndex((item) => item.edge === edge),
        state,
      ),
    ]),
  );
}

function tiesOf(edge: RollupEdge, edges: readonly RollupEdge[], order: number, state: State): Ties {
  const parent = [...state.values()].find(
    (component: Component) => component.type === 'CustomObject' && component.fullName === edge.parent,
  );
  const { history, events } = (parent?.body['features'] ?? {}) as unknown as ObjectMeta['features'];
  const above = (next: RollupEdge, ids: string): string =>
    `SELECT x.${quote(next.referenceField)} FROM {schema}.${quote(next.child)} x WHERE x.id IN (${ids})`;
  return {
    child: edge.child,
    referenceField: edge.referenceField,
    parent: edge.parent,
    features: { history, events },
    columns: edge.fields.map(columnOf),
    reads: [...edge.reads].sort(),
    locks: parentLocks(edges, [{ edge, ids: 'SELECT unnest(ids)' }], above),
    order,
  };
}

function columnOf(field: FieldMeta): Column {
  const rollup = field.rollup!;
  const over = rollup.field === null ? '*' : `c.${quote(rollup.field)}`;
  const aggregate = `${rollup.function}(${over})`;
  const empty = emptyRollup(field);
  const type = columnType(field)!;
  const value = empty === '0' ? `coalesce(${aggregate}, 0)` : aggregate;
  const shown = (alias: string): string => typeOf(field).outputSql(`${alias}.${quote(field.apiName)}`, field, false);
  return { name: field.apiName, type, value: `(${value})::${type}`, empty, from: shown('b'), to: shown('u') };
}

/** Statements that come before the tables change, and those that come after. */
export function rollupDdl(
  before: RollupModel,
  after: RollupModel,
  schema: string,
): { readonly first: string[]; readonly last: string[] } {
  const first: string[] = [];
  const last: string[] = [];
  const fills: string[] = [];
  const parents = new Set<string>();
  for (const [name, old] of before) {
    const ties = after.get(name);
    if (ties && JSON.stringify(ties) === JSON.stringify(old)) continue;
    parents.add(old.parent);
    for (const event of EVENTS)
      first.push(`DROP TRIGGER ${quote(triggerName(old, event))} ON ${schema}.${quote(old.child)}`);
    if (!ties) first.push(`DROP FUNCTION ${schema}.${quote(name)}(), ${schema}.${quote(name)}(uuid[])`);
  }
  for (const [name, ties] of after) {
    const old = before.get(name);
    if (old && JSON.stringify(ties) === JSON.stringify(old)) continue;
    parents.add(ties.parent);
    last.push(applyFunction(name, ties, schema), triggerFunction(name, ties, schema), ...triggers(name, ties, schema));
    const known = new Map(old?.columns.map((column) => [column.name, JSON.stringify(column)]));
    if (ties.columns.some((column) => known.get(column.name) !== JSON.stringify(column)))
      fills.push(fill(ties, schema));
  }
  const had = new Set([...before.values()].map((ties) => ties.parent));
  const has = Map.groupBy(after, ([, ties]) => ties.parent);
  for (const parent of parents) {
    if (had.has(parent)) first.push(`DROP TRIGGER _rollup_own ON ${schema}.${quote(parent)}`);
    const own = has.get(parent);
    if (own) last.push(...ownTrigger(parent, own, schema));
    else if (had.has(parent)) first.push(`DROP FUNCTION ${schema}.${quote(ownName(parent))}()`);
  }
  return { first, last: [...last, ...fills] };
}

const EVENTS = ['insert', 'update', 'delete'] as const;
type Event = (typeof EVENTS)[number];

const triggerName = (ties: Ties, event: Event): string =>
  `_rollup_${String(ties.order).padStart(3, '0')}_${event[0]}_${ties.referenceField}`;

const columns = (alias: string, names: readonly string[]): string =>
  `ROW(${names.map((name) => `${alias}.${quote(name)}`).join(', ')})`;

/**
 * Works out the rollups of the parents `ids`. The first statement takes the locks, in the one order that everybody
 * follows; the next one has a new snapshot, in which all that earlier holders of the locks did has been committed. So
 * the last of several writers counts everything, at READ COMMITTED and without a retry.
 */
function applyFunction(name: string, ties: Ties, schema: string): string {
  const parent = `${schema}.${quote(ties.parent)}`;
  const names = ties.columns.map((column) => column.name);
  const locks = ties.locks.map(
    ({ object, ids }) =>
      `PERFORM FROM ${schema}.${quote(object)} p WHERE p.id IN (${ids.join(' UNION ALL ').replaceAll('{schema}', schema)}) ORDER BY p.id FOR NO KEY UPDATE;`,
  );
  const changes = ties.columns.map(
    ({ name, from, to }) =>
      `CASE WHEN b.${quote(name)} IS DISTINCT FROM u.${quote(name)} THEN jsonb_build_object(${literal(name)}, jsonb_build_object('from', ${from}, 'to', ${to})) ELSE '{}' END`,
  );
  return `CREATE OR REPLACE FUNCTION ${schema}.${quote(name)}(ids uuid[]) RETURNS void LANGUAGE plpgsql AS $rollup$
DECLARE
  actor jsonb := nullif(current_setting('app.actor', true), '');
  changed jsonb;
BEGIN
  ${locks.join('\n  ')}
  WITH f AS MATERIALIZED (
      SELECT p.id, ${names.map((column) => `a.${quote(column)}`).join(', ')} FROM ${parent} p,
        LATERAL (SELECT ${ties.columns.map((column) => `${column.value} AS ${quote(column.name)}`).join(', ')}
          FROM ${schema}.${quote(ties.child)} c WHERE c.${quote(ties.referenceField)} = p.id) a
      WHERE p.id = ANY (ids)),
    b AS MATERIALIZED (SELECT p.* FROM ${parent} p JOIN f ON f.id = p.id WHERE ${columns('p', names)} IS DISTINCT FROM ${columns('f', names)}),
    u AS (UPDATE ${parent} p SET ${names.map((column) => `${quote(column)} = f.${quote(column)}`).join(', ')},
        "recordVersion" = p."recordVersion" + 1, "updatedAt" = clock_timestamp(),
        "updatedById" = coalesce((actor ->> 'userId')::uuid, p."updatedById")
      FROM f JOIN b ON b.id = f.id WHERE p.id = f.id RETURNING p.*)
  SELECT jsonb_agg(jsonb_build_object('id', u.id, 'version', u."recordVersion", 'changes', ${changes.join(' || ')}))
    INTO changed FROM u JOIN b ON b.id = u.id;
  IF actor IS NOT NULL AND changed IS NOT NULL THEN
    PERFORM ${schema}._rollup_trail(${literal(ties.parent)}, ${ties.features.history}, ${ties.features.events}, changed, actor);
  END IF;
END $rollup$`;
}

/** Which parents a statement on the children concerns: of a child that moves, the old one and the new one. */
function triggerFunction(name: string, ties: Ties, schema: string): string {
  const reference = quote(ties.referenceField);
  const apply = `${schema}.${quote(name)}`;
  return `CREATE OR REPLACE FUNCTION ${apply}() RETURNS trigger LANGUAGE plpgsql AS $rollup$
DECLARE
  ids uuid[];
BEGIN
  IF TG_OP = 'INSERT' THEN
    SELECT array_agg(DISTINCT n.${reference}) INTO ids FROM new_rows n WHERE n.${reference} IS NOT NULL;
  ELSIF TG_OP = 'DELETE' THEN
    SELECT array_agg(DISTINCT o.${reference}) INTO ids FROM old_rows o WHERE o.${reference} IS NOT NULL;
  ELSE
    SELECT array_agg(DISTINCT x.parent) INTO ids
      FROM old_rows o JOIN new_rows n ON n.id = o.id, LATERAL (VALUES (o.${reference}), (n.${reference})) x (parent)
      WHERE x.parent IS NOT NULL AND ${columns('o', ties.reads)} IS DISTINCT FROM ${columns('n', ties.reads)};
  END IF;
  IF ids IS NOT NULL THEN
    PERFORM ${apply}(ids);
  END IF;
  RETURN NULL;
END $rollup$`;
}

function triggers(name: string, ties: Ties, schema: string): string[] {
  const rows: Readonly<Record<Event, string>> = {
    insert: 'NEW TABLE AS new_rows',
    update: 'OLD TABLE AS old_rows NEW TABLE AS new_rows',
    delete: 'OLD TABLE AS old_rows',
  };
  return EVENTS.map(
    (event) =>
      `CREATE TRIGGER ${quote(triggerName(ties, event))} AFTER ${event.toUpperCase()} ON ${schema}.${quote(ties.child)} REFERENCING ${rows[event]} FOR EACH STATEMENT EXECUTE FUNCTION ${schema}.${quote(name)}()`,
  );
}

/** A parent that comes into being with figures of its own (restored, loaded) or after its children: they are checked. */
function ownTrigger(parent: string, own: readonly (readonly [string, Ties])[], schema: string): string[] {
  const name = `${schema}.${quote(ownName(parent))}`;
  const isSet = own.flatMap(([, ties]) =>
    ties.columns.map((column) => `NEW.${quote(column.name)} IS DISTINCT FROM ${column.empty}`),
  );
  return [
    `CREATE OR REPLACE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $rollup$
BEGIN
  ${own.map(([apply]) => `PERFORM ${schema}.${quote(apply)}(ARRAY[NEW.id]);`).join('\n  ')}
  RETURN NULL;
END $rollup$`,
    `CREATE TRIGGER _rollup_own AFTER INSERT ON ${schema}.${quote(parent)} FOR EACH ROW WHEN (NEW."recordVersion" > 1 OR ${isSet.join(' OR ')}) EXECUTE FUNCTION ${name}()`,
  ];
}

/** Works out the rollups of all parents at once. What changes gets a new version: its ETag must not stay. */
function fill(ties: Ties, schema: string): string {
  const names = ties.columns.map((column) => column.name);
  const parent = `${schema}.${quote(ties.parent)}`;
  const reference = `c.${quote(ties.referenceField)}`;
  return `UPDATE ${parent} p SET ${names.map((name) => `${quote(name)} = f.${quote(name)}`).join(', ')}, "recordVersion" = p."recordVersion" + 1
  FROM (SELECT q.id, ${ties.columns.map(({ name, type, empty }) => `${empty === '0' ? `coalesce(a.${quote(name)}, 0::${type})` : `a.${quote(name)}`} AS ${quote(name)}`).join(', ')}
    FROM ${parent} q LEFT JOIN (SELECT ${reference} AS id, ${ties.columns.map((column) => `${column.value} AS ${quote(column.name)}`).join(', ')}
      FROM ${schema}.${quote(ties.child)} c WHERE ${reference} IS NOT NULL GROUP BY ${reference}) a ON a.id = q.id) f
  WHERE f.id = p.id AND ${columns('p', names)} IS DISTINCT FROM ${columns('f', names)}`;
}
