/**
 * The HTTP edge: takes requests in, runs them through the pipeline, writes answers, and bounds what a client can hold
 * up. `node:http` is used directly; docs/decisions/gateway-on-node-http.md says why.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Service, ServiceBroker } from 'moleculer';
import { LIMITS } from '../../config/limits.ts';
import { call } from '../../contracts/call.ts';
import { ownerOf } from '../../contracts/ratelimit.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import type { Operation, OperationReply } from '../../lib/operation.ts';
import { requestId } from '../../lib/values/ids.ts';
import { busConnected } from '../../mixins/health.ts';
import type { Platform } from '../../mixins/platform.ts';
import { AccessLog } from './access-log.ts';
import { type Denial, Denials } from './denials.ts';
import { Exchange } from './exchange.ts';
import { TimeLimit, toPlatformError } from './failures.ts';
import { ClientGone, checkHead } from './intake.ts';
import { Metrics } from './metrics.ts';
import { Origins, sendOptions } from './origins.ts';
import { belongsToAuth, sendAuthReply, toAuthRequest } from './passthrough.ts';
import { API_PREFIX, answer, type Gate, requestContextOf } from './pipeline.ts';
import { answerProbe, isProbe, type ProbeSources } from './probes.ts';
import { Budgets, tightest } from './rate/budget.ts';
import { errorBody, sendError, sendReply } from './reply.ts';
import { allowed, Router } from './router.ts';
import { Sessions } from './session.ts';

const WATCH_MS = 100;
const LEASE_TIMEOUT_MS = 800;
const DRAIN_MS = 8_000;
const DISCARD_MAX_BYTES = 64 * 1024 * 1024;

interface Registry {
  getServiceList(options: { onlyAvailable: boolean }): { name: string; nodeID: string }[];
}

export class Gateway {
  baseUrl = '';
  readonly #platform: Platform;
  readonly #service: Service;
  readonly #broker: ServiceBroker;
  readonly #server: Server;
  readonly #metrics = new Metrics();
  readonly #accessLog: AccessLog | null;
  readonly #active = new Set<Exchange>();
  readonly #router: Router;
  readonly #seenServices = new Set<string>();
  #gate!: Gate;
  #probes!: ProbeSources;
  #timers: NodeJS.Timeout[] = [];
  #nodesByService: Map<string, string[]> | null = null;
  #stopping = false;

  constructor(platform: Platform, service: Service, operations: readonly Operation[]) {
    this.#router = new Router(operations);
    this.#platform = platform;
    this.#service = service;
    this.#broker = service.broker;
    const { logLevel, nodeId } = platform.config;
    this.#accessLog = ['info', 'debug', 'trace'].includes(logLevel) ? new AccessLog(nodeId) : null;
    this.#server = createServer({
      maxHeaderSize: LIMITS.headers_max_bytes,
      requireHostHeader: false, // checkHead() refuses with an Error body, which Node would not send
      headersTimeout: 10_000,
      requestTimeout: LIMITS.request_timeout_ms,
      keepAliveTimeout: 65_000,
      connectionsCheckingInterval: 2_000,
      noDelay: true,
    });
    this.#server.on('request', (req: IncomingMessage, res: ServerResponse) => this.#take(req, res, false));
    this.#server.on('checkContinue', (req: IncomingMessage, res: ServerResponse) => this.#take(req, res, true));
    this.#server.on('checkExpectation', (req: IncomingMessage, res: ServerResponse) => {
      const x = new Exchange(req, res, this.#address(req), Date.now());
      this.#fail(x, new PlatformError('REQUEST_MALFORMED', 'The only expectation is 100-continue.'));
    });
    this.#server.on('connect', (_req: IncomingMessage, socket: Socket) =>
      this.#refuse(new Error('CONNECT is for proxies.'), socket),
    );
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => this.#refuse(error, socket));
  }

  /** Listens; `baseUrl` is known afterwards. */
  async start(): Promise<void> {
    const { config } = this.#platform;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(config.port, config.host, 1_024, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
    const { port } = this.#server.address() as AddressInfo;
    this.baseUrl = config.baseUrl ?? `http://localhost:${port}`;
    const broker = this.#broker;
    const origins = new Origins(async (origin, clientId) => {
      const params = clientId === undefined ? { origin } : { origin, clientId };
      return (await call(broker, 'auth.origins.check', params)).allowed;
    });
    const denials = new Denials((denial, request) =>
      this.#broker.call<unknown, Denial>('data.audit.deny', denial, { meta: { request } }),
    );
    this.#gate = {
      baseUrl: this.baseUrl,
      router: this.#router,
      sessions: new Sessions(this.baseUrl, {
        keys: () => call(broker, 'auth.keys.list', {}),
        grants: (grants) => call(broker, 'auth.grants.check', { grants }),
        apiEnabled: async (tenantId, userId) => {
          const user = await call(broker, 'data.users.get', { tenantId, userId });
          return user?.active === true && user.apiEnabled;
        },
      }),
      budgets: new Budgets(
        config.rateLimits,
        (requests) => this.#takeLeases(requests),
        () => Math.max(1, this.#nodesOf('gateway').length),
      ),
      originAllowed: (origin, clientId) => origins.allowed(origin, clientId),
      forward: (x) => this.#forward(x),
      refused: (x, error) => denials.note(x, error, x.session?.grant ? requestContextOf(x) : undefined),
      now: Date.now,
    };
    this.#probes = {
      baseUrl: this.baseUrl,
      metrics: this.#metrics,
      gauges: () => ({
        inFlight: this.#active.size,
        refusals: this.#gate.budgets.refusals,
        bus: busConnected(this.#broker) ? 1 : 0,
        nodes: 1 + new Set([...this.#services().values()].flat().filter((node) => node !== broker.nodeID)).size,
      }),
      readiness: () => this.#readiness(),
    };
    this.#timers = [
      setInterval(() => this.#watch(), WATCH_MS),
      setInterval(() => this.#gate.budgets.sweep(), 1_000),
    ].map((timer) => timer.unref());
  }

  /** Stops taking requests, lets those in flight finish, gives leases back. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    const limit = Date.now() + DRAIN_MS;
    while (this.#active.size > 0 && Date.now() < limit) await new Promise((resolve) => setTimeout(resolve, 20));
    await this.#gate?.budgets.close();
    for (const timer of this.#timers) clearInterval(timer);
    setTimeout(() => this.#server.closeAllConnections(), 200).unref();
    await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, 500).unref())]);
    this.#metrics.close();
    this.#accessLog?.flush();
  }

  grantsRevoked(grantIds: readonly string[]): void {
    this.#gate?.sessions.revoke(grantIds);
  }

  keysRotated(): void {
    this.#gate?.sessions.rotateKeys().catch(() => {}); // the next unknown key asks again
  }

  servicesChanged(): void {
    this.#nodesByService = null;
  }

  /** Address of the caller; entries of X-Forwarded-For count only as far as the trusted proxies wrote them. */
  #address(req: IncomingMessage): string {
    const direct = (req.socket.remoteAddress ?? '').replace(/^::ffff:/, '');
    const proxies = this.#platform.config.trustedProxies;
    if (proxies === 0) return direct;
    const chain = [...String(req.headers['x-forwarded-for'] ?? '').split(','), direct]
      .map((one) => one.trim())
      .filter(Boolean);
    return chain[Math.max(0, chain.length - 1 - proxies)]!.replace(/^::ffff:/, '');
  }

  #take(req: IncomingMessage, res: ServerResponse, expectsContinue: boolean): void {
    const x = new Exchange(req, res, this.#address(req), Date.now());
    x.expectsContinue = expectsContinue;
    const started = performance.now();
    this.#active.add(x);
    let left = false;
    const leave = (): void => {
      if (left) return;
      left = true;
      this.#active.delete(x);
      const milliseconds = performance.now() - started;
      const status = res.headersSent ? res.statusCode : 499;
      this.#metrics.observe(x.label, status, milliseconds);
      this.#accessLog?.add(x, status, milliseconds, x.code);
      discardRest(req);
    };
    res.once('finish', leave);
    res.once('close', leave);
    if (this.#stopping) res.shouldKeepAlive = false;
    this.#handle(x)
      .catch((error) => this.#fail(x, error))
      .finally(() => {
        x.inFlight?.();
        x.inFlight = null;
      });
  }

  async #handle(x: Exchange): Promise<void> {
    checkHead(x);
    if (x.path.startsWith(API_PREFIX) && (x.path.length === API_PREFIX.length || x.path[API_PREFIX.length] === '/')) {
      if (x.method === 'OPTIONS') return this.#options(x);
      const reply = await answer(this.#gate, x);
      sendReply(x, reply, { baseUrl: this.baseUrl, now: Date.now() });
      return;
    }
    x.budget = this.#gate.budgets.anonymous(x.ip);
    if (isProbe(x)) return answerProbe(x, this.#probes);
    if (belongsToAuth(x.path)) {
      x.label = 'auth.http';
      const request = await toAuthRequest(x, this.baseUrl);
      await this.#chargeAttempt(x, 'before');
      const reply = await this.#abortable(x, call(this.#broker, 'auth.http.handle', request));
      if (reply.status >= 400) await this.#chargeAttempt(x, 'after');
      sendAuthReply(x, reply, { baseUrl: this.baseUrl, now: Date.now() });
      return;
    }
    throw new PlatformError('ROUTE_NOT_FOUND', `There is nothing at this address; the API is below ${API_PREFIX}.`);
  }

  /**
   * Failed sign-ins and token requests count like failed authentications: an address that has used up its policy is
   * refused before the attempt, one that fails is charged after it.
   */
  async #chargeAttempt(x: Exchange, when: 'before' | 'after'): Promise<void> {
    if (x.method !== 'POST') return;
    const { budgets } = this.#gate;
    if (when === 'after') await Promise.resolve(budgets.charge(x.budget!, 1)).catch(() => {});
    else if (tightest(x.budget!, Date.now()).remaining === 0) await budgets.charge(x.budget!, 1);
  }

  async #options(x: Exchange): Promise<void> {
    x.label = 'preflight';
    const match = this.#router.match(x.path.slice(API_PREFIX.length));
    if (!match) throw new PlatformError('ROUTE_NOT_FOUND', 'No operation has this address.');
    x.budget = this.#gate.budgets.anonymous(x.ip);
    const { origin } = x.req.headers;
    if (origin !== undefined && (await this.#gate.originAllowed(origin))) x.allowedOrigin = origin;
    sendOptions(x, allowed(match.methods), { baseUrl: this.baseUrl, now: Date.now() });
  }

  #forward(x: Exchange): Promise<OperationReply> {
    const request = requestContextOf(x);
    const { traceparent } = x;
    const meta = { ...(request ? { request } : {}), ...(traceparent ? { traceparent } : {}) };
    return this.#abortable(
      x,
      this.#broker.call<OperationReply, unknown>(x.route!.operation.action, x.call, { meta, requestID: x.requestId }),
    );
  }

  /** Waits for a call, but not beyond the time limit. */
  #abortable<T>(x: Exchange, answered: PromiseLike<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      x.abort = reject;
      answered.then(resolve, reject);
    });
  }

  #watch(): void {
    const now = Date.now();
    for (const x of this.#active) if (now - x.startedAt > LIMITS.request_timeout_ms) x.abort?.(new TimeLimit());
  }

  #fail(x: Exchange, thrown: unknown): void {
    if (thrown instanceof ClientGone) {
      x.res.destroy();
      return;
    }
    const { error, unexpected } = toPlatformError(thrown);
    if (unexpected)
      this.#service.logger.error(
        { requestId: x.requestId, operationId: x.label, err: error.cause ?? thrown },
        'A request failed unexpectedly.',
      );
    x.code = error.code;
    if (this.#gate) x.budget ??= this.#gate.budgets.anonymous(x.ip);
    try {
      if (x.answered) x.res.destroy();
      else sendError(x, error, { baseUrl: this.baseUrl, now: Date.now() });
    } catch (failure) {
      this.#service.logger.error({ requestId: x.requestId, err: failure }, 'An error could not be answered.');
      x.res.destroy();
    }
  }

  /** HTTP that the parser could not read: there is no request to answer, only a socket. */
  #refuse(error: NodeJS.ErrnoException, socket: Socket): void {
    if (!socket.writable || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const message =
      error.code === 'HPE_HEADER_OVERFLOW'
        ? `Address and headers may have ${LIMITS.headers_max_bytes} bytes at most.`
        : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
          ? 'The request took too long to arrive.'
          : 'The request is not well-formed HTTP.';
    const id = requestId();
    const body = JSON.stringify(errorBody(new PlatformError('REQUEST_MALFORMED', message), id, this.baseUrl, false));
    socket.end(
      `HTTP/1.1 400 Bad Request\r\nX-Request-Id: ${id}\r\nX-API-Version: 1.0.0\r\n` +
        `X-RateLimit-Remaining: ${this.#platform.config.rateLimits.anonymous}\r\nCache-Control: no-store\r\n` +
        `Vary: Authorization, Accept\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
        `Connection: close\r\n\r\n${body}`,
    );
    this.#metrics.observe('malformed', 400, 0);
  }

  #services(): Map<string, string[]> {
    if (!this.#nodesByService) {
      this.#nodesByService = new Map();
      const registry = (this.#broker as unknown as { registry: Registry }).registry;
      for (const { name, nodeID } of registry.getServiceList({ onlyAvailable: true })) {
        const nodes = this.#nodesByService.get(name);
        if (nodes) nodes.push(nodeID);
        else this.#nodesByService.set(name, [nodeID]);
      }
    }
    return this.#nodesByService;
  }

  #nodesOf(service: string): readonly string[] {
    return this.#services().get(service) ?? [];
  }

  /** Leases from the owners of the counters, one call per owner. */
  async #takeLeases(requests: LeaseRequests): Promise<Leases> {
    const nodes = this.#nodesOf('ratelimit');
    if (nodes.length === 0) throw new PlatformError('SERVICE_UNAVAILABLE', 'No ratelimit service is known.');
    const byOwner = new Map<string, LeaseRequests>();
    for (const request of requests) {
      const owner = nodes.length === 1 ? nodes[0]! : ownerOf(request.key, nodes)!;
      const group = byOwner.get(owner);
      if (group) group.push(request);
      else byOwner.set(owner, [request]);
    }
    const gateway = this.#broker.nodeID;
    const leases = (
      await Promise.all(
        [...byOwner].map(([nodeID, group]) =>
          call(
            this.#broker,
            'ratelimit.leases.take',
            { gateway, requests: group },
            { nodeID, timeout: LEASE_TIMEOUT_MS },
          ),
        ),
      )
    ).flat();
    const byKey = new Map(leases.map((lease) => [lease.key, lease]));
    return requests.map((request) => byKey.get(request.key)!);
  }

  /**
   * Ready once every service was seen. One that is lost later makes its own operations answer 503, with the others going
   * on; were the gateway not ready then, a cluster would take the whole API away.
   */
  async #readiness(): Promise<Record<string, boolean>> {
    const seen = (service: string): boolean => {
      if (this.#nodesOf(service).length > 0) this.#seenServices.add(service);
      return this.#seenServices.has(service);
    };
    const database = await Promise.race([
      this.#platform.database.query('SELECT 1').then(
        () => true,
        () => false,
      ),
      new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 2_000).unref()),
    ]);
    return {
      started: !this.#stopping,
      database,
      bus: busConnected(this.#broker),
      auth: seen('auth'),
      data: seen('data'),
      metadata: seen('metadata'),
    };
  }
}

type LeaseRequests = Parameters<ConstructorParameters<typeof Budgets>[1]>[0];
type Leases = Awaited<ReturnType<ConstructorParameters<typeof Budgets>[1]>>;

/** The rest of a body that was refused is thrown away, up to a bound, so that the client gets to read the answer. */
function discardRest(req: IncomingMessage): void {
  if (req.complete || req.destroyed) return;
  let bytes = 0;
  req.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > DISCARD_MAX_BYTES) req.destroy();
  });
  req.resume();
}
