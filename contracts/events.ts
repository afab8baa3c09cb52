/** Public operations of the event log: pages and a stream. Source: docs/reference/events.md. */
import { type Static, Type } from 'typebox';
import { LIMITS } from '../lib/limits.ts';
import { type ActionsOf, defineOperation, defineParameter, nullable } from '../lib/operation.ts';
import type { ServiceDeclaration } from './declaration.ts';
import { EVENT_TYPE_NAMES } from './event-types.ts';
import { EVENTS_GUIDANCE } from './guidance/events.ts';

export interface EventsActions extends ActionsOf<typeof EVENTS_OPERATIONS> {}

/** To one process of events: changes of these tenants were committed, and may have left events. It may be lost. */
export interface EventsEvents {
  'events.log.written': { tenantIds: readonly string[] };
}

/** Streams and waiting requests with this topic show events of the tenant. */
export const eventsTopic = (tenantId: string): string => `events ${tenantId}`;

const PAYLOADS = ['thin', 'full'] as const;

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

const CloudEvent = Type.Object(
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
  schema: Type.String({ maxLength: 4_000 }),
  example: 'Account',
});

const payload = defineParameter({
  name: 'payload',
  description:
    '`thin`: ids and the names of changed fields. `full`: also their values before and after, which takes the scope `data:read`.',
  schema: Type.Enum([...PAYLOADS], { title: 'EventPayload', default: 'thin' }),
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
  database: { tenants: 'records', jobs: true },
  operations: EVENTS_OPERATIONS,
  guidance: EVENTS_GUIDANCE,
  calls: ['data.events.read', 'metadata.tenants.list'],
  emits: ['gateway.streams.wake'],
  hears: ['events.log.written', 'metadata.schema.changed'],
  consent: {
    'events:read': { area: 'events', text: 'Follow what happens: which records change, and how.' },
  },
} as const satisfies ServiceDeclaration<typeof EVENTS_OPERATIONS>;

/** For `GET /capabilities`. */
export const EVENT_CAPABILITIES = { types: EVENT_TYPE_NAMES, delivery: ['pull', 'sse'] } as const;
