/** The public operations on what writes leave behind. */
import { Type } from 'typebox';
import { defineOperation, defineParameter, nullable } from '../../lib/operation.ts';
import { RecordSchema } from './record.ts';
import { cursor, effectiveTake, id, nextCursor, objectApiName, take } from './rows.ts';

const agentRunId = defineParameter({
  name: 'agentRunId',
  description: 'Of this agent run: what was done under it, and what people did about it.',
  schema: Type.String({ format: 'uuid' }),
});

const dateTime = Type.String({ format: 'date-time' });

const Actor = Type.Object(
  {
    userId: nullable(Type.String()),
    clientId: nullable(Type.String()),
    agentRunId: nullable(Type.String()),
  },
  {
    title: 'ChangeActor',
    description: 'User, client and agent run; null for acts of the platform.',
  },
);

const Changes = Type.Array(
  Type.Object({ field: Type.String(), from: Type.Unknown(), to: Type.Unknown() }, { title: 'FieldChange' }),
  {
    description: 'The fields that the caller can read, in the form in which records show them.',
  },
);

const Transition = Type.Object(
  {
    executionId: Type.String(),
    key: Type.String(),
    fromState: nullable(Type.String()),
    toState: nullable(Type.String()),
    comment: nullable(Type.String()),
  },
  { title: 'ExecutedTransition' },
);

const EXAMPLE_ACTOR = { userId: '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33', clientId: 'erp-cli', agentRunId: null };
const EXAMPLE_CHANGES = [{ field: 'city', from: 'Berlin', to: 'Hamburg' }];

const Outcome = Type.Union([Type.Literal('committed'), Type.Literal('denied'), Type.Literal('failed')], {
  title: 'AuditOutcome',
});

/** Kinds of damage to a trail. */
export type ChainProblem =
  | 'rowMissing'
  | 'rowAltered'
  | 'rowInserted'
  | 'rowBackdated'
  | 'historyInserted'
  | 'linkMissing'
  | 'linkAltered'
  | 'linkInserted'
  | 'endMissing'
  | 'headMissing'
  | 'otherChain';

/** Position at which a check resumes. Opaque to callers. */
export interface VerifyPlace {
  readonly position: number;
  readonly hash: string;
  /** Latest time seen, milliseconds since 1970. */
  readonly latest: number;
  /** Set once the chain has been walked: the last audit row that was held against it. */
  readonly row: string | null;
  /** Set once the audit rows have been read: the last history row that was held against them. */
  readonly history: { readonly recordId: string; readonly changeId: string } | null;
  readonly unsealed: number;
}

export interface VerifyRequest {
  readonly tenantId: string;
  readonly from?: VerifyPlace;
  /** A position and hash that was noted down before; the chain must still have it. */
  readonly expect?: { readonly position: number; readonly hash: string };
}

export interface Verification {
  /** Links that are intact, since the beginning of what is kept. */
  readonly checked: number;
  /** Links that are kept. */
  readonly total: number;
  /** Position and hash (hex) of the last intact link: worth keeping somewhere else. */
  readonly position: number;
  readonly hash: string;
  /** Rows that are committed and not in the chain yet. */
  readonly unsealed: number;
  readonly broken: {
    readonly position: number | null;
    readonly auditId: string | null;
    /** The record whose history has a row too many. */
    readonly recordId: string | null;
    readonly problem: ChainProblem;
  } | null;
  /** null: this was the last part. */
  readonly next: VerifyPlace | null;
}

