/**
 * A constrained plan of groups becomes one SQL statement: the groups (`g`), what is said about all of them (`t`), and
 * those of the page as JSON (`p` to `s`), all of one snapshot of the database. Records are read once: what holds for
 * all of them is computed from the groups, unless distinct values are counted (`u`).
 *
 * The statement is planned with its values: beside reading the records, planning costs nothing.
 */
import type { Predicate } from '../access/predicate.ts';
import { columnSql } from '../expression/formulas.ts';
import { typeOf, valueTypeName } from '../schema/field-types/registry.ts';
import type { SqlValue } from '../schema/field-types/types.ts';
import type { FieldMeta, FieldTypeName, ObjectMeta } from '../schema/snapshot.ts';
import { required } from '../values/required.ts';
import { identifier, literal } from '../values/sql-text.ts';
import { afterSql } from './keyset.ts';
import { conditionSql, notBlankSql, tableSql } from './sql.ts';
import type { AggregatePlan, CompiledQuery, Constrained, Dimension, Measure } from './types.ts';

/** Digits after the point that an average has beyond those of its field. */
const AVERAGE_DIGITS = 6;
const LABEL_CHARS_MAX = 255;

/** Records that a dimension refers to, and what names them. */
export interface NamedObject {
  readonly object: ObjectMeta;
  readonly name: FieldMeta;
  /** Those of them that the caller reaches. */
  readonly sharing: Predicate | null;
}

interface Options {
  /** The tenant's schema, unquoted. */
  readonly schema: string;
  /** Bytes of rows with which a page ends, however few they are. */
  readonly maxBytes: number;
  /** By key of a dimension. */
  readonly named: ReadonlyMap<string, readonly NamedObject[]>;
}

/** The one row of the statement. */
export interface AggregateRow {
  readonly metadataVersion: number;
  readonly accessVersion: number;
  readonly dataAsOf: string;
  /** Rows of all pages. */
  readonly rowCount: number;
  /** JSON text. */
  readonly totals: string;
  /** By apiName of the field: how many currencies there are, no currency counted as one, and one of them. */
  readonly currencies: Readonly<Record<string, { readonly count: number; readonly code: string | null }>>;
  /** JSON text. */
  readonly rows: string;
  readonly shown: number;
  readonly more: boolean;
  /** Sort values of the last row shown. */
  readonly lastKeys: readonly (string | null)[] | null;
  readonly labels: Readonly<Record<string, Readonly<Record<string, string>> | null>>;
}

/** One statement for a page of groups, with the tenant's versions. */
export function compileAggregate(plan: Constrained<AggregatePlan>, options: Options): CompiledQuery {
  return new Compiler(plan, options).compile();
}

/** The columns that groups are sorted by, as the cursor of a page knows them: a change of one ends the traversal. */
export const orderOf = (plan: AggregatePlan): readonly string[] =>
  orderColumns(plan).map(({ name, type, desc }) => `${name} ${type}${desc ? ' desc' : ''}`);

/** The type of the values of a measure. */
export function measureType({ aggregation, field }: Measure): FieldTypeName {
  if (aggregation === 'count' || aggregation === 'countDistinct') return 'integer';
  if (field === null) return 'decimal';
  const type = valueTypeName(field);
  return aggregation === 'avg' && type === 'integer' ? 'decimal' : type;
}

export const dimensionType = ({ field, granularity }: Dimension): FieldTypeName =>
  granularity === null ? valueTypeName(field) : 'date';

interface OrderColumn {
  readonly name: string;
  readonly type: string;
  readonly desc: boolean;
}

/**
 * Those that are asked for, then all by which records are grouped. What orders amounts follows their currency, of which
 * two amounts cannot be compared; a picklist has the order of its values, and those that it no longer has follow.
 */
function orderColumns(plan: AggregatePlan): readonly OrderColumn[] {
  const dimensions = plan.dimensions.map((dimension, index) => ({
    of: dimension,
    columns: [
      ...(choicesOf(dimension) ? [{ name: `o${index}`, type: 'bigint' }] : []),
      { name: `d${index}`, type: groupType(dimension) },
    ],
  }));
  const currencies = plan.currencies.map((field, index) => ({
    of: field,
    columns: [{ name: `c${index}`, type: typeOf(field).bindType }],
  }));
  const measures = plan.measures.map((measure, index) => ({
    of: measure,
    columns: [{ name: `m${index}`, type: valueType(measure) }],
  }));
  const groups = [...dimensions, ...currencies];
  const ofCurrency = (field: FieldMeta) =>
    groups.find(({ of }) => of === field || ('granularity' in of && !of.granularity && of.field === field));
  const byColumn = new Map([...groups, ...measures].map((one) => [one.of, one]));
  const asked = plan.sort.flatMap(({ column, desc }) => {
    const currency = 'aggregation' in column && column.currency ? ofCurrency(column.currency) : undefined;
    return [...(currency ? [{ ...currency, desc: false }] : []), { ...required(byColumn, column), desc }];
  });
  const order = new Map<string, OrderColumn>();
  for (const { columns, desc } of [...asked, ...groups.map((group) => ({ ...group, desc: false }))])
    for (const column of columns) if (!order.has(column.name)) order.set(column.name, { ...column, desc });
  return [...order.values()];
}

