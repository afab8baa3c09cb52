/** The public operation that explains access. */
import { Type } from 'typebox';
import { GRANT_KINDS } from '../../lib/access/sharing.ts';
import { LIMITS } from '../../lib/limits.ts';
import { defineOperation, nullable } from '../../lib/operation.ts';
import { id, objectApiName } from './rows.ts';

export const LAYERS = [
  'scope',
  'publication',
  'objectPermission',
  'fieldPermission',
  'sharing',
  'recordState',
  'agentPolicy',
] as const;

export const OPERATIONS_EXPLAINED = ['read', 'create', 'update', 'delete', 'transition'] as const;

const EXAMPLE_STEPS = [
  { layer: 'scope', result: 'pass', grantedBy: [], remedy: null },
  { layer: 'publication', result: 'pass', grantedBy: [], remedy: null },
  { layer: 'objectPermission', result: 'pass', grantedBy: [{ kind: 'profile', apiName: 'SalesRep' }], remedy: null },
  { layer: 'fieldPermission', result: 'notApplicable', grantedBy: [], remedy: null },
  {
    layer: 'sharing',
    result: 'deny',
    grantedBy: [],
    remedy:
      'The user can read the record, but may not change it. Share it with access edit, add a sharing rule of Opportunity__c with access readWrite, or make the user its owner.',
  },
  { layer: 'recordState', result: 'notApplicable', grantedBy: [], remedy: null },
  { layer: 'agentPolicy', result: 'notApplicable', grantedBy: [], remedy: null },
];

export const EXPLAIN_OPERATIONS = [
  defineOperation({
    operationId: 'data.access.explain',
    method: 'POST',
    mutation: false,
    path: '/data/{objectApiName}/{id}/access/explain',
    tag: 'data',
    summary: 'Explain what allows or denies an operation on a record',
    description:
      'Result of each layer, and how to change it. Explaining another user (`userId`) requires setup:read and metadataRead.',
    scopes: ['data:read'],
    cost: 2,
    pathParameters: [objectApiName, id],
    requestBody: {
      required: true,
      schema: Type.Object(
        {
          operation: Type.Enum([...OPERATIONS_EXPLAINED], { description: 'create: another record of the object.' }),
          field: Type.Optional(
            Type.String({ minLength: 1, maxLength: 80, description: 'For read, create and update.' }),
          ),
          transitionKey: Type.Optional(
            Type.String({
              minLength: 1,
              maxLength: 80,
              description: 'Required for transition, and not allowed otherwise.',
            }),
          ),
          userId: Type.Optional(
            Type.String({ minLength: 1, maxLength: 80, description: 'User to explain; default: the caller.' }),
          ),
        },
        { title: 'AccessQuestion', additionalProperties: false },
      ),
      maxBytes: LIMITS.body_max_bytes,
      example: { operation: 'update' },
    },
    response: {
      status: 200,
      description: 'The decision, and the layers behind it.',
      schema: Type.Object(
        {
          allowed: Type.Boolean({ description: 'No layer denies.' }),
          steps: Type.Array(
            Type.Object({
              layer: Type.Enum([...LAYERS]),
              result: Type.Enum(['pass', 'deny', 'notApplicable']),
              grantedBy: Type.Array(
                Type.Object({ kind: Type.Enum([...GRANT_KINDS]), apiName: nullable(Type.String()) }),
              ),
              remedy: nullable(
                Type.String({ description: 'Change that an administrator can make; null unless the layer denies.' }),
              ),
            }),
          ),
        },
        { title: 'AccessExplanation' },
      ),
      example: { allowed: false, steps: EXAMPLE_STEPS },
    },
    errors: [
      'BODY_REQUIRED',
      'PARAMETER_CONFLICT',
      'OBJECT_NOT_FOUND',
      'RECORD_NOT_FOUND',
      'METADATA_PERMISSION_DENIED',
      'VALIDATION_FAILED',
    ],
    action: 'data.access.explain',
  }),
] as const;
