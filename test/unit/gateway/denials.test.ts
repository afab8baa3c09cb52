import assert from 'node:assert/strict';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { OF_ORIGIN_MAX, OF_TENANT_MAX, type Suppressed } from '../../../mixins/bounded-denials.ts';
import type { Call } from '../../../services/gateway/pipeline/call.ts';
import { type DenialSink, Denials } from '../../../services/gateway/pipeline/denials.ts';

const REFUSED = new PlatformError('SCOPE_INSUFFICIENT', 'The access token lacks the scope data:write.');
const EXCHANGE = {
  routeIfKnown: { operation: { operationId: 'data.records.create', mutation: true }, parameterNames: [] },
  pathValues: [],
  headers: {},
} as unknown as Call;

describe('audit entries of refusals', () => {
  let now: number;
  let entries: { tenantId: string; userId: string }[];
  let suppressed: Suppressed[];
  let sink: DenialSink;
  let denials: Denials;
  beforeEach(() => {
    now = 0;
    entries = [];
    suppressed = [];
    sink = {
      deny: async (_denial, { tenantId, userId }) => void entries.push({ tenantId, userId }),
      suppress: async (one) => void suppressed.push(one),
    };
    denials = new Denials({ deny: (...all) => sink.deny(...all), suppress: (one) => sink.suppress(one) }, () => now);
  });
  /** Lets what is under way end. */
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  const flood = async (count: number, tenantId: string, user: (i: number) => string): Promise<void> => {
    for (let i = 0; i < count; i++) {
      denials.note(EXCHANGE, REFUSED, { tenantId, userId: user(i) } as RequestContext);
      if (i % 10 === 9) await settle();
    }
    await settle();
  };
  const counts = (): [string, number][] => suppressed.map(({ tenantId, count }) => [tenantId, count]);

  it('are limited per user and minute; the rest is counted in one entry', async () => {
    await flood(100, 'a', () => 'mallory');
    assert.equal(entries.length, OF_ORIGIN_MAX);
    await flood(5, 'a', () => 'sam');
    assert.equal(entries.length, OF_ORIGIN_MAX + 5, 'another user of the tenant has entries');
    now = 59_999;
    denials.sweep();
    assert.deepEqual(counts(), []);
    now = 60_000;
    denials.sweep();
    await settle();
    assert.deepEqual(counts(), [['a', 100 - OF_ORIGIN_MAX]]);
    await flood(1, 'a', () => 'mallory');
    assert.equal(entries.length, OF_ORIGIN_MAX + 6, 'a new minute');
    now = 120_000;
    denials.sweep();
    await settle();
    assert.equal(suppressed.length, 1, 'nothing to tell of a minute in which nothing was left out');
  });

  it('of one tenant never displace those of another', async () => {
    await flood(2_000, 'a', (i) => `user-${i}`);
    assert.equal(entries.length, OF_TENANT_MAX);
    await flood(OF_ORIGIN_MAX, 'b', () => 'eve');
    assert.equal(entries.filter(({ tenantId }) => tenantId === 'b').length, OF_ORIGIN_MAX);
    await denials.close();
    assert.deepEqual(counts(), [['a', 2_000 - OF_TENANT_MAX]], 'a stop ends the minute');
  });

  it('are counted when they cannot be stored, and the count waits for the database', async () => {
    sink.deny = () => Promise.reject(new Error('away'));
    sink.suppress = () => Promise.reject(new Error('away'));
    await flood(10, 'a', () => 'sam');
    now += 60_000;
    denials.sweep();
    await settle();
    sink.suppress = async (one) => void suppressed.push(one);
    now += 60_000;
    denials.sweep();
    await settle();
    assert.deepEqual(counts(), [['a', 10]]);
  });

  it('have a bounded number of calls in flight per tenant', async () => {
    let underWay = 0;
    sink.deny = () => {
      underWay++;
      return new Promise(() => {});
    };
    for (let user = 0; user < 100; user++) await flood(10, 'a', () => `user-${user}`);
    assert.equal(underWay, 20);
    await denials.close();
    assert.deepEqual(counts(), [['a', 980]]);
  });

  it('are evicted, with their count recorded, beyond ten thousand tenants', async () => {
    await flood(OF_ORIGIN_MAX + 1, 'first', () => 'sam');
    for (let i = 0; i < 10_000; i++) await flood(1, `t${i}`, () => 'sam');
    assert.deepEqual(counts(), [['first', 1]]);
  }).timeout(20_000);
});
