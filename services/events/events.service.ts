import type { ServiceSchema } from 'moleculer';
import { type ActionHandlers, answering, broadcast, call, type EventHandlers } from '../../contracts/call.ts';
import { type EventsActions, eventsTopics } from '../../contracts/events.ts';
import { allTenants, suspensionOf } from '../../contracts/tenants.ts';
import { periodicQueue } from '../../mixins/jobs/queue.ts';
import { repeatForTenants } from '../../mixins/jobs/tenants.ts';
import { warnOf } from '../../mixins/log-failure.ts';
import { RecentMaximum } from '../../mixins/metrics/recent-maximum.ts';
import { orEarlier } from '../../mixins/mutation/earlier.ts';
import { NOTICES, requestNotice } from '../../mixins/notices.ts';
import { guardedFetch } from '../../mixins/outbound.ts';
import type { Platform } from '../../mixins/platform.ts';
import { sealingKeys } from '../../mixins/sealing-keys.ts';
import type { EventsDeps } from './deps.ts';
import { Relay, relayTenant } from './log/relay.ts';
import { registerNumbers } from './numbers.ts';
import { listEvents, streamEvents } from './read/list.ts';
import { deliver } from './webhooks/deliver.ts';
import { removeOldStatement } from './webhooks/delivery.sql.ts';
import { DELIVERIES, DeliveryQueue, ROUND_SECONDS } from './webhooks/queue.ts';
import {
  createSubscription,
  deleteSubscription,
  getSubscription,
  listDeliveries,
  listSubscriptions,
  replayEvents,
  rotateSecret,
  testSubscription,
  updateSubscription,
} from './webhooks/subscriptions.ts';

/** Wake-ups may be lost, and changes of jobs send none. */
const RELAY = periodicQueue('events.relay', { everySeconds: ROUND_SECONDS, pollSeconds: 10, firstAfterSeconds: 2 });
const NOT_SENT = 'Deliveries of a tenant were not queued; the next round tries again.';
const LEFT = 'New events of a tenant have no numbers yet; the next round tries again.';

/** The Moleculer schema of events: it declares and delegates. */
export default async function eventsService(platform: Platform): Promise<ServiceSchema> {
  const { database, broker, config, jobs, log } = platform;
  const deliveries = new DeliveryQueue(jobs, database, (due) => broadcast(broker, 'events.deliveries.due', due));
  const deps: EventsDeps = {
    database,
    sealingKeys: await sealingKeys(platform, 'cursors of events'),
    baseUrl: config.baseUrl ?? `http://localhost:${config.port}`,
    webhooks: guardedFetch(config.webhookPrivateHosts),
    privateHosts: config.webhookPrivateHosts,
    numbers: { deliveries: { pending: 0, delivered: 0, hidden: 0, parked: 0 } },
    deliveries,
    notify: (tx, caller, notice) => requestNotice(tx, jobs, caller, notice),
    isSuspended: suspensionOf(broker),
    readRecords: (question) => call(broker, 'data.events.read', question),
  };
  const lateness = new RecentMaximum(performance.now());
  const relay = new Relay({
    relay: (tenantId) => relayTenant(database, tenantId, (seconds) => lateness.note(performance.now(), seconds)),
    numbered: (tenantId, events) => {
      const topics = [...eventsTopics(tenantId, null), ...eventsTopics(tenantId, events.objects)];
      broadcast(broker, 'gateway.streams.wake', { topics });
      void deliveries.addFor(tenantId, events).catch((error) => warnOf(log, error, NOT_SENT, { tenantId }));
    },
    failed: (tenantId, error) => warnOf(log, error, LEFT, { tenantId }),
  });
  const answer = answering(deps);

  return {
    name: 'events',
    actions: {
      'items.list': answer(listEvents),
      'stream.get': answer(streamEvents),
      'subscriptions.create': answer(createSubscription),
      'subscriptions.list': answer(listSubscriptions),
      'subscriptions.get': answer(getSubscription),
      'subscriptions.update': answer(orEarlier(updateSubscription)),
      'subscriptions.delete': answer(orEarlier(deleteSubscription)),
      'subscriptions.test': answer(testSubscription),
      'subscriptions.replay': answer(replayEvents),
      'subscriptions.rotateSecret': answer(rotateSecret),
      'deliveries.list': answer(listDeliveries),
    } satisfies ActionHandlers<'events', EventsActions>,
    events: {
      'events.log.written'(ctx) {
        relay.wake(ctx.params.tenantIds);
      },
      'events.deliveries.due'(ctx) {
        deliveries.wake(ctx.params);
      },
      'metadata.schema.changed'(ctx) {
        relay.wake([ctx.params.tenantId]);
      },
    } satisfies EventHandlers,
    created() {
      registerNumbers(platform.metrics, database, { relay, lateness, ...deps.numbers });
    },
    async started() {
      await jobs.declare(NOTICES);
      await jobs.work(DELIVERIES, ({ payload, signal }) =>
        deliveries.run(payload, (turn) => deliver(deps, payload, turn, signal)),
      );
      await repeatForTenants(jobs, {
        queue: RELAY,
        alsoSuspended: true,
        tenants: allTenants(broker),
        work: async (tenantId) => {
          try {
            await relay.run(tenantId);
          } finally {
            await deliveries.addDue(tenantId);
            await database.shared('events', tenantId, (tx) => tx.query(removeOldStatement(tenantId)));
          }
        },
        failed: (tenantId, error) => warnOf(log, error, LEFT, { tenantId }),
      });
    },
  };
}
