/** Limits on gateway resources per caller: connections, unread responses, counters, log lines. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { LIMITS } from '../../../lib/limits.ts';
import { until } from '../../support/until.ts';
import { type Stage, startStage } from './stage.ts';

describe('The edge: limits of held resources', function () {
  this.timeout(60_000);
  let stage: Stage;
  const sockets: Socket[] = [];
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await stage.stop();
  });
  const open = async (): Promise<Socket> => {
    const socket = connect(Number(new URL(stage.baseUrl).port), '127.0.0.1');
    socket.on('error', () => {});
    sockets.push(socket);
    await once(socket, 'connect');
    return socket;
  };
  /** Sends a request and never reads the answer. */
  const askAndIgnore = async (token?: string): Promise<Socket> => {
    const socket = await open();
    socket.pause();
    const bearer = token ?? (await stage.token());
    socket.write(`GET /api/v1/stub/A HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${bearer}\r\n\r\n`);
    return socket;
  };
  const metric = async (name: string): Promise<number> => {
    const { text } = await stage.send('GET', '//metrics', { token: null });
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
  };
  /** The gateway looks at what is unread once a second. */
  const looked = () => new Promise((resolve) => setTimeout(resolve, 1_000));
  const closed = (socket: Socket): boolean => socket.closed || socket.destroyed;

  it('counts a request as in flight until its answer is taken', async () => {
    stage = await startStage({ CONCURRENCY: '3' });
    const big = Buffer.alloc(10 * 1024 * 1024, 'x');
    stage.answer = ({ path }) => ({ body: path['objectApiName'] === 'A' ? big : {} });
    for (let i = 0; i < 3; i++) await askAndIgnore();
    await until(async () => (await stage.send('GET', '/stub/B')).status === 429);
    for (const socket of sockets) socket.destroy();
    await until(async () => (await stage.send('GET', '/stub/B')).status === 200);
  });

  it('counts requests of a disconnected caller as in flight until done', async () => {
    stage = await startStage({ CONCURRENCY: '1' });
    let release: () => void = () => {};
    stage.answer = () =>
      new Promise((resolve) => {
        release = () => resolve({ body: {} });
      });
    (await askAndIgnore()).destroy();
    await until(async () => (await stage.send('GET', '//healthz')).status === 200);
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal((await stage.send('GET', '/stub/A')).status, 429);
    release();
    stage.answer = () => ({ body: {} });
    await until(async () => (await stage.send('GET', '/stub/A')).status === 200);
  });

  it('closes connections that ask nothing, ask in vain or stop within a request, even of clients that do not', async () => {
    stage = await startStage();
    const halves = ['', 'GET /healthz HTTP/1.1\r\nHost: x\r\n', 'no request\r\n\r\n'];
    const ended = halves.map(async (text) => {
      const socket = connect({ port: Number(new URL(stage.baseUrl).port), host: '127.0.0.1', allowHalfOpen: true });
      sockets.push(socket);
      const gone = new Promise<void>((resolve) => socket.once('close', () => resolve()));
      socket.on('error', () => {});
      socket.resume();
      if (text) socket.write(text);
      // Data sent on a fully closed connection is answered with a reset.
      const trying = setInterval(() => socket.readableEnded && socket.write('x'), 500);
      await gone;
      clearInterval(trying);
    });
    await Promise.all(ended);
  });

  it('refuses a caller with too many unread bytes, but serves others and small responses', async () => {
    stage = await startStage();
    const big = Buffer.alloc(7 * 1024 * 1024, 'x');
    stage.answer = ({ path }) => ({ body: path['objectApiName'] === 'A' ? big : {} });
    for (let i = 0; i < 30; i++) await askAndIgnore();
    const refused = await stage.send('GET', '/stub/A');
    assert.deepEqual(
      [refused.status, refused.json.code],
      [429, 'CONCURRENCY_LIMIT_EXCEEDED'],
      refused.text.slice(0, 99),
    );
    assert.deepEqual(refused.json.details, { maxBytes: LIMITS.unsent_of_caller_max_bytes });
    assert.equal(refused.headers['retry-after'], '1');
    const unsent = await metric('erp_http_unsent_bytes');
    assert.ok(unsent > 0 && unsent <= LIMITS.unsent_of_caller_max_bytes, `${unsent} bytes`);
    assert.equal((await stage.send('GET', '/stub/B')).status, 200);
    const other = await stage.token({ sub: 'another user' });
    assert.equal((await stage.send('GET', '/stub/A', { token: other })).status, 200);
    for (const socket of sockets) socket.resetAndDestroy();
    await until(async () => (await stage.send('GET', '/stub/A')).status === 200);
    await until(async () => (await metric('erp_http_unsent_bytes')) === 0);
  });

  it('holds nothing of requests whose expectation it refused', async () => {
    stage = await startStage();
    for (let i = 0; i < 50; i++) {
      const socket = await open();
      socket.end('GET /x HTTP/1.1\r\nHost: a\r\nExpect: x\r\nConnection: close\r\n\r\n');
      socket.resume();
      await once(socket, 'close');
    }
    await until(async () => (await metric('erp_http_unsent_bytes')) === 0);
  });

  it('applies the same per address to unauthenticated callers', async () => {
    stage = await startStage();
    stage.authAnswer = () => ({ status: 200, headers: {}, body: Buffer.alloc(7 * 1024 * 1024, 'x') });
    for (let i = 0; i < 20; i++) (await open()).pause().write('GET /.well-known/x HTTP/1.1\r\nHost: x\r\n\r\n');
    await until(async () => (await metric('erp_rate_limit_refusals_total')) > 0);
    assert.ok((await metric('erp_http_unsent_bytes')) <= LIMITS.unsent_of_caller_max_bytes);
  });

  it('always answers a write, regardless of unread bytes', async () => {
    stage = await startStage();
    const big = Buffer.alloc(7 * 1024 * 1024, 'x');
    stage.answer = () => ({ body: big });
    for (let i = 0; i < 20; i++) await askAndIgnore();
    assert.equal((await stage.send('GET', '/stub/A')).status, 429);
    const written = await stage.send('POST', '/stub/A', { body: {}, headers: { 'idempotency-key': 'a-sound-key' } });
    assert.deepEqual([written.status, written.body.length], [201, big.length]);
  });

  it('keeps no answer for a connection that is idle', async () => {
    stage = await startStage();
    const bodies: WeakRef<Buffer>[] = [];
    stage.answer = () => {
      const body = Buffer.alloc(1024 * 1024, 'x');
      bodies.push(new WeakRef(body));
      return { body };
    };
    for (let i = 0; i < 20; i++) (await askAndIgnore()).resume();
    await until(async () => bodies.length === 20 && (await metric('erp_http_requests_in_flight')) === 1);
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    await until(() => {
      collect();
      return bodies.filter((body) => body.deref()).length < 3;
    });
  });

  it('keeps no answer behind a delayed 429 that was sent in its place', async () => {
    stage = await startStage();
    const bodies: WeakRef<Buffer>[] = [];
    stage.answer = () => {
      const body = Buffer.alloc(7 * 1024 * 1024, 'x');
      bodies.push(new WeakRef(body));
      return { body };
    };
    for (let i = 0; i < 40; i++) await askAndIgnore();
    await until(async () => (await metric('erp_http_refusals_waiting')) > 10);
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    await until(() => {
      collect();
      return bodies.filter((body) => body.deref()).length <= 20;
    });
    assert.ok((await metric('erp_http_refusals_waiting')) > 10);
  });

  it('drops the oldest unread responses when they take too much memory', async () => {
    stage = await startStage({ CONCURRENCY: '100' });
    const big = Buffer.alloc(48 * 1024 * 1024, 'x');
    stage.answer = () => ({ body: big });
    const first = await askAndIgnore();
    for (let i = 0; i < 8; i++) await askAndIgnore(await stage.token({ sub: `user-${i}` }));
    await looked();
    // The client learns of it when it reads on: the answer ends early.
    let received = 0;
    first.on('data', (chunk) => (received += chunk.length));
    await until(() => {
      first.resume();
      return closed(first);
    });
    assert.ok(received < big.length, `${received} bytes`);
    stage.answer = () => ({ body: {} });
    assert.equal((await stage.send('GET', '/stub/B')).status, 200);
  });

  it('drops those of the tenant with most bytes, not those of others', async () => {
    stage = await startStage({ CONCURRENCY: '100' });
    const big = Buffer.alloc(48 * 1024 * 1024, 'x');
    stage.answer = () => ({ body: big });
    const other = await stage.token({ tenant_id: '00000000-0000-4000-8000-00000000000b' });
    const modest = await askAndIgnore(other);
    const greedy: Socket[] = [];
    for (let i = 0; i < 8; i++) greedy.push(await askAndIgnore(await stage.token({ sub: `user-${i}` })));
    await looked();
    await until(() => {
      for (const socket of greedy) socket.resume();
      return greedy.some(closed);
    });
    let received = 0;
    modest.on('data', (chunk) => (received += chunk.length));
    modest.resume();
    await until(() => received > big.length);
  });

  describe('clients that ignore the Retry-After of a 429', () => {
    /** Sends requests one after the other on one connection; resolves with the milliseconds that each took. */
    const impatient = async (requests: number, token: string): Promise<number[]> => {
      const socket = await open();
      const took: number[] = [];
      for (let i = 0; i < requests; i++) {
        const started = performance.now();
        socket.write(`GET /api/v1/stub/A HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`);
        assert.match(String(await once(socket, 'data')), /^HTTP\/1.1 429 /);
        took.push(performance.now() - started);
      }
      return took;
    };
    const spent = async (env: Record<string, string> = {}): Promise<string> => {
      stage = await startStage({ RATE_CONNECTION_UNITS: '2', ...env });
      const token = await stage.token();
      while ((await stage.send('GET', '/stub/A', { token })).status === 200);
      return token;
    };

    it('get increasing delays, without affecting others', async () => {
      const token = await spent();
      const waiting = impatient(8, token);
      await until(async () => (await metric('erp_http_refusals_waiting')) === 1);
      const started = performance.now();
      const [same, other] = await Promise.all([
        stage.send('GET', '/stub/A', { token }),
        stage.send('GET', '/stub/A', { token: await stage.token({ sub: 'another user' }) }),
      ]);
      assert.deepEqual([same.status, other.status], [429, 200]);
      assert.ok(performance.now() - started < 1_000);
      const took = await waiting;
      for (const [i, least] of [0, 0, 0, 0, 100, 200, 400, 800].entries())
        assert.ok(took[i]! >= least * 0.9, `answer ${i} took ${took[i]} ms`);
      assert.ok((await metric('erp_http_refusals_delayed_total')) >= 4);
    });

    it('do not count as in flight', async () => {
      const token = await spent({ CONCURRENCY: '1' });
      const waiting = impatient(8, token);
      await until(async () => (await metric('erp_http_refusals_waiting')) === 1);
      assert.equal((await stage.send('GET', '/stub/A', { token })).json.code, 'RATE_LIMIT_EXCEEDED');
      await waiting;
    });

    it('are forgotten on disconnect', async () => {
      const token = await spent();
      impatient(8, token).catch(() => {});
      await until(async () => (await metric('erp_http_refusals_waiting')) === 1);
      for (const socket of sockets) socket.resetAndDestroy();
      await until(async () => (await metric('erp_http_refusals_waiting')) === 0);
    });
  });

  it('closes connections of an address beyond its limit, and accepts new ones when others end', async () => {
    stage = await startStage();
    for (let i = 0; i < LIMITS.connections_of_network_max; i++) await open();
    const surplus = await open();
    await until(() => closed(surplus));
    sockets[0]!.destroy();
    await until(async () => {
      const socket = await open();
      socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      const [text] = await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => [''])]);
      return String(text).startsWith('HTTP/1.1 200');
    });
  });

  it('receives one large body per tenant at a time, and small ones meanwhile', async () => {
    stage = await startStage();
    stage.permissions = ['metadataRead'];
    let [busy, most] = [0, 0];
    stage.answer = async ({ operationId }) => {
      if (operationId !== 'stub.configuration.check') return { body: {} };
      most = Math.max(most, ++busy);
      await new Promise((resolve) => setTimeout(resolve, 50));
      busy--;
      return { body: {} };
    };
    const check = async (chars: number): Promise<number> =>
      (await stage.send('POST', '/configuration', { body: { name: 'x'.repeat(chars) } })).status;
    const all = [check(2_000_000), check(2_000_000), check(100_000), check(100_000)];
    assert.equal((await stage.send('GET', '/stub/A')).status, 200);
    assert.deepEqual(await Promise.all(all), [200, 200, 200, 200]);
    assert.equal(most, 1);
    most = 0;
    assert.deepEqual(await Promise.all([check(10), check(10)]), [200, 200]);
    assert.equal(most, 2);
    const refused = (await Promise.all(Array.from({ length: 23 }, () => check(100_000)))).filter((s) => s === 429);
    assert.equal(refused.length, 2, 'one is answered and twenty wait');
  });

  it('accepts only valid addresses from a proxy, with or without a port', async () => {
    stage = await startStage({ TRUSTED_PROXIES: '1', RATE_ANONYMOUS_REQUESTS: '2' });
    const status = async (entry: string): Promise<number> =>
      (await stage.send('GET', '/scopes', { token: null, headers: { 'x-forwarded-for': `9.9.9.9, ${entry}` } })).status;
    const two = async (...entries: string[]): Promise<number[]> => {
      const found: number[] = [];
      for (const entry of entries) found.push(await status(entry));
      return found;
    };
    assert.deepEqual(await two('192.0.2.5', '192.0.2.5:4711', '192.0.2.5:4712'), [200, 200, 429]);
    assert.deepEqual(await two('2001:db8::1', '[2001:db8::2]', '[2001:db8::3]:99'), [200, 200, 429]);
    assert.deepEqual(await two('unknown', `x${'y'.repeat(50_000)}`, 'z'), [200, 200, 429], 'the proxy pays');
  });

  it('ignores method override headers and double encoding of paths', async () => {
    stage = await startStage();
    const methods: string[] = [];
    stage.answer = ({ operationId }) => {
      methods.push(operationId);
      return { body: {} };
    };
    for (const name of ['x-http-method-override', 'x-http-method', 'x-method-override'])
      assert.equal((await stage.send('GET', '/stub/A', { headers: { [name]: 'DELETE' } })).status, 200);
    assert.deepEqual([...new Set(methods)], ['stub.records.list']);
    for (const path of ['//api%2fv1/stub/A', '//%61pi/v1/stub/A', '/%2573tub/A', '/stub%2fA', '//oauth2%2ftoken'])
      assert.equal((await stage.send('GET', path)).status, 404, path);
  });
});
