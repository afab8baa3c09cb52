/**
 * Works off the open deployments of a tenant, one after the other: validate, then apply in one transaction that also
 * writes the outcome. A worker that dies leaves nothing behind but its lease. Source:
 * docs/reference/metadata.md#states.
 */

import { randomUUID } from 'node:crypto';
import type { DeploymentError } from '../../../contracts/metadata.ts';
import { ceilings, type RateDefaults } from '../../../contracts/ratelimit.ts';
import { tenantSchema } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { identifier } from '../../../lib/values/sql-text.ts';
import { type Database, isConnectionError, sqlState, type Tx } from '../../../mixins/database/database.ts';
import { ownerRole, serviceRole } from '../../../mixins/database/roles.ts';
import { applyPrepared } from '../apply.ts';
import { count } from '../data-checks.ts';
import type { Planning } from '../planning/planning.ts';
import type { Concluded, Door, Planned } from '../planning/tasks.ts';
import { requireTenant, storedRetained, storedState, type Tenant, tenantInfo } from '../store.ts';
import { DDL_LIMITS, inConfiguration, lockConfiguration } from '../tenants.ts';
import { type Claimed, claimDeployment, finishDeployment, markApplying, type Outcome, renewLease } from './lease.ts';

interface WorkerOptions {
  /** What tenants may have without the operator. */
  readonly rateLimits: RateDefaults;
  readonly planning: Planning;
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
    const tenant = await this.#database.shared('metadata', tenantId, (tx) => requireTenant(tx, tenantId));
    const planned = await this.#plan(tenant, deployment, {
      state: () => this.#database.shared('metadata', tenantId, (tx) => storedState(tx, tenantId)),
      retained: () => this.#database.shared('metadata', tenantId, (tx) => storedRetained(tx, tenantId)),
      rows: (statement) => this.#database.tenant(tenantId, (tx) => tx.all(statement)),
    });
    const numbers = await this.#database.tenant(tenantId, (tx) => numbersOf(tx, planned));
    const concluded = await this.#conclude(tenantId, planned, numbers);
    const refused = refusal(deployment, planned, concluded);
    if (refused) return this.#finish(tenantId, deployment, token, refused);

    if (!deployment.check_only) {
      const taken = await this.#database.shared('metadata', tenantId, (tx) =>
        markApplying(tx, tenantId, deployment.deployment_id, token, {
          plan: concluded.plan,
          planHash: planned.planHash,
          total: planned.changed,
          versionBefore: planned.version,
        }),
      );
      if (!taken) throw new LeaseLost();
    }
    await this.#apply(tenantId, deployment, token);
  }

  /**
   * The plan by what the deployer holds at this moment, in a planning thread; `door` reads the configuration when the
   * thread does not have it.
   */
  #plan(tenant: Tenant, deployment: Claimed, door: Door): Promise<Planned> {
    const { id: tenantId, metadataVersion: version } = tenant;
    return this.#options.planning.run(
      tenantId,
      'plan',
      {
        where: { tenantId, version },
        tenant: tenantInfo(tenant),
        schema: identifier(tenantSchema(tenantId)),
        source: { package: deployment.package, files: deployment.files },
        userId: deployment.created_by_user_id,
        ceilings: ceilings(this.#options.rateLimits, tenant.operatorLimits),
        apply: {
          deploymentId: deployment.deployment_id,
          allowDestructiveChanges: deployment.allow_destructive_changes,
          baseMetadataVersion: deployment.base_metadata_version,
        },
      },
      { door, first: true },
    );
  }

  #conclude(tenantId: string, { draft }: Planned, numbers: readonly number[]): Promise<Concluded> {
    return this.#options.planning.run(tenantId, 'conclude', { draft, numbers }, { first: true });
  }

  /** Plans again under the lock: what was valid a moment before may not be any more. */
  async #apply(tenantId: string, deployment: Claimed, token: string): Promise<void> {
    const once = (tx: Tx): Promise<number | null> => this.#inTransaction(tx, tenantId, deployment, token);
    try {
      const version = await inConfiguration(this.#database, tenantId, once);
      if (version !== null) this.#options.committed(tenantId, version);
    } catch (error) {
      if (!(error instanceof CheckedOnly)) throw error;
      await this.#finish(tenantId, deployment, token, error.outcome);
    }
  }

  /** The new version of the configuration; null when there is none. */
  async #inTransaction(tx: Tx, tenantId: string, deployment: Claimed, token: string): Promise<number | null> {
    const finish = async (outcome: Outcome): Promise<void> => {
      tx.actAs(serviceRole('metadata', tenantId));
      if (!(await finishDeployment(tx, tenantId, deployment.deployment_id, token, outcome))) throw new LeaseLost();
    };
    await tx.query(DDL_LIMITS);
    const tenant = await lockConfiguration(tx, tenantId);
    const planned = await this.#plan(tenant, deployment, {
      state: () => storedState(tx, tenantId),
      retained: () => storedRetained(tx, tenantId),
      rows: (statement) => {
        tx.actAs(ownerRole(tenantId));
        return tx.all(statement);
      },
    });
    tx.actAs(ownerRole(tenantId));
    const concluded = await this.#conclude(tenantId, planned, await numbersOf(tx, planned));
    const refused = refusal(deployment, planned, concluded);
    if (refused) {
      await finish(refused);
      return null;
    }
    const { prepared, inverse } = planned;
    if (prepared)
      await applyPrepared(tx, tenantId, prepared, {
        deploymentId: deployment.deployment_id,
        actor: {
          userId: deployment.created_by_user_id,
          clientId: deployment.created_by_client_id,
          agentRunId: deployment.created_by_agent_run_id,
          requestId: deployment.request_id,
        },
      });
    const outcome = succeeded(planned, concluded);
    if (deployment.check_only) throw new CheckedOnly(outcome);
    const version = prepared?.version ?? null;
    await finish({ ...outcome, inverse, versionAfter: version ?? planned.version });
    return version;
  }

  async #finish(tenantId: string, deployment: Claimed, token: string, outcome: Outcome): Promise<void> {
    await this.#database.shared('metadata', tenantId, (tx) =>
      finishDeployment(tx, tenantId, deployment.deployment_id, token, outcome),
    );
  }
}

