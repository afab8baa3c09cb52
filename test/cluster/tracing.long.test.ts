/** Traces of a cluster of real processes over NATS, as a collector gets them. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { ALL_SERVICES, type ServiceName } from '../../config/services.ts';
import { tenantSchema } from '../../lib/context.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { type Api, api, demoPassword, tokenFor } from '../support/client.ts';
import type { TestDatabase } from '../support/database.ts';
import { type NatsServer, startNats } from '../support/nats.ts';
import { type Collector, type RecordedSpan, startCollector } from '../support/otlp.ts';
import { createPlatformDatabase } from '../support/platform.ts';
import { type ServiceProcess, startProcess } from '../support/processes.ts';
import { until } from './stage.ts';

describe('traces of a cluster', function () {
  this.timeout(120_000);
  const ALONE: readonly ServiceName[] = ['gateway', 'auth', 'data'];
  const PROCESSES: readonly (readonly ServiceName[])[] = [
    ...ALONE.map((service) => [service]),
    ALL_SERVICES.filter((service) => !ALONE.includes(service)),
  ];
  let nats: NatsServer;
  let database: TestDatabase;
  let collector: Collector;
  let baseUrl: string;
  let health: string;
  let token: string;
  let sam: Api;
  const processes: ServiceProcess[] = [];

  before(async () => {
    const port = await freePort();
    health = `http://127.0.0.1:${port}`;
    [nats, database, collector] = await Promise.all([startNats(), createPlatformDatabase(), startCollector()]);
    const started = await Promise.all(
      PROCESSES.map((services) =>
        startProcess({
          services,
          databaseUrl: database.url,
          natsUrl: nats.url,
          env: {
            SEED_DEMO: 'false',
            LOG_LEVEL: 'info',
            OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
            OTEL_EXPORTER_OTLP_HEADERS: 'x-key=of%20the%20collector',
            OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
            OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=trial',
            OTEL_BSP_SCHEDULE_DELAY: '100',
            ...(services[0] === 'gateway' ? { HEALTH_PORT: String(port), OTEL_SERVICE_NAME: 'front' } : {}),
          },
        }),
      ),
    );
    processes.push(...started);
    baseUrl = processes[0]!.baseUrl;
    await until(
      'all are seen',
      async () => !((await (await fetch(`${health}/readyz`)).json()) as { degraded?: [] }).degraded,
      10_000,
    );
    token = await tokenFor(baseUrl, 'sam');
    sam = api(baseUrl, token);
    assert.equal((await sam.get('/data/Account?take=1')).status, 200);
  });
  after(async () => {
    await Promise.all(processes.map((process) => process.stop()));
    await collector?.stop();
    await nats?.stop();
    await database?.drop();
  });

  const newTraceId = (): string => randomBytes(16).toString('hex');
  /**
   * The spans of a trace, once the first of them is there and every process has sent its own: a call that is sent is worked on
   * somewhere, and every span of a receiver has a sender. Spans with `names` are waited for.
   */
  const traceOf = async (
    find: (span: RecordedSpan) => boolean,
    names: readonly string[] = [],
  ): Promise<RecordedSpan[]> => {
    const root = (): RecordedSpan | undefined => collector.spans.find((span) => span.kind === 2 && find(span));
    await until('the request is traced', async () => root() !== undefined, 5_000);
    const all = (): RecordedSpan[] => collector.spans.filter(({ traceId }) => traceId === root()!.traceId);
    const known = (spans: RecordedSpan[]): boolean => {
      const ids = new Set(spans.map(({ spanId }) => spanId));
      const parents = new Set(spans.map(({ parentId }) => parentId));
      const isSent = ({ kind, attributes }: RecordedSpan): boolean => kind === 3 && 'rpc.method' in attributes;
      return (
        names.every((name) => spans.some((span) => span.name.startsWith(name))) &&
        spans.every((span) => span === root() || ids.has(span.parentId)) &&
        spans.filter(isSent).every(({ spanId }) => parents.has(spanId))
      );
    };
    await until('every parent and every call is there', async () => known(all()), 5_000);
    return all();
  };
  const ofRequest =
    (requestId: string) =>
    ({ attributes }: RecordedSpan): boolean =>
      attributes['erp.request_id'] === requestId;

  it('have one trace of a write: gateway, bus, data, statements, each with its parent', async () => {
    const traceId = newTraceId();
    const parent = '00f067aa0ba902b7';
    const answer = await sam.post(
      '/data/Account',
      { name: 'Traced Ltd', phone: '+44 20 7946 0000' },
      { headers: { traceparent: `00-${traceId}-${parent}-00`, baggage: 'who=somebody', tracestate: 'x=y' } },
    );
    assert.equal(answer.status, 201, answer.text);
    const requestId = answer.headers.get('x-request-id')!;
    const spans = await traceOf(ofRequest(requestId));
    const named = (name: string, kind: number): RecordedSpan => {
      const found = spans.find((span) => span.name === name && span.kind === kind);
      assert.ok(found, `${name} (${kind}) of ${spans.map((span) => `${span.service}: ${span.name} (${span.kind})`)}`);
      return found;
    };
    const request = named('POST /api/v1/data/{objectApiName}', 2);
    assert.deepEqual([request.traceId, request.parentId, request.service], [traceId, parent, 'front']);
    assert.deepEqual(
      [request.attributes['http.response.status_code'], request.attributes['erp.operation_id']],
      [201, 'data.records.create'],
    );
    assert.equal(request.resource['deployment.environment.name'], 'trial');
    const sent = named('data.records.create', 3);
    assert.deepEqual([sent.parentId, sent.service], [request.spanId, 'front']);
    const taken = named('data.records.create', 2);
    assert.deepEqual([taken.parentId, taken.service], [sent.spanId, 'erp-data']);
    // Those of the relay, which the write wakes, are in the trace as well.
    const statements = spans.filter(
      ({ attributes, service }) => attributes['db.system.name'] === 'postgresql' && service === 'erp-data',
    );
    const names = statements.map(({ name }) => name);
    for (const { parentId } of statements) assert.equal(parentId, taken.spanId);
    assert.ok(names.length > 0);
    for (const name of names) assert.match(name, /^[A-Z]+( [\w.]+)?$/);
    for (const span of spans) assert.ok(span.start <= span.end && span.start >= request.start - 5, span.name);
    // Lines of the log leave the process in batches.
    const line = (): string | undefined =>
      processes[0]!
        .output()
        .split('\n')
        .find((one) => one.includes(requestId) && one.includes('"msg":"request"'));
    await until('the line of the request is in the log', async () => line() !== undefined, 5_000);
    assert.equal((JSON.parse(line()!) as { traceparent: string }).traceparent, `00-${traceId}-${request.spanId}-01`);
  });

  it('contain no value, body, token or address of a user', async () => {
    await sam.get('/data/Account?take=1&search=Needle');
    await fetch(`${baseUrl}/oauth2/authorize?client_id=Needle&login_hint=needle@demo.example`);
    await traceOf(({ attributes }) => attributes['erp.operation_id'] === 'data.records.list');
    const text = collector.text();
    for (const secret of [token, 'Traced Ltd', '7946', 'eedle', 'sam@demo.example', demoPassword(), 'somebody'])
      assert.equal(text.includes(secret), false, secret);
  });

  it('show by request id where a slow request spent its time, in the trace and in the logs of each service', async () => {
    const schema = tenantSchema((await sam.get('/identity')).body.tenant.id);
    const blocker = new Client(database.url);
    await blocker.connect();
    await blocker.query(`BEGIN; LOCK TABLE ${schema}."Account" IN ACCESS EXCLUSIVE MODE`);
    const asked = sam.get('/data/Account?take=1');
    const waiting = async (): Promise<boolean> =>
      (
        await blocker.query(
          'SELECT 1 FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())',
        )
      ).rows.length > 0;
    await until('it waits', waiting, 5_000);
    await blocker.query('SELECT pg_sleep(0.4)');
    await blocker.query('COMMIT');
    await blocker.end();
    const requestId = (await asked).headers.get('x-request-id')!;
    const spans = await traceOf(ofRequest(requestId));
    const lasted = ({ start, end }: RecordedSpan): number => end - start;
    const request = spans.find(ofRequest(requestId))!;
    assert.ok(lasted(request) > 390, `${lasted(request)} ms`);
    const statements = spans.filter(({ attributes }) => attributes['db.operation.name'] !== undefined);
    const [slowest] = statements.sort((a, b) => lasted(b) - lasted(a));
    assert.match(slowest!.name, /Account$/);
    assert.ok(lasted(slowest!) > 0.8 * lasted(request), `${lasted(slowest!)} of ${lasted(request)} ms`);
  });

  it('follow MCP requests back through the gateway, in one trace', async () => {
    const { assistantTokens, ONE_FIELD } = await import('../support/mcp.ts');
    const { access_token } = await assistantTokens(baseUrl, 'ada');
    const answer = await fetch(`${baseUrl}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${access_token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'metadata_retrieve', arguments: { package: ONE_FIELD } },
      }),
    });
    const names = ['mcp.http.handle', 'gateway.operations.run', 'metadata.components.retrieve'];
    await traceOf(ofRequest(answer.headers.get('x-request-id')!), names);
  });

  it('contain failures with their codes', async () => {
    const answer = await sam.get('/data/Account/00000000-0000-7000-8000-000000000000');
    assert.equal(answer.status, 404);
    const spans = await traceOf(ofRequest(answer.headers.get('x-request-id')!));
    const request = spans.find(ofRequest(answer.headers.get('x-request-id')!))!;
    assert.deepEqual([request.failed, request.attributes['erp.error_code']], [false, 'RECORD_NOT_FOUND']);
    assert.equal(
      spans.find(({ name, kind }) => name === 'data.records.get' && kind === 2)?.attributes['error.type'],
      'RECORD_NOT_FOUND',
    );
  });

  it('start with a deployment, which links to its accepting request', async () => {
    const ada = api(baseUrl, await tokenFor(baseUrl, 'ada'));
    const { headers, status } = await ada.post('/metadata/deploy', {
      files: {},
      package: { version: 1, types: [] },
      checkOnly: true,
    });
    assert.equal(status, 202);
    const requestId = headers.get('x-request-id')!;
    const found = (): RecordedSpan | undefined =>
      collector.spans.find((span) => span.name === 'metadata.deployments' && ofRequest(requestId)(span));
    await until('the deployment is traced', async () => found() !== undefined, 15_000);
    const commit = (): boolean =>
      collector.spans.some(({ name, parentId }) => name === 'COMMIT' && parentId === found()!.spanId);
    await until('its commit is traced', async () => commit(), 5_000);
    assert.ok(
      collector.spans.some(({ parentId }) => parentId === found()!.spanId),
      'its statements are parts of it',
    );
  });

  it('are sent as configured, without probes', async () => {
    assert.equal(collector.headers[0]!['x-key'], 'of the collector');
    assert.equal(collector.headers[0]!['content-type'], 'application/x-protobuf');
    assert.deepEqual(
      collector.spans.filter(({ name }) => name.includes('readyz')),
      [],
    );
    const metrics = async (): Promise<string> => (await fetch(`${health}/metrics`)).text();
    assert.match(await metrics(), /erp_trace_spans_total\{outcome="sent"\} [1-9]/);
  });

  it('are dropped while the collector is unavailable, with one log line, without delaying shutdown', async () => {
    const port = Number(new URL(collector.url).port);
    await collector.stop();
    const [gateway] = processes as [ServiceProcess];
    const lines = (): number => gateway.output().split('Traces cannot be sent').length - 1;
    const ask = (): Promise<unknown> => sam.get('/data/Account?take=1');
    await until('the log says so', () => ask().then(() => lines() > 0), 30_000);
    assert.equal(lines(), 1);
    assert.equal((await sam.get('/data/Account?take=1')).status, 200);
    const began = performance.now();
    assert.equal(await processes.at(-1)!.stop(), 0);
    assert.ok(performance.now() - began < 8_000);
    processes.pop();
    collector = await startCollector(port);
    await until('they are sent again', () => ask().then(() => collector.spans.length > 0), 30_000);
    assert.equal(await gateway.stop(), 0);
    processes.shift();
  });
});
