/**
 * Tenants from before there was the system permission manageAccess: their administrators get it, as the platform, by a
 * version of the configuration like any other. Administrators are those who may manage users and configuration.
 */

import { emitYaml } from '../../lib/yaml/emit.ts';
import type { Database, Tx } from '../../mixins/database/database.ts';
import { applyPlan } from './apply.ts';
import { type Component, isOf } from './kinds/component.ts';
import { PERMISSION_SET, type PermissionsComponent, PROFILE } from './kinds/permissions.ts';
import { makePlan } from './planner/plan.ts';
import { readProject } from './project/project.ts';
import { DDL_LIMITS, inConfiguration, lockTenant, platformActor } from './tenants.ts';

interface Options {
  /** Called after a commit that made a new version. */
  readonly changed: (tenantId: string, metadataVersion: number) => void;
  /** A tenant stays as it is until the next start. */
  readonly failed: (tenantId: string, error: unknown) => void;
}

/** Gives the permission in every tenant that has not been looked at; returns the number of those that got it. */
export async function giveManageAccess(database: Database, { changed, failed }: Options): Promise<number> {
  const { rows } = await database.query<{ id: string }>(
    'SELECT id FROM metadata.tenants WHERE NOT access_managed AND erasing_since IS NULL ORDER BY id',
  );
  let given = 0;
  for (const { id } of rows)
    try {
      const version = await inConfiguration(database, id, (tx) => giveIn(tx, id));
      if (version === null) continue;
      given++;
      changed(id, version);
    } catch (error) {
      failed(id, error);
    }
  return given;
}

/** The new version; null when there is nothing to give. */
async function giveIn(tx: Tx, tenantId: string): Promise<number | null> {
  await tx.query(DDL_LIMITS);
  const { tenant, before, retained } = await lockTenant(tx, tenantId);
  const done = await tx.one<{ managed: boolean }>({
    text: `UPDATE metadata.tenants tenant SET access_managed = true
      FROM (SELECT access_managed FROM metadata.tenants WHERE id = $1) old WHERE tenant.id = $1
      RETURNING old.access_managed AS managed`,
    values: [tenantId],
  });
  const bundles = [...before.values()].filter((one) => isOf(one, PROFILE) || isOf(one, PERMISSION_SET));
  if (done.managed || bundles.some((bundle) => gives(bundle, 'manageAccess'))) return null;
  const files = bundles.filter(isAdministrators).map((bundle) => [bundle.path, withManageAccess(bundle)] as const);
  const project = await readProject(Object.fromEntries(files), null, { template: true });
  const plan = makePlan(before, project, { platform: true, allowDestructiveChanges: false, retained });
  if (plan.blocked.length > 0)
    throw new Error(`The plan is blocked: ${plan.blocked.map((one) => one.message).join(' ')}`);
  const applied = await applyPlan(tx, tenant, before, plan, { actor: platformActor(), deploymentId: null });
  return applied?.version ?? null;
}

const gives = ({ body }: PermissionsComponent, name: 'manageAccess' | 'manageUsers' | 'metadataManage'): boolean =>
  body.system?.includes(name) === true;

const isAdministrators = (bundle: PermissionsComponent): boolean =>
  gives(bundle, 'manageUsers') && gives(bundle, 'metadataManage');

const withManageAccess = ({ body }: PermissionsComponent): string =>
  emitYaml({ ...body, system: [...(body.system ?? []), 'manageAccess'] } satisfies Component['body']);
