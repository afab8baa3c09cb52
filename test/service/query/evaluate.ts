/**
 * Reference evaluation of list queries in memory, independent of lib/query and SQL. It works on the raw
 * parameters of the caller and on values as a test made them.
 */
import type { FieldMeta, FieldTypeName, ObjectMeta } from '../../../lib/schema/snapshot.ts';

/** Values as made: decimals and big numbers as text, moments as milliseconds, the rest as in the API. */
export type Value = string | number | boolean | readonly string[] | Record<string, unknown> | null;
export type Row = Record<string, Value>;

export interface Tables {
  readonly objects: Record<string, ObjectMeta>;
  readonly rows: Record<string, readonly Row[]>;
  readonly now: number;
  readonly timezone: string;
}

export interface RawCondition {
  id: string;
  field: string;
  operator: string;
  value?: unknown;
  valueTo?: unknown;
}

export interface RawQuery {
  where?: Record<string, unknown>;
  whereIn?: Record<string, unknown[]>;
  filters?: { logic: 'and' | 'or'; conditions: RawCondition[] };
  search?: string;
  searchFields?: string[];
  sort?: { id: string; desc: boolean }[];
}

/** The type of a field's values. */
export const typeOf = ({ fieldType, formula, rollup }: FieldMeta): FieldTypeName =>
  formula?.resultType ?? rollup?.resultType ?? fieldType;

/** Rows that match, in order. */
export function evaluate(query: RawQuery, object: ObjectMeta, tables: Tables): Row[] {
  const matching = tables.rows[object.apiName]!.filter((row) => {
    const one = (condition: RawCondition): boolean => matches(condition, row, object, tables);
    for (const [field, value] of Object.entries(query.where ?? {}))
      if (!one(value === null ? { id: '', field, operator: 'is_blank' } : { id: '', field, operator: 'eq', value }))
        return false;
    for (const [field, value] of Object.entries(query.whereIn ?? {}))
      if (!one({ id: '', field, operator: 'in', value })) return false;
    if (query.filters) {
      const results = query.filters.conditions.map(one);
      if (query.filters.logic === 'and' ? results.includes(false) : !results.includes(true)) return false;
    }
    return query.search === undefined || found(query.search, query.searchFields ?? object.defaultSearchFields, row);
  });
  const keys = [...(query.sort ?? [{ id: 'createdAt', desc: true }])];
  keys.push({ id: 'id', desc: keys.at(-1)!.desc });
  return matching.sort((a, b) => {
    for (const { id, desc } of keys) {
      const { field, value: left } = named(id, a, object, tables);
      const { value: right } = named(id, b, object, tables);
      const order =
        left === null || right === null ? Number(left === null) - Number(right === null) : compare(left, right, field);
      if (order !== 0) return desc ? -order : order;
    }
    return 0;
  });
}

const fold = (text: string): string => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();

function found(search: string, fields: readonly string[], row: Row): boolean {
  const words = fields.flatMap((field) =>
    typeof row[field] === 'string' ? fold(row[field]).split(/[^\p{L}\p{N}]+/u) : [],
  );
  const wanted = fold(search)
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '');
  return wanted.every((prefix) => words.some((word) => word.startsWith(prefix)));
}

/** The field that `name` or `reference.name` stands for, and its value for the row. */
function named(name: string, row: Row, object: ObjectMeta, tables: Tables): { field: FieldMeta; value: Value } {
  const [first, second] = name.split('.') as [string, string?];
  const field = object.fields[first]!;
  const value = row[first] ?? null;
  if (second === undefined) return { field, value };
  const [to] = field.referenceTo as [string];
  const target = tables.rows[to]!.find(({ id }) => id === value);
  return { field: tables.objects[to]!.fields[second]!, value: target?.[second] ?? null };
}

function matches(
  { field: name, operator, value, valueTo }: RawCondition,
  row: Row,
  object: ObjectMeta,
  tables: Tables,
): boolean {
  const { field, value: stored } = named(name, row, object, tables);
  const blank =
    stored === null ||
    (typeof stored === 'string' && /^\s*$/.test(stored)) ||
    (Array.isArray(stored) && stored.length === 0);
  if (operator === 'is_blank') return blank;
  if (operator === 'is_not_blank') return !blank;
  if (operator === 'neq') return !matches({ id: '', field: name, operator: 'eq', value }, row, object, tables);
  if (operator === 'not_contains')
    return !matches({ id: '', field: name, operator: 'contains', value }, row, object, tables);
  if (operator === 'not_in') return !matches({ id: '', field: name, operator: 'in', value }, row, object, tables);
  if (stored === null) return false;
  if (operator === 'in_related') {
    const related = value as { objectApiName: string; field: string; logic?: string; conditions?: RawCondition[] };
    const other = tables.objects[related.objectApiName]!;
    return tables.rows[related.objectApiName]!.some((candidate) => {
      if (candidate[related.field] !== stored) return false;
      const results = (related.conditions ?? []).map((condition) => matches(condition, candidate, other, tables));
      return results.length === 0 || (related.logic === 'or' ? results.includes(true) : !results.includes(false));
    });
  }
  if (typeOf(field) === 'multiPicklist') {
    const list = stored as readonly string[];
    if (operator === 'contains') return list.includes(value as string);
    if (operator === 'in') return (value as string[]).some((item) => list.includes(item));
    const wanted = new Set(value as string[]);
    return wanted.size === list.length && list.every((item) => wanted.has(item));
  }
  if (operator === 'contains') return fold(stored as string).includes(fold(value as string));
  if (operator === 'starts_with') return fold(stored as string).startsWith(fold(value as string));
  if (operator === 'in') return (value as unknown[]).some((item) => order(stored, item, field, tables) === 0);
  if (operator === 'between')
    return order(stored, value, field, tables) >= 0 && order(stored, valueTo, field, tables) <= 0;
  const result = order(stored, value, field, tables);
  switch (operator) {
    case 'eq':
      return result === 0;
    case 'gt':
      return result > 0;
    case 'gte':
      return result >= 0;
    case 'lt':
      return result < 0;
    case 'lte':
      return result <= 0;
    default:
      throw new Error(`No such operator: ${operator}`);
  }
}

