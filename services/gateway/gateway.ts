/**
 * A gateway: its edge, its doors and what they use of other services; whether it is ready, and how it stops.
 * docs/decisions/gateway-on-moleculer-web.md says what moleculer-web does and what it does not.
 */
import type { Server } from 'node:http';
import type { Service, ServiceBroker } from 'moleculer';
import { ALL_SERVICES, SERVICES } from '../../config/services.ts';
import { readableLines } from '../../config/text-log.ts';
import { call, emit } from '../../contracts/call.ts';
import { READ_RECORD } from '../../contracts/data/records.ts';
import type { DataActions } from '../../contracts/data.ts';
import type { McpDoorActions, McpOutcome } from '../../contracts/mcp.ts';
import type { RequestContext } from '../../lib/context.ts';
import { messageOf } from '../../lib/errors/thrown.ts';
import { LIMITS } from '../../lib/limits.ts';
import type { Operation } from '../../lib/operation.ts';
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
import type { Sample } from '../../mixins/metrics/metrics.ts';
import type { Platform } from '../../mixins/platform.ts';
import { Presence } from '../../mixins/presence.ts';
import type { Edge } from '../../mixins/shutdown.ts';
import { TenantQueue, type TenantQueueLimits } from '../../mixins/tenant-queue.ts';
import type { SharedAnswer } from '../../web/kept.ts';
import { referencePage } from '../../web/reference/page.ts';
import { home } from '../../web/site/home.ts';
import { securityFile } from '../../web/site/security-file.ts';
import { ClusterView } from './cluster.ts';
import { ApiDoor } from './doors/api.ts';
import { DocumentsDoor } from './doors/documents.ts';
import { EVENT_STREAMS, EventStreams } from './doors/event-streams.ts';
import { McpDoor } from './doors/mcp.ts';
import { type PageSources, PagesDoor } from './doors/pages.ts';
import { ScimDoor } from './doors/scim.ts';
import { WaitingRequests } from './doors/waiting-requests.ts';
import { AccessLog } from './edge/answered.ts';
import { HttpEdge } from './edge/edge.ts';
import type { Exchange } from './edge/exchange.ts';
import type { GracefulShutdown } from './edge/graceful-shutdown.ts';
import type { ReplyOptions } from './edge/reply.ts';
import { Budgets } from './pipeline/budget.ts';
import type { Call } from './pipeline/call.ts';
import { Denials } from './pipeline/denials.ts';
import { DeprecatedUses } from './pipeline/deprecated-uses.ts';
import type { Gate } from './pipeline/gate.ts';
import { abortable, ask, readOn, recheck, requestContextOf } from './pipeline/index.ts';
import { Origins } from './pipeline/origins.ts';
import { PieceHashes } from './pipeline/piece-hashes.ts';
import { Router } from './pipeline/router.ts';
import type { RunCalls } from './pipeline/run-calls.ts';
import { Sessions } from './pipeline/session.ts';
import { Streams } from './pipeline/streams.ts';
import { WrittenTenants } from './pipeline/written-tenants.ts';
import { PublicDocuments } from './public/documents.ts';

const DATABASE_ANSWER_MS = 2_000;
/** Each of them takes up to 32 MiB as sent and again as unpacked, and a slow sender keeps its place for 30 s. */
const HUGE_BODIES: TenantQueueLimits = {
  places: 16,
  waitingPerTenant: 20,
  waiting: 200,
  waitMs: LIMITS.turn_wait_ms,
};
const STREAMED_BODIES = {
  ofCaller: LIMITS.streamed_bodies_of_caller_max,
  ofTenant: LIMITS.streamed_bodies_of_tenant_max,
  all: LIMITS.streamed_bodies_max,
};
const FILE_ANSWERS = {
  ofCaller: LIMITS.file_answers_of_caller_max,
  ofTenant: LIMITS.file_answers_of_tenant_max,
  all: LIMITS.file_answers_max,
};
const AUTH_LOST = `auth does not answer: grants that it has confirmed go on for ${LIMITS.auth_absence_seconds} s, confirmed by data.`;
const AUTH_BACK = 'auth answers again.';
/** Services that must have been available once before the gateway calls itself ready. */
const NEEDED_SERVICES = ALL_SERVICES.filter((name) => SERVICES[name].awaitedByGateway);

interface GatewayOptions {
  /** Public address of the platform. */
  readonly baseUrl: string;
  readonly operations: readonly Operation[];
  readonly server: Server;
  readonly shutdown: GracefulShutdown;
  /** Answers a request for a page; false when there is none at its path. */
  readonly answerPage: (x: Exchange) => Promise<boolean>;
}

