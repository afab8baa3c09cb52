/**
 * Types of events: what each one tells, about what, and whom. The schemas are published with the documents, and are what
 * `dataschema` of an event leads to. Source: docs/reference/events.md.
 */
import { type TSchema, Type } from 'typebox';
import { nullable } from '../lib/operation.ts';
import type { SystemPermission } from '../lib/schema/snapshot.ts';

interface EventType {
  readonly summary: string;
  readonly data: TSchema;
  /**
   * `record`: who can read the record. `people`: whom the event concerns, as it was written. A permission: its holders,
   * and who has done or owns what the event is about.
   */
  readonly audience: 'record' | 'people' | SystemPermission;
  /** The noun and the property of the data that name what it is about; of a record: its object and id. */
  readonly about: readonly [noun: string, property: string] | null;
}

/** Why nothing more is sent to a receiver. */
export const SUSPENSION_REASONS = ['failing', 'gone', 'userInactive', 'connectionEnded', 'clientDisabled'] as const;
export type SuspensionReason = (typeof SUSPENSION_REASONS)[number];

const closed = { additionalProperties: false };
const id = Type.String({ format: 'uuid' });
const text = Type.String();
const Values = nullable(Type.Record(Type.String(), Type.Unknown()));

const EventActor = Type.Object(
  { userId: nullable(text), clientId: nullable(text), agentRunId: nullable(text) },
  { ...closed, title: 'EventActor', description: 'User, client and agent run; null for acts of the platform.' },
);

const RecordChange = Type.Object(
  {
    objectApiName: text,
    id,
    recordVersion: Type.Integer(),
    etag: text,
    changedFields: Type.Array(text, { description: 'Those that the reader may read.' }),
    before: { ...Values, description: 'Values of the changed fields before; null in thin events and for new records.' },
    after: { ...Values, description: 'The same after the change; null in thin events and for deleted records.' },
    transition: nullable(Type.Object({ key: text, fromState: nullable(text), toState: nullable(text) })),
    transactionId: Type.String({ description: 'The same for all changes that were committed together.' }),
    transactionIndex: Type.Integer(),
    transactionSize: Type.Integer(),
    actor: EventActor,
    requestId: text,
  },
  { ...closed, title: 'RecordEventData' },
);

const record = (summary: string): EventType => ({ summary, data: RecordChange, audience: 'record', about: null });

const other = (
  audience: 'people' | SystemPermission,
  about: EventType['about'],
  summary: string,
  properties: Record<string, TSchema>,
): EventType => ({
  summary,
  audience,
  about,
  data: Type.Object({ ...properties, actor: EventActor, requestId: text }),
});

const run = (summary: string, properties: Record<string, TSchema> = { agentKey: text }): EventType =>
  other('approveAgentActions', ['runs', 'runId'], summary, { runId: id, ...properties });
const approval = (summary: string, properties: Record<string, TSchema> = {}): EventType =>
  other('approveAgentActions', ['approvals', 'approvalId'], summary, { approvalId: id, runId: id, ...properties });
const job = (summary: string): EventType =>
  other('viewAllData', ['jobs', 'jobId'], summary, {
    jobId: id,
    operation: text,
    objectApiName: text,
    succeeded: Type.Integer(),
    failed: Type.Integer(),
  });
const file = (summary: string): EventType =>
  other('viewAllData', ['files', 'fileId'], summary, { fileId: id, sha256: text });

const deployment = (summary: string): EventType =>
  other('metadataRead', ['deployments', 'deploymentId'], summary, {
    deploymentId: id,
    userId: { ...id, description: 'Who has asked for the deployment.' },
    kind: Type.Enum(['deploy', 'validation', 'quickDeploy', 'rollback'] as const),
    checkOnly: Type.Boolean(),
  });
const calendarEvent = (summary: string): EventType =>
  other('people', ['events', 'eventId'], summary, { eventId: id, userId: id });

const subscription = (summary: string, properties: Record<string, TSchema>): EventType =>
  other('manageClients', ['subscriptions', 'subscriptionId'], summary, {
    subscriptionId: id,
    userId: id,
    ...properties,
  });

