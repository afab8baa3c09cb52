/**
 * Applies a plan inside the transaction of the caller: DDL, components, snapshot, version, event, audit. All or nothing
 * is the caller's COMMIT. Source: docs/reference/metadata.md#apply.
 */

import type { Tx } from '../../mixins/database/database.ts';
import { ownerRole } from '../../mixins/database/roles.ts';
import { readMade, usable } from './deployments/ahead.sql.ts';
import type { State } from './kinds/component.ts';
import type { Plan } from './planner/plan.ts';
import { type Prepared, type PrepareOptions, prepare } from './prepare.ts';
import { type Commit, type Tenant, tenantInfo, writeCommit } from './store.ts';

interface ApplyOptions extends PrepareOptions {
  readonly actor: Commit['actor'];
  /** Hears which share of the DDL is done. */
  readonly progress?: (share: number) => void;
}

/** Messages that the DDL of one deployment makes at most. */
const DDL_MESSAGES_MAX = 20;

const NOTHING_AHEAD: ReadonlySet<string> = new Set();

/** Applies what `prepare` gave. PostgreSQL stops at the first statement of the DDL that fails. */
export async function applyPrepared(
  tx: Tx,
  tenantId: string,
  { ddl, commit }: Prepared,
  { actor, deploymentId, progress }: Pick<ApplyOptions, 'actor' | 'deploymentId' | 'progress'>,
): Promise<void> {
  const running: Promise<unknown>[] = [];
  if (ddl.statements.length > 0) {
    running.push(tx.actAs(ownerRole(tenantId)));
    const made = ddl.ahead.length > 0 ? usable(await readMade(tx)) : NOTHING_AHEAD;
    const message = ddl.statements.map(({ sql, ahead }) => (ahead && made.has(ahead.name) ? ahead.sql : sql));
    const size = Math.ceil(message.length / DDL_MESSAGES_MAX);
    // They travel together all the same.
    for (let next = size; next - size < message.length; next += size) {
      const share = Math.min(1, next / message.length);
      running.push(tx.query(message.slice(next - size, next).join(';\n')).then(() => progress?.(share)));
    }
  }
  running.push(...writeCommit(tx, { ...commit, tenantId, actor, deploymentId }));
  await inOrder(running);
}

/** Returns the new version, or null when the plan changes nothing. */
export async function applyPlan(
  tx: Tx,
  tenant: Tenant,
  before: State,
  plan: Plan,
  options: ApplyOptions,
): Promise<{ version: number } | null> {
  const prepared = prepare(tenantInfo(tenant), tenant.metadataVersion + 1, before, plan, options);
  if (prepared) await applyPrepared(tx, tenant.id, prepared, options);
  return prepared && { version: prepared.version };
}

/** Waits for pipelined statements; the first failure is the cause, those behind it only say that it happened. */
export async function inOrder(running: readonly Promise<unknown>[]): Promise<void> {
  for (const promise of running) promise.catch(() => {});
  for (const promise of running) await promise;
}
