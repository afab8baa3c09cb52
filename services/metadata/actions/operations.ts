/** The public operations of metadata. */

import type { UserIdentity } from '../../../contracts/data.ts';
import type { OperationInput } from '../../../contracts/operations.ts';
import { ceilings } from '../../../contracts/ratelimit.ts';
import { type RequestContext, tenantSchema } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { pathPatternOf } from '../../../lib/metadata/paths.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { listPage } from '../../../lib/query/list-page.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { type SealingKeys, sealFor } from '../../../lib/values/sealed.ts';
import { identifier } from '../../../lib/values/sql-text.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import type { WorkLoop } from '../../../mixins/jobs/work-loop.ts';
import { idempotencyKey } from '../../../mixins/mutation/key.ts';
import { mutate, runIdempotent } from '../../../mixins/mutation/mutate.ts';
import type { Platform } from '../../../mixins/platform.ts';
import { mayCount } from '../counts.ts';
import { count } from '../data-checks.ts';
import { acceptDeployment, type Requested } from '../deployments/accept.ts';
import { cancelDeployment, deploymentNotFound } from '../deployments/cancel.ts';
import {
  inverseStatement,
  type KeptValidation,
  keptValidationStatement,
  type Standing,
} from '../deployments/standing.sql.ts';
import { quickDeployRefusal, rollbackBlockers, rollbackRefusal, unusable } from '../deployments/standing.ts';
import {
  type DeploymentSummary,
  findDeployment,
  listDeployments,
  planOfDeployment,
  standingOf,
} from '../deployments/store.ts';
import { unchangedStatement } from '../deployments/unchanged.sql.ts';
import { KINDS } from '../kinds/registry.ts';
import { publishedSchema } from '../kinds/schema.ts';
import { type FindUser, mayRead, requireActiveUser, requirePermission } from '../permission.ts';
import type { Planning } from '../planning/planning.ts';
import type { Accepted, AcceptedProject, Door, Planned, Source, Where } from '../planning/tasks.ts';
import { requireTenant, storedRetained, storedState, type Tenant, tenantInfo } from '../store.ts';
import { presentDeployment, presentSummary } from './deployment.ts';
import { publicBaseUrl } from './retrieve.ts';

const TYPES = {
  records: KINDS.map(({ type, memberFormat, schema, reversible, dependsOn = [] }) => ({
    type,
    memberFormat,
    pathPattern: pathPatternOf(type),
    schema: publishedSchema(type, schema),
    dependsOn,
    retrievable: true,
    deployable: true,
    reversible,
  })),
  nextCursor: null,
};

interface Parts {
  readonly queue: Pick<WorkLoop<string>, 'wake'>;
  readonly planning: Planning;
  readonly sealingKeys: SealingKeys;
  /** See `Door.domains`. */
  readonly domains?: (tenantId: string) => Promise<readonly string[] | null>;
}

export class MetadataOperations {
  readonly #platform: Platform;
  readonly #queue: Parts['queue'];
  readonly #planning: Planning;
  readonly #sealingKeys: SealingKeys;
  readonly #domains: NonNullable<Parts['domains']>;

  constructor(platform: Platform, { queue, planning, sealingKeys, domains = async () => null }: Parts) {
    this.#platform = platform;
    this.#queue = queue;
    this.#planning = planning;
    this.#sealingKeys = sealingKeys;
    this.#domains = domains;
  }

