/**
 * Every action that works for a request, its own or that of the `asker` in its parameters, measures the database time
 * of the request and reports it in the answer's meta, where the gateway finds it, whether or not the action failed.
 * Wraps every action of a process.
 */
import type { Middleware } from 'moleculer';
import type { Asker, DatabaseTimeMeta, RequestContext } from '../../lib/context.ts';
import { LIMITS } from '../../lib/limits.ts';
import { middleware } from '../moleculer.ts';
import { currentUse, type DatabaseUse, measured } from './use.ts';

interface ActionOf {
  readonly name: string;
}

interface MeteredContext {
  readonly params: unknown;
  readonly meta: { request?: RequestContext } & DatabaseTimeMeta;
}

type Handler = (ctx: MeteredContext) => Promise<unknown>;

/** `timeoutOf`: how long one statement of an action may take; undefined where the action does not say. */
export const databaseMetering = (timeoutOf: (action: string) => number | undefined): Middleware =>
  middleware({
    name: 'DatabaseMetering',
    localAction(next: Handler, { name }: ActionOf): Handler {
      const timeoutMs = timeoutOf(name) ?? LIMITS.statement_timeout_ms;
      return (ctx) => {
        const request = ctx.meta.request ?? (ctx.params as { asker?: Asker } | null | undefined)?.asker;
        // An action that another one called in this process works within the limits of the first, at its expense.
        if (!request || currentUse()) return next(ctx);
        const use: DatabaseUse = {
          deadline: request.deadline,
          statementTimeoutMs: timeoutMs,
          heldMs: 0,
          ended: false,
        };
        return measured(
          use,
          () => next(ctx),
          () => {
            // The meta holds by now the usage of other processes on behalf of this action.
            if (use.heldMs >= 1) ctx.meta.databaseMs = Math.round(use.heldMs) + (ctx.meta.databaseMs ?? 0);
          },
        );
      };
    },
  });
