import type { ServiceSchema } from 'moleculer';
import type { AnalyticsActions } from '../../contracts/analytics.ts';
import { type ActionContext, type ActionHandlers, call } from '../../contracts/call.ts';
import { type RequestContext, requestContext } from '../../lib/context.ts';
import type { OperationReply } from '../../lib/operation.ts';
import type { Platform } from '../../mixins/platform.ts';
import { createDashboard, deleteDashboard, publishDashboard, updateDashboardDraft } from './dashboards/change.ts';
import { DeployedDashboards } from './dashboards/deployed.ts';
import { getDashboard, listDashboards } from './dashboards/read.ts';
import type { AnalyticsDeps } from './deps.ts';

/** The Moleculer schema of analytics: it declares and delegates. */
export default function analyticsService({ database }: Platform): ServiceSchema {
  let warn: (error: unknown, tenantId: string) => void = () => {};
  const deployed = new DeployedDashboards(database, (error, tenantId) => warn(error, tenantId));
  /** Answers an operation with what its call can reach. */
  const answer =
    <Input>(handler: (deps: AnalyticsDeps, request: RequestContext, input: Input) => Promise<OperationReply>) =>
    (ctx: ActionContext<Input>): Promise<OperationReply> =>
      handler(
        {
          database,
          findAccess: (tenantId, userId) => call(ctx, 'data.users.access', { tenantId, userId }),
          takeDeployed: (tenantId, version) =>
            deployed.upTo(version, tenantId, (asked) => call(ctx, 'metadata.dashboards.list', asked)),
          unknownPrincipals: (asked) => call(ctx, 'data.principals.check', asked),
        },
        requestContext(ctx),
        ctx.params,
      );

  return {
    name: 'analytics',
    actions: {
      'dashboards.create': answer(createDashboard),
      'dashboards.list': answer(listDashboards),
      'dashboards.get': answer(getDashboard),
      'dashboards.update': answer(updateDashboardDraft),
      'dashboards.publish': answer(publishDashboard),
      'dashboards.delete': answer(deleteDashboard),
    } satisfies ActionHandlers<'analytics', AnalyticsActions>,
    created() {
      warn = (err, tenantId) =>
        this.logger.warn(
          { err, tenantId },
          'The dashboards of a deployment were not taken over; the next request tries again.',
        );
    },
  };
}
