/** Preparation of a result by the dashboards page, before drawing. */
import assert from 'node:assert/strict';
import { WIDGET_TYPES } from '../../../contracts/analytics.ts';
import { recordLinks } from '../../../web/dashboards/browser/records.js';
import {
  chartData,
  continued,
  description,
  KINDS,
  named,
  pivot,
  slices,
  WRITTEN_KINDS,
} from '../../../web/dashboards/browser/result.js';
import type {
  Dashboard,
  FilterValue,
  Group,
  Widget,
  WidgetQuery,
  WidgetResult,
} from '../../../web/dashboards/browser/types.d.ts';
import { dayEnd, dayStart, fromClock, moment, number, onClock, text } from '../../../web/shared/format.js';
import type { Column, Granularity } from '../../../web/shared/types.d.ts';

const PLACE = { locale: 'en', timezone: 'Europe/Berlin' };

const dimension = (key: string, fieldType = 'picklist'): Column => ({
  key,
  label: key,
  role: 'dimension',
  fieldType,
  currency: null,
});
const measure = (key: string, fieldType = 'integer', currency: string | null = null): Column => ({
  key,
  label: key,
  role: 'measure',
  fieldType,
  currency,
});
const amounts: Column = { ...measure('amount', 'currency'), currencyKey: 'Currency' };
const result = (columns: Column[], rows: unknown[][], labels: WidgetResult['labels'] = {}): WidgetResult => ({
  columns,
  rows,
  totals: null,
  rowCount: rows.length,
  truncated: false,
  nextCursor: null,
  computedAt: '2026-11-22T09:30:00.000Z',
  dataAsOf: '2026-11-22T09:30:00.000Z',
  fromCache: false,
  accessNotes: [],
  labels,
});
const widget = (
  type: string,
  {
    dimensions = [],
    aggregation = 'sum',
    options = {},
  }: Partial<{
    dimensions: { field: string; granularity?: 'month' | 'quarter' }[];
    aggregation: string;
    options: Record<string, unknown>;
  }> = {},
): Widget => ({
  widgetKey: 'w',
  title: 'W',
  type,
  layout: { x: 0, y: 0, w: 6, h: 4 },
  query: { objectApiName: 'Invoice__c', dimensions, measures: [{ key: 'amount', aggregation }] },
  options,
});

describe('chart data of a result', () => {
  it('takes the currency of amounts from the named column only', () => {
    const columns = [dimension('Currency'), dimension('Airport'), amounts];
    const { series } = chartData(
      result(columns, [['EUR', 'HAM', 1]]),
      widget('bar', { dimensions: [{ field: 'Currency' }, { field: 'Airport' }] }),
      PLACE,
    );
    assert.deepEqual(
      series.map(({ column }) => column.currency),
      ['EUR'],
    );
  });

  const byMonth = [{ field: 'Day', granularity: 'month' as const }, { field: 'Region' }];

  it('sorts by time, with gaps for missing values', () => {
    const rows = [
      ['2026-03-01', 'north', 3],
      ['2026-01-01', 'north', 1],
      ['2026-01-01', 'south', 10],
    ];
    const { categories, series, time } = chartData(
      result([dimension('Day_month', 'date'), dimension('Region'), measure('amount')], rows),
      widget('line', { dimensions: byMonth }),
      PLACE,
    );
    assert.deepEqual(categories, ['Jan 2026', 'Mar 2026']);
    assert.deepEqual(
      series.map(({ label, values }) => [label, values]),
      [
        ['north', [1, 3]],
        ['south', [10, null]],
      ],
    );
    assert.equal(time, true);
  });

  it('keeps two customers of one name apart', () => {
    const labels = { AccountId: { a1: 'Smith', a2: 'Smith' } };
    const { categories, series } = chartData(
      result(
        [dimension('AccountId', 'reference'), measure('amount')],
        [
          ['a1', 1],
          ['a2', 2],
          ['a3', 3],
        ],
        labels,
      ),
      widget('bar', { dimensions: [{ field: 'AccountId' }] }),
      PLACE,
    );
    assert.deepEqual(categories, ['Smith', 'Smith', 'Hidden record']);
    assert.deepEqual(series[0]?.values, [1, 2, 3]);
  });

  it('draws each currency as a series of its own, the more frequent first, and no third unit', () => {
    const rows = [
      ['north', 'USD', 5],
      ['north', 'EUR', 1],
      ['south', 'EUR', 2],
      ['south', 'CHF', 3],
    ];
    const { series, left } = chartData(
      result([dimension('Region'), dimension('Currency'), amounts], rows),
      widget('bar', { dimensions: [{ field: 'Region' }] }),
      PLACE,
    );
    assert.deepEqual(
      series.map(({ label, column, values }) => [label, column.currency, values]),
      [
        ['EUR', 'EUR', [1, 2]],
        ['USD', 'USD', [5, null]],
      ],
    );
    assert.equal(left, 1);
  });

  it('draws eight series and reports the number of others', () => {
    const rows = Array.from({ length: 12 }, (_, i) => ['north', `kind ${i}`, i]);
    const { series, left } = chartData(
      result([dimension('Region'), dimension('Kind', 'text'), measure('amount')], rows),
      widget('bar', { dimensions: [{ field: 'Region' }, { field: 'Kind' }] }),
      PLACE,
    );
    assert.deepEqual([series.length, left], [8, 4]);
  });

  it('merges small slices only where they can be summed', () => {
    const rows = Array.from({ length: 12 }, (_, i) => [`kind ${i}`, i]);
    const all = result([dimension('Kind', 'text'), measure('amount')], rows);
    const sums = widget('pie', { dimensions: [{ field: 'Kind' }] });
    const put = slices(chartData(all, sums, PLACE), sums);
    assert.deepEqual(put.labels.slice(-2), ['kind 5', '5 others']);
    assert.deepEqual(put.values, [11, 10, 9, 8, 7, 6, 5, 10]);
    const averages = widget('pie', { dimensions: [{ field: 'Kind' }], aggregation: 'avg' });
    assert.equal(slices(chartData(all, averages, PLACE), averages).labels.length, 12);
  });

  it('describes the chart in a sentence', () => {
    const data = chartData(
      result(
        [dimension('Region'), measure('amount', 'currency', 'EUR')],
        [
          ['north', 10],
          ['south', 3],
        ],
      ),
      widget('bar', { dimensions: [{ field: 'Region' }] }),
      PLACE,
    );
    assert.equal(
      description('Bar chart', data, (value, column) => number(value, column, PLACE)),
      'Bar chart, 2 categories, 1 series. amount: highest €10.00 (north), lowest €3.00 (south). The arrow keys go through the values. The table holds every value.',
    );
  });

  it('takes the names that the widget gives its columns', () => {
    const some = result([dimension('Region'), measure('amount')], []);
    const columns = named(some, widget('bar', { options: { labels: { amount: 'Invoiced', Region: 7 } } })).columns;
    assert.deepEqual(
      columns.map(({ label }) => label),
      ['Region', 'Invoiced'],
    );
  });
});

