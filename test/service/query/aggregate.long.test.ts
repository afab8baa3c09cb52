/**
 * Random objects, records and queries of groups: what PostgreSQL answers is what a brute-force evaluation in memory of the
 * records that the user can list says.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { planAggregate } from '../../../lib/query/aggregate.ts';
import { type AggregateRow, compileAggregate } from '../../../lib/query/aggregate-sql.ts';
import { aggregationsOf, granularitiesOf, groupable } from '../../../lib/query/capabilities.ts';
import { constrainGroups } from '../../../lib/query/constrain.ts';
import { evaluate, type RawCondition, type Row } from './evaluate.ts';
import { type GroupQuery, group, shows } from './groups.ts';
import { inRandomWorlds, SCHEMA, seed, suiteDatabase, withHiddenFields, worldsOr } from './random-worlds.ts';
import { type Generate, pick, randomQuery, type World, ZONES } from './world.ts';

const WORLDS = worldsOr(60);
const QUERIES = 20;

interface Asked extends GroupQuery {
  objectApiName: string;
  filters?: { logic: 'and' | 'or'; conditions: RawCondition[] };
  conditions?: RawCondition[];
  limit: number;
  timezone?: string;
  ieee754Compatible: boolean;
}

describe(`aggregate queries against a brute-force evaluation (QUERY_SEED=${seed})`, function () {
  this.timeout(600_000);
  const database = suiteDatabase();

  async function ask(
    world: World,
    query: Asked,
    after: AggregateRow['lastKeys'],
    maxBytes: number,
  ): Promise<AggregateRow> {
    const object = world.access.objects[query.objectApiName]!;
    const plan = planAggregate({ ...query }, object, world.view);
    const compiled = compileAggregate(constrainGroups({ ...plan, after }, world.access), {
      schema: SCHEMA,
      maxBytes,
      named: new Map(),
    });
    return database().transaction((tx) => tx.one<AggregateRow>(compiled));
  }

  it('gives the same groups in the same order, page by page, each exactly once', async () => {
    let found = 0;
    await inRandomWorlds(database(), WORLDS, async (world, g) => {
      for (let i = 0; i < QUERIES; i++) found += await check(world, g);
    });
    assert.ok(found > WORLDS * QUERIES, 'the queries find something');
  });

  async function check(world: World, g: Generate): Promise<number> {
    const object = world.objects['Order__c']!;
    const query = randomGroups(g, world);
    const timezone = query.timezone ?? world.timezone;
    const matching = (conditions: Asked['filters']): Set<Row> =>
      new Set(evaluate(conditions ? { filters: conditions } : {}, object, { ...world, timezone }));
    const others = query.conditions && { logic: 'and' as const, conditions: query.conditions };
    const [one, other] = [matching(query.filters), matching(others)];
    const { fields } = world.access.objects['Order__c']!;
    const expected = group(query, object, [...one.intersection(other)], {
      timezone,
      readable: (name) => fields[name]?.read === true,
    });
    const rows: unknown[][] = [];
    const maxBytes = g(fc.boolean) ? 8_000_000 : 60;
    let after: AggregateRow['lastKeys'] = null;
    do {
      const page = await ask(world, query, after, maxBytes);
      const read = exactly(page.rows) as unknown[][];
      // Without any record there is no currency, and the row of no dimension is put in by the service.
      if (page.rowCount > 0) {
        assert.equal(page.rowCount, expected.rows.length, explain(query));
        assert.equal(read.length, page.shown);
        assert.ok(read.length > 0 && read.length <= query.limit);
        if (page.more && maxBytes > 1_000) assert.equal(read.length, query.limit);
      }
      const totals = Object.values(exactly(page.totals) as Record<string, unknown>);
      for (const [index, cell] of expected.totals.entries())
        assert.ok(shows(totals[index], cell), `total ${index}: ${page.totals} ${explain(query)} ${explain(expected)}`);
      rows.push(...read);
      after = page.more ? page.lastKeys : null;
      if (page.rowCount === 0) return 0;
    } while (after !== null);
    assert.equal(rows.length, expected.rows.length, explain(query));
    for (const [index, cells] of expected.rows.entries()) {
      assert.equal(rows[index]!.length, cells.length, explain(query));
      const same = cells.every((cell, at) => shows(rows[index]![at], cell));
      assert.ok(same, `row ${index}: ${JSON.stringify(rows[index])} ${explain(query)} ${explain(expected)}`);
    }
    return rows.length;
  }

  it('answers a hidden field exactly like one that does not exist', () => {
    withHiddenFields(WORLDS, (world, objectApiName, hidden) => {
      const measures = [{ key: 'n', aggregation: 'count' }];
      const condition = { id: 'a', field: hidden, operator: 'eq', value: 'x' };
      const queries: Record<string, unknown>[] = [
        { measures, dimensions: [{ field: hidden }] },
        { measures, dimensions: [{ field: hidden, granularity: 'day' }], sort: [{ id: hidden }] },
        { measures, filters: { logic: 'or', conditions: [condition] } },
        { measures, conditions: [condition] },
        ...['count', 'countDistinct', 'sum', 'avg', 'min', 'max'].map((aggregation) => ({
          measures: [{ key: 'n', aggregation, field: hidden }],
          sort: [{ id: 'n', desc: true }],
        })),
      ];
      for (const query of queries) {
        const [a, b] = [hidden, 'Absent__c'].map((name) => {
          const raw = JSON.parse(JSON.stringify({ objectApiName, ...query }).replaceAll(hidden, name));
          return JSON.stringify(outcome(world, raw)).replaceAll(name, '?');
        });
        assert.equal(a, b);
      }
    });
  });

  /** The statement, or the refusal. */
  function outcome(world: World, raw: { objectApiName: string }): unknown {
    try {
      const plan = planAggregate(raw, world.access.objects[raw.objectApiName]!, world.view);
      return compileAggregate(constrainGroups(plan, world.access), {
        schema: SCHEMA,
        maxBytes: 1_000,
        named: new Map(),
      });
    } catch (error) {
      assert.ok(error instanceof PlatformError);
      return error.toWire();
    }
  }
});

