/** Groups of records over amounts, days and references, for users who see different parts of them. */
import assert from 'node:assert/strict';
import { call } from '../../../contracts/call.ts';
import type { AggregateQuery, AggregateResult } from '../../../contracts/data/aggregate.ts';
import { codes, createWorld, type Person, refusal, type World } from './world.ts';

const lines = (...list: string[]): string => `${list.join('\n')}\n`;
const field = (apiName: string, fieldType: string, ...more: string[]): string =>
  lines(
    'type: CustomField',
    `apiName: ${apiName}`,
    'object: Sale__c',
    `label: The ${apiName.replace('__c', '')}`,
    `fieldType: ${fieldType}`,
    ...more,
  );
const profile = (apiName: string, fields: readonly string[], extra: readonly string[] = []): string =>
  lines(
    'type: Profile',
    `apiName: ${apiName}`,
    `label: ${apiName}`,
    'system:',
    '  - apiEnabled',
    ...extra.map((name) => `  - ${name}`),
    'objects:',
    ...['Sale__c', 'Company__c'].flatMap((name) => [
      `  ${name}:`,
      ...['create', 'read', 'update', 'delete'].map((key) => `    ${key}: true`),
    ]),
    'fields:',
    ...fields.flatMap((name) => [`  Sale__c.${name}__c:`, '    read: true', '    edit: true']),
  );

const FILES: Record<string, string> = {
  'objects/Sale__c/object.yaml': lines(
    'type: CustomObject',
    'apiName: Sale__c',
    'label: Sale',
    'labelPlural: Sales',
    'nameField:',
    '  label: Name',
    '  fieldType: text',
    'sharingDefault: private',
    'api:',
    '  published: true',
  ),
  'objects/Sale__c/fields/Currency__c.yaml': field('Currency__c', 'text', 'length: 3'),
  'objects/Sale__c/fields/Price__c.yaml': field('Price__c', 'currency', 'currencyField: Currency__c'),
  'objects/Sale__c/fields/Fee__c.yaml': field('Fee__c', 'currency'),
  'objects/Sale__c/fields/When__c.yaml': field('When__c', 'dateTime'),
  'objects/Sale__c/fields/Length__c.yaml': field('Length__c', 'duration'),
  'objects/Sale__c/fields/Buyer__c.yaml': field(
    'Buyer__c',
    'reference',
    'referenceTo:',
    '  - Company__c',
    'onDelete: setNull',
  ),
  'objects/Sale__c/fields/Net__c.yaml': field(
    'Net__c',
    'formula',
    'formula:',
    '  expression: record.Price__c - record.Fee__c',
    '  resultType: decimal',
  ),
  'profiles/Seller.yaml': profile('Seller', ['Currency', 'Price', 'Fee', 'When', 'Buyer', 'Length']),
  'profiles/Blind.yaml': profile('Blind', ['Price', 'Fee', 'When', 'Buyer', 'Net']),
};

const PRICE: AggregateQuery['measures'] = [
  { key: 'count', aggregation: 'count' },
  { key: 'price', aggregation: 'sum', field: 'Price__c' },
];

