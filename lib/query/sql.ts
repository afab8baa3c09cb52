/**
 * A constrained plan becomes one SQL statement. Its text depends on the shape of the plan alone, so that it can be
 * prepared once and run with other values; every value is bound, every identifier quoted.
 *
 * The rows come as plain columns and are copied from the wire into the JSON of the page (lib/json/row-writer.ts): that
 * costs the database a third of what json_agg does. One extra row is fetched to detect a next page. Expressions are
 * evaluated after LIMIT; otherwise the sort would carry their results.
 *
 * Relative dates do not occur here: plan.ts has turned each comparison with one, also `between`, into comparisons with
 * points in time. Conditions of the next page: keyset.ts. Lists that are merged from several index scans: merge.ts.
 */

import { hash } from 'node:crypto';
import { criteriaSql } from '../access/criteria.ts';
import type { Predicate } from '../access/predicate.ts';
import { columnSql, storedInputsOf } from '../expression/formulas.ts';
import { TEXT_COLLATION } from '../schema/field-types/common.ts';
import { typeOf } from '../schema/field-types/registry.ts';
import type { SqlValue } from '../schema/field-types/types.ts';
import { keyForm } from '../schema/matching.ts';
import type { FieldMeta, ObjectMeta } from '../schema/snapshot.ts';
import { memoize } from '../values/memoize.ts';
import { identifier } from '../values/sql-text.ts';
import { type Range, rangesAfter, sortAlias } from './keyset.ts';
import { isSelective, isSparse, mergeBranches, type OwnedBy } from './merge.ts';
import type { CompiledQuery, ConstrainedPlan, SortKey } from './types.ts';

/** The statement of a page: first the columns of a record, then its sort keys, then versions and total. */
export interface CompiledList extends CompiledQuery {
  readonly take: number;
  /** Columns of the record. */
  readonly shown: number;
  /** Index of the sort key id, which is null only when the one row stands for no record. */
  readonly marker: number;
  readonly keys: number;
  readonly includeTotal: boolean;
}

/** Metadata of a page. */
export interface Page {
  /** Records of the page. */
  readonly count: number;
  /** Sort values of the last record as text, when another page follows; null on the last page. */
  readonly lastKeys: readonly (string | null)[] | null;
  /** Null unless asked for. */
  readonly total: number | null;
  readonly metadataVersion: number;
  readonly accessVersion: number;
}

/**
 * One statement for a page of records, with the tenant's versions. `schema` is the tenant's schema, unquoted. There is
 * at least one row: without a record it carries the versions and the total. The join keeps the order of the records,
 * because its left side is a single row.
 */
