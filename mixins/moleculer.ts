/** What Moleculer has and its declarations lack. */
import type { Context, Middleware, ServiceBroker } from 'moleculer';

type Handler<Ctx> = (ctx: Ctx) => Promise<unknown>;

/** The hooks of a middleware; each says what it reads of a context, an action and a call. */
interface Hooks<Ctx, Action, Send> {
  readonly name: string;
  created?(broker: ServiceBroker): void;
  started?(broker: ServiceBroker): void;
  stopped?(): void;
  call?(next: Send): Send;
  emit?(next: Send): Send;
  broadcast?(next: Send): Send;
  localAction?(next: Handler<Ctx>, action: Action): Handler<Ctx>;
  remoteAction?(next: Handler<Ctx>, action: Action): Handler<Ctx>;
  localEvent?(next: Handler<Ctx>, event: Action): Handler<Ctx>;
}

export const middleware = <Ctx, Action, Send>(hooks: Hooks<Ctx, Action, Send>): Middleware => hooks as object;

/** The calls and events under way in a broker or service. */
export const trackedContexts = (owner: object): Context[] =>
  '_trackedContexts' in owner && Array.isArray(owner._trackedContexts) ? owner._trackedContexts : [];
