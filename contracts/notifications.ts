/** Public operations and internal actions of notifications. */
import { type Static, Type } from 'typebox';
import { LIMITS } from '../lib/limits.ts';
import { type Notice, SEVERITIES } from '../lib/notice.ts';
import { type ActionsOf, defineOperation, defineParameter, nullable } from '../lib/operation.ts';
import { RecordReference } from './data/record.ts';
import { cursor, effectiveTake, KEY_ERRORS, nextCursor, take } from './data/rows.ts';
import type { ServiceDeclaration } from './declaration.ts';
import { NOTIFICATIONS_GUIDANCE } from './guidance/notifications.ts';

/** Types that the platform sends by itself. */
export const PLATFORM_TYPES = [
  'agentApprovalRequested',
  'bulkJobFailed',
  'bulkJobFinished',
  'calendarEventCanceled',
  'calendarEventMoved',
  'calendarInvitation',
  'deploymentFailed',
  'deploymentFinished',
  'recordAssigned',
  'recordShared',
  'webhookSuspended',
] as const;

export type PlatformType = (typeof PLATFORM_TYPES)[number];

export const CHANNELS = ['inApp', 'email', 'push', 'webhook'] as const;

export type Channel = (typeof CHANNELS)[number];

export interface NotificationsActions extends ActionsOf<typeof NOTIFICATIONS_OPERATIONS> {
  /** Ends the mails of the user whose links have the token. */
  'notifications.mails.stop': { params: { token: string }; result: null };
  /** Notifies users. Safe to repeat. */
  'notifications.notify': { params: { tenantId: string; notice: Notice & { dedupeKey: string } }; result: null };
}

const closed = { additionalProperties: false };
const uuid = Type.String({ format: 'uuid' });
const timestamp = Type.String({ format: 'date-time' });

const SeveritySchema = Type.Enum([...SEVERITIES], { title: 'NotificationSeverity' });

const STATUSES = ['unread', 'read', 'archived'] as const;
const Status = Type.Enum([...STATUSES], { title: 'NotificationStatus' });
export type Status = (typeof STATUSES)[number];

const NotificationType = Type.String({
  pattern: '^[A-Za-z][A-Za-z0-9_]{0,79}$',
  description: 'A type of the platform, or one of your own.',
});

const NotificationActionSchema = Type.Object(
  {
    label: Type.String(),
    operationId: Type.String(),
    params: Type.Record(Type.String(), Type.String()),
  },
  { title: 'NotificationAction' },
);
export type NotificationAction = Static<typeof NotificationActionSchema>;

/** The operation of each kind of action, and the parameter of its path. */
export const NOTIFICATION_ACTIONS = {
  approval: { operationId: 'agent.approvals.get', parameter: 'approvalId' },
  deployment: { operationId: 'metadata.deployments.get', parameter: 'deploymentId' },
  event: { operationId: 'calendar.events.get', parameter: 'eventId' },
  job: { operationId: 'bulk.jobs.get', parameter: 'jobId' },
  subscription: { operationId: 'events.subscriptions.get', parameter: 'subscriptionId' },
} as const satisfies Record<NonNullable<Notice['action']>['kind'], object>;

const Notification = Type.Object(
  {
    notificationId: uuid,
    type: Type.String(),
    title: Type.String({ description: 'Plain text, in the language of the user.' }),
    body: Type.String({ description: 'Plain text; may be empty.' }),
    severity: SeveritySchema,
    record: nullable(
      Type.Object(
        {
          ...RecordReference.properties,
          name: nullable(Type.String({ description: 'null: it has none, or it is hidden.' })),
        },
        { title: 'NotificationRecord' },
      ),
    ),
    actor: nullable(Type.Object({ userId: uuid, agentRunId: nullable(uuid) }, { title: 'NotificationActor' })),
    actions: Type.Array(NotificationActionSchema, {
      description: 'Operations that the notification is an occasion for.',
    }),
    status: Status,
    createdAt: timestamp,
    readAt: nullable(timestamp),
    expiresAt: timestamp,
  },
  { title: 'UserNotification' },
);
export type NotificationBody = Static<typeof Notification>;

