/** How the public operations of this service become actions. Each area registers its own in its `actions.ts`. */

import type { ServiceBroker } from 'moleculer';
import type { ActionContext, ActionHandlers } from '../../contracts/call.ts';
import type { DataActions } from '../../contracts/data.ts';
import { type RequestContext, requestContext } from '../../lib/context.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import type { OperationCall, OperationReply } from '../../lib/operation.ts';
import { type Read, type ReadDeps, runRead } from './read/read.ts';
import { type RequestedMutation, runRecordMutation } from './write/run-mutation.ts';
import type { MutationCall, MutationDeps } from './write/write.ts';

/** The handlers of this service by the names of their actions. */
export type DataHandlers = ActionHandlers<'data', DataActions>;

type PublicHandler<Input> = (ctx: ActionContext<Input>) => Promise<OperationReply>;

export interface Handlers {
  /** The handler of an operation that changes nothing. */
  readonly read: <Input extends OperationCall>(operation: Read<Input>) => PublicHandler<Input>;
  /** The handler of an internal action that reads for the user of the request. `name`: of the action, for the log. */
  readonly ask: <Input, Answer>(
    name: string,
    work: (deps: ReadDeps, request: RequestContext, input: Input) => Promise<Answer>,
  ) => (ctx: ActionContext<Input>) => Promise<Answer>;
  /** The handler of a mutation of records. */
  readonly write: (mutation: RequestedMutation) => PublicHandler<MutationCall>;
}

/** `readDeps` is asked at each call: parts of it are known only once the service has started. */
export function publicHandlers(
  readDeps: () => ReadDeps,
  writeDeps: MutationDeps,
  log: () => ServiceBroker['logger'],
): Handlers {
  /** The cause of a failure is for the log; the caller gets the code and the request id. */
  const logged = <Answer>(ctx: ActionContext<unknown>, name: string, answer: Promise<Answer>): Promise<Answer> =>
    answer.catch((error: unknown) => {
      const cause = error instanceof PlatformError ? error.cause : error;
      const { requestId } = requestContext(ctx);
      if (cause !== undefined) log().error({ err: cause, requestId }, `${name} failed.`);
      throw error;
    });
  return {
    read: (operation) => (ctx) =>
      logged(ctx, ctx.params.operationId, runRead(operation, readDeps(), requestContext(ctx), ctx.params)),
    ask: (name, work) => (ctx) => logged(ctx, name, runRead(work, readDeps(), requestContext(ctx), ctx.params)),
    write: (mutation) => (ctx) =>
      logged(ctx, ctx.params.operationId, runRecordMutation(writeDeps, mutation, requestContext(ctx), ctx.params)),
  };
}
