/** One call on its way through the steps: what is asked for, and what they have found out about it so far. No HTTP. */
import type { IncomingHttpHeaders } from 'node:http';
import { DEFAULT_TIME_LIMITS, type TimeLimits } from '../../../contracts/time-limits.ts';
import type { UsedApproval } from '../../../lib/context.ts';
import type { Operation, OperationCall, OperationReply } from '../../../lib/operation.ts';
import { traceparentOf } from '../../../lib/values/traceparent.ts';
import type { Span } from '../../../mixins/tracing/tracing.ts';
import type { Budget } from './budget.ts';
import type { Route } from './router.ts';
import type { Bearer, Door } from './session.ts';
import type { Session } from './tokens.ts';

const NONE: readonly never[] = [];

/** Allowed origin of public resources. */
export const ANY_ORIGIN = '*';

/** A call that was admitted to a run. */
interface AdmittedCall {
  readonly runId: string;
  readonly stepId: string;
  /** A mutation is tried out. */
  readonly dryRun: boolean;
  readonly approvalRequired: boolean;
  /** The approval that the change uses up; null: it needs none. */
  readonly approval: UsedApproval | null;
  /** Objects that the operation must not read; absent: a policy denies none. */
  readonly deniedObjects?: readonly string[];
}

interface Asked {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly ip: string;
  readonly door: Door;
  readonly requestId: string;
  /** In milliseconds since 1970. */
  readonly startedAt: number;
  readonly bearer?: Bearer;
}

const CLIENT_REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

export class Call {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Without the question mark; empty when there is none. */
  readonly rawQuery: string;
  readonly headers: IncomingHttpHeaders;
  readonly ip: string;
  readonly door: Door;
  readonly requestId: string;
  readonly startedAt: number;
  /** When the service was called, from which its time counts: that of the request, or of the last call about a stream. */
  calledAt: number;
  /** Of its connection, if it has one. */
  readonly bearer: Bearer | undefined;

  #route: Route | null = null;
  pathValues: readonly string[] = [];
  timeLimits: TimeLimits = DEFAULT_TIME_LIMITS;
  /** Name in log and metrics: the operationId, or what else was asked for. */
  label = 'none';
  session: Session | null = null;
  /** The budget that pays for this call; null until known. */
  budget: Budget | null = null;
  /** The call has paid, or is about to: nothing more is charged when it is refused. */
  charged = false;
  /** Origin that may read the answer; null: none. */
  allowedOrigin: string | null = null;
  body: Buffer | null = null;
  /** The call as its service gets it. */
  asked: OperationCall | null = null;
  /** The operation that the call tries out; null: it is no check. */
  checked: Operation | null = null;
  /** A body that has been parsed already: of a part of a composite request. */
  content: { readonly value: unknown } | null = null;
  /** The parts of a composite request, as calls of their own. */
  parts: readonly Call[] = NONE;
  /** Cost units of a composite request, and the mutations that it stands for. */
  costOfParts = 0;
  mutations = 0;
  /** The references that the call expands. */
  expanded: readonly string[] = [];
  /** The run that has admitted the call. */
  run: AdmittedCall | null = null;
  /** The run of the caller that did not admit the call: the trail names it. */
  refusedByRun: string | null = null;
  /** Stored answer of an earlier execution. */
  outcome: OperationReply | null = null;
  /** Ends the wait for the answer. */
  abort: ((error: Error) => void) | null = null;
  #leaveFlight: (() => void) | null = null;
  /** The span of its request in a trace; null: nothing is traced. */
  span: Span | null = null;

  constructor({ method, url, headers, ip, door, requestId, startedAt, bearer }: Asked) {
    const mark = url.indexOf('?');
    this.method = method;
    this.path = mark < 0 ? url : url.slice(0, mark);
    this.rawQuery = mark < 0 ? '' : url.slice(mark + 1);
    this.headers = headers;
    this.ip = ip;
    this.door = door;
    this.requestId = requestId;
    this.startedAt = startedAt;
    this.calledAt = startedAt;
    this.bearer = bearer;
  }

  /** The operation that was asked for; only after `routed`. */
  get route(): Route {
    if (!this.#route) throw new Error(`No route is known yet for ${this.method} ${this.path}.`);
    return this.#route;
  }

  /** The same for what also hears of calls without one. */
  get routeIfKnown(): Route | null {
    return this.#route;
  }

  /** The router found the operation. */
  routed(route: Route, pathValues: readonly string[]): void {
    this.#route = route;
    this.timeLimits = route.timeLimits;
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
    this.asked = null;
    this.parts = NONE;
    this.outcome = null;
    // It holds the promise of the answer, and that the answer.
    this.abort = null;
  }

  /** A body follows. */
  get hasBody(): boolean {
    return this.headers['transfer-encoding'] !== undefined || Number(this.headers['content-length'] ?? 0) > 0;
  }

  /** Receives the body within a limit; null when it is empty. */
  receive(_maxBytes: number): Promise<Buffer | null> {
    return Promise.resolve(this.body);
  }

  /** The body as it arrives, until `signal` is aborted. */
  stream(_signal: AbortSignal): AsyncIterable<Uint8Array> {
    throw new Error(`${this.label} has no body to stream.`);
  }

  get clientRequestId(): string | null {
    const given = this.headers['x-request-id'];
    return typeof given === 'string' && CLIENT_REQUEST_ID.test(given) ? given : null;
  }

  /** Of the span of its request, where it is traced; else what its caller has sent. */
  get traceparent(): string | undefined {
    return this.span?.traceparent ?? this.callersTraceparent;
  }

  get callersTraceparent(): string | undefined {
    return traceparentOf(this.headers['traceparent']) ?? undefined;
  }
}

/** Cost units of the expanded references of a call: one each. */
export const expansionCost = ({ expanded }: Pick<Call, 'expanded'>): number => expanded.length;
