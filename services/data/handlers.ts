/** How the public operations of this service become actions. Each area registers its own in its `actions.ts`. */

import type { ActionContext, ActionHandlers } from '../../contracts/call.ts';
import type { DataActions } from '../../contracts/data.ts';
import { type Asker, type RequestContext, requestContext } from '../../lib/context.ts';
import type { OperationCall, OperationReply } from '../../lib/operation.ts';
import type { OlderSchemas } from './older-schema.ts';
import { type Read, type ReadDeps, runRead } from './read/read.ts';
import { settleRows, writeRowsOf } from './rows/write-rows.ts';
import { type CheckCall, checkRecord } from './write/check.ts';
import { type RequestedMutation, runRecordMutation } from './write/run-mutation.ts';
import type { MutationCall, MutationDeps } from './write/write.ts';

/** The handlers of this service by the names of their actions. */
export type DataHandlers = ActionHandlers<'data', DataActions>;

type PublicHandler<Input> = (ctx: ActionContext<Input>) => Promise<OperationReply>;

export interface Handlers {
  /** The handler of an operation that changes nothing. */
  readonly read: <Input extends OperationCall>(operation: Read<Input>) => PublicHandler<Input>;
  /** The handler of an internal action that reads for a user. */
  readonly ask: <Input, Answer>(
    work: (deps: ReadDeps, asker: Asker, input: Input) => Promise<Answer>,
  ) => (ctx: ActionContext<Input & { asker: Asker }>) => Promise<Answer>;
  /** The handler of a mutation of records. */
  readonly write: (mutation: RequestedMutation) => PublicHandler<MutationCall>;
  /** The handler of the operation that tries out a mutation of a record. */
  readonly check: PublicHandler<CheckCall>;
  /** The handler of the internal action that writes many records. */
  readonly rows: DataHandlers['rows.write'];
  readonly settledRows: DataHandlers['rows.settle'];
  /** The handler of any other mutation. */
  readonly mutation: <Input extends OperationCall>(
    work: (request: RequestContext, call: Input) => Promise<OperationReply>,
  ) => PublicHandler<Input>;
}

export function publicHandlers(readDeps: ReadDeps, writeDeps: MutationDeps, olderSchemas: OlderSchemas): Handlers {
  const explained = <Answer>(tenantId: string, answer: Promise<Answer>) =>
    answer.catch(async (failure: unknown): Promise<never> => {
      throw await olderSchemas.explain(tenantId, failure);
    });
  return {
    read: (operation) => (ctx) => {
      const request = requestContext(ctx);
      return explained(request.tenantId, runRead(operation, readDeps, request, ctx.params));
    },
    ask: (work) => (ctx) => {
      const { asker } = ctx.params;
      return explained(asker.tenantId, runRead(work, readDeps, asker, ctx.params));
    },
    write: (mutation) => (ctx) => {
      const request = requestContext(ctx);
      return explained(request.tenantId, runRecordMutation(writeDeps, mutation, request, ctx.params));
    },
    check: (ctx) => {
      const request = requestContext(ctx);
      return explained(request.tenantId, checkRecord(writeDeps, request, ctx.params));
    },
    rows: (ctx) => {
      const request = requestContext(ctx);
      return explained(request.tenantId, writeRowsOf(writeDeps, request, ctx.params));
    },
    settledRows: (ctx) => {
      const request = requestContext(ctx);
      return explained(request.tenantId, settleRows(writeDeps, request, ctx.params.key));
    },
    mutation: (work) => (ctx) => {
      const request = requestContext(ctx);
      return explained(request.tenantId, work(request, ctx.params));
    },
  };
}