export function compileList(plan: ConstrainedPlan, schema: string): CompiledList {
  const compiler = new Compiler(schema);
  const table = compiler.table(plan.object);
  const branches = mergeBranches(plan);
  compiler.plannedWithValues = compiler.ownersPlanned = dependsOnOwners(plan, branches !== null);
  const filter = plan.filter ? [compiler.condition(plan.filter, 'r')] : [];
  const sharing =
    plan.sharing && (branches === null || plan.includeTotal) ? [compiler.condition(plan.sharing, 'r')] : [];
  const conditions = [...filter, ...sharing];
  const { inner, outer, shown } = columns(plan);
  const expanded = plan.expand.length > 0 ? `, ${compiler.expanded(plan)}` : '';
  // A formula and a field of another record have no column of the table, only one of the select list.
  const order = orderSql(plan, (key, name) => `${key.field.formula || key.through ? '' : 'r.'}${name}`);
  const joined = compiler.sortedThrough(plan);
  const rows: RowsSql = (where, limit = plan.take + 1) =>
    `SELECT ${inner} FROM ${table} r${joined}${whereSql(where)} ORDER BY ${order} LIMIT ${limit}`;
  const ranges: readonly [Range, ...Range[]] =
    plan.after === null ? [[]] : rangesAfter(plan.sort, plan.after, 'r', (value, type) => compiler.bind(value, type));
  let page: string;
  if (branches) page = mergedPage(compiler, plan, rows, branches, filter, ranges[0]);
  else if (ranges.length > 1) page = rangesPage(plan, rows, conditions, ranges);
  else page = rows([...conditions, ...ranges[0]]);
  if (plan.skip > 0) {
    page += ` OFFSET ${compiler.bind(plan.skip, 'bigint')}`;
    compiler.plannedWithValues = true;
  }
  const keys = plan.sort.map((key, index) => `r.${sortColumn(key, index)} AS k${index}`).join(', ');
  const total = plan.includeTotal ? `, (SELECT count(*) FROM ${table} r${whereSql(conditions)}) AS total` : '';
  const text =
    `SELECT p.*, s.metadata_version, s.access_version${total} FROM ${compiler.schema}."_state" s ` +
    `LEFT JOIN LATERAL (SELECT ${outer}${expanded}, ${keys} FROM (${page}) r) p ON true`;
  return {
    text,
    values: compiler.values,
    ...(compiler.plannedWithValues ? {} : { name: nameOf(text) }),
    take: plan.take,
    shown,
    marker: shown + plan.sort.length - 1,
    keys: plan.sort.length,
    includeTotal: plan.includeTotal,
  };
}

/** The rows of the table that meet the conditions, in order; `limit`: one more than the page has unless given. */
type RowsSql = (where: readonly string[], limit?: string | number) => string;

const orderSql = (plan: ConstrainedPlan, column: (key: SortKey, name: string) => string): string =>
  plan.sort.map((key, index) => `${column(key, sortColumn(key, index))}${key.desc ? ' DESC' : ' ASC'}`).join(', ');

const orderOfPage = (plan: ConstrainedPlan): string => orderSql(plan, (_, name) => `r.${name}`);

/** Name of the column of a sort key in the rows of a page; no field of an object begins with an underscore. */
const sortColumn = ({ field, through }: SortKey, index: number): string =>
  through ? `"_sort${index}"` : identifier(field.apiName);

/** A page merged from one index scan per branch. */
function mergedPage(
  compiler: Compiler,
  plan: ConstrainedPlan,
  rows: RowsSql,
  branches: readonly Predicate[],
  filter: readonly string[],
  range: Range,
): string {
  // A limit that the planner does not know: it then expects to read the beginning of each branch, as the merge does,
  // and follows the index instead of sorting all records of a branch.
  const limit = compiler.bind(plan.take + 1, 'bigint');
  const parts = branches.map((branch) => `(${rows([...filter, compiler.condition(branch, 'r'), ...range], limit)})`);
  const key = plan.sort.map((one, index) => `r.${sortColumn(one, index)}`).join(', ');
  // A record of several branches comes from each of them, and is shown once.
  return (
    `SELECT DISTINCT ON (${key}) * FROM (${parts.join(' UNION ALL ')}) r ` +
    `ORDER BY ${orderOfPage(plan)} LIMIT ${plan.take + 1}`
  );
}

/** A page from several ranges of an index, read one after the other. */
function rangesPage(
  plan: ConstrainedPlan,
  rows: RowsSql,
  conditions: readonly string[],
  ranges: readonly Range[],
): string {
  const parts = ranges.map((range) => `(${rows([...conditions, ...range])})`);
  return `SELECT * FROM (${parts.join(' UNION ALL ')}) r ORDER BY ${orderOfPage(plan)} LIMIT ${plan.take + 1}`;
}

/**
 * Reads the metadata of a page from the rows of compileList. `count`: records of the page. `more`: others follow.
 * `rest`: the texts after the record's columns, of the last record of a page that others follow.
 */
