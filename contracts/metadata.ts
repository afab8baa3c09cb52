/** Public operations and internal actions of metadata. */
import { type Static, Type } from 'typebox';
import { API_PREFIX } from '../lib/addresses.ts';
import { LIMITS } from '../lib/limits.ts';
import { type ActionsOf, defineOperation, defineParameter, nullable } from '../lib/operation.ts';
import type { RateLimitOverrides, Snapshot, TenantInfo } from '../lib/schema/snapshot.ts';
import { TRIED } from './data/mutations.ts';
import { cursor, nextCursor, take } from './data/rows.ts';
import type { ServiceDeclaration } from './declaration.ts';
import { METADATA_GUIDANCE } from './guidance/metadata.ts';

/** The version of tenants' schemas that processes of this version need: the newest file of tenant-schema. */
export const TENANT_SCHEMA_VERSION = 2;

/** Contents of a new tenant. */
export const TENANT_TEMPLATES = ['erp', 'empty'] as const;

export type TenantTemplate = (typeof TENANT_TEMPLATES)[number];

/** Days between the deletion of a tenant and its erasure, in which it can be taken back. */
export const DELETION_GRACE_DAYS = { default: 30, max: 365 } as const;

/** `deleting`: in its grace period; `erasing`: what it had is being removed, and there is no way back. */
type TenantState = 'active' | 'suspended' | 'deleting' | 'erasing';

/** A tenant as an operator sees it. Times are RFC 3339. */
export interface TenantDescription extends TenantInfo {
  readonly state: TenantState;
  readonly createdAt: string;
  /** Its template is still to be deployed: repeating its creation does so. */
  readonly templatePending: boolean;
  /** By an operator; a tenant that is being deleted does not work either, with or without this. */
  readonly suspension: { readonly at: string; readonly reason: string | null } | null;
  /** When it is, or was, due to be erased. */
  readonly deleteAt: string | null;
  readonly metadataVersion: number;
  readonly operatorLimits: RateLimitOverrides;
}

/** Proof of a tenant's erasure. Times are RFC 3339. */
export interface TenantDeletion {
  readonly tenantId: string;
  readonly key: string;
  readonly name: string;
  readonly dueAt: string;
  readonly begunAt: string;
  /** null: it is under way. */
  readonly finishedAt: string | null;
  /** Rows by table; those of the tenant's own schema as `tenant.<table>`. */
  readonly removed: Readonly<Record<string, number>>;
  /** false: they stay, because another database of the server has roles of these names in use. */
  readonly rolesRemoved: boolean | null;
  /** In how many tables of the platform the tenant's id was looked for at the end. */
  readonly tablesChecked: number | null;
  /** Rows that still held it, by table; empty: nothing is left. */
  readonly remaining: Readonly<Record<string, number>> | null;
}

/** A job whose last attempt failed. */
interface DeadJob {
  readonly queue: string;
  readonly tenantId: string;
  readonly payload: object;
  /** Name of the last failure; the log has the rest. */
  readonly failure: string | null;
  readonly failedAt: string;
}

/** A deployment that has not ended, as an operator sees it: nothing of what it holds. */
export interface OpenDeployment {
  readonly tenantId: string;
  readonly deploymentId: string;
  readonly status: DeploymentStatus;
  readonly kind: string;
  /** User who requested it. */
  readonly userId: string;
  readonly clientId: string;
  readonly createdAt: string;
  readonly startedAt: string | null;
  /** How often a worker has begun it. */
  readonly takes: number;
  readonly done: number;
  readonly total: number;
}