/** A stored value against an operand; a relative date is equal to every value in its days. */
function order(stored: Exclude<Value, null>, operand: unknown, field: FieldMeta, tables: Tables): number {
  if (
    (typeOf(field) === 'date' || typeOf(field) === 'dateTime') &&
    typeof operand === 'string' &&
    /^[A-Z]/.test(operand)
  ) {
    const day = typeOf(field) === 'date' ? (stored as string) : localDate(stored as number, tables.timezone);
    const [first, last] = daysOf(operand, localDate(tables.now, tables.timezone));
    return day < first ? -1 : day > last ? 1 : 0;
  }
  return compare(
    stored,
    typeOf(field) === 'dateTime' ? Date.parse(operand as string) : (operand as Exclude<Value, null>),
    field,
  );
}

const collator = new Intl.Collator('und');

export function compare(a: Exclude<Value, null>, b: Exclude<Value, null>, field: FieldMeta): number {
  switch (typeOf(field)) {
    case 'integer':
    case 'decimal':
    case 'currency':
    case 'percent': {
      const [left, right] = [scaled(String(a)), scaled(String(b))];
      return left < right ? -1 : left > right ? 1 : 0;
    }
    case 'duration': {
      const [left, right] = [microseconds(a as string), microseconds(b as string)];
      return left < right ? -1 : left > right ? 1 : 0;
    }
    case 'dateTime':
    case 'boolean':
      return Number(a) - Number(b);
    case 'time': {
      const [left, right] = [
        (a as string).padEnd(8, ':00').padEnd(9, '.').padEnd(12, '0'),
        (b as string).padEnd(8, ':00').padEnd(9, '.').padEnd(12, '0'),
      ];
      return left < right ? -1 : left > right ? 1 : 0;
    }
    case 'text':
    case 'longText':
    case 'email':
    case 'phone':
    case 'url':
    case 'picklist':
    case 'autoNumber': {
      const result = collator.compare(a as string, b as string);
      return result !== 0 ? result : Buffer.compare(Buffer.from(a as string), Buffer.from(b as string));
    }
    default:
      return a < b ? -1 : a > b ? 1 : 0;
  }
}

/** A decimal as an integer of 10^-20. */
export function scaled(text: string): bigint {
  const match = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text)!;
  return BigInt(`${match[1]}${match[2]}${(match[3] ?? '').padEnd(20, '0')}`);
}

/** A month counts 30 days. */
export function microseconds(iso: string): bigint {
  const match =
    /^P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d+))?S)?)?$/.exec(iso)!;
  const part = (index: number): bigint => BigInt(match[index] ?? 0);
  const days = part(1) * 360n + part(2) * 30n + part(3) * 7n + part(4);
  const seconds = part(5) * 3600n + part(6) * 60n + part(7);
  return (days * 86_400n + seconds) * 1_000_000n + BigInt((match[8] ?? '').padEnd(6, '0'));
}

export function localDate(time: number, timeZone: string): string {
  const parts = new Intl.DateTimeFormat('en-CA', { timeZone, year: 'numeric', month: '2-digit', day: '2-digit' });
  return parts.format(time);
}

/** First and last day of a literal, counted on the calendar from today. */
function daysOf(literal: string, today: string): [string, string] {
  const [year, month, day] = today.split('-').map(Number) as [number, number, number];
  const date = (y: number, m: number, d: number): string => new Date(Date.UTC(y, m - 1, d)).toISOString().slice(0, 10);
  const weekday = (new Date(Date.UTC(year, month - 1, day)).getUTCDay() + 6) % 7;
  const [word, count] = literal.split(':');
  const n = Number(count);
  const quarter = Math.floor((month - 1) / 3) * 3 + 1;
  switch (word) {
    case 'TODAY':
      return [today, today];
    case 'YESTERDAY':
      return [date(year, month, day - 1), date(year, month, day - 1)];
    case 'TOMORROW':
      return [date(year, month, day + 1), date(year, month, day + 1)];
    case 'THIS_WEEK':
      return [date(year, month, day - weekday), date(year, month, day - weekday + 6)];
    case 'LAST_WEEK':
      return [date(year, month, day - weekday - 7), date(year, month, day - weekday - 1)];
    case 'THIS_MONTH':
      return [date(year, month, 1), date(year, month + 1, 0)];
    case 'LAST_MONTH':
      return [date(year, month - 1, 1), date(year, month, 0)];
    case 'THIS_QUARTER':
      return [date(year, quarter, 1), date(year, quarter + 3, 0)];
    case 'THIS_YEAR':
      return [date(year, 1, 1), date(year, 12, 31)];
    case 'LAST_N_DAYS':
      return [date(year, month, day - n), today];
    case 'NEXT_N_DAYS':
      return [date(year, month, day + 1), date(year, month, day + n)];
    default:
      throw new Error(`No such literal: ${literal}`);
  }
}
