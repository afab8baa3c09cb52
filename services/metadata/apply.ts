/**
 * Applies a plan inside the transaction of the caller: DDL, components, snapshot, version, event, audit. All or nothing
 * is the caller's COMMIT. Source: docs/reference/metadata.md#apply.
 */
import { tenantSchema } from '../../lib/context.ts';
import { uuidv7 } from '../../lib/ids.ts';
import type { Snapshot } from '../../lib/snapshot/types.ts';
import type { Tx } from '../../mixins/database/database.ts';
import { compileSnapshot } from './compile.ts';
import type { State } from './kinds/kind.ts';
import { ddl } from './physical/ddl.ts';
import { physicalModel, quote } from './physical/model.ts';
import type { Plan } from './planner/plan.ts';
import { type Commit, type Tenant, tenantInfo, writeCommit } from './store.ts';

export interface ApplyOptions {
  readonly actor: Commit['actor'];
  readonly deploymentId: string | null;
  /** Types whose components become the platform's own: read-only for the tenant. */
  readonly systemTypes?: ReadonlySet<string>;
}

const NONE: ReadonlySet<string> = new Set();

/** Objects whose tables a plan may touch. */
function touchedObjects(plan: Plan): Set<string> {
  const names = new Set<string>();
  for (const component of plan.changed) {
    if (component.type === 'CustomObject') names.add(component.fullName);
    if (component.type === 'CustomField') names.add(String(component.body['object']));
  }
  return names;
}

/** DDL of a plan, as statements. */
export function planStatements(tenantId: string, before: State, plan: Plan): string[] {
  const touched = touchedObjects(plan);
  if (touched.size === 0) return [];
  const schema = tenantSchema(tenantId);
  return ddl(physicalModel(before, touched), physicalModel(plan.after, touched), quote(schema), quote(schema));
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
  if (statements.length > 0) running.push(tx.query(statements.join(';\n')));
  const snapshot = compileSnapshot(tenantInfo(tenant), version, plan.after);
  const bytes = Buffer.from(JSON.stringify(snapshot));
  running.push(
    ...writeCommit(tx, {
      tenantId: tenant.id,
      schema: quote(tenantSchema(tenant.id)),
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
