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
import { isUuid } from '../../../lib/values/ids.ts';
import { type SealingKeys, sealFor } from '../../../lib/values/sealed.ts';
import { identifier } from '../../../lib/values/sql-text.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import { idempotencyKey } from '../../../mixins/mutation/key.ts';
import { runIdempotent } from '../../../mixins/mutation/mutate.ts';
import type { Platform } from '../../../mixins/platform.ts';
import { mayCount } from '../counts.ts';
import { count } from '../data-checks.ts';
import { acceptDeployment, newDeployment } from '../deployments/accept.ts';
import type { DeploymentJobs } from '../deployments/jobs.ts';
import { findDeployment, listDeployments, planOfDeployment } from '../deployments/store.ts';
import { KINDS } from '../kinds/registry.ts';
import { type FindUser, mayRead, requireActiveUser, requirePermission } from '../permission.ts';
import type { Planning } from '../planning/planning.ts';
import type { Accepted, Door, Planned, Source, Where } from '../planning/tasks.ts';
import { requireTenant, storedRetained, storedState, type Tenant, tenantInfo } from '../store.ts';
import { presentDeployment, presentSummary } from './deployment.ts';
import { publicBaseUrl } from './retrieve.ts';

export class MetadataOperations {
  readonly #platform: Platform;
  readonly #jobs: DeploymentJobs;
  readonly #planning: Planning;
  readonly #sealingKeys: () => SealingKeys;

  constructor(
    platform: Platform,
    { jobs, planning, sealingKeys }: { jobs: DeploymentJobs; planning: Planning; sealingKeys: () => SealingKeys },
  ) {
    this.#platform = platform;
    this.#jobs = jobs;
    this.#planning = planning;
    this.#sealingKeys = sealingKeys;
  }

