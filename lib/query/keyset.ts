/**
 * Pages by position: the conditions of the records after the last one of the previous page. Nulls are the largest
 * values: last in ascending, first in descending order.
 */
import { columnSql } from '../expression/formulas.ts';
import { typeOf } from '../schema/field-types/registry.ts';
import type { SqlValue } from '../schema/field-types/types.ts';
import type { SortKey } from './types.ts';

/** Conditions of one range of an index, joined by AND. */
export type Range = readonly string[];

/** Columns that are never null: a row comparison may be used, and an index follows it. */
const NOT_NULL: ReadonlySet<string> = new Set([
  'ownerId',
  'id',
  'createdAt',
  'createdById',
  'updatedAt',
  'updatedById',
  'recordVersion',
]);

/** Alias of the record that the sort key of this index is read from, when a reference leads to it. */
export const sortAlias = (index: number): string => `j${index}`;

/**
 * One or two ranges of an index, to be read one after the other. `last`: the sort values of the last record. With the
 * last record ('Ada', 'i1'), or (null, 'i1'):
 *
 *     createdAt DESC, id DESC      (createdAt, id) < ($1, $2)
 *     name DESC, id DESC           name <= $1 AND ((name < $1) OR (name = $1 AND id < $2))
 *     name ASC, id ASC             name >= $1 AND ((name > $1) OR (name = $1 AND id > $2)), then: name IS NULL
 *     name ASC, id ASC, null       name IS NULL AND ((name IS NULL AND id > $1))
 *     name DESC, id DESC, null     ((name IS NOT NULL) OR (name IS NULL AND id < $1))
 */
export function rangesAfter(
  sort: readonly SortKey[],
  last: readonly (string | null)[],
  alias: string,
  bind: (value: SqlValue, type: string) => string,
): readonly [Range, ...Range[]] {
  const keys = sort.map(({ field, desc, through }, index) => {
    const value = last[index] ?? null;
    return {
      column: columnSql(field, through ? sortAlias(index) : alias),
      desc,
      nullable: through !== null || !NOT_NULL.has(field.apiName),
      bound: value === null ? null : bind(value, typeOf(field).bindType),
    };
  });
  const [first] = keys;
  if (!first) throw new Error('Assertion failed: the order of a list ends with id');
  const bounds = keys.map((key) => key.bound);
  if (keys.every((key) => !key.nullable && key.desc === first.desc) && bounds.every((bound) => bound !== null)) {
    const columns = keys.map((key) => key.column);
    return [[`${rowSql(columns)} ${first.desc ? '<' : '>'} ${rowSql(bounds)}`]];
  }
  const split = !first.desc && first.nullable && first.bound !== null;
  const after = afterSql(keys, split ? first : null);
  if (first.bound === null) return [[...(first.desc ? [] : [`${first.column} IS NULL`]), after]];
  // Follows from the steps, in a form that an index scan can start from.
  const start = `${first.column} ${first.desc ? '<=' : '>='} ${first.bound}`;
  return split ? [[start, after], [`${first.column} IS NULL`]] : [[start, after]];
}

/** A column of an order, and what is bound for its last value; null: that is null. */
interface OrderedColumn {
  readonly column: string;
  readonly desc: boolean;
  readonly nullable: boolean;
  readonly bound: string | null;
}

/**
 * The rows after the last one: (k1 after v1) OR (k1 = v1 AND k2 after v2) OR … `withoutNulls`: a column whose nulls are
 * looked for elsewhere.
 */
export function afterSql(columns: readonly OrderedColumn[], withoutNulls: OrderedColumn | null = null): string {
  const steps: string[] = [];
  const equal: string[] = [];
  for (const one of columns) {
    const { column, bound } = one;
    const step = stepSql(one, one.nullable && one !== withoutNulls);
    if (step) steps.push([...equal, step].join(' AND '));
    equal.push(bound === null ? `${column} IS NULL` : `${column} = ${bound}`);
  }
  return steps.length === 0 ? 'false' : `(${steps.map((step) => `(${step})`).join(' OR ')})`;
}

/** The values of one sort key after the last one, also nulls when `withNulls`; null when there are none. */
function stepSql({ column, desc, bound }: OrderedColumn, withNulls: boolean): string | null {
  if (bound === null) return desc ? `${column} IS NOT NULL` : null;
  if (desc) return `${column} < ${bound}`;
  return withNulls ? `(${column} > ${bound} OR ${column} IS NULL)` : `${column} > ${bound}`;
}

const rowSql = (parts: readonly string[]): string => (parts.length === 1 ? parts.join() : `(${parts.join(', ')})`);