export function readPage(
  { keys, includeTotal }: CompiledList,
  { count, more, rest }: { readonly count: number; readonly more: boolean; readonly rest: readonly (string | null)[] },
): Page {
  return {
    count,
    lastKeys: more ? rest.slice(0, keys) : null,
    metadataVersion: Number(rest[keys]),
    accessVersion: Number(rest[keys + 1]),
    total: includeTotal ? Number(rest[keys + 2]) : null,
  };
}

export interface SingleRecord {
  /** JSON text of the record; null when there is none that the caller may read. */
  readonly record: string | null;
  readonly recordVersion: number | null;
  readonly metadataVersion: number;
  readonly accessVersion: number;
}

/** One statement for one record, with the tenant's versions, from a plan of planGet; read with readRecord. */
export function compileGet(plan: ConstrainedPlan, schema: string): CompiledQuery {
  const compiler = new Compiler(schema);
  const conditions = plan.filter ? [compiler.condition(plan.filter, 'r')] : [];
  // The id finds the record. IS TRUE keeps the planner from holding each way of sharing against every index of a rule.
  if (plan.sharing) conditions.push(`(${compiler.condition(plan.sharing, 'r')}) IS TRUE`);
  const shown = outputColumns(plan.fields, plan);
  const recordColumns = plan.expand.length > 0 ? `${shown}, ${compiler.expanded(plan)}` : shown;
  const text =
    `SELECT p.record, p.version, s.metadata_version, s.access_version FROM ${compiler.schema}."_state" s ` +
    `LEFT JOIN LATERAL (SELECT ${rowJsonSql(recordColumns)} AS record, ` +
    `r."recordVersion" AS version FROM ${compiler.table(plan.object)} r${whereSql(conditions)}) p ON true`;
  return { text, values: compiler.values, ...(compiler.plannedWithValues ? {} : { name: nameOf(text) }) };
}

export interface RecordRow {
  readonly record: string | null;
  readonly version: number | null;
  readonly metadata_version: number;
  readonly access_version: number;
}

export const readRecord = (row: RecordRow): SingleRecord => ({
  record: row.record,
  recordVersion: row.version,
  metadataVersion: row.metadata_version,
  accessVersion: row.access_version,
});

/** A scalar SQL expression that yields the JSON text of the row `r`, in the same form as a page has it. */
export function recordJsonSql(
  fields: readonly FieldMeta[],
  options: { readonly ieee754Compatible?: boolean; readonly includeEtag?: boolean } = {},
): string {
  return rowJsonSql(outputColumns(fields, options));
}

const rowJsonSql = (columns: string): string => `(SELECT row_to_json(x)::text FROM (SELECT ${columns}) x)`;

/**
 * The select list of records in API form, each column named after its field. `alias`: of their rows. `plain`: the
 * columns are read as text, not by row_to_json, so that a list must come as JSON. `made`: formulas that the row has as a
 * column.
 */
function outputColumns(
  fields: readonly FieldMeta[],
  options: { readonly ieee754Compatible?: boolean; readonly includeEtag?: boolean },
  { alias = 'r', plain = false, made }: { alias?: string; plain?: boolean; made?: ReadonlySet<FieldMeta> } = {},
): string {
  const list = fields.map((field) => {
    const column = made?.has(field) ? `${alias}.${identifier(field.apiName)}` : columnSql(field, alias);
    const output = typeOf(field).outputSql(column, field, options.ieee754Compatible ?? false);
    if (plain && typeOf(field).bindType === 'text[]') return `to_json(${output}) AS ${identifier(field.apiName)}`;
    return output === column && !field.formula ? column : `${output} AS ${identifier(field.apiName)}`;
  });
  if (options.includeEtag) list.push(`'"' || erp.base36(${alias}."recordVersion") || '"' AS "_etag"`);
  return list.join(', ');
}

/**
 * SQL boolean of a predicate for the row `alias`, for statements of the caller's own: true for the records that match,
 * otherwise false or null. `schema` is the tenant's schema, unquoted.
 */
