/**
 * The HTTP edge: runs operations through the pipeline, hands everything else to the pages, writes answers, and bounds
 * what a client can hold up. docs/decisions/gateway-on-moleculer-web.md says what moleculer-web does and what it does
 * not.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Service, ServiceBroker } from 'moleculer';
import { LIMITS } from '../../config/limits.ts';
import { ALL_SERVICES, SERVICES } from '../../config/services.ts';
import { readableLines } from '../../config/text-log.ts';
import { call } from '../../contracts/call.ts';
import { READ_RECORD } from '../../contracts/data/records.ts';
import type { DataActions } from '../../contracts/data.ts';
import type { McpDoorActions, McpOutcome } from '../../contracts/mcp.ts';
import { answerUnits, databaseUnits } from '../../contracts/ratelimit.ts';
import type { ScimCall } from '../../contracts/scim.ts';
import { API_PREFIX } from '../../lib/addresses.ts';
import type { DatabaseTimeMeta, RequestContext } from '../../lib/context.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import type { Operation, OperationCall, OperationReply } from '../../lib/operation.ts';
import { platformTime } from '../../lib/values/clock.ts';
import { busConnected } from '../../mixins/bus/connected.ts';
import {
  type Condition,
  conditionOf,
  type Degradation,
  databaseAnswers,
  registerProcessMetrics,
  rememberedBriefly,
} from '../../mixins/health.ts';
import { logFailure, reasonOf } from '../../mixins/log-failure.ts';
import type { Platform } from '../../mixins/platform.ts';
import { Presence } from '../../mixins/presence.ts';
import type { Edge } from '../../mixins/shutdown.ts';
import { type TurnLimits, Turns } from '../../mixins/turns.ts';
import { mark, workOn } from '../../mixins/watchdog/work.ts';
import type { SharedAnswer } from '../../web/kept.ts';
import { referencePage } from '../../web/reference/page.ts';
import { home } from '../../web/site/home.ts';
import { securityFile } from '../../web/site/security-file.ts';
import { ClusterView } from './cluster.ts';
import { McpDoor } from './doors/mcp.ts';
import { answerProvisioning, sendScimError } from './doors/scim.ts';
import { AccessLog } from './edge/access-log.ts';
import { Deliveries } from './edge/deliveries.ts';
import type { Departure } from './edge/departure.ts';
import { Exchange } from './edge/exchange.ts';
import { callerAddress, discardRest, refuseMalformed, socketAddress } from './edge/http-server.ts';
import { ClientGone, checkHead, checkUri, dropLongPreferences } from './edge/intake.ts';
import { RequestMetrics } from './edge/metrics.ts';
import { RefusalDelays } from './edge/refusal-delays.ts';
import { ANY_ORIGIN, prefersPage, type ReplyOptions, sendError, sendErrorPage, sendReply } from './edge/reply.ts';
import { beginTrace, endTrace } from './edge/trace.ts';
import { Denials } from './pipeline/denials.ts';
import { DeprecatedUses } from './pipeline/deprecated-uses.ts';
import { pageNotFound, TimeLimit, toPlatformError } from './pipeline/failures.ts';
import { answer, type Gate, requestContextOf } from './pipeline/index.ts';
import { Origins, sendOptions } from './pipeline/origins.ts';
import { Budgets, tightest } from './pipeline/rate/budget.ts';
import { allowed, Router } from './pipeline/router.ts';
import type { RunCalls } from './pipeline/run-calls.ts';
import { Sessions } from './pipeline/session.ts';
import { belongsToVersions, VersionedDocuments } from './public/versions.ts';

const WATCH_MS = 100;
const SWEEP_MS = 1_000;
const DATABASE_ANSWER_MS = 2_000;
/** Answered without a look at anything: the answer costs less than counting it. */
const FREE_PAGES: ReadonlySet<string> = new Set(['/healthz']);
/** Each of them takes up to 32 MiB as sent and again as unpacked, and a slow sender keeps its place for 30 s. */
const HUGE_BODIES: TurnLimits = {
  places: 16,
  waitingPerTenant: 20,
  waiting: 200,
  waitMs: LIMITS.turn_wait_ms,
};
const TOO_MANY = 429;
const AUTH_LOST = `auth does not answer: grants that it has confirmed go on for ${LIMITS.auth_absence_seconds} s, confirmed by data.`;
const AUTH_BACK = 'auth answers again.';
/** Services that must have been available once before the gateway calls itself ready. */
const NEEDED_SERVICES = ALL_SERVICES.filter((name) => SERVICES[name].awaitedByGateway);

