/** One HTTP request on its way through the gateway: what the steps have found out about it so far. */
import { randomFillSync } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { MCP_PATH } from '../../../contracts/mcp.ts';
import { isScimPath } from '../../../contracts/scim.ts';
import type { UsedApproval } from '../../../lib/context.ts';
import type { Operation, OperationCall, OperationReply } from '../../../lib/operation.ts';
import { requestId } from '../../../lib/values/ids.ts';
import { traceparentOf } from '../../../lib/values/traceparent.ts';
import type { Span } from '../../../mixins/tracing/tracing.ts';
import type { Budget } from '../pipeline/rate/budget.ts';
import type { Route } from '../pipeline/router.ts';
import type { Door, Session } from '../pipeline/session.ts';
import type { Deliveries, Delivery } from './deliveries.ts';

// Random bytes are drawn in bulk: one system call for many request ids.
const ID_BYTES = 16;
const pool = Buffer.alloc(ID_BYTES * 512);
let drawn = pool.length;

function randomForId(): Uint8Array {
  if (drawn === pool.length) {
    randomFillSync(pool);
    drawn = 0;
  }
  return pool.subarray(drawn, (drawn += ID_BYTES));
}

/** A call that was admitted to a run. */
interface AdmittedCall {
  readonly runId: string;
  readonly stepId: string;
  /** A mutation is tried out. */
  readonly dryRun: boolean;
  readonly approvalRequired: boolean;
  /** What the change uses up; null: it needs no approval. */
  readonly approval: UsedApproval | null;
  /** Objects that the operation must not read; absent: a policy denies none. */
  readonly deniedObjects?: readonly string[];
}

const CLIENT_REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

/** A request may name us in full (RFC 9112 section 3.2.2); whom it names decides nothing. */
const originForm = (url: string): string =>
  url.charCodeAt(0) === 0x2f ? url : url.replace(/^https?:\/\/[^/?#]*\/?/i, '/');

const doorOf = (path: string): Door => (path === MCP_PATH ? 'mcp' : isScimPath(path) ? 'scim' : 'api');

export class Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Without the question mark; empty when there is none. */
  readonly rawQuery: string;
  readonly requestId: string;
  readonly startedAt: number;
  /** The same on the clock that never jumps. */
  readonly started = performance.now();
  readonly ip: string;
  /** What the caller came to. */
  readonly door: Door;

  #route: Route | null = null;
  pathValues: readonly string[] = [];
  /** Name in log and metrics: the operationId, or what else was asked for. */
  label = 'none';
  session: Session | null = null;
  /** What is charged for this request; null until known. */
  budget: Budget | null = null;
  /** The request has paid, or is about to: nothing more is charged when it is refused. */
  charged = false;
  /** Origin that may read the answer; null: none. */
  allowedOrigin: string | null = null;
  body: Buffer | null = null;
  call: OperationCall | null = null;
  /** The operation that the call tries out; null: it is no check. */
  checked: Operation | null = null;
  /** The references that the call expands. */
  expanded: readonly string[] = [];
  /** The run that has admitted the call. */
  run: AdmittedCall | null = null;
  /** The run of the caller that did not admit the call: the trail names it. */
  refusedByRun: string | null = null;
  /** What the call was answered when it was carried out before. */
  outcome: OperationReply | null = null;
  abort: ((error: Error) => void) | null = null;
  /** The client waits for `100 Continue` before it sends the body. */
  expectsContinue = false;
  #leaveFlight: (() => void) | null = null;
  answered = false;
  readonly deliveries: Deliveries;
  /** The answer while its client has not taken all of it. */
  delivery: Delivery | null = null;
  /** The request in its trace; null: nothing is traced, or it runs within another one. */
  span: Span | null = null;
  /** Code of the error that was answered, for the log. */
  code: string | null = null;

  /** `within`: an operation that the request of another exchange has run, which is not a request of its own. */
  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    {
      ip,
      now,
      deliveries,
      within,
    }: { ip: string; now: number; deliveries: Deliveries; within?: { x: Exchange; method: string; path: string } },
  ) {
    this.req = req;
    this.res = res;
    this.ip = ip;
    this.deliveries = deliveries;
    this.startedAt = now;
    this.requestId = within?.x.requestId ?? requestId(now, randomForId());
    this.span = within?.x.span ?? null;
    this.method = within?.method ?? req.method ?? 'GET';
    const url = within?.path ?? originForm(req.url ?? '/');
    const mark = url.indexOf('?');
    this.path = mark < 0 ? url : url.slice(0, mark);
    this.rawQuery = mark < 0 ? '' : url.slice(mark + 1);
    this.door = within?.x.door ?? doorOf(this.path);
  }

  /** The operation that was asked for; only after `routed`. */
  get route(): Route {
    if (!this.#route) throw new Error(`No route is known yet for ${this.method} ${this.path}.`);
    return this.#route;
  }

  /** The same for what also hears of requests without one. */
  get routeIfKnown(): Route | null {
    return this.#route;
  }

  /** The router found the operation. */
  routed(route: Route, pathValues: readonly string[]): void {
    this.#route = route;
    this.pathValues = pathValues;
    this.label = route.operation.operationId;
  }

  /** Counts as in flight until `leaveFlight`. */
  enterFlight(leave: () => void): void {
    this.#leaveFlight = leave;
  }

  leaveFlight(): void {
    this.#leaveFlight?.();
    this.#leaveFlight = null;
  }

  /** Gives up what takes memory: Node keeps the last request of a connection until the next one comes. */
  forget(): void {
    this.body = null;
    this.call = null;
    this.outcome = null;
    // It holds the promise of the answer, and that the answer.
    this.abort = null;
  }

  get clientRequestId(): string | null {
    const given = this.req.headers['x-request-id'];
    return typeof given === 'string' && CLIENT_REQUEST_ID.test(given) ? given : null;
  }

  /** Of the span that the request is, where it is traced; else what its caller has sent. */
  get traceparent(): string | undefined {
    return this.span?.traceparent ?? this.callersTraceparent;
  }

  get callersTraceparent(): string | undefined {
    return traceparentOf(this.req.headers['traceparent']) ?? undefined;
  }
}
