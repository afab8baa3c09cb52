import assert from 'node:assert/strict';
import { Meter } from '../../../services/gateway/pipeline/meter.ts';

const POLICY = { name: 'connection', key: 'c', limit: 3_000, windowSeconds: 60 } as const;

describe('A rate counter on a gateway', () => {
  it('owes at most the units of one window, also while disconnected', () => {
    const meter = new Meter(POLICY, 0);
    meter.alone(1, 0);
    for (let i = 0; i < 50; i++) meter.owe(2_475, 0);
    assert.equal(meter.has(1, 59_000), false);
    assert.equal(meter.has(1, 61_000), true);
  });

  it('keeps its debt when disconnected', () => {
    const meter = new Meter(POLICY, 0);
    for (let i = 0; i < 50; i++) meter.owe(2_475, 0);
    meter.ownerRemaining = 0;
    meter.alone(2, 0);
    assert.equal(meter.has(1, 59_000), false);
    assert.equal(meter.has(1, 61_000), true);
  });

  it('pays debt from a disconnection with the next lease', () => {
    const meter = new Meter(POLICY, 0);
    meter.alone(1, 0);
    meter.owe(3_500, 0);
    meter.granted({ key: 'c', granted: 600, remaining: 1_000, resetSeconds: 40, retryAfterSeconds: 0 }, 600, 1);
    assert.equal(meter.held, 100);
  });
});
