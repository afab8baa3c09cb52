/** Streams of server-sent events: what they show, what wakes them, and what ends them. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { LIMITS } from '../../../lib/limits.ts';
import { until } from '../../support/until.ts';
import { type StreamedStage, startStreamedStage } from './streamed-service.ts';

interface Reader {
  readonly request: ClientRequest;
  readonly response: IncomingMessage;
  text: string;
  ended: boolean;
  /** In the time of performance.now(). */
  readonly beganAt: number;
  endedAt: number;
}

const QUIET = 1_000;
/** Of a stream on both sides of its connection, which are in one process here. */
const MEMORY_MAX_BYTES = 96 * 1024;

describe('A stream of events', function () {
  this.timeout(90_000);
  let streamed: StreamedStage;
  const readers: Reader[] = [];
  before(async () => {
    // The connections of one network are the proxy's to limit.
    streamed = await startStreamedStage({ TRUSTED_PROXIES: '1', CONCURRENCY: '5', RATE_ANONYMOUS_REQUESTS: '1000000' });
  });
  after(() => streamed.stage.stop());
  beforeEach(() => {
    streamed.log.length = 0;
    streamed.cursors.length = 0;
    streamed.pageMs = 0;
    streamed.stage.grant = {};
  });
  afterEach(async () => {
    for (const { request } of readers.splice(0)) request.destroy();
    await until(async () => (await open()) === 0);
  });
  const open = async (): Promise<number> => {
    const { text } = await streamed.stage.send('GET', '//metrics', { token: null });
    return Number(/erp_http_streams\{kind="events"\} (\d+)/.exec(text)?.[1]);
  };
  const read = async (headers: Record<string, string> = {}, path = '/events/stream'): Promise<Reader> => {
    const beganAt = performance.now();
    const request = await streamed.open('GET', path, headers);
    request.on('error', () => {});
    request.end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const reader: Reader = { request, response, text: '', ended: false, beganAt, endedAt: 0 };
    response.on('error', () => {});
    response.on('data', (chunk) => {
      reader.text += chunk;
    });
    response.on('end', () => {
      reader.ended = true;
      reader.endedAt = performance.now();
    });
    readers.push(reader);
    return reader;
  };
  const bearer = async (claims: object): Promise<Record<string, string>> => ({
    authorization: `Bearer ${await streamed.stage.token({ ...claims })}`,
  });
  const wake = (...topics: string[]) => streamed.stage.broker.broadcast('gateway.streams.wake', { topics });
  const entries = ({ text }: Reader): string[] => text.split('\n\n').filter((entry) => entry.startsWith('id:'));

  it('begins with what is there, page by page', async () => {
    streamed.log.push('a', 'b', 'c');
    const reader = await read();
    assert.equal(reader.response.headers['content-type'], 'text/event-stream');
    assert.equal(reader.response.headers['cache-control'], 'no-store');
    await until(() => entries(reader).length === 3);
    assert.match(reader.text, /^retry: \d{4}\n\nid: 1\nevent: noted\ndata: \{"text":"a"\}\n\n/);
    assert.deepEqual(streamed.cursors, [undefined, '2']);
  });

  it('goes on where the client was', async () => {
    streamed.log.push('a', 'b', 'c');
    const reader = await read({ 'last-event-id': '2' });
    await until(() => entries(reader).length === 1);
    assert.match(reader.text, /id: 3\nevent: noted\ndata: \{"text":"c"\}/);
  });

  it('is woken by its topics alone', async () => {
    const reader = await read();
    await pause(1_100);
    streamed.log.push('a');
    await wake('others');
    await pause(1_500);
    assert.equal(entries(reader).length, 0);
    await wake('others', 'notes');
    await until(() => entries(reader).length === 1);
    for (let i = 0; i < 50; i++) await wake('notes');
    await pause(1_500);
    const seconds = (performance.now() - reader.beganAt) / 1_000;
    assert.ok(streamed.cursors.length <= 1 + seconds, `${streamed.cursors.length} reads in ${seconds} s`);
  });

  it('holds no place of the requests of its caller, but has so many of its own', async () => {
    for (let i = 0; i < LIMITS.event_streams_of_caller_max; i++) await read();
    await until(async () => (await open()) === LIMITS.event_streams_of_caller_max);
    const refused = await streamed.stage.send('GET', '/events/stream');
    assert.deepEqual([refused.status, refused.json.code], [429, 'CONCURRENCY_LIMIT_EXCEEDED']);
    assert.equal((await streamed.stage.send('HEAD', '/events/stream')).status, 200);
    const other = await read(await bearer({ sub: 'another-user' }));
    assert.equal(other.response.statusCode, 200);
  });

  it('ends at once with its grant', async () => {
    const reader = await read(await bearer({ grant_id: 'grant-that-ends' }));
    const stays = await read();
    await streamed.stage.broker.broadcast('auth.grants.revoked', { grantIds: ['grant-that-ends'] });
    await until(() => reader.ended);
    assert.match(reader.text, /retry: \d{4}\n\n$/);
    assert.equal(stays.ended, false);
  });

  it('ends with its access token, and after the time of the row', async () => {
    const token = await streamed.stage.token({}, { expiresIn: 3 });
    const reader = await read({ authorization: `Bearer ${token}` });
    const brief = await read({}, '/events/briefly');
    await until(() => brief.ended && reader.ended);
    const [ofToken, ofRow] = [reader, brief].map(({ beganAt, endedAt }) => endedAt - beganAt) as [number, number];
    // A token ends with a whole second.
    assert.ok(ofToken >= 1_900 && ofRow >= 900, `ended after ${ofToken} ms and ${ofRow} ms`);
  });

  it('says that it is alive, and ends when its user may not read any more', async () => {
    const reader = await read(await bearer({ grant_id: 'grant-suspended' }));
    await until(() => reader.text.includes(': keep-alive\n\n'), 40);
    streamed.stage.grant = { clientActive: false, active: false };
    await until(() => reader.ended, 40);
  });

  it('ends in the middle of a long replay when its user may not read any more', async () => {
    streamed.log.push(...Array(20_000).fill('x'));
    streamed.pageMs = 20;
    const reader = await read(await bearer({ grant_id: 'grant-ended-meanwhile' }));
    await until(() => entries(reader).length > 2);
    streamed.stage.grant = { clientActive: false, active: false };
    await until(() => reader.ended, 40);
    assert.ok(entries(reader).length < streamed.log.length);
  });

  it('leaves its place with its connection, also behind another one that is not at its end', async () => {
    const authorization = `Authorization: Bearer ${await streamed.stage.token()}`;
    const { port } = new URL(streamed.stage.baseUrl);
    for (const how of ['destroy', 'resetAndDestroy'] as const) {
      const socket = connect(Number(port), '127.0.0.1');
      socket.on('error', () => {});
      for (const path of ['/events/stream', '/events/stream', '/nope', '/events/stream'])
        socket.write(`GET /api/v1${path} HTTP/1.1\r\nHost: x\r\n${authorization}\r\n\r\n`);
      await until(async () => (await open()) === 3);
      socket[how]();
      await until(async () => (await open()) === 0);
      const { text } = await streamed.stage.send('GET', '//metrics', { token: null });
      assert.match(text, /^erp_http_unsent_bytes 0$/m);
      assert.match(text, /^erp_http_requests_in_flight 1$/m);
    }
  });

  it('pays for each page, and goes on when its caller has units again', async () => {
    const spent = await startStreamedStage({ RATE_CONNECTION_UNITS: '4' });
    try {
      spent.log.push(...Array(12).fill('x'));
      const request = await spent.open('GET', '/events/stream');
      request.on('error', () => {});
      request.end();
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      const pagesAt: number[] = [];
      response.on('data', (chunk: Buffer) => {
        if (chunk.includes('id: ')) pagesAt.push(performance.now());
      });
      await until(() => pagesAt.length >= 5, 40);
      // A unit comes back in a quarter of a minute.
      assert.equal(spent.cursors.length, 5);
      assert.ok(pagesAt[4]! - pagesAt[3]! > 10_000, `${pagesAt}`);
      request.destroy();
    } finally {
      await spent.stage.stop();
    }
  });

  it('takes little memory while it is quiet, and ends when the process drains', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const used = (): number => {
      collect();
      return process.memoryUsage().heapUsed + process.memoryUsage().external;
    };
    const before = used();
    for (let i = 0; i < QUIET; i++) {
      const tenant_id = `00000000-0000-7000-8000-00000000000${Math.floor(i / 400)}`;
      await read(await bearer({ tenant_id, sub: `user-${Math.floor(i / 10)}` }));
    }
    await until(async () => (await open()) === QUIET);
    let each = Number.POSITIVE_INFINITY;
    const isSmall = (): boolean => {
      each = Math.min(each, (used() - before) / QUIET);
      return each < MEMORY_MAX_BYTES;
    };
    await until(isSmall).catch(() => assert.fail(`${each} bytes for each stream`));
    console.log(`      ${(each / 1_024).toFixed(1)} KiB for each stream, with its client`);
    const all = [...readers];
    const began = performance.now();
    const stopped = streamed.stage.stop();
    await until(() => all.every(({ ended }) => ended));
    await stopped;
    console.log(`      all ended ${(performance.now() - began).toFixed(0)} ms after the process began to stop`);
    readers.length = 0;
    streamed = await startStreamedStage();
  });
});
