/**
 * Random worlds that change: the history of a record answers exactly those who can read the record, and the changes that a
 * user sees are exactly those of records in the user's sight, then or now, by what is decided of the world before
 * and after. ACCESS_WORLDS sets how many worlds are tried, ACCESS_SEED replays one run.
 */

import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Access } from '../../../lib/access/types.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { Database, type Tx } from '../../../mixins/database/database.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import type { Read, ReadDeps } from '../../../services/data/read/read.ts';
import { etagOf } from '../../../services/data/sql.ts';
import { listChanges } from '../../../services/data/trail/changes.ts';
import { listHistory } from '../../../services/data/trail/history.ts';
import type { View } from '../../../services/data/view.ts';
import { createDatabase, migrateMetadata, type TestDatabase } from '../../support/database.ts';
import { TENANT_ID } from '../../support/snapshots.ts';
import { randomChange, type State, startState, versionOf } from './changes.ts';
import {
  count,
  createTables,
  type Generate,
  isAllowed,
  OBJECTS,
  type ObjectName,
  type Row,
  randomWorld,
  sharedRecord,
  storeWorld,
  type World,
} from './world.ts';

const SCHEMA = 't_01939f6e000070008000000000000001';
const WORLDS = Number(process.env['ACCESS_WORLDS'] ?? 80);
const seed = Number(process.env['ACCESS_SEED'] ?? Date.now() % 1_000_000_000);
const TRUNCATE_EVERY = 20;
const ROUNDS_MAX = 4;
/** Changes that users hear of, and those before. */
const CHANGES = Number(process.env['ACCESS_CHANGES'] ?? 5);
const EARLIER = 2;
/** Users of a world, objects in which each sees an entry, and records whose history each reads. */
const USERS = 2;
const FOLLOWED = 2;
const HISTORIES = 2;

type Told = 'upserted' | 'deleted' | 'accessLost';

interface Change {
  readonly id: string;
  readonly change: Told;
  readonly record: Record<string, unknown> | null;
  readonly etag: string | null;
}

