/** A tenant that is made from the configuration of another one, for an import or a copy. Source: docs/reference/moving-tenants.md. */

import type { TenantInfo } from '../../lib/schema/snapshot.ts';
import type { Tx } from '../../mixins/database/database.ts';
import { ownerRole, serviceRole } from '../../mixins/database/roles.ts';
import { applyPrepared, inOrder } from './apply.ts';
import type { Component, State } from './kinds/component.ts';
import { makePlan } from './planner/plan.ts';
import { tooLarge } from './planner/sizes.ts';
import { prepare } from './prepare.ts';
import { type Project, readProject } from './project/project.ts';
import { insertTenant, tenantInfo } from './store.ts';
import { blockedError, companionsSql, platformActor, upgradeSchema } from './tenants.ts';

/** Stored properties of a component beside its file. */
export interface StoredComponent {
  readonly type: string;
  readonly fullName: string;
  readonly path: string;
  readonly system: boolean;
  readonly changedAtVersion: number;
  readonly updatedAt: string;
  readonly updatedById: string | null;
}

interface MovedTenant {
  readonly info: TenantInfo;
  /** Of the configuration; the tenant goes on from it. */
  readonly metadataVersion: number;
  /** YAML by path. */
  readonly files: Readonly<Record<string, string>>;
  readonly stored: readonly StoredComponent[];
}

/** Files that are read at a time have so many characters together, as far as they are not single ones. */
const CHUNK_CHARS = 256 * 1024;

/**
 * Makes the tenant with its schema, its roles and its whole configuration within the caller's transaction, which has taken
 * no role yet. Answers the configuration; null when another tenant has the key. Throws METADATA_INVALID with what stands
 * against it.
 */
export async function makeMovedTenant(
  tx: Tx,
  { info, metadataVersion, files, stored }: MovedTenant,
): Promise<State | null> {
  const project = await readAll(files);
  const tenant = await insertTenant(tx, info);
  if (tenant.id !== info.id) return null;
  await tx.query('SELECT metadata.create_tenant_schema($1)', [info.id]);
  await inOrder([tx.actAs(ownerRole(info.id)), tx.query(companionsSql(info.id))]);
  const before = new Map<string, Component>();
  const plan = makePlan(before, project, { platform: true, allowDestructiveChanges: false });
  if (plan.blocked.length > 0) throw blockedError(plan.blocked);
  const options = { actor: platformActor(), deploymentId: null };
  const prepared = prepare(
    tenantInfo({ ...tenant, metadataVersion: metadataVersion - 1 }),
    metadataVersion,
    before,
    plan,
    options,
  );
  if (prepared) {
    const beyond = tooLarge(prepared, plan.after);
    if (beyond.length > 0) throw blockedError(beyond);
    await applyPrepared(tx, info.id, prepared, options);
  }
  await upgradeSchema(tx, info.id, 1);
  tx.actAs(serviceRole('metadata', info.id));
  await tx.query(
    `UPDATE metadata.components c SET system = s.system, changed_at_version = s."changedAtVersion",
        updated_at = s."updatedAt", updated_by_id = s."updatedById"
      FROM json_to_recordset($2) AS s (type text, "fullName" text, system boolean, "changedAtVersion" integer,
        "updatedAt" timestamptz, "updatedById" uuid)
      WHERE c.tenant_id = $1 AND c.type = s.type AND c.full_name = s."fullName"`,
    [info.id, JSON.stringify(stored)],
  );
  return plan.after;
}

/** More files than a deployment may have: they were deployed bit by bit. */
async function readAll(files: Readonly<Record<string, string>>): Promise<Project> {
  const projects: Project[] = [];
  let chunk: Record<string, string> = {};
  let chars = 0;
  for (const [path, text] of Object.entries(files)) {
    if (chars > 0 && chars + text.length > CHUNK_CHARS) {
      projects.push(await readProject(chunk, null));
      [chunk, chars] = [{}, 0];
    }
    chunk[path] = text;
    chars += text.length;
  }
  projects.push(await readProject(chunk, null));
  return {
    files,
    package: { version: 1, types: projects.flatMap((project) => project.package.types) },
    drafts: new Map(projects.flatMap((project) => [...project.drafts])),
    unread: new Set(projects.flatMap((project) => [...project.unread])),
    problems: projects.flatMap((project) => project.problems),
    destructive: null,
    manifestHash: '',
  };
}
