import assert from 'node:assert/strict';
import { FAULT_KINDS, type FaultKind, schedule } from '../../storm/schedule.ts';

const of = (seed: number, more: { kinds?: readonly FaultKind[]; rate?: number } = {}) =>
  schedule({ seed, ms: 3_600_000, kinds: FAULT_KINDS, rate: 4, processes: ['data-1', 'data-2'], ...more });

describe('the faults of a storm', () => {
  it('depend only on the seed', () => {
    assert.deepEqual(of(42), of(42));
    assert.notDeepEqual(of(42), of(43));
  });

  it('are ordered by time, have about the requested rate, and leave calm periods', () => {
    const faults = of(7);
    // Four a minute, but for the 25 seconds of every two minutes that are calm.
    assert.ok(faults.length > 120 && faults.length < 260, `${faults.length} faults in an hour`);
    for (const [i, { at }] of faults.entries()) {
      assert.ok(i === 0 || at >= faults[i - 1]!.at);
      assert.ok(at < 3_600_000 && at % 120_000 <= 95_000, `a fault at ${at} ms`);
    }
  });

  it('are of exactly the requested kinds', () => {
    assert.deepEqual([...new Set(of(1).map(({ kind }) => kind))].sort(), [...FAULT_KINDS].sort());
    const some = of(1, { kinds: ['kill', 'split'], rate: 10 });
    assert.deepEqual([...new Set(some.map(({ kind }) => kind))].sort(), ['kill', 'split']);
    for (const { kind, target, ms } of some) {
      assert.match(target, kind === 'kill' ? /^data-[12]$/ : /^data-[12]\/(database|bus)$/);
      assert.ok(ms >= 0 && ms <= 30_000);
    }
  });
});
