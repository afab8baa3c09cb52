/**
 * Applies a plan inside the transaction of the caller: DDL, components, snapshot, version, event, audit. All or nothing
 * is the caller's COMMIT. Source: docs/reference/metadata.md#apply.
 */

import { tenantSchema } from '../../lib/context.ts';
import type { Snapshot } from '../../lib/schema/snapshot.ts';
import { uuidv7 } from '../../lib/values/ids.ts';
import { identifier } from '../../lib/values/sql-text.ts';
import type { Tx } from '../../mixins/database/database.ts';
import { ownerRole } from '../../mixins/database/roles.ts';
import { compileSnapshot } from './compile.ts';
import { rollupsOf } from './kinds/compile-rollup.ts';
import type { State } from './kinds/component.ts';
import { tableOf } from './kinds/registry.ts';
import { ddl } from './physical/ddl.ts';
import { physicalModel } from './physical/model.ts';
import { rollupDdl, rollupModel } from './physical/rollups.ts';
import type { Plan } from './planner/plan.ts';
import { type Commit, type Tenant, tenantInfo, writeCommit } from './store.ts';

interface ApplyOptions {
  readonly actor: Commit['actor'];
  readonly deploymentId: string | null;
  /** Types whose components become the platform's own: read-only for the tenant. */
  readonly systemTypes?: ReadonlySet<string>;
}

const NONE: ReadonlySet<string> = new Set();

/** Objects whose tables a plan may touch. */
function touchedObjects(before: State, plan: Plan): Set<string> {
  const names = new Set(plan.changed.map(tableOf).filter((name) => name !== null));
  // The column of a rollup is of the type of the field that it is over.
  const rollups = [...rollupsOf(before), ...rollupsOf(plan.after)].map(({ body }) => ({
    parent: body.object,
    child: body.rollup.childObject,
  }));
  for (let size = -1; size !== names.size; ) {
    size = names.size;
    for (const { parent, child } of rollups) if (names.has(child)) names.add(parent);
  }
  return names;
}

/** DDL of a plan, as statements. */
function planStatements(tenantId: string, before: State, plan: Plan): string[] {
  const touched = touchedObjects(before, plan);
  const schema = identifier(tenantSchema(tenantId));
  const rollups = rollupDdl(rollupModel(before), rollupModel(plan.after), schema);
  if (touched.size === 0) return [...rollups.first, ...rollups.last];
  const tables = ddl(physicalModel(before, touched), physicalModel(plan.after, touched), schema, schema);
  return [...rollups.first, ...tables, ...rollups.last];
}

/** Returns the new version and snapshot, or null when the plan changes nothing. */
export async function applyPlan(
  tx: Tx,
  tenant: Tenant,
  before: State,
  plan: Plan,
  options: ApplyOptions,
): Promise<{ version: number; snapshot: Snapshot; bytes: Buffer } | null> {
  if (plan.changed.length === 0) return null;
  const version = tenant.metadataVersion + 1;
  const statements = planStatements(tenant.id, before, plan);
  // One message with all the DDL; PostgreSQL stops at the first statement that fails.
  const running: Promise<unknown>[] = [];
  if (statements.length > 0) running.push(tx.actAs(ownerRole(tenant.id)), tx.query(statements.join(';\n')));
  const snapshot = compileSnapshot(tenantInfo(tenant), version, plan.after);
  const bytes = Buffer.from(JSON.stringify(snapshot));
  running.push(
    ...writeCommit(tx, {
      tenantId: tenant.id,
      version,
      changed: plan.changed,
      systemTypes: options.systemTypes ?? NONE,
      tenant: snapshot.tenant,
      snapshot: bytes,
      actor: options.actor,
      auditId: uuidv7(),
      deploymentId: options.deploymentId,
      summary: {
        metadataVersion: version,
        deploymentId: options.deploymentId,
        creates: plan.creates.map(({ type, fullName }) => `${type}:${fullName}`),
        updates: plan.updates.map(({ type, fullName }) => `${type}:${fullName}`),
      },
    }),
  );
  await inOrder(running);
  return { version, snapshot, bytes };
}

/** Waits for pipelined statements; the first failure is the cause, those behind it only say that it happened. */
export async function inOrder(running: readonly Promise<unknown>[]): Promise<void> {
  for (const promise of running) promise.catch(() => {});
  for (const promise of running) await promise;
}