export interface MetadataActions extends ActionsOf<typeof METADATA_OPERATIONS> {
  /** The snapshot of a tenant as JSON bytes; without `version` the current one. RECORD: unknown tenant → null. */
  'metadata.snapshots.get': {
    params: { tenantId: string; version?: number };
    result: { version: number; snapshot: Buffer } | null;
  };
  'metadata.tenants.get': {
    params: { tenantId?: string; key?: string };
    result: (TenantInfo & { suspended: boolean; metadataVersion: number; operatorLimits: RateLimitOverrides }) | null;
  };
  'metadata.tenants.list': {
    params: { after?: string; take?: number };
    result: (TenantInfo & { suspended: boolean; metadataVersion: number; operatorLimits: RateLimitOverrides })[];
  };
  /**
   * For operators: sets limits of a tenant in place of the deployment's defaults, wider or narrower; null takes one
   * back, the others stay. `liftOwn`: what the tenant's settings narrow does not hold until its next deployment. Takes
   * effect within seconds; leaves an entry in the tenant's audit trail. Throws PARAMETER_INVALID.
   */
  'metadata.tenants.setLimits': {
    params: { key: string; limits: { [K in keyof RateLimitOverrides]?: number | null }; liftOwn?: boolean };
    result: { tenantId: string; key: string; name: string; limits: RateLimitOverrides };
  };
  /** For operators: the tenants with such limits, in the order of their ids. */
  'metadata.tenants.listLimits': {
    params: { after?: string; take?: number };
    result: { tenantId: string; key: string; name: string; limits: RateLimitOverrides }[];
  };
  /** For operators: the oldest 200 deployments that have not ended, of a tenant or of all. */
  'metadata.tenants.listDeployments': { params: { tenantId?: string }; result: { deployments: OpenDeployment[] } };
  /**
   * For operators: asks for the end of a deployment, with an entry in the tenant's audit trail. Throws
   * DEPLOYMENT_NOT_FOUND, DEPLOYMENT_NOT_CANCELABLE.
   */
  'metadata.tenants.cancelDeployment': {
    params: { tenantId: string; deploymentId: string; reason?: string };
    result: { deploymentId: string; status: 'CANCELING' | 'CANCELED' };
  };
  /** For operators: the oldest 200 jobs of all services whose last attempt failed. */
  'metadata.jobs.listDead': { params: Record<string, never>; result: { jobs: DeadJob[] } };
  /** For operators: the dead jobs of a queue are tried again, as if they were new. */
  'metadata.jobs.sendDeadAgain': { params: { queue: string }; result: { sent: number } };
  /** For operators: one tenant, or all in the order of their ids. */
  'metadata.tenants.describe': {
    params: { key?: string; after?: string; take?: number };
    result: TenantDescription[];
  };
  /**
   * For operators: suspends the tenant within seconds; its data stays. Repeating it changes
   * nothing. Throws PARAMETER_INVALID. Source: docs/reference/tenants.md, as for all that follow.
   */
  'metadata.tenants.suspend': { params: { key: string; reason: string }; result: TenantDescription };
  /** For operators: takes a suspension back. Throws PARAMETER_INVALID, also while the tenant is being deleted. */
  'metadata.tenants.resume': { params: { key: string }; result: TenantDescription };
  /** For operators: another name; keys are for good. Throws PARAMETER_INVALID. */
  'metadata.tenants.rename': { params: { key: string; name: string }; result: TenantDescription };
  /**
   * For operators: suspends the tenant at once, and erases it after `graceDays` (default 30). `confirm` is the key once
   * more. Repeating it keeps the day, unless it names `graceDays`. Throws PARAMETER_INVALID.
   */
  'metadata.tenants.delete': {
    params: { key: string; confirm: string; graceDays?: number };
    result: TenantDescription;
  };
  /** For operators: takes a deletion back, until the erasure begins. Throws PARAMETER_INVALID. */
  'metadata.tenants.undelete': { params: { key: string }; result: TenantDescription };
  /** For operators: the newest 200 proofs of deletion, of all keys or one. */
  'metadata.tenants.listDeletions': { params: { key?: string }; result: TenantDeletion[] };
  /**
   * For operators: looks once more for what is left of an erased tenant. Throws PARAMETER_INVALID when there is no proof
   * of its deletion.
   */
  'metadata.tenants.findTraces': {
    params: { tenantId: string };
    result: { tablesChecked: number; remaining: Record<string, number> };
  };
  /**
   * For operators: creates a tenant with its schema, roles and the core template (User object, standard profiles), and
   * deploys `template` to it: `erp` (default) or `empty`. Repeating it with the same parameters finishes what was
   * interrupted and answers `created: false`; a key that was used with others is PARAMETER_INVALID. The administrator is
   * a User record made through data.users.provision. Source: docs/reference/tenants.md.
   */
  'metadata.tenants.create': {
    params: {
      key: string;
      name: string;
      template?: TenantTemplate;
      region?: string;
      edition?: string;
      sandbox?: boolean;
      locale?: string;
      timezone?: string;
      currency?: string;
    };
    result: { tenantId: string; created: boolean };
  };
  /**
   * The dashboards that deployments have brought, by apiName, a few at a time (`next`: there are more, ask with it as
   * `after`). `body`: the component as JSON, when it has changed after version `since`; null otherwise.
   */
  'metadata.dashboards.list': {
    params: { tenantId: string; since: number; after?: string };
    result: {
      version: number;
      dashboards: { apiName: string; updatedById: string | null; body: string | null }[];
      next: string | null;
    };
  };
  /**
   * Deploys a project with the platform as actor (templates); waits for the end. Throws METADATA_INVALID when blocked.
   */
  'metadata.templates.deploy': {
    params: { tenantId: string; files: Record<string, string> };
    result: { metadataVersion: number; changes: number };
  };
}

/**
 * Broadcast when a new metadataVersion is committed. A wake-up only: readers also compare versions in their statements.
 */
export interface MetadataEvents {
  'metadata.schema.changed': { tenantId: string; metadataVersion: number };
  /** An operator has suspended, resumed, renamed, deleted or undeleted a tenant. */
  'metadata.tenant.changed': { tenantId: string };
}

export type { Snapshot };

