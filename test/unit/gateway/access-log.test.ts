import assert from 'node:assert/strict';
import { AccessLog } from '../../../services/gateway/edge/answered.ts';
import type { Exchange } from '../../../services/gateway/edge/exchange.ts';
import { until } from '../../support/until.ts';

const EXCHANGE = {
  session: null,
  clientRequestId: null,
  startedAt: 0,
  requestId: 'req_1',
  label: 'x',
  method: 'GET',
  ip: '::1',
};

describe('the access log', () => {
  it('has a line for every request; rate-limited ones are sampled per second and counted', async () => {
    let text = '';
    const log = new AccessLog('node', 'info', (more) => (text += more));
    const add = (status: number, count: number): void => {
      for (let i = 0; i < count; i++) log.add(EXCHANGE as unknown as Exchange, status, 1, null);
    };
    const lines = (): { status: number; count?: number }[] =>
      text
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line));
    add(200, 700);
    add(429, 10_000);
    await until(() => lines().some(({ count }) => count !== undefined));
    const refused = lines().filter(({ status }) => status === 429);
    assert.equal(lines().length - refused.length, 700);
    assert.deepEqual(
      refused.slice(-1).map(({ count }) => count),
      [9_950],
    );
    assert.equal(refused.length, 51);
    add(429, 60);
    log.flush();
    assert.equal(lines().at(-1)!.count, 10, 'a stop tells the rest');
  });

  const written = (logLevel: string, statuses: readonly number[], more: object = {}): Record<string, unknown>[] => {
    let text = '';
    const log = new AccessLog('node', logLevel, (lines) => (text += lines));
    for (const status of statuses) log.add({ ...EXCHANGE, ...more } as unknown as Exchange, status, 1, null);
    log.flush();
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  };
  const STATUSES = [200, 404, 429, 499, 500, 503];

  it('logs platform failures at their own levels, respecting LOG_LEVEL', () => {
    const levels = (logLevel: string): unknown[] => written(logLevel, STATUSES).map(({ level }) => level);
    assert.deepEqual(levels('info'), [30, 30, 30, 30, 50, 40]);
    assert.deepEqual(levels('warn'), [50, 40]);
    assert.deepEqual(levels('error'), [50]);
    assert.deepEqual(levels('fatal'), []);
  });

  it('limits lines of failed requests per second, and counts the rest by status', () => {
    const lines = written('info', [...Array(80).fill(503), ...Array(60).fill(429)]);
    assert.equal(lines.filter(({ msg }) => msg === 'request').length, 100);
    assert.deepEqual(
      lines.filter(({ count }) => count !== undefined).map(({ status, count }) => [status, count]),
      [
        [429, 10],
        [503, 30],
      ],
    );
  });

  it('names the trace of a request', () => {
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    assert.equal(written('info', [200], { traceparent })[0]!['traceparent'], traceparent);
  });
});