/** Numbers as the text they were written with. */
const exactly = (json: string): unknown =>
  JSON.parse(json, (_key, value: unknown, { source }: { source?: string } = {}) =>
    typeof value === 'number' ? source : value,
  );

const explain = (about: object): string =>
  JSON.stringify(about, (key, value: unknown) => (key === 'field' && typeof value === 'object' ? undefined : value));

function randomGroups(g: Generate, world: World): Asked {
  const object = world.objects['Order__c']!;
  const { readable } = world.access.objects['Order__c']!;
  const dimensions = g(() => fc.shuffledSubarray(readable.filter(groupable), { maxLength: 3 })).map((field) => {
    const granularities = granularitiesOf(field);
    if (granularities.length === 0 || g(fc.nat, { max: 4 }) === 0) return { field: field.apiName };
    return { field: field.apiName, granularity: pick(g, granularities) };
  });
  const hidden = [...world.hidden].filter((path) => path.startsWith('Order__c.')).map((path) => path.slice(9));
  const measures = Array.from({ length: g(fc.integer, { min: 1, max: 5 }) }, (_, index) => {
    const key = `m${index}`;
    if (g(fc.nat, { max: 4 }) === 0) return { key, aggregation: 'count' };
    if (hidden.length > 0 && g(fc.nat, { max: 4 }) === 0)
      return { key, aggregation: pick(g, ['sum', 'max', 'count', 'countDistinct']), field: pick(g, hidden) };
    const field = pick(g, readable);
    return { key, aggregation: pick(g, aggregationsOf(field)), field: field.apiName };
  });
  const columns = [
    ...dimensions.map(({ field, granularity }) => (granularity ? `${field}_${granularity}` : field)),
    // Averages of durations are not exact.
    ...measures
      .filter(({ aggregation, field }) => aggregation !== 'avg' || field !== 'duration__c')
      .map(({ key }) => key),
  ];
  const conditions = randomQuery(g, object, world, { follows: false }).filters?.conditions;
  const filters = randomQuery(g, object, world, { follows: false }).filters;
  return {
    objectApiName: 'Order__c',
    dimensions,
    measures,
    sort: g(() => fc.shuffledSubarray(columns, { maxLength: Math.min(2, columns.length) })).map((id) => ({
      id,
      desc: g(fc.boolean),
    })),
    limit: g(fc.integer, { min: 1, max: 40 }),
    ieee754Compatible: g(fc.boolean),
    ...(g(fc.boolean) ? { timezone: pick(g, ZONES) } : {}),
    ...(filters ? { filters } : {}),
    ...(conditions && g(fc.boolean) ? { conditions } : {}),
  };
}
