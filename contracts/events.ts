/** Public operations of the event log: pages and a stream. Source: docs/reference/events.md. */
import { type Static, Type } from 'typebox';
import { LIMITS } from '../lib/limits.ts';
import { type ActionsOf, defineOperation, defineParameter, nullable } from '../lib/operation.ts';
import { effectiveTake, KEY_ERRORS, cursor as listCursor, nextCursor, take } from './data/rows.ts';
import type { ServiceDeclaration } from './declaration.ts';
import { EVENT_TYPE_NAMES, SUSPENSION_REASONS } from './event-types.ts';
import { EVENTS_GUIDANCE } from './guidance/events.ts';

export interface EventsActions extends ActionsOf<typeof EVENTS_OPERATIONS> {}

export interface EventsEvents {
  /** To one process of events: changes of these tenants were committed, and may have left events. It may be lost. */
  'events.log.written': { tenantIds: readonly string[] };
  /** To all processes of events: there is something to deliver to these subscriptions. It may be lost. */
  'events.deliveries.due': { tenantId: string; subscriptionIds: readonly string[] };
}

/** Streams and waiting requests with one of these topics show events of the tenant, about one of these objects; null: about anything. */
export const eventsTopics = (tenantId: string, objects: readonly string[] | null): string[] =>
  objects === null ? [`events ${tenantId}`] : objects.map((object) => `events ${tenantId} ${object}`);

const Payload = Type.Enum(['thin', 'full'] as const, { title: 'EventPayload', description: 'Default: `thin`.' });

const EXAMPLE_EVENT = {
  specversion: '1.0',
  id: '6f1c2b7e-3f0d-8a54-9d5e-0c6a4f1f2a11',
  source: '/tenants/0193d3a7-0f00-7aaa-8b21-6d1f0e9a7c00',
  type: 'data.record.updated',
  subject: 'Account/0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33',
  time: '2026-11-21T08:16:22.123Z',
  datacontenttype: 'application/json',
  dataschema: 'https://erp.example/api/v1/versions/1.0.0/docs/events/data.record.updated.json',
  sequence: '00000000000000000042',
  partitionkey: 'Account/0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33',
  data: {
    objectApiName: 'Account',
    id: '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33',
    recordVersion: 2,
    etag: '"2"',
    changedFields: ['phone'],
    before: null,
    after: null,
    transition: null,
    transactionId: '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c44',
    transactionIndex: 0,
    transactionSize: 1,
    actor: { userId: '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c55', clientId: 'erp-cli', agentRunId: null },
    requestId: 'req_01JD9Z8Q4M7T2V5K6N8P0R3S1W',
  },
};

export const CloudEvent = Type.Object(
  {
    specversion: Type.Literal('1.0'),
    id: Type.String({ format: 'uuid', description: 'The same however often the event is delivered.' }),
    source: Type.String({ description: '`/tenants/<tenantId>`.' }),
    type: Type.String({ description: 'One of `events.types` of `GET /capabilities`.' }),
    subject: Type.String({ description: 'What it is about, such as `Account/<id>`.' }),
    time: Type.String({ format: 'date-time' }),
    datacontenttype: Type.Literal('application/json'),
    dataschema: Type.String({ description: 'JSON Schema of `data`.' }),
    sequence: Type.String({
      pattern: '^[0-9]{20}$',
      description: 'Position among all events of the tenant: larger for later ones, without holes.',
    }),
    partitionkey: Type.String({ description: 'Events with the same key come in the order of the changes.' }),
    data: Type.Object({}, { additionalProperties: true, description: 'See `dataschema`.' }),
  },
  { title: 'CloudEvent', description: 'An event in the JSON format of CloudEvents 1.0.' },
);
export type CloudEvent = Static<typeof CloudEvent>;

const types = defineParameter({
  name: 'types',
  description: 'Only events of these types, separated by commas.',
  schema: Type.String({ maxLength: 2_000 }),
  example: 'data.record.created,data.record.updated',
});

const objects = defineParameter({
  name: 'objects',
  description: 'Only events about records of these objects (apiNames separated by commas).',
  schema: Type.String({ maxLength: 4_000, pattern: '^[A-Za-z]\\w*(?: *, *[A-Za-z]\\w*)*$' }),
  example: 'Account',
});

const payload = defineParameter({
  name: 'payload',
  description:
    '`thin`: ids and the names of changed fields. `full`: also their values before and after, which takes the scope `data:read`.',
  schema: Payload,
});