  async retrieve(
    request: RequestContext,
    call: OperationInput<'metadata.components.retrieve'>,
    findUser: FindUser,
  ): Promise<OperationReply> {
    await requirePermission(findUser, request, 'metadataRead');
    const { tenantId } = request;
    const { where } = await this.#current(tenantId);
    const input = { body: call.body, where, baseUrl: publicBaseUrl(this.#platform.config), now: platformTime() };
    return { body: Buffer.from(await this.#planning.run(tenantId, 'retrieve', input, { door: this.#door(tenantId) })) };
  }

  async validate(
    request: RequestContext,
    call: OperationInput<'metadata.components.validate'>,
    findUser: FindUser,
  ): Promise<OperationReply> {
    const user = await requirePermission(findUser, request, 'metadataRead');
    return this.#answer(request, user, await this.#plan(request, { operation: 'validate', body: call.body }));
  }

  /** Effects of deploying the plan. `basis`: the deployment that the request names, if any. */
  async #answer(
    request: RequestContext,
    user: UserIdentity,
    planned: Planned,
    basis: Basis = {},
  ): Promise<OperationReply> {
    refuseDrift(planned);
    const { draft, counting, manifestHash, planHash, version, handsOutRights } = planned;
    const numbers = counting ? await this.#platform.database.tenant(request.tenantId, (tx) => count(tx, counting)) : [];
    const facts = {
      manifestHash,
      planHash,
      metadataVersion: version,
      validatedAt: formatTimestamp(platformTime()),
      ...(handsOutRights === undefined ? {} : { handsOutRights }),
      ...(basis.revertsDeploymentId ? { revertsDeploymentId: basis.revertsDeploymentId } : {}),
      ...(basis.validationId ? { validationId: basis.validationId } : {}),
    };
    const input = { draft, numbers, facts, counted: mayCount(user) };
    const { answer } = await this.#planning.run(request.tenantId, 'conclude', input, { first: true });
    return { status: 200, body: answer && Buffer.from(answer) };
  }

  async deploy(
    request: RequestContext,
    call: OperationInput<'metadata.deployments.create'>,
    findUser: FindUser,
  ): Promise<OperationReply> {
    const allowed = await requirePermission(findUser, request, 'metadataManage');
    const accepted = await this.#planning.run(request.tenantId, 'accept', { body: call.body, head: call.fingerprint });
    const known = { ...call, fingerprint: accepted.fingerprint };
    const key = idempotencyKey(known, request);
    const { database } = this.#platform;
    const mutation = { database, request, call: known, key, service: 'metadata' };
    const reply = await runIdempotent(mutation, async ({ inUnit }) => {
      const user = await requirePermission(findUser, request, 'metadataManage');
      const { requested, source, planned } = await this.#request(request, call.body, accepted);
      // An approval is for the plan: that of the dry run, and that of the approved deployment.
      const isReviewed = request.dryRun === true || request.approval !== undefined;
      const plan = isReviewed ? (planned ?? (await this.#plan(request, source))) : null;
      const answer = request.dryRun && plan ? await this.#answer(request, allowed, plan, requested) : null;
      return inUnit(async (unit) => {
        const stored = await unit.claim();
        if (stored) return stored;
        if (plan) unit.facts.plan = `${plan.planHash} ${plan.handsOutRights ?? ''}`;
        // The worker holds the deployment to the plan that was approved.
        const reviewed = request.approval && plan ? { ...requested, expectedPlanHash: plan.planHash } : requested;
        const stands = await acceptDeployment(unit, user, reviewed);
        return answer ? { ...answer, changesNothing: requested.checkOnly } : stands;
      });
    });
    if (request.dryRun) return reply;
    this.#queue.wake();
    return reply;
  }

  /** The deployment that a body asks for. Refuses what can be seen to fail; the worker checks it again. */
  #request(request: RequestContext, body: Uint8Array, accepted: Accepted): Promise<Request> {
    switch (accepted.form) {
      case 'project':
        return this.#requestProject(request, body, accepted);
      case 'quickDeploy':
        return this.#requestQuickDeploy(request, accepted);
      case 'rollback':
        return this.#requestRollback(request, accepted);
    }
  }

  async #requestProject(request: RequestContext, body: Uint8Array, accepted: AcceptedProject): Promise<Request> {
    if (accepted.destructive && accepted.allowDestructiveChanges !== true)
      throw new PlatformError(
        'DESTRUCTIVE_CHANGES_NOT_ALLOWED',
        'The destructive manifest names components, and allowDestructiveChanges is not set.',
      );
    const { checkOnly = false, allowDestructiveChanges = false } = accepted;
    const { baseMetadataVersion = null, expectedPlanHash = null, manifestHash, files } = accepted;
    const source = { operation: 'deploy', body } as const;
    const requested: Requested = {
      kind: checkOnly ? 'validation' : 'deploy',
      checkOnly,
      allowDestructiveChanges,
      baseMetadataVersion,
      expectedPlanHash,
      manifestHash,
      package: accepted.package,
      files,
      revertsDeploymentId: null,
      validationId: null,
    };
    if (baseMetadataVersion === null && expectedPlanHash === null) return { requested, source, planned: null };
    const planned = await this.#plan(request, source);
    refuseDrift(planned);
    if (expectedPlanHash !== null && planned.planHash !== expectedPlanHash)
      throw new PlatformError('PLAN_CHANGED', 'The plan is not the one that was reviewed.', {
        details: { expected: expectedPlanHash, actual: planned.planHash },
      });
    return { requested, source, planned };
  }

  async #requestQuickDeploy(
    request: RequestContext,
    { validationId, expectedManifestHash }: Extract<Accepted, { form: 'quickDeploy' }>,
  ): Promise<Request> {
    const { tenantId } = request;
    const id = validationId.toLowerCase();
    const kept = await this.#platform.database.shared('metadata', tenantId, async (tx) => {
      const reason = unusable(await standingOf(tx, tenantId, id));
      if (reason !== null) throw quickDeployRefusal(reason);
      return tx.one<KeptValidation>(keptValidationStatement(tenantId, id));
    });
    const { manifestHash, planHash, allowDestructiveChanges } = kept;
    if (expectedManifestHash !== undefined && expectedManifestHash !== manifestHash)
      throw quickDeployRefusal('DRIFT', { expected: expectedManifestHash, actual: manifestHash });
    const source = { ...kept, baseMetadataVersion: null, restores: false };
    const planned = await this.#plan(request, source);
    if (planned.planHash !== planHash)
      throw quickDeployRefusal('DRIFT', { expected: planHash, actual: planned.planHash });
    if (planned.problems.length > 0) {
      const isOwn = planned.problems.includes('COMPONENT_PERMISSION_DENIED');
      throw quickDeployRefusal(isOwn ? 'PERMISSION' : 'DRIFT', { problems: planned.problems });
    }
    const requested: Requested = {
      kind: 'quickDeploy',
      checkOnly: false,
      allowDestructiveChanges,
      baseMetadataVersion: null,
      expectedPlanHash: planHash,
      manifestHash,
      package: kept.package,
      files: kept.files,
      revertsDeploymentId: null,
      validationId: id,
    };
    return { requested, source, planned };
  }

