/**
 * Files for a field of a record. data writes the field, as an update by the same user would: with its permissions, rules,
 * history and events. Source: docs/reference/files.md#a-field-of-a-record.
 */

import type { RowResult } from '../../contracts/data/row-writes.ts';
import { askerOf, type RequestContext } from '../../lib/context.ts';
import { isErrorCode } from '../../lib/errors/catalogue.ts';
import { PlatformError, violation } from '../../lib/errors/platform-error.ts';
import type { OperationCall, OperationReply } from '../../lib/operation.ts';
import { madeFile, recordNotFound, visibleFile } from './access.ts';
import type { FilesDeps } from './deps.ts';
import { change } from './mutation.ts';

/** A file that was made for a field, and the field. */
export interface FileForField {
  readonly fileId: string;
  readonly objectApiName: string;
  readonly recordId: string;
  readonly field: string;
}

/** Attempts at a record that others change in between. */
const ATTEMPTS = 3;

/** Refuses a field that the caller cannot give a file to. */
export async function requireFileField(
  deps: FilesDeps,
  request: RequestContext,
  objectApiName: string,
  field: string,
): Promise<void> {
  const { scopes, agentRunId } = request;
  if (!scopes.includes('data:write'))
    throw new PlatformError('SCOPE_INSUFFICIENT', 'The access token lacks the scope data:write: a record is changed.', {
      details: { required: ['files:write', 'data:write'], granted: [...scopes], layer: 'scope' },
    });
  // Its policy, budget and approvals are those of an update.
  if (agentRunId !== null)
    throw new PlatformError('AGENT_POLICY_DENIED', 'Under a run, write the field by an update of the record.');
  const { columns } = await deps.describe({ asker: askerOf(request), objectApiName });
  const column = columns.find(({ apiName }) => apiName === field);
  const refuse = (code: 'FIELD_UNKNOWN' | 'FIELD_TYPE_INVALID' | 'FIELD_READ_ONLY', message: string): never => {
    throw new PlatformError('VALIDATION_FAILED', 'The field cannot take a file.', {
      errors: [violation('/attachTo/field', code, message, { field })],
    });
  };
  if (!column) return refuse('FIELD_UNKNOWN', `${field} is no field of ${objectApiName} that you can read.`);
  if (!column.file) return refuse('FIELD_TYPE_INVALID', `${field} is not of type file.`);
  if (!column.edit) return refuse('FIELD_READ_ONLY', `${field} cannot be written by you.`);
}

/** The file for a field in the reply of the mutation that made it. */
export const fileForField = ({ body }: OperationReply): FileForField =>
  JSON.parse(Buffer.isBuffer(body) ? body.toString() : JSON.stringify(body));

/** Writes the field, and answers `call` with the file. */
export async function giveToField(
  deps: FilesDeps,
  request: RequestContext,
  call: OperationCall,
  file: FileForField,
): Promise<OperationReply> {
  await writeField(deps, request, call, file);
  const { row, records } = await visibleFile(deps, request, file.fileId);
  return change(deps, request, call, async () => madeFile(row, records));
}

async function writeField(
  deps: FilesDeps,
  request: RequestContext,
  { headers }: OperationCall,
  { fileId, objectApiName, recordId, field }: FileForField,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const { results } = await deps.writeRows(request, {
      objectApiName,
      operation: 'update',
      // What is refused leaves nothing under its key.
      allOrNone: true,
      checkOnly: false,
      rows: [
        {
          id: recordId,
          ifMatch: await etagOfRecord(deps, request, objectApiName, recordId),
          fields: { [field]: fileId },
        },
      ],
      key: `field-${fileId}-${headers.idempotencyKey}`,
    });
    const [result] = results;
    if (!result) throw new Error('Assertion failed: each row has a result');
    if (result.status < 400) return;
    if (result.status !== 412 || attempt === ATTEMPTS) throw refusalOf(result);
  }
}

/** Throws RECORD_NOT_FOUND when the caller cannot read the record any more. */
async function etagOfRecord(
  deps: FilesDeps,
  request: RequestContext,
  objectApiName: string,
  recordId: string,
): Promise<string> {
  const query = { where: { id: recordId }, fields: ['id'], includeEtag: true, take: 1 };
  const { page } = await deps.readRows({ asker: askerOf(request), objectApiName, query });
  const [record] = JSON.parse(page.toString()).records;
  if (!record) throw recordNotFound();
  return record._etag;
}

/** The refusal of the row, as the update of one record would have thrown it. */
function refusalOf({ status, errors }: RowResult): PlatformError {
  const [first] = errors;
  if (!first) throw new Error('Assertion failed: a refused row says why');
  if (status === 412)
    return new PlatformError('WRITE_CONTENTION', 'Others are changing the record. Send the request again.', {
      retryAfterSeconds: 1,
    });
  if (isErrorCode(first.code) && first.pointer === undefined)
    return new PlatformError(first.code, first.message, first.detail ? { details: first.detail } : {});
  return new PlatformError('VALIDATION_FAILED', 'The record does not take the file in its field.', {
    errors: errors.flatMap(({ code, message, field = null, ruleApiName = null, params = {} }) =>
      code === 'ROLLED_BACK' ? [] : [violation('', code, message, { field, ruleApiName, params })],
    ),
  });
}