/** Statuses of a deployment that has not ended, and of one that has. */
export const OPEN_STATUSES = ['QUEUED', 'VALIDATING', 'APPLYING', 'CANCELING'] as const;
export const ENDED_STATUSES = ['SUCCEEDED', 'FAILED', 'CANCELED'] as const;

export const DEPLOYMENT_STATUSES = [...OPEN_STATUSES, ...ENDED_STATUSES] as const;

export type DeploymentStatus = (typeof DEPLOYMENT_STATUSES)[number];

/** Why a deployment cannot be rolled back, or what of it cannot. */
const ROLLBACK_BLOCKERS = [
  'NOT_FOUND',
  'NOT_SUCCEEDED',
  'NOT_APPLIED',
  'NOTHING_CHANGED',
  'ALREADY_ROLLED_BACK',
  'EXPIRED',
  'NOT_KEPT',
  'CHANGED_LATER',
  'IRREVERSIBLE',
] as const;

/** An obstacle to a rollback: a component, or the deployment itself as `Deployment` and its id. */
export interface RollbackBlocker {
  readonly type: string;
  readonly fullName: string;
  readonly reason: (typeof ROLLBACK_BLOCKERS)[number];
}

const StatusSchema = Type.Enum([...DEPLOYMENT_STATUSES], { title: 'DeploymentStatus' });

const closed = { additionalProperties: false };
const uuid = (description?: string) => Type.String({ format: 'uuid', ...(description ? { description } : {}) });
const timestamp = (description?: string) =>
  Type.String({ format: 'date-time', ...(description ? { description } : {}) });
const hash = (description: string) => Type.String({ pattern: '^sha256:[0-9a-f]{64}$', description });

const Package = Type.Object(
  {
    version: Type.Literal(1, { description: 'Format of packages.' }),
    types: Type.Array(
      Type.Object(
        {
          name: Type.String({ description: 'Type of component, such as CustomField.' }),
          members: Type.Array(Type.String(), {
            description: 'Full names such as `Invoice__c.Amount__c`; `*` and `Invoice__c.*` stand for all.',
          }),
        },
        closed,
      ),
    ),
  },
  {
    title: 'MetadataPackage',
    ...closed,
    description: `Which components; ${LIMITS.metadata_members_max} members at most, wildcards expanded.`,
  },
);

const Files = Type.Record(Type.String(), Type.String(), {
  title: 'MetadataFiles',
  description: `Texts of YAML by relative path; ${LIMITS.metadata_files_max} files of 1 MiB at most.`,
});

const Problem = Type.Object(
  {
    code: Type.String({ description: 'Such as REFERENCE_INVALID or DATA_INCOMPATIBLE.' }),
    type: Type.String(),
    fullName: Type.String(),
    path: nullable(Type.String()),
    line: nullable(Type.Integer({ description: 'From 1.' })),
    column: nullable(Type.Integer({ description: 'From 1.' })),
    message: Type.String(),
    remedy: nullable(Type.String()),
    details: Type.Optional(
      Type.Object({}, { additionalProperties: true, description: 'By code: records, members, max.' }),
    ),
  },
  { title: 'MetadataProblem' },
);

const Change = Type.Object(
  {
    type: Type.String(),
    fullName: Type.String(),
    path: Type.String(),
    properties: Type.Array(
      Type.Object({
        name: Type.String(),
        from: Type.Unknown({ description: 'null: was not there.' }),
        to: Type.Unknown({ description: 'null: is gone.' }),
      }),
    ),
    destructive: Type.Boolean(),
    impact: Type.Object({
      records: nullable(Type.Integer({ description: 'Records of the object; null when there were none to count.' })),
      dependents: Type.Array(Type.Object({ type: Type.String(), fullName: Type.String() }, { title: 'ComponentName' })),
    }),
    reversible: Type.Boolean(),
  },
  { title: 'MetadataChange' },
);

const changeLists = {
  creates: Type.Array(Change),
  updates: Type.Array(Change),
  deletes: Type.Array(Change),
  noops: Type.Array(Change),
};

const Validation = Type.Object(
  {
    valid: Type.Boolean({ description: 'True exactly when nothing blocks the plan. Nothing was applied.' }),
    blocked: Type.Array(Problem),
    warnings: Type.Array(Problem),
    ...changeLists,
    manifestHash: hash('Identity of files and package.'),
    planHash: hash('Identity of the changes; send it as expectedPlanHash to deploy exactly these.'),
    metadataVersion: Type.Integer({ description: 'Version that the plan starts from.' }),
    validatedAt: timestamp(),
    handsOutRights: Type.Optional(
      Type.Boolean({
        description:
          'Under an agent run: the deployment gives or takes rights, so only users with `manageAccess` approve it.',
      }),
    ),
    revertsDeploymentId: Type.Optional(uuid('Of a rollback: the deployment that it takes back.')),
    validationId: Type.Optional(uuid('Of a quick deploy: the validation whose files it deploys.')),
  },
  { title: 'MetadataValidation' },
);

