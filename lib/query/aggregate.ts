/**
 * A question that groups records, from its JSON to a plan: the same grammar of conditions, the same fields and the same
 * record access as a list has. Whatever the caller could not list is not counted, grouped or compared either; a field
 * that is hidden is handled like one that does not exist. Source: docs/reference/aggregation.md.
 */

import type { ObjectAccess } from '../access/types.ts';
import { pointerPart } from '../errors/pointer.ts';
import { isObject } from '../json/objects.ts';
import { LIMITS } from '../limits.ts';
import { valueTypeName } from '../schema/field-types/registry.ts';
import { AGGREGATIONS, type Aggregation } from '../schema/field-types/types.ts';
import type { FieldMeta } from '../schema/snapshot.ts';
import { isTimezone } from '../values/time.ts';
import { aggregationsOf, granularitiesOf, groupable } from './capabilities.ts';
import { ConditionReader, quoted } from './conditions.ts';
import { planConditions } from './plan.ts';
import type { AggregatePlan, AggregateQuery, Condition, Dimension, Measure, QueryView } from './types.ts';
import { Violations } from './violations.ts';

export const AGGREGATE_LIMITS = {
  dimensions_max: 3,
  measures_max: 10,
  rows_default: 200,
  rows_max: 2_000,
  sort_max: LIMITS.sort_max,
  /** Conditions that come from elsewhere than the query: filters of a dashboard, and those of the caller. */
  conditions_max: 30,
} as const;

const PROPERTIES: ReadonlySet<string> = new Set<keyof AggregateQuery>([
  'objectApiName',
  'dimensions',
  'measures',
  'filters',
  'conditions',
  'sort',
  'limit',
  'cursor',
  'timezone',
  'ieee754Compatible',
]);
const KEY = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;

/**
 * The plan of a question, still without record access (lib/query/constrain.ts adds it). The caller has checked that the
 * user may read the object.
 * @throws PlatformError 422 WIDGET_QUERY_INVALID with all violations.
 */
export function planAggregate(
  raw: Readonly<Record<string, unknown>>,
  access: ObjectAccess,
  view: QueryView,
): AggregatePlan {
  const reader = new Reader(raw, access, view);
  const plan = reader.plan();
  reader.problems.throwIfAny('WIDGET_QUERY_INVALID');
  return plan;
}

/** Key of the column of a dimension. */
const dimensionKey = (field: string, granularity: string | null): string =>
  granularity === null ? field : `${field}_${granularity}`;

class Reader {
  readonly problems = new Violations();
  readonly #raw: Readonly<Record<string, unknown>>;
  readonly #access: ObjectAccess;
  readonly #view: QueryView;
  /** Keys of columns as they are asked for, also by what is refused, with the pointer of each. */
  readonly #keys = new Map<string, string>();

  constructor(raw: Readonly<Record<string, unknown>>, access: ObjectAccess, view: QueryView) {
    this.#raw = raw;
    this.#access = access;
    this.#view = view;
  }

  plan(): AggregatePlan {
    for (const name of Object.keys(this.#raw))
      if (!PROPERTIES.has(name))
        this.problems.add(`/${pointerPart(name)}`, 'BODY_PROPERTY_UNKNOWN', `A query has no property ${quoted(name)}.`);
    const { object } = this.#access;
    const timezone = this.#timezone();
    const dimensions = this.#dimensions();
    const measures = this.#measures();
    const grouped = new Set(dimensions.filter(({ granularity }) => granularity === null).map(({ field }) => field));
    const currencies = new Set(
      measures.flatMap(({ currency }) => (currency && !grouped.has(currency) ? [currency] : [])),
    );
    for (const { apiName } of currencies) {
      const taken = this.#keys.get(apiName);
      if (taken !== undefined) this.#keyTaken(taken, apiName);
    }
    return {
      object,
      dimensions,
      currencies: [...currencies],
      measures,
      filter: this.#filter(timezone),
      sort: this.#sort(dimensions, measures),
      limit: this.#limit(),
      timezone,
      ieee754Compatible: this.#raw['ieee754Compatible'] === true,
      after: null,
    };
  }

  #invalid(pointer: string, message: string, field: string | null = null, details?: Record<string, unknown>): null {
    this.problems.add(pointer, 'WIDGET_QUERY_INVALID', message, { field, ...(details && { details }) });
    return null;
  }

  #list(name: string, least: number, most: number): readonly unknown[] {
    const value = this.#raw[name] ?? [];
    if (Array.isArray(value) && value.length >= least && value.length <= most) return value;
    this.#invalid(`/${name}`, `${name} must be a list of ${least} to ${most} entries.`, null, { max: most });
    return [];
  }

