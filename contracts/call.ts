/**
 * Every action and event of the services, with the types of what they carry. Services import contracts and never each
 * other; a misspelt action or event does not compile, neither where it is called or emitted nor where it is handled.
 */
import { type RequestContext, type RequestMeta, requestContext } from '../lib/context.ts';
import type { ProcessActions } from './process.ts';
import type { ServiceActions, ServiceEvents } from './services.ts';

export type ActionMap = ServiceActions & ProcessActions;

export type EventMap = ServiceEvents;

export interface Caller {
  // biome-ignore lint/suspicious/noExplicitAny: Moleculer's own signature
  call(action: string, params?: any, options?: any): Promise<any>;
}

interface Emitter {
  emit(event: string, payload: unknown): PromiseLike<void>;
  broadcast(event: string, payload: unknown): PromiseLike<void>;
}

/** A typed call; the request context of `caller` (a Moleculer Context) is sent with it. */
export function call<K extends keyof ActionMap>(
  caller: Caller,
  action: K,
  params: ActionMap[K]['params'],
  options?: { timeout?: number; meta?: object; nodeID?: string },
): Promise<ActionMap[K]['result']> {
  return caller.call(action, params, options);
}

/** Sends an event to one node of each service that handles it. */
export function emit<K extends keyof EventMap>(emitter: Emitter, event: K, payload: EventMap[K]): void {
  void emitter.emit(event, payload);
}

/** Sends an event to every node whose services handle it. */
export function broadcast<K extends keyof EventMap>(emitter: Emitter, event: K, payload: EventMap[K]): void {
  void emitter.broadcast(event, payload);
}

/** The part of a Moleculer Context that handlers use. */
export interface ActionContext<Params> extends Caller {
  readonly params: Params;
  readonly meta: RequestMeta;
}

/** The handlers of a service by the names of its actions: all that its contract promises. */
export type ActionHandlers<Service extends string, Actions> = {
  [K in keyof Actions as K extends `${Service}.${infer Name}` ? Name : never]: Actions[K] extends {
    params: infer Params;
    result: infer Result;
  }
    ? (ctx: ActionContext<Params>) => Result | Promise<Result>
    : never;
};

/** Handlers of events by their names; those of Moleculer itself begin with `$`. */
export type EventHandlers = { [K in keyof EventMap]?: (ctx: { readonly params: EventMap[K] }) => unknown } & {
  [internal: `$${string}`]: () => unknown;
};

/** Makes the handlers of actions that people and programs ask for: they get what the service depends on, and who asks. */
export const answering =
  <Deps>(deps: Deps) =>
  <Params, Result>(handler: (deps: Deps, request: RequestContext, params: Params) => Promise<Result>) =>
  (ctx: ActionContext<Params>): Promise<Result> =>
    handler(deps, requestContext(ctx), ctx.params);