const Retrieved = Type.Object(
  {
    files: Files,
    manifestHash: hash('Identity of files and package.'),
    generatedAt: timestamp(),
    metadataVersion: Type.Integer({ description: 'Send it as baseMetadataVersion when the files come back.' }),
    package: Package,
    components: Type.Array(
      Type.Object({
        type: Type.String(),
        fullName: Type.String(),
        path: Type.String(),
        hash: hash('Of the file.'),
        updatedAt: timestamp(),
        updatedById: nullable(uuid('null: the platform.')),
      }),
    ),
    notFound: Type.Array(Type.Object({ type: Type.String(), member: Type.String() })),
  },
  { title: 'RetrievedMetadata' },
);

const DeploymentError = Type.Object(
  {
    code: Type.Enum([
      'PLAN_BLOCKED',
      'METADATA_DRIFT',
      'PLAN_CHANGED',
      'WORKER_LOST',
      'APPLY_FAILED',
      'QUICK_DEPLOY_NOT_ELIGIBLE',
      'ROLLBACK_NOT_ELIGIBLE',
    ]),
    message: Type.String(),
  },
  { title: 'DeploymentFailure' },
);

/** Why a deployment was not applied. */
export type DeploymentError = Static<typeof DeploymentError>;

const deploymentFields = {
  deploymentId: uuid(),
  status: StatusSchema,
  kind: Type.Enum(['deploy', 'validation', 'quickDeploy', 'rollback'], { title: 'DeploymentKind' }),
  checkOnly: Type.Boolean({ description: 'A recorded validation: nothing is applied, even when it succeeds.' }),
  allowDestructiveChanges: Type.Boolean(),
  createdAt: timestamp(),
  startedAt: nullable(timestamp()),
  finishedAt: nullable(timestamp()),
  createdBy: Type.Object(
    {
      userId: uuid(),
      displayName: Type.String(),
      clientId: Type.String(),
      agentRunId: nullable(uuid()),
    },
    { title: 'DeploymentRequester' },
  ),
  progress: Type.Object(
    {
      stage: Type.Enum(['queue', 'validate', 'apply', 'done']),
      position: nullable(
        Type.Integer({ description: 'Deployments of this tenant that come first; only while queued.' }),
      ),
      done: Type.Integer({ description: 'Components that are done.' }),
      total: Type.Integer({ description: 'Components that change.' }),
    },
    { title: 'DeploymentProgress' },
  ),
  manifestHash: hash('Identity of files and package.'),
  planHash: nullable(hash('Identity of the changes.')),
  metadataVersionBefore: nullable(Type.Integer()),
  metadataVersionAfter: nullable(Type.Integer()),
  error: nullable(DeploymentError),
  cancelRequested: Type.Boolean({
    description: 'Cancellation was requested. The deployment is SUCCEEDED all the same if its last step had begun.',
  }),
  canceledBy: nullable(uuid('User who asked to cancel it.')),
  cancelReason: nullable(Type.String({ description: 'Given reason, for users who may read configuration.' })),
};

const DeploymentSummary = Type.Object(deploymentFields, { title: 'DeploymentSummary' });

const QuickDeployState = Type.Object(
  {
    eligible: Type.Boolean({
      description: 'As far as can be seen without planning again, which the deployment does when it is accepted.',
    }),
    validUntil: nullable(timestamp('null: it has not succeeded.')),
    usedByDeploymentId: nullable(uuid('The deployment that has used it, unless that one failed or was canceled.')),
  },
  { title: 'QuickDeployState', description: 'Of a recorded validation: whether a quick deploy can use it.' },
);

const RollbackBlocker = Type.Object(
  {
    type: Type.String({ description: 'Type of a component; `Deployment` when it is about the deployment itself.' }),
    fullName: Type.String({ description: 'Name of the component, or id of the deployment.' }),
    reason: Type.Enum([...ROLLBACK_BLOCKERS]),
  },
  { title: 'RollbackBlocker' },
);

const RollbackState = Type.Object(
  {
    eligible: Type.Boolean(),
    blockers: Type.Array(RollbackBlocker, {
      description: 'Problems that block a rollback. Users who may read metadata see the components.',
    }),
    revertedByDeploymentId: nullable(uuid('The rollback in effect that took this deployment back.')),
    revertsDeploymentId: nullable(uuid('Of a rollback: the deployment that it takes back.')),
  },
  { title: 'RollbackState', description: 'Whether the deployment can be rolled back.' },
);

const Deployment = Type.Object(
  {
    ...deploymentFields,
    changes: Type.Object(changeLists),
    blocked: Type.Array(Problem),
    warnings: Type.Array(Problem),
    quickDeploy: nullable(QuickDeployState),
    rollback: nullable(RollbackState),
  },
  { title: 'Deployment' },
);

const EXAMPLE_PACKAGE = { version: 1, types: [{ name: 'CustomField', members: ['Invoice__c.Amount__c'] }] };
const EXAMPLE_PATH = 'objects/Invoice__c/fields/Amount__c.yaml';
const EXAMPLE_YAML =
  'type: CustomField\napiName: Amount__c\nobject: Invoice__c\nlabel: Amount\nfieldType: currency\nrequired: true\nprecision: 18\nscale: 2\n';