describe('a result that goes on with the next page', () => {
  const columns = [dimension('Region'), measure('count')];
  const first = { ...result(columns, [['n', 1]], { Region: { n: 'North' } }), rowCount: 3, nextCursor: 'c1' };

  it('has the rows and names of both, and the time and totals of the first', () => {
    const next = { ...result(columns, [['s', 2]], { Region: { s: 'South' } }), computedAt: 'later', rowCount: 2 };
    assert.deepEqual(continued({ ...first, totals: { count: 3 } }, { ...next, totals: { count: 4 } }), {
      ...first,
      rows: [
        ['n', 1],
        ['s', 2],
      ],
      labels: { Region: { n: 'North', s: 'South' } },
      totals: { count: 3 },
      rowCount: 2,
      nextCursor: null,
    });
  });

  it('does not go on with rows of other columns', () => {
    assert.equal(continued(first, result([...columns, amounts], [['s', 2, 1]])), null);
    assert.equal(continued(first, result([columns[0]!, measure('count', 'currency', 'EUR')], [['s', 2]])), null);
  });
});

describe('a pivot of a result', () => {
  it('has periods across in their order, and a line for each currency', () => {
    const rows = [
      ['north', '2026-04-01', 'EUR', 2],
      ['north', '2026-01-01', 'EUR', 1],
      ['north', '2026-04-01', 'USD', 9],
    ];
    const { corner, heads, lines } = pivot(
      result([dimension('Region'), dimension('Day_quarter', 'date'), dimension('Currency'), amounts], rows),
      widget('pivot', { dimensions: [{ field: 'Region' }, { field: 'Day', granularity: 'quarter' }] }),
      PLACE,
    );
    assert.equal(corner, 'Region');
    assert.deepEqual([...heads.values()], ['Q1 2026', 'Q2 2026']);
    assert.deepEqual(
      lines.map(({ label, cells }) => [label, [...heads.keys()].map((key) => cells.get(key)?.written ?? null)]),
      [
        ['north', ['€1.00', '€2.00']],
        ['north', [null, '$9.00']],
      ],
    );
    const [, second] = [...heads.keys()];
    assert.deepEqual(
      lines.map(({ groups, cells }) => [groups, cells.get(second!)?.groups]),
      [
        [
          [
            { key: 'Region', value: 'north' },
            { key: 'Currency', value: 'EUR' },
          ],
          [
            { key: 'Region', value: 'north' },
            { key: 'Day_quarter', value: '2026-04-01' },
            { key: 'Currency', value: 'EUR' },
          ],
        ],
        [
          [
            { key: 'Region', value: 'north' },
            { key: 'Currency', value: 'USD' },
          ],
          [
            { key: 'Region', value: 'north' },
            { key: 'Day_quarter', value: '2026-04-01' },
            { key: 'Currency', value: 'USD' },
          ],
        ],
      ],
    );
  });
});

