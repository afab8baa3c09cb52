/** The public operation that takes back what an agent run has changed in records. */
import { type Static, Type } from 'typebox';
import { LIMITS } from '../../lib/limits.ts';
import { defineOperation, nullable } from '../../lib/operation.ts';

/** Why a record was left as it is. */
export const SKIP_REASONS = [
  'CHANGED_SINCE',
  'STATE_CHANGED',
  'SHARING_CHANGED',
  'DEPENDENTS_EXIST',
  'NOT_PERMITTED',
  'RECORD_NOT_FOUND',
  'VALIDATION_FAILED',
  'UNIQUE_VALUE_CONFLICT',
  'DUPLICATE_RULE',
  'WRITE_CONTENTION',
] as const;

export type SkipReason = (typeof SKIP_REASONS)[number];

const objectApiName = Type.String({ description: 'apiName of the object.' });
const id = Type.String({ format: 'uuid', description: 'Id of the record.' });

const Revert = Type.Object(
  {
    reverted: Type.Array(Type.Object({ objectApiName, id }), {
      description: 'Records that are as before the run, reverted by this call or an earlier one; newest change first.',
    }),
    skipped: Type.Array(
      Type.Object({
        objectApiName: nullable(objectApiName),
        id: nullable(id),
        reason: Type.Enum([...SKIP_REASONS], {
          description:
            'Reason why the record was not changed. RECORD_NOT_FOUND: it does not exist or is not visible to the user; its id is omitted.',
        }),
      }),
    ),
    remaining: Type.Integer({
      description: 'Remaining records. If more than 0, repeat the request with the same key to continue.',
    }),
  },
  { title: 'RunReversal' },
);

export type RevertResult = Static<typeof Revert>;

export const AGENT_RUN_OPERATIONS = [
  defineOperation({
    method: 'POST',
    operationId: 'agent.runs.revert',
    path: '/agent/runs/{runId}/revert',
    tag: 'agent',
    summary: 'Revert what a run has changed',
    description: `Takes back the changes of an ended run, as the user who asks; records changed since are left. ${LIMITS.revert_records_max} records at most.`,
    scopes: ['agent:approve'],
    permission: 'approveAgentActions',
    risk: 'high',
    cost: 10,
    stepUp: true,
    agentApproval: 'never',
    pathParameters: [
      {
        name: 'runId',
        required: true,
        description: 'Id of the run (UUID in lower case).',
        schema: Type.String({ format: 'uuid' }),
        example: '0193d3b0-52f1-7d42-8a11-5e0c9f7b2d10',
      },
    ],
    response: {
      status: 201,
      description: 'Outcome of each record.',
      schema: Revert,
      example: {
        reverted: [{ objectApiName: 'Invoice__c', id: '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b24' }],
        skipped: [
          { objectApiName: 'Account', id: '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b23', reason: 'CHANGED_SINCE' },
          { objectApiName: null, id: null, reason: 'RECORD_NOT_FOUND' },
        ],
        remaining: 0,
      },
    },
    errors: [
      'IDEMPOTENCY_KEY_REQUIRED',
      'IDEMPOTENCY_KEY_INVALID',
      'IDEMPOTENCY_KEY_REUSED',
      'IDEMPOTENCY_IN_PROGRESS',
      'WRITE_CONTENTION',
      'OBJECT_PERMISSION_DENIED',
      'RUN_NOT_FOUND',
      'STATE_CONFLICT',
      'APPROVAL_ACTOR_NOT_HUMAN',
      'TOO_MANY_ITEMS',
    ],
    action: 'data.agentRuns.revert',
  }),
] as const;
