/** The public operations of metadata. */

import { LIMITS } from '../../../config/limits.ts';
import type { OperationInput } from '../../../contracts/operations.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import { idempotencyKey } from '../../../mixins/mutation/key.ts';
import { runIdempotent } from '../../../mixins/mutation/mutate.ts';
import type { Platform } from '../../../mixins/platform.ts';
import { acceptDeployment, newDeployment } from '../deployments/accept.ts';
import type { DeploymentJobs } from '../deployments/jobs.ts';
import { findDeployment, listDeployments } from '../deployments/store.ts';
import type { Component, State } from '../kinds/component.ts';
import { KINDS } from '../kinds/registry.ts';
import { type FindUser, mayRead, requireActiveUser, requirePermission } from '../permission.ts';
import { drift, type Plan, planHash } from '../planner/plan.ts';
import { planFor } from '../planning.ts';
import { deployBody, type ProjectBody, retrieveBody, validateBody } from '../project/body.ts';
import { type Project, readPackage, readProject } from '../project/project.ts';
import { loadState, requireTenant, type Tenant } from '../store.ts';
import { presentDeployment, presentSummary, readCursor, writeCursor } from './deployment.ts';
import { publicBaseUrl, retrieve } from './retrieve.ts';

export class MetadataOperations {
  readonly #platform: Platform;
  readonly #jobs: DeploymentJobs;

  constructor(platform: Platform, jobs: DeploymentJobs) {
    this.#platform = platform;
    this.#jobs = jobs;
  }

  async retrieve(
    request: RequestContext,
    call: OperationInput<'metadata.components.retrieve'>,
    findUser: FindUser,
  ): Promise<OperationReply> {
    const pkg = readPackage(retrieveBody(call.body).package, '/package');
    await requirePermission(findUser, request, 'metadataRead');
    const { tenant, state } = await this.#current(request.tenantId);
    return {
      body: retrieve(state, pkg, {
        metadataVersion: tenant.metadataVersion,
        baseUrl: publicBaseUrl(this.#platform.config),
        now: Date.now(),
      }),
    };
  }

  async validate(
    request: RequestContext,
    call: OperationInput<'metadata.components.validate'>,
    findUser: FindUser,
  ): Promise<OperationReply> {
    const body = validateBody(call.body);
    const project = await readProject(body.files, body.package);
    const user = await requirePermission(findUser, request, 'metadataRead');
    const { tenant, state } = await this.#current(request.tenantId);
    refuseDrift(state, project, body.baseMetadataVersion);
    const plan = await this.#plan(user.id, tenant, state, project, body);
    const { creates, updates, deletes, noops, blocked, warnings } = plan;
    return {
      body: {
        valid: blocked.length === 0,
        blocked,
        warnings,
        creates,
        updates,
        deletes,
        noops,
        manifestHash: project.manifestHash,
        planHash: planHash(plan, state),
        metadataVersion: tenant.metadataVersion,
        validatedAt: formatTimestamp(Date.now()),
      },
    };
  }

  async deploy(
    request: RequestContext,
    call: OperationInput<'metadata.deployments.create'>,
    findUser: FindUser,
  ): Promise<OperationReply> {
    const body = deployBody(call.body);
    const project = await readProject(body.files, body.package);
    const key = idempotencyKey(call, request);
    const { database } = this.#platform;
    const reply = await runIdempotent({ database, request, call, key }, async ({ inUnit }) => {
      const user = await requirePermission(findUser, request, 'metadataManage');
      await this.#checkAcceptable(request, project, body);
      return inUnit(
        async (unit) => (await unit.claim()) ?? acceptDeployment(unit, this.#jobs, newDeployment(user, project, body)),
      );
    });
    this.#jobs.wake();
    return reply;
  }

  /** Refuses what can be seen to fail before it is accepted; the worker checks it again under its locks. */
  async #checkAcceptable(request: RequestContext, project: Project, body: ProjectBody): Promise<void> {
    if (project.destructive && body.allowDestructiveChanges !== true)
      throw new PlatformError(
        'DESTRUCTIVE_CHANGES_NOT_ALLOWED',
        'The destructive manifest names components, and allowDestructiveChanges is not set.',
      );
    const { baseMetadataVersion, expectedPlanHash } = body;
    if (baseMetadataVersion === undefined && expectedPlanHash === undefined) return;
    const { tenant, state } = await this.#current(request.tenantId);
    refuseDrift(state, project, baseMetadataVersion);
    if (expectedPlanHash === undefined) return;
    const actual = planHash(await this.#plan(request.userId, tenant, state, project, body), state);
    if (actual !== expectedPlanHash)
      throw new PlatformError('PLAN_CHANGED', 'The plan is not the one that was reviewed.', {
        details: { expected: expectedPlanHash, actual },
      });
  }

  async get(
    request: RequestContext,
    call: OperationInput<'metadata.deployments.get'>,
    findUser: FindUser,
  ): Promise<OperationReply> {
    const withPlan = await mayRead(findUser, request);
    const id = call.path.deploymentId;
    const row = isUuid(id)
      ? await this.#platform.database.shared('metadata', request.tenantId, (tx) =>
          findDeployment(tx, request.tenantId, id),
        )
      : null;
    if (!row) throw new PlatformError('DEPLOYMENT_NOT_FOUND', 'There is no such deployment.');
    return { body: presentDeployment(withPlan ? row : { ...row, plan: null }) };
  }

  async list(
    request: RequestContext,
    call: OperationInput<'metadata.deployments.list'>,
    findUser: FindUser,
  ): Promise<OperationReply> {
    await requireActiveUser(findUser, request);
    const { query } = call;
    const filter = {
      status: query.status ?? null,
      checkOnly: query.checkOnly ?? null,
    };
    const asked = query.take ?? LIMITS.take_default;
    if (asked < 1)
      throw new PlatformError('PARAMETER_INVALID', 'take is at least 1.', {
        errors: [violation('query:take', 'PARAMETER_INVALID', 'take is at least 1.')],
      });
    const take = Math.min(asked, LIMITS.take_max);
    const before = query.cursor === undefined ? null : readCursor(query.cursor, filter);
    const rows = await this.#platform.database.shared('metadata', request.tenantId, (tx) =>
      listDeployments(tx, request.tenantId, { ...filter, before, take: take + 1 }),
    );
    const page = rows.slice(0, take);
    const last = page.at(-1);
    return {
      ...(asked > take ? { headers: { 'X-Effective-Take': String(take) } } : {}),
      body: {
        records: page.map(presentSummary),
        nextCursor: last && rows.length > take ? writeCursor(last.deploymentId, filter) : null,
      },
    };
  }

