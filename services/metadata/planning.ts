/** The plan of a user's project: what the planner says, what the records say to it, and who would be left to manage. */
import { ceilings, type RateDefaults } from '../../contracts/ratelimit.ts';
import type { Tx } from '../../mixins/database/database.ts';
import { loadActing } from './acting.ts';
import { keepAdministrators } from './administrators.ts';
import { runDataChecks } from './data-checks.ts';
import type { State } from './kinds/component.ts';
import type { Acting } from './kinds/kind.ts';
import { makePlan, type Plan } from './planner/plan.ts';
import type { Project } from './project/project.ts';
import type { Tenant } from './store.ts';

export interface Planned {
  readonly tenant: Tenant;
  readonly before: State;
  readonly project: Project;
  readonly userId: string;
  readonly allowDestructiveChanges: boolean;
  /** The limits of the deployment, of which a tenant sets its own. */
  readonly rateLimits: RateDefaults;
}

/** Runs in a transaction that reads the tenant's records, and holds the user to what they hold in it. */
export async function planFor(tx: Tx, planned: Planned): Promise<{ plan: Plan; acting: Acting }> {
  const { before, project, userId, allowDestructiveChanges } = planned;
  const acting = await loadActing(tx, userId, planned);
  const made = makePlan(before, project, {
    platform: false,
    allowDestructiveChanges,
    ceilings: ceilings(planned.rateLimits, planned.tenant.operatorLimits),
    ...acting,
  });
  const checked = await runDataChecks(tx, tx.schema, made, before);
  return { plan: await keepAdministrators(tx, checked, planned), acting };
}
