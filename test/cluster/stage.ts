/**
 * A whole cluster for tests: a PostgreSQL server of its own that may be killed, a real NATS with TLS and a user per
 * service, one process per service.
 * The address of the gateway stays the same when it is killed and started again, as behind a load balancer.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ALL_SERVICES, type ServiceName } from '../../config/services.ts';
import { type EmbeddedDatabase, freePort, startEmbeddedDatabase } from '../../mixins/database/embedded.ts';
import { type Answer, type Api, api, tokenFor } from '../support/client.ts';
import { type NatsServer, startSecureNats } from '../support/nats.ts';
import { type ServiceProcess, startProcess } from '../support/processes.ts';

export interface Stage {
  readonly baseUrl: string;
  readonly nats: NatsServer;
  readonly database: EmbeddedDatabase;
  readonly processes: Map<ServiceName, ServiceProcess>;
  /** The API as a user of the demo tenant. */
  as(user: string, scope?: string): Promise<Api>;
  /** Of the demo tenant. */
  tenantId(): Promise<string>;
  /** Starts a service that was killed or stopped. */
  restart(service: ServiceName): Promise<void>;
  /** One more process of a service beside the first; the caller ends it. */
  startCopy(service: ServiceName): Promise<ServiceProcess>;
  stop(): Promise<void>;
}

/** For a start that makes the demo tenants, which takes minutes beside other work. Only one that hangs waits so long. */
const START_PATIENCE_MS = 300_000;

export async function startStage(): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), 'erp-cluster-'));
  const [nats, database, port] = await Promise.all([
    startSecureNats(),
    // Durable, unlike that of other tests: it is killed on purpose.
    startEmbeddedDatabase(folder, { settings: ['shared_buffers=128MB'] }),
    freePort(),
  ]);
  const baseUrl = `http://127.0.0.1:${port}`;
  const processes = new Map<ServiceName, ServiceProcess>();
  const startCopy = (service: ServiceName): Promise<ServiceProcess> =>
    startProcess({
      services: [service],
      databaseUrl: database.url,
      natsUrl: nats.url,
      patience: START_PATIENCE_MS,
      env: {
        ...nats.environment(service),
        BASE_URL: baseUrl,
        ...(service === 'gateway' ? { PORT: String(port) } : { HEALTH_PORT: '0' }),
      },
    });
  const startService = async (service: ServiceName): Promise<void> => {
    processes.set(service, await startCopy(service));
  };
  const stop = async (): Promise<void> => {
    await Promise.all([...processes.values()].map((process) => process.stop()));
    await nats.stop();
    await database.stop();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await Promise.all(ALL_SERVICES.map(startService));
  } catch (error) {
    await stop();
    throw error;
  }
  const as = async (user: string, scope?: string): Promise<Api> => api(baseUrl, await tokenFor(baseUrl, user, scope));
  return {
    baseUrl,
    nats,
    database,
    processes,
    as,
    tenantId: async () => (await insist(async () => (await as('ada')).get('/identity'))).body.tenant.id,
    restart: startService,
    startCopy,
    stop,
  };
}

/** Retries like a careful client: the same request with the same key until a final answer. */
export async function insist<T>(work: () => Promise<Answer<T>>, patienceMs = 60_000): Promise<Answer<T>> {
  for (const end = Date.now() + patienceMs; ; await pause(200)) {
    const answer = await work().catch((error: Error) => error);
    const final = !(answer instanceof Error) && answer.status < 500;
    if (final && !(answer.body as { retryable?: boolean } | null)?.retryable) return answer;
    if (!(answer instanceof Error) && answer.status >= 500 && answer.status !== 503)
      throw new Error(`${answer.status} is no answer to a fault: ${answer.text}`);
    if (Date.now() > end)
      throw new Error(`No answer in ${patienceMs} ms; the last was ${answer instanceof Error ? answer : answer.text}`);
  }
}

/** Resolves when `condition` holds; fails after `milliseconds`. */
export async function until(what: string, condition: () => Promise<boolean>, milliseconds: number): Promise<void> {
  for (const end = Date.now() + milliseconds; !(await condition()); await pause(50))
    if (Date.now() > end) throw new Error(`Not within ${milliseconds} ms: ${what}`);
}
