/**
 * Tries out a change of one record: a check becomes the request that the operation itself would get, and takes its way
 * in a transaction that is rolled back. Source: docs/reference/records.md#dry-run.
 */
import { CHECK_BODIES, type CheckBody } from '../../../contracts/data/check.ts';
import { DATA_OPERATIONS } from '../../../contracts/data.ts';
import type { OperationInput } from '../../../contracts/operations.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError, type Violation, violation } from '../../../lib/errors/platform-error.ts';
import type { Operation, OperationReply } from '../../../lib/operation.ts';
import { bodyViolations } from '../../../lib/validation.ts';
import { IF_MATCH_RULE, strongEtags } from '../../../lib/values/etags.ts';
import { tryRecordMutation } from './run-mutation.ts';
import type { MutationCall, MutationDeps } from './write.ts';

export type CheckCall = OperationInput<'data.records.check'>;

const rows: readonly Operation[] = DATA_OPERATIONS;
/** The operations that can be tried out, by their names in a check. */
export const OPERATION_IDS: ReadonlyMap<string, string> = new Map(
  rows.flatMap(({ operationId, checkedBy }) => (checkedBy ? [[checkedBy.as, operationId] as const] : [])),
);

/** Answers the verdict on the change; what is not about its content is an error, as of the operation itself. */
export async function checkRecord(
  deps: MutationDeps,
  request: RequestContext,
  call: CheckCall,
): Promise<OperationReply> {
  const { body } = call;
  requireForm(body);
  try {
    return await tryRecordMutation(deps, body.operation, request, requestOf(call, body));
  } catch (error) {
    throw error instanceof PlatformError ? inCheck(error, body) : error;
  }
}

const isOperation = (name: unknown): name is keyof typeof CHECK_BODIES =>
  typeof name === 'string' && Object.hasOwn(CHECK_BODIES, name);

function requireForm(body: Record<string, unknown>): asserts body is CheckBody {
  const { operation, ifMatch } = body;
  if (!isOperation(operation)) throw new Error('The gateway has let a check of no operation through.');
  const errors = bodyViolations(CHECK_BODIES[operation], body);
  const [first] = errors;
  if (first)
    throw new PlatformError(
      first.code,
      errors.length === 1 ? first.message : `The request has ${errors.length} problems; see errors.`,
      { errors: [...errors] },
    );
  if (typeof ifMatch === 'string' && strongEtags(ifMatch) === null)
    throw new PlatformError('IF_MATCH_INVALID', IF_MATCH_RULE, {
      errors: [violation('/ifMatch', 'IF_MATCH_INVALID', IF_MATCH_RULE)],
    });
}

/** Properties of checks; each has some of them. */
interface Checked {
  readonly operation: keyof typeof CHECK_BODIES;
  readonly id?: string;
  readonly external?: { readonly field: string; readonly value: string };
  readonly transitionKey?: string;
  readonly ifMatch?: string;
  readonly ifNoneMatch?: string;
  readonly duplicateConfirmation?: string;
  readonly fields?: object;
  readonly input?: object;
  readonly comment?: string;
}

/** The request that the operation itself would get. */
function requestOf({ path, ieee754Compatible }: CheckCall, body: Checked): MutationCall {
  const { operation, id, external, transitionKey, fields, input, comment } = body;
  const { ifMatch, ifNoneMatch, duplicateConfirmation } = body;
  const ofTransition = { ...(input && { input }), ...(comment !== undefined && { comment }) };
  const content = fields ?? (Object.keys(ofTransition).length > 0 ? ofTransition : undefined);
  return {
    operationId: OPERATION_IDS.get(operation) ?? '',
    path: {
      objectApiName: path.objectApiName,
      ...(id !== undefined && { id }),
      ...(transitionKey !== undefined && { transitionKey }),
      ...(external && { externalIdField: external.field, value: external.value }),
    },
    query: {},
    headers: {
      ...(ifMatch !== undefined && { ifMatch }),
      ...(ifNoneMatch !== undefined && { ifNoneMatch }),
      ...(duplicateConfirmation !== undefined && { duplicateConfirmation }),
    },
    ...(content && { body: content }),
    ...(ieee754Compatible && { ieee754Compatible }),
  };
}

/** Place in a check's body of the operation's path and header parameters. */
const PLACES: Readonly<Record<string, string>> = {
  'header:If-Match': '/ifMatch',
  'header:If-None-Match': '/ifNoneMatch',
  'header:X-Duplicate-Confirmation': '/duplicateConfirmation',
  'path:externalIdField': '/external/field',
  'path:value': '/external/value',
};

/** An error of the operation, with pointers into the check. */
function inCheck(error: PlatformError, body: CheckBody): PlatformError {
  if (!error.errors) return error;
  const fields = 'fields' in body ? '/fields' : '';
  const placed = ({ pointer, ...one }: Violation): Violation => ({
    ...one,
    pointer: PLACES[pointer] ?? (pointer.startsWith('/') ? fields + pointer : pointer),
  });
  return error.withErrors(error.errors.map(placed));
}
