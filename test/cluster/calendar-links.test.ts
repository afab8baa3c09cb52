/** The link to a calendar is a secret: logs, traces and metrics of separate processes have the request, and not its path. */
import assert from 'node:assert/strict';
import { ALL_SERVICES } from '../../config/services.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { Browser } from '../api/auth/browser.ts';
import { demoPassword } from '../support/client.ts';
import type { TestDatabase } from '../support/database.ts';
import { type NatsServer, startNats } from '../support/nats.ts';
import { type Collector, startCollector } from '../support/otlp.ts';
import { createPlatformDatabase } from '../support/platform.ts';
import { type ServiceProcess, startProcess } from '../support/processes.ts';
import { until } from '../support/until.ts';

describe('a calendar link in a cluster', function () {
  this.timeout(180_000);
  let nats: NatsServer;
  let database: TestDatabase;
  let collector: Collector;
  let gateway: ServiceProcess;
  let others: ServiceProcess;
  let calendar: ServiceProcess;
  let health: string;
  before(async () => {
    const port = await freePort();
    health = `http://127.0.0.1:${port}`;
    [nats, database, collector] = await Promise.all([startNats(), createPlatformDatabase(), startCollector()]);
    const of = (services: ServiceProcess['services'], more: Record<string, string> = {}): Promise<ServiceProcess> => {
      const env = {
        LOG_LEVEL: 'debug',
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_BSP_SCHEDULE_DELAY: '100',
        ...more,
      };
      return startProcess({ services, databaseUrl: database.url, natsUrl: nats.url, env });
    };
    const apart = ['gateway', 'calendar'];
    [gateway, calendar, others] = await Promise.all([
      of(['gateway'], { HEALTH_PORT: String(port) }),
      of(['calendar']),
      of(ALL_SERVICES.filter((name) => !apart.includes(name))),
    ]);
    await until(async () => !((await (await fetch(`${health}/readyz`)).json()) as { degraded?: [] }).degraded);
  });
  after(async () => {
    await Promise.all([gateway, calendar, others].map((process) => process?.stop()));
    await collector?.stop();
    await nats?.stop();
    await database?.drop();
  });

  it('stands nowhere but with its user', async () => {
    const account = `${gateway.baseUrl}/account`;
    const browser = new Browser();
    const user = { username: 'sam@demo.example', password: demoPassword() };
    const page = await browser.submit(await browser.visit(account), user);
    const csrf = /name="csrf" value="([^"]*)"/.exec(page.html)?.[1] ?? '';
    const made = await browser.open(account, new URLSearchParams({ csrf, decision: 'createCalendarLink' }));
    const [, token = ''] = /\/calendars\/([\w-]{43})\.ics"/.exec(made.html) ?? [];
    const unknown = token.split('').reverse().join('');
    const read = async (path: string, headers: Record<string, string> = {}): Promise<Response> => {
      const reply = await fetch(`${gateway.baseUrl}/calendars/${path}`, { headers });
      assert.ok(!(await reply.text()).includes(token));
      return reply;
    };
    const first = await read(`${token}.ics`);
    const again = await read(`${token}.ics`, { 'if-none-match': first.headers.get('etag') ?? '' });
    const others = [await read(`${unknown}.ics`), await read(`${token}.ics/x`)];
    await calendar.kill();
    const away = await read(`${token}.ics`);
    assert.deepEqual(
      [first, again, ...others, away].map(({ status }) => status),
      [200, 304, 404, 404, 503],
    );
    const statuses = (): string[] =>
      gateway
        .output()
        .split('\n')
        .filter((line) => line.includes('"operationId":"calendar.feed"'));
    await until(() => statuses().length === 5);
    await until(() => collector.spans.filter(({ name }) => name === 'GET calendar.feed').length === 5);
    const metrics = await (await fetch(`${health}/metrics`)).text();
    assert.ok(metrics.includes('operation="calendar.feed"'));
    const told = [gateway.output(), calendar.output(), collector.text(), metrics].join('\n');
    for (const secret of [token, unknown]) assert.ok(!told.includes(secret));
  });
});