  #readable(name: unknown): FieldMeta | undefined {
    const { fields, object } = this.#access;
    return typeof name === 'string' && fields[name]?.read ? object.fields[name] : undefined;
  }

  #timezone(): string {
    const value = this.#raw['timezone'];
    if (value === undefined || value === null) return this.#view.timezone;
    if (typeof value === 'string' && isTimezone(value)) return value;
    this.#invalid('/timezone', 'timezone must be the IANA name of a time zone, such as Europe/Berlin.');
    return this.#view.timezone;
  }

  #limit(): number {
    const value = this.#raw['limit'] ?? AGGREGATE_LIMITS.rows_default;
    if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= AGGREGATE_LIMITS.rows_max)
      return value;
    this.#invalid('/limit', `limit must be an integer from 1 to ${AGGREGATE_LIMITS.rows_max}.`);
    return 1;
  }

  #dimensions(): readonly Dimension[] {
    return this.#list('dimensions', 0, AGGREGATE_LIMITS.dimensions_max).flatMap((item, index) => {
      const dimension = this.#dimension(item, `/dimensions/${index}`);
      return dimension ? [dimension] : [];
    });
  }

  #dimension(item: unknown, at: string): Dimension | null {
    if (!isObject(item)) return this.#invalid(at, 'A dimension must be an object {field, granularity}.');
    this.#onlyKeys(item, ['field', 'granularity'], at);
    const { field: name, granularity = null } = item;
    if (typeof name !== 'string') return this.#invalid(`${at}/field`, 'field must be the apiName of a field.');
    const key = dimensionKey(name, granularity === null ? null : String(granularity).slice(0, 10));
    if (this.#keys.has(key)) this.#keyTaken(at, key);
    this.#keys.set(key, at);
    const field = this.#readable(name);
    if (!field) {
      this.problems.add(`${at}/field`, 'FIELD_UNKNOWN', `There is no field ${quoted(name)}.`, { field: name });
      return null;
    }
    if (!groupable(field))
      return this.#invalid(`${at}/field`, `${name}, a ${field.fieldType} field, cannot be grouped by.`, name);
    if (granularity === null) return { key, field, granularity };
    const allowed = granularitiesOf(field);
    const known = allowed.find((one) => one === granularity);
    if (known) return { key, field, granularity: known };
    return this.#invalid(
      `${at}/granularity`,
      allowed.length === 0
        ? `${name} is neither a date nor a moment and takes no granularity.`
        : `granularity must be one of ${allowed.join(', ')}.`,
      name,
      { allowed },
    );
  }

  #measures(): readonly Measure[] {
    return this.#list('measures', 1, AGGREGATE_LIMITS.measures_max).flatMap((item, index) => {
      const measure = this.#measure(item, `/measures/${index}`);
      return measure ? [measure] : [];
    });
  }

  #measure(item: unknown, at: string): Measure | null {
    if (!isObject(item)) return this.#invalid(at, 'A measure must be an object {key, aggregation, field}.');
    this.#onlyKeys(item, ['key', 'aggregation', 'field'], at);
    const { key, field: name = null } = item;
    const aggregation = AGGREGATIONS.find((one) => one === item['aggregation']);
    const hasKey = typeof key === 'string' && KEY.test(key);
    if (!hasKey) this.#invalid(`${at}/key`, 'key must be a letter and up to 63 letters, digits, _ or -.');
    else {
      if (this.#keys.has(key)) this.#keyTaken(`${at}/key`, key);
      this.#keys.set(key, `${at}/key`);
    }
    if (!aggregation)
      this.#invalid(`${at}/aggregation`, `aggregation must be one of ${AGGREGATIONS.join(', ')}.`, null, {
        allowed: AGGREGATIONS,
      });
    if (name !== null && typeof name !== 'string')
      return this.#invalid(`${at}/field`, 'field must be the apiName of a field.');
    if (!hasKey || !aggregation) return null;
    if (name === null && aggregation !== 'count') {
      this.problems.add(`${at}/field`, 'FIELD_REQUIRED', `${aggregation} needs a field.`);
      return null;
    }
    const measure = { key, aggregation, named: name, field: null, isAmount: false, currency: null, hidden: false };
    if (name === null) return measure;
    const field = this.#readable(name);
    if (!field) return { ...measure, hidden: true };
    const allowed = aggregationsOf(field);
    if (!allowed.includes(aggregation))
      return this.#invalid(
        `${at}/aggregation`,
        `${aggregation} is not supported for ${name}, a ${field.fieldType} field. Supported: ${allowed.join(', ')}.`,
        name,
        { allowed },
      );
    if (!isAmount(field, aggregation)) return { ...measure, field };
    const currency = currencyOf(field, this.#access);
    return currency === undefined ? { ...measure, hidden: true } : { ...measure, field, isAmount: true, currency };
  }

  #filter(timezone: string): AggregatePlan['filter'] {
    const { filters, conditions } = this.#raw;
    const own =
      filters === undefined || filters === null ? null : new ConditionReader(this.problems).group(filters, '/filters');
    const others: readonly Condition[] =
      conditions === undefined || conditions === null
        ? []
        : new ConditionReader(this.problems, AGGREGATE_LIMITS.conditions_max).list(conditions, '/conditions');
    return planConditions(own, others, this.#access.object, { ...this.#view, timezone }, this.problems);
  }

  #sort(dimensions: readonly Dimension[], measures: readonly Measure[]): AggregatePlan['sort'] {
    const seen = new Set<string>();
    return this.#list('sort', 0, AGGREGATE_LIMITS.sort_max).flatMap((item, index) => {
      const at = `/sort/${index}`;
      const { id, desc = false }: Record<string, unknown> = isObject(item) ? item : {};
      if (!isObject(item) || typeof id !== 'string' || typeof desc !== 'boolean') {
        this.problems.add(
          at,
          'SORT_INVALID',
          'An item of sort must be an object {id, desc}: the key of a column and a boolean.',
        );
        return [];
      }
      this.#onlyKeys(item, ['id', 'desc'], at);
      if (!this.#keys.has(id)) this.problems.add(at, 'SORT_INVALID', `There is no column ${quoted(id)}.`);
      else if (seen.has(id)) this.problems.add(at, 'SORT_INVALID', 'A column can be named only once in sort.');
      seen.add(id);
      const column =
        dimensions.find(({ key }) => key === id) ?? measures.find(({ key, hidden }) => key === id && !hidden);
      return column ? [{ column, desc }] : [];
    });
  }

  #onlyKeys(item: Record<string, unknown>, allowed: readonly string[], at: string): void {
    for (const key of Object.keys(item))
      if (!allowed.includes(key))
        this.problems.add(
          `${at}/${pointerPart(key)}`,
          'BODY_PROPERTY_UNKNOWN',
          `${quoted(key)} is not allowed here. Allowed: ${allowed.join(', ')}.`,
        );
  }

  #keyTaken(pointer: string, key: string): void {
    this.#invalid(pointer, `Another column has the key ${quoted(key)}.`);
  }
}

/** Amounts of money, of which only those of one currency can be compared and added up. */
const isAmount = (field: FieldMeta, aggregation: Aggregation): boolean =>
  valueTypeName(field) === 'currency' && aggregation !== 'count' && aggregation !== 'countDistinct';

/** The field with the currency of amounts; null: theirs is that of the tenant; undefined: the caller cannot read it. */
const currencyOf = ({ currencyField }: FieldMeta, { object, fields }: ObjectAccess): FieldMeta | null | undefined =>
  currencyField === null ? null : fields[currencyField]?.read ? object.fields[currencyField] : undefined;

/** Aggregations of a field that a caller may use: no sums or comparisons of amounts whose currency they cannot read. */
export const aggregationsFor = (field: FieldMeta, access: ObjectAccess): readonly Aggregation[] =>
  aggregationsOf(field).filter(
    (aggregation) => !isAmount(field, aggregation) || currencyOf(field, access) !== undefined,
  );