const EXAMPLE_HASH = 'sha256:2f1b6a6f0d0ed8b2d5a1f8d2d3a4c0b61c2ef2a4d7ad3a6f5f1e9c7b80d1e2f3';
const EXAMPLE_ID = '0193d3c1-7a20-7c11-8a55-2f0e4b6c9d01';
const EXAMPLE_USER = '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33';

const EXAMPLE_CHANGE = {
  type: 'CustomField',
  fullName: 'Invoice__c.Amount__c',
  path: EXAMPLE_PATH,
  properties: [{ name: 'required', from: null, to: true }],
  destructive: false,
  impact: { records: 1204, dependents: [] },
  reversible: true,
};

const EXAMPLE_VALIDATION = {
  valid: true,
  blocked: [],
  warnings: [],
  creates: [],
  updates: [EXAMPLE_CHANGE],
  deletes: [],
  noops: [],
  manifestHash: EXAMPLE_HASH,
  planHash: EXAMPLE_HASH,
  metadataVersion: 7,
  validatedAt: '2026-11-21T00:01:22.123+00:00',
};

const EXAMPLE_DEPLOYMENT = {
  deploymentId: EXAMPLE_ID,
  status: 'SUCCEEDED',
  kind: 'deploy',
  checkOnly: false,
  allowDestructiveChanges: false,
  createdAt: '2026-11-21T00:01:22.123+00:00',
  startedAt: '2026-11-21T00:01:22.481+00:00',
  finishedAt: '2026-11-21T00:01:22.93+00:00',
  createdBy: { userId: EXAMPLE_USER, displayName: 'Ada Berger', clientId: 'demo-cli', agentRunId: null },
  progress: { stage: 'done', position: null, done: 1, total: 1 },
  manifestHash: EXAMPLE_HASH,
  planHash: EXAMPLE_HASH,
  metadataVersionBefore: 7,
  metadataVersionAfter: 8,
  error: null,
  cancelRequested: false,
  canceledBy: null,
  cancelReason: null,
};

const EXAMPLE_PLAN = {
  changes: { creates: [], updates: [EXAMPLE_CHANGE], deletes: [], noops: [] },
  blocked: [],
  warnings: [],
};

/** Body of a retrieve. */
export const RetrieveBody = Type.Object({ package: Package }, { ...closed, title: 'RetrieveBody' });

const projectFields = {
  files: Files,
  package: Type.Optional(Package),
  allowDestructiveChanges: Type.Optional(
    Type.Boolean({ description: 'Only for deletions that the destructive manifest names; default: false.' }),
  ),
  baseMetadataVersion: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 2_147_483_647,
      description:
        'metadataVersion of the retrieve that the files come from. A component of the package that has changed since is 409, or fails the deployment.',
    }),
  ),
};

/** Body of a validation. */
export const ValidateBody = Type.Object(projectFields, { ...closed, title: 'ValidateBody' });

const checkOnly = Type.Optional(
  Type.Boolean({ description: 'Do everything except keeping the result; default: false.' }),
);

/** Body of a deployment of files. */
export const DeployProjectBody = Type.Object(
  {
    ...projectFields,
    checkOnly,
    expectedPlanHash: Type.Optional(hash('planHash of the plan that was reviewed; another plan is not applied.')),
  },
  { ...closed, title: 'DeployProjectBody', description: 'Deploys files.' },
);

/** Body of a deployment of what was validated before. */
export const QuickDeployBody = Type.Object(
  {
    quickDeploy: Type.Object(
      {
        validationId: uuid('deploymentId of a recorded validation (checkOnly) that has succeeded.'),
        expectedManifestHash: Type.Optional(hash('manifestHash of the files that were validated.')),
      },
      closed,
    ),
  },
  { ...closed, title: 'QuickDeployBody', description: 'Deploys the files of a recorded validation, once.' },
);

/** Body of a deployment that takes another one back. */
export const RollbackBody = Type.Object(
  { rollback: Type.Object({ deploymentId: uuid('The deployment to take back.'), checkOnly }, closed) },
  { ...closed, title: 'RollbackBody', description: 'Takes a deployment back.' },
);

/** Body of a deployment. */
const DeployBody = Type.Union([DeployProjectBody, QuickDeployBody, RollbackBody], { title: 'DeployBody' });

const CancelBody = Type.Object(
  {
    reason: Type.Optional(Type.String({ maxLength: LIMITS.comment_max_chars, description: 'For the trail.' })),
  },
  { ...closed, title: 'CancelDeploymentBody' },
);

const deploymentId = defineParameter({
  name: 'deploymentId',
  required: true,
  description: 'Id of the deployment (UUID in lower case).',
  schema: Type.String({ format: 'uuid' }),
  example: EXAMPLE_ID,
});

