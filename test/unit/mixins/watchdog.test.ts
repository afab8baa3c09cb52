/** The watchdog of the event loop: it notices stalls and names the work that made them. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { Metrics } from '../../../mixins/metrics/metrics.ts';
import { RecentMaximum } from '../../../mixins/metrics/recent-maximum.ts';
import { STALL_MS, type Stall, TICK_MS, Watchdog } from '../../../mixins/watchdog/watchdog.ts';
import { mark, workOn, workWithin } from '../../../mixins/watchdog/work.ts';
import { exampleNamed } from '../../support/examples.ts';
import { until } from '../../support/until.ts';

const blockFor = (ms: number): void => {
  const end = performance.now() + ms;
  while (performance.now() < end);
};

describe('the watchdog of the event loop', () => {
  /** A machine that is short of processor time adds stalls that name no operation. */
  let stalls: Stall[];
  const named = (): Stall[] => stalls.filter(({ operation }) => operation !== 'unknown');
  let watchdog: Watchdog;

  beforeEach(() => {
    stalls = [];
    watchdog = new Watchdog((stall) => stalls.push(stall));
  });
  afterEach(() => watchdog.stop());

  it('names the operation that blocked the loop, also after an await', async () => {
    const heavy = workOn({ label: 'data.records.list', requestId: 'req_1' }, async () => {
      await pause(30);
      mark();
      blockFor(300);
    });
    const light = workOn({ label: 'me.identity.get', requestId: 'req_2' }, async () => {
      await pause(30);
      mark();
    });
    await Promise.all([heavy, light]);
    await until(() => named().length > 0);
    assert.equal(named().length, 1);
    const [{ operation, requestId, ms, cpuMs }] = named() as [Stall];
    const { msg: _, ...documented } = JSON.parse(exampleNamed('docs/reference/operations.md#stalls'));
    assert.deepEqual(Object.keys(named()[0]!), Object.keys(documented));
    assert.deepEqual([operation, requestId], ['data.records.list', 'req_1']);
    assert.ok(ms >= 250 && cpuMs > 0, `${ms} ms, ${cpuMs} ms of processor time`);
  });

  it('keeps the name of the request for the actions that it calls', async () => {
    await workOn({ label: 'metadata.deployments.create', requestId: 'req_3' }, () =>
      workWithin({ label: 'metadata.deploy', requestId: 'req_3' }, () => blockFor(250)),
    );
    await until(() => named().length > 0);
    assert.equal(named()[0]?.operation, 'metadata.deployments.create');
  });

  it('names no operation when no known one was running', async () => {
    blockFor(260);
    await until(() => stalls.length > 0);
    assert.deepEqual([stalls[0]?.operation, stalls[0]?.requestId], ['unknown', null]);
  });

  it('ignores short work', async () => {
    // A clock of its own: a machine that is short of processor time may pause the process for as long as a stall.
    const found: Stall[] = [];
    const clock = { ms: 0, reads: 0 };
    const now = (): number => {
      clock.reads++;
      return clock.ms;
    };
    const own = new Watchdog((stall) => found.push(stall), { now, cpuMs: () => clock.ms });
    /** Lets so much time pass, and the watchdog look at it. */
    const afterMs = async (ms: number): Promise<void> => {
      const { reads } = clock;
      clock.ms += ms;
      while (clock.reads === reads) await pause(5);
    };
    try {
      for (const ms of [20, 60, TICK_MS + STALL_MS - 1, TICK_MS + STALL_MS - 1]) await afterMs(ms);
      assert.deepEqual(found, []);
      await afterMs(TICK_MS + STALL_MS);
      assert.deepEqual(
        found.map(({ ms }) => ms),
        [STALL_MS],
      );
    } finally {
      own.stop();
    }
  });

  it('counts by operation, and two readers see the same', async () => {
    const metrics = new Metrics();
    watchdog.register(metrics);
    workOn({ label: 'metadata.validate', requestId: null }, () => blockFor(300));
    await until(() => named().length > 0);
    const text = await metrics.text();
    assert.match(text, /^erp_event_loop_stalls_total\{operation="metadata.validate"\} 1$/m);
    assert.match(text, /^erp_event_loop_stall_seconds_total\{operation="metadata.validate"\} \d/m);
    const longest = /^erp_event_loop_longest_turn_seconds\{clock="wall"\} (\S+)$/m;
    const late = (of: string): number => {
      const [within, all] = [/_bucket\{le="0\.2"\} (\d+)$/m, /^erp_event_loop_delay_seconds_count (\d+)$/m].map(
        (pattern) => Number(pattern.exec(of)?.[1]),
      );
      return all! - within!;
    };
    const [, first] = longest.exec(text) ?? [];
    assert.ok(Number(first) >= 0.25, `${first} s`);
    const again = await metrics.text();
    assert.ok(Number(longest.exec(again)?.[1]) >= Number(first));
    assert.ok(late(text) >= 1, 'a delay of 300 ms');
    assert.ok(late(again) >= late(text));
  });

  it('forgets the longest turn after one to two minutes', () => {
    const longest = new RecentMaximum(0);
    longest.note(1_000, 150);
    longest.note(59_000, 1);
    assert.equal(longest.read(59_500), 150);
    longest.note(60_000, 2);
    assert.equal(longest.read(119_000), 150);
    longest.note(120_000, 1);
    assert.equal(longest.read(121_000), 2);
    assert.equal(longest.read(400_000), 0, 'nothing was noted since');
  });
});
