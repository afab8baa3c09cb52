/**
 * How many records a plan concerns is shown to those who see all records; others read that there are some.
 * Source: docs/reference/metadata.md#validate.
 */
import type { UserIdentity } from '../../contracts/data.ts';
import type { Problem, RecordCount } from './kinds/kind.ts';
import type { PlanLists } from './planner/plan.ts';

/** True when a user sees all records. */
export const mayCount = ({ systemPermissions }: Pick<UserIdentity, 'systemPermissions'>): boolean =>
  systemPermissions.includes('viewAllData') || systemPermissions.includes('modifyAllData');

/** The plan as it is shown to those who may not count. */
export function withoutCounts<P extends PlanLists>(plan: P): P {
  const uncounted = (changes: P['creates']): P['creates'] =>
    changes.map((change) => ({ ...change, impact: { ...change.impact, records: null } }));
  return {
    ...plan,
    creates: uncounted(plan.creates),
    updates: uncounted(plan.updates),
    deletes: uncounted(plan.deletes),
    blocked: plan.blocked.map(withoutCount),
    // That a table is large is a number, too.
    warnings: plan.warnings.filter(({ code }) => code !== 'LARGE_TABLE').map(withoutCount),
  };
}

const inWords = (records: number | null): string =>
  records === null ? 'some records' : records === 1 ? '1 record' : `${records} records`;

/**
 * A problem's words for a number of records. The message takes the number only as these words, so that they can be put
 * in its place for those who may not count.
 */
export const tellRecords = (
  message: (records: string) => string,
  records: number,
): { message: string; details: { records: RecordCount } } => ({
  message: message(inWords(records)),
  details: { records: records as RecordCount },
});

function withoutCount(problem: Problem): Problem {
  const { details, ...rest } = problem;
  if (details?.records === undefined) return problem;
  const { records, ...others } = details;
  const message = problem.message.replaceAll(inWords(records), inWords(null));
  return { ...rest, message, ...(Object.keys(others).length > 0 ? { details: others } : {}) };
}