  async #requestRollback(
    request: RequestContext,
    { deploymentId, checkOnly = false }: Extract<Accepted, { form: 'rollback' }>,
  ): Promise<Request> {
    const { tenantId } = request;
    const id = deploymentId.toLowerCase();
    const { inverse } = await this.#platform.database.shared('metadata', tenantId, async (tx) => {
      const blockers = rollbackBlockers(id, await standingOf(tx, tenantId, id));
      if (blockers.length > 0) throw rollbackRefusal(blockers);
      return tx.one<{ inverse: string }>(inverseStatement(tenantId, id));
    });
    const { destructive, manifestHash, ...kept } = await this.#planning.run(tenantId, 'revert', { inverse });
    const source = { ...kept, allowDestructiveChanges: destructive, baseMetadataVersion: null, restores: true };
    const requested: Requested = {
      ...kept,
      kind: 'rollback',
      checkOnly,
      allowDestructiveChanges: destructive,
      baseMetadataVersion: null,
      expectedPlanHash: null,
      manifestHash,
      revertsDeploymentId: id,
      validationId: null,
    };
    return { requested, source, planned: null };
  }

  async cancel(
    request: RequestContext,
    call: OperationInput<'metadata.deployments.cancel'>,
    findUser: FindUser,
  ): Promise<OperationReply> {
    const user = await requirePermission(findUser, request, 'metadataManage');
    const { deploymentId } = call.path;
    return mutate(this.#platform.database, request, call, {
      role: { service: 'metadata' },
      work: async (unit) => {
        await cancelDeployment(unit, deploymentId, {
          reason: call.body?.reason ?? null,
          cancelsAny: user.systemPermissions.includes('manageAccess'),
        });
        const shown = await shownDeployment(unit.tx, request.tenantId, deploymentId);
        if (!shown) throw deploymentNotFound();
        // Without its plan, which can be large: the answer is kept under the key.
        return { status: 202, body: presentDeployment(shown.row, shown.standing, null, true) };
      },
    });
  }

  async get(
    request: RequestContext,
    call: OperationInput<'metadata.deployments.get'>,
    findUser: FindUser,
  ): Promise<OperationReply> {
    const user = await requireActiveUser(findUser, request);
    const id = call.path.deploymentId;
    const { tenantId } = request;
    const found = isUuid(id)
      ? await this.#platform.database.shared('metadata', tenantId, async (tx) => {
          const shown = await shownDeployment(tx, tenantId, id);
          return shown && { ...shown, plan: mayRead(user) ? await planOfDeployment(tx, tenantId, id) : null };
        })
      : null;
    if (!found) throw deploymentNotFound();
    const { row, standing, plan } = found;
    if (plan === null || mayCount(user)) return { body: presentDeployment(row, standing, plan, mayRead(user)) };
    const uncounted = await this.#planning.run(tenantId, 'uncount', { plan });
    return { body: presentDeployment(row, standing, uncounted, true) };
  }

  async list(
    request: RequestContext,
    call: OperationInput<'metadata.deployments.list'>,
    findUser: FindUser,
  ): Promise<OperationReply> {
    const reads = mayRead(await requireActiveUser(findUser, request));
    const { status = null, checkOnly = null, ...paging } = call.query;
    const list = { name: 'metadata.deployments', parameters: { status, checkOnly } };
    const seal = sealFor(request, this.#sealingKeys, platformTime());
    return listPage(list, parseListQuery(paging, 'query'), seal, {
      rows: ([before = null], take) =>
        this.#platform.database.shared('metadata', request.tenantId, (tx) =>
          listDeployments(tx, request.tenantId, { status, checkOnly, before, take }),
        ),
      keys: ({ deploymentId }) => [deploymentId],
      present: (page) => page.map((row) => presentSummary(row, reads)),
    });
  }

  types(): OperationReply {
    return { body: TYPES };
  }

  /** The plan of a user's project, up to what the records say to it. */
  async #plan({ tenantId, userId, agentRunId }: RequestContext, source: Source): Promise<Planned> {
    const { tenant, where } = await this.#current(tenantId);
    const input = {
      where,
      tenant: tenantInfo(tenant),
      schema: identifier(tenantSchema(tenantId)),
      source,
      userId,
      // Those who decide about what an agent deploys could do so themselves.
      tellsRights: agentRunId !== null,
      ceilings: ceilings(this.#platform.config.rateLimits, tenant.operatorLimits),
    };
    return this.#planning.run(tenantId, 'plan', input, { door: this.#door(tenantId) });
  }

  async #current(tenantId: string): Promise<{ tenant: Tenant; where: Where }> {
    const { database } = this.#platform;
    const tenant = await database.shared('metadata', tenantId, (tx) => requireTenant(tx, tenantId));
    return { tenant, where: { tenantId, version: tenant.metadataVersion } };
  }

  #door(tenantId: string): Door {
    const { database } = this.#platform;
    return {
      state: () => database.shared('metadata', tenantId, (tx) => storedState(tx, tenantId)),
      retained: () => database.shared('metadata', tenantId, (tx) => storedRetained(tx, tenantId)),
      rows: (statement) => database.tenant(tenantId, (tx) => tx.all(statement)),
      unchangedSince: (version, components) =>
        database.shared('metadata', tenantId, (tx) => tx.all(unchangedStatement(tenantId, version, components))),
      domains: () => this.#domains(tenantId),
    };
  }
}

/** A deployment that is asked for, what it is planned from, and its plan where that was needed to accept it. */
type Basis = Partial<Pick<Requested, 'revertsDeploymentId' | 'validationId'>>;

interface Request {
  readonly requested: Requested;
  readonly source: Source;
  readonly planned: Planned | null;
}

async function shownDeployment(
  tx: Tx,
  tenantId: string,
  deploymentId: string,
): Promise<{ row: DeploymentSummary; standing: Standing } | null> {
  const row = await findDeployment(tx, tenantId, deploymentId);
  const standing = row && (await standingOf(tx, tenantId, deploymentId));
  return standing && { row, standing };
}

/** Lost-update protection: the components that the project would overwrite were changed. */
function refuseDrift({ drifted: { count: changed, first, since } }: Planned): void {
  if (changed === 0) return;
  throw new PlatformError(
    'METADATA_DRIFT',
    `${changed === 1 ? '1 component' : `${changed} components`} changed since version ${since}.`,
    {
      details: { components: first },
    },
  );
}
