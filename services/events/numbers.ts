/** Numbers of this service for metrics. */
import type { Metrics } from '../../mixins/metrics/metrics.ts';
import type { EventsDeps } from './deps.ts';
import type { Relay } from './log/relay.ts';

export function registerNumbers(
  metrics: Metrics,
  relay: Pick<Relay, 'numbered'>,
  { deliveries }: EventsDeps['numbers'],
): void {
  metrics.counters(
    'erp_events_numbered_total',
    'Events that this process has put into the logs of tenants.',
    [],
    () => [[{}, relay.numbered]],
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
}