const PROJECT_ERRORS = [
  'BODY_REQUIRED',
  'BODY_PROPERTY_UNKNOWN',
  'BODY_PROPERTY_FORBIDDEN',
  'PARAMETER_INVALID',
  'PARAMETER_REQUIRED',
  'PACKAGE_INVALID',
  'FILE_PATH_INVALID',
  'YAML_INVALID',
  'METADATA_PERMISSION_DENIED',
  'METADATA_DRIFT',
  'REQUEST_TOO_LARGE',
  'TOO_MANY_ITEMS',
] as const;

const METADATA_OPERATIONS = [
  defineOperation({
    tag: 'metadata',
    operationId: 'metadata.components.retrieve',
    method: 'POST',
    mutation: false,
    path: '/metadata/retrieve',
    summary: 'Retrieve configuration as files',
    description:
      'Returns the selected components as canonical YAML with their manifest, without dependencies that are not selected. Validate or deploy the whole tree; an unchanged tree is a plan without changes.',
    scopes: ['setup:read'],
    permission: 'metadataRead',
    cost: 5,
    mcp: { tool: 'metadata_retrieve' },
    requestBody: {
      required: true,
      schema: RetrieveBody,
      maxBytes: LIMITS.body_max_bytes,
      validate: false,
      kind: 'raw',
      example: { package: EXAMPLE_PACKAGE },
    },
    response: {
      status: 200,
      description: 'Files, manifest and what was not found.',
      schema: Retrieved,
      example: {
        files: { [EXAMPLE_PATH]: EXAMPLE_YAML },
        manifestHash: EXAMPLE_HASH,
        generatedAt: '2026-11-21T00:01:22.123+00:00',
        metadataVersion: 8,
        package: EXAMPLE_PACKAGE,
        components: [
          {
            type: 'CustomField',
            fullName: 'Invoice__c.Amount__c',
            path: EXAMPLE_PATH,
            hash: EXAMPLE_HASH,
            updatedAt: '2026-11-20T09:12:00+00:00',
            updatedById: EXAMPLE_USER,
          },
        ],
        notFound: [],
      },
    },
    errors: [
      'BODY_REQUIRED',
      'BODY_PROPERTY_UNKNOWN',
      'PARAMETER_REQUIRED',
      'PACKAGE_INVALID',
      'METADATA_PERMISSION_DENIED',
      'TOO_MANY_ITEMS',
      'REQUEST_TOO_LARGE',
    ],
    action: 'metadata.components.retrieve',
  }),
  defineOperation({
    tag: 'metadata',
    operationId: 'metadata.components.validate',
    method: 'POST',
    mutation: false,
    path: '/metadata/validate',
    summary: 'Plan a deployment without applying it',
    description:
      'Returns the changes that a deployment of the project would make, and its problems. `valid: true` does not mean that it was applied.',
    scopes: ['metadata:deploy'],
    permission: 'metadataRead',
    cost: 5,
    // It counts records of whole tables.
    statementTimeoutMs: LIMITS.statement_timeout_ms,
    mcp: { tool: 'metadata_validate' },
    requestBody: {
      required: true,
      schema: ValidateBody,
      maxBytes: LIMITS.metadata_body_max_bytes,
      validate: false,
      kind: 'raw',
      example: { files: { [EXAMPLE_PATH]: EXAMPLE_YAML }, package: EXAMPLE_PACKAGE, baseMetadataVersion: 7 },
    },
    response: {
      status: 200,
      description: 'The plan.',
      schema: Validation,
      example: EXAMPLE_VALIDATION,
    },
    errors: PROJECT_ERRORS,
    action: 'metadata.components.validate',
  }),
  defineOperation({
    tag: 'metadata',
    operationId: 'metadata.deployments.create',
    method: 'POST',
    path: '/metadata/deploy',
    summary: 'Deploy configuration',
    description:
      'Queues a deployment, which is applied in one transaction after the earlier ones of the tenant, even if the client stops waiting. `checkOnly: true` records a validation instead. The body is a project, `quickDeploy` (of a recorded validation) or `rollback` (of a deployment).',
    scopes: ['metadata:deploy'],
    permission: 'metadataManage',
    risk: 'high',
    stepUp: true,
    givesAccess: { scope: 'metadata:deploy' },
    cost: 10,
    dryRun: true,
    changes: { kind: 'configuration' },
    requestBody: {
      required: true,
      schema: DeployBody,
      maxBytes: LIMITS.metadata_body_max_bytes,
      validate: false,
      kind: 'raw',
      example: {
        files: { [EXAMPLE_PATH]: EXAMPLE_YAML },
        package: EXAMPLE_PACKAGE,
        checkOnly: false,
        baseMetadataVersion: 7,
      },
    },
    response: {
      status: 202,
      description: 'The deployment is queued.',
      schema: Type.Object(
        {
          deploymentId: uuid(),
          status: Type.Literal('QUEUED'),
          checkOnly: Type.Boolean(),
          manifestHash: hash('Identity of files and package.'),
          links: Type.Object({ self: Type.String() }),
        },
        { title: 'QueuedDeployment' },
      ),
      headers: { Location: { description: 'Address of the deployment.', schema: Type.String() } },
      example: {
        deploymentId: EXAMPLE_ID,
        status: 'QUEUED',
        checkOnly: false,
        manifestHash: EXAMPLE_HASH,
        links: { self: `${API_PREFIX}/metadata/deployments/${EXAMPLE_ID}` },
      },
    },
    errors: [
      ...PROJECT_ERRORS,
      'PARAMETER_CONFLICT',
      'PLAN_CHANGED',
      'DESTRUCTIVE_CHANGES_NOT_ALLOWED',
      'QUICK_DEPLOY_NOT_ELIGIBLE',
      'ROLLBACK_NOT_ELIGIBLE',
    ],
    action: 'metadata.deployments.create',
  }),
  defineOperation({
    tag: 'metadata',
    operationId: 'metadata.deployments.list',
    method: 'GET',
    path: '/metadata/deployments',
    summary: 'List deployments',
    description: 'Deployments and recorded validations of the tenant, newest first, without their plans.',
    scopes: ['setup:read'],
    queryParameters: [
      {
        name: 'status',
        description: 'Only deployments in this state.',
        schema: StatusSchema,
        example: 'SUCCEEDED',
      },
      {
        name: 'checkOnly',
        description: 'Only recorded validations (true) or only deployments (false).',
        schema: Type.Boolean(),
        example: false,
      },
      take,
      cursor,
    ],
    response: {
      status: 200,
      description: 'A page of deployments.',
      schema: Type.Object(
        {
          records: Type.Array(DeploymentSummary),
          nextCursor,
        },
        { title: 'DeploymentPage' },
      ),
      example: { records: [EXAMPLE_DEPLOYMENT], nextCursor: null },
    },
    errors: ['CURSOR_INVALID', 'CURSOR_EXPIRED', 'CURSOR_QUERY_MISMATCH'],
    action: 'metadata.deployments.list',
  }),
  defineOperation({
    tag: 'metadata',
    operationId: 'metadata.deployments.get',
    method: 'GET',
    path: '/metadata/deployments/{deploymentId}',
    summary: 'Read a deployment',
    description:
      'State, plan and outcome of one deployment. The lists of the plan (changes, blocked, warnings) are empty for users who may not read metadata.',
    scopes: ['setup:read'],
    freePoll: true,
    mcp: { tool: 'metadata_deployment_get' },
    pathParameters: [deploymentId],
    response: {
      status: 200,
      description: 'The deployment.',
      schema: Deployment,
      example: {
        ...EXAMPLE_DEPLOYMENT,
        ...EXAMPLE_PLAN,
        quickDeploy: null,
        rollback: { eligible: true, blockers: [], revertedByDeploymentId: null, revertsDeploymentId: null },
      },
    },
    errors: ['DEPLOYMENT_NOT_FOUND'],
    action: 'metadata.deployments.get',
  }),
  defineOperation({
    tag: 'metadata',
    operationId: 'metadata.deployments.cancel',
    method: 'POST',
    path: '/metadata/deployments/{deploymentId}/cancel',
    summary: 'Cancel a deployment',
    description:
      'For the user who requested the deployment, and users with `manageAccess`. A waiting deployment is CANCELED at once; a running one is CANCELING until its transaction is rolled back, or SUCCEEDED with `cancelRequested: true` if its last step has begun.',
    scopes: ['metadata:deploy'],
    permission: 'metadataManage',
    risk: 'medium',
    ...TRIED,
    changes: { kind: 'end' },
    pathParameters: [deploymentId],
    requestBody: {
      required: false,
      schema: CancelBody,
      maxBytes: LIMITS.body_max_bytes,
      example: { reason: 'Wrong branch.' },
    },
    response: {
      status: 202,
      description: 'The deployment as it is now.',
      schema: Deployment,
      example: {
        ...EXAMPLE_DEPLOYMENT,
        ...EXAMPLE_PLAN,
        status: 'CANCELING',
        finishedAt: null,
        progress: { stage: 'apply', position: null, done: 0, total: 1 },
        metadataVersionAfter: null,
        cancelRequested: true,
        canceledBy: EXAMPLE_USER,
        cancelReason: 'Wrong branch.',
        quickDeploy: null,
        rollback: {
          eligible: false,
          blockers: [{ type: 'Deployment', fullName: EXAMPLE_ID, reason: 'NOT_SUCCEEDED' }],
          revertedByDeploymentId: null,
          revertsDeploymentId: null,
        },
      },
    },
    errors: ['METADATA_PERMISSION_DENIED', 'DEPLOYMENT_NOT_FOUND', 'DEPLOYMENT_NOT_CANCELABLE', 'WRITE_CONTENTION'],
    action: 'metadata.deployments.cancel',
  }),
  defineOperation({
    tag: 'metadata',
    operationId: 'metadata.types.list',
    method: 'GET',
    path: '/metadata/types',
    summary: 'List types of components',
    description: 'Component types that can be retrieved and deployed: names, paths and the JSON Schema of the files.',
    scopes: ['setup:read'],
    mcp: { resource: 'erp://metadata/types', name: 'Types of components' },
    response: {
      status: 200,
      description: 'All types.',
      schema: Type.Object(
        {
          records: Type.Array(
            Type.Object({
              type: Type.String(),
              memberFormat: Type.String(),
              pathPattern: Type.String({ description: '`{object}` and `{apiName}` stand for names.' }),
              schema: Type.Object({}, { additionalProperties: true, description: 'JSON Schema 2020-12 of a file.' }),
              dependsOn: Type.Array(Type.String(), { description: 'Types of which its components name others.' }),
              retrievable: Type.Boolean(),
              deployable: Type.Boolean(),
              reversible: Type.Boolean(),
            }),
          ),
          nextCursor,
        },
        { title: 'MetadataTypeList' },
      ),
      example: {
        records: [
          {
            type: 'CustomField',
            memberFormat: '<Object>.<Field>',
            pathPattern: 'objects/{object}/fields/{apiName}.yaml',
            schema: { type: 'object' },
            dependsOn: ['CustomObject', 'CustomField', 'ValueSet'],
            retrievable: true,
            deployable: true,
            reversible: true,
          },
        ],
        nextCursor: null,
      },
    },
    errors: [],
    action: 'metadata.types.list',
  }),
] as const;