const cursor = defineParameter({
  name: 'cursor',
  description: `\`nextCursor\`, \`resumeCursor\` or \`oldestCursor\` of an earlier answer, good for ${LIMITS.event_retention_days} days. Without it: what happens from now on.`,
  schema: Type.String(),
});

const READ = { tag: 'events', scopes: ['events:read'], risk: 'low' } as const;
const READ_ERRORS = [
  'PARAMETER_INVALID',
  'CURSOR_INVALID',
  'SYNC_TOKEN_EXPIRED',
  'CONCURRENCY_LIMIT_EXCEEDED',
] as const;

const STATES = ['active', 'paused', 'suspended'] as const;
export type SubscriptionState = (typeof STATES)[number];

const subscriptionId = defineParameter({
  name: 'subscriptionId',
  required: true,
  description: 'Id of a subscription of this user.',
  schema: Type.String({ format: 'uuid' }),
});

const closed = { additionalProperties: false };
const Name = Type.String({ minLength: 1, maxLength: 100, description: 'For people.' });
const Url = Type.String({ minLength: 1, maxLength: 2_000, description: 'A public https address.' });
const EventTypes = Type.Array(Type.String({ maxLength: 100 }), {
  minItems: 1,
  maxItems: 100,
  uniqueItems: true,
  description: 'Types of events, as `events.types` of `GET /capabilities` lists them.',
});
const Objects = Type.Array(Type.String({ minLength: 1, maxLength: 80 }), {
  maxItems: 50,
  uniqueItems: true,
  description: 'Only events about records of these objects; empty: events about anything.',
});
const Ordering = Type.Enum(['none', 'perRecord'] as const, {
  title: 'SubscriptionOrdering',
  description: '`perRecord`: an event waits until the earlier ones about the same record were delivered.',
});
const SigningKind = Type.Enum(['hmac', 'ed25519'] as const, { title: 'SubscriptionSigning' });

const SubscriptionInput = Type.Object(
  {
    name: Name,
    url: Url,
    eventTypes: EventTypes,
    objects: Type.Optional(Objects),
    payload: Type.Optional(Payload),
    ordering: Type.Optional(Ordering),
    signing: Type.Optional(SigningKind),
  },
  { ...closed, title: 'SubscriptionInput' },
);

const SubscriptionChange = Type.Object(
  {
    name: Type.Optional(Name),
    url: Type.Optional(Url),
    eventTypes: Type.Optional(EventTypes),
    objects: Type.Optional(Objects),
    payload: Type.Optional(Payload),
    ordering: Type.Optional(Ordering),
    state: Type.Optional(Type.Enum(['active', 'paused'] as const, { description: '`active` also ends a suspension.' })),
  },
  { ...closed, minProperties: 1, title: 'SubscriptionChange' },
);

const properties = {
  subscriptionId: Type.String({ format: 'uuid' }),
  name: Type.String(),
  url: Type.String(),
  eventTypes: Type.Array(Type.String()),
  objects: Type.Array(Type.String()),
  payload: Payload,
  ordering: Ordering,
  state: Type.Enum([...STATES], { title: 'SubscriptionState' }),
  reason: nullable(
    Type.String({
      description: `Why it is suspended: one of \`${SUSPENSION_REASONS.join('`, `')}\`; null: it is not.`,
    }),
  ),
  signing: SigningKind,
  publicKey: nullable(Type.String({ description: '`whpk_…` of ed25519; null: the secret verifies.' })),
  cursor: Type.String({ description: 'The position up to which deliveries were made.' }),
  failureCount: Type.Integer({ description: 'Failed attempts since the last one that succeeded.' }),
  createdAt: Type.String({ format: 'date-time' }),
  createdById: Type.String({ format: 'uuid', description: 'In whose name events are read.' }),
  updatedAt: Type.String({ format: 'date-time' }),
};
const Subscription = Type.Object(properties, { title: 'Subscription' });
export type SubscriptionBody = Static<typeof Subscription>;
const SubscriptionWithSecret = Type.Object(
  {
    ...properties,
    secret: nullable(
      Type.String({ description: '`whsec_…`. Shown this once: null in a repeated answer, and for ed25519.' }),
    ),
  },
  { title: 'SubscriptionWithSecret' },
);