  types(): OperationReply {
    return {
      body: {
        types: KINDS.map(({ type, memberFormat, pathPattern, schema, reversible }) => ({
          type,
          memberFormat,
          pathPattern,
          schema,
          retrievable: true,
          deployable: true,
          reversible,
        })),
      },
    };
  }

  async #current(tenantId: string): Promise<{ tenant: Tenant; state: Map<string, Component> }> {
    return this.#platform.database.shared('metadata', tenantId, async (tx) => {
      const [tenant, state] = await Promise.all([requireTenant(tx, tenantId), loadState(tx, tenantId)]);
      return { tenant, state };
    });
  }

  /** The plan of a project for a user, with what the records of the tenant say to it. */
  async #plan(
    userId: string,
    tenant: Tenant,
    before: State,
    project: Project,
    { allowDestructiveChanges = false }: ProjectBody,
  ): Promise<Plan> {
    const planned = {
      userId,
      tenant,
      before,
      project,
      allowDestructiveChanges,
      rateLimits: this.#platform.config.rateLimits,
    };
    const { plan } = await this.#platform.database.tenant(tenant.id, (tx) => planFor(tx, planned));
    return plan;
  }
}

/** Lost-update protection: somebody changed what the project is about to overwrite. */
function refuseDrift(state: State, project: Project, base: number | undefined): void {
  if (base === undefined) return;
  const changed = drift(state, project, base);
  if (changed.length === 0) return;
  throw new PlatformError('METADATA_DRIFT', `${changed.length} component(s) changed since version ${base}.`, {
    details: {
      components: changed.slice(0, 200).map((component) => ({
        type: component.type,
        fullName: component.fullName,
        changedAtVersion: component.changedAtVersion,
        changedAt: component.updatedAt,
        changedById: component.updatedById,
      })),
    },
  });
}
