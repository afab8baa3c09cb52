/**
 * Works off the open deployments of tenants, one of a tenant at a time: validate, then apply in one transaction that also
 * writes the outcome. A worker that dies leaves nothing behind but its lease. Source:
 * docs/reference/metadata.md#states.
 */

import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { DeploymentError, DeploymentStatus } from '../../../contracts/metadata.ts';
import { ceilings, type RateDefaults } from '../../../contracts/ratelimit.ts';
import { tenantSchema } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { Notice } from '../../../lib/notice.ts';
import { identifier } from '../../../lib/values/sql-text.ts';
import { type Database, isConnectionError, sqlState, type Tx } from '../../../mixins/database/database.ts';
import { failureOf } from '../../../mixins/database/failures.ts';
import { ownerRole, serviceRole, tenantRole } from '../../../mixins/database/roles.ts';
import { type Caller, platformCaller } from '../../../mixins/mutation/audit.ts';
import { traceWork } from '../../../mixins/tracing/traced-work.ts';
import { applyPrepared } from '../apply.ts';
import { type Counting, count } from '../data-checks.ts';
import { type EventActor, eventStatement } from '../event.sql.ts';
import type { Planning } from '../planning/planning.ts';
import type { Concluded, Door, Planned } from '../planning/tasks.ts';
import { requireTenant, storedRetained, storedState, type Tenant, tenantInfo } from '../store.ts';
import { DDL_LIMITS, inConfiguration, lockConfiguration, requireCurrentSchema } from '../tenants.ts';
import { clearAhead, dropAhead, holdTables, workAhead } from './ahead.ts';
import { deploymentEvent, type ToldStatus } from './event.ts';
import { forgetStatement, forgetVersionsStatement } from './forget.sql.ts';
import {
  type Claimed,
  claimDeployment,
  endTransactionStatement,
  finishCanceling,
  finishDeployment,
  giveBack,
  markApplying,
  nameTransaction,
  type Outcome,
  watchLease,
} from './lease.ts';
import { type EndRow, endStatement } from './queue.sql.ts';
import { revertStatement } from './standing.sql.ts';
import { rollbackBlockers } from './standing.ts';
import { standingOf } from './store.ts';
import type { Phase, Telemetry } from './telemetry.ts';
import { tryOut } from './try-out.ts';
import { unchangedStatement } from './unchanged.sql.ts';
import { Watch, Withdrawn } from './watch.ts';

interface WorkerOptions {
  /** Tenants' limits unless the operator changes them. */
  readonly rateLimits: RateDefaults;
  readonly planning: Planning;
  readonly leaseSeconds: number;
  /** Connections for leases alone, so that keeping one waits for no other work; those of the work when absent. */
  readonly leases?: Database;
  /** Called after a commit that made a new version. */
  readonly committed: (tenantId: string, metadataVersion: number) => void;
  readonly failed: (error: unknown, deploymentId: string) => void;
  /** Called after commits that left events. */
  readonly told?: (tenantId: string) => void;
  /** Asks for a notification with the transaction, which acts as the tenant's role. */
  readonly notify?: (tx: Tx, caller: Caller & { tenantId: string }, notice: Notice) => Promise<void>;
  readonly telemetry?: Telemetry;
  /** See `Door.domains`. */
  readonly domains?: (tenantId: string) => Promise<readonly string[] | null>;
}

/** A deployment whose worker was lost so many times is not tried again. */
const ATTEMPTS_MAX = 3;
const GIVE_BACK_ATTEMPTS = 3;
/** Plans that are made while writers go on. The one after them is made under the lock, which nothing can outdate. */
const ROUNDS_MAX = 3;

/** A deployment that this worker has. */
interface Work {
  readonly tenantId: string;
  readonly deployment: Claimed;
  readonly token: string;
  readonly watch: Watch;
}

/** Dependencies of the plan changed before the lock was acquired. */
class Outdated extends Error {}
/** A plan, and what it depends on. */
interface Ready {
  readonly tenant: Tenant;
  readonly accessVersion: number;
  readonly planned: Planned;
  /** Its counts. */
  readonly numbers: readonly number[];
  readonly concluded: Concluded;
}

