/**
 * The Moleculer schema of gateway: moleculer-web's ApiGateway behind our edge. A request goes from the edge to its door;
 * that of pages hands it to the action `rest`, and so to the one route of doors/pages.ts.
 */
import type { ServiceSchema } from 'moleculer';
import ApiGateway from 'moleculer-web';
import { type ActionHandlers, call, type EventHandlers } from '../../contracts/call.ts';
import type { GatewayActions } from '../../contracts/gateway.ts';
import type { McpDoorActions } from '../../contracts/mcp.ts';
import { OPERATIONS } from '../../contracts/operations.ts';
import { requestContext } from '../../lib/context.ts';
import type { Operation, OperationReply } from '../../lib/operation.ts';
import type { Platform } from '../../mixins/platform.ts';
import { publicAliases } from './doors/aliases.ts';
import { type PageRequest, pageRoute } from './doors/pages.ts';
import type { Exchange } from './edge/exchange.ts';
import { GracefulShutdown } from './edge/graceful-shutdown.ts';
import { createHttpServer } from './edge/http-server.ts';
import { listen } from './edge/listening.ts';
import { Gateway } from './gateway.ts';
import { listDeprecations } from './public/deprecations.ts';

/**
 * moleculer-web without what does not fit: it ends the process when the port is in use (main.ts closes the database
 * first and says so), makes routes of whatever services publish, and announces that to every node.
 */
const { started: _listens, events: _regeneratesAliases, ...apiGateway } = ApiGateway;

/** Time that an unannounced stop waits for requests. */
const DRAIN_MS = 8_000;

/** The Moleculer schema of gateway: it declares and delegates. */
export default function gatewayService(
  platform: Platform,
  operations: readonly Operation[] = OPERATIONS,
): ServiceSchema {
  const { port, host } = platform.config;
  const server = createHttpServer(platform.config);
  const shutdown = new GracefulShutdown(server);
  let gateway: Gateway;
  const document = (name: 'openapi' | 'scopes' | 'capabilities') => (): OperationReply =>
    gateway.documents.answer(name);
  const servicesChanged = (): void => gateway?.servicesChanged();
  const settings = {
    // Routes hold functions, which the description of a service on the bus cannot.
    $secureSettings: ['routes'],
    port,
    ip: host,
    routes: [pageRoute(() => gateway)],
    logRequest: null,
    logRequestParams: null,
    logResponse: null,
    logRouteRegistration: null,
  };
  const documentActions = {
    'openapi.get': document('openapi'),
    'scopes.list': document('scopes'),
    'capabilities.get': document('capabilities'),
    'deprecations.list': (ctx) =>
      listDeprecations(operations, gateway.baseUrl, (operationIds) =>
        call(ctx, 'auth.deprecatedUses.list', { tenantId: requestContext(ctx).tenantId, operationIds }),
      ),
    'operations.run': (ctx) => gateway.runForAssistant(ctx.params),
  } satisfies ActionHandlers<'gateway', GatewayActions & McpDoorActions>;
  return {
    name: 'gateway',
    mixins: [apiGateway],
    settings,
    actions: {
      ...documentActions,
      // Routes are those of pages.ts; none is added over the bus.
      addRoute: false,
      removeRoute: false,
      /** For operators: the public operations and pages. Operations are not routed through aliases. */
      listAliases: () => publicAliases(operations),
    },
    events: {
      'auth.grants.revoked'(ctx) {
        gateway?.grantsRevoked(ctx.params.grantIds);
      },
      'gateway.streams.wake'(ctx) {
        gateway?.wakeStreams(ctx.params.topics);
      },
      'auth.keys.rotated'() {
        gateway?.keysRotated();
      },
      'metadata.tenant.changed'(ctx) {
        gateway?.tenantChanged(ctx.params.tenantId);
      },
      '$services.changed': servicesChanged,
      '$node.disconnected': servicesChanged,
      '$node.connected': servicesChanged,
    } satisfies EventHandlers,
    methods: {
      /** Called by moleculer-web when the service is created. */
      createServer() {
        this.server = server;
      },
      /** Queries are parsed by the operation's row; a page gets none. */
      parseQueryString(req: PageRequest) {
        return { url: req.$ctx.params.exchange.path, query: {} };
      },
    },
    created() {
      server.removeAllListeners('error'); // see `apiGateway`
    },
    async started() {
      const baseUrl = await listen(server, platform.config);
      const answerPage = async (x: Exchange): Promise<boolean> => {
        const params = { req: x.req, res: x.res, exchange: x };
        // Not tracked by Moleculer: drain() waits for requests, and a stop should not wait twice.
        const answered = await this.actions['rest']?.(params, { requestID: x.requestId, tracking: false });
        return answered === true;
      };
      gateway = new Gateway(platform, this, { baseUrl, operations, server, shutdown, answerPage });
      this['baseUrl'] = baseUrl;
      this['readiness'] = () => gateway.readiness();
      this['condition'] = () => gateway.condition();
      this['edge'] = gateway;
    },
    async stopped() {
      const until = performance.now() + DRAIN_MS;
      await (gateway ? gateway.drain(until) : shutdown.end(until));
    },
  };
}
