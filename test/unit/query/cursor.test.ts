import assert from 'node:assert/strict';
import { accessFor } from '../../../lib/access/rules.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { CURSOR_VALID_MS, continuePlan, sealCursor } from '../../../lib/query/cursor.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { planList } from '../../../lib/query/plan.ts';
import type { ListRequest, Plan, RawListQuery } from '../../../lib/query/types.ts';
import type { Seal } from '../../../lib/values/sealed.ts';
import { aField, anObject, aPrincipal, aSnapshot } from '../../support/snapshots.ts';

const order = anObject('Order', [aField('Amount', 'decimal')]);
const other = anObject('Other', [aField('Amount', 'decimal')]);
const snapshot = aSnapshot([order, other]);
const view = { access: accessFor(snapshot, aPrincipal()), snapshot, now: 0, timezone: 'UTC' };
const seal: Seal = {
  keys: [Buffer.alloc(32, 1)],
  now: Date.parse('2026-11-21T00:00:00Z'),
  tenantId: 'tenant',
  userId: 'user',
  clientId: 'client',
};
const KEYS = ['12.50', null, '01939f6e-0000-7000-8000-000000000001'];
const QUERY: RawListQuery = {
  take: 10,
  where: { name: 'a' },
  filters: { logic: 'and', conditions: [{ id: 'c', field: 'Amount', operator: 'gt', value: 1 }] },
  sort: [{ id: 'Amount', desc: true }, { id: 'name' }],
  search: 'abc',
};

const planned = (raw: RawListQuery, object = order, source: 'query' | 'body' = 'body'): [Plan, ListRequest] => {
  const request = parseListQuery(raw, source);
  return [planList(request, object, view), request];
};
const cursorFor = (raw: RawListQuery, by = seal): string => {
  const [plan, request] = planned(raw);
  return sealCursor(KEYS, plan, request, by);
};
const resume = (raw: RawListQuery, by = seal, object = order, source: 'query' | 'body' = 'body'): Plan => {
  const [plan, request] = planned(raw, object, source);
  return continuePlan(plan, request, by);
};
const refusal = (work: () => unknown): PlatformError => {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof PlatformError);
    assert.equal(error.status, 400);
    return error;
  }
  return assert.fail('The cursor was accepted.');
};

describe('a cursor', () => {
  it('restores the sort values of the last record, nulls included', () => {
    assert.deepEqual(resume({ ...QUERY, cursor: cursorFor(QUERY) }).after, KEYS);
  });

  it('is interchangeable between query string and body', () => {
    assert.deepEqual(resume({ ...QUERY, cursor: cursorFor(QUERY) }, seal, order, 'query').after, KEYS);
  });

  it('is not needed for the first page', () => {
    assert.equal(resume(QUERY).after, null);
  });

  it('differs each time and reveals nothing of its content', () => {
    const [a, b] = [cursorFor(QUERY), cursorFor(QUERY)];
    assert.match(a, /^c1\.[A-Za-z0-9_-]+$/);
    assert.notEqual(a, b);
    assert.ok(!Buffer.from(a.slice(3), 'base64url').includes('12.50'));
  });

  it('is valid for 24 hours', () => {
    const cursor = cursorFor(QUERY);
    const at = (ms: number): Seal => ({ ...seal, now: seal.now + ms });
    assert.ok(resume({ ...QUERY, cursor }, at(CURSOR_VALID_MS - 1)).after);
    assert.equal(refusal(() => resume({ ...QUERY, cursor }, at(CURSOR_VALID_MS))).code, 'CURSOR_EXPIRED');
  });

  it('is refused for another tenant, user, client or key', () => {
    const cursor = cursorFor(QUERY);
    const others: Partial<Seal>[] = [
      { tenantId: 'x' },
      { userId: 'x' },
      { clientId: 'x' },
      { keys: [Buffer.alloc(32, 2)] },
    ];
    for (const change of others)
      assert.equal(refusal(() => resume({ ...QUERY, cursor }, { ...seal, ...change })).code, 'CURSOR_INVALID');
  });

  it('is refused when any character of it is altered, added or missing', () => {
    const cursor = cursorFor(QUERY);
    for (let i = 0; i < cursor.length; i++) {
      const altered = cursor.slice(0, i) + (cursor[i] === 'A' ? 'B' : 'A') + cursor.slice(i + 1);
      assert.equal(refusal(() => resume({ ...QUERY, cursor: altered })).code, 'CURSOR_INVALID', `at ${i}`);
    }
    for (const altered of [`${cursor}A`, cursor.slice(0, -1), '', 'c1.', 'c1.AAAA', 'c2.x', `${cursor}=`, ' '])
      assert.equal(refusal(() => resume({ ...QUERY, cursor: altered })).code, 'CURSOR_INVALID', altered);
  });

  const changes: [name: string, change: RawListQuery][] = [
    ['take', { take: 11 }],
    ['fields', { fields: 'id' }],
    ['where', { where: { name: 'b' } }],
    ['whereIn', { whereIn: { name: ['b'] } }],
    ['filters', { filters: { logic: 'or', conditions: [{ id: 'c', field: 'Amount', operator: 'gt', value: 1 }] } }],
    ['sort', { sort: [{ id: 'Amount', desc: false }] }],
    ['orderBy', { sort: undefined, orderBy: 'Amount' }],
    ['search', { search: 'abcd' }],
    ['searchFields', { searchFields: 'name' }],
  ];
  for (const [name, change] of changes)
    it(`belongs to its query: a changed ${name} is named`, () => {
      const error = refusal(() => resume({ ...QUERY, ...change, cursor: cursorFor(QUERY) }));
      assert.equal(error.code, 'CURSOR_QUERY_MISMATCH');
      assert.deepEqual(error.details, { changed: [name] });
    });

  it('belongs to its object', () => {
    const error = refusal(() => resume({ ...QUERY, cursor: cursorFor(QUERY) }, seal, other));
    assert.deepEqual(error.details, { changed: ['objectApiName'] });
  });

  it('allows total and ETags on some pages only', () => {
    assert.ok(resume({ ...QUERY, includeTotal: true, includeEtag: true, cursor: cursorFor(QUERY) }).after);
  });

  it('is refused after a change of the sort field’s type', () => {
    const cursor = cursorFor(QUERY);
    const changed = anObject('Order', [aField('Amount', 'integer')]);
    const now = aSnapshot([changed, other]);
    const request = parseListQuery({ ...QUERY, cursor }, 'body');
    const plan = planList(request, changed, { ...view, snapshot: now, access: accessFor(now, aPrincipal()) });
    assert.equal(refusal(() => continuePlan(plan, request, seal)).code, 'CURSOR_INVALID');
  });
});
