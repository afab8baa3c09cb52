/** The tenant of the files of a folder, and whether the command works in it. */
import type { Run } from '../command.ts';
import { EXIT, Failure } from '../failure.ts';
import type { Project } from './folder.ts';

export interface Tenant {
  readonly id: string;
  readonly name: string;
}

/** The option of a command that allows a folder of another tenant. */
export const OTHER_TENANT = ['--other-tenant', 'the folder is of another tenant, and that is meant'] as const;

/** The files come from the tenant, as far as they say. */
export const isFrom = ({ origin }: Pick<Project, 'origin'>, tenantId: string): boolean =>
  origin !== null && (origin.tenantId === null || origin.tenantId === tenantId);

/** Refuses a folder whose files say that they are of another tenant. */
export async function refuseOtherTenant(
  run: Run,
  project: Pick<Project, 'origin'> | null,
  { tenant, what }: { tenant: Tenant; what: string },
): Promise<void> {
  if (!project?.origin || isFrom(project, tenant.id)) return;
  const { tenantId, baseUrl } = project.origin;
  const { profiles } = await run.store.config();
  const name = Object.values(profiles).find((profile) => profile.tenant.id === tenantId)?.tenant.name;
  const whose = name ?? (baseUrl === null ? tenantId : `${tenantId} at ${baseUrl}`);
  throw new Failure(
    'CLIENT_OTHER_TENANT',
    EXIT.conflict,
    `The folder is of ${whose}; you are signed in to ${tenant.name}. Nothing was changed.`,
    { hint: `Choose the profile of the folder (--profile), or ${what}: ${OTHER_TENANT[0]}` },
  );
}
