/**
 * What running a widget asks of the records: its own query, with the filters of its dashboard and what the caller adds. Pure.
 * Source: docs/reference/analytics.md#running-a-widget.
 */
import type { DashboardFilter, RunBody, WidgetQuery } from '../../../contracts/analytics.ts';
import type { AggregateQuery } from '../../../contracts/data/aggregate.ts';
import type { ErrorCode } from '../../../lib/errors/catalogue.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { pointerPart } from '../../../lib/errors/pointer.ts';
import { ViolationList } from '../../../lib/errors/violation-list.ts';
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
  /** The dashboard is being asked by somebody in this zone. */
  readonly viewerTimezone: string;
  readonly ieee754Compatible: boolean;
}

/** Where a condition of the question comes from. */
interface Source {
  readonly pointer: string;
  /** The client's name of it. */
  readonly id: string | null;
}

export interface Question {
  readonly query: AggregateQuery;
  /** Of its `conditions`, in their order. */
  readonly sources: readonly Source[];
}

type Condition = Pick<DashboardFilter, 'field' | 'operator' | 'value' | 'valueTo'>;

const UNARY: ReadonlySet<string> = new Set(['is_blank', 'is_not_blank']);

/** The question. 400 when the caller gives a filter that is not there, or one that is locked. */
export function questionOf(asked: AskedWidget): Question {
  const { query, body, ieee754Compatible } = asked;
  refuseForm(asked);
  const conditions = [...filterConditions(asked), ...callerConditions(body)];
  const { sort, filters, limit, ...rest } = query;
  return {
    query: {
      ...rest,
      ...(filters ? { filters } : {}),
      ...(sort ? { sort } : {}),
      ...(conditions.length > 0
        ? { conditions: conditions.map(({ condition }, at) => ({ id: `c${at}`, ...condition })) }
        : {}),
      ...given('limit', body.limit ?? limit),
      ...given('cursor', body.cursor),
      timezone: body.timezone ?? asked.timezone ?? asked.viewerTimezone,
      ...(ieee754Compatible ? { ieee754Compatible } : {}),
    },
    sources: conditions.map(({ source }) => source),
  };
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
    const { value: from, valueTo: to } = value ?? filter;
    if (from === undefined && !UNARY.has(operator)) return [];
    const pointer = value ? `/filterValues/${pointerPart(filterKey)}` : `/filters/${at}`;
    return [{ condition: conditionOf(field, operator, from, to), source: { pointer, id: null } }];
  });
}

const callerConditions = ({ conditions = [] }: RunBody): SourcedCondition[] =>
  conditions.map(({ id, field, operator, value, valueTo }, at) => ({
    condition: conditionOf(field, operator, value, valueTo),
    source: { pointer: `/conditions/${at}`, id: id ?? null },
  }));

const conditionOf = (field: string, operator: Condition['operator'], from: unknown, to: unknown): Condition => ({
  field,
  operator,
  ...(from === undefined || UNARY.has(operator) ? {} : { value: from }),
  ...(to === undefined ? {} : { valueTo: to }),
});

/**
 * What is wrong with a question, as the caller has put it: pointers into the request, and into the dashboard for what stands
 * there (`/widgets/…`, `/filters/…`, `/timezone`).
 */
export function refusalOf(
  error: PlatformError,
  { place, query, body }: AskedWidget,
  { sources }: Question,
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
  const { conditionId, ...details } = error.details ?? {};
  const named = conditionIdOf(conditionId, sources, query);
  return new PlatformError(error.code, error.message, {
    errors: error.errors.map((one) => ({ ...one, pointer: pointerOf(one.pointer) })),
    ...(error.details ? { details: { ...details, ...(named === null ? {} : { conditionId: named }) } } : {}),
    cause: error.cause,
  });
}

/** The name that the client gave a condition; null: it has none. */
function conditionIdOf(id: unknown, sources: readonly Source[], { filters }: WidgetQuery): string | null {
  if (typeof id !== 'string') return null;
  if (filters?.conditions.some((condition) => condition.id === id)) return id;
  const at = /^c(\d{1,2})$/.exec(id)?.[1];
  return at === undefined ? null : (sources[Number(at)]?.id ?? null);
}
