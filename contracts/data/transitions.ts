/** The public operations on transitions and actions of a record. */
import { Type } from 'typebox';
import { LIMITS } from '../../lib/limits.ts';
import { defineOperation, nullable } from '../../lib/operation.ts';
import { checked, duplicateConfirmation, IF_MATCH_ERRORS, MUTATION_ERRORS } from './mutations.ts';
import { EXAMPLE_RECORD, etagHeader, WrittenRecordSchema } from './record.ts';
import { acceptLanguage, CHANGES_RECORDS, contentLanguage, id, nextCursor, objectApiName } from './rows.ts';

export const TRANSITION_OPERATIONS = [
  defineOperation({
    operationId: 'data.transitions.list',
    method: 'GET',
    path: '/data/{objectApiName}/{id}/transitions',
    tag: 'data',
    summary: 'List the transitions and actions of a record',
    description:
      'All transitions of the caller in the order of the state model, then actions by name, available or not.',
    scopes: ['actions:read'],
    pathParameters: [objectApiName, id],
    headerParameters: [acceptLanguage],
    response: {
      status: 200,
      description: 'The transitions, with reasons for those that are unavailable.',
      schema: Type.Object(
        {
          records: Type.Array(
            Type.Object(
              {
                transitionKey: Type.String({ description: 'Names it in the address that executes it.' }),
                label: Type.String(),
                description: nullable(Type.String()),
                fromState: nullable(
                  Type.String({
                    description:
                      'The current state where it starts there; otherwise the state that it starts from, null when there are several.',
                  }),
                ),
                toState: nullable(
                  Type.String({ description: 'The state that it leads to; of an action, the current one.' }),
                ),
                kind: Type.Union([Type.Literal('transition'), Type.Literal('action')]),
                available: Type.Boolean({ description: 'The caller could execute it now.' }),
                unavailableReasons: Type.Array(Type.Object({ code: Type.String(), message: Type.String() }), {
                  description: 'All that stands against it, in the order in which executing would find it.',
                }),
                risk: Type.Enum(['low', 'medium', 'high'], { title: 'RiskLevel' }),
                requiresComment: Type.Boolean(),
                requiresApproval: Type.Boolean(),
                input: nullable(
                  Type.Object({}, { additionalProperties: true, description: 'JSON Schema of what is sent along.' }),
                ),
              },
              { title: 'TransitionOption' },
            ),
          ),
          nextCursor,
          currentState: nullable(
            Type.String({ description: 'null without a state model, and for those who cannot read the state.' }),
          ),
          etag: Type.String({ description: 'To be sent as If-Match with what is chosen.' }),
        },
        { title: 'TransitionPage' },
      ),
      headers: { ...etagHeader, ...contentLanguage },
      example: {
        records: [
          {
            transitionKey: 'send',
            label: 'Send',
            description: 'The customer gets the invoice.',
            fromState: 'draft',
            toState: 'sent',
            kind: 'transition',
            available: false,
            unavailableReasons: [
              { code: 'GUARD_NOT_MET', message: 'An invoice is sent when its lines add up to its amount.' },
            ],
            risk: 'medium',
            requiresComment: false,
            requiresApproval: false,
            input: null,
          },
        ],
        nextCursor: null,
        currentState: 'draft',
        etag: '"1"',
      },
    },
    errors: ['OBJECT_NOT_FOUND', 'RECORD_NOT_FOUND'],
    action: 'data.transitions.list',
  }),
  defineOperation({
    ...checked('transition'),
    operationId: 'data.transitions.execute',
    method: 'POST',
    path: '/data/{objectApiName}/{id}/transitions/{transitionKey}',
    tag: 'data',
    summary: 'Execute a transition or action of a record',
    description:
      'State, effects, history, audit and events are one transaction. Requires the permission to update the record and the permission that the transition names.',
    scopes: ['actions:execute'],
    risk: 'high',
    ...CHANGES_RECORDS,
    cost: 3,
    changes: { kind: 'record', needs: ['transition'] },
    precondition: 'ifMatch',
    pathParameters: [
      objectApiName,
      id,
      {
        name: 'transitionKey',
        required: true,
        description: '`transitionKey` of the list.',
        schema: Type.String(),
        example: 'submit',
      },
    ],
    headerParameters: [duplicateConfirmation],
    requestBody: {
      required: false,
      schema: Type.Object(
        {
          input: Type.Optional(
            Type.Object({}, { additionalProperties: true, description: 'As the `input` schema of the list says.' }),
          ),
          comment: Type.Optional(
            Type.String({ maxLength: LIMITS.comment_max_chars, description: 'Reason, kept in the history.' }),
          ),
        },
        { title: 'TransitionInput', additionalProperties: false },
      ),
      maxBytes: LIMITS.transition_body_max_bytes,
      example: { comment: 'Agreed with the customer by telephone.' },
    },
    response: {
      status: 201,
      description: 'The transition, and the record after it.',
      schema: Type.Object(
        {
          executionId: Type.String(),
          transitionKey: Type.String(),
          fromState: nullable(Type.String()),
          toState: nullable(Type.String()),
          executedAt: Type.String({ format: 'date-time' }),
          record: WrittenRecordSchema,
          sideEffects: Type.Array(
            Type.Object({
              kind: Type.Union((['create', 'notification', 'event'] as const).map((kind) => Type.Literal(kind))),
              objectApiName: Type.String(),
              id: Type.String({ description: 'The created record, or the one that the message is about.' }),
            }),
          ),
        },
        { title: 'TransitionExecution' },
      ),
      headers: etagHeader,
      example: {
        executionId: '0193d3a8-5d2f-7c11-8e4b-2a6f9d0c7b15',
        transitionKey: 'submit',
        fromState: 'draft',
        toState: 'submitted',
        executedAt: '2026-11-21T00:01:22.123+00:00',
        record: { ...EXAMPLE_RECORD, recordVersion: 2 },
        sideEffects: [
          {
            kind: 'notification',
            objectApiName: 'SalesOrder__c',
            id: '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b24',
          },
        ],
      },
    },
    errors: [
      ...MUTATION_ERRORS,
      ...IF_MATCH_ERRORS,
      'FIELD_PERMISSION_DENIED',
      'CONFIRMATION_TOKEN_INVALID',
      'DUPLICATE_RULE',
      'TRANSITION_NOT_FOUND',
      'TRANSITION_NOT_ALLOWED',
      'TRANSITION_INPUT_INVALID',
      'STATE_CONFLICT',
      'UNIQUE_VALUE_CONFLICT',
      'VALIDATION_FAILED',
    ],
    action: 'data.transitions.execute',
  }),
] as const;
