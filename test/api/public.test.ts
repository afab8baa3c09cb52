/** The public operations of the specification: contracts only, never private data, the same for all callers. */
import assert from 'node:assert/strict';
import { type IncomingHttpHeaders, request } from 'node:http';
import { gunzipSync } from 'node:zlib';
import pg from 'pg';
import { OPERATIONS } from '../../contracts/operations.ts';
import { archives } from '../../mixins/documents/archives.ts';
import { PAGE_PATHS } from '../../services/gateway/doors/pages.ts';
import { api, tokenFor } from '../support/client.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { type Statements, watchStatements } from '../support/statements.ts';

/** Paths that report the current state. */
const STATE: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

/** One document of each kind, at both addresses. */
const DOCUMENTS = ['/versions/1.0.0/docs', '/api/v1/versions/1.0.0/docs'].flatMap((folder) =>
  [
    '/',
    '/ai-manifest.json',
    '/checksums.txt',
    '/errors/ETAG_MISMATCH',
    '/guides/first-request.md',
    '/metadata/CustomObject.schema.json',
    '/openapi.json',
    '/search.js',
    '/style.css',
  ].map((name) => folder + name),
);

/** Paths whose content is constant for a version. */
const CONTRACTS = [
  ...OPERATIONS.filter(({ scopes }) => scopes === 'public').map(({ path }) => `/api/v1${path}`),
  ...PAGE_PATHS.filter((path) => !STATE.has(path)),
  '/.well-known/oauth-authorization-server',
  '/.well-known/openid-configuration',
  '/.well-known/oauth-protected-resource/api/v1',
  '/.well-known/oauth-protected-resource/mcp',
  '/api-reference',
  '/llms.txt',
  ...DOCUMENTS,
];

/** Variants of a request: a method, headers and parameters. */
const WAYS: readonly [string, (token: string) => Record<string, string>, string][] = [
  ['GET', () => ({}), ''],
  ['GET', (token) => ({ authorization: `Bearer ${token}`, accept: 'text/html' }), ''],
  ['GET', () => ({ authorization: 'Bearer eyJhbGciOiJFUzI1NiJ9.e30.x', cookie: '_session=x' }), ''],
  ['GET', () => ({ origin: 'https://elsewhere.example', 'if-none-match': '"x"' }), ''],
  ['GET', () => ({ 'if-none-match': '*' }), ''],
  ['GET', () => ({}), '?take=1&where=%7B%22id%22%3A1%7D&tenant=demo'],
  ['HEAD', () => ({ 'x-tenant-id': 'demo', host: 'demo.example' }), ''],
  ['POST', () => ({}), ''],
  ['OPTIONS', () => ({ origin: 'https://elsewhere.example', 'access-control-request-method': 'GET' }), ''],
];

