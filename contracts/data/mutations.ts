/** Common to the operations that change records. */
import { Type } from 'typebox';
import { defineParameter } from '../../lib/operation.ts';
import { KEY_ERRORS } from './rows.ts';

/** Row properties of mutations that can have a dry run under a run of an agent. */
export const TRIED = { dryRun: true } as const;

export const CHECK_OPERATION = 'data.records.check';

/** Row properties of a mutation of one record; `as` is its name among those that `data.records.check` tries out. */
export const checked = <const As extends string>(as: As) =>
  ({ ...TRIED, checkedBy: { operationId: CHECK_OPERATION, as } }) as const;

/** On operations that store the values of a record. */
export const duplicateConfirmation = defineParameter({
  name: 'X-Duplicate-Confirmation',
  description:
    'The `confirmationToken` of a 409 `DUPLICATE_RULE`, after a person has seen the matches and wants the record all the same. The repeated request needs a new Idempotency-Key.',
  schema: Type.String(),
});

export const ACCESS_ERRORS = ['OBJECT_NOT_FOUND', 'OBJECT_PERMISSION_DENIED', 'RECORD_ACCESS_DENIED'] as const;

export const MUTATION_ERRORS = [...KEY_ERRORS, ...ACCESS_ERRORS] as const;

export const FIELD_ERRORS = [
  'BODY_REQUIRED',
  'FIELD_PERMISSION_DENIED',
  'UNIQUE_VALUE_CONFLICT',
  'VALIDATION_FAILED',
] as const;

export const DUPLICATE_ERRORS = ['CONFIRMATION_TOKEN_INVALID', 'DUPLICATE_RULE'] as const;

export const IF_MATCH_ERRORS = ['IF_MATCH_REQUIRED', 'IF_MATCH_INVALID', 'ETAG_MISMATCH', 'RECORD_NOT_FOUND'] as const;