describe('the records behind a value', () => {
  const filter = { label: '', objectApiName: 'Invoice__c', locked: false };
  const dashboard = {
    ...{ dashboardId: '', name: '', description: null, version: 'published', state: 'published' },
    ...{ publishedAt: null, timezone: null, widgets: [] },
    filters: [
      { ...filter, filterKey: 'status', field: 'Status__c', operator: 'neq', value: 'draft' },
      { ...filter, filterKey: 'paid', field: 'Paid__c', operator: 'is_blank' },
      { ...filter, filterKey: 'due', field: 'Due__c', operator: 'between' },
      { ...filter, filterKey: 'stage', field: 'Stage__c', operator: 'eq', value: 'open', objectApiName: 'Deal__c' },
    ],
  } satisfies Dashboard;
  const types = new Map([
    ['Day', 'date'],
    ['At', 'dateTime'],
  ]);
  const conditionsOf = (
    query: Partial<WidgetQuery>,
    groups: Group[],
    filterValues?: Record<string, FilterValue>,
  ): unknown => {
    const asked = { objectApiName: 'Invoice__c', dimensions: [], measures: [], ...query };
    const behind = { dashboard, filterValues, types, timezone: 'Europe/Berlin' };
    const address = recordLinks({ ...widget('bar'), query: asked }, behind)(groups);
    if (address === null) return null;
    const { pathname, searchParams } = new URL(address, 'http://host');
    assert.equal(pathname, '/app/Invoice__c');
    return JSON.parse(searchParams.get('filters')!);
  };
  const always = [
    { field: 'Status__c', operator: 'neq', value: 'draft' },
    { field: 'Paid__c', operator: 'is_blank' },
  ];

  it('hold the conditions of the widget, the filters of the dashboard that apply, and the groups of the value', () => {
    const own = { field: 'Amount__c', operator: 'gt', value: 5 };
    const groups = [
      { key: 'Region', value: 'north' },
      { key: 'Owner', value: null },
      { key: 'Currency', value: 'EUR' },
    ];
    assert.deepEqual(
      conditionsOf(
        { filters: { logic: 'and', conditions: [own] }, dimensions: [{ field: 'Region' }, { field: 'Owner' }] },
        groups,
        { status: { value: 'sent' }, due: { value: '2026-01-01', valueTo: '2026-02-01' } },
      ),
      {
        logic: 'and',
        conditions: [
          own,
          { field: 'Status__c', operator: 'neq', value: 'sent' },
          { field: 'Paid__c', operator: 'is_blank' },
          { field: 'Due__c', operator: 'between', value: '2026-01-01', valueTo: '2026-02-01' },
          { field: 'Region', operator: 'eq', value: 'north' },
          { field: 'Owner', operator: 'is_blank' },
          { field: 'Currency', operator: 'eq', value: 'EUR' },
        ],
      },
    );
  });

  it('lie within the period of the value, to the last day or moment of it', () => {
    const last = (granularity: Granularity, value: string, field = 'Day'): unknown => {
      const found = conditionsOf({ dimensions: [{ field, granularity }] }, [{ key: `${field}_${granularity}`, value }]);
      return (found as { conditions: object[] }).conditions.slice(always.length);
    };
    const between = (value: string, valueTo: string, field = 'Day') => [{ field, operator: 'between', value, valueTo }];
    assert.deepEqual(last('day', '2026-03-30'), between('2026-03-30', '2026-03-30'));
    assert.deepEqual(last('week', '2026-12-28'), between('2026-12-28', '2027-01-03'));
    assert.deepEqual(last('month', '2028-02-01'), between('2028-02-01', '2028-02-29'));
    assert.deepEqual(last('quarter', '2026-10-01'), between('2026-10-01', '2026-12-31'));
    assert.deepEqual(last('year', '2026-01-01'), between('2026-01-01', '2026-12-31'));
    // Clocks change on the last Sunday of March.
    assert.deepEqual(
      last('month', '2026-03-01', 'At'),
      between('2026-02-28T23:00:00.000Z', '2026-03-31T21:59:59.999Z', 'At'),
    );
  });

  it('have no address where a list could not show exactly them', () => {
    const either = { logic: 'or', conditions: [always[0]!, always[1]!] };
    assert.equal(conditionsOf({ filters: either }, []), null, 'either of two, and all of others');
    const unknown = { dimensions: [{ field: 'Hidden', granularity: 'month' as const }] };
    assert.equal(conditionsOf(unknown, [{ key: 'Hidden_month', value: '2026-03-01' }]), null, 'a day or a moment');
    const many = Array.from({ length: 20 }, () => ({ field: 'Amount__c', operator: 'gt', value: 5 }));
    assert.equal(conditionsOf({ filters: { logic: 'and', conditions: many } }, []), null, 'too many');
  });
});

