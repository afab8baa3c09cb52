/** Numbers of this service for metrics. */
import type { Metrics } from '../../mixins/metrics/metrics.ts';
import type { Relay } from './log/relay.ts';

export function registerNumbers(metrics: Metrics, relay: Pick<Relay, 'numbered'>): void {
  metrics.counters(
    'erp_events_numbered_total',
    'Events that this process has put into the logs of tenants.',
    [],
    () => [[{}, relay.numbered]],
  );
}
