/**
 * The query of a widget's run: its own, with the filters of its dashboard and those that the caller adds.
 * Pure. Source: docs/reference/analytics.md#running-a-widget.
 */

import type { DashboardFilter, RunBody, WidgetQuery } from '../../../contracts/analytics.ts';
import type { AggregateQuery } from '../../../contracts/data/aggregate.ts';
import { conditionCount } from '../../../lib/dashboards/content.ts';
import type { ErrorCode } from '../../../lib/errors/catalogue.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { pointerPart } from '../../../lib/errors/pointer.ts';
import { ViolationList } from '../../../lib/errors/violation-list.ts';
import { isObject } from '../../../lib/json/objects.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { CONDITION_LIMITS, UNARY } from '../../../lib/query/conditions.ts';
import { countChars } from '../../../lib/schema/field-types/common.ts';
import { isTimezone } from '../../../lib/values/time.ts';

/** A widget with a query, and what else decides what it shows. */
export interface AskedWidget {
  /** Its place in the dashboard. */
  readonly place: number;
  readonly query: WidgetQuery;
  readonly filters: readonly DashboardFilter[];
  /** Of the dashboard. */
  readonly timezone: string | null;
  readonly body: RunBody;
  /** Time zone of the caller. */
  readonly viewerTimezone: string;
  readonly ieee754Compatible: boolean;
}

/** Origin of a condition. */
interface Source {
  readonly pointer: string;
  /** Within what its id and those inside it are unique: a filter of the dashboard, or the conditions of the caller. */
  readonly author: string;
}

export interface Question {
  readonly query: AggregateQuery;
  /** Of its `conditions`, in their order. */
  readonly sources: readonly Source[];
  /** The author's id of a condition, by its id in the query. */
  readonly ids: ReadonlyMap<string, string>;
}

type Condition = Pick<DashboardFilter, 'field' | 'operator' | 'value' | 'valueTo'> & { readonly id?: string };

/** No filter has this key. */
const CALLER = '';

/** The question. 400 when the caller gives a filter that is not there, or one that is locked. */
export function questionOf(asked: AskedWidget): Question {
  const { query, body, ieee754Compatible } = asked;
  refuseForm(asked);
  const conditions = [...filterConditions(asked), ...callerConditions(body)];
  refuseTooMany(conditions);
  const names = new ConditionNames();
  const { sort, filters, limit, ...rest } = query;
  return {
    query: {
      ...rest,
      ...(filters ? { filters } : {}),
      ...(sort ? { sort } : {}),
      ...(conditions.length > 0
        ? { conditions: conditions.map(({ condition, source }) => names.rename(condition, source.author)) }
        : {}),
      ...given('limit', body.limit ?? limit),
      ...given('cursor', body.cursor),
      timezone: body.timezone ?? asked.timezone ?? asked.viewerTimezone,
      ...(ieee754Compatible ? { ieee754Compatible } : {}),
    },
    sources: conditions.map(({ source }) => source),
    ids: names.given,
  };
}

/** Ids of conditions, which several authors may have given to several conditions. */
class ConditionNames {
  /** The author's id of a condition, by its id here. */
  readonly given = new Map<string, string>();
  readonly #ids = new Map<string, string>();
  #count = 0;

  /** The condition, and those inside it, with ids that no other author has used; what an author uses twice stays so. */
  rename({ id, ...condition }: Condition, author: string): Condition & { readonly id: string } {
    return {
      ...condition,
      id: id === undefined ? this.#next() : this.#idOf(id, author),
      ...(condition.value === undefined ? {} : { value: this.#inside(condition, author) }),
    };
  }

  #inside({ operator, value }: Condition, author: string): unknown {
    if (operator !== 'in_related' || !isObject(value) || !Array.isArray(value['conditions'])) return value;
    const conditions = value['conditions'].map((one: unknown) =>
      isObject(one) && typeof one['id'] === 'string' ? { ...one, id: this.#idOf(one['id'], author) } : one,
    );
    return { ...value, conditions };
  }

  #idOf(given: string, author: string): string {
    // The reader of conditions refuses these.
    if (given === '' || countChars(given) > CONDITION_LIMITS.condition_id_max_chars) return given;
    const key = JSON.stringify([author, given]);
    const id = this.#ids.get(key) ?? this.#next();
    this.#ids.set(key, id);
    this.given.set(id, given);
    return id;
  }

  #next(): string {
    return `c${this.#count++}`;
  }
}

/** 422 where filters, or conditions of the caller, are more than there may be, with those inside them. */
function refuseTooMany(conditions: readonly SourcedCondition[]): void {
  const counts = { filters: 0, conditions: 0 };
  for (const { condition, source } of conditions) {
    const isCallers = source.author === CALLER;
    const count = (counts[isCallers ? 'conditions' : 'filters'] += conditionCount(condition));
    const max = isCallers ? LIMITS.filter_conditions_max : LIMITS.dashboard_filters_max;
    if (count <= max) continue;
    const message = isCallers
      ? `conditions must not have more than ${max} conditions, including those inside in_related.`
      : `Filters on one object must not have more than ${max} conditions, including those inside in_related.`;
    throw new PlatformError('WIDGET_QUERY_INVALID', message, {
      errors: [
        violation(isCallers ? '/conditions' : source.pointer, 'FILTER_TOO_MANY_CONDITIONS', message, {
          params: { max },
        }),
      ],
    });
  }
}

