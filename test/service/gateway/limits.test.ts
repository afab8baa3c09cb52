import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { GrantState } from '../../../contracts/auth.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { type Answer, type Stage, startStage } from './stage.ts';

const isError = (answer: Answer, status: number, code: string): void => {
  assert.equal(answer.json?.code, code, `${answer.status} ${answer.text.slice(0, 300)}`);
  assert.equal(answer.status, status);
};

/** Sends requests one by one until one is refused; how many passed. */
async function untilRefused(
  send: () => Promise<Answer>,
  max: number,
): Promise<{ passed: number; refused: Answer | null }> {
  for (let passed = 0; passed < max; passed++) {
    const answer = await send();
    if (answer.status === 429) return { passed, refused: answer };
  }
  return { passed: max, refused: null };
}

describe('The edge: limits', () => {
  let stage: Stage;
  afterEach(() => stage.stop());

  it('answers 429 with policy and Retry-After beyond the limit of a connection', async () => {
    stage = await startStage({ RATE_CONNECTION_UNITS: '60' });
    const start = Date.now();
    const { passed, refused } = await untilRefused(() => stage.send('GET', '/stub/A'), 100);
    const flowed = Math.ceil((Date.now() - start) / 1_000);
    assert.ok(passed >= 60 && passed <= 60 + flowed, `${passed} passed, ${flowed} flowed back at most`);
    isError(refused!, 429, 'RATE_LIMIT_EXCEEDED');
    assert.deepEqual(refused!.json.details, { policy: 'connection', limit: 60, windowSeconds: 60 });
    assert.equal(refused!.headers['x-ratelimit-remaining'], '0');
    const wait = Number(refused!.headers['retry-after']);
    assert.ok(wait >= 1 && wait <= 2, `${wait} s`);
    assert.equal(refused!.json.retryable, true);
    assert.equal(refused!.json.retryAfterSeconds, wait);
    const other = await stage.token({ sub: '01939c3e-8f00-7a3b-9c52-6d1f2a7b4c10' });
    assert.equal((await stage.send('GET', '/stub/A', { token: other })).status, 200, 'another user is not affected');
    await new Promise((resolve) => setTimeout(resolve, wait * 1_000 + 50));
    assert.equal((await stage.send('GET', '/stub/A')).status, 200, 'after the wait it passes');
  });

  it('counts documents separately from other requests of an address', async () => {
    stage = await startStage({ RATE_ANONYMOUS_REQUESTS: '20' });
    const read = (): Promise<Response> => fetch(`${stage.baseUrl}/versions/latest/docs/index.html`);
    const signIn = (): Promise<Response> => fetch(`${stage.baseUrl}/oauth2/authorize`);
    const first = await read();
    assert.match(String(first.headers.get('ratelimit-policy')), /^"documents";q=20;w=60/);
    let status = first.status;
    for (let n = 0; n < 100 && status === 200; n++) status = (await read()).status;
    assert.equal(status, 429, 'reading is bounded');
    status = (await signIn()).status;
    assert.notEqual(status, 429, 'a reader can still sign in');
    for (let n = 0; n < 100 && status !== 429; n++) status = (await signIn()).status;
    assert.equal(status, 429, 'so are sign-ins');
  });

  it('charges the cost of the operation and shows the remainder', async () => {
    stage = await startStage({ RATE_DAILY_UNITS: '1000' });
    const left = async (method: string, path: string, body?: object): Promise<number> => {
      const headers = { 'idempotency-key': 'cost-test-1' };
      return Number((await stage.send(method, path, { body, headers })).headers['x-ratelimit-remaining']);
    };
    assert.equal(await left('GET', '/stub/A'), 999);
    assert.equal(await left('POST', '/stub/A', {}), 997);
    assert.equal(await left('POST', '/costly'), 992);
    assert.equal(await left('GET', '/me/limits'), 992, 'costs nothing');
  });

  it('applies the lowest of deployment, tenant and client; only the operator can raise it', async () => {
    stage = await startStage({ RATE_CONNECTION_UNITS: '5', CONCURRENCY: '3' });
    const none = { connection: null, tenant: null, daily: null, concurrency: null };
    const passed = async (rateLimits: GrantState['rateLimits']): Promise<number> => {
      stage.grant = { rateLimits };
      const token = await stage.token({ grant_id: randomUUID(), tenant_id: randomUUID() });
      return (await untilRefused(() => stage.send('GET', '/stub/A', { token }), 30)).passed;
    };
    const client = { connection: 1_000, concurrency: 1_000 };
    assert.equal(await passed({ client, tenant: none }), 5, 'a client cannot widen');
    assert.equal(await passed({ client, tenant: { ...none, connection: 1_000, tenant: 1_000 } }), 5, 'nor a tenant');
    assert.equal(await passed({ client, tenant: { ...none, tenant: 3 } }), 3);
    assert.equal(await passed({ client, tenant: { ...none, connection: 2 } }), 2, 'a client is bound to its tenant');
    const operator = { ...none, connection: 12 };
    assert.equal(await passed({ client, tenant: none, operator }), 12);
    assert.equal(await passed({ client: { connection: 7, concurrency: null }, tenant: none, operator }), 7);
    assert.equal(await passed({ client, tenant: none, operator: { ...none, connection: 4 } }), 4);
    stage.grant = {
      rateLimits: { client, tenant: { ...none, concurrency: 1_000 }, operator: { ...none, tenant: 1e9 } },
    };
    const token = await stage.token({ grant_id: 'concurrency', tenant_id: randomUUID() });
    const { json } = await stage.send('GET', '/me/limits', { token });
    assert.deepEqual(json.concurrency, { limit: 3, costlyLimit: 3 });
    assert.deepEqual(
      json.policies.map(({ name, limit }: { name: string; limit: number }) => [name, limit]),
      [
        ['connection', 5],
        ['tenant', 1e9],
        ['daily', 10_000_000],
      ],
    );
  });

  it('enforces the daily limit of a tenant', async () => {
    stage = await startStage({ RATE_DAILY_UNITS: '10' });
    const { passed, refused } = await untilRefused(() => stage.send('GET', '/stub/A'), 50);
    assert.equal(passed, 10);
    isError(refused!, 429, 'DAILY_LIMIT_EXCEEDED');
    assert.ok(Number(refused!.headers['retry-after']) > 60);
  });

  it('limits public operations and failed authentications by network address, not valid callers behind it', async () => {
    stage = await startStage({ RATE_ANONYMOUS_REQUESTS: '10' });
    const bad = await untilRefused(() => stage.send('GET', '/stub/A', { token: 'bad' }), 50);
    assert.equal(bad.passed, 10);
    isError(bad.refused!, 429, 'RATE_LIMIT_EXCEEDED');
    assert.equal(bad.refused!.json.details.policy, 'anonymous');
    isError(await stage.send('GET', '/scopes', { token: null }), 429, 'RATE_LIMIT_EXCEEDED');
    assert.equal((await stage.send('GET', '/stub/A')).status, 200);
  });

  it('shows browsers at the limit of their address a page with the wait', async () => {
    stage = await startStage({ RATE_ANONYMOUS_REQUESTS: '5' });
    const headers = { accept: 'text/html,*/*;q=0.8' };
    const { refused } = await untilRefused(() => stage.send('GET', '//account', { token: null, headers }), 20);
    assert.ok(refused);
    assert.match(String(refused.headers['content-type']), /^text\/html/);
    assert.equal(refused.headers['x-ratelimit-remaining'], '0');
    assert.ok(Number(refused.headers['retry-after']) >= 1);
    assert.match(refused.text, /Try again in (?:one second|\d+ seconds)\./);
    const program = await stage.send('GET', '//account', { token: null });
    isError(program, 429, 'RATE_LIMIT_EXCEEDED');
  });

  it('charges every page, preflight, unknown route and OAuth endpoint to the address', async () => {
    stage = await startStage({ RATE_ANONYMOUS_REQUESTS: '4', TRUSTED_PROXIES: '1' });
    stage.authAnswer = ({ url }) => ({ status: url.includes('bad') ? 400 : 200, headers: {}, body: Buffer.from('{}') });
    const everything: [method: string, path: string][] = [
      ['GET', '//'],
      ['HEAD', '//'],
      ['GET', '//readyz'],
      ['GET', '//nowhere'],
      ['POST', '//'],
      ['GET', '//oauth2/jwks'],
      ['GET', '//oauth2/authorize?bad'],
      ['POST', '//oauth2/token'],
      ['POST', '//oauth2/token?bad'],
      ['OPTIONS', '//oauth2/token'],
      ['GET', '//.well-known/openid-configuration'],
      ['GET', '//device'],
      ['OPTIONS', '/stub/A'],
      ['OPTIONS', '/nowhere'],
      ['GET', '/nowhere'],
      ['GET', '/%6eowhere'],
      ['PUT', '/stub/A'],
      ['GET', `/stub/${'x'.repeat(17_000)}`],
      ['GET', `//nowhere?${'x'.repeat(17_000)}`],
      ['GET', '/scopes'],
    ];
    for (const [i, [method, path]] of everything.entries()) {
      // A network for each of them, with callers in all of it: IPv6 counts by the first 48 bits.
      let host = 0;
      const send = () =>
        stage.send(method, path, { token: null, headers: { 'x-forwarded-for': `2001:db8:${i}:${++host}::1` } });
      const { passed, refused } = await untilRefused(send, 20);
      assert.equal(passed, 4, `${method} ${path.slice(0, 50)}`);
      if (method !== 'HEAD') isError(refused!, 429, 'RATE_LIMIT_EXCEEDED');
    }
    for (let i = 0; i < 20; i++) assert.equal((await stage.send('GET', '//healthz', { token: null })).status, 200);
  });

  it('charges a unit for a request that it refuses to the connection that is known, and none for a 429', async () => {
    stage = await startStage({ RATE_DAILY_UNITS: '1000', CONCURRENCY: '1', RATE_ANONYMOUS_REQUESTS: '5' });
    const token = await stage.token({ scope: 'data:read' });
    const left = async (status: number, method: string, path: string): Promise<number> => {
      const answer = await stage.send(method, path, { token, headers: { 'idempotency-key': 'refused-1' } });
      assert.equal(answer.status, status, answer.text);
      return Number(answer.headers['x-ratelimit-remaining']);
    };
    assert.equal(await left(200, 'GET', '/stub/A'), 999);
    assert.equal(await left(403, 'POST', '/stub/A'), 998);
    assert.equal(await left(404, 'GET', '/nowhere'), 997);
    assert.equal(await left(405, 'PUT', '/stub/A'), 996);
    assert.equal(await left(400, 'GET', `/stub/${'x'.repeat(17_000)}`), 995);
    let release: () => void = () => {};
    const inFlight = new Promise<void>((started) => {
      stage.answer = () => {
        started();
        return new Promise((resolve) => {
          release = () => resolve({ body: {} });
        });
      };
    });
    const first = left(200, 'GET', '/stub/A');
    await inFlight;
    assert.equal(await left(429, 'GET', '/stub/A'), 994, 'the one in flight has paid, the refused one has not');
    release();
    await first;
    stage.grant = { tenantSuspended: true };
    const other = await stage.token({ grant_id: 'suspended', sub: '01939c3e-8f00-7a3b-9c52-6d1f2a7b4c10' });
    const suspended = await stage.send('GET', '/stub/A', { token: other });
    isError(suspended, 403, 'TENANT_SUSPENDED');
    assert.equal(suspended.headers['x-ratelimit-remaining'], '993');
  });

  it('charges a free read that finds nothing, so that made-up ids are not free', async () => {
    stage = await startStage({ RATE_CONNECTION_UNITS: '5' });
    stage.answer = () => {
      throw new PlatformError('ROUTE_NOT_FOUND', 'There is none.');
    };
    const { passed } = await untilRefused(() => stage.send('GET', `/deployments/${randomUUID()}`), 20);
    assert.equal(passed, 5);
  });

  it('lets the limits be read free once per second only', async () => {
    stage = await startStage({ RATE_DAILY_UNITS: '5' });
    const start = performance.now();
    const { passed } = await untilRefused(() => stage.send('GET', '/me/limits'), 50);
    const free = Math.ceil((performance.now() - start) / 1_000);
    assert.ok(passed >= 6 && passed <= 5 + free, `${passed} passed, ${free} of them may be free`);
  });

  it('charges malformed requests to the address, and answers none beyond its limit', async () => {
    stage = await startStage({ RATE_ANONYMOUS_REQUESTS: '3' });
    const malformed = () => stage.raw('GET / HTTP/9.9\r\nHost: x\r\n\r\n');
    for (let i = 0; i < 3; i++) assert.match(await malformed(), /^HTTP\/1\.1 400 /);
    assert.equal(await malformed(), '');
    isError(await stage.send('GET', '/scopes', { token: null }), 429, 'RATE_LIMIT_EXCEEDED');
  });

  it('believes X-Forwarded-For only as far as trusted proxies wrote it', async () => {
    stage = await startStage({ RATE_ANONYMOUS_REQUESTS: '5', TRUSTED_PROXIES: '1' });
    const from = (address: string) =>
      stage.send('GET', '/scopes', { token: null, headers: { 'x-forwarded-for': address } });
    assert.equal((await untilRefused(() => from('6.6.6.6, 10.0.0.1'), 20)).passed, 5);
    assert.equal((await from('7.7.7.7, 10.0.0.1')).status, 429, 'the first entry is what the caller claims');
    assert.equal((await from('10.0.0.2')).status, 200);
  });

  it('limits requests in flight per connection, costly ones more', async () => {
    stage = await startStage({ CONCURRENCY: '4', CONCURRENCY_COSTLY: '2' });
    let release: () => void = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    let inFlight = 0;
    stage.answer = async () => {
      inFlight++;
      await gate;
      return { body: {} };
    };
    const untilInFlight = async (wanted: number): Promise<void> => {
      while (inFlight < wanted) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    const costly = [stage.send('POST', '/costly'), stage.send('POST', '/costly')];
    await untilInFlight(2);
    const refused = await stage.send('POST', '/costly');
    isError(refused, 429, 'CONCURRENCY_LIMIT_EXCEEDED');
    assert.deepEqual(refused.json.details, { max: 2 });
    assert.equal(refused.headers['retry-after'], '1');
    const cheap = [stage.send('GET', '/stub/A'), stage.send('GET', '/stub/A')];
    await untilInFlight(4);
    assert.deepEqual((await stage.send('GET', '/stub/A')).json.details, { max: 4 });
    release();
    for (const answer of await Promise.all([...costly, ...cheap])) assert.equal(answer.status, 200);
    assert.equal((await stage.send('POST', '/costly')).status, 200);
  });

  it('lets one read of a deployment per second and id be free', async () => {
    stage = await startStage({ RATE_DAILY_UNITS: '1000' });
    const left = async (id: string): Promise<number> =>
      Number((await stage.send('GET', `/deployments/${id}`)).headers['x-ratelimit-remaining']);
    for (;;) {
      const start = Date.now();
      const [a, b] = [`${randomUUID().slice(0, -1)}a`, randomUUID()];
      const seen = [await left(a), await left(`${a.slice(0, -1)}%61`), await left(b)];
      if (Date.now() - start >= 1_000) continue; // too slow to be asked twice in a second
      const [first] = seen as [number];
      assert.deepEqual(seen, [first, first - 1, first - 1]);
      break;
    }
  });

  it('me.limits.get shows all policies, their remainder, and the costs', async () => {
    stage = await startStage({ RATE_CONNECTION_UNITS: '600', RATE_DAILY_UNITS: '86400' });
    const start = Date.now();
    for (let i = 0; i < 5; i++) await stage.send('POST', '/costly');
    const { json, status } = await stage.send('GET', '/me/limits');
    assert.equal(status, 200);
    /** Of the 25 units of five calls some may have flowed back by now. */
    const assertUsed = (used: number, unitsPerSecond: number): void => {
      const flowed = Math.ceil(((Date.now() - start) / 1_000) * unitsPerSecond);
      assert.ok(used <= 25 && used >= 25 - flowed, `${used} used, ${flowed} flowed back at most`);
    };
    assert.deepEqual(
      json.policies.map((one: { name: string; limit: number; windowSeconds: number }) => [
        one.name,
        one.limit,
        one.windowSeconds,
      ]),
      [
        ['connection', 600, 60],
        ['tenant', 30000, 60],
        ['daily', 86400, 86400],
      ],
    );
    const [connection] = json.policies;
    assert.equal(connection.used + connection.remaining, 600);
    assertUsed(connection.used, 10);
    assertUsed(json.daily.used, 1);
    assert.deepEqual(json.concurrency, { limit: 50, costlyLimit: 8 });
    assert.equal(json.storage.usedBytes, 8192);
    assert.equal(json.costs['me.limits.get'], 0);
  });

  it('goes on with a local share when no ratelimit service runs, never without a limit', async () => {
    stage = await startStage({ RATE_CONNECTION_UNITS: '6' }, { ratelimit: false });
    const { passed, refused } = await untilRefused(() => stage.send('GET', '/stub/A'), 50);
    assert.equal(passed, 6);
    isError(refused!, 429, 'RATE_LIMIT_EXCEEDED');
  });
});