export const TRAIL_OPERATIONS = [
  defineOperation({
    method: 'GET',
    operationId: 'data.history.list',
    path: '/data/{objectApiName}/{id}/history',
    tag: 'data',
    summary: 'List the changes of a record',
    description: 'Newest first. Changes of nothing but fields that the user cannot read are left out.',
    scopes: ['audit:read', 'data:read'],
    pathParameters: [objectApiName, id],
    queryParameters: [agentRunId, take, cursor],
    response: {
      status: 200,
      description: 'One page of changes; empty for objects whose history is not kept.',
      schema: Type.Object(
        {
          records: Type.Array(
            Type.Object({
              changeId: Type.String(),
              at: dateTime,
              actor: Actor,
              operation: Type.Union(
                (['create', 'update', 'delete', 'restore', 'transition'] as const).map((name) => Type.Literal(name)),
              ),
              requestId: Type.String(),
              changes: Changes,
              transition: Type.Optional(
                Type.Union([Transition, Type.Null()], { description: 'Of an object with transitions or actions.' }),
              ),
            }),
          ),
          nextCursor,
        },
        { title: 'HistoryPage' },
      ),
      headers: effectiveTake,
      example: {
        records: [
          {
            changeId: '0193d3a9-0c1e-7b62-9f0a-3d5c8e7a1b24',
            at: '2026-11-21T00:01:22.123+00:00',
            actor: EXAMPLE_ACTOR,
            operation: 'update',
            requestId: 'req_01JD9TZK5N3V8Q2W4X6Y7Z8A9B',
            changes: EXAMPLE_CHANGES,
          },
        ],
        nextCursor: null,
      },
    },
    errors: [
      'PARAMETER_INVALID',
      'CURSOR_INVALID',
      'CURSOR_EXPIRED',
      'CURSOR_QUERY_MISMATCH',
      'OBJECT_NOT_FOUND',
      'RECORD_NOT_FOUND',
    ],
    action: 'data.history.list',
  }),
  defineOperation({
    method: 'GET',
    operationId: 'data.changes.list',
    ownTransaction: true,
    path: '/data/{objectApiName}/changes',
    tag: 'data',
    summary: 'Follow the changes of an object',
    description:
      'Changes for a copy of the records that the user can see. Without a cursor it starts now: list the records afterwards, then follow. An outdated cursor (age, changed permissions, restored database) is `SYNC_TOKEN_EXPIRED`: list the records again, then follow from `details.oldestCursor`.',
    scopes: ['data:read'],
    pathParameters: [objectApiName],
    queryParameters: [
      take,
      {
        name: 'cursor',
        description: '`nextCursor` of the page before, or `resumeCursor` of an earlier answer, at most 7 days old.',
        schema: Type.String(),
      },
    ],
    response: {
      status: 200,
      description: 'One page of changes, by record id; a record stands in it once, as it is now.',
      schema: Type.Object(
        {
          records: Type.Array(
            Type.Object({
              id: Type.String(),
              change: Type.Union([Type.Literal('upserted'), Type.Literal('deleted'), Type.Literal('accessLost')], {
                description:
                  'upserted: put it into the copy. deleted: drop it. accessLost: drop it, the user can no longer see it.',
              }),
              record: Type.Union([RecordSchema, Type.Null()], {
                description: 'All readable fields of what was upserted.',
              }),
              etag: nullable(Type.String()),
            }),
          ),
          nextCursor,
          resumeCursor: Type.String({ description: 'Cursor of the next call; always present.' }),
        },
        { title: 'ChangePage' },
      ),
      headers: effectiveTake,
      example: {
        records: [
          {
            id: '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b23',
            change: 'upserted',
            record: { id: '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b23', name: 'Acme GmbH', city: 'Hamburg' },
            etag: '"3"',
          },
          {
            id: '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b24',
            change: 'accessLost',
            record: null,
            etag: null,
          },
        ],
        nextCursor: null,
        resumeCursor: 'c1.AAAA',
      },
    },
    errors: ['PARAMETER_INVALID', 'CURSOR_INVALID', 'CURSOR_QUERY_MISMATCH', 'SYNC_TOKEN_EXPIRED', 'OBJECT_NOT_FOUND'],
    action: 'data.changes.list',
  }),
  defineOperation({
    method: 'GET',
    operationId: 'events.audit.list',
    path: '/events/audit',
    tag: 'events',
    summary: 'List the audit trail',
    description:
      'All mutations and refused ones, newest first. Requires the system permission viewAudit; changes contain the fields that the user can read. A page searches at most 50,000 entries, so it may be short or empty while nextCursor is not null.',
    scopes: ['audit:read'],
    permission: 'viewAudit',
    cost: 2,
    queryParameters: [
      { name: 'actorId', description: 'Id of the user who asked for it.', schema: Type.String({ format: 'uuid' }) },
      {
        name: 'objectApiName',
        description: 'Of records of this object.',
        schema: Type.String({ pattern: '^[A-Za-z][A-Za-z0-9_]{0,39}$' }),
      },
      { name: 'recordId', description: 'Of this record.', schema: Type.String({ format: 'uuid' }) },
      agentRunId,
      {
        name: 'operationId',
        description: 'Of this operation, such as `data.records.update`.',
        schema: Type.String({ pattern: '^[A-Za-z]+(\\.[A-Za-z]+)+$', maxLength: 100 }),
      },
      {
        name: 'outcome',
        description: 'Outcome of the act.',
        schema: Outcome,
      },
      { name: 'from', description: 'Not before this time.', schema: dateTime },
      { name: 'to', description: 'Not after this time.', schema: dateTime },
      take,
      cursor,
    ],
    response: {
      status: 200,
      description: 'One page of the trail. `position`, `prevHash` and `hash` are null until the entry is sealed.',
      schema: Type.Object(
        {
          records: Type.Array(
            Type.Object({
              auditId: Type.String(),
              at: dateTime,
              actor: Actor,
              channel: Type.Union((['api', 'cli', 'mcp', 'ui', 'job'] as const).map((name) => Type.Literal(name))),
              operationId: Type.String(),
              outcome: Outcome,
              code: nullable(
                Type.String({
                  description: 'The error code of a refusal; `CHECK_ONLY` under a run that is a dry run.',
                }),
              ),
              requestId: Type.String(),
              objectApiName: nullable(Type.String()),
              recordId: nullable(Type.String()),
              changes: Changes,
              ip: nullable(Type.String()),
              position: Type.Union([Type.Integer(), Type.Null()], { description: 'Its place in the chain.' }),
              prevHash: nullable(Type.String({ description: 'Hash of the entry before.' })),
              hash: nullable(Type.String({ description: 'Hash over this entry and the hash before.' })),
            }),
          ),
          nextCursor,
        },
        { title: 'AuditPage' },
      ),
      headers: effectiveTake,
      example: {
        records: [
          {
            auditId: '0193d3a9-0c1e-7b62-9f0a-3d5c8e7a1b25',
            at: '2026-11-21T00:01:22.123+00:00',
            actor: EXAMPLE_ACTOR,
            channel: 'cli',
            operationId: 'data.records.update',
            outcome: 'committed',
            code: null,
            requestId: 'req_01JD9TZK5N3V8Q2W4X6Y7Z8A9B',
            objectApiName: 'Account',
            recordId: '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b24',
            changes: EXAMPLE_CHANGES,
            ip: '203.0.113.7',
            position: null,
            prevHash: null,
            hash: null,
          },
        ],
        nextCursor: null,
      },
    },
    errors: [
      'PARAMETER_INVALID',
      'PARAMETER_CONFLICT',
      'CURSOR_INVALID',
      'CURSOR_EXPIRED',
      'CURSOR_QUERY_MISMATCH',
      'OBJECT_PERMISSION_DENIED',
    ],
    action: 'data.audit.list',
  }),
] as const;
