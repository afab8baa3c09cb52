/** Composite requests, whose parts are answered by the handlers of their operations. */
import { requestContext } from '../../../lib/context.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import type { Handlers } from '../handlers.ts';
import { invalidValue, type ReadDeps } from '../read/read.ts';
import type { MutationDeps } from '../write/write.ts';
import { executeComposite, type PartDeps, type PartHandler } from './execute.ts';
import { writeRecords } from './records.ts';

/** Handlers of operations by the names of their actions. */
type OperationActions = (
  handlers: Handlers,
  on: Pick<ReadDeps, 'database' | 'tenants'>,
) => Readonly<Record<string, unknown>>;

/** The actions `composite.*` of data. `operationActions` makes the actions of all operations that a part may name. */
export function compositeActions(
  handlers: Handlers,
  read: ReadDeps,
  write: MutationDeps,
  operationActions: OperationActions,
) {
  const byName =
    (actions: Readonly<Record<string, unknown>>) =>
    (action: string): PartHandler => {
      const handler = actions[action.slice(action.indexOf('.') + 1)];
      if (typeof handler !== 'function') throw new Error(`No handler answers ${action}.`);
      return (request, call) => handler({ meta: { request }, params: call });
    };
  const deps = {
    read,
    write,
    handlers: byName(operationActions(handlers, read)),
    handlersOf: (own: PartDeps) => byName(operationActions({ ...handlers, ...handlersOver(own) }, own.read)),
  };
  return {
    'composite.execute': handlers.mutation((request, call: Parameters<typeof executeComposite>[2]) =>
      executeComposite(deps, request, call),
    ),
    'composite.writeRecords': handlers.mutation((request, call: Parameters<typeof writeRecords>[2]) =>
      writeRecords(write, request, call),
    ),
  };
}

/** Handlers that do their work with these dependencies. */
function handlersOver({ read, write }: PartDeps): Pick<Handlers, 'read' | 'write'> {
  return {
    read: (operation) => (ctx) =>
      operation(read, requestContext(ctx), ctx.params).catch((error: unknown): OperationReply => {
        throw invalidValue(error) ?? error;
      }),
    write: (mutation) => (ctx) => write(mutation)(requestContext(ctx), ctx.params),
  };
}
