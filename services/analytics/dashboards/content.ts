/** What a dashboard may contain beyond the form of its parts. Pure. Source: docs/reference/analytics.md#content. */
import { LIMITS } from '../../../config/limits.ts';
import type { CreateBody, DashboardFilter, DashboardShare, GivenWidget, Widget } from '../../../contracts/analytics.ts';
import type { ErrorCode, ViolationCode } from '../../../lib/errors/catalogue.ts';
import { PlatformError, type Violation, violation } from '../../../lib/errors/platform-error.ts';
import { ViolationList } from '../../../lib/errors/violation-list.ts';
import { textProblem } from '../../../lib/schema/field-types/common.ts';
import { isTimezone } from '../../../lib/values/time.ts';

/** Everything about a dashboard that a caller can set. */
export interface Content {
  readonly name: string;
  readonly description: string | null;
  readonly visibility: 'private' | 'shared' | 'public';
  readonly sharedWith: readonly DashboardShare[];
  readonly timezone: string | null;
  readonly filters: readonly DashboardFilter[];
  readonly widgets: readonly Widget[];
}

const EMPTY = {
  description: null,
  visibility: 'private',
  sharedWith: [],
  timezone: null,
  filters: [],
  widgets: [],
} as const;

/** What a dashboard becomes by a body: what it does not name stays, or has its default. */
export function contentOf(given: Partial<CreateBody>, before: Content | null): Content {
  const { name, description, visibility, sharedWith, timezone, filters, widgets } = given;
  const { name: formerName = '', ...former } = before ?? EMPTY_NAMED;
  return {
    name: name?.normalize('NFC') ?? formerName,
    description: description === undefined ? former.description : (description?.normalize('NFC') ?? null),
    visibility: visibility ?? former.visibility,
    sharedWith: sharedWith?.map(sameCase) ?? former.sharedWith,
    timezone: timezone === undefined ? former.timezone : timezone,
    filters: filters?.map((filter) => ({ ...filter, locked: filter.locked ?? false })) ?? former.filters,
    widgets: widgets?.map(completeWidget) ?? former.widgets,
  };
}

const EMPTY_NAMED: Content = { name: '', ...EMPTY };

const completeWidget = ({ query = null, options = {}, ...widget }: GivenWidget): Widget => ({
  ...widget,
  query,
  options,
});

const sameCase = (share: DashboardShare): DashboardShare =>
  share.principalType === 'user' ? { ...share, principalId: share.principalId.toLowerCase() } : share;

/** Everything that is wrong with a dashboard, as far as an answer shows it. */
export function contentProblems(content: Content): ViolationList<ViolationCode> {
  const problems = new ViolationList<ViolationCode>();
  const add = (pointer: string, message: string): void =>
    problems.add(() => violation(pointer, 'DASHBOARD_INVALID', message));
  textProblems(content, add);
  shareProblems(content, add);
  duplicates(content.filters, ({ filterKey }) => filterKey).forEach((at) => {
    add(`/filters/${at}/filterKey`, 'Another filter has this key.');
  });
  duplicates(content.widgets, ({ widgetKey }) => widgetKey).forEach((at) => {
    add(`/widgets/${at}/widgetKey`, 'Another widget has this key.');
  });
  content.widgets.forEach((widget, at) => {
    widgetProblems(widget, `/widgets/${at}`, add);
  });
  return problems;
}

type Add = (pointer: string, message: string) => void;

function textProblems({ name, description, timezone }: Content, add: Add): void {
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

function shareProblems({ visibility, sharedWith }: Content, add: Add): void {
  if (visibility === 'private' && sharedWith.length > 0)
    add('/sharedWith', 'A private dashboard is shared with nobody: set visibility to shared, or sharedWith to [].');
  duplicates(sharedWith, ({ principalType, principalId }) => `${principalType} ${principalId}`).forEach((at) => {
    add(`/sharedWith/${at}`, 'The list names this principal twice.');
  });
}

function widgetProblems({ type, layout, query }: Widget, pointer: string, add: Add): void {
  if (layout.x + layout.w > 12) add(`${pointer}/layout/w`, 'The widget ends beyond the 12 columns of the grid.');
  if (query === null) return;
  if (type === 'text') add(`${pointer}/query`, 'A text widget has no query.');
  const { dimensions, measures, sort = [] } = query;
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
export const columnKey = ({ field, granularity }: { field: string; granularity?: string }): string =>
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

/** 422 with all problems; nothing when there are none. */
export function refuseProblems({ list, count }: ViolationList<ViolationCode>): void {
  const [first] = list;
  if (!first) return;
  throw new PlatformError(
    codeOf(list),
    list.length === 1 ? first.message : `The dashboard has ${count} problems; see errors.`,
    { errors: [...list] },
  );
}

/** The code of the answer: that of its problems where they are of one kind. */
function codeOf(problems: readonly Violation[]): ErrorCode {
  if (problems.every(({ code }) => code === 'WIDGET_QUERY_INVALID')) return 'WIDGET_QUERY_INVALID';
  return problems.every(({ code }) => code === 'REFERENCE_NOT_FOUND') ? 'VALIDATION_FAILED' : 'DASHBOARD_INVALID';
}

/** 413 for a dashboard that takes more room than one may. */
export function refuseSize(content: Content): void {
  if (Buffer.byteLength(JSON.stringify(content)) > LIMITS.dashboard_max_bytes)
    throw new PlatformError('REQUEST_TOO_LARGE', `A dashboard has ${LIMITS.dashboard_max_bytes} bytes at most.`, {
      details: { maxBytes: LIMITS.dashboard_max_bytes },
    });
}
