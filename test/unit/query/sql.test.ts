import assert from 'node:assert/strict';
import { accessFor } from '../../../lib/access/rules.ts';
import { constrain } from '../../../lib/query/constrain.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { planList } from '../../../lib/query/plan.ts';
import { type CompiledList, compileList, readPage } from '../../../lib/query/sql.ts';
import type { RawListQuery } from '../../../lib/query/types.ts';
import { aField, anObject, aPrincipal, aSnapshot } from '../../support/snapshots.ts';

const HOSTILE = `x" FROM pg_authid; --`;
const order = anObject('Order', [aField('Amount', 'decimal'), aField('Code', 'text'), aField(HOSTILE, 'text')]);
const snapshot = aSnapshot([order]);
const access = accessFor(snapshot, aPrincipal());
const view = { access, snapshot, now: 0, timezone: 'UTC' };
const compiled = (raw: RawListQuery): CompiledList =>
  compileList(constrain(planList(parseListQuery(raw, 'body'), order, view), access), 't_x');

describe('a compiled list', () => {
  it('has one text for all values of a shape, and binds them', () => {
    const filtered = (value: unknown): CompiledList =>
      compiled({ filters: { logic: 'and', conditions: [{ id: 'a', field: 'Code', operator: 'eq', value }] } });
    const hostile = `'; DROP TABLE "Order"; --`;
    const [a, b] = [filtered('x'), filtered(hostile)];
    assert.equal(a.text, b.text);
    assert.equal(a.name, b.name);
    assert.deepEqual(b.values, [hostile]);
    assert.ok(!b.text.includes('DROP'));
  });

  it('has one text for lists of any length', () => {
    assert.equal(compiled({ whereIn: { Amount: [1] } }).text, compiled({ whereIn: { Amount: [1, 2, 3] } }).text);
  });

  it('has another name for another shape', () => {
    const names = [
      {},
      { take: 10 },
      { includeTotal: true },
      { includeEtag: true },
      { orderBy: 'Amount' },
      { fields: 'id' },
    ];
    assert.equal(new Set(names.map((raw) => compiled(raw).name)).size, names.length);
  });

  it('quotes every identifier', () => {
    assert.ok(compiled({}).text.includes(`r."x"" FROM pg_authid; --"`));
    assert.ok(!compiled({}).text.includes(HOSTILE));
  });

  it('is not prepared when its plan depends on the values', () => {
    assert.equal(compiled({ search: 'abc' }).name, undefined);
    assert.equal(compiled({ skip: 5000 }).name, undefined);
    assert.ok(compiled({}).name);
  });

  it('reads next page, sort values and versions from extra columns', () => {
    const list = compiled({ take: 2, includeTotal: true, orderBy: 'Code' });
    assert.deepEqual(readPage(list, { count: 2, more: true, rest: ['k', 'id', '4', '5', '9'] }), {
      count: 2,
      lastKeys: ['k', 'id'],
      metadataVersion: 4,
      accessVersion: 5,
      total: 9,
    });
    assert.deepEqual(readPage(list, { count: 0, more: false, rest: [null, null, '4', '5', '0'] }), {
      count: 0,
      lastKeys: null,
      metadataVersion: 4,
      accessVersion: 5,
      total: 0,
    });
  });
});
