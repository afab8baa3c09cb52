/** Operators' view of deployments: log lines of the working process, and metrics. */
import type { ServiceBroker } from 'moleculer';
import { Histogram } from 'prom-client';
import type { Database } from '../../../mixins/database/database.ts';
import { askedRow } from '../../../mixins/metrics/asked-numbers.ts';
import type { Metrics, Sample } from '../../../mixins/metrics/metrics.ts';
import { type Numbers, numbersStatement } from './queue.sql.ts';

const BUCKETS_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800];

export type Phase = 'plan' | 'ahead' | 'apply';

interface Taken {
  readonly tenantId: string;
  readonly deploymentId: string;
  readonly kind: string;
  /** How often it was taken; from 2 on a worker was lost. */
  readonly takes: number;
}

interface Ended extends Taken {
  readonly status: string;
  /** Of its error. */
  readonly code: string | null;
  /** From when it was accepted. */
  readonly seconds: number;
}

export class Telemetry {
  readonly #log: ServiceBroker['logger'];
  readonly #durations = new Histogram({
    name: 'erp_deployment_duration_seconds',
    help: 'From the acceptance of a deployment to its end, by outcome; of this process.',
    labelNames: ['status'],
    buckets: BUCKETS_SECONDS,
    registers: [],
  });
  readonly #phases = new Map<Phase, number>();
  #taken = 0;
  #lost = 0;

  constructor(log: ServiceBroker['logger']) {
    this.#log = log;
  }

  /** Adds its numbers to those of the process. */
  register(metrics: Metrics, database: Database): void {
    metrics.register(this.#durations);
    metrics.counter('erp_deployments_taken_total', 'Deployments that this process has begun.', () => this.#taken);
    metrics.counter(
      'erp_deployment_workers_lost_total',
      'Deployments that this process has begun again, because their worker was lost.',
      () => this.#lost,
    );
    metrics.counters('erp_deployment_phase_seconds_total', 'Time of this process in phases.', ['phase'], () =>
      this.#phases.entries().map(([phase, seconds]): Sample => [{ phase }, seconds]),
    );
    registerNumbers(metrics, database);
  }

  taken(deployment: Taken): void {
    this.#taken += 1;
    if (deployment.takes === 1) this.#log.info(deployment, 'A deployment has started.');
    else {
      this.#lost += 1;
      this.#log.warn(deployment, 'A deployment was taken over: its worker was lost.');
    }
  }

  ended(deployment: Ended): void {
    this.#durations.observe({ status: deployment.status }, deployment.seconds);
    this.#log.info(deployment, 'A deployment has ended.');
  }

  /** Does work and counts its time. */
  async during<T>(phase: Phase, work: () => Promise<T>): Promise<T> {
    const began = performance.now();
    try {
      return await work();
    } finally {
      this.#phases.set(phase, (this.#phases.get(phase) ?? 0) + (performance.now() - began) / 1_000);
    }
  }
}

/** Numbers of all tenants, the same in every process. */
function registerNumbers(metrics: Metrics, database: Database): void {
  const read = askedRow<Numbers>(database, numbersStatement, { queued: 0, running: 0, oldestSeconds: 0 });
  metrics.gauges('erp_deployments_open', 'Deployments of all tenants that have not ended.', ['state'], () => [
    [{ state: 'queued' }, read().queued],
    [{ state: 'running' }, read().running],
  ]);
  metrics.gauge(
    'erp_deployments_oldest_seconds',
    'For how long the oldest deployment has not ended.',
    () => read().oldestSeconds,
  );
}