export function conditionSql(
  node: Predicate,
  alias: string,
  schema: string,
  bind: (value: SqlValue, type: string) => string,
  relations: Relations | null = null,
): string {
  return new Compiler(schema, bind, relations).condition(node, alias);
}

/** Replacements of the tables that a predicate reads, such as their rows at another moment. */
export interface Relations {
  /** SQL of a FROM item with the columns of the object's table. */
  readonly records: (object: ObjectMeta) => string;
  /** SQL of a FROM item with the columns of `_shares`. */
  readonly shares: string;
}

/** The table of an object. `schema` is the tenant's schema, unquoted. */
export const tableSql = (schema: string, object: ObjectMeta): string =>
  `${identifier(schema)}.${identifier(object.apiName)}`;

interface Columns {
  /** Number of columns in `outer`. */
  readonly shown: number;
  /** Columns read from the table: fields of the page, of the order and of the ETag, and references that are expanded. */
  readonly inner: string;
  /** Columns of a record of the page, without expanded ones. */
  readonly outer: string;
}

/** A user's readable fields are one array per snapshot and permission set, so most pages find their columns here. */
const columnsByShape = memoize((_fields: readonly FieldMeta[]) => new Map<string, Columns>());

function columns(plan: ConstrainedPlan): Columns {
  const byShape = columnsByShape(plan.fields);
  const sorted = plan.sort.map(({ field, through }) => `${through?.reference.apiName ?? ''}.${field.apiName}`).join();
  const expanded = plan.expand.map(({ reference }) => reference.apiName).join();
  const shape = `${plan.ieee754Compatible}${plan.includeEtag}${sorted} ${expanded}`;
  let found = byShape.get(shape);
  if (!found) {
    const sortedBy = plan.sort.flatMap(({ field, through }) => (through ? [] : [field]));
    const sortedThrough = plan.sort.flatMap((key, index) =>
      key.through ? [`${columnSql(key.field, sortAlias(index))} AS ${sortColumn(key, index)}`] : [],
    );
    const references = plan.expand.map(({ reference }) => reference);
    const made = new Set(sortedBy.filter((field) => field.formula));
    const names = new Set(
      [...plan.fields, ...sortedBy, ...references]
        .filter((field) => !made.has(field))
        .flatMap((field) => [...storedInputsOf(field)]),
    );
    if (plan.includeEtag) names.add('recordVersion');
    const columnsOfTable = [...names].map((name) => `r.${identifier(name)}`);
    const formulas = [...made].map((field) => `${columnSql(field, 'r')} AS ${identifier(field.apiName)}`);
    found = {
      inner: [...columnsOfTable, ...formulas, ...sortedThrough].join(', '),
      outer: outputColumns(plan.fields, plan, { plain: true, made }),
      shown: plan.fields.length + (plan.includeEtag ? 1 : 0) + (references.length > 0 ? 1 : 0),
    };
    byShape.set(shape, found);
  }
  return found;
}

/** Owners that are compared one after the other. */
const OWNERS_COMPARED_MAX = 16;

/**
 * Decides whether a list is planned with the owners that it looks for: when all are counted, and when the few records of a few
 * owners are to be found, in an order or by a filter for which there may be no better index.
 */
function dependsOnOwners({ sharing, filter, includeTotal }: ConstrainedPlan, merged: boolean): boolean {
  const owned = sharing?.kind === 'or' ? sharing.nodes.find((node) => node.kind === 'ownedBy') : sharing;
  if (owned?.kind !== 'ownedBy') return false;
  return includeTotal || (!merged && isSparse(owned) && !(filter && isSelective(filter)));
}

/** An array as PostgreSQL reads it; lists of owners are long and the same for every request of a user. */
const uuidList = memoize((ids: readonly string[]): string => `{${ids.join(',')}}`);

/** Keys are indexed in a form of theirs: the index finds the few, then they are compared exactly. */
const isFoldedKey = (field: FieldMeta): boolean => (field.unique || field.externalId) && keyForm(field, '') !== '';

