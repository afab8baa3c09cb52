/** Results of widgets in memory: whose they are, how old, and how many. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { WidgetResults } from '../../../services/analytics/widgets/results.ts';

const result = (tenantId: string, json = '', computedAtMs = performance.now()) => ({ tenantId, json, computedAtMs });

describe('cached results of widgets', () => {
  it('are found until they expire', () => {
    const results = new WidgetResults({ maxBytes: 10_000, tenantMaxBytes: 10_000 });
    results.keep('a', result('one', 'x', performance.now() - 5_000));
    assert.equal(results.find('a', 60)?.json, 'x');
    assert.equal(results.find('a', 5), null);
    assert.equal(results.find('b', 60), null);
    assert.deepEqual([results.hits, results.misses], [1, 2]);
  });

  it('of a tenant evict those of the same tenant first, least recently used first', () => {
    const results = new WidgetResults({ maxBytes: 100_000, tenantMaxBytes: 2_000 });
    const text = 'x'.repeat(200);
    results.keep('other', result('two', text));
    for (const key of ['a', 'b']) results.keep(key, result('one', text));
    assert.ok(results.find('a', 60));
    results.keep('c', result('one', text));
    assert.deepEqual(
      ['a', 'b', 'c', 'other'].map((key) => results.find(key, 60) !== null),
      [true, false, true, true],
    );
    results.keep('huge', result('one', 'x'.repeat(2_000)));
    assert.equal(results.find('huge', 60), null, 'more than a tenant may have');
    assert.ok(results.find('a', 60), 'and nobody made room for it');
  });

  it('never exceed the limit per tenant and in total', () => {
    const step = fc.record({
      key: fc.nat(20),
      tenant: fc.nat(3),
      length: fc.nat(900),
      finds: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const results = new WidgetResults({ maxBytes: 6_000, tenantMaxBytes: 2_500 });
        for (const { key, tenant, length, finds } of steps) {
          const name = `${tenant} ${key}`;
          if (finds) results.find(name, 60);
          else results.keep(name, result(String(tenant), 'x'.repeat(length)));
          const tenants = [0, 1, 2, 3].map((one) => results.bytesOfTenant(String(one)));
          assert.ok(tenants.every((bytes) => bytes <= 2_500));
          assert.equal(
            tenants.reduce((sum, bytes) => sum + bytes, 0),
            results.bytes,
          );
          assert.ok(results.bytes <= 6_000);
        }
      }),
    );
  });
});
