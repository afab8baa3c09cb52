/** prom-client's metrics of every Node process, under the names that dashboards know. */
import { collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import { membersOf } from '../../lib/json/objects.ts';
import type { Metrics } from './metrics.ts';

/** Its monitor of the event loop is not used, so it looks once an hour. */
const UNUSED_MS = 3_600_000;

/**
 * Left out: `nodejs_eventloop_lag_*` starts anew with each scrape, so that two scrapers take it from each other
 * (erp_event_loop_delay_seconds does not); the others are gauges that are named as if they were counters, or say what
 * are not needed.
 */
const LEFT_OUT = /^nodejs_(eventloop_lag_|active_|heap_space_)/;

let own: readonly Metric[] | undefined;

/** They watch the process as long as it lives, so they are made once, however many registries there are. */
export function registerOwnMetrics(metrics: Metrics): void {
  own ??= ownMetrics();
  for (const metric of own) metrics.register(metric);
}

function ownMetrics(): Metric[] {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: UNUSED_MS });
  return registry
    .getMetricsAsArray()
    .flatMap(({ name }) => registry.getSingleMetric(name) ?? [])
    .filter((metric) => !LEFT_OUT.test(String(membersOf(metric)['name'])));
}
