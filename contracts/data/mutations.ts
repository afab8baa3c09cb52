/** What the operations that change records have in common. */
import { Type } from 'typebox';
import { defineParameter, nullable } from '../../lib/operation.ts';
import { EXAMPLE_RECORD, RecordSchema } from './record.ts';
import { KEY_ERRORS } from './rows.ts';

const checkOnly = defineParameter({
  name: 'checkOnly',
  description: 'Dry run: everything is checked, nothing is changed; 200 with the verdict.',
  schema: Type.Boolean({ default: false }),
  example: true,
});

const CheckResult = Type.Object(
  {
    checkOnly: Type.Literal(true),
    valid: Type.Boolean({ description: 'The same request without checkOnly would be carried out at this moment.' }),
    record: nullable(RecordSchema),
    errors: Type.Array(Type.Object({}, { additionalProperties: true }), { description: 'As in an error answer.' }),
    duplicates: Type.Array(Type.Object({}, { additionalProperties: true }), {
      description: 'Duplicate rules that matched, as in `details.rules` of DUPLICATE_RULE.',
    }),
    effects: Type.Array(
      Type.Object({
        kind: Type.Union(
          (['create', 'update', 'delete', 'transition', 'notification', 'event'] as const).map((kind) =>
            Type.Literal(kind),
          ),
        ),
        objectApiName: Type.String(),
        id: nullable(Type.String()),
        fields: Type.Array(Type.String()),
        count: Type.Optional(Type.Integer({ description: 'Records, when the effect names none of them.' })),
      }),
    ),
    approvalRequired: Type.Boolean(),
  },
  { $id: 'CheckResult', description: 'Verdict of a dry run.' },
);

/** What every mutation that can be tried out says about it. */
export const TRIED = {
  dryRun: true,
  alternatives: [
    {
      status: 200,
      description: 'Of a dry run: the verdict; nothing was changed.',
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
  ],
} as const;

/** What those say that take `checkOnly`. */
export const CHECKED = { ...TRIED, queryParameters: [checkOnly] } as const;

/** On operations that store the values of a record. */
export const duplicateConfirmation = defineParameter({
  name: 'X-Duplicate-Confirmation',
  description:
    'The `confirmationToken` of a 409 `DUPLICATE_RULE`, after the matches were shown to somebody who wants the record all the same. The repeated request has a new Idempotency-Key.',
  schema: Type.String(),
});

export const MUTATION_ERRORS = [
  ...KEY_ERRORS,
  'OBJECT_NOT_FOUND',
  'OBJECT_PERMISSION_DENIED',
  'RECORD_ACCESS_DENIED',
] as const;

export const FIELD_ERRORS = [
  'BODY_REQUIRED',
  'FIELD_PERMISSION_DENIED',
  'UNIQUE_VALUE_CONFLICT',
  'VALIDATION_FAILED',
] as const;

export const DUPLICATE_ERRORS = ['CONFIRMATION_TOKEN_INVALID', 'DUPLICATE_RULE'] as const;

export const IF_MATCH_ERRORS = ['IF_MATCH_REQUIRED', 'IF_MATCH_INVALID', 'ETAG_MISMATCH', 'RECORD_NOT_FOUND'] as const;