const given = <K extends string, V>(name: K, value: V | undefined): { [P in K]?: V } =>
  value === undefined ? {} : ({ [name]: value } as { [P in K]?: V });

function refuseForm({ filters, body }: AskedWidget): void {
  const problems = new ViolationList<ErrorCode>();
  const refuse = (pointer: string, message: string): void =>
    problems.add(() => violation(pointer, 'PARAMETER_INVALID', message));
  for (const key of Object.keys(body.filterValues ?? {})) {
    const filter = filters.find(({ filterKey }) => filterKey === key);
    if (!filter) refuse(`/filterValues/${pointerPart(key)}`, 'The dashboard has no filter with this key.');
    else if (filter.locked) refuse(`/filterValues/${pointerPart(key)}`, 'This filter is locked: its value stays.');
  }
  if (body.timezone !== undefined && !isTimezone(body.timezone))
    refuse('/timezone', 'timezone must be the IANA name of a time zone, such as Europe/Berlin.');
  const { list, count } = problems;
  const [first] = list;
  if (first)
    throw new PlatformError(
      'PARAMETER_INVALID',
      list.length === 1 ? first.message : `The request has ${count} problems; see errors.`,
      { errors: [...list] },
    );
}

interface SourcedCondition {
  readonly condition: Condition;
  readonly source: Source;
}

/** The filters on the widget's object that have a value: that of the caller, or their own. */
function filterConditions({ query, filters, body }: AskedWidget): SourcedCondition[] {
  return filters.flatMap((filter, at): SourcedCondition[] => {
    const { filterKey, objectApiName, field, operator } = filter;
    if (objectApiName !== query.objectApiName) return [];
    const values = body.filterValues ?? {};
    const value = Object.hasOwn(values, filterKey) ? values[filterKey] : undefined;
    if (!value && (filter.value ?? null) === null && !UNARY.has(operator)) return [];
    const { value: from, valueTo: to } = value ?? filter;
    const pointer = value ? `/filterValues/${pointerPart(filterKey)}` : `/filters/${at}`;
    return [{ condition: conditionOf(field, operator, from, to), source: { pointer, author: filterKey } }];
  });
}

const callerConditions = ({ conditions = [] }: RunBody): SourcedCondition[] =>
  conditions.map(({ id, field, operator, value, valueTo }, at) => ({
    condition: { ...conditionOf(field, operator, value, valueTo), ...(id === undefined ? {} : { id }) },
    source: { pointer: `/conditions/${at}`, author: CALLER },
  }));

const conditionOf = (field: string, operator: Condition['operator'], from: unknown, to: unknown): Condition => ({
  field,
  operator,
  ...(from === undefined ? {} : { value: from }),
  ...(to === undefined ? {} : { valueTo: to }),
});

/**
 * Violations of a query in the caller's terms: pointers into the request, and into the dashboard for what
 * stands there (`/widgets/…`, `/filters/…`, `/timezone`).
 */
export function refusalOf(
  error: PlatformError,
  { place, body }: AskedWidget,
  { sources, ids }: Question,
): PlatformError {
  if (error.code === 'OBJECT_NOT_FOUND')
    return new PlatformError('WIDGET_QUERY_INVALID', error.message, {
      errors: [violation(`/widgets/${place}/query/objectApiName`, 'OBJECT_NOT_FOUND', error.message)],
    });
  if (!error.errors) return error;
  const pointerOf = (pointer: string): string => {
    const [, list, at, ...rest] = pointer.split('/');
    if (list === 'conditions' && at !== undefined) {
      const source = sources[Number(at)];
      return source ? [source.pointer, ...rest].join('/') : '/conditions';
    }
    const isOfRequest = list === 'cursor' || list === 'conditions' || (list === 'limit' && body.limit !== undefined);
    return isOfRequest || list === 'timezone' ? pointer : `/widgets/${place}/query${pointer}`;
  };
  return new PlatformError(error.code, error.message, {
    errors: error.errors.map((one) => ({
      ...one,
      pointer: pointerOf(one.pointer),
      params: one.pointer.startsWith('/conditions') ? withGivenId(one.params, ids) : one.params,
    })),
    ...(error.details ? { details: error.details } : {}),
    cause: error.cause,
  });
}

/** A violation's message with the author's id of the condition, if it has one. */
function withGivenId(
  { conditionId, ...params }: Readonly<Record<string, unknown>>,
  ids: Question['ids'],
): Record<string, unknown> {
  const given = typeof conditionId === 'string' ? ids.get(conditionId) : undefined;
  return given === undefined ? params : { ...params, conditionId: given };
}
