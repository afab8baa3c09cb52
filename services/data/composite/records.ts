/** Many records of one object in one request. Source: docs/reference/composite.md#records. */
import type { RowsToWrite } from '../../../contracts/data/row-writes.ts';
import type { OperationInput } from '../../../contracts/operations.ts';
import type { RequestContext } from '../../../lib/context.ts';
import type { ErrorCode } from '../../../lib/errors/catalogue.ts';
import { PlatformError, type Violation, violation } from '../../../lib/errors/platform-error.ts';
import { VIOLATIONS_MAX } from '../../../lib/errors/violation-list.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { idempotencyKey } from '../../../mixins/mutation/key.ts';
import { formViolations } from '../rows/row.ts';
import { writeRows } from '../rows/write-rows.ts';
import type { MutationDeps } from '../write/write.ts';

/**
 * Answers RowsWritten.
 * @throws PlatformError COMPOSITE_FAILED when `allOrNone` and a row was refused: nothing is stored then.
 */
export async function writeRecords(
  deps: MutationDeps,
  request: RequestContext,
  call: OperationInput<'composite.records.write'>,
): Promise<OperationReply> {
  const { allOrNone = true, records, ...body } = call.body;
  const input: RowsToWrite = { ...body, allOrNone, checkOnly: request.dryRun === true, rows: records };
  requireForm(input);
  const path = { objectApiName: input.objectApiName };
  return writeRows(deps, request, { ...call, path }, input, idempotencyKey(call, request));
}

/** Throws 400 with all violations for rows that are malformed, whatever is stored. */
function requireForm(input: RowsToWrite): void {
  const found: Violation<ErrorCode>[] = [];
  const { operation, externalIdField } = input;
  if ((operation === 'upsert') !== (externalIdField !== undefined)) {
    const [code, message] =
      operation === 'upsert'
        ? (['PARAMETER_REQUIRED', 'externalIdField is required for an upsert.'] as const)
        : (['PARAMETER_CONFLICT', `externalIdField cannot be combined with the operation ${operation}.`] as const);
    found.push(violation('/externalIdField', code, message));
  } else
    for (const [index, row] of input.rows.entries()) {
      for (const one of formViolations(input, row)) found.push({ ...one, pointer: `/records/${index}${one.pointer}` });
      if (found.length > VIOLATIONS_MAX) break;
    }
  const [first] = found;
  if (!first) return;
  const message = found.length === 1 ? first.message : 'The rows have several problems; see errors.';
  throw new PlatformError(first.code, message, { errors: found.slice(0, VIOLATIONS_MAX) });
}
