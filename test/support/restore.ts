/** Brings deleted configuration back, as the rollback of a deployment does. */
import type { Database } from '../../mixins/database/database.ts';
import { ownerRole } from '../../mixins/database/roles.ts';
import { applyPlan } from '../../services/metadata/apply.ts';
import { runDataChecks } from '../../services/metadata/data-checks.ts';
import type { Problem } from '../../services/metadata/kinds/kind.ts';
import { makePlan } from '../../services/metadata/planner/plan.ts';
import { readProject } from '../../services/metadata/project/project.ts';
import { DDL_LIMITS, inConfiguration, lockTenant, platformActor } from '../../services/metadata/tenants.ts';

/** Applies the plan of an inverse project; answers what stands against it, and then nothing is applied. */
export async function restore(
  database: Database,
  tenantId: string,
  files: Record<string, string>,
): Promise<readonly Problem[]> {
  const project = await readProject(files, null);
  return inConfiguration(database, tenantId, async (tx) => {
    await tx.query(DDL_LIMITS);
    const { tenant, before, retained } = await lockTenant(tx, tenantId);
    const options = { platform: true, allowDestructiveChanges: false, retained, restores: true } as const;
    tx.actAs(ownerRole(tenantId));
    const plan = await runDataChecks(tx, tx.schema, makePlan(before, project, options), before);
    if (plan.blocked.length === 0)
      await applyPlan(tx, tenant, before, plan, { actor: platformActor(), deploymentId: null });
    return plan.blocked;
  });
}