/** The values of a picklist by which records are grouped, in their order; null: it is no picklist. */
const choicesOf = ({ field }: Dimension): readonly string[] | null =>
  typeOf(field).choices === 'one' ? (field.picklistValues?.map(({ value }) => value) ?? null) : null;

/** PostgreSQL type of the values of a dimension. */
const groupType = ({ field, granularity }: Dimension): string => (granularity ? 'date' : typeOf(field).bindType);

/** PostgreSQL type of the values of a measure. */
function valueType({ aggregation, field }: Measure): string {
  if (aggregation === 'count' || aggregation === 'countDistinct') return 'bigint';
  if (field === null) return 'text';
  const { bindType } = typeOf(field);
  const sums = aggregation === 'sum' || aggregation === 'avg';
  return sums && bindType === 'bigint' ? 'numeric' : bindType;
}

class Compiler {
  readonly #plan: Constrained<AggregatePlan>;
  readonly #options: Options;
  readonly #values: SqlValue[] = [];

  constructor(plan: Constrained<AggregatePlan>, options: Options) {
    this.#plan = plan;
    this.#options = options;
  }

  compile(): CompiledQuery {
    const { limit } = this.#plan;
    const where = this.#where();
    const order = orderColumns(this.#plan);
    const orderBy = order.map(({ name, desc }) => `g.${name}${desc ? ' DESC' : ''}`).join(', ');
    const keys = order.map(({ name }) => `p.${name}::text`).join(', ');
    const page = this.#bind(limit, 'bigint');
    const steps = [
      `g AS MATERIALIZED (${this.#groups(where)})`,
      ...this.#distinct(where),
      `t AS (${this.#totals()})`,
      `p AS (SELECT g.*, row_number() OVER (${orderBy && `ORDER BY ${orderBy}`}) AS rn FROM g${this.#after(order)} ` +
        `ORDER BY rn LIMIT ${page} + 1)`,
      `o AS (SELECT p.rn, ${this.#rowJson()} AS json, ARRAY[${keys}]::text[] AS keys FROM p, t)`,
      'b AS (SELECT o.*, sum(octet_length(o.json) + 1) OVER (ORDER BY o.rn) AS bytes FROM o)',
      `s AS (SELECT count(*) AS shown, '[' || coalesce(string_agg(b.json, ',' ORDER BY b.rn), '') || ']' AS rows FROM b ` +
        `WHERE b.rn <= ${page} AND (b.rn = 1 OR b.bytes <= ${this.#bind(this.#options.maxBytes, 'bigint')}))`,
    ];
    const text =
      `WITH ${steps.join(', ')} SELECT state.metadata_version AS "metadataVersion", ` +
      `state.access_version AS "accessVersion", ${NOW} AS "dataAsOf", t.n AS "rowCount", t.totals, t.currencies, ` +
      `s.rows, s.shown, (SELECT count(*) FROM p) > s.shown AS more, ` +
      `(SELECT b.keys FROM b WHERE b.rn = s.shown) AS "lastKeys", ${this.#labels(page)} AS labels ` +
      `FROM ${identifier(this.#options.schema)}."_state" state, t, s`;
    return { text, values: this.#values };
  }

  #bind(value: SqlValue, type: string): string {
    this.#values.push(value);
    return `$${this.#values.length}::${type}`;
  }

  #condition(node: Predicate, alias: string): string {
    return conditionSql(node, alias, this.#options.schema, (value, type) => this.#bind(value, type));
  }

  #where(): string {
    const { filter, sharing } = this.#plan;
    const conditions = [filter, sharing].filter((node) => node !== null).map((node) => this.#condition(node, 'r'));
    return conditions.length > 0 ? ` WHERE ${conditions.join(' AND ')}` : '';
  }

  #records(where: string): string {
    return ` FROM ${tableSql(this.#options.schema, this.#plan.object)} r${where}`;
  }

