/** Groups of records, as a service asks for them for a user. Random questions: test/service/query/aggregate.long.test.ts. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { call } from '../../../contracts/call.ts';
import type { AggregateQuery, AggregateResult } from '../../../contracts/data/aggregate.ts';
import { Database } from '../../../mixins/database/database.ts';
import { codes, createWorld, type Person, refusal, type World } from './world.ts';

const COUNT = { key: 'count', aggregation: 'count' } as const;

describe('aggregates of records', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
    const { clerk } = world;
    const parent = (await clerk.create('Company__c', { name: 'Parent' })).body.id;
    const companies = [
      { Kind__c: 'a', Amount__c: '10.10', Count__c: 1, Day__c: '2026-01-01', ParentId__c: parent, Tags__c: ['x'] },
      { Kind__c: 'a', Amount__c: '0.20', Count__c: 2, Day__c: '2026-03-31', ParentId__c: parent, Tags__c: [] },
      { Kind__c: 'b', Amount__c: null, Count__c: 4, Day__c: '2026-04-01', Code__c: ' ' },
      { Kind__c: null, Amount__c: '99999999999999.99', Day__c: null, When__c: '2026-03-28T23:30:00Z' },
    ];
    for (const [n, company] of companies.entries())
      await clerk.create('Company__c', { name: `Company ${n}`, ...company });
  });
  after(() => world?.stop());

  const ask = (by: Person, query: Partial<AggregateQuery>): Promise<AggregateResult> =>
    call(world.platform.broker, 'data.records.aggregate', {
      asker: by.asker,
      query: { objectApiName: 'Company__c', measures: [COUNT], ...query },
    });
  const rows = (result: AggregateResult): unknown => JSON.parse(result.rowsJson);

  it('sums per group, with a null group, and totals', async () => {
    const result = await ask(world.clerk, {
      dimensions: [{ field: 'Kind__c' }],
      measures: [
        COUNT,
        { key: 'sum', aggregation: 'sum', field: 'Amount__c' },
        { key: 'avg', aggregation: 'avg', field: 'Count__c' },
        { key: 'max', aggregation: 'max', field: 'Day__c' },
        { key: 'codes', aggregation: 'count', field: 'Code__c' },
        { key: 'tagged', aggregation: 'count', field: 'Tags__c' },
        { key: 'days', aggregation: 'countDistinct', field: 'Day__c' },
      ],
    });
    assert.deepEqual(
      result.columns.map(({ key, role, fieldType, currency }) => [key, role, fieldType, currency]),
      [
        ['Kind__c', 'dimension', 'picklist', null],
        ['count', 'measure', 'integer', null],
        ['sum', 'measure', 'currency', 'EUR'],
        ['avg', 'measure', 'decimal', null],
        ['max', 'measure', 'date', null],
        ['codes', 'measure', 'integer', null],
        ['tagged', 'measure', 'integer', null],
        ['days', 'measure', 'integer', null],
      ],
    );
    assert.equal(
      result.rowsJson,
      '[["a",3,10.30,1.5,"2026-03-31",0,1,2],["b",1,null,4,"2026-04-01",0,0,1],' +
        '[null,1,99999999999999.99,null,null,0,0,0]]',
    );
    assert.equal(
      result.totalsJson,
      '{"count":5,"sum":100000000000010.29,"avg":2.333333,"max":"2026-04-01","codes":0,"tagged":1,"days":3}',
    );
  });

  it('has one row without dimensions, also when there is no record', async () => {
    const measures: AggregateQuery['measures'] = [COUNT, { key: 'sum', aggregation: 'sum', field: 'Amount__c' }];
    assert.deepEqual(rows(await ask(world.clerk, { measures: [COUNT] })), [[5]]);
    const none = await ask(world.clerk, { objectApiName: 'Item__c' });
    assert.deepEqual([rows(none), none.rowCount, none.truncated], [[[0]], 1, false]);
    const filters = { logic: 'and', conditions: [{ id: 'c', field: 'name', operator: 'eq', value: 'nobody' }] };
    assert.deepEqual(rows(await ask(world.clerk, { measures, filters })), [[0, null]]);
    assert.deepEqual(rows(await ask(world.clerk, { measures, filters, dimensions: [{ field: 'Kind__c' }] })), []);
  });

  it('handles a hidden field like one that does not exist', async () => {
    const named = (field: string): Partial<AggregateQuery> => ({
      dimensions: [{ field }, { field: 'Kind__c' }],
      filters: { logic: 'and', conditions: [{ id: 'c', field, operator: 'eq', value: 'x' }] },
      conditions: [{ id: 'c', field: 'ownerId', operator: 'in_related', value: { objectApiName: field, field: 'id' } }],
      sort: [{ id: field }, { id: 'nothing', desc: true }],
    });
    const [hidden, unknown] = [
      await refusal(ask(world.clerk, named('Secret__c'))),
      await refusal(ask(world.clerk, named('Absent__c'))),
    ];
    assert.deepEqual([hidden.code, hidden.status], ['WIDGET_QUERY_INVALID', 422]);
    assert.deepEqual(codes(hidden), [
      '/conditions/0/value/objectApiName FILTER_VALUE_INVALID',
      '/dimensions/0/field FIELD_UNKNOWN',
      '/filters/conditions/0/field FILTER_FIELD_UNKNOWN',
      '/sort/1 SORT_INVALID',
    ]);
    assert.equal(
      JSON.stringify(hidden.toWire()).replaceAll('Secret__c', 'Absent__c'),
      JSON.stringify(unknown.toWire()),
    );

    const measured = (field: string) =>
      ask(world.clerk, {
        measures: [
          COUNT,
          { key: 'most', aggregation: 'max', field },
          { key: 'values', aggregation: 'countDistinct', field },
        ],
        sort: [{ id: 'most', desc: true }],
      });
    const result = await measured('Secret__c');
    assert.deepEqual(rows(result), [[5, null, null]]);
    assert.equal(result.totalsJson, '{"count":5,"most":null,"values":null}');
    assert.deepEqual(
      result.accessNotes.map(({ code, field }) => [code, field]),
      [['FIELD_HIDDEN', 'Secret__c']],
    );
    const told = ({ computedAt: _, dataAsOf: __, ...rest }: AggregateResult): string => JSON.stringify(rest);
    assert.equal(told(result).replaceAll('Secret__c', 'Absent__c'), told(await measured('Absent__c')));
  });

  it('uses parallel workers only while it is the only query of its kind', async () => {
    const { tenantTransaction } = Database.prototype;
    const allowed: string[] = [];
    let began = (): void => {};
    let end = Promise.resolve();
    Database.prototype.tenantTransaction = function (tenantId, act) {
      return tenantTransaction.call(this, tenantId, async (tx) => {
        const answer = await act(tx);
        const { workers } = await tx.one<{ workers: string }>({
          text: "SELECT current_setting('max_parallel_workers_per_gather') AS workers",
          values: [],
        });
        allowed.push(workers);
        began();
        await end;
        return answer;
      }) as never;
    };
    try {
      await ask(world.clerk, {});
      let finish = (): void => {};
      end = new Promise((resolve) => {
        finish = resolve;
      });
      const first = new Promise<void>((resolve) => {
        began = resolve;
      });
      const one = ask(world.clerk, {});
      await first;
      const others = [ask(world.clerk, {}), ask(world.reader, {})];
      while (allowed.length < 4) await pause(5);
      finish();
      await Promise.all([one, ...others]);
      await ask(world.clerk, {});
    } finally {
      Database.prototype.tenantTransaction = tenantTransaction;
    }
    assert.deepEqual(allowed, ['2', '2', '0', '0', '2']);
  });

  it('does not find an object that the user cannot read', async () => {
    for (const objectApiName of ['Vault__c', 'Draft__c', 'Absent__c', 'toString', ''])
      assert.equal((await refusal(ask(world.clerk, { objectApiName }))).code, 'OBJECT_NOT_FOUND', objectApiName);
    assert.equal((await refusal(ask(world.nobody, {}))).code, 'API_ACCESS_DISABLED');
  });
});
