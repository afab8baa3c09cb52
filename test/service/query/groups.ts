/** Reference evaluation of aggregate queries in memory, independent of lib/query and SQL. */
import type { FieldMeta, ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { compare, localDate, microseconds, type Row, scaled, typeOf, type Value } from './evaluate.ts';

export interface GroupQuery {
  dimensions: { field: string; granularity?: string }[];
  measures: { key: string; aggregation: string; field?: string }[];
  sort: { id: string; desc: boolean }[];
}

/** A value with what decides how it is compared. */
interface Cell {
  readonly value: Value;
  /** null: a number. */
  readonly field: FieldMeta | null;
}

interface Groups {
  readonly keys: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
  readonly totals: readonly Cell[];
}

const DIGITS = 20;

/**
 * The groups of these rows in order. `readable`: a field that the user may read. Keys: dimensions, the currencies by which
 * rows are split, measures.
 */
export function group(
  query: GroupQuery,
  object: ObjectMeta,
  rows: readonly Row[],
  { timezone, readable }: { timezone: string; readable: (field: string) => boolean },
): Groups {
  const isMoney = ({ aggregation, field }: GroupQuery['measures'][number]): boolean =>
    field !== undefined &&
    readable(field) &&
    typeOf(object.fields[field]!) === 'currency' &&
    !aggregation.startsWith('count');
  const currencyOf = (measure: GroupQuery['measures'][number]): string | null =>
    isMoney(measure) ? object.fields[measure.field!]!.currencyField : null;
  const whole = new Set(query.dimensions.filter(({ granularity }) => !granularity).map(({ field }) => field));
  const split = [...new Set(query.measures.map(currencyOf))].filter(
    (field): field is string => field !== null && readable(field) && !whole.has(field),
  );
  const by = [...query.dimensions, ...split.map((field) => ({ field, granularity: undefined }))];
  const keyCells = (row: Row): Cell[] =>
    by.map(({ field: name, granularity }) => {
      const field = object.fields[name]!;
      const value = row[name] ?? null;
      if (value === null || !granularity) return { value: plain(value, field), field };
      const day = typeOf(field) === 'date' ? (value as string) : localDate(value as number, timezone);
      return { value: firstDay(day, granularity), field: null };
    });
  const groups = new Map<string, { cells: Cell[]; rows: Row[] }>();
  if (by.length === 0) groups.set('[]', { cells: [], rows: [] });
  for (const row of rows) {
    const cells = keyCells(row);
    const key = JSON.stringify(cells.map(({ value }) => value));
    if (!groups.has(key)) groups.set(key, { cells, rows: [] });
    groups.get(key)!.rows.push(row);
  }
  const measured = (of: readonly Row[]): Cell[] =>
    query.measures.map((measure) => {
      const currency = currencyOf(measure);
      const hidden =
        measure.field !== undefined && (!readable(measure.field) || (currency !== null && !readable(currency)));
      return hidden ? { value: null, field: null } : measureOf(measure, object, of);
    });
  if (groups.size === 0 && query.dimensions.length === 0)
    groups.set('', { cells: split.map(() => ({ value: null, field: null })), rows: [] });
  const several = split.map((field) => new Set(rows.map((row) => row[field] ?? null)).size > 1);
  const keys = [
    ...by.map(({ field, granularity }) => (granularity ? `${field}_${granularity}` : field)),
    ...query.measures.map(({ key }) => key),
  ];
  const all = [...groups.values()].map((one) => [...one.cells, ...measured(one.rows)]);
  const order = [
    ...query.sort.flatMap(({ id, desc }) => {
      // Amounts are compared within one currency.
      const measure = query.measures.find(({ key }) => key === id);
      const currency = measure && currencyOf(measure);
      const first =
        currency && readable(currency) ? by.findIndex((one) => !one.granularity && one.field === currency) : -1;
      return [...(first < 0 ? [] : [{ at: first, desc: false }]), { at: keys.indexOf(id), desc }];
    }),
    ...by.map((_, at) => ({ at, desc: false })),
  ];
  all.sort((a, b) => {
    for (const { at, desc } of order) {
      const result = at < query.dimensions.length ? compareKeys(a[at]!, b[at]!) : compareCells(a[at]!, b[at]!);
      if (result !== 0) return desc ? -result : result;
    }
    return 0;
  });
  const kept = keys.map(
    (_, at) => at < query.dimensions.length || at >= by.length || several[at - query.dimensions.length]!,
  );
  return {
    keys: keys.filter((_, at) => kept[at]),
    rows: all.map((cells) => cells.filter((_, at) => kept[at])),
    totals: query.measures.map((measure, index) => {
      const currency = currencyOf(measure);
      const mixed = currency !== null && new Set(rows.map((row) => row[currency] ?? null)).size > 1;
      return mixed ? { value: null, field: null } : measured(rows)[index]!;
    }),
  };
}

/** Two stored forms of one time of day are one group. */
const plain = (value: Value, field: FieldMeta): Value =>
  typeof value === 'string' && typeOf(field) === 'time' ? value.padEnd(8, ':00') : value;

function measureOf(
  { aggregation, field: name }: GroupQuery['measures'][number],
  object: ObjectMeta,
  rows: readonly Row[],
): Cell {
  if (name === undefined) return { value: String(rows.length), field: null };
  const field = object.fields[name]!;
  const values = rows.map((row) => row[name] ?? null).filter((value) => value !== null);
  const filled = values.filter(
    (value) =>
      !(typeof value === 'string' && isText(field) && /^\s*$/.test(value)) &&
      !(Array.isArray(value) && value.length === 0),
  );
  switch (aggregation) {
    case 'count':
      return { value: String(filled.length), field: null };
    case 'countDistinct': {
      // Sorted, because a look at every pair stops this process, and the platform in it, for a minute.
      const sorted = filled.toSorted((a, b) => compare(a, b, field));
      const different = sorted.filter((value, at) => at === 0 || compare(sorted[at - 1]!, value, field) !== 0);
      return { value: String(different.length), field: null };
    }
    case 'min':
    case 'max': {
      const sign = aggregation === 'min' ? 1 : -1;
      const [first] = [...values].sort((a, b) => sign * compare(a, b, field));
      return { value: first ?? null, field };
    }
  }
  if (values.length === 0) return { value: null, field };
  if (typeOf(field) === 'duration') {
    const sum = values.reduce((total, value) => total + microseconds(value as string), 0n);
    return { value: `us ${aggregation === 'sum' ? sum : sum / BigInt(values.length)}`, field };
  }
  const sum = values.reduce((total, value) => total + scaled(String(value)), 0n);
  if (aggregation === 'sum') return { value: decimal(sum), field: null };
  const digits = (typeOf(field) === 'integer' ? 0 : (field.scale ?? 0)) + 6;
  const unit = 10n ** BigInt(DIGITS - digits);
  const divisor = BigInt(values.length) * unit;
  const size = sum < 0n ? -sum : sum;
  const rounded = ((2n * size + divisor) / (2n * divisor)) * unit;
  return { value: decimal(sum < 0n ? -rounded : rounded), field: null };
}

const isText = (field: FieldMeta): boolean =>
  ['text', 'longText', 'richText', 'picklist', 'email', 'phone', 'url', 'autoNumber'].includes(typeOf(field));

/** The text of an integer of 10^-20. */
function decimal(units: bigint): string {
  const digits = (units < 0n ? -units : units).toString().padStart(DIGITS + 1, '0');
  const fraction = digits.slice(-DIGITS).replace(/0+$/, '');
  return `${units < 0n ? '-' : ''}${digits.slice(0, -DIGITS)}${fraction && `.${fraction}`}`;
}

/** Values of a dimension: those of a picklist in its order, before those that it no longer has. */
function compareKeys(a: Cell, b: Cell): number {
  const choices = a.field && typeOf(a.field) === 'picklist' ? (a.field.picklistValues ?? []) : [];
  const place = ({ value }: Cell): number => {
    const found = choices.findIndex((choice) => choice.value === value);
    return found < 0 ? choices.length : found;
  };
  const [x, y] = [place(a), place(b)];
  return x === y || a.value === null || b.value === null ? compareCells(a, b) : x - y;
}

function compareCells(a: Cell, b: Cell): number {
  if (a.value === null || b.value === null) return Number(a.value === null) - Number(b.value === null);
  const { field } = a;
  if (field === null) {
    const [left, right] = [String(a.value), String(b.value)];
    if (/^\d{4}-\d\d-\d\d$/.test(left)) return left < right ? -1 : left > right ? 1 : 0;
    const [x, y] = [scaled(left), scaled(right)];
    return x < y ? -1 : x > y ? 1 : 0;
  }
  if (typeof a.value === 'string' && a.value.startsWith('us ')) {
    const [x, y] = [BigInt(a.value.slice(3)), BigInt(String(b.value).slice(3))];
    return x < y ? -1 : x > y ? 1 : 0;
  }
  return compare(a.value, b.value, field);
}

/** The first day of the period of a day, counted on the calendar. */
function firstDay(day: string, granularity: string): string {
  const [year, month, date] = day.split('-').map(Number) as [number, number, number];
  const text = (y: number, m: number, d: number): string => new Date(Date.UTC(y, m - 1, d)).toISOString().slice(0, 10);
  switch (granularity) {
    case 'week':
      return text(year, month, date - ((new Date(Date.UTC(year, month - 1, date)).getUTCDay() + 6) % 7));
    case 'month':
      return text(year, month, 1);
    case 'quarter':
      return text(year, month - ((month - 1) % 3), 1);
    case 'year':
      return text(year, 1, 1);
    default:
      return day;
  }
}

/** True when a value of a response, with numbers as text, equals that of a cell. */
export function shows(shown: unknown, { value, field }: Cell): boolean {
  if (value === null || shown === null) return value === shown;
  const text = String(shown);
  if (field === null)
    return /^-?\d+(\.\d+)?$/.test(text) ? decimal(scaled(text)) === decimal(scaled(String(value))) : text === value;
  if (typeof value === 'string' && value.startsWith('us ')) {
    const difference = microseconds(text) - BigInt(value.slice(3));
    return difference < 1_000_000n && difference > -1_000_000n;
  }
  switch (typeOf(field)) {
    case 'dateTime':
      return /\+00:00$/.test(text) && Date.parse(text) === value;
    case 'boolean':
      return shown === value;
    case 'reference':
    case 'id':
    case 'date':
    case 'picklist':
      return text === value;
    default:
      return compare(text, value, field) === 0;
  }
}
