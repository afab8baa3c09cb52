import assert from 'node:assert/strict';
import fc from 'fast-check';
import { cyclesOf } from '../../../services/metadata/kinds/cycles.ts';

describe('metadata: cycles among names', () => {
  it('are found exactly where a path returns to its start', () => {
    const ways = fc.array(fc.tuple(fc.integer({ min: 0, max: 7 }), fc.integer({ min: 0, max: 9 })), { maxLength: 16 });
    fc.assert(
      fc.property(ways, (pairs) => {
        const next = (name: string): string[] =>
          pairs.filter(([from]) => String(from) === name).map(([, to]) => String(to));
        const names = Array.from({ length: 8 }, (_, n) => String(n));
        const reached = (from: string): Set<string> => {
          const seen = new Set<string>();
          for (const open = next(from); open.length > 0; ) {
            const at = open.pop()!;
            if (!seen.has(at)) open.push(...next(at));
            seen.add(at);
          }
          return seen;
        };
        const found = cyclesOf(names, next);
        for (const one of names) {
          assert.equal(found.has(one), reached(one).has(one), one);
          for (const other of names)
            if (found.has(one) && found.has(other))
              assert.equal(found.get(one) === found.get(other), reached(one).has(other) && reached(other).has(one));
        }
      }),
      { numRuns: 500 },
    );
  });

  it('are searched along each path once', () => {
    let asked = 0;
    const names = Array.from({ length: 1_000 }, (_, n) => String(n));
    const next = (name: string): string[] => {
      asked++;
      return names.slice(Number(name) + 1);
    };
    assert.equal(cyclesOf(names, next).size, 0);
    assert.ok(asked <= 2 * names.length, String(asked));
  });
});