describe('aggregates with amounts', () => {
  let world: World;
  const people: Record<string, Person> = {};
  const buyers: Record<string, string> = {};
  const person = (name: string): Person => people[name]!;

  before(async function () {
    this.timeout(120_000);
    world = await createWorld();
    await world.deploy(world.tenantId, FILES);
    const { userIds } = await call(world.platform.broker, 'data.users.provision', {
      tenantId: world.tenantId,
      users: Object.entries({ seller: 'Seller', other: 'Seller', blind: 'Blind' }).map(([name, profileApiName]) => ({
        username: `${name}@one.example`,
        email: `${name}@one.example`,
        displayName: `Mx ${name}`,
        profileApiName,
      })),
    });
    for (const name of ['seller', 'other', 'blind'])
      people[name] = world.person(world.tenantId, userIds[`${name}@one.example`]!, name);
    people['admin'] = world.admin;
    for (const name of ['Acme', 'Zeta']) buyers[name] = (await world.clerk.create('Company__c', { name })).body.id;
    const sales: [
      by: string,
      Currency__c: string | null,
      Price__c: string | null,
      When__c: string,
      buyer: string | null,
    ][] = [
      // The clocks of Berlin change on 2026-03-29 at 01:00 and on 2026-10-25 at 01:00 UTC.
      ['seller', 'EUR', '10.00', '2026-03-28T22:59:59.999Z', 'Acme'],
      ['seller', 'EUR', '0.01', '2026-03-28T23:00:00Z', 'Acme'],
      ['seller', 'EUR', '5.00', '2026-03-29T21:59:59.999Z', 'Zeta'],
      ['seller', 'EUR', null, '2026-03-29T22:00:00Z', null],
      ['other', 'USD', '7.00', '2026-10-24T22:00:00Z', 'Acme'],
      ['other', 'EUR', '1.00', '2026-10-25T22:59:59.999Z', 'Acme'],
      ['other', null, '3.00', '2026-10-25T23:00:00Z', 'Zeta'],
      ['blind', 'USD', '2.00', '2026-01-01T00:00:00Z', 'Acme'],
    ];
    for (const [n, [by, Currency__c, Price__c, When__c, buyer]] of sales.entries())
      await world.admin.create('Sale__c', {
        name: `Sale ${n}`,
        ownerId: person(by).userId,
        Currency__c,
        Price__c,
        When__c,
        Fee__c: '0.50',
        Length__c: 'P10000Y',
        Buyer__c: buyer && buyers[buyer],
      });
  });
  after(() => world?.stop());

  const ask = (by: string, query: Partial<AggregateQuery>): Promise<AggregateResult> =>
    call(world.platform.broker, 'data.records.aggregate', {
      asker: person(by).asker,
      query: { objectApiName: 'Sale__c', measures: PRICE, ...query },
    });
  const keys = (result: AggregateResult): string[] => result.columns.map(({ key }) => key);
  const currencies = (result: AggregateResult): (string | null)[] => result.columns.map(({ currency }) => currency);
  const notes = (result: AggregateResult): string[] => result.accessNotes.map(({ code, field: of }) => `${code} ${of}`);

  it('counts visible records, and reports that others may exist', async () => {
    for (const [by, count] of [
      ['seller', 4],
      ['other', 3],
      ['blind', 1],
      ['admin', 8],
    ] as const) {
      const result = await ask(by, { measures: [{ key: 'n', aggregation: 'count' }] });
      assert.equal(result.rowsJson, `[[${count}]]`, by);
      assert.deepEqual(notes(result), by === 'admin' ? [] : ['ROWS_RESTRICTED null'], by);
    }
  });

  it('sums amounts of one currency, and names it', async () => {
    const result = await ask('seller', { measures: [...PRICE, { key: 'fee', aggregation: 'avg', field: 'Fee__c' }] });
    assert.deepEqual(keys(result), ['count', 'price', 'fee']);
    assert.deepEqual(currencies(result), [null, 'EUR', 'EUR']);
    assert.equal(result.rowsJson, '[[4,15.01,0.5]]');
    assert.equal(result.totalsJson, '{"count":4,"price":15.01,"fee":0.5}');
  });

  it('splits rows by currency, without a total over currencies', async () => {
    const result = await ask('other', {
      dimensions: [{ field: 'Buyer__c' }],
      measures: [
        ...PRICE,
        { key: 'fee', aggregation: 'sum', field: 'Fee__c' },
        { key: 'most', aggregation: 'max', field: 'Price__c' },
      ],
      sort: [{ id: 'price', desc: true }],
    });
    assert.deepEqual(keys(result), ['Buyer__c', 'Currency__c', 'count', 'price', 'fee', 'most']);
    assert.deepEqual(currencies(result), [null, null, null, null, 'EUR', null]);
    assert.deepEqual(JSON.parse(result.rowsJson), [
      // Amounts of different currencies are not compared.
      [buyers['Acme'], 'EUR', 1, 1, 0.5, 1],
      [buyers['Acme'], 'USD', 1, 7, 0.5, 7],
      [buyers['Zeta'], null, 1, 3, 0.5, 3],
    ]);
    assert.equal(result.totalsJson, '{"count":3,"price":null,"fee":1.50,"most":null}');
    const grouped = await ask('other', { dimensions: [{ field: 'Currency__c' }] });
    assert.equal(grouped.rowsJson, '[["EUR",1,1.00],["USD",1,7.00],[null,1,3.00]]');
    assert.deepEqual(
      [keys(grouped), grouped.totalsJson],
      [['Currency__c', 'count', 'price'], '{"count":3,"price":null}'],
    );
    const counted = await ask('other', { measures: [{ key: 'n', aggregation: 'count', field: 'Price__c' }] });
    assert.equal(counted.rowsJson, '[[3]]', 'a count of amounts asks for no currency');
    const none = await ask('other', {
      filters: { logic: 'and', conditions: [{ id: 'c', field: 'name', operator: 'eq', value: 'none' }] },
    });
    assert.deepEqual(
      [none.rowsJson, none.totalsJson, keys(none)],
      ['[[0,null]]', '{"count":0,"price":null}', ['count', 'price']],
    );
  });

  it('does not sum amounts when the caller cannot read their currency', async () => {
    const measures: AggregateQuery['measures'] = [
      ...PRICE,
      { key: 'fee', aggregation: 'sum', field: 'Fee__c' },
      { key: 'least', aggregation: 'min', field: 'Price__c' },
      { key: 'prices', aggregation: 'count', field: 'Price__c' },
      { key: 'net', aggregation: 'sum', field: 'Net__c' },
    ];
    const result = await ask('blind', { measures, sort: [{ id: 'price' }] });
    assert.equal(result.rowsJson, '[[1,null,0.50,null,1,1.50]]');
    assert.deepEqual(notes(result), ['FIELD_HIDDEN Price__c', 'ROWS_RESTRICTED null']);
    assert.ok(!JSON.stringify(result).includes('Currency__c'), 'what is hidden is not named');
    const catalog = await call(world.platform.broker, 'data.objects.catalog', {
      asker: person('blind').asker,
      objectApiName: 'Sale__c',
    });
    const of = (name: string) => catalog.measures.find((measure) => measure.field === name)?.aggregations;
    assert.deepEqual([of('Price__c'), of('Currency__c')], [['count', 'countDistinct'], undefined]);
    assert.deepEqual(of('Fee__c'), ['count', 'countDistinct', 'sum', 'avg', 'min', 'max']);
    assert.deepEqual(catalog.dimensions.find((dimension) => dimension.field === 'When__c')?.granularities, [
      'day',
      'week',
      'month',
      'quarter',
      'year',
    ]);
    assert.equal(
      catalog.dimensions.find((dimension) => dimension.field === 'Price__c'),
      undefined,
    );
    assert.deepEqual(catalog.limits, { maxDimensions: 3, maxMeasures: 10, maxRows: 2_000 });
  });

  it('uses days in the caller’s time zone, also at DST changes', async () => {
    const measures: AggregateQuery['measures'] = [{ key: 'n', aggregation: 'count' }];
    const days = async (timezone?: string) =>
      (
        await ask('admin', {
          measures,
          dimensions: [{ field: 'When__c', granularity: 'day' }],
          ...(timezone ? { timezone } : {}),
        })
      ).rowsJson;
    assert.equal(
      await days('Europe/Berlin'),
      '[["2026-01-01",1],["2026-03-28",1],["2026-03-29",2],["2026-03-30",1],["2026-10-25",2],["2026-10-26",1]]',
    );
    assert.equal(await days(), await days('Europe/Berlin'), 'the tenant is in Berlin');
    assert.equal(
      await days('UTC'),
      '[["2026-01-01",1],["2026-03-28",2],["2026-03-29",2],["2026-10-24",1],["2026-10-25",2]]',
    );
    assert.match(await days('America/New_York'), /^\[\["2025-12-31",1\]/);
    const periods = async (granularity: 'week' | 'month' | 'quarter' | 'year') => {
      const result = await ask('admin', {
        measures,
        dimensions: [{ field: 'When__c', granularity }],
        timezone: 'Europe/Berlin',
      });
      assert.deepEqual([keys(result)[0], result.columns[0]!.fieldType], [`When__c_${granularity}`, 'date']);
      return result.rowsJson;
    };
    assert.equal(
      await periods('week'),
      '[["2025-12-29",1],["2026-03-23",3],["2026-03-30",1],["2026-10-19",2],["2026-10-26",1]]',
    );
    assert.equal(await periods('month'), '[["2026-01-01",1],["2026-03-01",4],["2026-10-01",3]]');
    assert.equal(await periods('quarter'), '[["2026-01-01",5],["2026-10-01",3]]');
    assert.equal(await periods('year'), '[["2026-01-01",8]]');
  });

  it('names the records that a dimension refers to, as far as the user sees them', async () => {
    const result = await ask('seller', { dimensions: [{ field: 'Buyer__c' }, { field: 'ownerId' }] });
    const seller = person('seller');
    assert.deepEqual(result.labels, {
      Buyer__c: { [buyers['Acme']!]: 'Acme', [buyers['Zeta']!]: 'Zeta' },
      ownerId: { [seller.userId]: 'Mx seller' },
    });
    assert.deepEqual(JSON.parse(result.rowsJson), [
      [buyers['Acme'], seller.userId, 2, 10.01],
      [buyers['Zeta'], seller.userId, 1, 5],
      [null, seller.userId, 1, null],
    ]);
  });

  it('reports a sum beyond the range of its type', async () => {
    const measures: AggregateQuery['measures'] = [{ key: 'length', aggregation: 'sum', field: 'Length__c' }];
    await world.rows(`UPDATE $schema."Sale__c" SET "Length__c" = '178000000 years'`);
    const error = await refusal(ask('admin', { measures }));
    assert.equal(error.code, 'WIDGET_QUERY_INVALID');
  });

  it('reports all problems of a query at once', async () => {
    const wrong = {
      dimensions: [
        { field: 'Price__c' },
        { field: 'name', granularity: 'day' },
        { field: 'When__c', granularity: 'hour' },
      ],
      measures: [
        { key: '1x', aggregation: 'count' },
        { key: 'n', aggregation: 'sum', field: 'name' },
        { key: 'n', aggregation: 'median', field: 'Fee__c' },
        { key: 'Currency__c', aggregation: 'sum', field: 'Price__c' },
        { key: 'none', aggregation: 'sum' },
      ],
      filters: { logic: 'nor', conditions: [{ id: 'c', field: 'Fee__c', operator: 'between', value: 1 }] },
      conditions: [{ id: 'c', field: 'Fee__c', operator: 'gt', value: 'much' }],
      sort: [{ id: 'Fee__c' }, { id: 'n' }],
      limit: 2_001,
      timezone: 'GMT+1',
      having: [],
    } as unknown as Partial<AggregateQuery>;
    const error = await refusal(ask('seller', wrong));
    assert.equal(error.code, 'WIDGET_QUERY_INVALID');
    assert.deepEqual(codes(error), [
      '/conditions/0/value FILTER_VALUE_INVALID',
      '/dimensions/0/field WIDGET_QUERY_INVALID',
      '/dimensions/1/granularity WIDGET_QUERY_INVALID',
      '/dimensions/2/granularity WIDGET_QUERY_INVALID',
      '/filters/conditions/0/valueTo FILTER_VALUE_INVALID',
      '/filters/logic FILTER_INVALID',
      '/having BODY_PROPERTY_UNKNOWN',
      '/limit WIDGET_QUERY_INVALID',
      '/measures/0/key WIDGET_QUERY_INVALID',
      '/measures/1/aggregation WIDGET_QUERY_INVALID',
      '/measures/2/aggregation WIDGET_QUERY_INVALID',
      '/measures/2/key WIDGET_QUERY_INVALID',
      '/measures/3/key WIDGET_QUERY_INVALID',
      '/measures/4/field FIELD_REQUIRED',
      '/sort/0 SORT_INVALID',
      '/timezone WIDGET_QUERY_INVALID',
    ]);
    const none = await refusal(ask('seller', { measures: [] }));
    assert.deepEqual(codes(none), ['/measures WIDGET_QUERY_INVALID']);
  });

  it('reports that 2,001 groups exceed a page, and returns the rest with the cursor', async () => {
    const rows = Array.from({ length: 2_001 }, (_, n) => [
      `01939f6e-0000-7000-8000-${String(n).padStart(12, '0')}`,
      `Many ${n}`,
    ]);
    await call(world.platform.broker, 'data.samples.load', {
      tenantId: world.tenantId,
      objectApiName: 'Item__c',
      columns: ['id', 'name', 'CompanyId__c'],
      rows: rows.map((row) => [...row, buyers['Acme']]),
    });
    const query: AggregateQuery = {
      objectApiName: 'Item__c',
      dimensions: [{ field: 'name' }],
      measures: [{ key: 'n', aggregation: 'count' }],
      limit: 2_000,
    };
    const first = await ask('admin', query);
    assert.deepEqual([first.rowCount, first.truncated, JSON.parse(first.rowsJson).length], [2_001, true, 2_000]);
    assert.equal(first.totalsJson, '{"n":2001}');
    const last = await ask('admin', { ...query, cursor: first.nextCursor! });
    assert.deepEqual([last.rowCount, last.truncated, last.nextCursor], [2_001, false, null]);
    assert.equal(last.totalsJson, first.totalsJson);
    const names = [...JSON.parse(first.rowsJson), ...JSON.parse(last.rowsJson)].map(([name]) => name);
    assert.deepEqual([names.length, new Set(names).size], [2_001, 2_001]);
    const other = await refusal(ask('admin', { ...query, sort: [{ id: 'n' }], cursor: first.nextCursor! }));
    assert.deepEqual([other.code, other.details], ['CURSOR_QUERY_MISMATCH', { changed: ['sort', 'order'] }]);
    assert.equal((await refusal(ask('admin', { ...query, cursor: 'x' }))).code, 'CURSOR_INVALID');
    assert.equal(
      (await refusal(ask('seller', { objectApiName: 'Sale__c', cursor: first.nextCursor! }))).code,
      'CURSOR_INVALID',
    );
  });
});
