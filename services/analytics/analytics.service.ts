import type { ServiceSchema } from 'moleculer';
import type { AnalyticsActions } from '../../contracts/analytics.ts';
import { type ActionContext, type ActionHandlers, type Caller, call } from '../../contracts/call.ts';
import { type Asker, askerOf, type RequestContext, requestContext } from '../../lib/context.ts';
import { LIMITS } from '../../lib/limits.ts';
import type { OperationReply } from '../../lib/operation.ts';
import { warnOf } from '../../mixins/log-failure.ts';
import type { Platform } from '../../mixins/platform.ts';
import { createDashboard, deleteDashboard, publishDashboard, updateDashboardDraft } from './dashboards/change.ts';
import { checkAccess } from './dashboards/check.ts';
import { DeployedDashboards } from './dashboards/deployed.ts';
import { getDashboard, listDashboards } from './dashboards/read.ts';
import type { AnalyticsDeps } from './deps.ts';
import { sweepPeriodically } from './sweep.ts';
import { getCatalog } from './widgets/catalog.ts';
import { WidgetResults } from './widgets/results.ts';
import { runWidget } from './widgets/run.ts';

/** The Moleculer schema of analytics: it declares and delegates. */
export default function analyticsService(platform: Platform): ServiceSchema {
  const { database, metrics, log } = platform;
  const deployed = new DeployedDashboards(database, (error, tenantId) =>
    warnOf(log, error, 'The dashboards of a deployment were not taken over; a request tries again in some seconds.', {
      tenantId,
    }),
  );
  const results = new WidgetResults({
    maxBytes: LIMITS.widget_results_max_bytes,
    tenantMaxBytes: LIMITS.widget_results_tenant_max_bytes,
  });
  database.onReplaced(() => results.clear());

  /** Reachable services of a caller's work. */
  const depsOf = (ctx: Caller, request: Asker): AnalyticsDeps => {
    const asker = askerOf(request);
    return {
      database,
      findAccess: (tenantId, userId) => call(ctx, 'data.users.access', { tenantId, userId }),
      takeDeployed: (tenantId, version) =>
        deployed.upTo(version, tenantId, (asked) => call(ctx, 'metadata.dashboards.list', asked)),
      catalogOf: (objectApiName, acceptLanguage) =>
        call(ctx, 'data.objects.catalog', {
          asker,
          objectApiName,
          ...(acceptLanguage === undefined ? {} : { acceptLanguage }),
        }),
      aggregate: (query) => call(ctx, 'data.records.aggregate', { asker, query }),
      results,
      unknownPrincipals: (asked) => call(ctx, 'data.principals.check', asked),
    };
  };
  /** Answers an operation with what its call can reach. */
  const answer =
    <Input>(handler: (deps: AnalyticsDeps, request: RequestContext, input: Input) => Promise<OperationReply>) =>
    (ctx: ActionContext<Input>): Promise<OperationReply> => {
      const request = requestContext(ctx);
      return handler(depsOf(ctx, request), request, ctx.params);
    };

  return {
    name: 'analytics',
    actions: {
      'catalog.get': answer(getCatalog),
      'dashboards.create': answer(createDashboard),
      'dashboards.list': answer(listDashboards),
      'dashboards.get': answer(getDashboard),
      'dashboards.update': answer(updateDashboardDraft),
      'dashboards.publish': answer(publishDashboard),
      'dashboards.delete': answer(deleteDashboard),
      'dashboards.widgets.run': answer(runWidget),
      'access.check': (ctx) => checkAccess(depsOf(ctx, ctx.params.asker), ctx.params),
    } satisfies ActionHandlers<'analytics', AnalyticsActions>,
    created() {
      metrics.cache('analytics', 'widget_results', results);
    },
    async started() {
      await sweepPeriodically(platform);
    },
  };
}