const DeliverySchema = Type.Object(
  {
    channel: Type.Enum([...CHANNELS], { title: 'NotificationChannel' }),
    state: Type.Enum(['queued', 'sent', 'delivered', 'failed', 'suppressed'], { title: 'NotificationDeliveryState' }),
    reason: nullable(Type.String({ description: 'Why it is `suppressed` or `failed`.' })),
    at: nullable(timestamp),
  },
  { title: 'NotificationDelivery' },
);
export type DeliveryBody = Static<typeof DeliverySchema>;

const HOUR = '^([01][0-9]|2[0-3]):[0-5][0-9]$';
const QuietHours = Type.Object(
  {
    from: Type.String({ pattern: HOUR, description: 'HH:MM in the time zone of the user.' }),
    to: Type.String({ pattern: HOUR, description: 'HH:MM; before `from`: on the next day.' }),
  },
  { ...closed, title: 'NotificationQuietHours' },
);

const Channels = Type.Object(
  { inApp: Type.Boolean(), email: Type.Boolean(), push: Type.Boolean(), webhook: Type.Boolean() },
  { title: 'NotificationChannels' },
);

const Preferences = Type.Object(
  {
    records: Type.Array(
      Type.Object(
        { type: Type.String(), channels: Channels, locked: Type.Boolean({ description: 'It cannot be changed.' }) },
        { title: 'NotificationPreference' },
      ),
    ),
    quietHours: nullable(QuietHours),
  },
  { title: 'NotificationPreferences' },
);
export type PreferencesBody = Static<typeof Preferences>;

const notificationId = defineParameter({
  name: 'notificationId',
  required: true,
  description: 'Id of the notification.',
  schema: uuid,
  example: '0193d3b4-1c2d-7e3f-8a4b-5c6d7e8f9a0b',
});
const typeParameter = defineParameter({
  name: 'type',
  description: 'Of one type alone.',
  schema: NotificationType,
  example: 'recordAssigned',
});

const EXAMPLE = {
  notificationId: notificationId.example,
  type: 'recordAssigned',
  title: 'Account assigned to you',
  body: 'Ada Lovelace made you the owner of a record.',
  severity: 'info' as const,
  record: { objectApiName: 'Account', id: '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b24', name: 'Acme GmbH' },
  actor: { userId: '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33', agentRunId: null },
  actions: [],
  status: 'unread' as const,
  createdAt: '2026-11-21T00:01:22.123Z',
  readAt: null,
  expiresAt: '2027-02-19T00:01:22.123Z',
};
const EXAMPLE_PREFERENCES = {
  records: [
    { type: 'recordAssigned', channels: { inApp: true, email: false, push: false, webhook: true }, locked: false },
  ],
  quietHours: { from: '22:00', to: '07:00' },
};

const READ = { tag: 'notifications', scopes: ['notifications:read'] } as const;
const WRITE = { tag: 'notifications', scopes: ['notifications:write'] } as const;
const CURSOR_ERRORS = ['CURSOR_INVALID', 'CURSOR_EXPIRED', 'CURSOR_QUERY_MISMATCH'] as const;

