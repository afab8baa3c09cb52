/** Outcomes of requests that were carried out before, for work that looks at something before it claims its key. */
import type { RequestContext } from '../../lib/context.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import type { OperationCall, OperationReply } from '../../lib/operation.ts';
import type { Database } from '../database/database.ts';
import { answerOf, findKey, idempotencyKey } from './key.ts';

/** The outcome of an earlier execution of the request; null: there is none. */
export async function earlierReply(
  { database }: { readonly database: Database },
  request: RequestContext,
  call: OperationCall,
): Promise<OperationReply | null> {
  const key = idempotencyKey(call, request);
  return answerOf(await database.tenant(request.tenantId, (tx) => findKey(tx, key)), key);
}

/** Does the work. If it is refused because the same request was executed before, answers that outcome. */
export async function orEarlier(
  deps: { readonly database: Database },
  request: RequestContext,
  call: OperationCall,
  work: () => Promise<OperationReply>,
): Promise<OperationReply> {
  try {
    return await work();
  } catch (error) {
    const earlier = error instanceof PlatformError && error.status < 500 && (await earlierReply(deps, request, call));
    if (earlier) return earlier;
    throw error;
  }
}
