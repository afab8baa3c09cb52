/** Numbers of this service for metrics. */
import type { Database } from '../../mixins/database/database.ts';
import { askedRow } from '../../mixins/metrics/asked-numbers.ts';
import type { Metrics } from '../../mixins/metrics/metrics.ts';
import type { RecentMaximum } from '../../mixins/metrics/recent-maximum.ts';
import type { EventsDeps } from './deps.ts';
import type { Relay } from './log/relay.ts';
import { type DeliveryNumbers, deliveryNumbersStatement } from './webhooks/delivery.sql.ts';

interface OfProcess {
  readonly relay: Pick<Relay, 'numbered'>;
  /** Seconds for which events waited for their numbers. */
  readonly lateness: RecentMaximum;
  readonly deliveries: EventsDeps['numbers']['deliveries'];
}

const NONE: DeliveryNumbers = { due: 0, waiting: 0, parked: 0, oldestSeconds: 0 };

export function registerNumbers(
  metrics: Metrics,
  database: Database,
  { relay, lateness, deliveries }: OfProcess,
): void {
  metrics.counters(
    'erp_events_numbered_total',
    'Events that this process has put into the logs of tenants.',
    [],
    () => [[{}, relay.numbered]],
  );
  metrics.gauge(
    'erp_events_relay_lag_seconds',
    'For how long an event has waited at most that this process numbered, or could not number, in the last one to two minutes.',
    () => lateness.read(performance.now()),
  );
  metrics.counters(
    'erp_webhook_attempts_total',
    'Deliveries of this process, by what became of them.',
    ['outcome'],
    () =>
      Object.entries(deliveries).map(([outcome, count]) => [
        { outcome: outcome === 'pending' ? 'failed' : outcome },
        count,
      ]),
  );
  const read = askedRow<DeliveryNumbers>(database, deliveryNumbersStatement, NONE);
  metrics.gauges('erp_webhook_deliveries', 'Deliveries of active webhooks of all tenants.', ['state'], () => {
    const { due, waiting, parked } = read();
    return Object.entries({ due, waiting, parked }).map(([state, count]) => [{ state }, count]);
  });
  metrics.gauge(
    'erp_webhook_oldest_due_seconds',
    'For how long the oldest delivery is due that has not been sent.',
    () => read().oldestSeconds,
  );
}
