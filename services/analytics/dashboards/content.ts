/** Applies a request to a dashboard, or says why it is refused. Pure. */

import type { CreateBody, DashboardFilter, DashboardShare, GivenWidget, Widget } from '../../../contracts/analytics.ts';
import type { ErrorCode, ViolationCode } from '../../../lib/errors/catalogue.ts';
import { PlatformError, type Violation } from '../../../lib/errors/platform-error.ts';
import type { ViolationList } from '../../../lib/errors/violation-list.ts';
import { LIMITS } from '../../../lib/limits.ts';

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

/** Merges a body into a dashboard: absent properties stay, or get their default. */
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
  query: query && { ...query, dimensions: query.dimensions ?? [] },
  options,
});

const sameCase = (share: DashboardShare): DashboardShare =>
  share.principalType === 'user' ? { ...share, principalId: share.principalId.toLowerCase() } : share;

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
    throw new PlatformError('REQUEST_TOO_LARGE', `A dashboard may have at most ${LIMITS.dashboard_max_bytes} bytes.`, {
      details: { maxBytes: LIMITS.dashboard_max_bytes },
    });
}
