/**
 * Which statements a request to this process sends to the database, also after its answer. The requests that are being
 * answered are followed by Node itself; a service that answers in this process is part of them.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import pg from 'pg';

interface Statement {
  readonly method: string;
  /** Of the request, without its parameters. */
  readonly path: string;
  readonly text: string;
}

export interface Statements {
  all(): readonly Statement[];
  /** Ends the watch. */
  end(): void;
}

const REQUEST_STARTS = 'http.server.request.start';

/** Watches from now on. */
export function watchStatements(): Statements {
  const found: Statement[] = [];
  const requests = new AsyncLocalStorage<IncomingMessage>();
  const enter = (message: unknown): void => requests.enterWith((message as { request: IncomingMessage }).request);
  const { query } = pg.Client.prototype;
  const watched = function (this: pg.Client, ...parameters: unknown[]): unknown {
    const request = requests.getStore();
    const [statement] = parameters;
    if (request)
      found.push({
        method: request.method ?? '',
        path: request.url?.split('?')[0] ?? '',
        text: typeof statement === 'string' ? statement : ((statement as { text?: string }).text ?? 'a statement'),
      });
    return Reflect.apply(query, this, parameters);
  };
  pg.Client.prototype.query = watched as typeof query;
  subscribe(REQUEST_STARTS, enter);
  return {
    all: () => found,
    end: () => {
      unsubscribe(REQUEST_STARTS, enter);
      pg.Client.prototype.query = query;
    },
  };
}
