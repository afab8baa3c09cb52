/**
 * The services that a process sees on the bus now, and for how long it has not seen the others, by the monotonic clock. It
 * is what operators are shown: nothing decides by it whether a call is made.
 * Source: docs/reference/operations-cluster.md#services-that-are-away.
 */
import type { ServiceBroker } from 'moleculer';
import type { ServiceName } from '../config/services.ts';
import { busConnected } from './bus/connected.ts';
import type { Metrics, Sample } from './metrics/metrics.ts';

/** `unknown`: this process is not connected to the bus and sees no other. */
export interface ServiceState {
  readonly status: 'present' | 'away' | 'unknown';
  /** Processes that offer the service; this one included where it does. */
  readonly processes: number;
  /** Time since which no process has offered it, or of this process's start; only for one that is away. */
  readonly awaySeconds?: number;
}

/** Seconds are given with one digit behind the point. */
const TENTHS = 10;

export class Presence {
  readonly #broker: ServiceBroker;
  readonly #services: readonly ServiceName[];
  readonly #now: () => number;
  readonly #awaySince: Map<ServiceName, number>;
  #nodes: ReadonlyMap<string, number> | null = null;

  /** `services`: those that are watched, which are the ones that the process calls. */
  constructor(broker: ServiceBroker, services: readonly ServiceName[], now: () => number = () => performance.now()) {
    this.#broker = broker;
    this.#services = services;
    this.#now = now;
    const began = now();
    this.#awaySince = new Map(services.map((service) => [service, began]));
    const changed = (): void => {
      this.#nodes = null;
      this.#note();
    };
    for (const event of ['$services.changed', '$node.connected', '$node.disconnected'])
      broker.localBus.on(event, changed);
    this.#note();
  }

  /** The state of each service that is watched. */
  get states(): Readonly<Record<string, ServiceState>> {
    const nodes = this.#note();
    const connected = busConnected(this.#broker);
    return Object.fromEntries(
      this.#services.map((service): [string, ServiceState] => {
        const processes = nodes.get(service) ?? 0;
        if (processes > 0) return [service, { status: 'present', processes }];
        if (!connected) return [service, { status: 'unknown', processes }];
        const seconds = (this.#now() - (this.#awaySince.get(service) ?? this.#now())) / 1_000;
        return [service, { status: 'away', processes, awaySeconds: Math.round(seconds * TENTHS) / TENTHS }];
      }),
    );
  }

  /** Services that no process offers, though this process is connected to the bus. */
  get away(): readonly ServiceName[] {
    const { states } = this;
    return this.#services.filter((service) => states[service]?.status === 'away');
  }

  /** Without a sample for what is not known: an alert about a service does not go off when NATS is what is away. */
  register(metrics: Metrics): void {
    const samples = (read: (state: ServiceState) => number) => (): Sample[] =>
      Object.entries(this.states)
        .filter(([, { status }]) => status !== 'unknown')
        .map(([service, state]): Sample => [{ service }, read(state)]);
    const gauge = (name: string, help: string, read: (state: ServiceState) => number): void =>
      metrics.gauges(name, help, ['service'], samples(read));
    gauge('erp_service_available', '1 when a process offers the service that this one calls.', ({ status }) =>
      status === 'present' ? 1 : 0,
    );
    gauge('erp_service_processes', 'Processes that offer the service.', ({ processes }) => processes);
    gauge(
      'erp_service_away_seconds',
      'Time since the last process offered the service; 0 while one does.',
      ({ awaySeconds = 0 }) => awaySeconds,
    );
  }

  #note(): ReadonlyMap<string, number> {
    if (this.#nodes) return this.#nodes;
    const nodes = new Map<string, number>();
    for (const { name } of this.#broker.registry.getServiceList({ onlyAvailable: true }))
      if (name !== undefined) nodes.set(name, (nodes.get(name) ?? 0) + 1);
    for (const service of this.#services)
      if ((nodes.get(service) ?? 0) > 0) this.#awaySince.delete(service);
      else if (!this.#awaySince.has(service)) this.#awaySince.set(service, this.#now());
    this.#nodes = nodes;
    return nodes;
  }
}
