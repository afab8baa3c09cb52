import type { ServiceSchema } from 'moleculer';
import type { AgentActions } from '../../contracts/agent.ts';
import { type ActionHandlers, answering, call, type EventHandlers } from '../../contracts/call.ts';
import { warnOf } from '../../mixins/log-failure.ts';
import type { Platform } from '../../mixins/platform.ts';
import { sealingKeys } from '../../mixins/sealing-keys.ts';
import { SnapshotCache } from '../../mixins/snapshot-cache/snapshot-cache.ts';
import { admit, requestApproval } from './admission/admit.ts';
import { settleStep } from './admission/settle.ts';
import { decideApproval } from './approvals/decide.ts';
import { getApproval, listApprovals } from './approvals/read.ts';
import { Configurations } from './configurations.ts';
import type { AgentDeps } from './deps.ts';
import { judgeTransitions } from './policy/transitions.ts';
import { createRun } from './runs/create.ts';
import { cancelRun, completeRun } from './runs/end.ts';
import { getRun, listRuns, runState } from './runs/read.ts';
import { listSteps } from './runs/steps.ts';
import { registerNumbers } from './upkeep/numbers.ts';
import { cancelRunsOfTenant, listRunsOfTenant } from './upkeep/operator.ts';
import { startPeriodicWork } from './upkeep/periodic.ts';
import { cancelRunsOfGrants, cancelRunsOfInactiveClients } from './upkeep/upkeep.ts';

/** The Moleculer schema of agent: it declares and delegates. */
export default async function agentService(platform: Platform): Promise<ServiceSchema> {
  const { database, broker, log } = platform;
  const snapshots = new SnapshotCache((tenantId, version) =>
    call(broker, 'metadata.snapshots.get', version === undefined ? { tenantId } : { tenantId, version }),
  );

  const deps: AgentDeps = {
    database,
    configurations: new Configurations(database, snapshots, (tenantId, snapshot) =>
      cancelRunsOfInactiveClients(database, tenantId, snapshot),
    ),
    sealingKeys: await sealingKeys(platform, 'cursors of agent lists'),
    findUser: (tenantId, userId) => call(broker, 'data.users.get', { tenantId, userId }),
    usersHolding: (question) => call(broker, 'data.users.holding', question),
    notify: (question) => call(broker, 'notifications.notify', question),
    askApprovers: (question) => call(broker, 'auth.mails.askApprovers', question),
    checkAccess: (question) => call(broker, 'data.access.check', question),
    checkDashboard: (question) => call(broker, 'analytics.access.check', question),
    seenRecords: (question) => call(broker, 'data.records.seen', question),
    carriedOut: (asked) => call(broker, 'bulk.jobs.carried', asked),
    recordsOfRequests: (question) => call(broker, 'data.trail.ofRequests', question),
  };

  const answer = answering(deps);

  return {
    name: 'agent',
    actions: {
      'runs.create': answer(createRun),
      'runs.list': answer(listRuns),
      'runs.get': answer(getRun),
      'runs.complete': answer(completeRun),
      'runs.cancel': answer(cancelRun),
      'steps.list': answer(listSteps),
      'approvals.list': answer(listApprovals),
      'approvals.get': answer(getApproval),
      'approvals.decide': answer(decideApproval),
      'runs.admit': answer(admit),
      'steps.settle': answer(settleStep),
      'approvals.request': answer(requestApproval),
      'transitions.judge': (ctx) => judgeTransitions(deps, ctx.params),
      'runs.state': (ctx) => runState(deps, ctx.params),
      'tenants.listRuns': (ctx) => listRunsOfTenant(database, ctx.params),
      'tenants.cancelRuns': (ctx) => cancelRunsOfTenant(database, ctx.params),
    } satisfies ActionHandlers<'agent', AgentActions>,
    events: {
      'auth.grants.revoked': (ctx) =>
        cancelRunsOfGrants(database, ctx.params.grantIds).catch((error: unknown) =>
          warnOf(log, error, 'Runs of ended grants go on; the next round ends them.'),
        ),
    } satisfies EventHandlers,
    created() {
      registerNumbers(platform.metrics, database);
      platform.metrics.cache('agent', 'snapshots', snapshots.numbers);
    },
    async started() {
      await startPeriodicWork(platform, deps);
    },
  };
}
