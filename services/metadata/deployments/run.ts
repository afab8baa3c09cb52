/**
 * Works off the open deployments of a tenant, one after the other: validate, then apply in one transaction that also
 * writes the outcome. A worker that dies leaves nothing behind but its lease. Source: docs/reference/metadata.md#states.
 */

import { randomUUID } from 'node:crypto';
import type { DeploymentError } from '../../../contracts/metadata.ts';
import type { RateDefaults } from '../../../contracts/ratelimit.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { type Database, isConnectionError, sqlState, type Tx } from '../../../mixins/database/database.ts';
import { ownerRole, serviceRole } from '../../../mixins/database/roles.ts';
import { applyPlan } from '../apply.ts';
import type { State } from '../kinds/component.ts';
import type { Problem } from '../kinds/kind.ts';
import { drift, type Plan, planHash } from '../planner/plan.ts';
import { type Planned, planFor } from '../planning.ts';
import { type Project, readProject } from '../project/project.ts';
import { loadState, requireTenant, type Tenant } from '../store.ts';
import { DDL_LIMITS, inConfiguration, lockTenant } from '../tenants.ts';
import {
  type Claimed,
  claimDeployment,
  finishDeployment,
  markApplying,
  type Outcome,
  renewLease,
  storedPlan,
} from './lease.ts';

interface WorkerOptions {
  /** What tenants may have without the operator. */
  readonly rateLimits: RateDefaults;
  readonly leaseSeconds: number;
  /** Called after a commit that made a new version. */
  readonly committed: (tenantId: string, metadataVersion: number) => void;
  /** Asks for another look at a tenant later. */
  readonly later: (tenantId: string, at: Date) => Promise<void>;
  readonly failed: (error: unknown, deploymentId: string) => void;
}

/** A deployment whose worker was lost so many times is not tried again. */
const ATTEMPTS_MAX = 3;

/** The lease went to another worker; what this one did is rolled back. */
class LeaseLost extends Error {}
/** A validation has ended: its transaction is rolled back. */
class CheckedOnly extends Error {
  readonly outcome: Outcome;

  constructor(outcome: Outcome) {
    super('The validation has ended.');
    this.outcome = outcome;
  }
}

export class DeploymentWorker {
  readonly #database: Database;
  readonly #options: WorkerOptions;
  #stopping = false;

  constructor(database: Database, options: WorkerOptions) {
    this.#database = database;
    this.#options = options;
  }

  stop(): void {
    this.#stopping = true;
  }

  /** Every open deployment of the tenant that nobody else has. Throws when it should be called again. */
  async run(tenantId: string): Promise<void> {
    for (;;) {
      if (this.#stopping) throw new Error('The worker is stopping.');
      const token = randomUUID();
      const { claimed, busyUntil } = await this.#database.shared('metadata', tenantId, (tx) =>
        claimDeployment(tx, tenantId, token, this.#options.leaseSeconds),
      );
      if (!claimed) {
        if (busyUntil) await this.#options.later(tenantId, new Date(busyUntil.getTime() + 1_000));
        return;
      }
      await this.#runUnderLease(tenantId, claimed, token);
    }
  }

  async #runUnderLease(tenantId: string, deployment: Claimed, token: string): Promise<void> {
    const renewal = setInterval(
      () => {
        this.#database
          .shared('metadata', tenantId, (tx) =>
            renewLease(tx, tenantId, deployment.deployment_id, token, this.#options.leaseSeconds),
          )
          .catch(() => {});
      },
      (this.#options.leaseSeconds * 1_000) / 3,
    );
    try {
      await this.#validateAndApply(tenantId, deployment, token);
    } catch (error) {
      // Without the database, or without the lease, the outcome is not ours to write.
      if (error instanceof LeaseLost) return;
      if (isConnectionError(error)) throw error;
      this.#options.failed(error, deployment.deployment_id);
      await this.#finish(tenantId, deployment, token, failure(applyError(error)));
    } finally {
      clearInterval(renewal);
    }
  }

  async #validateAndApply(tenantId: string, deployment: Claimed, token: string): Promise<void> {
    if (deployment.takes > ATTEMPTS_MAX) {
      const message = `Its worker was lost ${ATTEMPTS_MAX} times.`;
      return this.#finish(tenantId, deployment, token, failure({ code: 'WORKER_LOST', message }));
    }
    const project = await readProject(deployment.files, deployment.package);
    const { tenant, before } = await this.#database.shared('metadata', tenantId, async (tx) => ({
      tenant: await requireTenant(tx, tenantId),
      before: await loadState(tx, tenantId),
    }));
    const plan = await this.#database.tenant(tenantId, (tx) => this.#plan(tx, deployment, { tenant, before, project }));
    const refused = refusal(deployment, project, plan, before, tenant);
    if (refused) return this.#finish(tenantId, deployment, token, refused);

    if (!deployment.check_only) {
      const taken = await this.#database.shared('metadata', tenantId, (tx) =>
        markApplying(tx, tenantId, deployment.deployment_id, token, {
          plan: storedPlan(plan),
          planHash: planHash(plan, before),
          total: plan.changed.length,
          versionBefore: tenant.metadataVersion,
        }),
      );
      if (!taken) throw new LeaseLost();
    }
    await this.#apply(tenantId, deployment, token, project);
  }

  /** The plan by what the deployer holds at this moment. */
  async #plan(tx: Tx, deployment: Claimed, planned: Pick<Planned, 'tenant' | 'before' | 'project'>): Promise<Plan> {
    const { plan, acting } = await planFor(tx, {
      ...planned,
      userId: deployment.created_by_user_id,
      allowDestructiveChanges: deployment.allow_destructive_changes,
      rateLimits: this.#options.rateLimits,
    });
    if (acting.actor.system.has('metadataManage')) return plan;
    return { ...plan, blocked: [...plan.blocked, NO_LONGER_MANAGING] };
  }

  /** Plans again under the lock: what was valid a moment before may not be any more. */
  async #apply(tenantId: string, deployment: Claimed, token: string, project: Project): Promise<void> {
    const once = (tx: Tx): Promise<number | null> => this.#inTransaction(tx, tenantId, deployment, token, project);
    try {
      const version = await inConfiguration(this.#database, tenantId, once);
      if (version !== null) this.#options.committed(tenantId, version);
    } catch (error) {
      if (!(error instanceof CheckedOnly)) throw error;
      await this.#finish(tenantId, deployment, token, error.outcome);
    }
  }

  /** The new version of the configuration; null when there is none. */
  async #inTransaction(
    tx: Tx,
    tenantId: string,
    deployment: Claimed,
    token: string,
    project: Project,
  ): Promise<number | null> {
    const finish = async (outcome: Outcome): Promise<void> => {
      tx.actAs(serviceRole('metadata', tenantId));
      if (!(await finishDeployment(tx, tenantId, deployment.deployment_id, token, outcome))) throw new LeaseLost();
    };
    await tx.query(DDL_LIMITS);
    const { tenant, before } = await lockTenant(tx, tenantId);
    tx.actAs(ownerRole(tenantId));
    const plan = await this.#plan(tx, deployment, { tenant, before, project });
    const refused = refusal(deployment, project, plan, before, tenant);
    if (refused) {
      await finish(refused);
      return null;
    }
    const applied = await applyPlan(tx, tenant, before, plan, {
      deploymentId: deployment.deployment_id,
      actor: {
        userId: deployment.created_by_user_id,
        clientId: deployment.created_by_client_id,
        agentRunId: deployment.created_by_agent_run_id,
        requestId: deployment.request_id,
      },
    });
    const outcome = succeeded(plan, before, tenant.metadataVersion);
    if (deployment.check_only) throw new CheckedOnly(outcome);
    const version = applied?.version ?? null;
    await finish({ ...outcome, inverse: plan.inverse, versionAfter: version ?? tenant.metadataVersion });
    return version;
  }

  async #finish(tenantId: string, deployment: Claimed, token: string, outcome: Outcome): Promise<void> {
    await this.#database.shared('metadata', tenantId, (tx) =>
      finishDeployment(tx, tenantId, deployment.deployment_id, token, outcome),
    );
  }
}