/** The gateway while it listens. */
export class Gateway implements Edge, PageSources {
  readonly baseUrl: string;
  readonly broker: ServiceBroker;
  readonly budgets: Budgets;
  readonly documents: PublicDocuments;
  readonly home: ReturnType<typeof home>;
  readonly reference: SharedAnswer;
  readonly #securityFile: ReturnType<typeof securityFile> | null;
  readonly #platform: Platform;
  readonly #service: Service;
  readonly #edge: HttpEdge;
  readonly #cluster: ClusterView;
  readonly #presence: Presence;
  readonly #sessions: Sessions;
  readonly #mcp: McpDoor;
  readonly #denials: Denials;
  readonly #deprecatedUses: DeprecatedUses;
  readonly #streamedBodies = new Streams(STREAMED_BODIES);
  readonly #fileAnswers = new Streams(FILE_ANSWERS);
  readonly #eventStreams = new Streams(EVENT_STREAMS);
  readonly #events: EventStreams;
  readonly #waiting: WaitingRequests;
  readonly #databaseReady: () => Promise<boolean>;
  readonly #askAuthAgain: () => Promise<void>;
  /** Result of the last readiness check: a gateway without bus or database learns nothing about others. */
  #able = true;
  /** When it last was not so, on the clock of `performance.now()`. */
  #unableAt = Number.NEGATIVE_INFINITY;
  readonly #scrape: () => Promise<string>;
  #drained: Promise<void> | undefined;