interface Asked {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

describe('public operations', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  before(async () => {
    platform = await startPlatform({ env: { SECURITY_CONTACT: 'mailto:security@erp.example' } });
  });
  after(() => platform?.stop());

  it('are the same set in router, API description and capabilities', async () => {
    const stranger = api(platform.baseUrl);
    const { body: description } = await stranger.get('/openapi.json');
    const { body: capabilities } = await stranger.get('/capabilities');
    const rows = OPERATIONS.map(({ operationId, method, path }) => `${operationId} ${method} ${path}`).sort();
    const described = Object.entries(
      description.paths as Record<string, Record<string, { operationId: string }>>,
    ).flatMap(([path, item]) =>
      Object.entries(item).map(([method, { operationId }]) => `${operationId} ${method.toUpperCase()} ${path}`),
    );
    assert.deepEqual(described.sort(), rows);
    assert.deepEqual(
      capabilities.operations
        .map(
          (one: { operationId: string; method: string; path: string }) =>
            `${one.operationId} ${one.method} ${one.path}`,
        )
        .sort(),
      rows,
    );
  });

  it('answer all callers identically, and name no object of a tenant', async () => {
    const stranger = api(platform.baseUrl);
    const ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    for (const path of ['/openapi.json', '/scopes', '/capabilities']) {
      const answer = await stranger.get(path);
      assert.equal((await ada.get(path)).text, answer.text);
      assert.ok(!/[A-Za-z]__c"/.test(Object.keys(answer.body.paths ?? {}).join('"')), path);
    }
  });

  it('name the authorization server', async () => {
    const { body } = await api(platform.baseUrl).get('/capabilities');
    const metadata = (await (await fetch(body.auth.authorizationServerMetadata)).json()) as {
      grant_types_supported: string[];
    };
    assert.deepEqual([...body.auth.grantTypes].sort(), metadata.grant_types_supported.toSorted());
    const description = await api(platform.baseUrl).get('/openapi.json');
    const scheme = description.body.components.securitySchemes.oauth2.description;
    for (const grantType of metadata.grant_types_supported) assert.ok(scheme.includes(`\`${grantType}\``), grantType);
  });

  it('include health, readiness and metrics for operators', async () => {
    assert.equal((await fetch(`${platform.baseUrl}/healthz`)).status, 200);
    const ready = await fetch(`${platform.baseUrl}/readyz`);
    assert.equal(ready.status, 200, await ready.text());
    assert.match(await (await fetch(`${platform.baseUrl}/metrics`)).text(), /erp_http_requests_total/);
  });

  describe('read no table', () => {
    let statements: Statements;
    before(() => {
      statements = watchStatements();
    });
    after(() => statements.end());

    it('for any request', async () => {
      // Readiness and metrics are for operators, and query the database's own state and its queues.
      const paths = [...CONTRACTS, '/healthz', ...(await everyDocument())];
      const token = await tokenFor(platform.baseUrl, 'ada');
      const unanswered: string[] = [];
      for (const path of paths)
        for (const [method, headers, query] of WAYS) {
          const response = await fetch(`${platform.baseUrl}${path}${query}`, {
            method,
            headers: headers(token),
            redirect: 'manual',
          });
          await response.arrayBuffer();
          if (response.status >= 500) unanswered.push(`${method} ${path}${query}: ${response.status}`);
        }
      assert.deepEqual(unanswered, []);
      const wanted = new Set(paths);
      const found = statements
        .all()
        .filter(({ path }) => wanted.has(path))
        .map(({ method, path, text }) => `${method} ${path}: ${text}`);
      assert.deepEqual([...new Set(found)], []);
    });

    it('and are answered while all tables are locked', async () => {
      const token = await tokenFor(platform.baseUrl, 'ada');
      const locks = new pg.Client({ connectionString: platform.database.url });
      await locks.connect();
      try {
        // The signing keys are read once in a while.
        await fetch(`${platform.baseUrl}/.well-known/oauth-authorization-server`);
        await lockEveryTable(locks);
        for (const path of [...CONTRACTS, '/healthz', '/readyz']) {
          const response = await fetch(platform.baseUrl + path, {
            headers: { origin: 'https://elsewhere.example' },
            redirect: 'manual',
            signal: AbortSignal.timeout(10_000),
          });
          assert.ok(response.status < 400, `${path}: ${response.status} ${await response.text()}`);
        }
        const records = fetch(`${platform.baseUrl}/api/v1/data/Account`, {
          headers: { authorization: `Bearer ${token}` },
          signal: AbortSignal.timeout(1_000),
        });
        await assert.rejects(records, { name: 'TimeoutError' }, 'an operation on records waits');
      } finally {
        await locks.end();
      }
    });

    it('unlike operations on records', async () => {
      const token = await tokenFor(platform.baseUrl, 'ada');
      await api(platform.baseUrl, token).get('/data/Account');
      assert.ok(statements.all().some(({ path }) => path === '/api/v1/data/Account'));
    });
  });

  describe('are cached for many callers', () => {
    for (const path of CONTRACTS)
      it(path, async () => {
        const first = await ask(path);
        assert.equal(first.status, 200);
        const { etag, 'cache-control': cacheControl, vary } = first.headers;
        assert.match(etag ?? '', /^"[\w-]{22,}"$/, 'strong');
        const isDraft = path.includes('/versions/') && archives().latest?.published === null;
        assert.match(
          cacheControl ?? '',
          isDraft || path === '/llms.txt' ? /^no-cache$/ : /^public, max-age=\d+(?:, immutable)?$/,
        );
        const negotiated = path === '/' || path.endsWith('/docs/') || path.endsWith('/ETAG_MISMATCH');
        assert.equal(vary, negotiated ? 'Accept, Accept-Encoding' : 'Accept-Encoding');
        assert.equal(first.headers['access-control-allow-origin'], '*');
        assert.equal(first.headers['set-cookie'], undefined);

        const others = [
          await ask(path, { origin: 'https://elsewhere.example', 'accept-language': 'de' }),
          await ask(path, { authorization: `Bearer ${await tokenFor(platform.baseUrl, 'ada')}`, cookie: 'a=1' }),
          await ask(path, { authorization: 'Bearer wrong', range: 'bytes=0-9' }),
        ];
        for (const { status, headers, body } of others) {
          assert.deepEqual(
            [status, headers.etag, headers['cache-control'], headers.vary],
            [200, etag, cacheControl, vary],
          );
          assert.ok(body.equals(first.body));
        }
        const junk = await ask(`${path}?utm_source=x&utm_source=y`);
        assert.ok(junk.status === 400 || junk.body.equals(first.body), `${junk.status} with other parameters`);

        const packed = await ask(path, { 'accept-encoding': 'gzip' });
        const isPacked = packed.headers['content-encoding'] === 'gzip';
        assert.ok((isPacked ? gunzipSync(packed.body) : packed.body).equals(first.body));
        assert.equal(packed.headers.etag !== etag, isPacked, 'other bytes have another strong ETag');

        for (const [encoding, tag] of [
          ['identity', etag],
          ['gzip', packed.headers.etag],
        ] as const) {
          const head = await ask(path, { 'accept-encoding': encoding }, 'HEAD');
          assert.deepEqual([head.status, head.headers.etag, head.body.length], [200, tag, 0]);
          for (const ifNoneMatch of [tag ?? '', `"x", W/${tag}`, '*']) {
            const known = await ask(path, { 'accept-encoding': encoding, 'if-none-match': ifNoneMatch });
            assert.deepEqual(
              [known.status, known.headers.etag, known.headers['cache-control'], known.headers.vary, known.body.length],
              [304, tag, cacheControl, vary, 0],
            );
          }
        }
        assert.equal((await ask(path, { 'if-none-match': '"another"' })).status, 200);
      });

    it('except the current state, which is not cached', async () => {
      for (const path of STATE) assert.equal((await ask(path)).headers['cache-control'], 'no-store', path);
    });
  });

  /** Sends path and headers unchanged, which fetch() would complete; returns the body as it was sent. */
  function ask(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Asked> {
    return new Promise((resolve, reject) => {
      const sent = request(platform.baseUrl + path, { method, headers }, (answer) => {
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part));
        answer.once('error', reject);
        answer.once('end', () =>
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(parts) }),
        );
      });
      sent.once('error', reject).end();
    });
  }
});

async function everyDocument(): Promise<string[]> {
  const { latest } = archives();
  assert.ok(latest);
  const names = [...(await archives().open(latest)).keys()];
  return names.map((name) => `/versions/${latest.version}/docs/${name}`);
}

/** Until the connection ends. Retries after a conflict with the platform's own background work. */
async function lockEveryTable(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
      WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1`,
  );
  assert.ok(rows.length > 50);
  for (let left = 10; ; left--)
    try {
      await client.query("BEGIN; SET LOCAL lock_timeout = '3s'");
      await client.query(`LOCK TABLE ${rows.map(({ name }) => name).join(', ')} IN ACCESS EXCLUSIVE MODE`);
      return;
    } catch (error) {
      await client.query('ROLLBACK');
      if (left === 0) throw error;
    }
}
