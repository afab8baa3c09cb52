/** The pure part of duplicate rules: search keys of candidates, and the binding of a confirmation. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { FieldTypeName, MatchMethod } from '../../../lib/schema/snapshot.ts';
import { openConfirmation, sealConfirmation } from '../../../services/data/write/confirmation.ts';
import { type MatchItem, searchBy, weightOf } from '../../../services/data/write/duplicate-rules.ts';
import type { Write } from '../../../services/data/write/write.ts';
import { aField } from '../../support/snapshots.ts';
import { atTime } from '../../support/time.ts';

describe('candidate search of a duplicate rule', () => {
  const item = fc.record({
    type: fc.constantFrom<FieldTypeName>('text', 'boolean', 'picklist', 'reference', 'integer'),
    method: fc.constantFrom<MatchMethod>('exact', 'normalized', 'fuzzy'),
    weight: fc.oneof(fc.double({ min: 0.01, max: 10, noNaN: true }), fc.constantFrom(0.001, 1_000)),
    present: fc.boolean(),
    similarity: fc.double({ min: 0, max: 1, noNaN: true }),
  });

  it('finds every record that matches', () => {
    const seed = Date.now();
    fc.assert(
      fc.property(
        fc.array(item, { minLength: 1, maxLength: 6 }),
        fc.double({ min: 0.01, max: 1, noNaN: true }),
        (given, threshold) => {
          const items = given.map((one, index) => ({
            field: aField(`F${index}__c`, one.type),
            method: one.method,
            weight: one.weight,
            // Equal or not, unless it is similarity that is compared.
            similarity: !one.present ? 0 : one.method === 'fuzzy' ? one.similarity : Math.round(one.similarity),
          }));
          const present = items.filter((_, index) => given[index]!.present);
          const score = items.reduce((sum, one) => sum + one.weight * one.similarity, 0) / weightOf(items);
          const search = searchBy(items, present, threshold);
          if (search) assert.ok(search.equal.length + search.similar.length > 0, 'there is something to look by');
          if (score < threshold) return;
          assert.ok(search, 'it can match, so it is looked for');
          const found =
            search.equal.some((one) => one.similarity === 1) ||
            search.similar.some((one) => one.similarity >= search.similarity - 1e-9);
          assert.ok(found, JSON.stringify({ score, threshold, search }));
          assert.ok(
            search.allEqual.every((one) => one.similarity === 1),
            'equal in all that it must be',
          );
          assert.ok(
            search.allSimilar.every((one) => one.similarity >= search.similarity - 1e-9),
            'and as similar',
          );
        },
      ),
      { seed, numRuns: 2_000 },
    );
  });

  const of = (type: FieldTypeName, method: MatchMethod, weight = 1): MatchItem => ({
    field: aField(`${type}_${method}`, type),
    method,
    weight,
  });

  it('omits expensive keys that cannot match alone', () => {
    const [name, code, open] = [of('text', 'fuzzy', 2), of('text', 'exact'), of('boolean', 'exact')];
    const all = [name, code, open];
    const none = { allEqual: [], allSimilar: [] };
    assert.deepEqual(searchBy(all, all, 1), {
      equal: [code],
      similar: [],
      allEqual: [code, open],
      allSimilar: [name],
      similarity: 1,
    });
    assert.deepEqual(searchBy(all, all, 0.6), {
      ...none,
      equal: [code],
      similar: [name],
      similarity: (0.6 - 0.25) / 0.5,
    });
    assert.deepEqual(searchBy([name], [name], 0.8), { ...none, equal: [], similar: [name], similarity: 0.8 });
    // Name and city: similar names are looked for among those of the city.
    const [long, city] = [of('text', 'fuzzy', 3), of('text', 'normalized')];
    const { similarity, ...by } = searchBy([long, city], [long, city], 0.85)!;
    assert.deepEqual(by, { equal: [city], similar: [], allEqual: [city], allSimilar: [long] });
    assert.ok(Math.abs(similarity - 0.8) < 1e-9, String(similarity));
  });

  it('uses a key that reaches the threshold within rounding, however small its weight', () => {
    const items = [of('text', 'fuzzy', 0.001), of('boolean', 'exact', 0.001)];
    assert.deepEqual(searchBy(items, items.slice(0, 1), 0.5 + 5e-7), {
      equal: [],
      similar: items.slice(0, 1),
      allEqual: [],
      allSimilar: [],
      similarity: 1,
    });
    assert.equal(searchBy(items, items.slice(0, 1), 0.501), null);
  });

  it('is skipped when too few fields have a value', () => {
    const [name, code] = [of('text', 'fuzzy'), of('text', 'exact')];
    assert.equal(searchBy([name, code], [name], 0.6), null);
    assert.notEqual(searchBy([name, code], [name], 0.5), null);
  });
});

describe('a duplicate confirmation', () => {
  const KEY = new Uint8Array(32).fill(7);
  const SHOWN = [
    { ruleApiName: 'Account.A', ids: ['1', '2'], hiddenMatchCount: 0 },
    { ruleApiName: 'Account.B', ids: [], hiddenMatchCount: 2 },
  ];

  interface Changes {
    key?: Uint8Array;
    request?: Record<string, string>;
    call?: Record<string, unknown>;
    object?: string;
    id?: string;
    recordVersion?: number;
  }
  const write = ({ key = KEY, request, call, object = 'Account', id = 'r1', recordVersion = 3 }: Changes = {}): Write =>
    ({
      deps: { sealingKeys: [key] },
      unit: { request: { tenantId: 't', userId: 'u', clientId: 'c', ...request }, key: { part: false } },
      call: {
        operationId: 'data.records.update',
        path: { objectApiName: 'Account', id: 'r1' },
        body: { name: 'Acme', city: 'Ulm' },
        ...call,
      },
      object: { apiName: object },
      id,
      recordVersion,
    }) as unknown as Write;

  const refused = (changed: Write, token: string, what: string): void =>
    assert.throws(
      () => openConfirmation(changed, token),
      (error) => error instanceof PlatformError && error.code === 'CONFIRMATION_TOKEN_INVALID' && error.status === 400,
      what,
    );

  it('is valid for its own request only', () => {
    const { token } = sealConfirmation(write(), SHOWN);
    assert.ok(openConfirmation(write(), token));
    assert.ok(
      openConfirmation(write({ call: { body: { city: 'Ulm', name: 'Acme' } } }), token),
      'members in any order',
    );
    const others: Record<string, Changes> = {
      key: { key: new Uint8Array(32) },
      tenant: { request: { tenantId: 'x' } },
      user: { request: { userId: 'x' } },
      client: { request: { clientId: 'x' } },
      operation: { call: { operationId: 'data.records.create' } },
      address: { call: { path: { objectApiName: 'Account', id: 'r2' } } },
      body: { call: { body: { name: 'Acme', city: 'Bonn' } } },
      object: { object: 'Contact' },
      record: { id: 'r2' },
      'a new record': { recordVersion: 0 },
    };
    for (const [what, changes] of Object.entries(others)) refused(write(changes), token, what);
  });

  it('does not bind a new record to the id of the first attempt', () => {
    const { token } = sealConfirmation(write({ recordVersion: 0, id: 'r1' }), SHOWN);
    assert.ok(openConfirmation(write({ recordVersion: 0, id: 'r9' }), token));
  });

  it('ends after 15 minutes', () => {
    const { token, expiresAt } = sealConfirmation(write(), SHOWN);
    atTime(expiresAt.getTime() - 1_000, () => assert.ok(openConfirmation(write(), token)));
    atTime(expiresAt.getTime(), () => refused(write(), token, 'expired'));
  });

  it('covers the shown duplicates or fewer, and no others', () => {
    const { covers } = openConfirmation(write(), sealConfirmation(write(), SHOWN).token);
    assert.equal(covers(SHOWN), true);
    assert.equal(covers([]), true);
    assert.equal(covers([{ ruleApiName: 'Account.A', ids: ['2'], hiddenMatchCount: 0 }]), true);
    assert.equal(covers([{ ruleApiName: 'Account.A', ids: ['3'], hiddenMatchCount: 0 }]), false, 'a new match');
    assert.equal(covers([{ ruleApiName: 'Account.B', ids: ['1'], hiddenMatchCount: 0 }]), false, 'of another rule');
    assert.equal(covers([{ ruleApiName: 'Account.C', ids: [], hiddenMatchCount: 0 }]), false, 'another rule');
    assert.equal(covers([{ ruleApiName: 'Account.B', ids: [], hiddenMatchCount: 3 }]), false, 'one more hidden match');
  });

  it('includes the duplicates of an earlier one for the same request', () => {
    const earlier = openConfirmation(write(), sealConfirmation(write(), SHOWN).token);
    const made = [{ ruleApiName: 'Contact.D', ids: ['7'], hiddenMatchCount: 0 }];
    const { covers } = openConfirmation(write(), sealConfirmation(write(), made, earlier).token);
    assert.equal(covers([...SHOWN, ...made]), true);
    assert.equal(covers([{ ruleApiName: 'Account.A', ids: ['3'], hiddenMatchCount: 0 }]), false);
  });

  it('does not grow with hidden duplicates', () => {
    const length = (ids: string[], hiddenMatchCount: number): number =>
      sealConfirmation(write(), [{ ruleApiName: 'Account.A', ids, hiddenMatchCount }]).token.length;
    assert.equal(length([], 0), length([], 0));
    assert.ok(
      length(
        Array.from({ length: 10 }, (_, i) => String(i)),
        0,
      ) < 500,
      'fits every header',
    );
  });
});
