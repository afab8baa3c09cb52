/**
 * A request can be followed through all services: its id and its place in a trace stand in every line that is logged
 * while it is worked on, and travel with every call and event that it causes.
 * Source: docs/reference/tracing.md.
 */
import type { Context } from 'moleculer';
import { middleware } from './moleculer.ts';
import { currentWork, workWithin } from './watchdog/work.ts';

/** A call without a request has an id of its own, unknown to any client. */
const OF_REQUEST = /^req_[0-9A-Z]{26}$/;

/** Fields of a log line that identify its request. */
export function requestFields(): { requestId?: string; traceparent?: string } {
  const work = currentWork();
  if (!work) return {};
  const { requestId, traceparent } = work;
  return {
    ...(requestId !== null && OF_REQUEST.test(requestId) ? { requestId } : {}),
    ...(traceparent ? { traceparent } : {}),
  };
}

interface Options {
  requestID?: string;
  parentCtx?: unknown;
  ctx?: unknown;
  meta?: object;
}

/** Options of a call or event that a service makes by itself, with what it works on. */
function followed(options: Options): Options {
  // Calls through a handler's context carry all of that already.
  if (Array.isArray(options) || options.parentCtx || options.ctx) return options;
  const work = currentWork();
  if (!work || (work.requestId === null && !work.traceparent)) return options;
  const { requestID = work.requestId, meta } = options;
  if (options.requestID !== undefined && !work.traceparent) return options;
  // The caller may read what an answer adds to its own object.
  const { traceparent } = work;
  if (traceparent && meta && !('traceparent' in meta)) Object.assign(meta, { traceparent });
  return {
    ...options,
    ...(requestID === null ? {} : { requestID }),
    ...(traceparent && !meta ? { meta: { traceparent } } : {}),
  };
}

type Send = (name: string, params: unknown, options?: Options) => unknown;

const sent = (next: Send): Send =>
  function send(this: unknown, name, params, options = {}) {
    return next.call(this, name, params, followed(options));
  };

type Called = Context<unknown, { traceparent?: string }>;

const taken =
  (next: (ctx: Called) => Promise<unknown>, { name = 'unknown' }: { name?: string }) =>
  (ctx: Called): Promise<unknown> =>
    workWithin({ label: name, requestId: ctx.requestID, traceparent: ctx.meta.traceparent }, () => next(ctx));

/** Middleware of a broker: what comes in is a work with the id of its request, and what goes out carries it. */
export const following = middleware({
  name: 'Following',
  call: sent,
  emit: sent,
  broadcast: sent,
  localAction: taken,
  localEvent: taken,
});