const NOTIFICATIONS_OPERATIONS = [
  defineOperation({
    ...READ,
    operationId: 'notifications.items.list',
    method: 'GET',
    path: '/notifications',
    summary: 'List notifications',
    description: 'Those of the caller, the newest first. `record` is null where the caller cannot read it any more.',
    queryParameters: [
      {
        name: 'status',
        description: '`all`: also archived ones. Default: `unread` and `read`.',
        schema: Type.Enum([...STATUSES, 'all'], { title: 'NotificationStatusFilter' }),
        example: 'unread',
      },
      typeParameter,
      take,
      cursor,
    ],
    response: {
      status: 200,
      description: 'A page of notifications.',
      schema: Type.Object(
        {
          records: Type.Array(Notification),
          nextCursor,
          unreadCount: Type.Integer({ description: 'Of all types.' }),
        },
        { title: 'NotificationList' },
      ),
      headers: effectiveTake,
      example: { records: [EXAMPLE], nextCursor: null, unreadCount: 1 },
    },
    errors: CURSOR_ERRORS,
    action: 'notifications.items.list',
  }),
  defineOperation({
    ...READ,
    operationId: 'notifications.items.get',
    method: 'GET',
    path: '/notifications/{notificationId}',
    summary: 'Read a notification',
    pathParameters: [notificationId],
    response: { status: 200, description: 'The notification.', schema: Notification, example: EXAMPLE },
    errors: ['NOTIFICATION_NOT_FOUND'],
    action: 'notifications.items.get',
  }),
  defineOperation({
    ...WRITE,
    operationId: 'notifications.items.update',
    method: 'PATCH',
    path: '/notifications/{notificationId}',
    summary: 'Mark a notification as read, unread or archived',
    risk: 'low',
    cost: 1,
    pathParameters: [notificationId],
    requestBody: {
      required: true,
      maxBytes: LIMITS.body_max_bytes,
      schema: Type.Object({ status: Status }, { ...closed, title: 'NotificationChange' }),
      example: { status: 'read' },
    },
    response: {
      status: 200,
      description: 'The notification.',
      schema: Notification,
      example: { ...EXAMPLE, status: 'read' as const, readAt: '2026-11-21T00:05:00.000Z' },
    },
    errors: [...KEY_ERRORS, 'NOTIFICATION_NOT_FOUND', 'BODY_PROPERTY_UNKNOWN'],
    action: 'notifications.items.update',
  }),
  defineOperation({
    ...WRITE,
    operationId: 'notifications.items.markAllRead',
    method: 'POST',
    path: '/notifications/mark-all-read',
    summary: 'Mark all notifications up to a time as read',
    description: '`before` is `createdAt` of the newest one that the user has seen: what arrived since stays unread.',
    risk: 'low',
    cost: 1,
    requestBody: {
      required: true,
      maxBytes: LIMITS.body_max_bytes,
      schema: Type.Object(
        { before: timestamp, type: Type.Optional(NotificationType) },
        { ...closed, title: 'NotificationMarkAllRead' },
      ),
      example: { before: EXAMPLE.createdAt },
    },
    response: {
      status: 201,
      description: 'How many were unread.',
      schema: Type.Object({ updated: Type.Integer() }, { title: 'NotificationsMarked' }),
      example: { updated: 3 },
    },
    errors: [...KEY_ERRORS, 'BODY_PROPERTY_UNKNOWN'],
    action: 'notifications.items.markAllRead',
  }),
  defineOperation({
    ...WRITE,
    operationId: 'notifications.items.send',
    method: 'POST',
    path: '/notifications',
    summary: 'Notify users',
    description:
      'As the caller, with a type of your own. Texts are plain. A recipient gets one notification of a type with the same `dedupeKey`.',
    permission: 'sendNotifications',
    risk: 'medium',
    requestBody: {
      required: true,
      maxBytes: LIMITS.body_max_bytes,
      schema: Type.Object(
        {
          type: NotificationType,
          recipients: Type.Array(uuid, {
            minItems: 1,
            maxItems: LIMITS.notification_recipients_max,
            description: 'Ids of users that the caller can see.',
          }),
          data: Type.Object(
            {
              title: Type.String({ minLength: 1, maxLength: LIMITS.notification_title_max_chars }),
              body: Type.Optional(Type.String({ maxLength: LIMITS.notification_body_max_chars })),
            },
            { ...closed, title: 'NotificationData' },
          ),
          severity: Type.Optional(SeveritySchema),
          record: Type.Optional(RecordReference),
          dedupeKey: Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.notification_dedupe_max_chars })),
        },
        { ...closed, title: 'NotificationToSend' },
      ),
      example: {
        type: 'StocktakeDue',
        recipients: ['0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33'],
        data: { title: 'The stocktake is due', body: 'Please count until Friday.' },
        dedupeKey: 'stocktake-2026-11',
      },
    },
    response: {
      status: 201,
      description: 'How many users are notified; `duplicates` had one with this `dedupeKey`.',
      schema: Type.Object({ sent: Type.Integer(), duplicates: Type.Integer() }, { title: 'NotificationsSent' }),
      example: { sent: 1, duplicates: 0 },
    },
    errors: [...KEY_ERRORS, 'BODY_PROPERTY_UNKNOWN', 'OBJECT_PERMISSION_DENIED', 'VALIDATION_FAILED'],
    action: 'notifications.items.send',
  }),
  defineOperation({
    ...READ,
    operationId: 'notifications.deliveries.list',
    method: 'GET',
    path: '/notifications/{notificationId}/deliveries',
    summary: 'List what became of a notification on each channel',
    pathParameters: [notificationId],
    response: {
      status: 200,
      description: 'One entry for each channel.',
      schema: Type.Object({ records: Type.Array(DeliverySchema), nextCursor }, { title: 'NotificationDeliveryList' }),
      example: {
        records: [
          { channel: 'inApp', state: 'delivered', reason: null, at: EXAMPLE.createdAt },
          { channel: 'email', state: 'queued', reason: null, at: EXAMPLE.createdAt },
          { channel: 'push', state: 'suppressed', reason: 'noChannel', at: EXAMPLE.createdAt },
          { channel: 'webhook', state: 'sent', reason: null, at: EXAMPLE.createdAt },
        ],
        nextCursor: null,
      },
    },
    errors: ['NOTIFICATION_NOT_FOUND'],
    action: 'notifications.deliveries.list',
  }),
  defineOperation({
    ...READ,
    operationId: 'notifications.preferences.get',
    method: 'GET',
    path: '/notifications/preferences',
    summary: 'Read which notifications arrive on which channel',
    response: { status: 200, description: 'The preferences.', schema: Preferences, example: EXAMPLE_PREFERENCES },
    errors: [],
    action: 'notifications.preferences.get',
  }),
  defineOperation({
    ...WRITE,
    operationId: 'notifications.preferences.update',
    method: 'PATCH',
    path: '/notifications/preferences',
    summary: 'Change which notifications arrive on which channel',
    description: 'Preferences that are not named stay as they are. `quietHours: null` removes them.',
    risk: 'low',
    cost: 1,
    requestBody: {
      required: true,
      maxBytes: LIMITS.body_max_bytes,
      schema: Type.Object(
        {
          records: Type.Optional(
            Type.Array(
              Type.Object(
                {
                  type: NotificationType,
                  channels: Type.Object(
                    {
                      inApp: Type.Optional(Type.Boolean()),
                      email: Type.Optional(Type.Boolean()),
                      push: Type.Optional(
                        Type.Literal(false, { description: 'There are no push messages: `true` is refused.' }),
                      ),
                      webhook: Type.Optional(Type.Boolean()),
                    },
                    { ...closed, title: 'NotificationChannelsChange', minProperties: 1 },
                  ),
                },
                { ...closed, title: 'NotificationPreferenceChange' },
              ),
              { maxItems: LIMITS.notification_types_max },
            ),
          ),
          quietHours: Type.Optional(nullable(QuietHours)),
        },
        { ...closed, title: 'NotificationPreferencesChange', minProperties: 1 },
      ),
      example: {
        records: [{ type: 'recordAssigned', channels: { email: false } }],
        quietHours: { from: '22:00', to: '07:00' },
      },
    },
    response: { status: 200, description: 'The preferences.', schema: Preferences, example: EXAMPLE_PREFERENCES },
    errors: [...KEY_ERRORS, 'BODY_PROPERTY_UNKNOWN', 'VALIDATION_FAILED', 'TOO_MANY_ITEMS'],
    action: 'notifications.preferences.update',
  }),
] as const;

