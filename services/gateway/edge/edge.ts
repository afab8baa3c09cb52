/** Sees each request from its arrival to the end of its answer, and bounds what a client can hold up meanwhile. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Service } from 'moleculer';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { logFailure } from '../../../mixins/log-failure.ts';
import type { Metrics } from '../../../mixins/metrics/metrics.ts';
import { tracing } from '../../../mixins/tracing/tracing.ts';
import { workOn } from '../../../mixins/watchdog/work.ts';
import { type Budgets, tightest } from '../pipeline/budget.ts';
import type { DeprecatedUses } from '../pipeline/deprecated-uses.ts';
import { TimeLimit, toPlatformError } from '../pipeline/failures.ts';
import type { Door, Sessions } from '../pipeline/session.ts';
import { type AccessLog, RequestMetrics } from './answered.ts';
import { callerAddress, checkHead, checkUri, dropLongPreferences, Exchange, socketAddress } from './exchange.ts';
import type { GracefulShutdown } from './graceful-shutdown.ts';
import { REQUEST_TIMEOUT, refuseMalformed } from './http-server.ts';
import { ClientGone, discardRest } from './intake.ts';
import { RefusalDelays } from './refusal-delays.ts';
import { type ReplyOptions, sendError } from './reply.ts';
import { beginTrace, endTrace } from './trace.ts';
import { stateOf, UnsentResponses } from './unsent-responses.ts';

const WATCH_MS = 100;
const SWEEP_MS = 1_000;
const TOO_MANY = 429;

/** Answers the requests that come to it. */
export interface DoorKeeper {
  answer(x: Exchange): Promise<void>;
  /** Sends an error in the form of the door; absent: as an Error body. */
  sendError?(x: Exchange, error: PlatformError): void;
}

interface EdgeOptions {
  readonly baseUrl: string;
  readonly trustedProxies: number;
  readonly shutdown: GracefulShutdown;
  readonly budgets: Budgets;
  readonly sessions: Sessions;
  readonly deprecatedUses: DeprecatedUses;
  /** null: requests have no lines in the log. */
  readonly accessLog: AccessLog | null;
  readonly logger: Service['logger'];
  /** Called each second. */
  readonly sweep: () => void;
}

export class HttpEdge {
  readonly baseUrl: string;
  readonly unsentResponses: UnsentResponses;
  readonly #options: EdgeOptions;
  readonly #metrics = new RequestMetrics();
  readonly #active = new Set<Exchange>();
  readonly #refusalDelays: RefusalDelays;
  readonly #timers: readonly NodeJS.Timeout[];
  #doors: Readonly<Record<Door, DoorKeeper>> | undefined;
  #leaving = false;

