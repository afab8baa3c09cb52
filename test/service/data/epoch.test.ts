/**
 * Epochs of a tenant: entries that were restored from another server have numbers of transactions that lie ahead, and all
 * that follows has to come behind them, whatever is being written meanwhile.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { PlatformError } from '../../../lib/errors/platform-error.ts';
import { Database, type Tx } from '../../../mixins/database/database.ts';
import { renewEpoch } from '../../../mixins/epoch/epoch.ts';
import { sealTenant } from '../../../services/data/trail/chain.ts';
import { verifyTenant } from '../../../services/data/trail/verify.ts';
import { createWorld, type World } from './world.ts';

describe('epochs of a tenant', () => {
  let world: World;
  let slow: Database;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
    slow = new Database(world.platform.database.url, { size: 4, applicationName: 'slow writer' });
  });
  after(async () => {
    await slow?.close();
    await world?.stop();
  });

  /** Content of a dump from a server with more transactions: an entry, and the defaults as they were. */
  const restoreEntry = async (): Promise<void> => {
    await world.rows(
      `INSERT INTO $schema._audit (audit_id, channel, operation_id, outcome, request_id, tx)
        SELECT gen_random_uuid(), 'job', 'test.restored', 'committed', 'req_restored', (max(tx::text::bigint) + 5000000)::text::xid8
        FROM $schema._audit`,
    );
  };
  const epoch = async (): Promise<{ epoch: string; place: string; offset: number }> =>
    (await world.rows('SELECT epoch, place, tx_offset::float8 AS offset FROM $schema._epoch'))[0] as never;
  const changes = (cursor?: string) =>
    world.clerk.send('data.changes.list', { objectApiName: 'Company__c' }, cursor ? { cursor, take: '200' } : {});
  const begin = async (): Promise<string> => (await changes()).body.resumeCursor;
  const toldSince = async (start: string): Promise<string[]> => {
    const ids: string[] = [];
    for (let cursor: string | null = start; cursor; ) {
      const { body } = await changes(cursor);
      ids.push(...body.records.map((entry: { id: string }) => entry.id));
      cursor = body.nextCursor;
    }
    return ids;
  };
  const make = async (name: string): Promise<string> => (await world.clerk.create('Company__c', { name })).body.id;
  /** Writes a record in a transaction that has its number, and is let go on before the entry and before the commit. */
  const held = () => {
    const steps = [0, 1, 2].map(() => Promise.withResolvers<void>());
    const id = randomUUID();
    const done = slow.tenantTransaction(world.tenantId, async (tx: Tx) => {
      await tx.query('SELECT pg_current_xact_id()');
      steps[0]!.resolve();
      await steps[1]!.promise;
      await tx.query(
        `INSERT INTO ${tx.schema}._audit (audit_id, user_id, channel, operation_id, outcome, request_id, object, record_id, kind,
            record_version, changes)
          VALUES (gen_random_uuid(), $2, 'api', 'data.records.create', 'committed', 'req_held', 'Company__c', $1, 'create', 1, '{}')`,
        [id, world.clerk.userId],
      );
      await tx.query(
        `INSERT INTO ${tx.schema}."Company__c" (id, "ownerId", "createdAt", "createdById", "updatedAt", "updatedById", name)
          VALUES ($1, $2, now(), $2, now(), $2, 'Held')`,
        [id, world.clerk.userId],
      );
      await steps[2]!.promise;
    });
    return { id, begun: steps[0]!.promise, write: steps[1]!.resolve, commit: steps[2]!.resolve, done };
  };

  it('is renewed when an entry is ahead, and later changes are reported once each', async () => {
    const before = await begin();
    await restoreEntry();
    await assert.rejects(
      changes(before),
      (error: PlatformError) =>
        error.code === 'SYNC_TOKEN_EXPIRED' && typeof error.details?.['oldestCursor'] === 'string',
    );
    const cursor = await begin();
    const made = [await make('One'), await make('Two')];
    assert.deepEqual((await toldSince(cursor)).sort(), made.sort());
  });

  it('is renewed once by concurrent readers, during writes', async function () {
    this.timeout(60_000);
    const { epoch: seen, place } = await epoch();
    await restoreEntry();
    const made: string[] = [];
    let writing = true;
    const writers = [1, 2, 3].map(async (n) => {
      while (writing) made.push(await make(`Writer ${n}`));
    });
    const renewed = await Promise.all([1, 2, 3, 4].map(() => renewEpoch(slow, world.tenantId, seen, place)));
    assert.deepEqual(renewed.filter(Boolean).length, 1);
    const cursor = await begin();
    const already = new Set(made);
    await pause(300);
    writing = false;
    await Promise.all(writers);
    const told = await toldSince(cursor);
    assert.equal(new Set(told).size, told.length, 'nothing is told twice');
    for (const id of made) assert.ok(already.has(id) || told.includes(id), 'and nothing is missed');
  });

  it('reports changes in flight during its renewal', async function () {
    this.timeout(60_000);
    const late = held();
    await late.begun;
    const inTables = held();
    await inTables.begun;
    inTables.write();
    await pause(100);
    await restoreEntry();
    const { epoch: seen, offset } = await epoch();
    // It waits for the uncommitted entry, so no reader gets it with the wrong number.
    const waiting = begin().catch((error: PlatformError) => error.code);
    await pause(700);
    assert.equal((await epoch()).epoch, seen);
    inTables.commit();
    await inTables.done;
    const first = await waiting;
    const cursor = first === 'SERVICE_UNAVAILABLE' ? await begin() : first;
    assert.ok((await epoch()).offset > offset);
    assert.deepEqual(await toldSince(cursor), []);
    // Its number is older than the epoch.
    late.write();
    late.commit();
    await late.done;
    const after = await make('After');
    assert.deepEqual((await toldSince(cursor)).sort(), [late.id, after].sort());
  });

  it('keeps the chain intact, which is read once and then incrementally', async () => {
    const { tenantId } = world;
    await restoreEntry();
    await make('In the wrong epoch');
    await sealTenant(slow, tenantId);
    const { broken, unsealed } = await verifyTenant(slow, { tenantId });
    assert.deepEqual([broken, unsealed], [null, 0]);
    await make('New');
    assert.equal(await sealTenant(slow, tenantId), 1);
  });
});
