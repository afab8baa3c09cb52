/** Constraint violations of record tables, as errors of the catalogue. */

import { operationRow } from '../../../contracts/operations.ts';
import type { ObjectAccess } from '../../../lib/access/types.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { recordChangeOf } from '../../../lib/operation.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import { sqlState } from '../../../mixins/database/database.ts';
import { errorAttribute, platformErrorOf } from '../../../mixins/mutation/errors.ts';
import type { View } from '../view.ts';
import { invalidConfirmation } from './confirmation.ts';
import { pointerTo, validationFailed } from './violations.ts';
import type { MutationCall } from './write.ts';

/** The catalogue error that a failed mutation of records answers with. */
export const toPlatformError = (view: View | undefined, call: MutationCall, error: unknown): PlatformError =>
  platformErrorOf(error, () => recordError(view, call, error));

/** The error for a refusal by a constraint or type of a record's table; null: something else failed. */
export function recordError(view: View | undefined, call: MutationCall, error: unknown): PlatformError | null {
  const access = view && ownEntry(view.access.objects, call.path.objectApiName);
  const state = sqlState(error);
  if (access && state?.startsWith('23')) return constraintError(access, call, error, state);
  if (state === '22003' && errorAttribute(error, 'where')?.includes('_rollup_'))
    return validationFailed([
      violation('', 'FIELD_OUT_OF_RANGE', 'The rollup value exceeds the range of its field.', { field: null }),
    ]);
  if (state?.startsWith('22'))
    return new PlatformError('VALIDATION_FAILED', 'The record was not saved: a value cannot be stored.', {
      errors: [violation('', 'FIELD_FORMAT_INVALID', 'A value cannot be stored in its field.')],
      cause: error,
    });
  return null;
}

/** Only refusals that a caller can act on say why. */
function constraintError(access: ObjectAccess, call: MutationCall, error: unknown, state: string): PlatformError {
  const constraint = errorAttribute(error, 'constraint');
  if (state === '23505' && constraint === '_confirmations_pkey') return invalidConfirmation();
  // The unit may write records of other objects as well.
  const isOwn = (errorAttribute(error, 'table') ?? access.object.apiName) === access.object.apiName;
  const column = isOwn ? (errorAttribute(error, 'column') ?? columnOf(constraint)) : null;
  // A field the caller cannot read is not named.
  const field = column !== null && ownEntry(access.fields, column)?.read ? column : null;
  const pointer = field === null ? '' : pointerTo(field);
  switch (state) {
    case '23505':
      return uniqueConflict([field]);
    case '23503':
      return isDeletion(call)
        ? new PlatformError('DELETE_RESTRICTED', 'Other records depend on this one.', { details: { dependents: [] } })
        : validationFailed([violation(pointer, 'REFERENCE_NOT_FOUND', 'A reference refers to no record.', { field })]);
    case '23502':
      return validationFailed([violation(pointer, 'FIELD_REQUIRED', 'A required value is missing.', { field })]);
    default:
      return validationFailed([violation(pointer, 'FIELD_OUT_OF_RANGE', 'A value is not allowed.', { field })]);
  }
}

/** A restoration of a deleted record needs the same permission. */
function isDeletion({ operationId }: MutationCall): boolean {
  const change = recordChangeOf(operationRow(operationId));
  return change?.needs.includes('delete') === true && !change.deleted;
}

const VALUE_TAKEN = 'Another record already has this value.';

/** `fields`: those whose values other records have, null for one that the caller cannot read. */
export const uniqueConflict = (fields: readonly (string | null)[]): PlatformError =>
  new PlatformError('UNIQUE_VALUE_CONFLICT', VALUE_TAKEN, {
    details: { field: fields[0] ?? null },
    errors: fields.map((field) =>
      violation(field === null ? '' : pointerTo(field), 'UNIQUE_VALUE_CONFLICT', VALUE_TAKEN, { field }),
    ),
  });

/** Unique indexes and foreign keys carry their column at the end of their name, also those that are in the making. */
const columnOf = (constraint: string | undefined): string | null =>
  /^(?:_n[0-9a-f]{8})?_[uf]_[0-9a-f]{8}_(.+)$/.exec(constraint ?? '')?.[1] ?? null;
