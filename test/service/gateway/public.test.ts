import assert from 'node:assert/strict';
import { gunzipSync } from 'node:zlib';
import { OPERATIONS } from '../../../contracts/operations.ts';
import { CATALOGUE } from '../../../lib/errors/catalogue.ts';
import { SCOPES } from '../../../lib/operation.ts';
import { freePort } from '../../../mixins/database/embedded.ts';
import { openapi } from '../../../services/gateway/public/openapi.ts';
import { type Stage, startStage } from './stage.ts';

// biome-ignore lint/suspicious/noExplicitAny: a generated document is read freely
type Loose = any;

describe('The public documents', () => {
  let stage: Stage;
  before(async () => {
    stage = await startStage();
  });
  after(() => stage.stop());

  const get = (path: string, headers: Record<string, string> = {}) => stage.send('GET', path, { token: null, headers });

  it('need no token, may be cached, and answer 304 to their ETag', async () => {
    for (const path of ['/openapi.json', '/scopes', '/capabilities']) {
      const answer = await get(path);
      assert.equal(answer.status, 200, path);
      assert.equal(answer.headers['cache-control'], 'public, max-age=300');
      const etag = String(answer.headers.etag);
      assert.match(etag, /^"[\w-]{22}"$/);
      assert.equal((await get(path, { 'if-none-match': etag })).status, 304);
      assert.equal((await get(path, { 'if-none-match': `"x", W/${etag}` })).status, 304);
      assert.equal((await get(path, { 'if-none-match': '"x"' })).status, 200);
      assert.equal((await get(`${path}?x=1`)).status, 400);
    }
  });

  it('are compressed once, and charged by length beyond a megabyte', async () => {
    const answer = await get('/openapi.json', { 'accept-encoding': 'gzip' });
    assert.equal(answer.headers['content-encoding'], 'gzip');
    assert.equal(gunzipSync(answer.body).toString(), (await get('/openapi.json')).text);

    /**
     * Units that the address pays for an answer of so many MiB, and how many of its 300 a minute can have come back: also
     * those of the second before, which the gateway did not know yet.
     */
    const priceOf = async (count: number): Promise<[paid: number, earned: number]> => {
      const start = performance.now();
      const left = async () => Number((await get('/open')).headers['x-ratelimit-remaining']);
      const mebibytes = (many: number) => () => ({ body: Buffer.alloc(many * 1024 * 1024, 'x') });
      stage.answer = mebibytes(1);
      const before = await left();
      stage.answer = mebibytes(count);
      await left();
      stage.answer = mebibytes(1);
      const paid = before - (await left()) - 2;
      return [paid, Math.ceil((performance.now() - start + 1_000) / 200)];
    };
    for (const [count, price] of [
      [1, 0],
      [11, 30],
    ] as const) {
      const [paid, earned] = await priceOf(count);
      assert.ok(paid <= price + 1 && paid >= price - earned, `${paid} of ${price} units, ${earned} earned at most`);
    }
  });

  it('a preference beyond 1 KiB is ignored', async () => {
    const long = (wanted: string, piece: string) => `${piece.repeat(200)}${wanted}`;
    const refused = (accept: string) => get('/nothing', { accept });
    assert.equal((await refused('application/problem+json')).headers['content-type'], 'application/problem+json');
    const plain = await refused(long('application/problem+json', 'a/b;q=0.1,'));
    assert.equal(plain.headers['content-type'], 'application/json');
    assert.match(String((await get('//nothing', { accept: 'text/html' })).headers['content-type']), /html/);
    assert.match(
      String((await get('//nothing', { accept: long('text/html', 'a/b;q=0.1,') })).headers['content-type']),
      /json/,
    );
    const packed = await get('/openapi.json', { 'accept-encoding': long('gzip', 'a;q=0.1,') });
    assert.equal(packed.headers['content-encoding'], undefined);
  });

  it('/scopes lists every scope with its description', async () => {
    const { json } = await get('/scopes');
    assert.deepEqual(
      json,
      Object.entries(SCOPES).map(([scope, description]) => ({ scope, description })),
    );
  });

  it('/capabilities lists every operation, and the limits', async () => {
    const { json } = await get('/capabilities');
    assert.equal(json.apiVersion, '1.0.0');
    assert.equal(json.limits.takeMax, 200);
    assert.equal(json.limits.idempotency.retentionHours, 24);
    assert.equal(json.mcp.writeLimits.mutationsAllowed, false);
    assert.ok(json.auth.authorizationServerMetadata.endsWith('/.well-known/oauth-authorization-server'));
    for (const operation of json.operations) {
      assert.ok(['low', 'medium', 'high'].includes(operation.risk));
      assert.equal(operation.idempotencyKey, operation.mutation ? 'required' : 'none');
    }
  });

  describe('the API description', () => {
    const document = openapi(OPERATIONS, 'https://erp.example') as Loose;
    const described = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item as Loose).map(([method, operation]) => ({ path, method, operation: operation as Loose })),
    );

    /** The part itself, or the component that it refers to. */
    const named = (part: Loose): Loose =>
      part.$ref
        ? part.$ref
            .slice(2)
            .split('/')
            .reduce((at: Loose, key: string) => at[key], document)
        : part;

    it('describes exactly the operations of the router', () => {
      assert.deepEqual(
        described
          .map(({ path, method, operation }) => `${operation.operationId} ${method.toUpperCase()} ${path}`)
          .sort(),
        OPERATIONS.map(({ operationId, method, path }) => `${operationId} ${method} ${path}`).sort(),
      );
    });

    it('documents 304 only for operations that accept If-None-Match', () => {
      const of = (has: (operation: Loose) => boolean) =>
        described.filter(({ operation }) => has(operation)).map(({ operation }) => operation.operationId);
      const takes = (name: string) => (operation: Loose) =>
        operation.parameters.map(named).some((one: Loose) => one.in === 'header' && one.name === name);
      const answering = of((operation) => operation.responses['304']);
      assert.deepEqual(answering, [
        'schema.openapi.get',
        'schema.scopes.list',
        'schema.capabilities.get',
        'schema.objects.describe',
        'schema.objects.getSchema',
        'data.records.get',
        'analytics.dashboards.get',
        'files.content.get',
        'bulk.results.list',
      ]);
      assert.deepEqual(of(takes('If-None-Match')).sort(), [...answering, 'data.records.upsert'].sort());
    });

    it('states version, server, both OAuth addresses and all scopes', () => {
      assert.equal(document.openapi, '3.1.0');
      assert.equal(document.info.version, '1.0.0');
      assert.equal(document.servers[0].url, 'https://erp.example/api/v1');
      const { authorizationCode: flow, clientCredentials } = document.components.securitySchemes.oauth2.flows;
      assert.equal(clientCredentials.tokenUrl, 'https://erp.example/oauth2/token');
      assert.equal(flow.authorizationUrl, 'https://erp.example/oauth2/authorize');
      assert.equal(flow.tokenUrl, 'https://erp.example/oauth2/token');
      assert.deepEqual(Object.keys(flow.scopes), Object.keys(SCOPES));
    });

    it('has the generic DataRecord and the Error of every status, with examples', () => {
      assert.equal(document.components.schemas.DataRecord.additionalProperties, true);
      for (const { operation } of described) {
        for (const [status, response] of Object.entries(operation.responses as Loose) as [string, Loose][]) {
          if (Number(status) < 400) continue;
          const media = named(response).content['application/json'];
          assert.equal(media.schema.$ref, '#/components/schemas/Error');
          for (const [, code] of response.description.matchAll(/`([A-Z_]+)`/g)) {
            assert.equal(CATALOGUE[code as keyof typeof CATALOGUE].status, Number(status));
            assert.equal(named(media.examples[code]).value.code, code);
          }
        }
        for (const name of ['risk', 'cost', 'mutation', 'mcp-available', 'scopes', 'stability', 'agent-approval'])
          assert.ok(`x-erp-${name}` in operation, `${operation.operationId} x-erp-${name}`);
        for (const { headers } of Object.values(operation.responses).map(named))
          assert.ok(headers['X-Request-Id'] && headers['X-RateLimit-Remaining']);
      }
    });

    it('documents Retry-After', () => {
      const { responses } = document.paths['/data/{objectApiName}/{id}'].patch;
      const waiting = Object.keys(responses).filter((status) => 'Retry-After' in named(responses[status]).headers);
      assert.deepEqual(waiting, ['409', '429', '503']);
      const { WRITE_CONTENTION, INTERNAL_ERROR } = document.components.examples;
      assert.equal(WRITE_CONTENTION.value.retryAfterSeconds, 1);
      assert.equal('retryAfterSeconds' in INTERNAL_ERROR.value, false);
    });

    it('requires Idempotency-Key on every mutation and If-Match where the row says so', () => {
      for (const operation of OPERATIONS) {
        const item = document.paths[operation.path][operation.method.toLowerCase()];
        const parameters: Loose[] = item.parameters.map(named);
        const required = parameters.filter((one) => one.in === 'header' && one.required).map((one) => one.name);
        assert.equal(required.includes('Idempotency-Key'), operation.mutation, operation.operationId);
        assert.equal(required.includes('If-Match'), operation.precondition === 'ifMatch', operation.operationId);
      }
    });
  });

  describe('outside the API', () => {
    it('/readyz reports an unavailable auth, and stays ready', async () => {
      const other = await startStage();
      const ready = async () => JSON.parse((await other.send('GET', '//readyz', { token: null })).text);
      const missing = async (): Promise<string[]> => (await ready()).degraded;
      assert.equal((await missing()).includes('authUnavailable'), false);
      await other.broker.destroyService('auth');
      assert.ok((await missing()).includes('authUnavailable'));
      const { status, services } = await ready();
      assert.deepEqual([status, services.auth.status, services.ratelimit.processes], ['ready', 'away', 1]);
      await other.stop();
    });

    it('/healthz, /readyz and /metrics answer operators', async () => {
      assert.equal((await get('//healthz')).json.status, 'ok');
      const ready = await get('//readyz');
      assert.equal(ready.status, 200);
      assert.deepEqual(Object.values(ready.json.checks).every(Boolean), true);
      await stage.send('GET', '/stub/A');
      const metrics = await get('//metrics');
      assert.match(String(metrics.headers['content-type']), /^text\/plain; version=0\.0\.4/);
      assert.match(metrics.text, /erp_http_requests_total\{operation="stub\.records\.list",status="200"\} 1\n/);
      assert.match(
        metrics.text,
        /erp_http_request_duration_seconds_bucket\{operation="stub\.records\.list",status="200",le="\+Inf"\} 1\n/,
      );
      for (const name of [
        'requests_in_flight',
        'bus_connected',
        'nodejs_heap_size_used_bytes',
        'erp_build_info',
        'rate_limit_refusals_total',
      ])
        assert.ok(metrics.text.includes(name), name);
      for (const line of metrics.text.trim().split('\n'))
        assert.match(line, /^(# (HELP|TYPE) \w+ .+|\w+(\{[^}]*\})? -?[\d.e+-]+)$/);
    });

    it('/ points to the documents, for people and for machines', async () => {
      assert.ok((await get('//')).json.links.openapi.endsWith('/api/v1/openapi.json'));
      const page = await get('//', { accept: 'text/html' });
      assert.match(String(page.headers['content-type']), /text\/html/);
      assert.match(page.text, /<h1>ERP platform<\/h1>/);
    });

    it('other paths are 404: a page for browsers, the Error body for others', async () => {
      const browser = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };
      const page = await get('//nope', browser);
      assert.equal(page.status, 404);
      assert.match(String(page.headers['content-type']), /^text\/html/);
      assert.match(String(page.headers['content-security-policy']), /^default-src 'none'/);
      assert.match(page.text, /<h1>[^<]+<\/h1>\n<p>There is no page at this path/);
      assert.ok(page.text.includes(String(page.headers['x-request-id'])));
      const plain = await get('//nope');
      const own = new Set(['content-security-policy', 'referrer-policy', 'x-frame-options']);
      assert.deepEqual(
        Object.keys(page.headers).filter((name) => !own.has(name)),
        Object.keys(plain.headers),
      );
      for (const accept of ['*/*', 'application/json, text/html;q=0.5', 'application/problem+json'])
        assert.equal((await get('//nope', { accept })).json.code, 'ROUTE_NOT_FOUND', accept);
      assert.equal((await get('/nope', browser)).json.code, 'ROUTE_NOT_FOUND', 'the API answers JSON');
    });

    it('other paths are 404', async () => {
      assert.equal((await get('//nope')).json.code, 'ROUTE_NOT_FOUND');
      assert.equal((await get('//api/v2/scopes')).json.code, 'ROUTE_NOT_FOUND');
    });
  });
});

describe('Behind https', () => {
  it('every response over https has Strict-Transport-Security, and none over http', async () => {
    for (const env of [{ BASE_URL: 'https://erp.example' }, {}]) {
      const PORT = String(await freePort());
      const stage = await startStage({ PORT, ...env });
      try {
        stage.authAnswer = () => ({ status: 200, headers: { 'content-type': 'text/html' }, body: Buffer.from('page') });
        for (const path of ['/api/v1/identity', '/api/v1/scopes', '/api/v1/x', '/', '/healthz', '/oauth2/authorize']) {
          const { headers } = await fetch(`http://127.0.0.1:${PORT}${path}`);
          assert.equal(headers.get('strict-transport-security'), env.BASE_URL ? 'max-age=31536000' : null, path);
        }
      } finally {
        await stage.stop();
      }
    }
  });
});
