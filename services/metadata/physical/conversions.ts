/**
 * Conversion of a field's values when its type changes or narrows and data loss was accepted: texts
 * are cut, numbers are rounded, and what does not fit or does not convert is emptied. Pure.
 * Source: docs/reference/metadata.md#altering.
 */
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta, FieldTypeName } from '../../../lib/schema/snapshot.ts';
import { literal } from '../../../lib/values/sql-text.ts';

/** How a field loses data; null: it keeps all values as they are. */
type Narrowing = 'fieldType' | 'length' | 'digits' | 'picklist' | null;

/** Losses of a field's change. */
export function narrowing(old: FieldMeta, field: FieldMeta): Narrowing {
  if (old.fieldType !== field.fieldType && !fieldType(old.fieldType).becomes?.includes(field.fieldType))
    return 'fieldType';
  if (old.length !== null && field.length !== null && field.length < old.length) return 'length';
  if (old.precision !== null && old.scale !== null && field.precision !== null && field.scale !== null)
    if (field.scale < old.scale || field.precision - field.scale < old.precision - old.scale) return 'digits';
  if (field.restrictedPicklist && field.picklistValues) {
    const values = new Set(field.picklistValues.map(({ value }) => value));
    if (!old.restrictedPicklist || (old.picklistValues ?? []).some(({ value }) => !values.has(value)))
      return 'picklist';
  }
  return null;
}

const TEXTS: readonly FieldTypeName[] = ['text', 'longText', 'richText', 'email', 'phone', 'url'];
const PLAIN_TEXTS: readonly FieldTypeName[] = ['text', 'longText'];
const DECIMALS: readonly FieldTypeName[] = ['decimal', 'currency', 'percent'];
const NUMBERS: readonly FieldTypeName[] = ['integer', ...DECIMALS];

/** Greatest integer that a field holds. */
const INTEGER_MAX = String(Number.MAX_SAFE_INTEGER);
/** A text that is longer than any number of ours is none. */
const NUMBER_MAX_CHARS = 60;
const CHOICE_MAX_CHARS = 255;

interface Conversion {
  readonly from: readonly FieldTypeName[];
  readonly to: readonly FieldTypeName[];
  /** SQL of the new value; `x` is SQL of the old one and not null. */
  sql(x: string, field: FieldMeta, timezone: string): string;
}

const when = (condition: string, value: string): string => `CASE WHEN ${condition} THEN ${value} END`;

/** A number in the digits of its field; emptied when it does not fit. */
function numberSql(x: string, { fieldType: type, precision, scale }: FieldMeta): string {
  if (type === 'integer') return when(`abs(round(${x})) <= ${INTEGER_MAX}`, `round(${x})::bigint`);
  const [digits, decimals] = [precision ?? 18, scale ?? 2];
  return when(
    `abs(round(${x}, ${decimals})) < 1e${digits - decimals}`,
    `round(${x}, ${decimals})::numeric(${digits},${decimals})`,
  );
}

/** Digits are never cut: the value would change its meaning. */
const wholeText = (x: string, { length }: FieldMeta): string =>
  length === null ? x : when(`char_length(${x}) <= ${length}`, x);

const cut = (x: string, { length }: FieldMeta): string => (length === null ? x : `left(${x}, ${length})`);

const textArray = (values: readonly string[]): string => `ARRAY[${values.map(literal).join(', ')}]::text[]`;

function choice(x: string, { restrictedPicklist, picklistValues }: FieldMeta): string {
  if (restrictedPicklist && picklistValues)
    return when(`${x} = ANY (${textArray(picklistValues.map(({ value }) => value))})`, x);
  return when(`char_length(${x}) <= ${CHOICE_MAX_CHARS} AND NOT erp.expr_is_white(${x})`, x);
}

/** Selects the items that may stay; the caller has no place for a subquery in an ALTER TABLE. */
function choices(x: string, { restrictedPicklist, picklistValues }: FieldMeta): string {
  if (!restrictedPicklist || !picklistValues) return x;
  const values = textArray(picklistValues.map(({ value }) => value));
  return `nullif(ARRAY(SELECT item FROM unnest(${x}) WITH ORDINALITY AS items (item, place)
    WHERE item = ANY (${values}) ORDER BY place), '{}')`;
}

