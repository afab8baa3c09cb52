/** Public operations and internal actions of data. */
import type { RecordOperation } from '../lib/access/decide.ts';
import type { PRINCIPAL_TYPES } from '../lib/access/sharing.ts';
import type { Asker } from '../lib/context.ts';
import type { PlatformErrorWire } from '../lib/errors/platform-error.ts';
import type { ActionsOf } from '../lib/operation.ts';
import type { SystemPermission } from '../lib/schema/snapshot.ts';
import { AGENT_RUN_OPERATIONS } from './data/agent-runs.ts';
import type { AggregateQuery, AggregateResult, ObjectCatalog } from './data/aggregate.ts';
import { CHECK_OPERATIONS } from './data/check.ts';
import type { ObjectColumns, SegmentToWrite, SegmentWritten } from './data/columns.ts';
import { COMPOSITE_OPERATIONS } from './data/composite.ts';
import { CONNECTION_OPERATIONS } from './data/connections.ts';
import type { EventRecords, EventRecordsQuestion } from './data/event-records.ts';
import { EXPLAIN_OPERATIONS } from './data/explain.ts';
import { type EmailDigest, ME_OPERATIONS } from './data/me.ts';
import { OBJECT_OPERATIONS } from './data/objects.ts';
import { RECORD_OPERATIONS } from './data/records.ts';
import type { RowsToWrite, RowsWritten } from './data/row-writes.ts';
import { SHARE_OPERATIONS } from './data/shares.ts';
import { TRAIL_OPERATIONS, type Verification, type VerifyRequest } from './data/trail.ts';
import { TRANSITION_OPERATIONS } from './data/transitions.ts';
import { USER_OPERATIONS } from './data/users.ts';
import type { ServiceDeclaration } from './declaration.ts';
import type { AttachedFile, FileQuestion, FileRecord } from './files.ts';
import { DATA_GUIDANCE } from './guidance/data.ts';
import type { ScimActions } from './scim.ts';

export const DATA_OPERATIONS = [
  ...OBJECT_OPERATIONS,
  ...RECORD_OPERATIONS,
  ...CHECK_OPERATIONS,
  ...TRANSITION_OPERATIONS,
  ...TRAIL_OPERATIONS,
  ...SHARE_OPERATIONS,
  ...EXPLAIN_OPERATIONS,
  ...ME_OPERATIONS,
  ...CONNECTION_OPERATIONS,
  ...USER_OPERATIONS,
  ...AGENT_RUN_OPERATIONS,
  ...COMPOSITE_OPERATIONS,
] as const;

type PrincipalType = (typeof PRINCIPAL_TYPES)[number];

export interface UserIdentity {
  id: string;
  username: string;
  displayName: string;
  email: string | null;
  active: boolean;
  locale: string | null;
  timezone: string | null;
  emailDigest: EmailDigest | null;
  profileApiName: string;
  roleApiName: string | null;
  permissionSetApiNames: string[];
  managerId: string | null;
  apiEnabled: boolean;
  systemPermissions: string[];
  /** When the record was last changed, in seconds since 1970. */
  updatedAt: number;
}

/** A record by its name. */
export interface RecordName {
  readonly objectApiName: string;
  readonly id: string;
}

export interface ReadableRecord extends RecordName {
  /** As people know it; null: it has none, or the asker cannot read it. */
  readonly name: string | null;
}

export interface UserAccess {
  metadataVersion: number;
  accessVersion: number;
  /** IANA name; the tenant's when the user has none. */
  timezone: string;
  systemPermissions: string[];
  /** Roles whose shares the user receives: their own and those below it. */
  roles: string[];
  groups: string[];
}

/**
 * A record by its id, by its id in the recycle bin, or by an external id under which that user finds it, if there is
 * one.
 */
export type AskedRecord =
  | { readonly id: string }
  | { readonly deletedId: string }
  | { readonly externalIdField: string; readonly value: string; readonly foundBy: string };

/** Why a sign-in was refused, for administrators of the tenant; the page shows less. Source: docs/reference/audit.md. */
export type SignInRefusalCode =
  | 'USER_UNKNOWN'
  | 'PASSWORD_WRONG'
  | 'PASSWORD_NOT_SET'
  | 'USER_INACTIVE'
  | 'CLIENT_NOT_ALLOWED'
  | 'SECOND_FACTOR_WRONG'
  | 'SINGLE_SIGN_ON_REQUIRED'
  | 'SINGLE_SIGN_ON_FAILED'
  | 'IDENTITY_NOT_VERIFIED'
  | 'IDENTITY_OF_ANOTHER'
  | 'SIGN_IN_BLOCKED';

