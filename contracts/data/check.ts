/** The operation that tries out a change of one record. */
import { type Static, Type } from 'typebox';
import { LIMITS } from '../../lib/limits.ts';
import { defineOperation, nullable } from '../../lib/operation.ts';
import { FiredDuplicateRule, ViolationSchema } from '../errors.ts';
import { ACCESS_ERRORS, CHECK_OPERATION } from './mutations.ts';
import { EXAMPLE_RECORD, RecordFields } from './record.ts';
import { objectApiName } from './rows.ts';

const closed = { additionalProperties: false };
/** Parameters that the operation itself takes in its path or headers. */
const text = (description: string) => Type.String({ maxLength: LIMITS.uri_max_bytes, description });
const id = text('Id of the record.');
const ifMatch = text('ETag of the record, as in `If-Match` of the operation.');
const duplicateConfirmation = Type.Optional(text('As in `X-Duplicate-Confirmation` of the operation.'));

/** Body of the check of an operation, by its name: the operation's own path, headers and body. */
export const CHECK_BODIES = {
  create: Type.Object(
    { operation: Type.Literal('create'), fields: RecordFields, duplicateConfirmation },
    { title: 'CreateCheck', ...closed },
  ),
  update: Type.Object(
    { operation: Type.Literal('update'), id, ifMatch, fields: RecordFields, duplicateConfirmation },
    { title: 'UpdateCheck', ...closed },
  ),
  upsert: Type.Object(
    {
      operation: Type.Literal('upsert'),
      external: Type.Object(
        {
          field: text('apiName of a field that is an external id.'),
          value: text('Value of the external id.'),
        },
        { title: 'ExternalKey', ...closed },
      ),
      ifMatch: Type.Optional(text('Update only, if the record has one of these versions.')),
      ifNoneMatch: Type.Optional(Type.Literal('*', { description: 'Create only.' })),
      fields: RecordFields,
      duplicateConfirmation,
    },
    { title: 'UpsertCheck', ...closed },
  ),
  delete: Type.Object({ operation: Type.Literal('delete'), id, ifMatch }, { title: 'DeleteCheck', ...closed }),
  restore: Type.Object({ operation: Type.Literal('restore'), id }, { title: 'RestoreCheck', ...closed }),
  transition: Type.Object(
    {
      operation: Type.Literal('transition'),
      id,
      transitionKey: text('`transitionKey` of the list.'),
      ifMatch,
      input: Type.Optional(
        Type.Object({}, { additionalProperties: true, description: 'As the `input` schema of the list says.' }),
      ),
      comment: Type.Optional(Type.String({ maxLength: LIMITS.comment_max_chars, description: 'Reason.' })),
      duplicateConfirmation,
    },
    { title: 'TransitionCheck', ...closed },
  ),
} as const;

export type CheckBody = Static<(typeof CHECK_BODIES)[keyof typeof CHECK_BODIES]>;

const RecordCheck = Type.Union(Object.values(CHECK_BODIES), {
  title: 'RecordCheck',
  description: 'A change of one record, by `operation`: create, update, upsert, delete, restore or transition.',
});

const EFFECT_KINDS = ['create', 'update', 'delete', 'transition', 'notification', 'event'] as const;

/** Changes that a dry run would make. */
export const CheckedEffects = Type.Array(
  Type.Object(
    {
      kind: Type.Union(EFFECT_KINDS.map((kind) => Type.Literal(kind))),
      objectApiName: Type.String(),
      id: nullable(Type.String()),
      fields: Type.Array(Type.String()),
      count: Type.Optional(Type.Integer({ description: 'Number of records, if the effect does not name them.' })),
    },
    { title: 'CheckedEffect' },
  ),
  { description: 'Changes that the caller may see.' },
);

const CheckResult = Type.Object(
  {
    checkOnly: Type.Literal(true),
    valid: Type.Boolean({ description: 'The operation would succeed now.' }),
    record: nullable(RecordFields),
    errors: Type.Array(ViolationSchema, {
      description: 'All violations, as in the error of the operation.',
    }),
    duplicates: Type.Array(FiredDuplicateRule, {
      description: 'Duplicate rules that matched, as in `details.rules` of DUPLICATE_RULE.',
    }),
    effects: CheckedEffects,
    approvalRequired: Type.Boolean({ description: 'Under the run of an agent: the operation needs an approval.' }),
  },
  { title: 'CheckResult', description: 'Verdict of a dry run.' },
);

export const CHECK_OPERATIONS = [
  defineOperation({
    cost: 2,
    statementTimeoutMs: LIMITS.statement_timeout_ms,
    operationId: CHECK_OPERATION,
    method: 'POST',
    mutation: false,
    path: '/data/{objectApiName}/check',
    tag: 'data',
    summary: 'Try out a change of a record',
    description:
      'Dry run of a create, update, upsert, delete, restore or transition: makes all checks of the operation and changes nothing. ' +
      'Scope, permissions and cost are those of the operation; no Idempotency-Key.',
    scopes: 'authenticated',
    pathParameters: [objectApiName],
    requestBody: {
      required: true,
      schema: RecordCheck,
      description: 'The operation with its parameters, headers and body.',
      maxBytes: LIMITS.body_max_bytes,
      validate: false,
      example: { operation: 'create', fields: { name: 'Acme GmbH', city: 'Berlin', creditLimit: 25000.5 } },
    },
    response: {
      status: 200,
      description: 'Violations, or the record and the changes that would be stored.',
      schema: CheckResult,
      example: {
        checkOnly: true,
        valid: true,
        record: { ...EXAMPLE_RECORD, id: null },
        errors: [],
        duplicates: [],
        effects: [{ kind: 'create', objectApiName: 'Account', id: null, fields: ['city', 'creditLimit', 'name'] }],
        approvalRequired: false,
      },
    },
    errors: [
      ...ACCESS_ERRORS,
      'SCOPE_INSUFFICIENT',
      'PARAMETER_REQUIRED',
      'BODY_PROPERTY_UNKNOWN',
      'IF_MATCH_INVALID',
      'PARAMETER_CONFLICT',
      'ETAG_MISMATCH',
      'RECORD_NOT_FOUND',
      'FIELD_PERMISSION_DENIED',
      'TRANSITION_NOT_FOUND',
      'TRANSITION_NOT_ALLOWED',
      'TOO_MANY_ITEMS',
      'CONFIRMATION_TOKEN_INVALID',
      'WRITE_CONTENTION',
    ],
    action: CHECK_OPERATION,
  }),
] as const;