export class DeploymentWorker {
  readonly #database: Database;
  readonly #options: WorkerOptions;
  readonly #watches = new Set<Watch>();
  #stopping = false;

  constructor(database: Database, options: WorkerOptions) {
    this.#database = database;
    this.#options = options;
  }

  /** Stops, rolls back and releases the current deployment within about a second; `run` throws then. */
  stop(): void {
    this.#stopping = true;
    for (const watch of this.#watches) watch.end();
  }

  /**
   * The first open deployment of the tenant. False when another worker holds it, or only those of a
   * newer version may take it. Throws when the deployment has not ended and should be taken again.
   */
  async run(tenantId: string): Promise<boolean> {
    if (this.#stopping) throw new Error('The worker is stopping.');
    const token = randomUUID();
    const claimed = await this.#database.shared('metadata', tenantId, async (tx) => {
      const deployment = await claimDeployment(tx, tenantId, token, this.#options.leaseSeconds);
      if (deployment?.status === 'VALIDATING') await tell(tx, { tenantId, deployment }, 'VALIDATING');
      return deployment;
    });
    if (!claimed) return false;
    this.#options.told?.(tenantId);
    const { deployment_id: deploymentId, kind, takes } = claimed;
    const taken = { tenantId, deploymentId, kind, takes };
    // The log names the request that it was accepted with.
    const work = { label: 'metadata.deployments', requestId: claimed.request_id };
    const attributes = {
      'erp.tenant_id': tenantId,
      'erp.deployment_id': deploymentId,
      'erp.request_id': claimed.request_id,
    };
    const runTaken = async (): Promise<void> => {
      this.#options.telemetry?.taken(taken);
      await this.#runUnderLease(tenantId, claimed, token);
      this.#options.told?.(tenantId);
      await this.#database.shared('metadata', tenantId, async (tx) => {
        const end = await tx.first<EndRow>(endStatement(tenantId, deploymentId));
        if (end) this.#options.telemetry?.ended({ ...taken, ...end });
        // Bounds the room that the ended deployments of the tenant take.
        await tx.query(forgetStatement(tenantId));
        await tx.query(forgetVersionsStatement(tenantId));
      });
    };
    await traceWork(work, runTaken, attributes);
    return true;
  }

  async #runUnderLease(tenantId: string, deployment: Claimed, token: string): Promise<void> {
    const { deployment_id: deploymentId } = deployment;
    const { leaseSeconds } = this.#options;
    const watch = new Watch(this.#options.leases ?? this.#database, { tenantId, deploymentId, token, leaseSeconds });
    this.#watches.add(watch);
    if (this.#stopping) watch.end();
    try {
      if (deployment.takes > 1) await this.#database.query(endTransactionStatement(deploymentId));
      await this.#validateAndApply({ tenantId, deployment, token, watch });
    } catch (error) {
      // Without a database that takes changes the outcome is not ours to write, and a process that stops has not tried
      // everything.
      const isAway = isConnectionError(error) || failureOf(error)?.kind === 'readOnly';
      if (isAway || this.#stopping) {
        await this.#giveBack(tenantId, deploymentId, token);
        throw error;
      }
      if (!(error instanceof Withdrawn)) this.#options.failed(error, deploymentId);
      await this.#finish({ tenantId, deployment, token }, failure(applyError(error)));
    } finally {
      this.#watches.delete(watch);
      await watch.stop();
    }
  }

  #during<T>(phase: Phase, work: () => Promise<T>): Promise<T> {
    const { telemetry } = this.#options;
    return telemetry ? telemetry.during(phase, work) : work();
  }

  async #validateAndApply(work: Work): Promise<void> {
    const { deployment } = work;
    if (deployment.status === 'CANCELING') return this.#finish(work, WITHDRAWN);
    if (deployment.takes > ATTEMPTS_MAX) {
      const message = `Its worker was lost ${ATTEMPTS_MAX} times.`;
      return this.#finish(work, failure({ code: 'WORKER_LOST', message }));
    }
    for (let round = 1; ; round++) if (await this.#attempt(work, round === ROUNDS_MAX)) return;
  }

  /** True when the deployment has ended; false: it must be planned again, because the plan's dependencies have changed. */
  async #attempt(work: Work, isLast: boolean): Promise<boolean> {
    const { deployment, watch } = work;
    const ready = await this.#during('plan', () => this.#prepare(work));
    const refused = refusal(deployment, ready.planned, ready.concluded);
    if (refused) {
      await this.#finish(work, refused);
      return true;
    }
    try {
      if (deployment.check_only) {
        await this.#check(work, ready);
        return true;
      }
      await this.#markApplying(work, ready);
      watch.progress(0, ready.planned.changed);
      await this.#during('ahead', () => this.#workAhead(work, ready));
      await this.#during('apply', () => this.#apply(work, { ...ready, isLast }));
      return true;
    } catch (error) {
      if (error instanceof Outdated) return false;
      throw error;
    }
  }

  /** The plan, with what the records say to it, while writers go on. */
  async #prepare(work: Work): Promise<Ready> {
    const { tenantId, watch } = work;
    // Before anything that the plan depends on is read.
    const accessVersion = await this.#database.tenant(tenantId, readAccessVersion);
    const tenant = await this.#database.shared('metadata', tenantId, (tx) => requireTenant(tx, tenantId));
    const planned = await this.#plan(tenant, work, {
      state: () => this.#database.shared('metadata', tenantId, (tx) => storedState(tx, tenantId)),
      retained: () => this.#database.shared('metadata', tenantId, (tx) => storedRetained(tx, tenantId)),
      rows: (statement) => this.#database.tenant(tenantId, (tx) => tx.all(statement)),
      unchangedSince: (version, components) =>
        this.#database.shared('metadata', tenantId, (tx) => tx.all(unchangedStatement(tenantId, version, components))),
      domains: async () => (await this.#options.domains?.(tenantId)) ?? null,
    });
    const numbers = await this.#database.tenant(tenantId, (tx) =>
      watch.over(tx, () => numbersOf(tx, planned.counting)),
    );
    return { tenant, accessVersion, planned, numbers, concluded: await this.#conclude(work, planned, numbers) };
  }

  /** The end of a validation whose plan stands: the records have been asked, next to writers; the DDL is tried out. */
  async #check(work: Work, { tenant, planned, concluded }: Ready): Promise<void> {
    const { tenantId, watch } = work;
    const refused = await this.#database.shared('metadata', tenantId, (tx) => this.#rollbackRefusal(tx, work));
    if (!refused && planned.prepared)
      await tryOut(this.#database, tenant, planned.prepared.ddl, {
        deploymentId: work.deployment.deployment_id,
        over: (tx, trying) => watch.over(tx, trying),
        signal: watch.signal,
      });
    await this.#finish(work, refused ?? succeeded(planned, concluded));
  }

  async #workAhead({ tenantId, watch }: Work, { planned: { prepared } }: Ready): Promise<void> {
    const over = (tx: Tx, making: () => Promise<void>): Promise<void> => watch.over(tx, making);
    await workAhead(this.#database, tenantId, prepared?.ddl.ahead ?? [], { over });
  }

  async #markApplying({ tenantId, deployment, token }: Work, { planned, concluded }: Ready): Promise<void> {
    await this.#database.shared('metadata', tenantId, async (tx) => {
      const taken = await markApplying(tx, tenantId, deployment.deployment_id, token, {
        plan: concluded.plan,
        planHash: planned.planHash,
        total: planned.changed,
        versionBefore: planned.version,
      });
      if (!taken) throw new Withdrawn();
      await tell(tx, { tenantId, deployment }, 'APPLYING');
    });
    this.#options.told?.(tenantId);
  }

  /**
   * The plan by what the deployer holds at this moment, in a planning thread; `door` reads the configuration when the
   * thread does not have it.
   */
  #plan(tenant: Tenant, { deployment, watch }: Work, door: Door): Promise<Planned> {
    const { id: tenantId, metadataVersion: version } = tenant;
    const { signal } = watch;
    return this.#options.planning.run(
      tenantId,
      'plan',
      {
        where: { tenantId, version },
        tenant: tenantInfo(tenant),
        schema: identifier(tenantSchema(tenantId)),
        source: {
          package: deployment.package,
          files: deployment.files,
          allowDestructiveChanges: deployment.allow_destructive_changes,
          baseMetadataVersion: deployment.base_metadata_version,
          restores: deployment.kind === 'rollback',
        },
        userId: deployment.created_by_user_id,
        ceilings: ceilings(this.#options.rateLimits, tenant.operatorLimits),
        apply: { deploymentId: deployment.deployment_id },
      },
      { door, first: true, signal, progress: (done, total) => watch.progress(done, total) },
    );
  }

  #conclude({ tenantId, watch: { signal } }: Work, { draft }: Planned, numbers: readonly number[]): Promise<Concluded> {
    return this.#options.planning.run(tenantId, 'conclude', { draft, numbers }, { first: true, signal });
  }

  /** Throws `Outdated` when it has to be planned again before. */
  async #apply(work: Work, ready: Ready & { isLast: boolean }): Promise<void> {
    const { tenantId, watch } = work;
    const once = (tx: Tx): Promise<number | null> =>
      watch.over(tx, async () => {
        // Named before it holds anything: the worker that takes over ends it by this name.
        await tx.query(`${DDL_LIMITS}; ${nameTransaction(work.deployment.deployment_id)}`);
        await requireCurrentSchema(tx, tenantId);
        await holdTables(tx, tenantId, ready.planned.prepared?.ddl.altered ?? []);
        return this.#inTransaction(tx, work, ready);
      });
    const version = await inConfiguration(this.#database, tenantId, once, watch.signal);
    if (version !== null) this.#options.committed(tenantId, version);
  }

  /** The new version of the configuration; null when there is none. Every writer of the tenant waits from the lock on. */
  async #inTransaction(tx: Tx, work: Work, ready: Ready & { isLast: boolean }): Promise<number | null> {
    const { tenantId, deployment, token } = work;
    const finish = async (outcome: Outcome): Promise<void> => {
      tx.actAs(serviceRole('metadata', tenantId));
      if (!(await finishDeployment(tx, tenantId, deployment.deployment_id, token, outcome))) throw new Withdrawn();
      await this.#tellEnd(tx, work, outcome);
    };
    await tx.query(DDL_LIMITS);
    const { planned, concluded } = await this.#underLock(tx, work, ready);
    const refused = (await this.#rollbackRefusal(tx, work)) ?? refusal(deployment, planned, concluded);
    if (refused) {
      tx.actAs(ownerRole(tenantId));
      await dropAhead(tx);
      await finish(refused);
      return null;
    }
    const { prepared, inverse, irreversible } = planned;
    if (prepared)
      await applyPrepared(tx, tenantId, prepared, {
        deploymentId: deployment.deployment_id,
        progress: (share) => work.watch.progress(Math.floor(share * planned.changed), planned.changed),
        actor: actorOf(deployment),
      });
    const version = prepared?.version ?? null;
    if (prepared && deployment.kind === 'rollback') {
      tx.actAs(serviceRole('metadata', tenantId));
      await tx.query(revertStatement(tenantId, deployment.deployment_id));
    }
    await finish({ ...succeeded(planned, concluded), inverse, irreversible, versionAfter: version ?? planned.version });
    return version;
  }

  /**
   * The plan that holds under the lock: the one that was made before when nothing that it depends on has changed, with
   * what the records say now.
   */
  async #underLock(
    tx: Tx,
    work: Work,
    { isLast, ...ready }: Ready & { isLast: boolean },
  ): Promise<Pick<Ready, 'planned' | 'concluded'>> {
    const { tenantId } = work;
    const tenant = await lockConfiguration(tx, tenantId);
    tx.actAs(ownerRole(tenantId));
    const accessVersion = await readAccessVersion(tx);
    const isCurrent = accessVersion === ready.accessVersion && isDeepStrictEqual(tenant, ready.tenant);
    if (!isCurrent && !isLast) throw new Outdated();
    if (!isCurrent) {
      // A planning thread takes up to 25 s, and may have to be waited for.
      await tx.query("SET LOCAL idle_in_transaction_session_timeout = '60s'");
      const planned = await this.#plan(tenant, work, {
        state: () => {
          tx.actAs(serviceRole('metadata', tenantId));
          return storedState(tx, tenantId);
        },
        retained: () => {
          tx.actAs(serviceRole('metadata', tenantId));
          return storedRetained(tx, tenantId);
        },
        rows: (statement) => {
          tx.actAs(ownerRole(tenantId));
          return tx.all(statement);
        },
        unchangedSince: (version, components) => {
          tx.actAs(serviceRole('metadata', tenantId));
          return tx.all(unchangedStatement(tenantId, version, components));
        },
      });
      tx.actAs(ownerRole(tenantId));
      return { planned, concluded: await this.#conclude(work, planned, await numbersOf(tx, planned.counting)) };
    }
    const { planned, numbers, concluded } = ready;
    const decisive = await numbersOf(tx, planned.deciding);
    if (decisive.every((number, i) => number === numbers[i])) return { planned, concluded };
    const now = [...decisive, ...numbers.slice(decisive.length)];
    return { planned, concluded: await this.#conclude(work, planned, now) };
  }

  /** The components of a rollback may have changed since it was accepted. */
  async #rollbackRefusal(tx: Tx, { tenantId, deployment }: Work): Promise<Outcome | null> {
    const { reverts_deployment_id: reverts } = deployment;
    if (reverts === null) return null;
    tx.actAs(serviceRole('metadata', tenantId));
    const [blocker] = rollbackBlockers(reverts, await standingOf(tx, tenantId, reverts));
    if (!blocker) return null;
    const message = `It cannot be rolled back: ${blocker.type} ${blocker.fullName} (${blocker.reason}).`;
    return failure({ code: 'ROLLBACK_NOT_ELIGIBLE', message });
  }

  /**
   * The event of the end, and a notification for who has started the deployment. A validation changes nothing: its end is
   * waited for.
   */
  async #tellEnd(tx: Tx, work: Pick<Work, 'tenantId' | 'deployment'>, { status }: Outcome): Promise<void> {
    const { tenantId, deployment } = work;
    const { deployment_id: deploymentId, created_by_user_id: userId, kind } = deployment;
    await tell(tx, work, status);
    if (kind === 'validation' || !this.#options.notify) return;
    const caller = { tenantId, ...platformCaller('job', deployment.request_id, userId) };
    await this.#options.notify(tx, caller, {
      type: status === 'FAILED' ? 'deploymentFailed' : 'deploymentFinished',
      severity: status === 'FAILED' ? 'warning' : 'info',
      recipientIds: [userId],
      data: {},
      action: { kind: 'deployment', id: deploymentId },
      dedupeKey: deploymentId,
    });
  }

  /** The end of a deployment that nothing was committed of: this outcome, or CANCELED when that was requested. */
  async #finish({ tenantId, deployment, token }: Omit<Work, 'watch'>, outcome: Outcome): Promise<void> {
    const { deployment_id: deploymentId } = deployment;
    await this.#clearAhead({ tenantId, deployment, token });
    await this.#database.shared('metadata', tenantId, async (tx) => {
      if (await finishDeployment(tx, tenantId, deploymentId, token, outcome))
        return this.#tellEnd(tx, { tenantId, deployment }, outcome);
      const canceled = await finishCanceling(tx, tenantId, deploymentId, token);
      if (canceled)
        await tell(tx, { tenantId, deployment }, 'CANCELED', {
          userId: canceled.canceledById,
          clientId: null,
          agentRunId: null,
          requestId: deployment.request_id,
        });
    });
  }

  /**
   * Drops what was made ahead, here or by a worker that was lost: an invisible unique index would go on refusing
   * values. Before the deployment ends, so that nothing stays when this worker is lost as well.
   */
  async #clearAhead({ tenantId, deployment, token }: Omit<Work, 'watch'>): Promise<void> {
    const { deployment_id: deploymentId } = deployment;
    const read = (tx: Tx): Promise<DeploymentStatus | null> => watchLease(tx, tenantId, deploymentId, token);
    if ((await this.#database.shared('metadata', tenantId, read)) === null) return;
    await clearAhead(this.#database, tenantId).catch((error) => this.#options.failed(error, deploymentId));
  }

  /** Lets the next worker begin without waiting for the end of the lease. */
  async #giveBack(tenantId: string, deploymentId: string, token: string): Promise<void> {
    for (let attempt = 1; attempt <= GIVE_BACK_ATTEMPTS; attempt++)
      try {
        return await this.#database.shared('metadata', tenantId, (tx) =>
          giveBack(tx, tenantId, deploymentId, token, this.#stopping),
        );
      } catch {
        // Connections that the database has dropped are found out one by one.
      }
  }
}

