/** Checking and compiling of aggregate queries. Their results: test/service/query/aggregate.long.test.ts. */
import assert from 'node:assert/strict';
import { accessFor } from '../../../lib/access/rules.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { AGGREGATE_LIMITS, planAggregate } from '../../../lib/query/aggregate.ts';
import { compileAggregate } from '../../../lib/query/aggregate-sql.ts';
import { constrainGroups } from '../../../lib/query/constrain.ts';
import { aField, anObject, aPrincipal, aProfile, aSnapshot } from '../../support/snapshots.ts';

const order = anObject(
  'Order__c',
  [
    aField('Status__c', 'picklist'),
    aField('Currency__c', 'text', { length: 3 }),
    aField('Amount__c', 'currency', { currencyField: 'Currency__c' }),
    aField('When__c', 'dateTime'),
    aField('Hidden__c', 'text'),
    aField('Note__c', 'text', { length: 4_000 }),
  ],
  { sharingDefault: 'private' },
);
const snapshot = aSnapshot([order], [aProfile([order], new Set(['Order__c.Hidden__c']))]);
const access = accessFor(snapshot, aPrincipal());
const view = { access, snapshot, now: Date.parse('2026-11-21T00:00:00Z'), timezone: 'Europe/Berlin' };

const plan = (query: Record<string, unknown>) =>
  planAggregate(
    { objectApiName: 'Order__c', measures: [{ key: 'n', aggregation: 'count' }], ...query },
    access.objects['Order__c']!,
    view,
  );
const compile = (query: Record<string, unknown>) =>
  compileAggregate(constrainGroups(plan(query), access), { schema: 't_x', maxBytes: 1_000, named: new Map() });

function refusal(query: Record<string, unknown>): string[] {
  try {
    plan(query);
  } catch (error) {
    assert.ok(error instanceof PlatformError);
    assert.equal(error.code, 'WIDGET_QUERY_INVALID');
    return error.errors!.map(({ pointer, code }) => `${pointer} ${code}`);
  }
  assert.fail('It was not refused.');
}

describe('an aggregate query', () => {
  it('has the published limits', () => {
    assert.deepEqual(AGGREGATE_LIMITS, {
      dimensions_max: LIMITS.widget_dimensions_max,
      measures_max: LIMITS.widget_measures_max,
      rows_default: LIMITS.widget_rows_default,
      rows_max: LIMITS.widget_rows_max,
      sort_max: LIMITS.sort_max,
      conditions_max: LIMITS.dashboard_filters_max + LIMITS.filter_conditions_max,
    });
  });

  it('reads the records once, under the sharing of the caller, and binds every value', () => {
    const filters = { logic: 'and', conditions: [{ id: 'c', field: 'Status__c', operator: 'eq', value: "x'); DROP" }] };
    const { text, values } = compile({ filters, dimensions: [{ field: 'Status__c' }] });
    assert.equal(text.split('FROM "t_x"."Order__c"').length, 2);
    assert.match(text, /WHERE r\."Status__c" = \$1::text AND .*"ownerId"/);
    assert.ok(!text.includes('DROP') && values.includes("x'); DROP"));
  });

  it('reads them once more to count distinct values over all groups', () => {
    const measures = [{ key: 'n', aggregation: 'countDistinct', field: 'name' }];
    const { text } = compile({ measures, dimensions: [{ field: 'Status__c' }] });
    assert.equal(text.split('FROM "t_x"."Order__c"').length, 3);
    assert.equal(compile({ measures }).text.split('FROM "t_x"."Order__c"').length, 2);
  });

  it('splits by the currency of an amount, unless it is grouped by it already', () => {
    const measures = [{ key: 'sum', aggregation: 'sum', field: 'Amount__c' }];
    assert.deepEqual(plan({ measures }).currencies, [order.fields['Currency__c']]);
    assert.deepEqual(plan({ measures, dimensions: [{ field: 'Currency__c' }] }).currencies, []);
    assert.deepEqual(plan({ measures: [{ key: 'n', aggregation: 'count', field: 'Amount__c' }] }).currencies, []);
    assert.deepEqual(refusal({ measures: [{ key: 'Currency__c', aggregation: 'sum', field: 'Amount__c' }] }), [
      '/measures/0/key WIDGET_QUERY_INVALID',
    ]);
  });

  it('takes defaults from the user', () => {
    const { timezone, limit, sort, after } = plan({});
    assert.deepEqual([timezone, limit, sort, after], ['Europe/Berlin', 200, [], null]);
    assert.match(
      compile({ dimensions: [{ field: 'When__c', granularity: 'day' }] }).text,
      /expr_zone\('Europe\/Berlin'\)/,
    );
  });

  it('is refused when its form is invalid', () => {
    for (const [query, expected] of [
      [{ dimensions: 'Status__c' }, '/dimensions WIDGET_QUERY_INVALID'],
      [{ dimensions: [null] }, '/dimensions/0 WIDGET_QUERY_INVALID'],
      [{ dimensions: [{ field: 1 }] }, '/dimensions/0/field WIDGET_QUERY_INVALID'],
      [{ dimensions: [{ field: '__proto__' }] }, '/dimensions/0/field FIELD_UNKNOWN'],
      [{ dimensions: [{ field: 'Note__c' }] }, '/dimensions/0/field WIDGET_QUERY_INVALID'],
      [{ dimensions: Array(4).fill({ field: 'name' }) }, '/dimensions WIDGET_QUERY_INVALID'],
      [{ measures: {} }, '/measures WIDGET_QUERY_INVALID'],
      [{ measures: [7] }, '/measures/0 WIDGET_QUERY_INVALID'],
      [{ measures: [{ key: 'n', aggregation: 'toString' }] }, '/measures/0/aggregation WIDGET_QUERY_INVALID'],
      [{ filters: [] }, '/filters FILTER_INVALID'],
      [{ conditions: {} }, '/conditions FILTER_INVALID'],
      [{ sort: [{ id: 'n', desc: 'yes' }] }, '/sort/0 SORT_INVALID'],
      [{ limit: 0 }, '/limit WIDGET_QUERY_INVALID'],
      [{ limit: 1.5 }, '/limit WIDGET_QUERY_INVALID'],
      [{ timezone: '+01:00' }, '/timezone WIDGET_QUERY_INVALID'],
    ] as const)
      assert.deepEqual(refusal(query), [expected], JSON.stringify(query));
    const conditions = Array.from({ length: 31 }, (_, i) => ({ id: `c${i}`, field: 'name', operator: 'is_blank' }));
    assert.deepEqual(refusal({ conditions }), ['/conditions FILTER_TOO_MANY_CONDITIONS']);
  });
});
