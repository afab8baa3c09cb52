/**
 * Random objects, records and queries: what PostgreSQL answers is what a brute-force evaluation in memory says.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { constrain } from '../../../lib/query/constrain.ts';
import { continuePlan, sealCursor } from '../../../lib/query/cursor.ts';
import { LIST_LIMITS, parseListQuery } from '../../../lib/query/parse.ts';
import { planGet, planList } from '../../../lib/query/plan.ts';
import { compileGet, compileList, type Page, type RecordRow, readPage, readRecord } from '../../../lib/query/sql.ts';
import type { CompiledQuery } from '../../../lib/query/types.ts';
import type { Seal } from '../../../lib/values/sealed.ts';
import { TENANT_ID, USER_ID } from '../../support/snapshots.ts';
import { evaluate, microseconds, type RawQuery, type Row, typeOf, type Value } from './evaluate.ts';
import { inRandomWorlds, SCHEMA, seed, suiteDatabase, withHiddenFields, worldsOr } from './random-worlds.ts';
import { randomQuery, type World } from './world.ts';

const WORLDS = worldsOr(70);
const QUERIES = 25;

const seal: Seal = {
  keys: [Buffer.alloc(32, 7)],
  now: Date.parse('2026-11-21T00:00:00Z'),
  tenantId: TENANT_ID,
  userId: USER_ID,
  clientId: 'test',
};

describe(`list queries against a brute-force evaluation (QUERY_SEED=${seed})`, function () {
  this.timeout(600_000);
  const database = suiteDatabase();

  const recordOf = async ({ text, values }: CompiledQuery): Promise<RecordRow> => {
    const { rows } = await database().pool.query<RecordRow>({ text, values: [...values] });
    return rows[0]!;
  };

  async function list(world: World, raw: Record<string, unknown>, objectApiName: string): Promise<Listed> {
    const object = world.objects[objectApiName]!;
    const request = parseListQuery(raw, 'body');
    const plan = continuePlan(planList(request, object, world.view, { ieee754Compatible: true }), request, seal);
    const compiled = compileList(constrain(plan, world.access), SCHEMA);
    const { writer, ...rows } = await database().transaction((tx) => tx.page(compiled, '['));
    writer.append(']');
    const page = readPage(compiled, rows);
    const records = JSON.parse(writer.finish().toString()) as Record<string, unknown>[];
    assert.equal(records.length, page.count);
    assert.deepEqual([page.metadataVersion, page.accessVersion], [1, 7]);
    return { page, records, nextCursor: page.lastKeys && sealCursor(page.lastKeys, plan, request, seal) };
  }

  it('gives the same records in the same order, page by page, each exactly once', async () => {
    let matched = 0;
    await inRandomWorlds(database(), WORLDS, async (world, g) => {
      for (let i = 0; i < QUERIES; i++) {
        const query = randomQuery(g, world.objects['Order__c']!, world);
        const expected = evaluate(query, world.objects['Order__c']!, world);
        matched += expected.length;
        const found: Record<string, unknown>[] = [];
        const take = g(fc.integer, { min: 1, max: 12 });
        let cursor: string | null = null;
        do {
          const raw: Record<string, unknown> = { ...query, take, includeTotal: true, includeEtag: true };
          const { page, records, nextCursor } = await list(world, { ...raw, cursor }, 'Order__c');
          assert.equal(page.total, expected.length, explain(query));
          found.push(...records);
          assert.ok(found.length <= expected.length, explain(query));
          cursor = nextCursor;
        } while (cursor !== null);
        assert.deepEqual(
          found.map((record) => record['id']),
          expected.map((row) => row['id']),
          explain(query),
        );
        for (const [index, record] of found.entries()) assertShows(record, expected[index]!, world);
      }
    });
    assert.ok(matched > WORLDS, 'the queries find something');
  });

  it('skips the requested number of records', async () => {
    await inRandomWorlds(database(), Math.ceil(WORLDS / 10), async (world, g) => {
      const query = randomQuery(g, world.objects['Order__c']!, world);
      const expected = evaluate(query, world.objects['Order__c']!, world);
      const skip = g(fc.nat, { max: 20 });
      const { records } = await list(world, { ...query, skip, take: 5 }, 'Order__c');
      assert.deepEqual(
        records.map((record) => record['id']),
        expected.slice(skip, skip + 5).map((row) => row['id']),
      );
    });
  });

  it('gets each record as in the list', async () => {
    await inRandomWorlds(database(), Math.ceil(WORLDS / 10), async (world) => {
      const object = world.objects['Order__c']!;
      const { records } = await list(world, { take: 200 }, 'Order__c');
      for (const record of records.slice(0, 3)) {
        const plan = planGet(String(record['id']), null, object, world.view, { ieee754Compatible: true });
        const single = readRecord(await recordOf(compileGet(constrain(plan, world.access), SCHEMA)));
        assert.deepEqual(JSON.parse(single.record!), record);
        assert.equal(single.recordVersion, record['recordVersion']);
      }
      const nowhere = planGet('01939f6e-ffff-7000-8000-000000000000', null, object, world.view);
      assert.deepEqual(readRecord(await recordOf(compileGet(constrain(nowhere, world.access), SCHEMA))), {
        record: null,
        recordVersion: null,
        metadataVersion: 1,
        accessVersion: 7,
      });
    });
  });

  it('expands a reference to the record as read separately, or null', async () => {
    const seen = { found: 0, missing: 0 };
    await inRandomWorlds(database(), Math.ceil(WORLDS / 4), async (world, g) => {
      const [order, account] = [world.objects['Order__c']!, world.objects['Account']!];
      const readable = world.access.objects['Account']!.readable.map((field) => field.apiName);
      const fields = g(() =>
        fc.shuffledSubarray(readable, {
          minLength: 1,
          maxLength: Math.min(readable.length, LIST_LIMITS.expand_fields_max),
        }),
      );
      const shown = g(fc.boolean) ? { fields: ['name'] } : {};
      const expand = { Other__c: fields };
      const { records } = await list(world, { ...shown, take: 200, includeEtag: g(fc.boolean), expand }, 'Order__c');
      for (const [index, { _expanded: expanded, ...record }] of records.entries()) {
        const id = evaluate({}, order, world)[index]!['Other__c'];
        const plan = planGet(String(id), ['id', ...fields], account, world.view, { ieee754Compatible: true });
        const found = id === null ? null : await recordOf(compileGet(constrain(plan, world.access), SCHEMA));
        const got = found?.record == null ? null : JSON.parse(found.record);
        seen[got === null ? 'missing' : 'found']++;
        assert.deepEqual(expanded, { Other__c: got });
        assert.equal('Other__c' in record, !('fields' in shown));
        if (index > 2) continue;
        const asked = parseListQuery({ ...shown, expand }, 'body');
        const single = planGet(evaluate({}, order, world)[index]!['id'] as string, asked.fields, order, world.view, {
          ieee754Compatible: true,
          expand: asked.expand,
        });
        const answer = await recordOf(compileGet(constrain(single, world.access), SCHEMA));
        const { _etag, ...rest } = record;
        assert.deepEqual(JSON.parse(readRecord(answer).record!), { ...rest, _expanded: expanded });
      }
    });
    // In a quarter of the worlds; how many records each has is left to chance.
    assert.ok(seen.found > WORLDS / 4 && seen.missing > WORLDS / 4, JSON.stringify(seen));
  });

  it('answers a hidden field exactly like one that does not exist', () => {
    withHiddenFields(WORLDS, (world, objectApiName, hidden) => {
      const other = objectApiName === 'Account' ? 'Order__c' : 'Account';
      const queries: [string, Record<string, unknown>][] = [
        ...queriesNaming(hidden).map((query) => [objectApiName, query] as [string, Record<string, unknown>]),
        [other, { expand: { Other__c: ['id', hidden] } }],
        ...queriesFollowing(`Other__c.${hidden}`).map((query): [string, Record<string, unknown>] => [other, query]),
        [other, related({ objectApiName, field: hidden })],
        [
          other,
          related({ objectApiName, field: 'id', conditions: [{ id: 'b', field: hidden, operator: 'is_blank' }] }),
        ],
      ];
      for (const [asked, query] of queries) {
        const [a, b] = [hidden, 'Absent__c'].map((name) => {
          const text = JSON.stringify(query).replaceAll(hidden, name);
          return JSON.stringify(refusal(world, asked, JSON.parse(text))).replaceAll(name, '?');
        });
        assert.equal(a, b);
      }
    });
  });

  function refusal(world: World, objectApiName: string, raw: Record<string, unknown>): unknown {
    try {
      const request = parseListQuery(raw, 'body');
      planList(request, world.objects[objectApiName]!, world.view);
    } catch (error) {
      assert.ok(error instanceof PlatformError);
      return error.toWire();
    }
    assert.fail('A query that names a hidden field went through.');
  }
});

interface Listed {
  page: Page;
  records: Record<string, unknown>[];
  nextCursor: string | null;
}

const related = (value: unknown): Record<string, unknown> => ({
  filters: { logic: 'and', conditions: [{ id: 'a', field: 'Other__c', operator: 'in_related', value }] },
});

const queriesFollowing = (field: string): Record<string, unknown>[] => [
  { where: { [field]: 'x' } },
  { where: { [field]: null } },
  { whereIn: { [field]: ['x'] } },
  { filters: { logic: 'or', conditions: [{ id: 'a', field, operator: 'gt', value: 1 }] } },
  { sort: [{ id: field, desc: true }] },
  { orderBy: field },
];

const queriesNaming = (field: string): Record<string, unknown>[] => [
  { where: { [field]: 'x' } },
  { where: { [field]: null } },
  { whereIn: { [field]: ['x'] } },
  { filters: { logic: 'or', conditions: [{ id: 'a', field, operator: 'is_blank' }] } },
  { filters: { logic: 'or', conditions: [{ id: 'a', field, operator: 'gt', value: 1 }] } },
  {
    filters: {
      logic: 'and',
      conditions: [
        { id: 'a', field: 'Other__c', operator: 'in_related', value: { objectApiName: 'Account', field: 'id' } },
        { id: 'b', field, operator: 'eq', value: 'x' },
      ],
    },
  },
  { sort: [{ id: field, desc: true }] },
  { orderBy: field },
  { fields: ['id', field] },
  { search: 'ab', searchFields: [field] },
  { expand: { [field]: ['id'] } },
];

const explain = (query: RawQuery): string => JSON.stringify(query, null, 1);

/** The record shows exactly the readable fields, each with the value that was stored. */
function assertShows(record: Record<string, unknown>, row: Row, world: World): void {
  const { readable } = world.access.objects['Order__c']!;
  assert.deepEqual(Object.keys(record), [...readable.map((field) => field.apiName), '_etag']);
  assert.equal(record['_etag'], `"${Number(row['recordVersion']).toString(36)}"`);
  for (const field of readable) {
    const stored: Value = row[field.apiName] ?? null;
    const shown = record[field.apiName];
    if (stored === null) {
      assert.equal(shown, null);
      continue;
    }
    switch (typeOf(field)) {
      case 'decimal':
      case 'currency':
      case 'percent': {
        const [whole, fraction = ''] = String(stored).split('.');
        assert.equal(shown, field.scale ? `${whole}.${fraction.padEnd(field.scale, '0')}` : whole);
        break;
      }
      case 'dateTime':
        assert.match(String(shown), /\+00:00$/);
        assert.equal(Date.parse(String(shown)), stored);
        break;
      case 'duration':
        assert.equal(microseconds(String(shown)), microseconds(String(stored)));
        break;
      case 'time':
        assert.equal(String(shown), String(stored).padEnd(8, ':00'));
        break;
      default:
        assert.deepEqual(shown, stored);
    }
  }
}
