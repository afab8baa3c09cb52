/** Nothing but the operation rows and the pages is reachable over HTTP: no internal action, and no alias of one. */
import assert from 'node:assert/strict';
import { type Stage, startStage } from './stage.ts';

/** Below /api/v1, and the same below the root with a second slash in front. */
const INTERNAL = [
  '/data.users.get',
  '/data/users/get',
  '/~node/actions',
  '/~node/list',
  '/$node/actions',
  '/%24node/actions',
  '/$node.actions',
  '/ratelimit/leases/take',
  '/ratelimit.leases.take',
  '/gateway/rest',
  '/gateway/listAliases',
  '/gateway/list-aliases',
  '/gateway.listAliases',
  '/gateway.openapi.get',
  '/list-aliases',
  '/rest',
  '/nope?$action=data.users.get',
  '/nope?action=data.users.get&$call=1',
  '/stub.answer',
  '/gone/get',
  '/../data/users/get',
  '/%2e%2e/data/users/get',
];

const OTHER_SPELLINGS = ['/API/V1/who', '//api/v1/who', '/api/v1/WHO', '/api/v1/who/', '/api//v1/who', '/api%2fv1/who'];

describe('The edge: routes outside the operation rows', () => {
  let stage: Stage;
  let answered = 0;
  before(async () => {
    stage = await startStage();
    stage.answer = () => {
      answered++;
      return { body: {} };
    };
  });
  after(() => stage.stop());

  const notFound = async (method: string, path: string, headers: Record<string, string> = {}): Promise<void> => {
    const body = method === 'POST' || method === 'PUT' ? { tenantId: 'x', userId: 'y' } : undefined;
    const answer = await stage.send(method, path, { headers, ...(body ? { body } : {}) });
    assert.equal(answer.status, 404, `${method} ${path}: ${answer.status} ${answer.text}`);
    assert.equal(answer.json.code, 'ROUTE_NOT_FOUND', `${method} ${path}`);
  };

  it('are 404 for every method, inside and outside the API, without a call', async () => {
    await stage.send('GET', '/who');
    const calls = { ...stage.calls };
    answered = 0;
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])
      for (const path of INTERNAL) {
        await notFound(method, path);
        await notFound(method, `/${path}`);
      }
    assert.deepEqual(stage.calls, calls);
    assert.equal(answered, 0);
  });

  it('include other spellings of an operation or a page', async () => {
    answered = 0;
    for (const path of OTHER_SPELLINGS) await notFound('GET', `/${path}`);
    for (const path of ['/HEALTHZ', '/Metrics', '/healthz/', '/readyz/', '/healthz.', '/~healthz'])
      await notFound('GET', `/${path}`);
    assert.equal(answered, 0);
  });

  it('a page accepts only read methods, also after a preflight for another one', async () => {
    const preflight = { origin: 'https://a.example', 'access-control-request-method': 'GET' };
    for (const path of ['/', '/healthz', '/readyz', '/metrics'])
      for (const [method, headers] of [
        ['POST', {}],
        ['DELETE', {}],
        ['OPTIONS', {}],
        ['OPTIONS', preflight],
      ] as const) {
        const answer = await stage.send(method, `/${path}`, { headers });
        assert.equal(answer.status, 405, `${method} ${path}: ${answer.text}`);
        assert.equal(answer.json.code, 'METHOD_NOT_ALLOWED');
        assert.equal(answer.headers.allow, 'GET, HEAD');
        assert.equal(answer.headers['access-control-allow-origin'], undefined);
      }
  });

  it('cannot be added over the bus', async () => {
    for (const action of ['gateway.addRoute', 'gateway.removeRoute', 'gateway.rest'])
      await assert.rejects(stage.broker.call(action, { route: { path: '/open' } }), { name: 'ServiceNotFoundError' });
    await notFound('GET', '//open/data/users/get');
  });

  it('operators see operations and pages as aliases', async () => {
    const aliases = await stage.broker.call<Record<string, unknown>[]>('gateway.listAliases');
    const seen = (fullPath: string): unknown => aliases.find((alias) => alias['fullPath'] === fullPath);
    assert.deepEqual(seen('/api/v1/who'), {
      actionName: 'stub.answer',
      path: 'who',
      fullPath: '/api/v1/who',
      methods: 'GET',
      routePath: '/api/v1',
    });
    assert.deepEqual(seen('/healthz'), {
      actionName: null,
      path: 'healthz',
      fullPath: '/healthz',
      methods: 'GET',
      routePath: '/',
    });
    assert.ok(seen('/oauth2/…'));
  });

  it('a page answers HEAD without a body, and absolute-form requests', async () => {
    const head = await stage.send('HEAD', '//healthz');
    assert.deepEqual([head.status, head.text, head.headers['content-length']], [200, '', '15']);
    const { host } = new URL(stage.baseUrl);
    const answer = await stage.raw(`GET http://${host}/healthz HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/);
    assert.match(answer, /\{"status":"ok"\}$/);
    for (const name of ['x-powered-by', 'etag', 'server']) assert.doesNotMatch(answer, new RegExp(`\n${name}:`, 'i'));
    assert.equal(answer.match(/x-request-id/gi)?.length, 1);
  });
});
