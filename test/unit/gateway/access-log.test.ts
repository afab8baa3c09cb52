import assert from 'node:assert/strict';
import { AccessLog } from '../../../services/gateway/access-log.ts';
import type { Exchange } from '../../../services/gateway/exchange.ts';

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
  it('has a line for every request, but for those that a limit refused only some in a second, and their number', async () => {
    let text = '';
    const log = new AccessLog('node', (more) => (text += more));
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
    await new Promise((resolve) => setTimeout(resolve, 1_400));
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
});
