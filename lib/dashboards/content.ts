/**
 * Rules for the content of a dashboard beyond the form of its parts, for requests and deployments alike.
 * Pure. Source: docs/reference/analytics.md#content.
 */
import { LIMITS } from '../limits.ts';
import { ConditionReader, UNARY } from '../query/conditions.ts';
import { Violations } from '../query/violations.ts';
import { textProblem } from '../schema/field-types/common.ts';
import type { Operator } from '../schema/field-types/types.ts';
import { isTimezone } from '../values/time.ts';

interface Filter {
  readonly filterKey: string;
  readonly objectApiName: string;
  readonly field: string;
  readonly operator: Operator;
  readonly value?: unknown;
  readonly valueTo?: unknown;
}

/** Conditions of the filters on one object. */
const FILTER_CONDITIONS_MAX = LIMITS.dashboard_filters_max;

interface Share {
  readonly principalType: string;
  readonly principalId: string;
}

interface WidgetQuery {
  readonly dimensions: readonly { readonly field: string; readonly granularity?: string }[];
  readonly measures: readonly { readonly key: string; readonly aggregation: string; readonly field?: string }[];
  readonly filters?: unknown;
  readonly sort?: readonly { readonly id: string }[];
}

interface Widget {
  readonly widgetKey: string;
  readonly type: string;
  readonly layout: { readonly x: number; readonly w: number };
  readonly query: WidgetQuery | null;
}

/** Properties of a dashboard that are checked. */
interface DashboardContent {
  readonly name: string;
  readonly description: string | null;
  readonly visibility: string;
  readonly sharedWith: readonly Share[];
  readonly timezone: string | null;
  readonly filters: readonly Filter[];
  readonly widgets: readonly Widget[];
}

/** Takes a problem at a place, a JSON Pointer into the dashboard. */
type AddProblem = (pointer: string, message: string) => void;

/** Reports everything that is wrong with a dashboard. */
export function contentProblems(content: DashboardContent, add: AddProblem): void {
  textProblems(content, add);
  shareProblems(content, add);
  duplicates(content.filters, ({ filterKey }) => filterKey).forEach((at) => {
    add(`/filters/${at}/filterKey`, 'Another filter has this key.');
  });
  filterCountProblems(content.filters, add);
  content.filters.forEach((filter, at) => {
    filterProblems(filter, `/filters/${at}`, add);
  });
  duplicates(content.widgets, ({ widgetKey }) => widgetKey).forEach((at) => {
    add(`/widgets/${at}/widgetKey`, 'Another widget has this key.');
  });
  content.widgets.forEach((widget, at) => {
    widgetProblems(widget, `/widgets/${at}`, add);
  });
}

function textProblems({ name, description, timezone }: DashboardContent, add: AddProblem): void {
  if (name.trim() === '') add('/name', 'The name is blank.');
  for (const [pointer, text] of [
    ['/name', name],
    ['/description', description],
  ] as const) {
    const problem = text === null ? null : textProblem(text);
    if (problem !== null) add(pointer, `The text ${problem}`);
  }
  if (timezone !== null && !isTimezone(timezone))
    add('/timezone', 'timezone is the IANA name of a time zone, such as Europe/Berlin.');
}

/** A widget could not be run with more. */
function filterCountProblems(filters: readonly Filter[], add: AddProblem): void {
  const counts = new Map<string, number>();
  filters.forEach((filter, at) => {
    const count = (counts.get(filter.objectApiName) ?? 0) + conditionCount(filter);
    counts.set(filter.objectApiName, count);
    if (count > FILTER_CONDITIONS_MAX)
      add(
        `/filters/${at}`,
        `Filters on one object may have at most ${FILTER_CONDITIONS_MAX} conditions, including those inside in_related.`,
      );
  });
}

/** How many conditions a condition is: itself, and those inside in_related. */
export function conditionCount({ operator, value }: Pick<Filter, 'operator' | 'value'>): number {
  if (operator !== 'in_related' || typeof value !== 'object' || value === null) return 1;
  return 'conditions' in value && Array.isArray(value.conditions) ? 1 + value.conditions.length : 1;
}

/** Conditions that can match no record: a value in another form than that of the operator. */
function filterProblems(filter: Filter, pointer: string, add: AddProblem): void {
  const { field, operator, value, valueTo } = filter;
  if (conditionCount(filter) > FILTER_CONDITIONS_MAX) return;
  if ((value ?? valueTo ?? null) === null && !UNARY.has(operator)) return;
  const problems = new Violations();
  const reader = new ConditionReader(problems, FILTER_CONDITIONS_MAX);
  reader.list([{ id: 'filter', field, operator, value, valueTo }], pointer);
  for (const { pointer: at, message } of problems.list) add(`${pointer}${at.slice(`${pointer}/0`.length)}`, message);
}

function shareProblems({ visibility, sharedWith }: DashboardContent, add: AddProblem): void {
  if (visibility === 'private' && sharedWith.length > 0)
    add('/sharedWith', 'A private dashboard cannot be shared: set visibility to shared, or sharedWith to [].');
  duplicates(sharedWith, ({ principalType, principalId }) => `${principalType} ${principalId}`).forEach((at) => {
    add(`/sharedWith/${at}`, 'The list names this principal twice.');
  });
}

function widgetProblems({ type, layout, query }: Widget, pointer: string, add: AddProblem): void {
  if (layout.x + layout.w > 12) add(`${pointer}/layout/w`, 'The widget ends beyond the 12 columns of the grid.');
  if (query === null) return;
  if (type === 'text') add(`${pointer}/query`, 'A text widget has no query.');
  const { dimensions, measures, filters, sort = [] } = query;
  if (filters !== undefined) {
    const problems = new Violations();
    new ConditionReader(problems).group(filters, `${pointer}/query/filters`);
    for (const { pointer: at, message } of problems.list) add(at, message);
  }
  const columns = [...dimensions.map(columnKey), ...measures.map(({ key }) => key)];
  duplicates(columns, (key) => key).forEach((at) => {
    const [list, place] = at < dimensions.length ? ['dimensions', at] : ['measures', at - dimensions.length];
    add(`${pointer}/query/${list}/${place}`, 'Another column has the same key.');
  });
  measures.forEach(({ aggregation, field }, at) => {
    if (field === undefined && aggregation !== 'count')
      add(`${pointer}/query/measures/${at}/field`, `${aggregation} needs a field.`);
  });
  sort.forEach(({ id }, at) => {
    if (!columns.includes(id)) add(`${pointer}/query/sort/${at}/id`, 'There is no column with this key.');
  });
}

/** Key of a dimension's column. */
const columnKey = ({ field, granularity }: { field: string; granularity?: string }): string =>
  granularity === undefined ? field : `${field}_${granularity}`;

/** Places of the items whose key an earlier one has. */
function duplicates<T>(items: readonly T[], keyOf: (item: T) => string): number[] {
  const seen = new Set<string>();
  return items.flatMap((item, at) => {
    const key = keyOf(item);
    if (seen.has(key)) return [at];
    seen.add(key);
    return [];
  });
}
