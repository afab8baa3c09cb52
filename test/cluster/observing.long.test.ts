/**
 * Operators' view of a cluster of real processes: the present state of each service, in answers and in metrics, and
 * the way of a request through the logs of all of them.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { ALL_SERVICES, type ServiceName } from '../../config/services.ts';
import { tenantSchema } from '../../lib/context.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { type Api, api, tokenFor } from '../support/client.ts';
import type { TestDatabase } from '../support/database.ts';
import { exampleNamed } from '../support/examples.ts';
import { assistantTokens } from '../support/mcp.ts';
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

describe('operator view of a cluster', function () {
  this.timeout(120_000);
  const ALONE: readonly ServiceName[] = ['gateway', 'auth', 'data', 'metadata', 'analytics'];
  const PROCESSES: readonly (readonly ServiceName[])[] = [
    ...ALONE.map((service) => [service]),
    // The process is named by its first service.
    ['agent', ...ALL_SERVICES.filter((service) => service !== 'agent' && !ALONE.includes(service))],
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

  interface Line {
    level: number;
    msg: string;
    requestId?: string;
    traceparent?: string;
    status?: number;
    code?: string;
    reason?: string;
  }
  const linesOf = (name: string): Line[] =>
    processes
      .get(name)!
      .output()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line));

  /** While a schema or table of the database is gone, statements about it fail as a bug would make them. */
  const without = async <T>(what: { schema: string; table?: string }, work: () => Promise<T>): Promise<T> => {
    const { schema, table } = what;
    const rename = (from: string, to: string): string =>
      table === undefined ? `ALTER SCHEMA ${from} RENAME TO ${to}` : `ALTER TABLE ${schema}.${from} RENAME TO ${to}`;
    const name = table ?? schema;
    const superuser = new Client(database.url);
    await superuser.connect();
    try {
      await superuser.query(rename(name, 'hidden'));
      return await work();
    } finally {
      await superuser.query(rename('hidden', name));
      await superuser.end();
    }
  };

  describe('logs', () => {
    let sam: Api;
    let ada: Api;
    let records: string;
    before(async () => {
      const as = async (user: string): Promise<Api> => api(baseUrl, await tokenFor(baseUrl, user));
      [sam, ada] = await Promise.all([as('sam'), as('ada')]);
      records = tenantSchema((await sam.get('/identity')).body.tenant.id);
    });
    const newTrace = (): string => `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01`;

    it('contain `ready` as a line of JSON, and as one plain line for scripts', () => {
      for (const process of processes.values()) {
        const lines = process.output().split('\n');
        const [plain, ...more] = lines.filter((line) => line.startsWith('ready '));
        assert.deepEqual(more, []);
        assert.equal(linesOf(process.services[0]!).filter(({ msg, level }) => msg === plain && level === 30).length, 1);
        assert.deepEqual(
          lines.filter((line) => line !== '' && line !== plain && !line.startsWith('{')),
          [],
        );
      }
    });

    const deployment = { files: {}, package: { version: 1, types: [] }, checkOnly: true };
    const refresh = { grant_type: 'refresh_token', client_id: 'erp-cli', refresh_token: 'A'.repeat(43) };
    const requests: Record<string, (headers: Record<string, string>) => Promise<{ status: number; headers: Headers }>> =
      {
        auth: (headers) =>
          fetch(`${baseUrl}/oauth2/token`, { method: 'POST', body: new URLSearchParams(refresh), headers }),
        data: (headers) => sam.get('/data/Account?take=1', { headers }),
        metadata: (headers) => ada.post('/metadata/deploy', deployment, { headers }),
        analytics: (headers) => sam.get('/analytics/dashboards', { headers }),
        agent: (headers) => sam.get('/agent/runs', { headers }),
      };

    for (const [service, ask] of Object.entries(requests))
      it(`have request and trace in the failure lines of ${service} and the gateway`, async () => {
        const traceparent = newTrace();
        const hidden = service === 'data' ? { schema: records, table: '"Account"' } : { schema: service };
        const answer = await without(hidden, () => ask({ traceparent }));
        assert.equal(answer.status, 500);
        const requestId = answer.headers.get('x-request-id')!;
        const isRequest = ({ msg, status }: Line): boolean => msg === 'request' && status === 500;
        const errorsOf = (name: string): Line[] =>
          linesOf(name).filter((line) => line.requestId === requestId && line.level === 50);
        await until('the request has its line', async () => errorsOf('gateway').some(isRequest), 5_000);
        for (const name of [service, 'gateway']) {
          const lines = errorsOf(name);
          assert.ok(lines.length > 0, name);
          for (const line of lines) assert.equal(line.traceparent, traceparent, JSON.stringify(line));
        }
      });

    it('keep both across nested calls: mcp, data, and services called by data', async () => {
      const token = (await assistantTokens(baseUrl, 'ada')).access_token;
      const traceparent = newTrace();
      const answer = await without({ schema: 'metadata' }, () =>
        fetch(`${baseUrl}/mcp`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${token}`,
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
            traceparent,
          },
          body: JSON.stringify({
            jsonrpc: '2.0',
            id: 1,
            method: 'tools/call',
            params: {
              name: 'metadata_retrieve',
              arguments: {
                package: { version: 1, types: [{ name: 'CustomField', members: ['Invoice__c.Amount__c'] }] },
              },
            },
          }),
        }),
      );
      const requestId = answer.headers.get('x-request-id')!;
      const failure = (): Line | undefined =>
        linesOf('metadata').find((line) => line.requestId === requestId && line.level === 50);
      await until('metadata has a line', async () => failure() !== undefined, 5_000);
      assert.equal(
        failure()!.traceparent,
        traceparent,
        'from the gateway to mcp, back to the gateway, and to metadata',
      );
    });

    it('have a 503 at level warn, with its request, and few lines with the cause', async () => {
      await end('analytics');
      await until('it is missed', async () => (await ready()).services['analytics']?.status === 'away', 5_000);
      const before = linesOf('gateway').length;
      const answers = await Promise.all(Array.from({ length: 30 }, () => sam.get('/analytics/dashboards')));
      assert.deepEqual([...new Set(answers.map(({ status }) => status))], [503]);
      await begin(['analytics']);
      await until('it is back', async () => !(await ready()).degraded, 10_000);
      const lines = linesOf('gateway').slice(before);
      const failed = lines.filter(({ msg, status }) => msg === 'request' && status === 503);
      assert.deepEqual(
        failed.map(({ requestId }) => requestId).sort(),
        answers.map(({ headers }) => headers.get('x-request-id')).sort(),
      );
      for (const { level, code } of failed) assert.deepEqual([level, code], [40, 'SERVICE_UNAVAILABLE']);
      const why = lines.filter(({ reason }) => reason !== undefined);
      assert.ok(why.length >= 1 && why.length <= 4, JSON.stringify(why));
      assert.match(why[0]!.reason!, /^Service 'analytics\.dashboards\.list' is not available/);
      assert.deepEqual(
        lines.filter(({ msg }) => msg.startsWith('Service ')),
        [],
      );
    });
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
      assert.deepEqual(Object.keys((await ready('auth')).services), ['data', 'metadata', 'notifications']);
      assert.deepEqual(Object.keys((await ready('analytics')).services), ['data', 'metadata']);
      assert.deepEqual(Object.keys((await ready('agent')).services), [
        'gateway',
        'auth',
        'data',
        'metadata',
        'analytics',
      ]);
    });

    it('names the unavailable service, the duration, and the affected work; the gateway stays ready', async () => {
      await end('analytics');
      await until('it is missed', async () => (await ready()).services['analytics']?.status === 'away', 5_000);
      const before = (await ready()).services['analytics']!.awaySeconds!;
      await until('time passes', async () => (await ready()).services['analytics']!.awaySeconds! >= before + 1, 5_000);
      const { code, checks, degraded, services } = await ready();
      assert.equal(code, 200);
      assert.equal('analytics' in checks, false);
      assert.deepEqual(degraded, ['analyticsUnavailable']);
      assert.equal(services['analytics']!.processes, 0);
      // In the words of the page.
      const example: Ready = JSON.parse(exampleNamed('docs/reference/operations-cluster.md#services-that-are-away'));
      assert.deepEqual(
        { ...(await ready()), code: undefined, services: undefined },
        { ...example, code: undefined, services: undefined },
      );
      for (const [service, state] of Object.entries(example.services)) {
        assert.equal(services[service]!.status, state.status);
        assert.deepEqual(Object.keys(services[service]!), Object.keys(state));
      }
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

    it('without NATS reports the other services as unknown, not as missing', async () => {
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