const CONVERSIONS: readonly Conversion[] = [
  { from: [...TEXTS, 'picklist'], to: PLAIN_TEXTS, sql: cut },
  { from: ['richText'], to: ['richText'], sql: cut },
  { from: ['email'], to: ['email'], sql: wholeText },
  { from: ['phone'], to: ['phone'], sql: wholeText },
  { from: ['url'], to: ['url'], sql: wholeText },
  { from: [...PLAIN_TEXTS, 'picklist'], to: ['picklist'], sql: choice },
  {
    from: ['picklist'],
    to: ['multiPicklist'],
    sql: (x, field) => when(`${choice(x, field)} IS NOT NULL`, `ARRAY[${x}]::text[]`),
  },
  { from: ['multiPicklist'], to: ['multiPicklist'], sql: choices },
  {
    from: ['multiPicklist'],
    to: ['picklist'],
    sql: (x, field) => when(`cardinality(${x}) = 1`, choice(`${x}[1]`, field)),
  },
  {
    from: ['multiPicklist'],
    to: PLAIN_TEXTS,
    sql: (x, field) => when(`cardinality(${x}) > 0`, cut(`array_to_string(${x}, '; ')`, field)),
  },
  { from: NUMBERS, to: NUMBERS, sql: (x, field) => numberSql(`${x}::numeric`, field) },
  { from: ['integer'], to: PLAIN_TEXTS, sql: (x, field) => wholeText(`${x}::text`, field) },
  { from: DECIMALS, to: PLAIN_TEXTS, sql: (x, field) => wholeText(`trim_scale(${x})::text`, field) },
  {
    from: PLAIN_TEXTS,
    to: NUMBERS,
    // One branch after the other: PostgreSQL does not promise the order of AND.
    sql: (x, field) =>
      when(
        `char_length(${x}) <= ${NUMBER_MAX_CHARS} AND btrim(${x}) ~ '^[+-]?[0-9]+([.][0-9]+)?$'`,
        numberSql(`btrim(${x})::numeric`, field),
      ),
  },
  { from: ['boolean'], to: PLAIN_TEXTS, sql: (x, field) => wholeText(`${x}::text`, field) },
  {
    from: PLAIN_TEXTS,
    to: ['boolean'],
    sql: (x) => `CASE lower(btrim(${x})) WHEN 'true' THEN true WHEN 'false' THEN false END`,
  },
  { from: ['date'], to: PLAIN_TEXTS, sql: (x, field) => wholeText(`to_char(${x}, 'YYYY-MM-DD')`, field) },
  {
    from: PLAIN_TEXTS,
    to: ['date'],
    sql: (x) =>
      when(
        `btrim(${x}) ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$' AND erp.input_is_valid(btrim(${x}), 'date')`,
        `btrim(${x})::date`,
      ),
  },
  {
    from: ['date'],
    to: ['dateTime'],
    sql: (x, _field, timezone) => {
      const moment = `(${x}::timestamp AT TIME ZONE ${literal(timezone)})`;
      return when(`${moment} >= '0001-01-01 00:00:00Z' AND ${moment} < '10000-01-01 00:00:00Z'`, moment);
    },
  },
  {
    from: ['dateTime'],
    to: ['date'],
    sql: (x, _field, timezone) => {
      const day = `(${x} AT TIME ZONE ${literal(timezone)})::date`;
      return when(`${day} BETWEEN '0001-01-01' AND '9999-12-31'`, day);
    },
  },
];

/**
 * SQL of the value that a field has after a change, of the old value `column`, a quoted name; null: there is no such
 * conversion. `timezone`: the tenant's, in which days begin.
 */
export function convertedSql(column: string, old: FieldMeta, field: FieldMeta, timezone: string): string | null {
  const found = CONVERSIONS.find(({ from, to }) => from.includes(old.fieldType) && to.includes(field.fieldType));
  return found ? found.sql(column, field, timezone) : null;
}