  constructor(platform: Platform, service: Service, options: GatewayOptions) {
    const { baseUrl, operations, server, shutdown, answerPage } = options;
    const { rateLimits, securityContact, trustedProxies } = platform.config;
    this.baseUrl = baseUrl;
    this.broker = service.broker;
    this.#platform = platform;
    this.#service = service;
    this.documents = new PublicDocuments(operations, baseUrl, platform.config);
    this.home = home(baseUrl, platform.config);
    this.#securityFile = securityContact === null ? null : securityFile(securityContact, baseUrl);
    this.reference = referencePage(baseUrl, platform.config.referenceSignIn);
    this.#cluster = new ClusterView(this.broker);
    this.#presence = new Presence(this.broker, ALL_SERVICES);
    this.budgets = new Budgets(
      rateLimits,
      (requests) => this.#cluster.takeLeases(requests),
      () => Math.max(1, this.#cluster.nodesOf('gateway').length),
    );
    this.#scrape = rememberedBriefly(() => platform.metrics.text());
    this.#databaseReady = rememberedBriefly(() => databaseAnswers(platform, DATABASE_ANSWER_MS));
    this.#askAuthAgain = rememberedBriefly(() => this.#sessions.askAuthAgain());
    this.#sessions = this.#openSessions();
    this.#denials = this.#openDenials();
    const { broker } = this;
    this.#deprecatedUses = new DeprecatedUses({
      add: (uses) => call(broker, 'auth.deprecatedUses.add', { uses: [...uses] }),
      firstOfDay: ({ tenantId, clientId, operationId }) =>
        service.logger.info({ tenantId, clientId, operationId }, 'A client called a deprecated operation.'),
    });
    this.#edge = new HttpEdge({
      baseUrl,
      trustedProxies,
      shutdown,
      budgets: this.budgets,
      sessions: this.#sessions,
      deprecatedUses: this.#deprecatedUses,
      accessLog: openAccessLog(platform),
      logger: service.logger,
      sweep: () => {
        this.budgets.sweep();
        this.#denials.sweep();
        this.#deprecatedUses.sweep();
      },
    });
    this.#register();
    const gate = this.#openGate(operations);
    const reading = {
      streams: this.#eventStreams,
      recheck: (x: Exchange) => recheck(gate, x),
      read: (x: Exchange, cursor: string) => readOn(gate, x, cursor),
    };
    this.#events = new EventStreams(reading);
    this.#waiting = new WaitingRequests(reading);
    this.#mcp = new McpDoor(this.#edge, gate);
    this.#edge.open(server, {
      api: new ApiDoor(this.#edge, gate, {
        fileAnswers: this.#fileAnswers,
        events: this.#events,
        waiting: this.#waiting,
      }),
      mcp: this.#mcp,
      scim: new ScimDoor(this.#edge, gate),
      documents: new DocumentsDoor(this.#edge, this.budgets),
      pages: new PagesDoor(this.#edge, this.budgets, answerPage),
    });
  }

  /** Adds the numbers of the gateway to those of the process. */
  #register(): void {
    const { metrics } = this.#platform;
    registerProcessMetrics(this.#platform, this.broker);
    this.#presence.register(metrics);
    this.#edge.register(metrics);
    this.#deprecatedUses.register(metrics);
    this.#sessions.register(metrics);
    const streams = Object.entries({ body: this.#streamedBodies, file: this.#fileAnswers, events: this.#eventStreams });
    metrics.gauges('erp_http_streams', 'Streams that are open.', ['kind'], () =>
      streams.map(([kind, { open }]): Sample => [{ kind }, open]),
    );
    metrics.counters('erp_http_stream_bytes_total', 'Bytes that streams have moved.', ['kind'], () =>
      streams.map(([kind, { bytes }]): Sample => [{ kind }, bytes]),
    );
  }

  replyOptions(): ReplyOptions {
    return this.#edge.replyOptions();
  }

  fail(x: Exchange, error: unknown): void {
    this.#edge.fail(x, error);
  }

  /** Conditions for receiving requests. */
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
      started: !this.#edge.leaving,
      database,
      bus,
      clock: this.#platform.timekeeper.agrees,
      ...Object.fromEntries(seen),
    };
  }

  /** Functions that a ready gateway lacks at the moment. */
  get degraded(): readonly Degradation[] {
    // A missing service is known before the first call.
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

  /** Contact for security problems; null: not configured. */
  securityFile(): SharedAnswer | null {
    return this.#securityFile?.(platformTime()) ?? null;
  }

  /** For mcp: runs an operation for the caller of a request that mcp is answering. */
  runForAssistant(asked: McpDoorActions['gateway.operations.run']['params']): Promise<McpOutcome> {
    return this.#mcp.run(asked);
  }

  /** Event: these grants ended. */
  grantsRevoked(grantIds: readonly string[]): void {
    this.#sessions.revoke(grantIds);
    this.#events.revoked(grantIds);
  }

  /** Event: something has happened that streams of events may show. */
  wakeStreams(topics: readonly string[]): void {
    this.#events.wake(topics);
    this.#waiting.wake(topics);
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
    if (this.#edge.leaving) return;
    this.#edge.leave();
    this.#events.endAll();
    this.#waiting.endAll();
  }

  /** Lets the requests in flight finish, up to a limit, and returns the unused leases. */
  drain(until: number): Promise<void> {
    return (this.#drained ??= this.#drain(until));
  }

  async #drain(until: number): Promise<void> {
    this.leave();
    // At once: data may be stopping in the same process, and what is refused from now on is little.
    const reported = Promise.all([this.#denials.close(), this.#deprecatedUses.close().catch(() => {})]);
    await this.#edge.end(until);
    await reported;
    await Promise.all([this.budgets.close(), this.#denials.close(), this.#deprecatedUses.close().catch(() => {})]);
    this.#edge.close();
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
        if (away) this.#service.logger.warn({ reason: messageOf(away) }, AUTH_LOST);
        else this.#service.logger.warn(AUTH_BACK);
      },
    });
  }

  #openDenials(): Denials {
    const { broker } = this;
    return new Denials({
      deny: (denial, request) =>
        broker.call<unknown, DataActions['data.audit.deny']['params']>('data.audit.deny', denial, {
          meta: { request },
        }),
      suppress: (suppressed) => call(broker, 'data.audit.suppress', suppressed),
    });
  }

  #openGate(operations: readonly Operation[]): Gate {
    const { broker, budgets } = this;
    const written = new WrittenTenants((tenantIds) => emit(broker, 'events.log.written', { tenantIds }));
    return {
      baseUrl: this.baseUrl,
      broker,
      router: new Router(operations),
      sessions: this.#sessions,
      budgets,
      hugeBodies: new TenantQueue(HUGE_BODIES),
      origins: new Origins(async (origin, clientId) => {
        const params = clientId === undefined ? { origin } : { origin, clientId };
        return (await call(broker, 'auth.origins.check', params)).allowed;
      }),
      blobs: this.#platform.blobs,
      streamedBodies: this.#streamedBodies,
      pieceHashes: new PieceHashes(),
      runs: this.#openRuns(),
      wrote: (tenantId) => written.note(tenantId),
      refused: (x, error) => this.#denials.note(x, error, x.session?.grant ? requestContextOf(x) : undefined),
    };
  }

  #openRuns(): RunCalls {
    const { broker } = this;
    const asCaller = (x: Call): { meta: { request: RequestContext | undefined } } => ({
      meta: { request: requestContextOf(x) },
    });
    return {
      admit: (x, admission) => abortable(x, call(broker, 'agent.runs.admit', admission, asCaller(x))),
      settle: (x, stepId, status) => {
        call(broker, 'agent.steps.settle', { stepId, status }, asCaller(x)).catch(() => {});
      },
      tryOut: (x, asked) => {
        const request = requestContextOf(x);
        return ask(this, x, x.route.operation.action, asked, request && { ...request, dryRun: true });
      },
      read: (x, asked) => ask(this, x, READ_RECORD, asked, requestContextOf(x)),
      request: (x, asked) => abortable(x, call(broker, 'agent.approvals.request', asked, asCaller(x))),
    };
  }
}

function openAccessLog({ config: { logFormat, logLevel, nodeId } }: Platform): AccessLog | null {
  if (logLevel === 'silent') return null;
  const write =
    logFormat === 'text' ? (lines: string): void => void process.stdout.write(readableLines(lines)) : undefined;
  return new AccessLog(nodeId, logLevel, write);
}