describe(`history and changes in random worlds (ACCESS_SEED=${seed})`, function () {
  this.timeout(3_600_000);
  let server: TestDatabase;
  let database: Database;
  let tx: Tx;

  before(async () => {
    server = await createDatabase();
    database = new Database(server.url, { size: 1, applicationName: 'access test' });
    await migrateMetadata(database);
    await database.query(await createTables(SCHEMA));
    const client = await database.pool.connect();
    tx = {
      schema: `"${SCHEMA}"`,
      client,
      gather: () => {},
      begin: (statement: string) => void client.query(statement),
      control: (statement: string) => client.query(statement),
      allUpTo: async ({ text, values }: Statement) => ({
        rows: (await client.query({ text, values: values as unknown[] })).rows,
        more: false,
      }),
      all: async ({ text, values }: Statement) => (await client.query({ text, values: values as unknown[] })).rows,
      first: async ({ text, values }: Statement) =>
        (await client.query({ text, values: values as unknown[] })).rows[0] ?? null,
    } as unknown as Tx;
  });
  after(async () => {
    tx?.client.release();
    await database?.close();
    await server?.drop();
  });

  const seen = {
    upserted: 0,
    deleted: 0,
    accessLost: 0,
    cameIntoSight: 0,
    cameAndWent: 0,
    untold: 0,
    histories: 0,
    hidden: 0,
  };

  it('shows each user exactly the records that a decision allows, then or now', async () => {
    let worlds = 0;
    const property = fc.asyncProperty(fc.gen(), async (g) => {
      const world = randomWorld(g);
      await tx.client.query(storeWorld(world, SCHEMA, worlds++ % TRUNCATE_EVERY === 0));
      const users = g(() =>
        fc.shuffledSubarray([...world.users], { minLength: 1, maxLength: Math.min(USERS, world.users.length) }),
      );
      const focus = users.map(({ access }) => access.principal.userId);
      const [before] = await change(g, startState(world), focus, count(g, 0, EARLIER));
      // A copy that is filled from lists at any time since drops what it may have seen; a full one what it has.
      const listing = g(fc.boolean);
      const cursors = new Map<string, string>();
      for (const { access } of users)
        for (const object of OBJECTS)
          if (!access.objects[object]) await assertAbsent(before.world, access, object);
          else {
            const { resumeCursor: cursor } = await page(before.world, access, object, {});
            const full = async () => (await page(before.world, access, object, { cursor })).resumeCursor;
            cursors.set(`${access.principal.userId} ${object}`, listing ? cursor : await full());
          }
      const [after, ...between] = await change(g, before, focus, count(g, 1, CHANGES));
      for (const { access, object, expected } of users.flatMap((user) =>
        followed(g, before, between, listing, after, user.access),
      )) {
        const hint = (error: Error): never => {
          const { snapshot, rows, shares } = before.world;
          error.message += ` ${JSON.stringify({ user: access.principal, object, snapshot, before: { rows, shares }, after: { rows: after.world.rows, shares: after.world.shares, bin: after.bin.map((item) => ({ ...item, before: { rows: item.before.rows, shares: item.before.shares } })) } }, null, 1)}`;
          throw error;
        };
        const cursor = cursors.get(`${access.principal.userId} ${object}`)!;
        await checkChanges(g, after, access, object, cursor, expected).catch(hint);
        await checkHistories(g, before, after, access, object).catch(hint);
      }
    });
    // Worlds in which nothing comes into sight or goes out of it would prove nothing: where it was rare, more are tried.
    const isRare = (): boolean =>
      Object.entries(seen).some(([what, times]) => what !== 'cameAndWent' && times <= WORLDS / 20);
    for (let round = 0; round === 0 || (round < ROUNDS_MAX && isRare()); round++)
      await fc.assert(property, { seed: seed + round, numRuns: WORLDS, endOnFailure: true });
    const { cameAndWent, ...often } = seen;
    for (const [what, times] of Object.entries(often))
      assert.ok(times > WORLDS / 20, `${what} ${JSON.stringify(seen)}`);
    assert.ok(cameAndWent > 0 || WORLDS < 500, JSON.stringify(seen));
  });

  /** Some changes, each a transaction; what comes of them, and the states on the way. */
  async function change(
    g: Generate,
    from: State,
    focus: readonly string[],
    wanted: number,
  ): Promise<[State, ...State[]]> {
    const states: State[] = [];
    let state = from;
    const statements: string[] = [];
    for (let n = 0; n < wanted; n++) {
      const changed = randomChange(g, state, SCHEMA, focus);
      if (!changed) continue;
      states.push(state);
      state = changed.state;
      statements.push('BEGIN', ...changed.statements, 'COMMIT');
    }
    if (statements.length > 0) await tx.client.query(statements.join(';\n'));
    return [state, ...states];
  }

  /** The objects in which a user sees an entry, or one of the others. */
  function followed(
    g: Generate,
    before: State,
    between: readonly State[],
    listing: boolean,
    after: State,
    access: Access,
  ) {
    const all = g(() => fc.shuffledSubarray([...OBJECTS], { minLength: OBJECTS.length }))
      .filter((object) => access.objects[object])
      .map((object) => ({
        access,
        object,
        expected: expectedChanges(before, between, listing, after, access, object),
      }));
    const telling = all.filter(({ expected }) => expected.size > 0);
    return telling.length > 0 ? telling.slice(0, FOLLOWED) : all.slice(0, 1);
  }

  function expectedChanges(
    before: State,
    between: readonly State[],
    listing: boolean,
    after: State,
    access: Access,
    object: ObjectName,
  ): Map<string, Told> {
    const expected = new Map<string, Told>();
    const [saw, sees] = [readable(before.world, access, object), readable(after.world, access, object)];
    const met = between.map(({ world }) => readable(world, access, object));
    const changed = (id: string): boolean => before.told.get(id)?.length !== after.told.get(id)?.length;
    for (const id of sees.keys()) {
      if (!saw.has(id)) seen.cameIntoSight++;
      const regained = met.some((ids) => !ids.has(id));
      if (!saw.has(id) || changed(id) || regained) expected.set(id, 'upserted');
    }
    const held = new Set([...saw.keys(), ...(listing ? met.flatMap((ids) => [...ids.keys()]) : [])]);
    for (const id of held) {
      if (sees.has(id)) continue;
      if (!saw.has(id)) seen.cameAndWent++;
      const gone = after.bin.find(({ row }) => row.id === id);
      // A deletion that a user cannot see adds no entry for them.
      const deleted = gone && readable(gone.before, access, object).has(id);
      expected.set(id, deleted ? 'deleted' : 'accessLost');
    }
    for (const told of expected.values()) seen[told]++;
    for (const id of after.told.keys()) if (changed(id) && !expected.has(id)) seen.untold++;
    return expected;
  }

  async function checkChanges(
    g: Generate,
    after: State,
    access: Access,
    object: ObjectName,
    cursor: string,
    expected: ReadonlyMap<string, Told>,
  ): Promise<void> {
    const sees = readable(after.world, access, object);
    const told = new Map<string, Told>();
    const take = count(g, 1, 6);
    for (let next: string | null = cursor; next !== null; ) {
      const { records, nextCursor } = await page(after.world, access, object, { cursor: next, take: String(take) });
      assert.ok(nextCursor === null || records.length === take, 'pages are full');
      for (const item of records) {
        assert.ok(!told.has(item.id), 'told once');
        told.set(item.id, item.change);
        assert.equal(item.record === null, item.change !== 'upserted');
        assert.equal(item.etag, item.record === null ? null : etagOf(versionOf(after, item.id)));
        const now = sees.get(item.id);
        if (item.record) assert.deepEqual([item.record['id'], item.record['ownerId']], [now?.id, now?.ownerId]);
      }
      next = nextCursor;
    }
    assert.deepEqual(entries(told), entries(expected));
  }

  async function checkHistories(
    g: Generate,
    before: State,
    after: State,
    access: Access,
    object: ObjectName,
  ): Promise<void> {
    const rows = new Map([...before.world.rows[object], ...after.world.rows[object]].map((row) => [row.id, row]));
    const sees = readable(after.world, access, object);
    for (const id of g(() => fc.shuffledSubarray([...rows.keys()], { maxLength: Math.min(HISTORIES, rows.size) }))) {
      const answer = ask<{ records: { operation: string }[] }>(listHistory, after.world, access, object, {}, id);
      if (sees.has(id)) {
        seen.histories++;
        const operations = (await answer).records.map(({ operation }) => operation);
        assert.deepEqual(operations.sort(), [...(after.told.get(id) ?? [])].sort());
      } else {
        seen.hidden++;
        await assert.rejects(answer, hasCode('RECORD_NOT_FOUND'), `history of ${id}`);
      }
    }
  }

  /** Of an object that the user may not read there are neither changes nor histories. */
  async function assertAbsent(world: World, access: Access, object: ObjectName): Promise<void> {
    await assert.rejects(page(world, access, object, {}), hasCode('OBJECT_NOT_FOUND'));
    const id = world.rows[object][0]?.id ?? TENANT_ID;
    await assert.rejects(ask(listHistory, world, access, object, {}, id), hasCode('OBJECT_NOT_FOUND'));
  }

  const page = (world: World, access: Access, object: ObjectName, query: Record<string, string>) =>
    ask<{ records: Change[]; nextCursor: string | null; resumeCursor: string }>(
      listChanges,
      world,
      access,
      object,
      query,
    );

  /** The operation as the service runs it, for a user whose view is known. */
  async function ask<T>(
    read: Read<never>,
    { snapshot }: World,
    access: Access,
    object: ObjectName,
    query: Record<string, string>,
    id?: string,
  ): Promise<T> {
    const { userId } = access.principal;
    const view: View = { tenantId: TENANT_ID, metadataVersion: 0, accessVersion: 0, snapshot, access, key: userId };
    const deps = {
      database: { tenant: (_tenantId: string, work: (of: Tx) => Promise<unknown>) => work(tx) },
      tenants: { withView: (_tenantId: string, _userId: string, work: (of: View) => Promise<unknown>) => work(view) },
      sealingKeys: [Buffer.alloc(32, 7)],
    } as unknown as ReadDeps;
    const request = { tenantId: TENANT_ID, userId, clientId: 'test' } as RequestContext;
    const path = id === undefined ? { objectApiName: object } : { objectApiName: object, id };
    const reply = await read(deps, request, { path, query } as never);
    return JSON.parse((reply.body as Buffer).toString()) as T;
  }
});

const hasCode = (code: string) => (error: unknown) => error instanceof PlatformError && error.code === code;

const entries = (told: ReadonlyMap<string, Told>): string[] => [...told].map(([id, what]) => `${id} ${what}`).sort();

const readable = (world: World, access: Access, object: ObjectName): Map<string, Row> =>
  new Map(
    world.rows[object]
      .filter((row) => isAllowed(access, object, 'read', sharedRecord(world, object, row)))
      .map((row) => [row.id, row]),
  );