  async retrieve(
    request: RequestContext,
    call: OperationInput<'metadata.components.retrieve'>,
    findUser: FindUser,
  ): Promise<OperationReply> {
    await requirePermission(findUser, request, 'metadataRead');
    const { tenantId } = request;
    const { where } = await this.#current(tenantId);
    const input = { body: call.body, where, baseUrl: publicBaseUrl(this.#platform.config), now: Date.now() };
    return { body: Buffer.from(await this.#planning.run(tenantId, 'retrieve', input, { door: this.#door(tenantId) })) };
  }

  async validate(
    request: RequestContext,
    call: OperationInput<'metadata.components.validate'>,
    findUser: FindUser,
  ): Promise<OperationReply> {
    const user = await requirePermission(findUser, request, 'metadataRead');
    return this.#tryOut(request, user, { operation: 'validate', body: call.body });
  }

  /** What a deployment of the project would do. */
  async #tryOut(request: RequestContext, user: UserIdentity, source: Source): Promise<OperationReply> {
    // Those who decide about what an agent deploys could do so themselves.
    const tellsRights = request.dryRun && request.agentRunId !== null;
    const planned = await this.#plan(request.tenantId, user.id, source, tellsRights);
    refuseDrift(planned);
    const { draft, counting, manifestHash, planHash, version, handsOutRights } = planned;
    const numbers = counting ? await this.#platform.database.tenant(request.tenantId, (tx) => count(tx, counting)) : [];
    const facts = {
      manifestHash,
      planHash,
      metadataVersion: version,
      validatedAt: formatTimestamp(Date.now()),
      ...(handsOutRights === undefined ? {} : { handsOutRights }),
    };
    const { answer } = await this.#planning.run(request.tenantId, 'conclude', {
      draft,
      numbers,
      facts,
      counted: mayCount(user),
    });
    return { status: 200, body: answer && Buffer.from(answer) };
  }

  async deploy(
    request: RequestContext,
    call: OperationInput<'metadata.deployments.create'>,
    findUser: FindUser,
  ): Promise<OperationReply> {
    const allowed = await requirePermission(findUser, request, 'metadataManage');
    const accepted = await this.#planning.run(request.tenantId, 'accept', { body: call.body, head: call.fingerprint });
    if (request.dryRun) {
      const tried = await this.#tryOut(request, allowed, { operation: 'deploy', body: call.body });
      return { ...tried, changesNothing: accepted.checkOnly === true };
    }
    const known = { ...call, fingerprint: accepted.fingerprint };
    const key = idempotencyKey(known, request);
    const { database } = this.#platform;
    const mutation = { database, request, call: known, key, service: 'metadata' };
    const reply = await runIdempotent(mutation, async ({ inUnit }) => {
      const user = await requirePermission(findUser, request, 'metadataManage');
      await this.#checkAcceptable(request, call.body, accepted);
      return inUnit(
        async (unit) => (await unit.claim()) ?? acceptDeployment(unit, this.#jobs, newDeployment(user, accepted)),
      );
    });
    this.#jobs.wake();
    return reply;
  }

  /** Refuses what can be seen to fail before it is accepted; the worker checks it again under its locks. */
  async #checkAcceptable(request: RequestContext, body: Uint8Array, accepted: Accepted): Promise<void> {
    if (accepted.destructive && accepted.allowDestructiveChanges !== true)
      throw new PlatformError(
        'DESTRUCTIVE_CHANGES_NOT_ALLOWED',
        'The destructive manifest names components, and allowDestructiveChanges is not set.',
      );
    const { baseMetadataVersion, expectedPlanHash } = accepted;
    if (baseMetadataVersion === undefined && expectedPlanHash === undefined) return;
    const planned = await this.#plan(request.tenantId, request.userId, { operation: 'deploy', body });
    refuseDrift(planned);
    if (expectedPlanHash !== undefined && planned.planHash !== expectedPlanHash)
      throw new PlatformError('PLAN_CHANGED', 'The plan is not the one that was reviewed.', {
        details: { expected: expectedPlanHash, actual: planned.planHash },
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
    const { row, plan } = isUuid(id)
      ? await this.#platform.database.shared('metadata', tenantId, async (tx) => ({
          row: await findDeployment(tx, tenantId, id),
          plan: mayRead(user) ? await planOfDeployment(tx, tenantId, id) : null,
        }))
      : { row: null, plan: null };
    if (!row) throw new PlatformError('DEPLOYMENT_NOT_FOUND', 'There is no such deployment.');
    if (plan === null || mayCount(user)) return { body: presentDeployment(row, plan) };
    return { body: presentDeployment(row, await this.#planning.run(tenantId, 'uncount', { plan })) };
  }

  async list(
    request: RequestContext,
    call: OperationInput<'metadata.deployments.list'>,
    findUser: FindUser,
  ): Promise<OperationReply> {
    await requireActiveUser(findUser, request);
    const { status = null, checkOnly = null, ...paging } = call.query;
    const list = { name: 'metadata.deployments', parameters: { status, checkOnly } };
    const seal = sealFor(request, this.#sealingKeys(), Date.now());
    return listPage(list, parseListQuery(paging, 'query'), seal, {
      rows: ([before = null], take) =>
        this.#platform.database.shared('metadata', request.tenantId, (tx) =>
          listDeployments(tx, request.tenantId, { status, checkOnly, before, take }),
        ),
      keys: ({ deploymentId }) => [deploymentId],
      present: (page) => page.map(presentSummary),
    });
  }

  types(): OperationReply {
    return {
      body: {
        types: KINDS.map(({ type, memberFormat, schema, reversible }) => ({
          type,
          memberFormat,
          pathPattern: pathPatternOf(type),
          schema,
          retrievable: true,
          deployable: true,
          reversible,
        })),
      },
    };
  }

  /** The plan of a user's project, up to what the records say to it. */
  async #plan(tenantId: string, userId: string, source: Source, tellsRights = false): Promise<Planned> {
    const { tenant, where } = await this.#current(tenantId);
    const input = {
      where,
      tenant: tenantInfo(tenant),
      schema: identifier(tenantSchema(tenantId)),
      source,
      userId,
      tellsRights,
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
    };
  }
}

/** Lost-update protection: somebody changed what the project is about to overwrite. */
function refuseDrift({ drifted: { count: changed, first, since } }: Planned): void {
  if (changed === 0) return;
  throw new PlatformError('METADATA_DRIFT', `${changed} component(s) changed since version ${since}.`, {
    details: { components: first },
  });
}