export const SERVICE = {
  purpose: 'Tenants, their shape, and deployments.',
  listens: 'health',
  awaitedByGateway: true,
  kubernetes: {
    replicas: { min: 2, max: 4 },
    connections: 4,
    requests: { cpu: '250m', memory: '256Mi' },
    limits: { cpu: '1', memory: '1Gi' },
  },
  database: {
    tenants: 'owner',
    jobs: true,
    schemas: ['seed'],
    routines: ['metadata.create_tenant_schema', 'metadata.erase_rows', 'metadata.erase_tenant', 'metadata.find_traces'],
  },
  operations: METADATA_OPERATIONS,
  guidance: METADATA_GUIDANCE,
  calls: [
    'auth.domains.list',
    'bulk.tenants.erase',
    'data.users.get',
    'files.tenants.erase',
    // The demo tenants are made by the process that has metadata.
    'auth.domains.add',
    'data.samples.load',
    'data.users.provision',
  ],
  forOperators: [
    'metadata.jobs.listDead',
    'metadata.jobs.sendDeadAgain',
    'metadata.templates.deploy',
    'metadata.tenants.cancelDeployment',
    'metadata.tenants.create',
    'metadata.tenants.delete',
    'metadata.tenants.describe',
    'metadata.tenants.findTraces',
    'metadata.tenants.get',
    'metadata.tenants.list',
    'metadata.tenants.listDeletions',
    'metadata.tenants.listDeployments',
    'metadata.tenants.listLimits',
    'metadata.tenants.rename',
    'metadata.tenants.resume',
    'metadata.tenants.setLimits',
    'metadata.tenants.suspend',
    'metadata.tenants.undelete',
  ],
  repeatable: [
    'metadata.dashboards.list',
    'metadata.snapshots.get',
    'metadata.tenants.describe',
    'metadata.tenants.findTraces',
    'metadata.tenants.get',
    'metadata.tenants.list',
    'metadata.tenants.listDeletions',
    'metadata.tenants.listLimits',
  ],
  emits: ['events.log.written', 'metadata.schema.changed', 'metadata.tenant.changed'],
  consent: {
    'setup:read': { area: 'configuration', text: 'Read the configuration of the company.' },
    'metadata:deploy': {
      area: 'configuration',
      text: 'Change the configuration of the company.',
      forAssistants: 'Check changes of the configuration. It cannot deploy them.',
    },
  },
  moving: {
    parts: [
      {
        name: 'versions',
        table: 'metadata.versions',
        group: 'trail',
        // The present one is made by the import.
        where: 't.version < (SELECT metadata_version FROM metadata.tenants WHERE id = t.tenant_id)',
      },
      {
        name: 'deployments',
        table: 'metadata.deployments',
        group: 'trail',
        omit: ['queue_number', 'lease_token', 'lease_until', 'worker'],
        where: "t.status IN ('SUCCEEDED', 'FAILED', 'CANCELED')",
        order: 't.queue_number',
        // They are shown, and cannot be rolled back: what they have deleted does not travel.
        stored: { forgotten: 'true', files: "'{}'::json", inverse_plan: 'NULL' },
      },
    ],
    made: ['metadata.tenants', 'metadata.components', 'metadata.snapshots'],
    leftBehind: ['metadata.deleted_components', 'metadata.version_components'],
  },
} as const satisfies ServiceDeclaration<typeof METADATA_OPERATIONS>;
