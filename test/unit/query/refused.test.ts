import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { accessFor } from '../../../lib/access/rules.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { LIST_LIMITS, parseListQuery } from '../../../lib/query/parse.ts';
import { planList } from '../../../lib/query/plan.ts';
import type { RawListQuery } from '../../../lib/query/types.ts';
import { aField, anObject, aPrincipal, aProfile, aSnapshot } from '../../support/snapshots.ts';

interface Case {
  name: string;
  query?: RawListQuery;
  body?: RawListQuery;
  expect: string;
  details?: Record<string, unknown>;
}

const cases = parse(readFileSync(new URL('../../cases/query/refused.yaml', import.meta.url), 'utf8')) as Case[];

const invoice = anObject('Invoice__c', [
  aField('Amount__c', 'currency', { precision: 18, scale: 2 }),
  aField('Status__c', 'picklist'),
  aField('Due__c', 'date'),
  aField('Sent__c', 'dateTime'),
  aField('Tags__c', 'multiPicklist'),
  aField('Data__c', 'json'),
  aField('Account__c', 'reference', { referenceTo: ['Account'] }),
  aField('Total__c', 'formula'),
  aField('Notes__c', 'longText'),
  aField('Secret__c', 'text'),
  aField('Hidden__c', 'reference', { referenceTo: ['Account'] }),
  aField('Salary__c', 'reference', { referenceTo: ['Payroll__c'] }),
]);
const account = anObject('Account', [aField('Limit__c', 'integer')]);
const payroll = anObject('Payroll__c');
const snapshot = aSnapshot(
  [invoice, account, payroll],
  [aProfile([invoice, account], new Set(['Invoice__c.Secret__c', 'Invoice__c.Hidden__c', 'Account.Limit__c']))],
);
const access = accessFor(snapshot, aPrincipal());
const view = { access, snapshot, now: Date.parse('2026-11-21T00:00:00Z'), timezone: 'UTC' };

const refusal = (raw: RawListQuery, source: 'query' | 'body'): PlatformError => {
  try {
    planList(parseListQuery(raw, source), invoice, view);
  } catch (error) {
    assert.ok(error instanceof PlatformError, String(error));
    return error;
  }
  return assert.fail('The query was not refused.');
};

describe('a list query is refused when it has', () => {
  for (const { name, query, body, expect, details } of cases)
    it(name, () => {
      const error = refusal(query ?? body!, query ? 'query' : 'body');
      const [first] = error.errors!;
      assert.equal(`${first!.code} ${first!.pointer}`, expect);
      assert.equal(error.code, first!.code);
      assert.equal(error.status, 400);
      if (details) assert.deepEqual(error.details, details);
    });

  it('a search text longer than 1,000 characters, whose cost grows with its length at each position', () => {
    const asking = (operator: string, length: number): RawListQuery => ({
      filters: { logic: 'and', conditions: [{ id: 'a', field: 'name', operator, value: '🙂'.repeat(length) }] },
    });
    for (const operator of ['contains', 'not_contains', 'starts_with']) {
      const error = refusal(asking(operator, 1_001), 'body');
      assert.equal(error.code, 'FILTER_VALUE_INVALID');
      assert.equal(error.errors![0]!.pointer, '/filters/conditions/0/value');
      assert.deepEqual(error.details, { conditionId: 'a', max: 1_000 });
      assert.ok(parseListQuery(asking(operator, 1_000), 'body'));
    }
    assert.ok(parseListQuery(asking('eq', 1_001), 'body'));
  });

  it('several problems: all are reported, the first decides the code', () => {
    const error = refusal({ take: 0, includeTotal: 1, sort: 'x' }, 'body');
    assert.equal(error.code, 'PARAMETER_INVALID');
    assert.deepEqual(
      error.errors!.map((item) => item.pointer),
      ['/take', '/includeTotal', '/sort'],
    );
  });
});

describe('a list query', () => {
  const planned = (raw: RawListQuery) => planList(parseListQuery(raw, 'body'), invoice, view);

  it('returns the first 50 records by default, newest first', () => {
    const plan = planned({});
    assert.deepEqual([plan.take, plan.skip, plan.includeTotal, plan.includeEtag], [50, 0, false, false]);
    assert.deepEqual(
      plan.sort.map(({ field, desc }) => [field.apiName, desc]),
      [
        ['createdAt', true],
        ['id', true],
      ],
    );
  });

  it('returns at most 200 records, and reports a larger request', () => {
    assert.deepEqual([parseListQuery({ take: '200' }, 'query').takeClamped, planned({ take: 200 }).take], [false, 200]);
    const request = parseListQuery({ take: '201' }, 'query');
    assert.deepEqual([request.take, request.takeClamped], [200, true]);
  });

  it('ends its order with id, in the direction of the last key', () => {
    assert.deepEqual(
      planned({
        sort: [
          { id: 'Amount__c', desc: true },
          { id: 'name', desc: false },
        ],
      }).sort.map(({ field, desc }) => [field.apiName, desc]),
      [
        ['Amount__c', true],
        ['name', false],
        ['id', false],
      ],
    );
    assert.equal(planned({ sort: [{ id: 'id', desc: true }, { id: 'name' }] }).sort.length, 1);
  });

  it('returns only the requested fields, in the order of the object', () => {
    assert.deepEqual(
      planned({ fields: ['Amount__c', 'id', 'Amount__c'] }).fields.map((field) => field.apiName),
      ['id', 'Amount__c'],
    );
    const [field] = planned({ fields: ['Amount__c'] }).fields;
    assert.equal(field!.apiName, 'id', 'a record always has its id');
  });

  it('never returns a hidden field', () => {
    assert.ok(!planned({}).fields.some((field) => field.apiName === 'Secret__c'));
  });

  it('treats null in a body as absent', () => {
    assert.deepEqual(planned({ cursor: null, search: null, filters: null }), planned({}));
  });

  it('accepts conditions in full form, with null for operators without a value', () => {
    const condition = { id: 'a', field: 'name', operator: 'is_blank', value: null, valueTo: null };
    assert.ok(planned({ filters: { logic: 'and', conditions: [condition] } }).filter);
  });

  it('respects the published limits', () => {
    for (const [name, value] of Object.entries(LIST_LIMITS))
      if (name in LIMITS) assert.equal(value, LIMITS[name as keyof typeof LIMITS], name);
  });
});
