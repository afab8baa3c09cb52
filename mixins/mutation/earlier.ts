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

/** The handler of a mutation. If it refuses a request because the same one was executed before, that outcome is the answer. */
export const orEarlier =
  <Deps extends { readonly database: Database }, Input extends OperationCall>(
    handler: (deps: Deps, request: RequestContext, input: Input) => Promise<OperationReply>,
  ) =>
  async (deps: Deps, request: RequestContext, input: Input): Promise<OperationReply> => {
    try {
      return await handler(deps, request, input);
    } catch (error) {
      const earlier =
        error instanceof PlatformError && error.status < 500 && (await earlierReply(deps, request, input));
      if (earlier) return earlier;
      throw error;
    }
  };