/** Writes the event of a new state in the transaction of that state, which acts as the tenant's role from then on. */
async function tell(
  tx: Tx,
  { tenantId, deployment }: Pick<Work, 'tenantId' | 'deployment'>,
  status: ToldStatus,
  actor: EventActor = actorOf(deployment),
): Promise<void> {
  tx.actAs(tenantRole(tenantId));
  const { type, data } = deploymentEvent(status, {
    deploymentId: deployment.deployment_id,
    userId: deployment.created_by_user_id,
    kind: deployment.kind,
    checkOnly: deployment.check_only,
  });
  await tx.query(eventStatement(tx.schema, type, actor, data));
}

const actorOf = (deployment: Claimed): EventActor & { userId: string; clientId: string } => ({
  userId: deployment.created_by_user_id,
  clientId: deployment.created_by_client_id,
  agentRunId: deployment.created_by_agent_run_id,
  requestId: deployment.request_id,
});

const numbersOf = async (tx: Tx, asked: Counting | null): Promise<number[]> => (asked ? count(tx, asked) : []);

/** Changes with everything that users hold. */
async function readAccessVersion(tx: Tx): Promise<number> {
  const { version } = await tx.one<{ version: number }>({
    text: `SELECT access_version AS version FROM ${tx.schema}._state`,
  });
  return version;
}