export const DELIVERY_STATUSES = ['pending', 'delivered', 'parked'] as const;
/** `hidden`: the user may not know of the event, nor of its delivery. */
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number] | 'hidden';
const DeliveryAttempt = Type.Object(
  {
    at: Type.String({ format: 'date-time' }),
    status: nullable(Type.Integer({ description: 'Status of the answer; null: there was none.' })),
    latencyMs: Type.Integer(),
    responseHead: nullable(Type.String({ description: 'The beginning of the answer.' })),
    failure: nullable(Type.String()),
  },
  { title: 'DeliveryAttempt' },
);
export type DeliveryAttempt = Readonly<Static<typeof DeliveryAttempt>>;
const Delivery = Type.Object(
  {
    deliveryId: Type.String({ format: 'uuid' }),
    sequence: nullable(Type.String({ description: 'That of the event; null: it has none yet.' })),
    cursor: nullable(
      Type.String({
        description: 'The position before the event, from which `replay` sends it again; null: it has none yet.',
      }),
    ),
    eventType: Type.String(),
    subject: Type.String(),
    status: Type.Enum([...DELIVERY_STATUSES], {
      title: 'DeliveryStatus',
      description: '`parked`: the last attempt has failed.',
    }),
    attempts: Type.Array(DeliveryAttempt, { description: 'The latest ones, also those before it was sent again.' }),
    nextAttemptAt: nullable(Type.String({ format: 'date-time' })),
    createdAt: Type.String({ format: 'date-time' }),
  },
  { title: 'Delivery' },
);

const MANAGE = { tag: 'events', scopes: ['events:manage'] } as const;
const OWN_ERRORS = ['SUBSCRIPTION_NOT_FOUND'] as const;
const SETTING_ERRORS = ['PARAMETER_INVALID', 'BODY_PROPERTY_UNKNOWN', 'WEBHOOK_URL_INVALID'] as const;
const ETAG = { ETag: { description: 'Version of the settings.', schema: Type.String() } };

