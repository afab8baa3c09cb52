/** Calls and events on the bus as spans: one where it is sent, one where it is worked on. */
import type { Middleware, ServiceBroker } from 'moleculer';
import { middleware } from '../moleculer.ts';
import { currentWork, workOn } from '../watchdog/work.ts';
import { beginPart, failureName, type Span } from './tracing.ts';

interface Called {
  readonly nodeID: string | null;
  readonly requestID: string | null;
  readonly meta: { traceparent?: string };
}

type Handler = (ctx: Called) => Promise<unknown>;

function endWith<T extends PromiseLike<unknown>>(span: Span, answered: T): T {
  answered.then(
    () => span.end(),
    (error) => span.end(failureName(error)),
  );
  return answered;
}

/** Middleware of a broker whose calls are traced; it stands before `following` in the list, which says what is under way. */
export function tracedCalls(): Middleware {
  let nodeId: string;
  const handled =
    (next: Handler, { name = 'unknown' }: { name?: string }): Handler =>
    (ctx) => {
      const work = currentWork();
      const isRemote = ctx.nodeID !== null && ctx.nodeID !== nodeId;
      const span = beginPart({
        name,
        kind: isRemote ? 'server' : 'internal',
        parent: work?.traceparent,
        attributes: { 'rpc.system.name': 'moleculer', 'rpc.method': name },
      });
      if (!span) return next(ctx);
      const { label = name, requestId = ctx.requestID } = work ?? {};
      return endWith(
        span,
        workOn({ label, requestId, traceparent: span.traceparent }, () => next(ctx)),
      );
    };
  return middleware({
    name: 'TracedCalls',
    created(broker: ServiceBroker) {
      nodeId = broker.nodeID;
    },
    localAction: handled,
    localEvent: handled,
    remoteAction(next: Handler, { name }: { name: string }): Handler {
      return (ctx) => {
        const span = beginPart({
          name,
          kind: 'client',
          parent: currentWork()?.traceparent ?? ctx.meta.traceparent,
          attributes: { 'rpc.system.name': 'moleculer', 'rpc.method': name, 'erp.node': ctx.nodeID ?? '' },
        });
        if (!span) return next(ctx);
        ctx.meta.traceparent = span.traceparent;
        return endWith(span, next(ctx));
      };
    },
  });
}