  constructor(options: EdgeOptions) {
    this.#options = options;
    this.baseUrl = options.baseUrl;
    this.unsentResponses = new UnsentResponses(this.#active);
    this.#refusalDelays = new RefusalDelays({
      proxied: options.trustedProxies > 0,
      cut: () => this.unsentResponses.countCut('unwaiting'),
    });
    this.#timers = [
      setInterval(() => this.#abortLate(), WATCH_MS).unref(),
      setInterval(() => {
        this.unsentResponses.sweep();
        options.sweep();
      }, SWEEP_MS).unref(),
    ];
  }

  /** Takes the requests of a server from now on. */
  open(server: Server, doors: Readonly<Record<Door, DoorKeeper>>): void {
    this.#doors = doors;
    server.on('request', (req, res) => this.#take(req, res));
    server.on('checkContinue', (req, res) => this.#take(req, res, { expectsContinue: true }));
    server.on('checkExpectation', (req, res) =>
      this.#take(req, res, {
        refusal: new PlatformError('REQUEST_MALFORMED', 'The only supported expectation is 100-continue.'),
      }),
    );
    server.on('connect', (_req: IncomingMessage, socket: Socket) =>
      this.#refuseMalformed(new Error('The method CONNECT is for proxies.'), socket),
    );
    server.on('clientError', (error, socket) => this.#refuseMalformed(error, socket as Socket));
  }

  /** Adds the numbers of requests to those of the process. */
  register(metrics: Metrics): void {
    const { budgets } = this.#options;
    this.#metrics.register(metrics, {
      inFlight: () => this.#active.size,
      unsentResponses: this.unsentResponses,
      refusalDelays: this.#refusalDelays,
      refusals: () => budgets.refusals + this.unsentResponses.refusals,
    });
  }

  get leaving(): boolean {
    return this.#leaving;
  }

  replyOptions(): ReplyOptions {
    return { baseUrl: this.baseUrl, now: performance.now() };
  }

  /**
   * A connection that sends many requests ahead is closed: Node hands over all that one packet holds in one turn of the
   * event loop, which thousands of the smallest would take for themselves.
   */
  #take(
    req: IncomingMessage,
    res: ServerResponse,
    { expectsContinue = false, refusal }: { expectsContinue?: boolean; refusal?: PlatformError } = {},
  ): void {
    const { socket } = req;
    if (socket.destroyed) return;
    const state = stateOf(socket);
    if (state.unanswered >= LIMITS.pipelined_requests_max) {
      this.unsentResponses.countCut('pipelined');
      socket.destroy();
      return;
    }
    dropLongPreferences(req);
    const ip = callerAddress(req, this.#options.trustedProxies);
    const x = new Exchange(req, res, {
      ip,
      now: platformTime(),
      unsentResponses: this.unsentResponses,
      bearer: state.bearer,
    });
    if (this.#leaving && !this.#options.shutdown.arrived(x)) return;
    state.unanswered++;
    state.last = res;
    x.expectsContinue = expectsContinue;
    if (tracing() !== null) beginTrace(x);
    this.#active.add(x);
    const leave = (): void => this.#leave(x);
    // Before what Node does then.
    res.prependOnceListener('finish', leave);
    res.once('close', leave);
    void workOn(x, () => this.#work(x, refusal));
  }

  async #work(x: Exchange, refusal: PlatformError | undefined): Promise<void> {
    try {
      if (this.#leaving) await this.#options.shutdown.closing;
      if (refusal) throw refusal;
      checkHead(x);
      checkUri(x);
      await this.#doors![x.door].answer(x);
    } catch (error) {
      // The parser reads on first: it refuses malformed framing itself, and a request gets one answer.
      await undefined;
      this.fail(x, error);
    } finally {
      x.worked = true;
      if (x.left) release(x);
    }
  }

  /** The answer is out, or its client has gone. */
  #leave(x: Exchange): void {
    if (x.left) return;
    x.left = true;
    const { req, res } = x;
    if (!req.complete && !req.destroyed && res.writableFinished) discardRest(req);
    const now = performance.now();
    const state = stateOf(req.socket);
    state.unanswered--;
    state.bytesUsed = req.socket.bytesRead;
    state.usedAt = now;
    this.#active.delete(x);
    this.unsentResponses.end(x);
    if (x.worked) release(x);
    const status = res.headersSent ? res.statusCode : 499;
    const milliseconds = now - x.started;
    this.#metrics.observe(x.label, status, milliseconds);
    if (x.span) endTrace(x, x.span, status);
    if (x.routeIfKnown?.operation.deprecated) this.#options.deprecatedUses.note(x);
    this.#options.accessLog?.add(x, status, milliseconds, x.code);
  }

  /** Refuses what the HTTP parser could not read. */
  #refuseMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
    const { baseUrl, budgets } = this.#options;
    const budget = budgets.anonymous(socketAddress(socket));
    const { remaining } = tightest(budget, performance.now());
    // A network that has used up its limit by such requests gets no answer: writing one is work.
    if (remaining === 0) socket.destroy();
    else if (refuseMalformed(error, socket, { baseUrl, remaining })) this.#metrics.observe('malformed', 400, 0);
    budgets.charge(budget, 1)?.catch(() => {});
  }

  /** Answers with the error; an unexpected one is logged, and the client sees no detail of it. */
  fail(x: Exchange, thrown: unknown): void {
    if (thrown instanceof ClientGone) {
      x.res.destroy();
      return;
    }
    const { error, unexpected } = toPlatformError(thrown);
    if (unexpected) this.logUnexpected(x, error.cause ?? thrown);
    else if (error.status >= 500) logFailure(this.#options.logger, x.label, x.requestId, error);
    const paid = this.#chargeRefusal(x, error);
    if (!paid) this.#refuse(x, error);
    else
      paid.then(
        () => this.#sendFailure(x, error),
        (limit) => this.#refuse(x, toPlatformError(limit).error),
      );
  }

  logUnexpected({ requestId, label }: { requestId: string; label: string }, error: unknown): void {
    this.#options.logger.error({ requestId, operationId: label, err: error }, 'A request failed unexpectedly.');
  }

  /** Sends a failure; a 429 later to clients that do not wait. */
  #refuse(x: Exchange, error: PlatformError): void {
    const { retryAfterSeconds, status } = error;
    if (status !== TOO_MANY || retryAfterSeconds === undefined || !x.budget || x.answered || this.#leaving) {
      this.#sendFailure(x, error);
      return;
    }
    x.leaveFlight();
    x.forget();
    x.res.once('close', () => this.#refusalDelays.end(x));
    this.#refusalDelays.send(x, x.budget.flight, retryAfterSeconds, () => this.#sendFailure(x, error));
  }

  /**
   * A refused request costs a unit: of the connection, or of the address of an anonymous caller. What was charged
   * before, a 429 and a failure of ours cost nothing more.
   */
  #chargeRefusal(x: Exchange, { status }: PlatformError): Promise<void> | undefined {
    const { budgets, sessions } = this.#options;
    x.budget ??= sessions.connectionOf(x.headers.authorization) ?? budgets.anonymous(x.ip);
    if (x.charged || x.answered || status === TOO_MANY || status >= 500) return undefined;
    x.charged = true;
    return budgets.charge(x.budget, 1);
  }

  #sendFailure(x: Exchange, error: PlatformError): void {
    x.code = error.code;
    const door = this.#doors![x.door];
    try {
      if (x.answered) x.res.destroy();
      else if (door.sendError) door.sendError(x, error);
      else sendError(x, error, this.replyOptions());
    } catch (failure) {
      this.#options.logger.error({ requestId: x.requestId, err: failure }, 'The error response could not be sent.');
      x.res.destroy();
    }
  }

  /** From now on every answer closes its connection. */
  leave(): void {
    this.#leaving = true;
    this.#options.shutdown.leave(this.#active);
    this.#refusalDelays.release();
  }

  /** Lets the requests in flight finish, up to a limit. */
  end(until: number): Promise<void> {
    return this.#options.shutdown.end(until, () => this.#noteCut());
  }

  /** Nothing is answered any more. */
  close(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#options.accessLog?.flush();
  }

  #noteCut(): void {
    const operations: Record<string, number> = {};
    for (const { label } of this.#active) operations[label] = (operations[label] ?? 0) + 1;
    this.#options.logger.warn({ operations }, 'Aborted requests that did not finish within the shutdown timeout.');
  }

  #abortLate(): void {
    const now = performance.now();
    for (const x of this.#active) {
      if (x.answered || now - x.started < x.timeLimits.answerMs) continue;
      if (x.abort) x.abort(new TimeLimit());
      else if (!x.req.complete) this.#refuseUnfinished(x);
    }
  }

  /** The body has not arrived in time. */
  #refuseUnfinished(x: Exchange): void {
    x.answered = true;
    this.#refuseMalformed(Object.assign(new Error(), { code: REQUEST_TIMEOUT }), x.req.socket);
  }
}

/**
 * In flight until the work is done and the client has taken the answer: one that leaves does not end the work, and one
 * that does not read would hold any number of answers.
 */
function release(x: Exchange): void {
  x.leaveFlight();
  x.forget();
}