const EVENTS_OPERATIONS = [
  defineOperation({
    ...READ,
    operationId: 'events.items.list',
    method: 'GET',
    path: '/events',
    summary: 'Read what has happened',
    description:
      'Events of the tenant in their order, as far as the user may know of them at this moment. With `waitSeconds` the answer waits until there is one.',
    queryParameters: [
      cursor,
      types,
      objects,
      payload,
      {
        name: 'take',
        description: 'Events on a page.',
        schema: Type.Integer({ minimum: 1, maximum: LIMITS.events_take_max, default: LIMITS.take_default }),
        example: 100,
      },
      {
        name: 'waitSeconds',
        description:
          'How long the answer may wait for the first event. A wait that is woken costs as much as another call.',
        schema: Type.Integer({ minimum: 0, maximum: LIMITS.events_wait_seconds_max, default: 0 }),
      },
    ],
    response: {
      status: 200,
      description: 'One page of events; empty when nothing has happened that the user may know of.',
      schema: Type.Object(
        {
          records: Type.Array(CloudEvent),
          nextCursor: nullable(Type.String({ description: 'null: this page ends with the newest event.' })),
          resumeCursor: Type.String({ description: 'The position behind this page, always.' }),
          oldestCursor: Type.String({ description: 'The position before the oldest event that is kept.' }),
        },
        { title: 'EventPage' },
      ),
      example: { records: [EXAMPLE_EVENT], nextCursor: null, resumeCursor: 'c1.Qm9', oldestCursor: 'c1.Tm9' },
    },
    errors: READ_ERRORS,
    action: 'events.items.list',
  }),
  defineOperation({
    ...READ,
    operationId: 'events.stream.get',
    method: 'GET',
    path: '/events/stream',
    summary: 'Follow what happens',
    description:
      'A stream of server-sent events (`text/event-stream`): `id` is a cursor, `event` the type, `data` a CloudEvent. It begins now, at `cursor`, or behind `Last-Event-ID`. Each page costs what the call costs.',
    cost: 2,
    queryParameters: [
      { ...cursor, description: 'Where to begin: a cursor of `GET /events`, or the `id` of an event. Default: now.' },
      types,
      objects,
      payload,
    ],
    headerParameters: [
      { name: 'Last-Event-ID', description: 'The `id` of the last event that was received.', schema: Type.String() },
    ],
    response: {
      status: 200,
      description: 'The stream; a comment every 15 seconds says that it is alive.',
      kind: 'events',
      contentType: 'text/event-stream',
      schema: Type.String({ title: 'EventStream', description: 'Server-sent events.' }),
    },
    errors: READ_ERRORS,
    action: 'events.stream.get',
  }),
  defineOperation({
    ...MANAGE,
    operationId: 'events.subscriptions.create',
    method: 'POST',
    path: '/events/subscriptions',
    summary: 'Have events sent',
    description: 'Events that happen from now on are sent to the address, signed by Standard Webhooks 1.0.',
    risk: 'medium',
    agentApproval: 'always',
    requestBody: {
      required: true,
      maxBytes: 32 * 1024,
      schema: SubscriptionInput,
      example: {
        name: 'Shop',
        url: 'https://shop.example/hooks',
        eventTypes: ['data.record.updated'],
        objects: ['Account'],
      },
    },
    response: {
      status: 201,
      description: 'The subscription, with its secret.',
      schema: SubscriptionWithSecret,
      headers: { ...ETAG, Location: { description: 'Address of the subscription.', schema: Type.String() } },
    },
    errors: [...KEY_ERRORS, ...SETTING_ERRORS, 'TOO_MANY_ITEMS'],
    action: 'events.subscriptions.create',
  }),
  defineOperation({
    ...MANAGE,
    operationId: 'events.subscriptions.list',
    method: 'GET',
    path: '/events/subscriptions',
    summary: 'List subscriptions',
    description: 'Those of the user, the newest first.',
    queryParameters: [take, listCursor],
    response: {
      status: 200,
      description: 'One page of subscriptions.',
      schema: Type.Object({ records: Type.Array(Subscription), nextCursor }, { title: 'SubscriptionPage' }),
      headers: effectiveTake,
    },
    errors: ['PARAMETER_INVALID', 'CURSOR_INVALID', 'CURSOR_EXPIRED', 'CURSOR_QUERY_MISMATCH'],
    action: 'events.subscriptions.list',
  }),
  defineOperation({
    ...MANAGE,
    operationId: 'events.subscriptions.get',
    method: 'GET',
    path: '/events/subscriptions/{subscriptionId}',
    summary: 'Read a subscription',
    pathParameters: [subscriptionId],
    response: { status: 200, description: 'The subscription.', schema: Subscription, headers: ETAG },
    errors: [...OWN_ERRORS, 'PARAMETER_INVALID'],
    action: 'events.subscriptions.get',
  }),
  defineOperation({
    ...MANAGE,
    operationId: 'events.subscriptions.update',
    method: 'PATCH',
    path: '/events/subscriptions/{subscriptionId}',
    summary: 'Change a subscription',
    description: '`state: active` ends a pause or a suspension, and what has waited is sent.',
    risk: 'medium',
    agentApproval: 'always',
    precondition: 'ifMatch',
    pathParameters: [subscriptionId],
    requestBody: { required: true, maxBytes: 32 * 1024, schema: SubscriptionChange, example: { state: 'paused' } },
    response: { status: 200, description: 'The subscription.', schema: Subscription, headers: ETAG },
    errors: [...KEY_ERRORS, ...OWN_ERRORS, ...SETTING_ERRORS],
    action: 'events.subscriptions.update',
  }),
  defineOperation({
    ...MANAGE,
    operationId: 'events.subscriptions.delete',
    method: 'DELETE',
    path: '/events/subscriptions/{subscriptionId}',
    summary: 'End a subscription',
    description: 'Nothing more is sent, and its deliveries are forgotten.',
    risk: 'medium',
    precondition: 'ifMatch',
    changes: { kind: 'end' },
    pathParameters: [subscriptionId],
    response: { status: 204, description: 'It has ended.' },
    errors: [...KEY_ERRORS, ...OWN_ERRORS, 'PARAMETER_INVALID'],
    action: 'events.subscriptions.delete',
  }),
  defineOperation({
    ...MANAGE,
    operationId: 'events.subscriptions.test',
    method: 'POST',
    path: '/events/subscriptions/{subscriptionId}/test',
    summary: 'Send a test',
    description:
      'An event `events.subscription.tested`, for this subscription alone, on the way of all others: one that is paused or suspended sends it when it is active again.',
    risk: 'low',
    cost: 1,
    pathParameters: [subscriptionId],
    response: { status: 201, description: 'The delivery, which begins in a moment.', schema: Delivery },
    errors: [...KEY_ERRORS, ...OWN_ERRORS, 'PARAMETER_INVALID'],
    action: 'events.subscriptions.test',
  }),
  defineOperation({
    ...MANAGE,
    operationId: 'events.subscriptions.replay',
    method: 'POST',
    path: '/events/subscriptions/{subscriptionId}/replay',
    summary: 'Send events again',
    description: `The events of a time, at most ${LIMITS.replay_events_max.toLocaleString('en-GB')} in one call, or of it those whose last attempt has failed, without tests.`,
    risk: 'medium',
    agentApproval: 'always',
    cost: 5,
    pathParameters: [subscriptionId],
    requestBody: {
      required: true,
      maxBytes: 8 * 1024,
      schema: Type.Object(
        {
          fromCursor: Type.Optional(
            Type.String({ description: 'A cursor of `GET /events`, or that of a subscription.' }),
          ),
          fromTime: Type.Optional(Type.String({ format: 'date-time' })),
          toTime: Type.Optional(Type.String({ format: 'date-time' })),
          onlyFailed: Type.Optional(
            Type.Boolean({
              description:
                'Only deliveries whose last attempt has failed, `parked` or waiting for the next one: they are tried now.',
            }),
          ),
        },
        { ...closed, title: 'EventReplay' },
      ),
      example: { onlyFailed: true },
    },
    response: {
      status: 202,
      description: 'They are sent again.',
      schema: Type.Object(
        {
          subscriptionId: Type.String({ format: 'uuid' }),
          events: nullable(
            Type.Integer({
              description: 'With `onlyFailed`: how many there are. Otherwise null: some may be hidden from the user.',
            }),
          ),
        },
        { title: 'EventReplayAccepted' },
      ),
    },
    errors: [...KEY_ERRORS, ...OWN_ERRORS, 'PARAMETER_INVALID', 'BODY_PROPERTY_UNKNOWN', 'CURSOR_INVALID'],
    action: 'events.subscriptions.replay',
  }),
  defineOperation({
    ...MANAGE,
    operationId: 'events.subscriptions.rotateSecret',
    method: 'POST',
    path: '/events/subscriptions/{subscriptionId}/rotate-secret',
    summary: 'Replace the secret',
    description: 'For 24 hours deliveries are signed with both, so that the receiver has the time to change.',
    risk: 'high',
    pathParameters: [subscriptionId],
    response: {
      status: 201,
      description: 'The subscription, with its new secret.',
      schema: SubscriptionWithSecret,
      headers: ETAG,
    },
    errors: [...KEY_ERRORS, ...OWN_ERRORS, 'PARAMETER_INVALID'],
    action: 'events.subscriptions.rotateSecret',
  }),
  defineOperation({
    ...MANAGE,
    operationId: 'events.deliveries.list',
    method: 'GET',
    path: '/events/subscriptions/{subscriptionId}/deliveries',
    summary: 'List deliveries',
    description: 'Those that were tried at least once, the newest events first, with every attempt.',
    pathParameters: [subscriptionId],
    queryParameters: [
      {
        name: 'status',
        description: 'Only deliveries with this status.',
        schema: Type.Enum([...DELIVERY_STATUSES], { title: 'DeliveryStatusFilter' }),
        example: 'parked',
      },
      take,
      listCursor,
    ],
    response: {
      status: 200,
      description: 'One page of deliveries.',
      schema: Type.Object({ records: Type.Array(Delivery), nextCursor }, { title: 'DeliveryPage' }),
      headers: effectiveTake,
    },
    errors: [...OWN_ERRORS, 'PARAMETER_INVALID', 'CURSOR_INVALID', 'CURSOR_EXPIRED', 'CURSOR_QUERY_MISMATCH'],
    action: 'events.deliveries.list',
  }),
] as const;