export interface DataActions extends ActionsOf<typeof DATA_OPERATIONS>, ScimActions {
  /** The ids of those grants that live now, and whose client is active: for gateways that cannot ask auth. */
  'data.grants.confirm': {
    params: { grants: readonly { tenantId: string; grantId: string; clientId: string; userId: string }[] };
    result: string[];
  };
  /** The user behind a token, with what decides about access; null when absent. */
  'data.users.get': { params: { tenantId: string; userId: string }; result: UserIdentity | null };
  /** Those of the users that there are; language and time zone are the tenant's where a user has none. */
  'data.users.list': { params: { tenantId: string; userIds: readonly string[] }; result: UserIdentity[] };
  /**
   * Rights of the user behind the request on things that are shared with people, and a name for their view of the
   * records: at the versions of configuration and permissions as they are now. Throws TOKEN_REVOKED.
   */
  'data.users.access': { params: { tenantId: string; userId: string }; result: UserAccess };
  /**
   * Checks whether the user could execute operations on an object, and on its record when one is named: the reason why not, else null.
   * `values` are those of its fields as a body has them: of a standard object the user must be allowed to make that change.
   * `references` are those of them that name other records, which must be such as the user can read, and `input` is that of
   * the transition, whose effects are held to the same. A parent that controls the record must be one that the user may
   * change. `readsRecord`: they see the record, or no record is named. Throws OBJECT_NOT_FOUND for an object that
   * the user cannot read.
   */
  'data.access.check': {
    params: {
      tenantId: string;
      userId: string;
      objectApiName: string;
      record: AskedRecord | null;
      operations: readonly RecordOperation[];
      transitionKey: string | null;
      values: Readonly<Record<string, unknown>>;
      references: Readonly<Record<string, unknown>>;
      input?: Readonly<Record<string, unknown>>;
    };
    result: { readsRecord: boolean; refusal: PlatformErrorWire | null };
  };
  /** Indices of the principals that cannot be shared with. */
  'data.principals.check': {
    params: {
      tenantId: string;
      userId: string;
      principals: readonly { principalType: PrincipalType; principalId: string }[];
    };
    result: number[];
  };
  /**
   * Active users who hold a system permission, in the order of their ids from after `after`. `next`: where to go on; null:
   * these are the last.
   */
  'data.users.holding': {
    params: { tenantId: string; systemPermission: SystemPermission; after: string | null; take: number };
    result: { users: UserIdentity[]; next: string | null };
  };
  /** User by username, for sign-in; null when absent. */
  'data.users.find': { params: { tenantId: string; username: string }; result: UserIdentity | null };
  /**
   * Checks whether `madeBy` may let a user in at this moment by an earlier link: they are active, may manage users,
   * and hold what the user holds.
   */
  'data.users.mayLetIn': { params: { tenantId: string; userId: string; madeBy: string }; result: boolean };
  /**
   * Creates User records (administrator of a new tenant, demo users) as the platform, idempotent by username.
   * `signInNames`: what they type to sign in, by username; `tenant\name` outside of the tenant's mail domains.
   */
  'data.users.provision': {
    params: {
      tenantId: string;
      users: {
        username: string;
        email: string;
        displayName: string;
        profileApiName: string;
        roleApiName?: string | null;
        permissionSetApiNames?: string[];
        managerUsername?: string | null;
        password?: string;
        /** False: auth makes no set-password link. */
        invite?: boolean;
      }[];
    };
    result: { userIds: Record<string, string>; signInNames: Record<string, string> };
  };
  /**
   * Groups of records that `asker` can list, and measures of each. 404 OBJECT_NOT_FOUND, 400 CURSOR_*, 422
   * WIDGET_QUERY_INVALID with pointers into the query.
   */
  'data.records.aggregate': { params: { asker: Asker; query: AggregateQuery }; result: AggregateResult };
  /** Aggregations that `asker` may run by `data.records.aggregate` on an object. */
  'data.objects.catalog': {
    params: { asker: Asker; objectApiName: string; acceptLanguage?: string };
    result: ObjectCatalog;
  };
  /** The records through which `asker` can read the files: so many for each file and field. */
  'data.files.seen': { params: FileQuestion; result: FileRecord[] };
  /**
   * Ids of the files in fields of a record, as far as `asker` can read them. Throws OBJECT_NOT_FOUND and
   * RECORD_NOT_FOUND.
   */
  'data.files.ofRecord': {
    params: { asker: Asker; objectApiName: string; recordId: string };
    result: string[];
  };
  /**
   * Ids of those of the files that a record has, be it in the recycle bin: in a field, or as one of the records that are
   * named.
   */
  'data.files.referenced': { params: { tenantId: string; files: readonly AttachedFile[] }; result: string[] };
  /** The columns of files of an object, and what `asker` may do with its records. Throws OBJECT_NOT_FOUND. */
  'data.rows.describe': { params: { asker: Asker; objectApiName: string }; result: ObjectColumns };
  /** The page that `asker` gets for the body of `data.records.query`, with decimals as text. */
  'data.rows.read': {
    params: { asker: Asker; objectApiName: string; query: Readonly<Record<string, unknown>> };
    result: { page: Buffer };
  };
  /**
   * Stores a segment of a file with records that `asker` sees. Throws what `data.records.query` throws, and SERVICE_UNAVAILABLE when
   * the store fails.
   */
  'data.rows.export': { params: SegmentToWrite; result: SegmentWritten };
  /**
   * Writes rows of one object for the user of the request, at most `LIMITS.rows_max`, in one transaction. `key` is the
   * idempotency key of these rows: sent again with it they get the outcome of the first time.
   */
  'data.rows.write': { params: RowsToWrite & { readonly key: string }; result: RowsWritten };
  /**
   * The outcome of the rows that were written under a key for the user of the request, whatever they may do now. null: nothing
   * was written under it, and nothing will be.
   */
  'data.rows.settle': { params: { readonly key: string }; result: RowsWritten | null };
  /** Changes that events tell about, as far as `asker` can read them now, and what the asker may do as a whole. */
  'data.events.read': { params: EventRecordsQuestion; result: EventRecords };
  /** Those of the records that the user can see, or could when they were deleted. */
  'data.records.seen': {
    params: { tenantId: string; userId: string; records: readonly RecordName[] };
    result: RecordName[];
  };
  /** Those of the records that `asker` can read now. */
  'data.records.readable': { params: { asker: Asker; records: readonly RecordName[] }; result: ReadableRecord[] };
  /**
   * What a notification template of the record's object says to the user, with the values that they can read at this moment.
   * `actor`: display name. null: there is no such template any more, or its title is empty.
   */
  'data.templates.fill': {
    params: {
      tenantId: string;
      userId: string;
      record: RecordName;
      template: string;
      actor: string | null;
    };
    result: { title: string; body: string } | null;
  };
  /** The epoch of the tenant: another one after a restore, a move, or when another server took over. */
  'data.epochs.get': { params: { tenantId: string }; result: { epoch: string } };
  /**
   * Loads generated rows of one object as the platform: ids given, no history or events. Only for templates' sample
   * data.
   */
  'data.samples.load': {
    params: { tenantId: string; objectApiName: string; columns: string[]; rows: unknown[][] };
    result: { inserted: number };
  };
  /** Records a mutation of the request's user that was refused before it reached its service. */
  'data.audit.deny': {
    params: {
      operationId: string;
      code: string;
      objectApiName: string | null;
      recordId: string | null;
      idempotencyKey: string | null;
    };
    result: null;
  };
  /**
   * Records a refused sign-in: the user, if one matched; never the typed name. `clientId` is the application, `ip` the
   * caller's address.
   */
  'data.audit.denySignIn': {
    params: {
      tenantId: string;
      userId: string | null;
      code: SignInRefusalCode;
      clientId: string;
      ip: string;
      requestId: string;
    };
    result: null;
  };
  /** Records an action that is no user's request: by an operator, or the holder of a link. */
  'data.audit.note': {
    params: {
      tenantId: string;
      /** Of the entry: sent again it is written once. */
      auditId: string;
      operationId: string;
      /** The user it was done to. */
      userId: string | null;
      channel: 'job' | 'ui';
      /** User who did it on a page of the platform, when known. */
      actorId?: string;
      /** `{name: {from, to}}`; never a secret. */
      changes: Record<string, { from: string | null; to: string | null }> | null;
      /** Written with the entry. */
      event?: { type: string; data: Readonly<Record<string, string>> };
    };
    result: null;
  };
  /**
   * Records how many more mutations of a tenant were refused like that since `since` (RFC 3339), without an entry each.
   */
  'data.audit.suppress': { params: { tenantId: string; count: number; since: string }; result: null };
  /**
   * The records that requests of an agent run have changed, by request: in the order of the changes, at most
   * `LIMITS.request_records_max` of each, and of them those that the user can see or could before they were deleted.
   */
  'data.trail.ofRequests': {
    params: { tenantId: string; userId: string; agentRunId: string; requestIds: readonly string[] };
    result: Readonly<Record<string, readonly RecordName[]>>;
  };
  /** Puts all committed audit rows of a tenant into its chain now; a background job does the same. */
  'data.audit.seal': { params: { tenantId: string }; result: { sealed: number } };
  /** Checks a part of a tenant's audit trail against its chain; `next` of the result is `from` of the next part. */
  'data.audit.verify': { params: VerifyRequest; result: Verification };
}

