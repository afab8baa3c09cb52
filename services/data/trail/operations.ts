/** The public operations on what writes leave behind. */
import { Type } from 'typebox';
import { LIMITS } from '../../../config/limits.ts';
import type { Operation, Parameter } from '../../../lib/operation.ts';

const objectApiName: Parameter = {
  name: 'objectApiName',
  required: true,
  description: 'apiName of a published object, such as `Account`. Never a label.',
  schema: Type.String(),
  example: 'Account',
};

const id: Parameter = {
  name: 'id',
  required: true,
  description: 'Id of the record (UUID in lower case).',
  schema: Type.String(),
  example: '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b24',
};

const take: Parameter = {
  name: 'take',
  description: `Page size; more than ${LIMITS.take_max} is answered with ${LIMITS.take_max} entries and \`X-Effective-Take\`.`,
  schema: Type.Integer({ minimum: 1, default: LIMITS.take_default }),
  example: 20,
};

const cursor: Parameter = {
  name: 'cursor',
  description: 'The unmodified `nextCursor` of the previous page; every other parameter stays as it was.',
  schema: Type.String(),
};

const nullable = (schema: ReturnType<typeof Type.String>) => Type.Union([schema, Type.Null()]);
const dateTime = Type.String({ format: 'date-time' });
const nextCursor = Type.Union([Type.String(), Type.Null()], { description: 'null marks the last page.' });

const effectiveTake = {
  'X-Effective-Take': {
    description: 'The page size, when `take` was larger than allowed.',
    schema: Type.Integer(),
  },
};

const Actor = Type.Object({
  userId: nullable(Type.String()),
  clientId: nullable(Type.String()),
  agentRunId: nullable(Type.String()),
});

const Changes = Type.Array(Type.Object({ field: Type.String(), from: Type.Unknown(), to: Type.Unknown() }), {
  description: 'The fields that the caller can read, in the form in which records show them.',
});

const EXAMPLE_ACTOR = { userId: '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33', clientId: 'erp-cli', agentRunId: null };
const EXAMPLE_CHANGES = [{ field: 'city', from: 'Berlin', to: 'Hamburg' }];

const READ = {
  method: 'GET',
  risk: 'low',
  mutation: false,
  precondition: 'none',
  agentApproval: 'never',
  mcpAvailable: false,
  stability: 'stable',
} as const;

export const TRAIL_OPERATIONS: readonly Operation[] = [
  {
    ...READ,
    operationId: 'data.history.list',
    path: '/data/{objectApiName}/{id}/history',
    tag: 'data',
    summary: 'List the changes of a record',
    description: 'Newest first. Changes of nothing but fields that the user cannot read are left out.',
    scopes: ['audit:read', 'data:read'],
    cost: 1,
    pathParameters: [objectApiName, id],
    queryParameters: [take, cursor],
    response: {
      status: 200,
      description: 'One page of changes; empty for objects whose history is not kept.',
      schema: Type.Object({
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
          }),
        ),
        nextCursor,
      }),
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
  },
];