export const SERVICE = {
  purpose: 'Events: the log of what happens in each tenant, and its delivery.',
  listens: 'health',
  awaitedByGateway: false,
  kubernetes: {
    replicas: { min: 2, max: 3 },
    connections: 4,
    requests: { cpu: '100m', memory: '192Mi' },
    limits: { cpu: '1', memory: '512Mi' },
  },
  database: { tenants: 'records', jobs: true, routines: ['events.numbers'] },
  operations: EVENTS_OPERATIONS,
  guidance: EVENTS_GUIDANCE,
  calls: ['data.events.read', 'metadata.tenants.get', 'metadata.tenants.list'],
  emits: ['events.deliveries.due', 'gateway.streams.wake'],
  hears: ['events.deliveries.due', 'events.log.written', 'metadata.schema.changed'],
  consent: {
    'events:read': { area: 'events', text: 'Follow what happens: which records change, and how.' },
    'events:manage': { area: 'events', text: 'Have what happens sent to other systems.' },
  },
  moving: {
    parts: [],
    // A copy sends nothing to the receivers of the original: subscriptions are made anew, with secrets of their own.
    leftBehind: ['events.subscriptions', 'events.deliveries'],
  },
} as const satisfies ServiceDeclaration<typeof EVENTS_OPERATIONS>;

/** For `GET /capabilities`. */
export const EVENT_CAPABILITIES = { types: EVENT_TYPE_NAMES, delivery: ['pull', 'sse', 'webhook'] } as const;