interface GatewayOptions {
  /** Public address of the platform. */
  readonly baseUrl: string;
  readonly operations: readonly Operation[];
  readonly departure: Departure;
  /** Answers a request that is no operation; false when there is no page at its path. */
  readonly answerPage: (x: Exchange) => Promise<boolean>;
}

/** The gateway while it listens. */
export class Gateway implements Edge {
  readonly baseUrl: string;
  readonly broker: ServiceBroker;
  readonly budgets: Budgets;
  readonly home: ReturnType<typeof home>;
  readonly #securityFile: ReturnType<typeof securityFile> | null;
  readonly reference: ReturnType<typeof referencePage>;
  readonly #metrics = new RequestMetrics();
  readonly #platform: Platform;
  readonly #service: Service;
  readonly #departure: Departure;
  readonly #answerPage: GatewayOptions['answerPage'];
  readonly #router: Router;
  readonly #cluster: ClusterView;
  readonly #presence: Presence;
  readonly #sessions: Sessions;
  readonly #gate: Gate;
  readonly #mcp: McpDoor;
  readonly #accessLog: AccessLog | null;
  readonly #denials: Denials;
  readonly #deprecatedUses: DeprecatedUses;
  readonly #databaseReady: () => Promise<boolean>;
  readonly #askAuthAgain: () => Promise<void>;
  /** What the last look at readiness found: a gateway without bus or database finds out nothing about others. */
  #able = true;
  /** When it last was not so, on the clock of `performance.now()`. */
  #unableAt = Number.NEGATIVE_INFINITY;
  readonly #scrape: () => Promise<string>;
  readonly #active = new Set<Exchange>();
  readonly #deliveries = new Deliveries(this.#active);
  readonly #documents = new VersionedDocuments();
  readonly #refusalDelays: RefusalDelays;
  readonly #timers: readonly NodeJS.Timeout[];
  #leaving = false;
  #drained: Promise<void> | undefined;