  #groups(where: string): string {
    const { dimensions, currencies, measures } = this.#plan;
    const groups = [
      ...dimensions.map((dimension, index) => `${this.#dimension(dimension)} AS d${index}`),
      ...currencies.map((field, index) => `${columnSql(field, 'r')} AS c${index}`),
    ];
    const columns = [...groups, ...measures.flatMap((measure, index) => partsOf(measure, index))];
    // Also where nothing is measured, all records are one group and not one each.
    const by = groups.length > 0 ? groups.map((_, index) => index + 1).join(', ') : '()';
    return this.#placed(`SELECT ${columns.join(', ')}${this.#records(where)} GROUP BY ${by}`);
  }

  /** Groups with the places of their values in picklists. */
  #placed(groups: string): string {
    const lists = this.#plan.dimensions.flatMap((dimension, index) => {
      const choices = choicesOf(dimension);
      return choices ? [{ index, values: this.#bind([...choices], 'text[]') }] : [];
    });
    if (lists.length === 0) return groups;
    const joins = lists.map(
      ({ index, values }) =>
        ` LEFT JOIN unnest(${values}) WITH ORDINALITY l${index}(value, place) ON l${index}.value = x.d${index}`,
    );
    const places = lists.map(({ index }) => `l${index}.place AS o${index}`);
    return `SELECT x.*, ${places.join(', ')} FROM (${groups}) x${joins.join('')}`;
  }

  #dimension({ field, granularity }: Dimension): string {
    const column = columnSql(field, 'r');
    if (granularity === null) return column;
    if (typeOf(field).relativeDates === 'days')
      return granularity === 'day' ? column : `date_trunc('${granularity}', ${column}::timestamp)::date`;
    const local = `(${column} AT TIME ZONE erp.expr_zone(${literal(this.#plan.timezone)}))`;
    // A moment at the end of the calendar can be a day beyond it elsewhere. Of null, greatest would make the first day.
    const bucket = `date_trunc('${granularity}', least(greatest(${local}, ${FIRST_DAY}), ${LAST_DAY}))::date`;
    return `CASE WHEN ${column} IS NOT NULL THEN ${bucket} END`;
  }

  /** Values that are counted once over all groups. */
  #distinct(where: string): string[] {
    const counted = this.#plan.measures.flatMap((measure, index) =>
      measure.aggregation === 'countDistinct' && measure.field ? [`${valueSql(measure)} AS m${index}`] : [],
    );
    return counted.length > 0 && this.#isGrouped ? [`u AS (SELECT ${counted.join(', ')}${this.#records(where)})`] : [];
  }

  get #isGrouped(): boolean {
    return this.#plan.dimensions.length + this.#plan.currencies.length > 0;
  }

  #totals(): string {
    const { measures, ieee754Compatible } = this.#plan;
    const totals = measures.map((measure, index) => {
      const currency = this.#currencyColumn(measure);
      const total = totalSql(measure, index, this.#isGrouped);
      const apart = currency === null ? total : `CASE WHEN ${currencyCount(currency)} <= 1 THEN ${total} END`;
      return `${literal(`${JSON.stringify(measure.key)}:`)} || ${cellSql(apart, measure, ieee754Compatible)}`;
    });
    const currencies = new Map(
      measures.flatMap((measure) => {
        const column = this.#currencyColumn(measure);
        return column === null || measure.currency === null ? [] : [[measure.currency.apiName, column]];
      }),
    );
    const found = [...currencies].map(
      ([name, column]) =>
        `${literal(name)}, json_build_object('count', ${currencyCount(column)}, 'code', min(${column}))`,
    );
    return (
      `SELECT count(*) AS n, json_build_object(${found.join(', ')}) AS currencies, ` +
      `'{' || ${totals.join(` || ',' || `)} || '}' AS totals FROM g`
    );
  }

  /** The column of `g` with the currency of a measure; null: it has none, or that of the tenant. */
  #currencyColumn({ currency }: Measure): string | null {
    if (currency === null) return null;
    const { currencies, dimensions } = this.#plan;
    const index = currencies.indexOf(currency);
    return index >= 0
      ? `g.c${index}`
      : `g.d${dimensions.findIndex((one) => !one.granularity && one.field === currency)}`;
  }

  #after(order: readonly OrderColumn[]): string {
    const { after } = this.#plan;
    if (after === null) return '';
    const columns = order.map(({ name, type, desc }, index) => {
      const value = after[index] ?? null;
      return { column: `g.${name}`, desc, nullable: true, bound: value === null ? null : this.#bind(value, type) };
    });
    return ` WHERE ${afterSql(columns)}`;
  }

  #rowJson(): string {
    const { dimensions, currencies, measures, ieee754Compatible } = this.#plan;
    const cells = [
      ...dimensions.map(({ field, granularity }, index) => {
        const column = `p.d${index}`;
        return jsonSql(granularity ? column : typeOf(field).outputSql(column, field, ieee754Compatible));
      }),
      // Left out by concat_ws, where it is null.
      ...currencies.map(
        ({ apiName }, index) =>
          `CASE WHEN (t.currencies -> ${literal(apiName)} ->> 'count')::bigint > 1 THEN ${jsonSql(`p.c${index}`)} END`,
      ),
      ...measures.map((measure, index) => cellSql(`p.m${index}`, measure, ieee754Compatible)),
    ];
    return `'[' || concat_ws(',', ${cells.join(', ')}) || ']'`;
  }

  /** By dimension, the names of the records on the page that the caller reads. */
  #labels(page: string): string {
    const { dimensions } = this.#plan;
    const labels = dimensions.flatMap(({ key }, index) => {
      const objects = this.#options.named.get(key) ?? [];
      if (objects.length === 0) return [];
      const names = objects.map(({ object, name, sharing }) => {
        const reached = sharing === null ? '' : ` AND (${this.#condition(sharing, 'x')}) IS TRUE`;
        const column = columnSql(name, 'x');
        return (
          `SELECT x."id", left(${column}, ${LABEL_CHARS_MAX}) AS name FROM ${tableSql(this.#options.schema, object)} x ` +
          `WHERE x."id" IN (SELECT p.d${index} FROM p WHERE p.rn <= ${page}) AND ${column} IS NOT NULL${reached}`
        );
      });
      return [`${literal(key)}, (SELECT json_object_agg(l.id, l.name) FROM (${names.join(' UNION ALL ')}) l)`];
    });
    return `json_build_object(${labels.join(', ')})`;
  }
}