/** The outcome of a plan that was applied, or that could have been. */
const succeeded = ({ planHash, version, changed }: Planned, { plan }: Concluded): Outcome => ({
  status: 'SUCCEEDED',
  plan,
  planHash,
  inverse: null,
  irreversible: '[]',
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
  irreversible: '[]',
  versionBefore: null,
  versionAfter: null,
  done: 0,
  total: 0,
  error,
});

/** Of a deployment that is being canceled, which ends as CANCELED whatever its outcome would be. */
const WITHDRAWN = failure({ code: 'APPLY_FAILED', message: 'It was canceled.' });

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
    return deployment.kind === 'quickDeploy'
      ? withPlan('QUICK_DEPLOY_NOT_ELIGIBLE', 'The plan is not the one that was validated.')
      : withPlan('PLAN_CHANGED', 'The plan is not the one that was reviewed.');
  if (blocked > 0)
    return withPlan(
      'PLAN_BLOCKED',
      `The plan has ${blocked === 1 ? '1 problem' : `${blocked} problems`}; see blocked.`,
    );
  return null;
}

/** Public text of a failure: never the database's own message, which can hold values of records. */
function applyError(error: unknown): DeploymentError {
  if (error instanceof PlatformError) return { code: 'APPLY_FAILED', message: error.message };
  const state = sqlState(error);
  if (state === '55P03' || state === '40P01')
    return { code: 'APPLY_FAILED', message: 'Other work kept the tables locked; nothing was applied. Deploy again.' };
  if (failureOf(error)?.kind === 'full')
    return {
      code: 'APPLY_FAILED',
      message: 'The database has no space left; nothing was applied. Deploy again later.',
    };
  return {
    code: 'APPLY_FAILED',
    message: `Nothing was applied${state ? `; the database refused the change (SQLSTATE ${state})` : ''}.`,
  };
}