export const EVENT_TYPES: Readonly<Record<string, EventType>> = {
  'data.record.created': record('A record was created.'),
  'data.record.updated': record('Fields of a record changed.'),
  'data.record.deleted': record('A record was moved to the recycle bin.'),
  'data.record.restored': record('A record came back from the recycle bin.'),
  'data.record.transitioned': record('A transition or action was executed on a record.'),
  'metadata.deployment.queued': deployment('A deployment was accepted.'),
  'metadata.deployment.validating': deployment('A deployment is being planned.'),
  'metadata.deployment.applying': deployment('The plan of a deployment is being applied.'),
  'metadata.deployment.succeeded': deployment('A deployment or validation ended as intended.'),
  'metadata.deployment.failed': deployment('A deployment ended without any change.'),
  'metadata.deployment.canceled': deployment('A deployment was canceled.'),
  'metadata.schema.changed': other('metadataRead', ['metadata', 'metadataVersion'], 'The configuration changed.', {
    metadataVersion: Type.Integer(),
    deploymentId: nullable(text),
  }),
  'analytics.dashboard.published': other('viewAllData', ['dashboards', 'dashboardId'], 'A dashboard was published.', {
    dashboardId: id,
    revision: Type.Integer(),
    comment: nullable(text),
  }),
  'analytics.dashboard.deleted': other('viewAllData', ['dashboards', 'dashboardId'], 'A dashboard was deleted.', {
    dashboardId: id,
    revision: Type.Integer(),
  }),
  'agent.run.created': run('An agent began a run.'),
  'agent.run.waitingApproval': run('A run waits for an approval.', { approvalId: id }),
  'agent.run.completed': run('A run ended as intended.'),
  'agent.run.failed': run('A run ended without success.'),
  'agent.run.canceled': run('A run was canceled.'),
  'agent.run.expired': run('The time of a run is over.'),
  'agent.run.reverted': run('What a run had changed was taken back.', {
    reverted: Type.Integer(),
    skipped: Type.Integer(),
  }),
  'agent.approval.requested': approval('An agent asks people for an approval.', { operationId: text }),
  'agent.approval.decided': approval('A person decided about an approval.', { decision: text, status: text }),
  'agent.approval.expired': approval('An approval was not decided or used in time.'),
  'agent.approval.consumed': approval('What was approved has been done.', { operationId: text }),
  'bulk.job.completed': job('A bulk job went through all of its rows.'),
  'bulk.job.failed': job('A bulk job ended before its last row.'),
  'bulk.job.canceled': job('A bulk job was canceled.'),
  'files.file.ready': file('A file can be read.'),
  'files.file.quarantined': file('Malware was found in a file.'),
  'files.file.deleted': file('A file was deleted.'),
  'notifications.notification.created': other(
    'people',
    ['notifications', 'notificationId'],
    'A notification was made for a user who wants it by webhook.',
    { notificationId: id, userId: id, type: text },
  ),
  'calendar.event.created': calendarEvent('An event was entered in a calendar.'),
  'calendar.event.updated': calendarEvent('An event was changed, or somebody answered.'),
  'calendar.event.deleted': calendarEvent('An event, or instances of a series, were deleted.'),
  'me.connection.revoked': other(
    'manageClients',
    ['connections', 'connectionId'],
    'A connection was ended by its user.',
    {
      connectionId: text,
      userId: id,
    },
  ),
  'events.subscription.suspended': subscription('Nothing more is sent to a receiver.', {
    name: text,
    reason: Type.Enum([...SUSPENSION_REASONS]),
  }),
  'events.subscription.tested': subscription('A test of a subscription was asked for.', { deliveryId: id }),
};

/** The JSON Schema of the data of an event, as it is published. */
export const eventSchema = (type: string): object => ({
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: type,
  description: EVENT_TYPES[type]?.summary,
  ...EVENT_TYPES[type]?.data,
});

export const EVENT_TYPE_NAMES: readonly string[] = Object.keys(EVENT_TYPES);