const whereSql = (conditions: readonly string[]): string =>
  conditions.length > 0 ? ` WHERE ${conditions.join(' AND ')}` : '';

const nameOf = (text: string): string => `q${hash('sha1', text, 'base64url')}`;

class Compiler {
  readonly values: SqlValue[] = [];
  readonly schema: string;
  /**
   * The planner must see the values: a pattern may fit nothing or everything, and with an unknown skip it would expect
   * a tenth of the table. Such a statement is not prepared; planning it each time costs less than one bad plan.
   */
  plannedWithValues = false;
  /** The planner sees the lists of owners as well. */
  ownersPlanned = false;
  readonly #bind: ((value: SqlValue, type: string) => string) | null;
  readonly #relations: Relations | null;
  #aliases = 0;

  /** `bind` adds values to the caller's statement. */
  constructor(
    schema: string,
    bind: ((value: SqlValue, type: string) => string) | null = null,
    relations: Relations | null = null,
  ) {
    this.schema = identifier(schema);
    this.#bind = bind;
    this.#relations = relations;
  }

  table(object: ObjectMeta): string {
    return `${this.schema}.${identifier(object.apiName)}`;
  }

  bind(value: SqlValue, type: string): string {
    if (this.#bind) return this.#bind(value, type);
    this.values.push(value);
    return `$${this.values.length}::${type}`;
  }

  /**
   * The column `_expanded` of records `r`: by reference, the record that it points to, null where it is empty or points
   * to a record that the caller does not reach. Each is found by its id, so that neither the number nor the order of the
   * records depends on them.
   */
  expanded({ expand, ieee754Compatible }: Pick<ConstrainedPlan, 'expand' | 'ieee754Compatible'>): string {
    const members = expand.map(({ reference, object, fields, sharing }) => {
      const alias = `q${++this.#aliases}`;
      const name = identifier(reference.apiName);
      const conditions = [`${alias}."id" = r.${name}`];
      if (sharing) conditions.push(`(${this.condition(sharing, alias)}) IS TRUE`);
      const columns = outputColumns(fields, { ieee754Compatible }, { alias });
      const record = `SELECT ${columns} FROM ${this.table(object)} ${alias}${whereSql(conditions)}`;
      return `(SELECT row_to_json(y) FROM (${record}) y) AS ${name}`;
    });
    return `(SELECT row_to_json(x) FROM (SELECT ${members.join(', ')}) x) AS "_expanded"`;
  }

  /**
   * Joins the records that a reference leads to and that the order goes by; one that the caller does not reach is
   * absent, as behind an empty reference.
   */
  sortedThrough({ sort }: Pick<ConstrainedPlan, 'sort'>): string {
    const joins = sort.map(({ through }, index) => {
      if (!through) return '';
      const { reference, object, sharing } = through;
      const alias = sortAlias(index);
      const reached = sharing ? ` AND (${this.condition(sharing, alias)}) IS TRUE` : '';
      return ` LEFT JOIN ${this.table(object)} ${alias} ON ${alias}."id" = r.${identifier(reference.apiName)}${reached}`;
    });
    return joins.join('');
  }

  /** A condition that is true for the records that match; unknown (null) counts as false, so it is never negated. */
  condition(node: Predicate, alias: string): string {
    switch (node.kind) {
      case 'and':
      case 'or': {
        if (node.nodes.length === 0) return node.kind === 'and' ? 'true' : 'false';
        const parts = node.nodes.map((inner) => this.condition(inner, alias));
        return `(${parts.join(node.kind === 'and' ? ' AND ' : ' OR ')})`;
      }
      case 'compare':
        return this.#compare(node, alias);
      case 'related':
        return this.#related(node, alias);
      case 'referenced':
        return this.#referenced(node, alias);
      case 'search':
        return this.#search(node, alias);
      case 'ownedBy':
        return this.#ownedBy(node, alias);
      case 'criteria':
        return criteriaSql(node.object, node.expression, node.timezone, alias);
      case 'shared':
        return this.#shared(node, alias);
      case 'false':
        return 'false';
    }
  }

  /**
   * A long list is hashed and hidden from the planner, because planning it would take longer than running the
   * statement. Where the values matter to the plan, they are few or the statement is planned with them.
   */
  #ownedBy(node: OwnedBy, alias: string): string {
    const column = `${alias}."ownerId"`;
    // An index is followed in its order for one value, not for a list of one.
    const [only] = node.userIds;
    if (only !== undefined && node.userIds.length === 1 && !node.except)
      return `${column} = ${this.bind(only, 'uuid')}`;
    const list = this.bind(uuidList(node.userIds), 'uuid[]');
    const hashed = node.userIds.length > OWNERS_COMPARED_MAX && !this.ownersPlanned;
    if (node.except) return hashed ? `${column} NOT IN (SELECT unnest(${list}))` : `${column} <> ALL(${list})`;
    return hashed ? `${column} IN (SELECT unnest(${list}))` : `${column} = ANY(${list})`;
  }