  constructor(platform: Platform, service: Service, { baseUrl, operations, departure, answerPage }: GatewayOptions) {
    const { logFormat, logLevel, nodeId, rateLimits, securityContact, trustedProxies } = platform.config;
    const cut = (): void => this.#deliveries.countCut('unwaiting');
    this.#refusalDelays = new RefusalDelays({ proxied: trustedProxies > 0, cut });
    this.baseUrl = baseUrl;
    this.broker = service.broker;
    this.#platform = platform;
    this.#service = service;
    this.#departure = departure;
    this.#answerPage = answerPage;
    this.home = home(baseUrl, platform.config);
    this.#securityFile = securityContact === null ? null : securityFile(securityContact, baseUrl);
    this.reference = referencePage(baseUrl, platform.config.referenceSignIn);
    this.#router = new Router(operations);
    this.#cluster = new ClusterView(this.broker);
    this.#presence = new Presence(this.broker, ALL_SERVICES);
    this.#presence.register(platform.metrics);
    this.budgets = new Budgets(
      rateLimits,
      (requests) => this.#cluster.takeLeases(requests),
      () => Math.max(1, this.#cluster.nodesOf('gateway').length),
    );
    this.#scrape = rememberedBriefly(() => platform.metrics.text());
    this.#databaseReady = rememberedBriefly(() => databaseAnswers(platform, DATABASE_ANSWER_MS));
    this.#askAuthAgain = rememberedBriefly(() => this.#sessions.askAuthAgain());
    registerProcessMetrics(platform, this.broker);
    this.#metrics.register(platform.metrics, {
      inFlight: () => this.#active.size,
      deliveries: this.#deliveries,
      refusalDelays: this.#refusalDelays,
      refusals: () => this.budgets.refusals + this.#deliveries.refusals,
    });
    this.#sessions = this.#openSessions();
    const { broker } = this;
    this.#denials = new Denials({
      deny: (denial, request) =>
        broker.call<unknown, DataActions['data.audit.deny']['params']>('data.audit.deny', denial, {
          meta: { request },
        }),
      suppress: (suppressed) => call(broker, 'data.audit.suppress', suppressed),
    });
    this.#deprecatedUses = new DeprecatedUses({
      add: (uses) => call(broker, 'auth.deprecatedUses.add', { uses: [...uses] }),
      firstOfDay: ({ tenantId, clientId, operationId }) =>
        service.logger.info({ tenantId, clientId, operationId }, 'A client calls an operation that is deprecated.'),
    });
    this.#deprecatedUses.register(platform.metrics);
    this.#sessions.register(platform.metrics);
    this.#gate = this.#openGate();
    this.#mcp = new McpDoor(this, this.#gate, (x, error) => this.#logUnexpected(x, error));
    this.#accessLog =
      logLevel === 'silent'
        ? null
        : new AccessLog(
            nodeId,
            logLevel,
            logFormat === 'text' ? (lines) => void process.stdout.write(readableLines(lines)) : undefined,
          );
    this.#timers = [
      setInterval(() => this.#abortLate(), WATCH_MS).unref(),
      setInterval(() => {
        this.budgets.sweep();
        this.#deliveries.sweep();
        this.#denials.sweep();
        this.#deprecatedUses.sweep();
      }, SWEEP_MS).unref(),
    ];
  }

  /** Takes a request of the server and sees it through to its answer. */
  take(req: IncomingMessage, res: ServerResponse, expectsContinue = false): void {
    this.#answer(req, res, expectsContinue, (x) => this.#handle(x));
  }

  #answer(
    req: IncomingMessage,
    res: ServerResponse,
    expectsContinue: boolean,
    handle: (x: Exchange) => Promise<void>,
  ): void {
    const x = this.#open(req, res);
    if (!this.#departure.arrived(x)) return;
    x.expectsContinue = expectsContinue;
    const traced = beginTrace(x);
    const started = performance.now();
    this.#active.add(x);
    // In flight until the work is done and the client has taken the answer: one that leaves does not end the work, and
    // one that does not read would hold any number of answers.
    let open = 2;
    const end = (): void => {
      if (--open > 0) return;
      x.leaveFlight();
      x.forget();
    };
    let left = false;
    const leave = (): void => {
      if (left) return;
      left = true;
      this.#active.delete(x);
      this.#deliveries.end(x);
      this.#refusalDelays.end(x);
      this.#departure.answered(x);
      end();
      const milliseconds = performance.now() - started;
      const status = res.headersSent ? res.statusCode : 499;
      this.#metrics.observe(x.label, status, milliseconds);
      if (traced) endTrace(x, traced, status);
      this.#deprecatedUses.note(x);
      this.#accessLog?.add(x, status, milliseconds, x.code);
    };
    // Before what Node does then.
    res.prependOnceListener('finish', () => discardRest(req));
    res.once('finish', leave);
    res.once('close', leave);
    workOn(x, () => handle(x).catch((error) => this.fail(x, error))).finally(end);
  }

  /** Refuses an `Expect` that is not `100-continue`. */
  refuseExpectation(req: IncomingMessage, res: ServerResponse): void {
    this.#answer(req, res, false, () =>
      Promise.reject(new PlatformError('REQUEST_MALFORMED', 'The only supported expectation is 100-continue.')),
    );
  }

  /** Refuses what the HTTP parser could not read. */
  refuseMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
    const budget = this.budgets.anonymous(socketAddress(socket));
    const { remaining } = tightest(budget, performance.now());
    // Who has used up the limit of its address by such requests gets no answer: writing one is work.
    if (remaining === 0) socket.destroy();
    else if (refuseMalformed(error, socket, { baseUrl: this.baseUrl, remaining }))
      this.#metrics.observe('malformed', 400, 0);
    this.budgets.charge(budget, 1)?.catch(() => {});
  }

  /** A connection that sent too many requests ahead was closed. */
  countCutAhead(): void {
    this.#deliveries.countCut('pipelined');
  }

  /** Answers with the error; an unexpected one is logged, and the client sees no detail of it. */
  fail(x: Exchange, thrown: unknown): void {
    if (thrown instanceof ClientGone) {
      x.res.destroy();
      return;
    }
    const { error, unexpected } = toPlatformError(thrown);
    if (unexpected) this.#logUnexpected(x, error.cause ?? thrown);
    else if (error.status >= 500) logFailure(this.#service.logger, x.label, x.requestId, error);
    const paid = this.#chargeRefusal(x, error);
    if (!paid) this.#refuse(x, error);
    else
      paid.then(
        () => this.#sendFailure(x, error),
        (limit) => this.#refuse(x, toPlatformError(limit).error),
      );
  }

  #logUnexpected({ requestId, label }: Exchange, error: unknown): void {
    this.#service.logger.error({ requestId, operationId: label, err: error }, 'A request failed unexpectedly.');
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
    this.#refusalDelays.send(x, x.budget.flight, retryAfterSeconds, () => this.#sendFailure(x, error));
  }

  /**
   * A refused request costs a unit: of the connection, or of the address where nobody is signed in. What was charged
   * before, a 429 and a failure of ours cost nothing more.
   */
  #chargeRefusal(x: Exchange, { status }: PlatformError): Promise<void> | undefined {
    x.budget ??= this.#sessions.connectionOf(x.req.headers.authorization) ?? this.budgets.anonymous(x.ip);
    if (x.charged || x.answered || status === TOO_MANY || status >= 500) return undefined;
    x.charged = true;
    return this.budgets.charge(x.budget, 1);
  }

  #sendFailure(x: Exchange, error: PlatformError): void {
    x.code = error.code;
    try {
      if (x.answered) x.res.destroy();
      else if (x.door === 'scim') sendScimError(x, error, this.replyOptions());
      else if (x.door === 'api' && isForPeople(x.path) && prefersPage(x)) sendErrorPage(x, error, this.replyOptions());
      else sendError(x, error, this.replyOptions());
    } catch (failure) {
      this.#service.logger.error({ requestId: x.requestId, err: failure }, 'The error response could not be sent.');
      x.res.destroy();
    }
  }

  replyOptions(): ReplyOptions {
    return { baseUrl: this.baseUrl, now: performance.now() };
  }

  /** Waits for a call, but not beyond the time limit of the request. */
  abortable<T>(x: Exchange, answered: PromiseLike<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      x.abort = reject;
      answered.then(resolve, reject);
    });
  }

  /** What must work before requests should come here. */
  async readiness(): Promise<Record<string, boolean>> {
    const database = await this.#databaseReady();
    const bus = busConnected(this.broker);
    this.#able = database && bus;
    if (!this.#able) this.#unableAt = performance.now();
    else void this.#askAuthAgain();
    // A service that is lost later makes its own operations answer 503 while the others go on; were the gateway not
    // ready then, a cluster would take the whole API away.
    const seen = NEEDED_SERVICES.map((service) => [service, this.#cluster.wasSeen(service)]);
    return {
      started: !this.#leaving,
      database,
      bus,
      clock: this.#platform.timekeeper.agrees,
      ...Object.fromEntries(seen),
    };
  }

  /** What a ready gateway does not do at the moment. */
  get degraded(): readonly Degradation[] {
    // That nobody offers a service is known before somebody asks.
    const { away } = this.#presence;
    const missing = ALL_SERVICES.filter((name) => away.includes(name) || (name === 'auth' && this.#authFails));
    return missing.map((name): Degradation => `${name}Unavailable`);
  }

  /** Beside `readiness()`, and after it: what a ready gateway does not do, and which services it sees. */
  condition(): Condition {
    return conditionOf(this.#platform, this.#presence, this.degraded);
  }

  /** Auth is there and does not answer. Whose own database or bus is away gets no answers for that reason. */
  get #authFails(): boolean {
    const { authAwayAt } = this.#sessions;
    return this.#able && authAwayAt !== null && authAwayAt > this.#unableAt;
  }

  /** All metrics of the process; null in production, where they are found on the health port alone. */
  async publicMetrics(): Promise<{ contentType: string; text: string } | null> {
    const { config, metrics } = this.#platform;
    return config.production ? null : { contentType: metrics.contentType, text: await this.#scrape() };
  }

  /** Whom to tell of a security problem; null: the operator has not said. */
  securityFile(): SharedAnswer | null {
    return this.#securityFile?.(platformTime()) ?? null;
  }

  /** For mcp: runs an operation for the caller of a request that mcp is answering. */
  runForAssistant(asked: McpDoorActions['gateway.operations.run']['params']): Promise<McpOutcome> {
    return this.#mcp.run(asked);
  }

  /** For the endpoint for provisioning: calls data for the caller. */
  provision(x: Exchange, asked: ScimCall): Promise<OperationReply> {
    return this.abortable(x, this.#ask(x, x.route.operation.action, asked, requestContextOf(x)));
  }

  /** Event: these grants ended. */
  grantsRevoked(grantIds: readonly string[]): void {
    this.#sessions.revoke(grantIds);
  }

  /** Event: a tenant was suspended or resumed. */
  tenantChanged(tenantId: string): void {
    this.#sessions.forgetTenant(tenantId);
  }

  /** Event: the signing keys changed. */
  keysRotated(): void {
    this.#sessions.rotateKeys().catch(() => {}); // the next unknown key asks again
  }

  /** Event: services or nodes came or went. */
  servicesChanged(): void {
    this.#cluster.changed();
  }

  leave(): void {
    if (this.#leaving) return;
    this.#leaving = true;
    this.#departure.leave(this.#active);
    this.#refusalDelays.release();
  }

  /** Lets the requests in flight finish, up to a limit, and returns the unused leases. */
  drain(until: number): Promise<void> {
    return (this.#drained ??= this.#drain(until));
  }

  async #drain(until: number): Promise<void> {
    this.leave();
    // At once: data may be stopping in the same process, and what is refused from now on is little.
    const reported = Promise.all([this.#denials.close(), this.#deprecatedUses.close().catch(() => {})]);
    await this.#departure.end(until, () => this.#noteCut());
    await reported;
    await Promise.all([this.budgets.close(), this.#denials.close(), this.#deprecatedUses.close().catch(() => {})]);
    for (const timer of this.#timers) clearInterval(timer);
    this.#accessLog?.flush();
  }

  #noteCut(): void {
    const operations: Record<string, number> = {};
    for (const { label } of this.#active) operations[label] = (operations[label] ?? 0) + 1;
    this.#service.logger.warn({ operations }, 'Requests were cut off: they did not end in the time to stop.');
  }

  #openSessions(): Sessions {
    const { broker } = this;
    return new Sessions(this.baseUrl, {
      keys: () => call(broker, 'auth.keys.list', {}),
      grants: (grants) => call(broker, 'auth.grants.check', { grants }),
      look: (grants) => call(broker, 'auth.grants.check', { grants, unused: true }),
      living: (grants) => call(broker, 'data.grants.confirm', { grants }),
      users: async (tenantId, userId) => {
        const user = await call(broker, 'data.users.get', { tenantId, userId });
        return {
          apiEnabled: user?.active === true && user.apiEnabled,
          systemPermissions: new Set(user?.systemPermissions),
        };
      },
      authChanged: (away) => {
        if (away) this.#service.logger.warn({ reason: reasonOf(away) }, AUTH_LOST);
        else this.#service.logger.warn(AUTH_BACK);
      },
    });
  }

  #openGate(): Gate {
    const { broker } = this;
    const origins = new Origins(async (origin, clientId) => {
      const params = clientId === undefined ? { origin } : { origin, clientId };
      return (await call(broker, 'auth.origins.check', params)).allowed;
    });
    return {
      baseUrl: this.baseUrl,
      router: this.#router,
      sessions: this.#sessions,
      budgets: this.budgets,
      hugeBodies: new Turns(HUGE_BODIES),
      originAllowed: (origin, clientId) => origins.allowed(origin, clientId),
      runs: this.#openRuns(),
      forward: (x) => this.#forward(x),
      refused: (x, error) => this.#denials.note(x, error, x.session?.grant ? requestContextOf(x) : undefined),
      now: platformTime,
    };
  }

  #open(req: IncomingMessage, res: ServerResponse): Exchange {
    dropLongPreferences(req);
    const ip = callerAddress(req, this.#platform.config.trustedProxies);
    return new Exchange(req, res, { ip, now: platformTime(), deliveries: this.#deliveries });
  }

  async #handle(x: Exchange): Promise<void> {
    checkHead(x);
    checkUri(x);
    if (belongsToVersions(x.path)) {
      await this.#chargeAddress(x, this.budgets.documents(x.ip));
      this.#settle(x, 0, await this.#documents.answer(x, this.replyOptions()));
      return;
    }
    if (isBelowApi(x.path)) {
      if (x.method === 'OPTIONS') return this.#answerOptions(x);
      const reply = await answer(this.#gate, x);
      mark();
      sendReply(x, reply, this.replyOptions());
      return;
    }
    if (x.door === 'mcp') {
      if (x.method !== 'OPTIONS') return this.#mcp.answer(x);
      x.label = 'preflight';
      await this.#chargeAddress(x);
      return this.#mcp.preflight(x);
    }
    if (x.door === 'scim') return answerProvisioning(this, this.#gate, x);
    if (!FREE_PAGES.has(x.path)) await this.#chargeAddress(x);
    x.budget ??= this.budgets.anonymous(x.ip);
    if (!(await this.#answerPage(x))) throw pageNotFound();
  }

  /** Every page, preflight and endpoint of OAuth costs the caller's address a unit, before anything is done for it. */
  async #chargeAddress(x: Exchange, budget = this.budgets.anonymous(x.ip)): Promise<void> {
    x.budget = budget;
    x.charged = true;
    await this.budgets.charge(x.budget, 1);
  }

  async #answerOptions(x: Exchange): Promise<void> {
    x.label = 'preflight';
    await this.#chargeAddress(x);
    const match = this.#router.match(x.path.slice(API_PREFIX.length), platformTime());
    if (!match) throw new PlatformError('ROUTE_NOT_FOUND', 'There is no operation at this path.');
    const { origin } = x.req.headers;
    const isPublic = [...match.methods.values()].every(({ operation }) => operation.scopes === 'public');
    if (isPublic) x.allowedOrigin = ANY_ORIGIN;
    else if (origin !== undefined && (await this.#gate.originAllowed(origin))) x.allowedOrigin = origin;
    sendOptions(x, allowed(match.methods), this.replyOptions());
  }

  #openRuns(): RunCalls {
    const { broker } = this;
    const asCaller = (x: Exchange): { meta: { request: RequestContext | undefined } } => ({
      meta: { request: requestContextOf(x) },
    });
    return {
      admit: (x, admission) => this.abortable(x, call(broker, 'agent.runs.admit', admission, asCaller(x))),
      settle: (x, stepId, status) => {
        call(broker, 'agent.steps.settle', { stepId, status }, asCaller(x)).catch(() => {});
      },
      tryOut: (x, asked) => {
        const request = requestContextOf(x);
        return this.abortable(
          x,
          this.#ask(x, x.route.operation.action, asked, request && { ...request, dryRun: true }),
        );
      },
      read: (x, asked) => this.abortable(x, this.#ask(x, READ_RECORD, asked, requestContextOf(x))),
      request: (x, asked) => this.abortable(x, call(broker, 'agent.approvals.request', asked, asCaller(x))),
    };
  }

  #forward(x: Exchange): Promise<OperationReply> {
    const { operation } = x.route;
    const answered = this.#ask(x, operation.action, x.call, requestContextOf(x));
    const { run } = x;
    if (run) {
      const settle = (status: number): void => this.#gate.runs.settle(x, run.stepId, status);
      answered.then(
        ({ status = operation.response.status }) => settle(status),
        (error) => settle(toPlatformError(error).error.status),
      );
    }
    return this.abortable(x, answered);
  }

  /** Calls an action for the caller, who pays for what it takes beyond the price of the operation. */
  #ask(
    x: Exchange,
    action: string,
    asked: OperationCall | null,
    request: RequestContext | undefined,
  ): PromiseLike<OperationReply> {
    const { traceparent } = x;
    const meta: object & DatabaseTimeMeta = {
      ...(request ? { request } : {}),
      ...(traceparent ? { traceparent } : {}),
    };
    const answered = this.broker.call<OperationReply, unknown>(action, asked, { meta, requestID: x.requestId });
    // Also when the call has failed, or answers after the caller has left.
    const settle = (reply?: OperationReply): void =>
      this.#settle(x, meta.databaseMs ?? 0, reply?.body instanceof Uint8Array ? reply.body.length : 0);
    answered.then(settle, () => settle());
    return answered;
  }

  /**
   * Charges the time in the database and the bytes that the price of the operation does not include: to the connection,
   * or to the address of a caller who is not signed in.
   */
  #settle({ session, budget }: Exchange, databaseMs: number, bytes: number): void {
    const units = databaseUnits(databaseMs) + answerUnits(bytes);
    const payer = session?.connection ?? budget;
    if (units > 0 && payer) this.budgets.settle(payer, units);
  }

  #abortLate(): void {
    const limit = performance.now() - LIMITS.request_timeout_ms;
    for (const x of this.#active) if (x.started < limit) x.abort?.(new TimeLimit());
  }
}

/** Where errors are pages to browsers. */
const isForPeople = (path: string): boolean => !isBelowApi(path) || belongsToVersions(path);

const isBelowApi = (path: string): boolean =>
  path.startsWith(API_PREFIX) && (path.length === API_PREFIX.length || path[API_PREFIX.length] === '/');
