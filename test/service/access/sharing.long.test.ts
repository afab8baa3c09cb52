/**
 * Random worlds: the list a user gets is exactly the set of records on which the decision is yes, whichever way it is
 * asked for. ACCESS_WORLDS sets how many worlds are tried, ACCESS_SEED replays one run.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { decideSharing, type RecordOperation } from '../../../lib/access/decide.ts';
import { type RecordLevel, reach, type SharedRecord } from '../../../lib/access/sharing.ts';
import type { Access } from '../../../lib/access/types.ts';
import { constrain } from '../../../lib/query/constrain.ts';
import { continuePlan, sealCursor } from '../../../lib/query/cursor.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { planGet, planList } from '../../../lib/query/plan.ts';
import { compileGet, compileList, conditionSql, type RecordRow, readPage, readRecord } from '../../../lib/query/sql.ts';
import type { QueryView } from '../../../lib/query/types.ts';
import type { SqlValue } from '../../../lib/schema/field-types/types.ts';
import type { Seal } from '../../../lib/values/sealed.ts';
import { Database, type Tx } from '../../../mixins/database/database.ts';
import { sharedRecordSql } from '../../../services/data/explain/record.sql.ts';
import { createDatabase, migrateMetadata, type TestDatabase } from '../../support/database.ts';
import { TENANT_ID } from '../../support/snapshots.ts';
import {
  createTables,
  type Generate,
  isAllowed,
  OBJECTS,
  type ObjectName,
  PARENTS,
  pick,
  type Row,
  randomWorld,
  sharedRecord,
  storeWorld,
  type World,
} from './world.ts';

const SCHEMA = 't_01939f6e000070008000000000000001';
const WORLDS = Number(process.env['ACCESS_WORLDS'] ?? 400);
const seed = Number(process.env['ACCESS_SEED'] ?? Date.now() % 1_000_000_000);
const TRUNCATE_EVERY = 100;
/** Users and objects of a world that are looked at. */
const USERS = 2;
const LISTED = 2;

const LEVELS: readonly (readonly [RecordLevel, RecordOperation])[] = [
  ['read', 'read'],
  ['edit', 'update'],
  ['full', 'delete'],
];

