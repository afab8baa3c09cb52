/**
 * How many records a plan concerns is told to those who see all records; others hear that there are some.
 * Source: docs/reference/metadata.md#validate.
 */
import type { UserIdentity } from '../../contracts/data.ts';
import type { Problem } from './kinds/kind.ts';
import type { PlanLists } from './planner/plan.ts';

/** Whether a user sees all records. */
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
    warnings: plan.warnings.map(withoutCount),
  };
}

function withoutCount(problem: Problem): Problem {
  const { details, ...rest } = problem;
  if (details?.['records'] === undefined) return problem;
  const { records: _counted, ...others } = details;
  const message = problem.message
    .replace(/ \(\d+ records\)$/, ' (some records)')
    .replace(/\bhas \d+ records\b/, 'has many records');
  return { ...rest, message, ...(Object.keys(others).length > 0 ? { details: others } : {}) };
}
