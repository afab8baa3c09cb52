/**
 * Rollups as triggers: they are right in the transaction that changes a child, by whatever statement. Like tables,
 * they are the difference between two configurations. Pure; every name is quoted.
 * Source: docs/decisions/rollups-by-triggers.md.
 */

import { createHash } from 'node:crypto';
import { checkExpression } from '../../../lib/expression/check.ts';
import { columnSql, rowContext } from '../../../lib/expression/formulas.ts';
import { conditionSql } from '../../../lib/expression/sql.ts';
import { schemaOfObject } from '../../../lib/expression/values.ts';
import { typeOf } from '../../../lib/schema/field-types/registry.ts';
import {
  emptyRollup,
  type ParentLock,
  parentLocks,
  type RollupEdge,
  rollupEdges,
} from '../../../lib/schema/rollups.ts';
import type { FieldMeta, ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { memoizeByName } from '../../../lib/values/memoize.ts';
import { identifier, literal } from '../../../lib/values/sql-text.ts';
import { CUSTOM_FIELD } from '../kinds/bodies/custom-field.ts';
import { CUSTOM_OBJECT } from '../kinds/bodies/custom-object.ts';
import { compileField } from '../kinds/compile-field.ts';
import { linkFormulas } from '../kinds/compile-formula.ts';
import { compileObject } from '../kinds/compile-object.ts';
import { rollupObjects, rollupsOf } from '../kinds/compile-rollup.ts';
import { componentsByObject, findComponent, type State } from '../kinds/component.ts';
import { tenantSettings } from '../kinds/tenant-settings.ts';
import { columnType } from './column-type.ts';

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

/** Parts of the function that computes the rollups of one edge. */
interface Figures {
  readonly child: string;
  readonly referenceField: string;
  readonly parent: string;
  readonly features: { readonly history: boolean; readonly events: boolean };
  readonly columns: readonly Column[];
}

/** Parts of a child's triggers: the parents that a statement concerns, and their locks. */
interface Watch {
  readonly edges: readonly {
    readonly name: string;
    readonly referenceField: string;
    readonly reads: readonly string[];
  }[];
  /** In this order; `{schema}` stands for the schema, `ids_<n>` for the parents over the edge n. */
  readonly locks: readonly { readonly object: string; readonly ids: readonly string[] }[];
}

interface RollupModel {
  /** By the name of the function. */
  readonly figures: ReadonlyMap<string, Figures>;
  /** By child. */
  readonly watches: ReadonlyMap<string, Watch>;
}

const hash = (name: string): string => createHash('sha256').update(name).digest('hex').slice(0, 8);
const figuresName = ({ child, referenceField }: RollupEdge): string => `_rollup_${hash(child)}_${referenceField}`;
const watchName = (child: string): string => `_rollups_${hash(child)}`;
const ownName = (parent: string): string => `_rollup_own_${hash(parent)}`;

/** Triggers that a configuration requires. */
export function rollupModel(state: State): RollupModel {
  const edges = rollupEdges(rollupObjects(rollupsOf(state), state));
  return {
    figures: new Map(edges.map((edge) => [figuresName(edge), figuresOf(edge, state)])),
    watches: new Map([...Map.groupBy(edges, (edge) => edge.child)].map(([child, own]) => [child, watchOf(own, edges)])),
  };
}

function figuresOf(edge: RollupEdge, state: State): Figures {
  const { child, referenceField, parent } = edge;
  const { history, events } = objectOf(parent, state).features;
  return {
    child,
    referenceField,
    parent,
    features: { history, events },
    columns: edge.fields.map((field) => columnOf(field, state)),
  };
}

function watchOf(own: readonly RollupEdge[], edges: readonly RollupEdge[]): Watch {
  const above = (next: RollupEdge, ids: string): string =>
    `SELECT x.${identifier(next.referenceField)} FROM {schema}.${identifier(next.child)} x WHERE x.id IN (${ids})`;
  return {
    edges: own.map((edge) => ({
      name: figuresName(edge),
      referenceField: edge.referenceField,
      reads: [...edge.reads].sort(),
    })),
    locks: parentLocks(
      edges,
      own.map((edge, n) => ({ edge, ids: `SELECT unnest(ids_${n})` })),
      above,
    ),
  };
}

function columnOf(field: FieldMeta, state: State): Column {
  const { rollup } = field;
  const type = columnType(field);
  if (!rollup || type === null) throw new Error(`The field ${field.apiName} is not a rollup.`);
  const aggregate = aggregateSql(rollup, state);
  const empty = emptyRollup(field);
  const value = empty === '0' ? `coalesce(${aggregate}, 0)` : aggregate;
  const shown = (alias: string): string =>
    typeOf(field).outputSql(`${alias}.${identifier(field.apiName)}`, field, false);
  return { name: field.apiName, type, value: `(${value})::${type}`, empty, from: shown('b'), to: shown('u') };
}

/** SQL of the aggregate over rows `c` of the child, before it is rounded to the digits of its field. */
export function aggregateSql(rollup: NonNullable<FieldMeta['rollup']>, state: State): string {
  const child = childOf(state, rollup.childObject);
  const field = rollup.field === null ? null : child.fields[rollup.field];
  if (field === undefined) throw new Error(`The object ${child.apiName} has no field ${rollup.field}.`);
  const over = field === null ? '*' : columnSql(field, 'c');
  const where = rollup.criteria === null ? '' : ` FILTER (WHERE ${criteriaSql(child, rollup.criteria, state)})`;
  return `${rollup.function}(${over})${where}`;
}

/** SQL of criteria over rows `c` of the child. */
function criteriaSql(child: ObjectMeta, criteria: string, state: State): string {
  const expression = checkExpression(criteria, schemaOfObject(child), ['boolean']);
  return conditionSql(expression, rowContext(child, 'c', timezoneOf(state))).sql;
}

const timezoneOf = (state: State): string => findComponent(state, tenantSettings, 'General')?.body.timezone ?? 'UTC';

function objectOf(name: string, state: State): ObjectMeta {
  const component = findComponent(state, CUSTOM_OBJECT, name);
  if (!component) throw new Error(`The configuration has no object ${name}.`);
  return compileObject(component);
}

/** An object of a configuration that holds together, with its fields and what its formulas say. */
const childOf = memoizeByName((state: State, name): ObjectMeta => {
  const own = componentsByObject(state, CUSTOM_FIELD).get(name) ?? [];
  const compiled = own.map((field) => compileField(field, state));
  const object = objectOf(name, state);
  const fields = { ...object.fields, ...Object.fromEntries(compiled.map((field) => [field.apiName, field])) };
  const child = { ...object, fields };
  linkFormulas(child, timezoneOf(state));
  return child;
});

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Statements that come before the tables change, and those that come after. */
export function rollupDdl(
  before: RollupModel,
  after: RollupModel,
  schema: string,
): { readonly first: string[]; readonly last: string[] } {
  const first: string[] = [];
  const last: string[] = [];
  const fills: string[] = [];
  for (const child of before.watches.keys())
    if (!after.watches.has(child)) {
      for (const event of EVENTS) first.push(`DROP TRIGGER ${triggerName(event)} ON ${schema}.${identifier(child)}`);
      first.push(`DROP FUNCTION ${schema}.${identifier(watchName(child))}()`);
    }
  for (const name of before.figures.keys())
    if (!after.figures.has(name)) first.push(`DROP FUNCTION ${schema}.${identifier(name)}(uuid[])`);
  for (const [name, figures] of after.figures) {
    const old = before.figures.get(name);
    if (same(old, figures)) continue;
    last.push(figuresFunction(name, figures, schema));
    if (figures.columns.some((column) => !old?.columns.some((known) => same(known, column))))
      fills.push(fill(figures, schema));
  }
  for (const [child, watch] of after.watches) {
    const old = before.watches.get(child);
    if (!same(old, watch)) last.push(watchFunction(child, watch, schema));
    if (!old) last.push(...triggers(child, schema));
  }
  const had = ownTriggers(before);
  const has = ownTriggers(after);
  for (const [parent, own] of had) {
    if (!same(own, has.get(parent))) first.push(`DROP TRIGGER _rollup_own ON ${schema}.${identifier(parent)}`);
    if (!has.has(parent)) first.push(`DROP FUNCTION ${schema}.${identifier(ownName(parent))}()`);
  }
  for (const [parent, own] of has) if (!same(own, had.get(parent))) last.push(...ownTrigger(parent, own, schema));
  return { first, last: [...last, ...fills] };
}

const EVENTS = ['insert', 'update', 'delete'] as const;
type Event = (typeof EVENTS)[number];

const triggerName = (event: Event): string => `_rollups_${event}`;

const columns = (alias: string, names: readonly string[]): string =>
  `ROW(${names.map((name) => `${alias}.${identifier(name)}`).join(', ')})`;

/** Computes the rollups of the parents `ids`, which are locked. */
function figuresFunction(name: string, ties: Figures, schema: string): string {
  const parent = `${schema}.${identifier(ties.parent)}`;
  const names = ties.columns.map((column) => column.name);
  const changes = ties.columns.map(({ name, from, to }) => {
    const change = `jsonb_build_object(${literal(name)}, jsonb_build_object('from', ${from}, 'to', ${to}))`;
    return `CASE WHEN b.${identifier(name)} IS DISTINCT FROM u.${identifier(name)} THEN ${change} ELSE '{}' END`;
  });
  return `CREATE OR REPLACE FUNCTION ${schema}.${identifier(name)}(ids uuid[]) RETURNS void LANGUAGE plpgsql AS $rollup$
DECLARE
  actor jsonb := nullif(current_setting('app.actor', true), '');
  changed jsonb;
BEGIN
  WITH f AS MATERIALIZED (
      SELECT p.id, ${names.map((column) => `a.${identifier(column)}`).join(', ')} FROM ${parent} p,
        LATERAL (SELECT ${ties.columns.map((column) => `${column.value} AS ${identifier(column.name)}`).join(', ')}
          FROM ${schema}.${identifier(ties.child)} c WHERE c.${identifier(ties.referenceField)} = p.id) a
      WHERE p.id = ANY (ids)),
    b AS MATERIALIZED (SELECT p.* FROM ${parent} p JOIN f ON f.id = p.id WHERE ${columns('p', names)} IS DISTINCT FROM ${columns('f', names)}),
    u AS (UPDATE ${parent} p SET ${names.map((column) => `${identifier(column)} = f.${identifier(column)}`).join(', ')},
        "recordVersion" = p."recordVersion" + 1,
        "updatedAt" = CASE WHEN actor IS NULL THEN p."updatedAt" ELSE clock_timestamp() END,
        "updatedById" = coalesce((actor ->> 'userId')::uuid, p."updatedById")
      FROM f JOIN b ON b.id = f.id WHERE p.id = f.id RETURNING p.*)
  SELECT jsonb_agg(jsonb_build_object('id', u.id, 'version', u."recordVersion", 'changes', ${changes.join(' || ')}))
    INTO changed FROM u JOIN b ON b.id = u.id;
  IF actor IS NOT NULL AND changed IS NOT NULL THEN
    PERFORM ${schema}._rollup_trail(${literal(ties.parent)}, ${ties.features.history}, ${ties.features.events}, changed, actor);
  END IF;
END $rollup$`;
}

/**
 * The parents that a statement on the children concerns (of a child that moves, the old one and the new one), and their
 * figures. One statement each takes the locks, in the one order of all writers; those that compute the figures
 * have a new snapshot, in which all that earlier holders of the locks did has been committed. So the last of several
 * writers counts everything, at READ COMMITTED and without a retry.
 */
function watchFunction(child: string, { edges, locks }: Watch, schema: string): string {
  const collect = (how: (edge: Watch['edges'][number], n: number) => string): string => edges.map(how).join('\n    ');
  const gathered = (rows: string) =>
    collect(({ referenceField }, n) => {
      const column = `r.${identifier(referenceField)}`;
      return `SELECT array_agg(DISTINCT ${column}) INTO ids_${n} FROM ${rows} r WHERE ${column} IS NOT NULL;`;
    });
  const lockParents = ({ object, ids }: ParentLock): string =>
    `PERFORM FROM ${schema}.${identifier(object)} p
    WHERE p.id IN (${ids.join(' UNION ALL ').replaceAll('{schema}', schema)}) ORDER BY p.id FOR NO KEY UPDATE;`;
  const recompute = ({ name }: { readonly name: string }, n: number): string =>
    `IF ids_${n} IS NOT NULL THEN PERFORM ${schema}.${identifier(name)}(ids_${n}); END IF;`;
  return `CREATE OR REPLACE FUNCTION ${schema}.${identifier(watchName(child))}() RETURNS trigger LANGUAGE plpgsql AS $rollup$
DECLARE
  ${edges.map((_, n) => `ids_${n} uuid[];`).join(' ')}
BEGIN
  IF TG_OP = 'INSERT' THEN
    ${gathered('new_rows')}
  ELSIF TG_OP = 'DELETE' THEN
    ${gathered('old_rows')}
  ELSE
    ${collect(
      ({ referenceField, reads }, n) =>
        `SELECT array_agg(DISTINCT x.parent) INTO ids_${n}
      FROM old_rows o JOIN new_rows n ON n.id = o.id, LATERAL (VALUES (o.${identifier(referenceField)}), (n.${identifier(referenceField)})) x (parent)
      WHERE x.parent IS NOT NULL AND ${columns('o', reads)} IS DISTINCT FROM ${columns('n', reads)};`,
    )}
  END IF;
  IF ${edges.map((_, n) => `ids_${n} IS NULL`).join(' AND ')} THEN
    RETURN NULL;
  END IF;
  ${locks.map(lockParents).join('\n  ')}
  ${edges.map(recompute).join('\n  ')}
  RETURN NULL;
END $rollup$`;
}

function triggers(child: string, schema: string): string[] {
  const rows: Readonly<Record<Event, string>> = {
    insert: 'NEW TABLE AS new_rows',
    update: 'OLD TABLE AS old_rows NEW TABLE AS new_rows',
    delete: 'OLD TABLE AS old_rows',
  };
  return EVENTS.map(
    (event) => `CREATE TRIGGER ${triggerName(event)} AFTER ${event.toUpperCase()} ON ${schema}.${identifier(child)}
      REFERENCING ${rows[event]} FOR EACH STATEMENT EXECUTE FUNCTION ${schema}.${identifier(watchName(child))}()`,
  );
}

interface Own {
  readonly figures: readonly string[];
  readonly columns: readonly Pick<Column, 'name' | 'type' | 'empty'>[];
}

/** By parent. */
function ownTriggers({ figures }: RollupModel): Map<string, Own> {
  const byParent = Map.groupBy(figures, ([, { parent }]) => parent);
  return new Map(
    [...byParent].map(([parent, own]) => [
      parent,
      {
        figures: own.map(([name]) => name),
        columns: own.flatMap(([, ties]) => ties.columns.map(({ name, type, empty }) => ({ name, type, empty }))),
      },
    ]),
  );
}

/**
 * A parent that comes into being with figures of its own (restored, loaded) or after its children: they are checked.
 */
function ownTrigger(parent: string, own: Own, schema: string): string[] {
  const name = `${schema}.${identifier(ownName(parent))}`;
  const isSet = own.columns.map((column) => `NEW.${identifier(column.name)} IS DISTINCT FROM ${column.empty}`);
  return [
    `CREATE OR REPLACE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $rollup$
BEGIN
  ${own.figures.map((figures) => `PERFORM ${schema}.${identifier(figures)}(ARRAY[NEW.id]);`).join('\n  ')}
  RETURN NULL;
END $rollup$`,
    `CREATE TRIGGER _rollup_own AFTER INSERT ON ${schema}.${identifier(parent)} FOR EACH ROW
      WHEN (NEW."recordVersion" > 1 OR ${isSet.join(' OR ')}) EXECUTE FUNCTION ${name}()`,
  ];
}

/** Computes the rollups of all parents at once. What changes gets a new version: its ETag must not stay. */
function fill(ties: Figures, schema: string): string {
  const names = ties.columns.map((column) => column.name);
  const parent = `${schema}.${identifier(ties.parent)}`;
  const reference = `c.${identifier(ties.referenceField)}`;
  const sets = names.map((name) => `${identifier(name)} = f.${identifier(name)}`);
  const figures = ties.columns.map(({ name, type, empty }) => {
    const value = `a.${identifier(name)}`;
    return `${empty === '0' ? `coalesce(${value}, 0::${type})` : value} AS ${identifier(name)}`;
  });
  const aggregates = ties.columns.map(({ name, value }) => `${value} AS ${identifier(name)}`);
  return `UPDATE ${parent} p SET ${sets.join(', ')}, "recordVersion" = p."recordVersion" + 1
  FROM (SELECT q.id, ${figures.join(', ')}
    FROM ${parent} q LEFT JOIN (SELECT ${reference} AS id, ${aggregates.join(', ')}
      FROM ${schema}.${identifier(ties.child)} c WHERE ${reference} IS NOT NULL GROUP BY ${reference}) a ON a.id = q.id) f
  WHERE f.id = p.id AND ${columns('p', names)} IS DISTINCT FROM ${columns('f', names)}`;
}