describe(`sharing in random worlds (ACCESS_SEED=${seed})`, function () {
  this.timeout(3_600_000);
  let server: TestDatabase;
  let database: Database;

  before(async () => {
    server = await createDatabase();
    database = new Database(server.url, { size: 2, applicationName: 'access test' });
    await migrateMetadata(database);
    await database.query(await createTables(SCHEMA));
  });
  after(async () => {
    await database.close();
    await server.drop();
  });

  it('gives each user exactly the records that a decision allows, at every level and by every path', async () => {
    const seen = { records: 0, hidden: 0, partly: 0 };
    let worlds = 0;
    await fc.assert(
      fc.asyncProperty(fc.gen(), async (g) => {
        const world = randomWorld(g);
        await database.query(storeWorld(world, SCHEMA, worlds++ % TRUNCATE_EVERY === 0));
        await database.transaction(async (tx) => {
          for (const { access } of g(() =>
            fc.shuffledSubarray([...world.users], { minLength: 1, maxLength: Math.min(USERS, world.users.length) }),
          ))
            await checkUser(tx, g, world, access, seen).catch((error: Error) => {
              const { snapshot, rows, shares } = world;
              error.message += ` ${JSON.stringify({ user: access.principal, snapshot, rows, shares }, null, 1)}`;
              throw error;
            });
        });
      }),
      { seed, numRuns: WORLDS, endOnFailure: true },
    );
    // Worlds in which all users see everything, or nothing, would prove nothing.
    assert.ok(seen.records > WORLDS && seen.hidden > WORLDS && seen.partly > WORLDS / 2, JSON.stringify(seen));
  });

  async function checkUser(
    tx: Tx,
    g: Generate,
    world: World,
    access: Access,
    seen: { records: number; hidden: number; partly: number },
  ): Promise<void> {
    const allowed = (object: ObjectName, operation: RecordOperation): Row[] =>
      world.rows[object].filter((row) => isAllowed(access, object, operation, sharedRecord(world, object, row)));
    for (const object of OBJECTS) {
      const readable = allowed(object, 'read');
      seen.records += readable.length;
      seen.hidden += world.rows[object].length - readable.length;
      if (readable.length > 0 && readable.length < world.rows[object].length) seen.partly++;
    }
    await checkLevels(tx, world, access);
    for (const object of g(() => fc.shuffledSubarray([...OBJECTS], { minLength: LISTED, maxLength: LISTED }))) {
      if (!access.objects[object]) continue;
      const readable = allowed(object, 'read');
      if (g(fc.boolean)) await checkList(tx, world, access, object, {}, readable, g);
      else {
        const alike = readable.filter((row) => row.values['Kind__c'] === 'a');
        await checkList(tx, world, access, object, { where: { Kind__c: 'a' } }, alike, g);
      }
      const rows = world.rows[object];
      if (rows.length === 0) continue;
      const row = g(() => fc.constantFrom(...rows));
      assert.equal(await get(tx, world, access, object, row.id), readable.includes(row));
    }
    await checkExpanded(tx, world, access, pick(g, OBJECTS), allowed);
    // Orders of a visible account, and accounts with a visible order: the related records are held to sharing as well.
    if (!access.objects['Order__c'] || !access.objects['Account__c'] || g(fc.nat, { max: 2 }) > 0) return;
    const orders = allowed('Order__c', 'read');
    const accounts = allowed('Account__c', 'read');
    const related = (field: string, objectApiName: string, to: string) => ({
      filters: {
        logic: 'and',
        conditions: [{ id: 'c', field, operator: 'in_related', value: { objectApiName, field: to } }],
      },
    });
    await checkList(
      tx,
      world,
      access,
      'Order__c',
      related('AccountId__c', 'Account__c', 'id'),
      orders.filter((order) => accounts.some((account) => account.id === order.values['AccountId__c'])),
      g,
    );
    await checkList(
      tx,
      world,
      access,
      'Account__c',
      related('id', 'Order__c', 'AccountId__c'),
      accounts.filter((account) => orders.some((order) => account.id === order.values['AccountId__c'])),
      g,
    );
  }

  /** Of each visible record, the parents that are visible. */
  async function checkExpanded(
    tx: Tx,
    world: World,
    access: Access,
    object: ObjectName,
    allowed: (object: ObjectName, operation: RecordOperation) => readonly Row[],
  ): Promise<void> {
    const parents = Object.entries(PARENTS[object]).filter(([, to]) => access.objects[to]);
    if (!access.objects[object] || parents.length === 0) return;
    const expand = Object.fromEntries(parents.map(([field]) => [field, ['Kind__c']]));
    const request = parseListQuery({ fields: ['id'], take: 200, expand }, 'body');
    const plan = planList(request, world.snapshot.objects[object]!, viewOf(world, access));
    const { name: _, ...compiled } = compileList(constrain(plan, access), SCHEMA);
    const { writer } = await tx.page(compiled, '[');
    writer.append(']');
    const records = JSON.parse(writer.finish().toString()) as { id: string }[];
    const expected = allowed(object, 'read').map(({ id, values }) => {
      const expanded = parents.map(([field, to]) => {
        const parent = allowed(to, 'read').find((row) => row.id === values[field]);
        return [field, parent ? { id: parent.id, Kind__c: parent.values['Kind__c'] ?? null } : null];
      });
      return { id, _expanded: Object.fromEntries(expanded) };
    });
    const inOrder = <R extends { id: string }>(list: readonly R[]): R[] =>
      [...list].sort((a, b) => (a.id < b.id ? -1 : 1));
    assert.deepEqual(inOrder(records), inOrder(expected));
  }

  /** The predicates as statements of writes use them; one statement for all levels and objects. */
  async function checkLevels(tx: Tx, world: World, access: Access): Promise<void> {
    const values: SqlValue[] = [];
    const bind = (value: SqlValue, type: string): string => {
      values.push(value);
      return `$${values.length}::${type}`;
    };
    const selects = OBJECTS.map((object) => {
      const columns = LEVELS.map(([level]) => {
        const node = reach(access, object, level);
        return node === null ? 'true' : `(${conditionSql(node, 't', SCHEMA, bind)}) IS TRUE`;
      });
      const told = sharedRecordSql(`"${SCHEMA}"`, world.snapshot, world.snapshot.objects[object]!, 't');
      return `SELECT t."id", ${told}::text AS told, ARRAY[${columns.join(', ')}] AS levels FROM "${SCHEMA}"."${object}" t`;
    });
    const rows = await tx.all<{ id: string; told: unknown; levels: boolean[] }>({
      text: selects.join(' UNION ALL '),
      values,
    });
    const found = new Map(rows.map((row) => [row.id, row]));
    for (const object of OBJECTS)
      for (const row of world.rows[object]) {
        const { told, levels } = found.get(row.id)!;
        checkDecisions(access, object, sharedRecord(world, object, row), levels);
        // As explanations read it.
        checkDecisions(access, object, JSON.parse(told as string), levels);
      }
  }

  function checkDecisions(access: Access, object: ObjectName, record: SharedRecord, found: readonly boolean[]): void {
    const may = access.objects[object]?.permission;
    for (const [index, [level, operation]] of LEVELS.entries()) {
      const allowed = isAllowed(access, object, operation, record);
      const permitted = may?.[operation as 'read' | 'update' | 'delete'] === true;
      assert.equal(allowed, permitted && found[index], `${level} ${object} ${record.id}`);
      if (!may) continue;
      const decision = decideSharing(access, object, operation, record);
      if (decision.allowed) assert.ok(decision.grantedBy.length > 0);
      else if (!found[0]) assert.equal(decision.code, 'RECORD_NOT_FOUND');
    }
  }

  async function checkList(
    tx: Tx,
    world: World,
    access: Access,
    object: ObjectName,
    query: Record<string, unknown>,
    expected: readonly Row[],
    g: Generate,
  ): Promise<void> {
    const view = viewOf(world, access);
    const sort = g(fc.nat, { max: 3 }) === 0 ? { sort: [{ id: 'Amount__c', desc: g(fc.boolean) }] } : {};
    const take = g(fc.integer, { min: 1, max: 8 });
    const found: string[] = [];
    let cursor: string | null = null;
    do {
      const raw: Record<string, unknown> = { ...query, ...sort, fields: ['id'], take, includeTotal: true };
      const request = parseListQuery(cursor === null ? raw : { ...raw, cursor }, 'body');
      const seal = sealOf(access);
      const plan = continuePlan(planList(request, world.snapshot.objects[object]!, view), request, seal);
      const { name: _, ...compiled } = compileList(constrain(plan, access), SCHEMA);
      const { writer, ...rows } = await tx.page(compiled, '[');
      writer.append(']');
      const page = readPage(compiled, rows);
      const records = JSON.parse(writer.finish().toString()) as { id: string }[];
      assert.equal(page.total, expected.length, `total`);
      found.push(...records.map((record) => record.id));
      assert.ok(found.length <= expected.length);
      cursor = page.lastKeys && sealCursor(page.lastKeys, plan, request, seal);
      // A page is full unless it is the last one.
      assert.ok(cursor === null || records.length === take);
    } while (cursor !== null);
    assert.deepEqual([...found].sort(), expected.map((row) => row.id).sort());
  }

  async function get(tx: Tx, world: World, access: Access, object: ObjectName, id: string): Promise<boolean> {
    const plan = planGet(id, ['id'], world.snapshot.objects[object]!, viewOf(world, access));
    const { name: _, ...compiled } = compileGet(constrain(plan, access), SCHEMA);
    return readRecord(await tx.one<RecordRow>(compiled)).record !== null;
  }
});

const viewOf = (world: World, access: Access): QueryView => ({
  access,
  snapshot: world.snapshot,
  now: Date.parse('2026-11-21T00:00:00Z'),
  timezone: 'UTC',
});

const sealOf = (access: Access): Seal => ({
  keys: [Buffer.alloc(32, 7)],
  now: Date.parse('2026-11-21T00:00:00Z'),
  tenantId: TENANT_ID,
  userId: access.principal.userId,
  clientId: 'test',
});
