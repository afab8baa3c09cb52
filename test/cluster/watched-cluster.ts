/**
 * A cluster as an operator watches it: one process of each service on a real NATS with TLS and a real PostgreSQL, each with
 * a way of its own to the database that tests can cut. What probes, metrics and logs of each process say is read from outside.
 */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { ALL_SERVICES, type ServiceName } from '../../config/services.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { Link, type LinkState } from '../storm/link.ts';
import type { TestDatabase } from '../support/database.ts';
import { startSecureNats } from '../support/nats.ts';
import { createPlatformDatabase } from '../support/platform.ts';
import { type ServiceProcess, startProcess } from '../support/processes.ts';
import type { Scrape } from '../support/recorded-series.ts';
import { until } from './stage.ts';

interface ServiceSeen {
  readonly status: 'present' | 'away' | 'unknown';
  readonly processes: number;
  readonly awaySeconds?: number;
}

/** Response of `/readyz`. */
interface Ready {
  readonly code: number;
  readonly status: string;
  readonly checks: Readonly<Record<string, boolean>>;
  readonly degraded: readonly string[];
  readonly services: Readonly<Record<string, ServiceSeen>>;
}

/** A line of the log. */
export interface Line {
  readonly level: number;
  readonly msg: string;
  readonly reason?: string;
  readonly status?: number;
  readonly code?: string;
  readonly err?: { readonly message: string };
}

/** Additional environment of single services. */
type Environments = Readonly<Partial<Record<ServiceName, Record<string, string>>>>;

/** Metrics of a process are remembered for a second. */
const SCRAPE_FRESH_MS = 1_050;

/** The database is a copy of one that is as old as the run of the tests, and what was due then has waited since. */
async function makeDueNow(databaseUrl: string): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query("UPDATE pgboss.job SET start_after = now() WHERE state < 'active' AND start_after < now()");
  await client.end();
}

export class WatchedCluster {
  readonly nats: Awaited<ReturnType<typeof startSecureNats>>;
  readonly database: TestDatabase;
  readonly baseUrl: string;
  /** The way of each service to the database. */
  readonly ways: ReadonlyMap<ServiceName, Link>;
  readonly processes = new Map<ServiceName, ServiceProcess>();
  readonly #health: ReadonlyMap<ServiceName, number>;
  readonly #port: number;
  readonly #env: Environments;
  /** Output of ended processes. */
  readonly #ended = new Map<ServiceName, string>();
  readonly #copies = new Set<ServiceProcess>();

  private constructor(
    nats: WatchedCluster['nats'],
    database: TestDatabase,
    ports: readonly number[],
    ways: readonly Link[],
    env: Environments,
  ) {
    this.nats = nats;
    this.database = database;
    this.#env = env;
    this.#port = ports.at(-1)!;
    this.baseUrl = `http://127.0.0.1:${this.#port}`;
    this.#health = new Map(ALL_SERVICES.map((service, i) => [service, ports[i]!]));
    this.ways = new Map(ALL_SERVICES.map((service, i) => [service, ways[i]!]));
  }

