/** Plans of the planner, as tests of what a deployment checks make them. */
import { SYSTEM_PERMISSIONS } from '../../lib/schema/snapshot.ts';
import type { State } from '../../services/metadata/kinds/component.ts';
import { makePlan, type Plan } from '../../services/metadata/planner/plan.ts';
import { readProject } from '../../services/metadata/project/project.ts';

/** The plan of these files over a configuration, by an actor who holds every permission. */
export const planOf = async (before: State, files: Record<string, string>, platform = false): Promise<Plan> =>
  makePlan(before, await readProject(files, null), {
    platform,
    allowDestructiveChanges: false,
    permissions: [...SYSTEM_PERMISSIONS],
  });
