/** How long a call may take: the limits of its row, for its body, its service and the caller that takes the answer. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Type } from 'typebox';
import type { RequestContext } from '../../../lib/context.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { until } from '../../support/until.ts';
import { row, type Stage, startStage } from './stage.ts';

const requestBody = { required: true, schema: Type.Object({}), maxBytes: 1024 * 1024, validate: false } as const;
const OPERATIONS = [
  row({ operationId: 'stub.quick.run', method: 'POST', path: '/quick', timeLimitMs: 400, requestBody }),
  row({ operationId: 'stub.slow.run', method: 'POST', path: '/slow', timeLimitMs: 90_000, requestBody }),
  row({ operationId: 'stub.impatient.get', method: 'GET', path: '/impatient', idleMs: 500 }),
];

describe('Time limits of a row', function () {
  this.timeout(LIMITS.request_timeout_ms);
  let stage: Stage;
  before(async () => {
    stage = await startStage({}, { operations: OPERATIONS });
  });
  after(() => stage.stop());
  const open = async (text: string): Promise<Socket> => {
    const socket = connect(Number(new URL(stage.baseUrl).port), '127.0.0.1');
    socket.on('error', () => {});
    await once(socket, 'connect');
    socket.write(text.replace('TOKEN', await stage.token()));
    return socket;
  };
  const receive = async (socket: Socket): Promise<string> => {
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    await once(socket, 'close');
    return text;
  };
  const head = (path: string, length: number): string =>
    `POST /api/v1${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer TOKEN\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;

  it('end the wait for the service', async () => {
    const service = Promise.withResolvers<{ body: object }>();
    stage.answer = () => service.promise;
    const answer = await stage.send('POST', '/quick', { body: {} });
    service.resolve({ body: {} });
    assert.equal(answer.status, 500, answer.text);
    assert.match(answer.json.message, /took too long/);
  });

  it('end the wait for a body, and close its connection', async () => {
    const text = await receive(await open(`${head('/quick', 5)}{`));
    assert.match(text, /^HTTP\/1\.1 400 .*The request was not received in time\./s);
  });

  it('give a service that needs more time a later deadline', async () => {
    let seen: RequestContext | undefined;
    stage.answer = (_call, context) => {
      seen = context;
      return { body: {} };
    };
    const hasLimit = async (limitMs: number, method: string, path: string, body?: object): Promise<void> => {
      const began = Date.now();
      assert.equal((await stage.send(method, path, { body })).status, 200);
      const arrivedAt = seen!.deadline - limitMs;
      assert.ok(arrivedAt >= began - 1 && arrivedAt <= Date.now() + 1, `${arrivedAt - began} ms`);
    };
    await hasLimit(90_000, 'POST', '/slow', {});
    await hasLimit(LIMITS.request_timeout_ms, 'GET', '/stub/A');
  });

  it('say how long a caller may take nothing of the answer', async () => {
    stage.answer = () => ({ body: Buffer.alloc(12 * 1024 * 1024, 'x') });
    const socket = await open('GET /api/v1/impatient HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer TOKEN\r\n\r\n');
    await once(socket, 'data');
    socket.pause();
    await until(async () => {
      const { text } = await stage.send('GET', '//metrics', { token: null });
      return text.includes('erp_http_connections_cut_total{reason="stalled"} 1\n');
    });
    // The client notices the reset when it reads again.
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.resume();
    await closed;
  });
});