const OF_OBJECTS = 't.object = ANY ({objects})';

export const SERVICE = {
  purpose: 'Records of tenants. Snapshots of the tenants it serves stay in memory.',
  listens: 'health',
  awaitedByGateway: true,
  usesContents: true,
  kubernetes: {
    replicas: { min: 2, max: 10 },
    connections: 10,
    requests: { cpu: '500m', memory: '384Mi' },
    limits: { cpu: '2', memory: '1Gi' },
  },
  database: {
    tenants: 'records',
    jobs: true,
    roleRoutines: [
      'auth.end_grant(uuid, uuid, text)',
      'auth.living_grants(uuid, text[])',
      'auth.queue_invitation(uuid, uuid)',
      'auth.add_password_link(uuid, uuid, uuid, bytea, integer)',
      'files.hold(uuid, uuid[])',
      'metadata.tenant_schema_version(uuid)',
      'metadata.tenant_suspended(uuid)',
    ],
  },
  operations: DATA_OPERATIONS,
  guidance: DATA_GUIDANCE,
  calls: [
    'agent.runs.state',
    'agent.transitions.judge',
    'auth.grants.noteEnded',
    'auth.users.mayInvite',
    'auth.users.prepareLink',
    'auth.users.sync',
    'metadata.snapshots.get',
    'metadata.tenants.list',
  ],
  forOperators: ['data.audit.seal', 'data.audit.verify', 'data.users.find', 'data.users.get', 'data.users.provision'],
  repeatable: [
    'data.access.check',
    'data.audit.verify',
    'data.events.read',
    'data.epochs.get',
    'data.files.ofRecord',
    'data.files.referenced',
    'data.files.seen',
    'data.grants.confirm',
    'data.objects.catalog',
    'data.principals.check',
    'data.records.aggregate',
    'data.records.readable',
    'data.records.seen',
    'data.rows.describe',
    'data.rows.read',
    'data.rows.settle',
    'data.rows.write',
    'data.scim.handle',
    'data.templates.fill',
    'data.trail.ofRequests',
    'data.users.access',
    'data.users.find',
    'data.users.get',
    'data.users.holding',
    'data.users.list',
    'data.users.mayLetIn',
  ],
  hears: ['auth.user.signedIn'],
  consent: {
    'data:read': { area: 'records', text: 'Read the records that you can see.' },
    'data:write': { area: 'records', text: 'Create and change records.' },
    'data:delete': { area: 'records', text: 'Delete records, and restore deleted ones.' },
    'actions:read': { area: 'records', text: 'See which steps and actions records allow.' },
    'actions:execute': { area: 'records', text: 'Take records to their next step, and run their actions.' },
    'users:manage': {
      area: 'users',
      text: 'Give people access: create, invite and change users and what they may do, make links that set their passwords, and share records and dashboards.',
    },
    'audit:read': { area: 'audit', text: 'Read who changed what, and when.' },
  },
  moving: {
    parts: [
      { name: 'shares', table: '_shares', group: 'records', omit: ['tx'], where: OF_OBJECTS },
      { name: 'recycle-bin', table: '_recycle_bin', group: 'trail', where: OF_OBJECTS },
      { name: 'trail/history', table: '_history', group: 'trail' },
      { name: 'trail/audit', table: '_audit', group: 'trail', omit: ['tx'] },
      { name: 'trail/chain', table: '_audit_chain', group: 'trail', sealed: true },
      // The snapshot and the server belong to the database in which it was sealed.
      {
        name: 'trail/head',
        table: '_audit_head',
        group: 'trail',
        omit: ['snapshot', 'server'],
        replaces: true,
        sealed: true,
      },
      // A copy is not provisioned by the clients of the original.
      { name: 'provisioning/external-ids', table: '_external_ids', group: 'trail' },
      { name: 'provisioning/deleted-users', table: '_deprovisioned_users', group: 'trail' },
    ],
    made: ['_state', '_epoch'],
    leftBehind: ['_confirmations', '_event_head', '_idempotency', '_outbox', '_revoked_shares'],
  },
} as const satisfies ServiceDeclaration<typeof DATA_OPERATIONS>;