  /** `env`: what single services are given besides. */
  static async start(env: Environments = {}): Promise<WatchedCluster> {
    const [nats, database, ...ports] = await Promise.all([
      startSecureNats(),
      createPlatformDatabase(),
      ...[...ALL_SERVICES, 'callers'].map(() => freePort()),
    ]);
    await makeDueNow(database.url);
    const ways = await Promise.all(ALL_SERVICES.map(() => Link.open(() => Number(new URL(database.url).port))));
    const cluster = new WatchedCluster(nats, database, ports, ways, env);
    try {
      await Promise.all(ALL_SERVICES.map((service) => cluster.begin(service)));
      await cluster.isWhole();
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  async stop(): Promise<void> {
    await Promise.all([...this.processes.values(), ...this.#copies].map((process) => process.stop()));
    for (const way of this.ways.values()) way.close();
    await this.nats.stop();
    await this.database.drop();
  }

  /** Starts the process of a service, at the same addresses as before. */
  async begin(service: ServiceName): Promise<void> {
    const started = await this.#launch(service, {
      HEALTH_PORT: String(this.#health.get(service)!),
      ...(service === 'gateway' ? { PORT: String(this.#port) } : {}),
    });
    this.processes.set(service, started);
  }

  /** One more process of a service. */
  async beginCopy(service: ServiceName, healthPort: number): Promise<ServiceProcess> {
    const copy = await this.#launch(service, { HEALTH_PORT: String(healthPort) });
    this.#copies.add(copy);
    return copy;
  }

  async killCopy(copy: ServiceProcess): Promise<void> {
    this.#copies.delete(copy);
    await copy.kill();
  }

  /** SIGTERM. */
  async endCopy(copy: ServiceProcess): Promise<void> {
    this.#copies.delete(copy);
    await copy.stop();
  }

  /** `kill -9`. */
  async kill(service: ServiceName): Promise<void> {
    const process = this.processes.get(service)!;
    await process.kill();
    this.processes.delete(service);
    this.#ended.set(service, (this.#ended.get(service) ?? '') + process.output());
  }

  /** Makes it whole again after a test that ended in the middle. */
  async mend(): Promise<void> {
    this.setWays('whole');
    await this.nats.stop();
    await this.nats.start();
    await Promise.all(ALL_SERVICES.filter((service) => !this.processes.has(service)).map((one) => this.begin(one)));
    await this.isWhole();
  }

  #launch(service: ServiceName, env: Record<string, string>): Promise<ServiceProcess> {
    return startProcess({
      services: [service],
      databaseUrl: this.#databaseUrl(service),
      natsUrl: this.nats.url,
      patience: 120_000,
      env: {
        ...this.nats.environment(service),
        BASE_URL: this.baseUrl,
        LOG_LEVEL: 'info',
        SEED_DEMO: 'false',
        ...this.#env[service],
        ...env,
      },
    });
  }

  #databaseUrl(service: ServiceName): string {
    const url = new URL(this.database.url);
    url.hostname = '127.0.0.1';
    url.port = String(this.ways.get(service)!.port);
    return url.toString();
  }

  /** Traffic allowed between these services and the database. */
  setWays(state: LinkState, services: readonly ServiceName[] = ALL_SERVICES): void {
    for (const service of services) this.ways.get(service)!.set(state);
  }

  probe(service: ServiceName, path: string): Promise<Response> {
    return fetch(`http://127.0.0.1:${this.#health.get(service)}${path}`);
  }

  async ready(service: ServiceName = 'gateway'): Promise<Ready> {
    const response = await this.probe(service, '/readyz');
    const { degraded = [], services = {}, ...rest } = (await response.json()) as Omit<Ready, 'code'>;
    return { code: response.status, degraded, services, ...rest };
  }

  /** Milliseconds until `/readyz` of a process says so. */
  async untilReady(
    what: string,
    says: (ready: Ready) => boolean,
    { service = 'gateway', within = 5_000 }: { service?: ServiceName; within?: number } = {},
  ): Promise<number> {
    const began = performance.now();
    await until(`/readyz of ${service}: ${what}`, async () => says(await this.ready(service)), within);
    return Math.round(performance.now() - began);
  }

  /** Every process is ready, does all of its work and sees all others; that the disk was full is said for half a minute. */
  async isWhole(within = 30_000): Promise<number> {
    const began = performance.now();
    const left = (): number => within - (performance.now() - began);
    for (const service of this.processes.keys())
      await this.untilReady(
        'all is well',
        ({ code, degraded, services }) =>
          code === 200 &&
          degraded.every((one) => one === 'databaseFull') &&
          Object.values(services).every(({ status }) => status === 'present'),
        { service, within: left() },
      );
    return Math.round(performance.now() - began);
  }

  /** The metrics of each process that runs, newer than the last ones. */
  async scrape(): Promise<Scrape> {
    await new Promise((resolve) => setTimeout(resolve, SCRAPE_FRESH_MS));
    const texts = await Promise.all(
      [...this.processes.keys()].map(
        async (service): Promise<[string, string]> => [service, await (await this.probe(service, '/metrics')).text()],
      ),
    );
    return { at: performance.now(), texts: new Map(texts) };
  }

  /** The value of a sample, as `name{labels}`; null: there is none. */
  async metric(service: ServiceName, sample: string): Promise<number | null> {
    const text = await (await this.probe(service, '/metrics')).text();
    const found = text.split('\n').find((line) => line.startsWith(`${sample} `));
    return found === undefined ? null : Number(found.slice(sample.length));
  }

  /** Fails unless the sample has the value in time, by default three seconds: metrics are remembered for one. */
  async shows(
    service: ServiceName,
    sample: string,
    holds: (value: number | null) => boolean,
    within = 3_000,
  ): Promise<void> {
    let value: number | null = null;
    await until(
      `${sample} of ${service}`,
      async () => {
        value = await this.metric(service, sample);
        return holds(value);
      },
      within,
    ).catch((error: Error) => assert.fail(`${error.message}: ${value}`));
  }

  /** Log of a service's processes so far. */
  lines(service: ServiceName): Line[] {
    const printed = (this.#ended.get(service) ?? '') + (this.processes.get(service)?.output() ?? '');
    return this.linesOf(printed);
  }

  linesOf(printed: string): Line[] {
    return printed
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line));
  }
}
