/** The answer of a dry run. Source: docs/reference/records.md#dry-run. */
import type { RequestContext } from '../../lib/context.ts';
import { type PlatformError, type Violation, violation } from '../../lib/errors/platform-error.ts';
import { VIOLATIONS_MAX } from '../../lib/errors/violation-list.ts';
import type { OperationReply } from '../../lib/operation.ts';
import type { Effect } from './unit.ts';

/** 409 that are about the content of the request and not about its form or the caller's permissions. */
const CONFLICTS: ReadonlySet<string> = new Set([
  'UNIQUE_VALUE_CONFLICT',
  'DELETE_RESTRICTED',
  'DUPLICATE_RULE',
  'STATE_CONFLICT',
]);

/** Nothing was wrong. `record` is JSON already: numbers stay as the database wrote them. */
export const approving = (request: RequestContext, record: string, effects: readonly Effect[]): OperationReply =>
  answer(request, true, record, [], [], effects);

/** The answer of a dry run that was refused for its content; null: the refusal stays an error. */
export function refused(request: RequestContext, failure: PlatformError): OperationReply | null {
  if (failure.status !== 422 && !CONFLICTS.has(failure.code)) return null;
  if (failure.code === 'DUPLICATE_RULE')
    return answer(request, false, 'null', [], failure.details?.['rules'] ?? [], []);
  const { details = {}, code, message } = failure;
  const errors: readonly Violation[] = failure.errors?.length
    ? failure.errors.slice(0, VIOLATIONS_MAX)
    : [violation('', code, message, { params: { ...details } })];
  return answer(request, false, 'null', errors, [], []);
}

const answer = (
  { approvalRequired = false }: RequestContext,
  valid: boolean,
  record: string,
  errors: readonly Violation[],
  duplicates: unknown,
  effects: readonly Effect[],
): OperationReply => ({
  status: 200,
  headers: {},
  body: Buffer.from(
    `{"checkOnly":true,"valid":${valid},"record":${record},"errors":${JSON.stringify(errors)},` +
      `"duplicates":${JSON.stringify(duplicates)},"effects":${JSON.stringify(effects)},"approvalRequired":${approvalRequired}}`,
  ),
});