const numbersOf = async (tx: Tx, { counting }: Planned): Promise<number[]> => (counting ? count(tx, counting) : []);

/** The outcome of a plan that was applied, or that could have been. */
const succeeded = ({ planHash, version, changed }: Planned, { plan }: Concluded): Outcome => ({
  status: 'SUCCEEDED',
  plan,
  planHash,
  inverse: null,
  versionBefore: version,
  versionAfter: null,
  done: changed,
  total: changed,
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
function refusal(deployment: Claimed, planned: Planned, { blocked, plan }: Concluded): Outcome | null {
  const withPlan = (code: DeploymentError['code'], message: string): Outcome => ({
    ...failure({ code, message }),
    plan,
    planHash: planned.planHash,
    versionBefore: planned.version,
    total: planned.changed,
  });
  const { since, count: drifted, first } = planned.drifted;
  if (drifted > 0)
    return withPlan(
      'METADATA_DRIFT',
      `Changed since version ${since}: ${first
        .slice(0, 5)
        .map((c) => `${c.type} ${c.fullName}`)
        .join(', ')}.`,
    );
  if (deployment.expected_plan_hash !== null && deployment.expected_plan_hash !== planned.planHash)
    return withPlan('PLAN_CHANGED', 'The plan is not the one that was reviewed.');
  if (blocked > 0)
    return withPlan(
      'PLAN_BLOCKED',
      `The plan has ${blocked === 1 ? '1 problem' : `${blocked} problems`}; see blocked.`,
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
