/** Answers under way to clients that read slowly, or not at all: on real sockets, with limits that fit a test. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { Exchange } from '../../../services/gateway/edge/exchange.ts';
import { send } from '../../../services/gateway/edge/reply.ts';
import { type UnsentLimits, UnsentResponses } from '../../../services/gateway/edge/unsent-responses.ts';
import { until } from '../../support/until.ts';

const MIB = 1024 * 1024;
const PATIENT: UnsentLimits = {
  ofCallerBytes: 64 * MIB,
  ofConnectionBytes: 64 * MIB,
  allBytes: 256 * MIB,
  bytesPerSecond: 1,
};

describe('answers under way', function () {
  this.timeout(20_000);
  let server: Server;
  let unsentResponses: UnsentResponses;
  const active = new Set<Exchange>();
  let requests = 0;
  const sockets: Socket[] = [];
  /** A server that answers everything with a body of so many bytes. */
  const serve = async (
    bytes: number,
    { idleMs = 60_000, ...limits }: Partial<UnsentLimits> & { idleMs?: number } = {},
  ): Promise<void> => {
    unsentResponses = new UnsentResponses(active, { ...PATIENT, ...limits });
    server = createServer((req, res) => {
      const x = new Exchange(req, res, {
        ip: '192.0.2.1',
        now: Date.now(),
        unsentResponses,
        bearer: { authorization: '', key: '' },
      });
      x.timeLimits = { ...x.timeLimits, idleMs };
      active.add(x);
      requests++;
      res.once('close', () => {
        active.delete(x);
        unsentResponses.end(x);
      });
      try {
        send(x, 200, [], Buffer.alloc(bytes, 'x'));
      } catch {
        send(x, 429, [], Buffer.from('later'));
      }
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  };
  const ask = (...lines: string[]): Socket => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').pause();
    socket.on('error', () => {});
    sockets.push(socket);
    for (const line of lines) socket.write(`${line} HTTP/1.1\r\nHost: x\r\n\r\n`);
    return socket;
  };
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
    await until(() => unsentResponses.unsentBytes === 0);
    active.clear();
    requests = 0;
  });

  it('count bytes until the operating system accepts them', async () => {
    await serve(20 * MIB);
    const socket = ask('GET /');
    await until(() => unsentResponses.unsentBytes > 0 && unsentResponses.unsentBytes < 20 * MIB);
    let received = 0;
    socket.on('data', (chunk) => (received += chunk.length)).resume();
    await until(() => received > 20 * MIB && unsentResponses.unsentBytes === 0);
  });

  it('have no bytes for HEAD', async () => {
    await serve(20 * MIB);
    const socket = ask('HEAD /').resume();
    const [head] = await once(socket, 'data');
    assert.match(String(head), /Content-Length: 20971520\r\n/);
    assert.equal(unsentResponses.unsentBytes, 0);
  });

  it('wait on one connection up to its limit, beyond which requests are refused', async () => {
    await serve(6 * MIB, { ofConnectionBytes: 16 * MIB });
    const socket = ask('GET /1', 'GET /2', 'GET /3', 'GET /4');
    await until(() => unsentResponses.refusals > 0);
    await pause(50);
    assert.ok(unsentResponses.unsentBytes <= 16 * MIB, `${unsentResponses.unsentBytes} bytes`);
    let text = '';
    socket.on('data', (chunk) => (text += chunk.toString('latin1'))).resume();
    await until(() => text.endsWith('later'));
    assert.deepEqual([...text.matchAll(/HTTP\/1.1 (\d+)/g)].map(([, status]) => status).sort(), [
      '200',
      '200',
      ...Array(2).fill('429'),
    ]);
  });

  it('end when their client reads nothing, including queued ones', async () => {
    await serve(6 * MIB, { idleMs: 200 });
    const stuck = ask('GET /1', 'GET /2');
    await until(() => unsentResponses.unsentBytes > 6 * MIB);
    for (let now = 0; now <= 1_000; now += 20) {
      unsentResponses.sweep(now);
      await pause(1);
    }
    await until(() => active.size === 0);
    assert.equal(unsentResponses.cut.get('stalled'), 1, 'a connection is cut once');
    stuck.resume();
    await until(() => stuck.destroyed);
  });

  it('end only when their client reads below the minimum rate', async () => {
    await serve(20 * MIB, { idleMs: 500, bytesPerSecond: 8 * MIB });
    const [slow, steady] = [ask('GET /slow'), ask('GET /steady')];
    await until(() => active.size === 2);
    const take = (socket: Socket, bytes: number): unknown => socket.read(bytes) ?? socket.read();
    // The time of the sweeps goes on with what is read: a busy machine is late with both.
    for (let now = 0; now < 3_000 && active.size > 0; now += 10) {
      take(slow, 13 * 1024);
      for (let part = 0; part < 5; part++) {
        take(steady, 64 * 1024);
        await pause(2);
      }
      unsentResponses.sweep(now);
    }
    assert.equal((unsentResponses.cut.get('slow') ?? 0) + (unsentResponses.cut.get('stalled') ?? 0), 1);
    assert.equal(slow.bytesRead < 20 * MIB && steady.bytesRead > 16 * MIB, true);
  });

  it('of the caller with most bytes end when the total exceeds its limit', async () => {
    await serve(10 * MIB, { allBytes: 24 * MIB });
    for (let i = 0; i < 5; i++) {
      ask('GET /');
      await until(() => requests === i + 1);
      unsentResponses.sweep();
    }
    assert.ok(unsentResponses.unsentBytes <= 24 * MIB, `${unsentResponses.unsentBytes} bytes`);
    assert.ok((unsentResponses.cut.get('memory') ?? 0) >= 2);
  });

  it('end at once when the client resets the connection', async () => {
    await serve(6 * MIB);
    const socket = ask('GET /1', 'GET /2', 'GET /3');
    await until(() => unsentResponses.unsentBytes > 12 * MIB);
    socket.resetAndDestroy();
    await until(() => unsentResponses.unsentBytes === 0);
    assert.equal(active.size, 0);
  });
});