  /** One look at the shares of the user, whatever number of records is tried. */
  #shared(node: Extract<Predicate, { kind: 'shared' }>, alias: string): string {
    const of = (type: string, condition: string): string =>
      `(s.principal_type = '${type}' AND s.principal_id ${condition})`;
    const principals = [of('user', `= ${this.bind(node.userId, 'text')}`)];
    if (node.roles.length > 0) principals.push(of('role', `= ANY(${this.bind([...node.roles], 'text[]')})`));
    if (node.groups.length > 0) principals.push(of('group', `= ANY(${this.bind([...node.groups], 'text[]')})`));
    const shares = this.#relations?.shares ?? `${this.schema}._shares`;
    const object = this.bind(node.object.apiName, 'text');
    return (
      `${alias}."id" = ANY(ARRAY(SELECT s.record_id FROM ${shares} s WHERE s.object = ${object} ` +
      `AND (${principals.join(' OR ')})${node.access.length > 1 ? '' : ` AND s.access = '${node.access[0]}'`}))`
    );
  }

  #compare({ field, operator, values }: Extract<Predicate, { kind: 'compare' }>, alias: string): string {
    const column = columnSql(field, alias);
    const { bindType, blank } = typeOf(field);
    if (operator === 'is_blank')
      return blank === 'null' ? `${column} IS NULL` : `(${column} IS NULL OR ${blankSql[blank](column)})`;
    if (operator === 'is_not_blank') return blank === 'null' ? `${column} IS NOT NULL` : notBlankSql[blank](column);
    if (bindType === 'text[]') return this.#compareList(column, operator, values);
    const [first = null, last = null] = values;
    const value = (): string => this.bind(first, bindType);
    const list = (): string => this.bind(values as (string | number)[], `${bindType}[]`);
    const pattern = (): string => {
      this.plannedWithValues = true;
      return `erp.like_text(${value()})`;
    };
    switch (operator) {
      case 'eq': {
        const bound = value();
        return isFoldedKey(field)
          ? `(${keyForm(field, column)} = ${keyForm(field, `${bound} COLLATE "${TEXT_COLLATION}"`)} AND ${column} = ${bound})`
          : `${column} = ${bound}`;
      }
      case 'neq':
        return `${column} IS DISTINCT FROM ${value()}`;
      case 'gt':
        return `${column} > ${value()}`;
      case 'gte':
        return `${column} >= ${value()}`;
      case 'lt':
        return `${column} < ${value()}`;
      case 'lte':
        return `${column} <= ${value()}`;
      case 'between':
        return `(${column} >= ${value()} AND ${column} <= ${this.bind(last, bindType)})`;
      case 'in': {
        const bound = list();
        const folded = `ARRAY(SELECT ${keyForm(field, `v COLLATE "${TEXT_COLLATION}"`)} FROM unnest(${bound}) v)`;
        return isFoldedKey(field)
          ? `(${keyForm(field, column)} = ANY(${folded}) AND ${column} = ANY(${bound}))`
          : `${column} = ANY(${bound})`;
      }
      case 'not_in':
        return `(${column} IS NULL OR ${column} <> ALL(${list()}))`;
      case 'contains':
        return `erp.normalize(${column}) LIKE '%' || ${pattern()} || '%'`;
      case 'not_contains':
        return `(${column} IS NULL OR erp.normalize(${column}) NOT LIKE '%' || ${pattern()} || '%')`;
      case 'starts_with':
        return `erp.normalize(${column}) LIKE ${pattern()} || '%'`;
    }
  }

  /** Fields with several values: eq as sets, contains one of them, in any of the given. */
  #compareList(column: string, operator: string, values: readonly SqlValue[]): string {
    const [first = null] = values;
    const equal = (): string => {
      const list = this.bind(first, 'text[]');
      return `(${column} @> ${list} AND ${column} <@ ${list})`;
    };
    switch (operator) {
      case 'eq':
        return equal();
      case 'neq':
        return `(${column} IS NULL OR NOT ${equal()})`;
      case 'contains':
        return `${column} @> ARRAY[${this.bind(first, 'text')}]`;
      case 'not_contains':
        return `(${column} IS NULL OR NOT ${column} @> ARRAY[${this.bind(first, 'text')}])`;
      case 'in':
        return `${column} && ${this.bind(values as string[], 'text[]')}`;
      case 'not_in':
        return `(${column} IS NULL OR NOT ${column} && ${this.bind(values as string[], 'text[]')})`;
      default:
        throw new Error(`Assertion failed: no ${operator} on a list`);
    }
  }

  #related(node: Extract<Predicate, { kind: 'related' }>, alias: string): string {
    const inner = `q${++this.#aliases}`;
    const conditions = [
      `${inner}.${identifier(node.relatedField.apiName)} = ${alias}.${identifier(node.field.apiName)}`,
      ...[node.node, node.sharing].filter((part) => part !== null).map((part) => this.condition(part, inner)),
    ];
    const records = this.#relations?.records(node.object) ?? this.table(node.object);
    return `EXISTS (SELECT FROM ${records} ${inner}${whereSql(conditions)})`;
  }

  #referenced(node: Extract<Predicate, { kind: 'referenced' }>, alias: string): string {
    const inner = `q${++this.#aliases}`;
    const conditions = [
      `${inner}."id" = ${alias}.${identifier(node.reference.apiName)}`,
      this.condition(node.node, inner),
      ...(node.sharing ? [`(${this.condition(node.sharing, inner)}) IS TRUE`] : []),
    ];
    const records = this.#relations?.records(node.object) ?? this.table(node.object);
    return `${node.negated ? 'NOT ' : ''}EXISTS (SELECT FROM ${records} ${inner}${whereSql(conditions)})`;
  }

  /** Every word begins some word of some field. */
  #search({ fields, tokens }: Extract<Predicate, { kind: 'search' }>, alias: string): string {
    this.plannedWithValues = true;
    const words = tokens.map((token) => {
      const pattern = this.bind(token, 'text');
      const hits = fields.map(
        (field) => `erp.search_text(${alias}.${identifier(field.apiName)}) LIKE erp.search_pattern(${pattern})`,
      );
      return `(${hits.join(' OR ')})`;
    });
    return `(${words.join(' AND ')})`;
  }
}

const blankSql = {
  whiteSpace: (column: string) => `${column} !~ '\\S'`,
  emptyList: (column: string) => `${column} = '{}'`,
} as const;

/** SQL of "it is not blank", by the kind of blank values that a type has in addition to null. */
export const notBlankSql = {
  whiteSpace: (column: string) => `${column} ~ '\\S'`,
  emptyList: (column: string) => `${column} <> '{}'`,
} as const;