/** To the millisecond, in the form of the API. */
const NOW = `(to_json(date_trunc('milliseconds', statement_timestamp())) #>> '{}')`;
const FIRST_DAY = `timestamp '0001-01-01'`;
const LAST_DAY = `timestamp '9999-12-31'`;

const jsonSql = (value: string): string => `coalesce(to_json(${value})::text, 'null')`;

/** JSON text of a value of a measure. */
function cellSql(value: string, { aggregation, field }: Measure, ieee754Compatible: boolean): string {
  if (aggregation === 'count' || aggregation === 'countDistinct' || field === null) return jsonSql(value);
  if (aggregation !== 'avg') return jsonSql(typeOf(field).outputSql(value, field, ieee754Compatible));
  return jsonSql(ieee754Compatible && typeOf(field).bindType !== 'interval' ? `(${value})::text` : value);
}

/** The values of a measure in `g`, with what its total is made of. */
function partsOf(measure: Measure, index: number): string[] {
  const parts = [`${valueSql(measure)} AS m${index}`];
  if (measure.aggregation !== 'avg' || measure.field === null) return parts;
  const column = columnSql(measure.field, 'r');
  return [...parts, `sum(${column}) AS s${index}`, `count(${column}) AS n${index}`];
}

/** SQL of a measure over records `r`. */
function valueSql({ aggregation, field, hidden }: Measure): string {
  if (hidden) return aggregation === 'count' || aggregation === 'countDistinct' ? 'NULL::bigint' : 'NULL::text';
  if (field === null) return 'count(*)';
  const column = columnSql(field, 'r');
  const { blank } = typeOf(field);
  const filled = blank === 'null' ? '' : ` FILTER (WHERE ${notBlankSql[blank](column)})`;
  switch (aggregation) {
    case 'count':
      return `count(${column})${filled}`;
    case 'countDistinct':
      return `count(DISTINCT ${column})${filled}`;
    case 'avg':
      return averageSql(field, `sum(${column})`, `count(${column})`);
    case 'sum':
    case 'min':
    case 'max':
      return `${aggregation}(${column})`;
    default:
      return aggregation satisfies never;
  }
}

/** A sum divided by a count, null when nothing was counted. */
function averageSql(field: FieldMeta, sum: string, count: string): string {
  if (typeOf(field).bindType === 'interval') return `(${sum} / nullif(${count}, 0)::double precision)`;
  const digits = (valueTypeName(field) === 'integer' ? 0 : (field.scale ?? 0)) + AVERAGE_DIGITS;
  // A quotient has as many digits after the point as its divisor, at least.
  return `trim_scale(round(${sum} / nullif(${count}, 0)::numeric(38, ${digits}), ${digits}))`;
}

/** SQL of a measure over all groups `g`. */
function totalSql({ aggregation, field, hidden }: Measure, index: number, grouped: boolean): string {
  const column = `g.m${index}`;
  if (hidden) return `min(${column})`;
  switch (aggregation) {
    case 'count':
      return `coalesce(sum(${column}), 0)`;
    case 'countDistinct':
      return grouped ? `(SELECT u.m${index} FROM u)` : `min(${column})`;
    case 'avg':
      return averageSql(field!, `sum(g.s${index})`, `sum(g.n${index})`);
    case 'sum':
    case 'min':
    case 'max':
      return `${aggregation}(${column})`;
    default:
      return aggregation satisfies never;
  }
}

/** How many currencies there are in a column of `g`; none at all counts as one. */
const currencyCount = (column: string): string => `(count(DISTINCT ${column}) + (count(*) > count(${column}))::int)`;
