/** What operators see of a cluster of real processes: the present state of each service, in answers and in metrics. */
import assert from 'node:assert/strict';
import type { ServiceName } from '../../config/services.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import type { TestDatabase } from '../support/database.ts';
import { type NatsServer, startNats } from '../support/nats.ts';
import { createPlatformDatabase } from '../support/platform.ts';
import { type ServiceProcess, startProcess } from '../support/processes.ts';
import { until } from './stage.ts';

interface State {
  status: 'present' | 'away' | 'unknown';
  processes: number;
  awaySeconds?: number;
}

interface Ready {
  code: number;
  status: string;
  checks: Record<string, boolean>;
  degraded?: string[];
  services: Record<string, State>;
}

describe('what operators see of a cluster', function () {
  this.timeout(120_000);
  const PROCESSES: readonly (readonly ServiceName[])[] = [
    ['gateway'],
    ['auth'],
    ['data'],
    ['metadata'],
    ['analytics'],
    ['agent', 'mcp', 'ratelimit'],
  ];
  let nats: NatsServer;
  let database: TestDatabase;
  let baseUrl: string;
  const processes = new Map<string, ServiceProcess>();
  const health = new Map<string, string>();

  const begin = async (services: readonly ServiceName[]): Promise<void> => {
    const [name, port] = [services[0]!, await freePort()];
    health.set(name, `http://127.0.0.1:${port}`);
    const env = { HEALTH_PORT: String(port), LOG_LEVEL: 'info', SEED_DEMO: 'false' };
    const started = await startProcess({ services, databaseUrl: database.url, natsUrl: nats.url, env });
    processes.set(name, started);
  };
  const end = async (name: string): Promise<void> => {
    assert.equal(await processes.get(name)!.stop(), 0);
    processes.delete(name);
  };
  const ready = async (name = 'gateway'): Promise<Ready> => {
    const response = await fetch(`${health.get(name)}/readyz`);
    return { code: response.status, ...((await response.json()) as Omit<Ready, 'code'>) };
  };
  const metric = async (line: string): Promise<number | null> => {
    const text = await (await fetch(`${health.get('gateway')}/metrics`)).text();
    const found = text.split('\n').find((one) => one.startsWith(`${line} `));
    return found === undefined ? null : Number(found.slice(line.length));
  };

  before(async () => {
    [nats, database] = await Promise.all([startNats(), createPlatformDatabase()]);
    await Promise.all(PROCESSES.map(begin));
    baseUrl = processes.get('gateway')!.baseUrl;
    await until('all are seen', async () => !(await ready()).degraded, 10_000);
  });
  after(async () => {
    await Promise.all([...processes.values()].map((process) => process.stop()));
    await nats?.stop();
    await database?.drop();
  });

  describe('/readyz', () => {
    it('of a gateway names every service, and how many processes it has', async () => {
      const { code, status, checks, services } = await ready();
      assert.deepEqual([code, status], [200, 'ready']);
      assert.deepEqual(checks, {
        started: true,
        database: true,
        bus: true,
        clock: true,
        auth: true,
        data: true,
        metadata: true,
      });
      const expected = PROCESSES.flat().map((service) => [service, { status: 'present', processes: 1 }]);
      assert.deepEqual(services, Object.fromEntries(expected));
      assert.deepEqual(await (await fetch(`${baseUrl}/readyz`)).json(), { status, checks, services });
    });

    it('of another process names the services that it calls', async () => {
      assert.deepEqual(Object.keys((await ready('auth')).services), ['data', 'metadata']);
      assert.deepEqual(Object.keys((await ready('analytics')).services), ['data', 'metadata']);
      assert.deepEqual(Object.keys((await ready('agent')).services), [
        'gateway',
        'auth',
        'data',
        'metadata',
        'analytics',
      ]);
    });

    it('says which service is away, for how long, and what is not done meanwhile; the gateway stays ready', async () => {
      await end('analytics');
      await until('it is missed', async () => (await ready()).services['analytics']?.status === 'away', 5_000);
      const before = (await ready()).services['analytics']!.awaySeconds!;
      await until('time passes', async () => (await ready()).services['analytics']!.awaySeconds! >= before + 1, 5_000);
      const { code, checks, degraded, services } = await ready();
      assert.equal(code, 200);
      assert.equal('analytics' in checks, false);
      assert.deepEqual(degraded, ['analyticsUnavailable']);
      assert.equal(services['analytics']!.processes, 0);
      assert.equal(services['data']!.status, 'present');
      assert.equal((await ready('agent')).services['analytics']!.status, 'away');
      await until('metrics', async () => (await metric('erp_service_available{service="analytics"}')) === 0, 5_000);
      assert.ok((await metric('erp_service_away_seconds{service="analytics"}'))! >= before);
      assert.equal(await metric('erp_service_available{service="data"}'), 1);
      await begin(['analytics']);
      await until('it is back', async () => (await ready()).services['analytics']!.status === 'present', 5_000);
      assert.equal((await ready()).degraded, undefined);
      await until('metrics', async () => (await metric('erp_service_processes{service="analytics"}')) === 1, 5_000);
    });

    it('without NATS does not know of the others, and blames none of them', async () => {
      await nats.stop();
      try {
        await until('the gateway is not ready', async () => (await ready()).code === 503, 5_000);
        const { checks, degraded, services } = await ready();
        assert.equal(checks['bus'], false);
        assert.equal(degraded, undefined);
        assert.deepEqual(services['auth'], { status: 'unknown', processes: 0 });
        assert.equal(services['gateway']!.status, 'present');
        await until('metrics', async () => (await metric('erp_service_available{service="auth"}')) === null, 5_000);
      } finally {
        await nats.start();
      }
      await until('all are back', async () => (await ready()).services['auth']!.status === 'present', 10_000);
      await until('nothing is missing', async () => !(await ready()).degraded, 10_000);
    });
  });
});