const NO_LONGER_MANAGING: Problem = {
  code: 'COMPONENT_PERMISSION_DENIED',
  type: 'Package',
  fullName: '*',
  path: null,
  line: null,
  column: null,
  message: 'The user who asked for the deployment may not manage configuration any more.',
  remedy: 'Let somebody deploy who holds metadataManage.',
};

/** The outcome of a plan that was applied, or that could have been. */
const succeeded = (plan: Plan, before: State, version: number): Outcome => ({
  status: 'SUCCEEDED',
  plan: storedPlan(plan),
  planHash: planHash(plan, before),
  inverse: null,
  versionBefore: version,
  versionAfter: null,
  done: plan.changed.length,
  total: plan.changed.length,
  error: null,
});

const failure = (error: DeploymentError): Outcome => ({
  status: 'FAILED',
  plan: null,
  planHash: null,
  inverse: null,
  versionBefore: null,
  versionAfter: null,
  done: 0,
  total: 0,
  error,
});

/** Why a valid-looking deployment must not go on; null when it may. */
function refusal(deployment: Claimed, project: Project, plan: Plan, before: State, tenant: Tenant): Outcome | null {
  const hash = planHash(plan, before);
  const withPlan = (code: DeploymentError['code'], message: string): Outcome => ({
    ...failure({ code, message }),
    plan: storedPlan(plan),
    planHash: hash,
    versionBefore: tenant.metadataVersion,
    total: plan.changed.length,
  });
  const base = deployment.base_metadata_version;
  if (base !== null) {
    const changed = drift(before, project, base);
    if (changed.length > 0)
      return withPlan(
        'METADATA_DRIFT',
        `Changed since version ${base}: ${changed
          .slice(0, 5)
          .map((c) => `${c.type} ${c.fullName}`)
          .join(', ')}.`,
      );
  }
  if (deployment.expected_plan_hash !== null && deployment.expected_plan_hash !== hash)
    return withPlan('PLAN_CHANGED', 'The plan is not the one that was reviewed.');
  if (plan.blocked.length > 0)
    return withPlan(
      'PLAN_BLOCKED',
      `The plan has ${plan.blocked.length === 1 ? '1 problem' : `${plan.blocked.length} problems`}; see blocked.`,
    );
  return null;
}

/** What may be said about a failure: never the database's own words, which can hold values of records. */
function applyError(error: unknown): DeploymentError {
  if (error instanceof PlatformError) return { code: 'APPLY_FAILED', message: error.message };
  const state = sqlState(error);
  if (state === '55P03' || state === '40P01')
    return { code: 'APPLY_FAILED', message: 'Other work kept the tables locked; nothing was applied. Deploy again.' };
  return {
    code: 'APPLY_FAILED',
    message: `Nothing was applied${state ? `; the database refused the change (SQLSTATE ${state})` : ''}.`,
  };
}