export const SERVICE = {
  purpose: 'Notifications of users, their preferences, and deliveries per channel.',
  listens: 'health',
  awaitedByGateway: false,
  kubernetes: {
    replicas: { min: 2, max: 3 },
    connections: 3,
    requests: { cpu: '100m', memory: '192Mi' },
    limits: { cpu: '1', memory: '512Mi' },
  },
  database: { tenants: 'records', jobs: true },
  operations: NOTIFICATIONS_OPERATIONS,
  guidance: NOTIFICATIONS_GUIDANCE,
  repeatable: ['notifications.mails.stop', 'notifications.notify'],
  calls: [
    'auth.mails.notify',
    'auth.mails.states',
    'data.records.readable',
    'data.templates.fill',
    'data.users.list',
    'metadata.tenants.list',
  ],
  consent: {
    'notifications:read': { area: 'you', text: 'Read your notifications.' },
    'notifications:write': { area: 'you', text: 'Mark your notifications as read, and notify others where you may.' },
  },
  moving: {
    parts: [
      { name: 'notifications/settings', table: 'notifications.settings', group: 'records' },
      { name: 'notifications/items', table: 'notifications.items', group: 'records' },
    ],
  },
} as const satisfies ServiceDeclaration<typeof NOTIFICATIONS_OPERATIONS>;
