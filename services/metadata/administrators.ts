/** A deployment leaves the tenant its administrators. Source: docs/reference/access.md#administrators. */
import { holderSql, KEPT_PERMISSIONS, type KeptPermission, lastHolder } from '../../lib/access/administrators.ts';
import type { TenantInfo } from '../../lib/schema/snapshot.ts';
import { Sql } from '../../mixins/database/sql.ts';
import { accessSnapshot, type Reader } from './acting.ts';
import { type Component, componentKey, isOf, type State } from './kinds/component.ts';
import type { Problem } from './kinds/kind.ts';
import { PERMISSION_SET, PROFILE } from './kinds/permissions.ts';
import type { Plan } from './planner/plan.ts';
import type { Project } from './project/project.ts';

/** The plan with a problem where it takes a permission of administrators from the last active user who holds it. */
export async function keepAdministrators(
  tx: Reader,
  plan: Plan,
  { tenant, before, project }: { tenant: TenantInfo; before: State; project: Project },
): Promise<Plan> {
  const bundles = [...plan.changed, ...plan.deleted].filter(
    (component) => isOf(component, PROFILE) || isOf(component, PERMISSION_SET),
  );
  if (bundles.length === 0) return plan;
  const lost = await lostPermissions(tx, accessSnapshot(tenant, before), accessSnapshot(tenant, plan.after));
  const problems = lost.flatMap((name) =>
    bundles
      .filter((bundle) => gave(before.get(componentKey(bundle.type, bundle.fullName)), name))
      .map((bundle) => {
        const position = project.drafts.get(componentKey(bundle.type, bundle.fullName))?.position('/system');
        return lastHolderProblem(bundle, name, position ?? { line: null, column: null });
      }),
  );
  return { ...plan, blocked: [...plan.blocked, ...problems] };
}

type Bundles = Parameters<typeof holderSql>[0];

async function lostPermissions(tx: Reader, before: Bundles, after: Bundles): Promise<readonly KeptPermission[]> {
  const sql = new Sql();
  const held = (bundles: Bundles, name: KeptPermission): string =>
    `EXISTS (SELECT FROM ${tx.schema}."User" WHERE ${holderSql(bundles, name, sql.bind)})`;
  const lost = KEPT_PERMISSIONS.map((name) => `${held(before, name)} AND NOT ${held(after, name)}`);
  const found = await tx.one<{ lost: boolean[] }>(sql.statement(`SELECT ARRAY[${lost.join(', ')}] AS lost`));
  return KEPT_PERMISSIONS.filter((_name, i) => found.lost[i]);
}

/** A file that gave the permission, or the use of the API, without which it does not count. */
function gave(old: Component | undefined, name: KeptPermission): boolean {
  const system = old?.body['system'];
  return Array.isArray(system) && (system.includes(name) || system.includes('apiEnabled'));
}

const lastHolderProblem = (
  { type, fullName, path }: Component,
  name: KeptPermission,
  position: Pick<Problem, 'line' | 'column'>,
): Problem => ({
  code: 'COMPONENT_PERMISSION_DENIED',
  type,
  fullName,
  path,
  ...position,
  message: lastHolder(name),
  remedy: `Leave ${name} and apiEnabled to an active user.`,
});
