/** One row of a write of many: the single write that it stands for, and its result. Pure. */
import {
  ROLLED_BACK,
  type RowError,
  type RowOperation,
  type RowResult,
  type RowsToWrite,
  type RowToWrite,
} from '../../../contracts/data/row-writes.ts';
import type { ErrorCode } from '../../../lib/errors/catalogue.ts';
import { type PlatformError, type Violation, violation } from '../../../lib/errors/platform-error.ts';
import { pointerPart } from '../../../lib/errors/pointer.ts';
import { ExactNumber } from '../../../lib/json/exact-number.ts';
import { isObject, membersOf } from '../../../lib/json/objects.ts';
import { IF_MATCH_RULE, strongEtags } from '../../../lib/values/etags.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { OPERATION_IDS } from '../write/check.ts';
import type { MutationCall } from '../write/write.ts';

/** True for operations on an existing record, which rows name by id. */
const namesRecord = (operation: RowOperation): boolean => operation === 'update' || operation === 'delete';

type Written = Pick<RowsToWrite, 'objectApiName' | 'operation' | 'externalIdField' | 'conflictPolicy'>;

/** Violations of the form of a row, with pointers into it. */
export function formViolations(
  { operation, externalIdField, conflictPolicy }: Written,
  { id, ifMatch, fields }: RowToWrite,
): Violation<ErrorCode>[] {
  const found: Violation<ErrorCode>[] = [];
  const add = (code: ErrorCode, name: string, message: string): void => {
    found.push(violation(`/${pointerPart(name)}`, code, message));
  };
  if (namesRecord(operation)) {
    if (id === undefined) add('PARAMETER_REQUIRED', 'id', 'id is required: it names the record.');
    else if (!isUuid(id.toLowerCase())) add('PARAMETER_INVALID', 'id', 'id must be a UUID.');
    if (ifMatch === undefined && conflictPolicy !== 'lastWriteWins')
      add('IF_MATCH_REQUIRED', 'ifMatch', 'ifMatch is required: the ETag of the record as it was read.');
  } else if (id !== undefined) add('PARAMETER_CONFLICT', 'id', 'This operation does not take an id.');
  if (ifMatch !== undefined) {
    if (operation === 'create') add('PARAMETER_CONFLICT', 'ifMatch', 'A create does not take ifMatch.');
    else if (strongEtags(ifMatch) === null) add('IF_MATCH_INVALID', 'ifMatch', IF_MATCH_RULE);
  }
  if (operation === 'delete') {
    if (fields !== undefined) add('PARAMETER_CONFLICT', 'fields', 'A delete does not take fields.');
  } else if (!isObject(fields)) add('BODY_REQUIRED', 'fields', 'fields is required.');
  else if (operation === 'upsert') {
    const value = Object.hasOwn(fields, externalIdField ?? '') ? fields[externalIdField ?? ''] : undefined;
    if (keyText(value) === null) add('PARAMETER_REQUIRED', 'fields', `Each row needs a value of ${externalIdField}.`);
  }
  return found;
}

/** Why a row cannot be written, whatever is stored. */
export const formErrors = (written: Written, row: RowToWrite): readonly RowError[] =>
  row.refused ?? formViolations(written, row);

/** An external id as a path would hold it; null: the value is none. */
function keyText(value: unknown): string | null {
  if (value instanceof ExactNumber) return value.text;
  return typeof value === 'string' || typeof value === 'number' ? String(value) : null;
}

/** The request of a single write that the row stands for. */
export function callOf(written: Written, row: RowToWrite): MutationCall {
  const { objectApiName, operation, externalIdField = '' } = written;
  const { id, ifMatch, duplicateConfirmation, fields } = row;
  return {
    operationId: OPERATION_IDS.get(operation) ?? '',
    path: {
      objectApiName,
      ...(id === undefined ? {} : { id: id.toLowerCase() }),
      ...(operation === 'upsert' ? { externalIdField, value: keyText(membersOf(fields)[externalIdField]) ?? '' } : {}),
    },
    query: {},
    headers: {
      ...(ifMatch === undefined ? {} : { ifMatch }),
      ...(duplicateConfirmation === undefined ? {} : { duplicateConfirmation }),
    },
    ...(fields === undefined ? {} : { body: fields }),
  };
}

export const refusedRow = (index: number, id: string | null, error: PlatformError): RowResult => ({
  index,
  id,
  status: error.status,
  etag: null,
  created: false,
  errors: errorsOf(error),
});

/** The violations of a refusal, or the refusal itself where it has none. */
function errorsOf({ code, message, errors = [], details }: PlatformError): RowError[] {
  const detail = details && Object.keys(details).length > 0 ? { detail: details } : {};
  if (errors.length === 0) return [{ code, message, ...detail }];
  return errors.map((one) => ({ ...one, pointer: inRow(one.pointer) }));
}

/** Pointers of a single write are into its body, and name the rest of the request. */
function inRow(pointer: string): string {
  if (pointer === 'header:X-Duplicate-Confirmation') return '/duplicateConfirmation';
  if (pointer === 'header:If-Match') return '/ifMatch';
  if (pointer.startsWith('path:')) return '/fields';
  return `/fields${pointer}`;
}

/** A row whose form is wrong. */
export const malformedRow = (index: number, errors: readonly RowError[]): RowResult => ({
  index,
  id: null,
  status: 400,
  etag: null,
  created: false,
  errors,
});

/** The result of a valid row when nothing is stored because another row failed. */
export const rolledBack = ({ index }: RowResult): RowResult => ({
  index,
  id: null,
  status: 422,
  etag: null,
  created: false,
  errors: [{ code: ROLLED_BACK, message: 'Another row failed, and nothing was stored.' }],
});

export const failed = ({ status }: RowResult): boolean => status >= 400;