describe('values on the page of dashboards', () => {
  it('are formatted for the user’s locale', () => {
    const german = { locale: 'de-DE', timezone: 'Europe/Berlin' };
    const euro = measure('amount', 'currency', 'EUR');
    assert.equal(text(1234.5, euro, PLACE), '€1,234.50');
    assert.equal(text(1234.5, euro, german), '1.234,50\u00a0€');
    assert.equal(text(1234, measure('amount', 'currency', 'JPY'), PLACE), '¥1,234');
    assert.equal(text('12.345', measure('share', 'percent'), PLACE), '12.35 %');
    assert.equal(text(1_250_000, measure('n'), german), '1.250.000');
    assert.equal(number(1_250_000, euro, PLACE, { short: true }), '€1.3M');
    assert.equal(moment('2026-11-22T23:30:00Z', german), '23.11.2026, 00:30');
    assert.equal(moment('nonsense', german), 'nonsense');
  });

  it('are named by the period that they stand for', () => {
    const day = dimension('Day', 'date');
    const written = (['day', 'week', 'month', 'quarter', 'year'] as const).map((one) =>
      text('2026-03-30', day, PLACE, one),
    );
    assert.deepEqual(written, ['Mar 30, 2026', 'Week of Mar 30, 2026', 'Mar 2026', 'Q1 2026', '2026']);
  });

  it('that are null, boolean, lists or unknown are formatted too', () => {
    const plain = dimension('x', 'text');
    for (const [value, expected] of [
      [null, '–'],
      ['', '–'],
      [false, 'No'],
      [['a', null], 'a, –'],
      [{ a: 1 }, '{"a":1}'],
      ['1e400', '1e400'],
      [Number.NaN, 'NaN'],
    ] as const)
      assert.equal(text(value, plain, PLACE), expected);
    assert.equal(text('not a number', measure('n'), PLACE), 'not a number');
    assert.equal(text(1, measure('n', 'currency', 'not a code'), PLACE), '1');
  });
});

describe('a day', () => {
  it('starts and ends in the user’s time zone, also at DST changes', () => {
    const cases: [day: string, timezone: string, start: string, end: string][] = [
      ['2026-11-22', 'UTC', '2026-11-22T00:00:00.000Z', '2026-11-22T23:59:59.999Z'],
      ['2026-11-22', 'Europe/Berlin', '2026-11-21T23:00:00.000Z', '2026-11-22T22:59:59.999Z'],
      ['2026-03-29', 'Europe/Berlin', '2026-03-28T23:00:00.000Z', '2026-03-29T21:59:59.999Z'],
      ['2026-10-25', 'Europe/Berlin', '2026-10-24T22:00:00.000Z', '2026-10-25T22:59:59.999Z'],
      ['2026-11-22', 'Pacific/Kiritimati', '2026-11-21T10:00:00.000Z', '2026-11-22T09:59:59.999Z'],
      ['2026-11-22', 'America/St_Johns', '2026-11-22T03:30:00.000Z', '2026-11-23T03:29:59.999Z'],
    ];
    for (const [day, timezone, start, end] of cases)
      assert.deepEqual([dayStart(day, timezone), dayEnd(day, timezone)], [start, end], `${day} ${timezone}`);
  });
});

describe('a time of day', () => {
  it('is read and shown by the clocks of the user’s time zone, also at DST changes', () => {
    const cases: [clock: string, timezone: string, at: string][] = [
      ['2026-11-22T09:30', 'UTC', '2026-11-22T09:30:00.000Z'],
      ['2026-11-22T09:30', 'Europe/Berlin', '2026-11-22T08:30:00.000Z'],
      ['2026-03-29T03:00', 'Europe/Berlin', '2026-03-29T01:00:00.000Z'],
      ['2026-10-25T03:00', 'Europe/Berlin', '2026-10-25T02:00:00.000Z'],
      ['2026-07-01T00:15', 'Asia/Kathmandu', '2026-06-30T18:30:00.000Z'],
    ];
    for (const [clock, timezone, at] of cases)
      assert.deepEqual([fromClock(clock, timezone), onClock(at, timezone)], [at, clock], `${clock} ${timezone}`);
  });
});

describe('the page of dashboards', () => {
  it('renders every widget type', () => {
    assert.deepEqual([...KINDS.keys(), ...WRITTEN_KINDS].sort(), [...WIDGET_TYPES].sort());
  });
});
