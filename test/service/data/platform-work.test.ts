import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { sweepTenant } from '../../../services/data/maintenance/sweep.ts';
import { createWorld, type World } from './world.ts';

describe('what the platform does with records by itself', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
  });
  after(() => world?.stop());

  it('provisions users twice without making them twice', async () => {
    const users = [
      { username: 'boss@one.example', email: 'boss@one.example', displayName: 'Boss', profileApiName: 'Administrator' },
      {
        username: 'aide@one.example',
        email: 'aide@one.example',
        displayName: 'Aide',
        profileApiName: 'Clerk',
        permissionSetApiNames: ['UserAdmin'],
        managerUsername: 'boss@one.example',
      },
    ];
    const provision = () =>
      world.platform.broker.call('data.users.provision', { tenantId: world.tenantId, users }) as Promise<{
        userIds: Record<string, string>;
        signInNames: Record<string, string>;
      }>;
    const first = await provision();
    assert.deepEqual(await provision(), first);
    assert.deepEqual(Object.keys(first.signInNames), Object.keys(first.userIds), 'what they type to sign in');
    const aide = (await world.admin.get('User', first.userIds['aide@one.example']!)).body;
    assert.equal(aide.managerId, first.userIds['boss@one.example']);
    assert.deepEqual(aide.permissionSetApiNames, ['UserAdmin']);
    assert.equal(aide.name, 'Aide');
  });

  it('loads sample records once and goes on counting behind them', async () => {
    const rows = Array.from({ length: 1_500 }, (_, n) => [
      randomUUID(),
      `TIC-${String(n + 1).padStart(5, '0')}`,
      world.clerk.userId,
      '2026-01-02T03:04:05Z',
    ]);
    const load = () =>
      world.platform.broker.call('data.samples.load', {
        tenantId: world.tenantId,
        objectApiName: 'Ticket__c',
        columns: ['id', 'name', 'ownerId', 'createdAt'],
        rows,
      });
    assert.deepEqual(await load(), { inserted: 1_500 });
    assert.deepEqual(await load(), { inserted: 0 });
    const { body } = await world.clerk.get('Ticket__c', rows[0]![0]!);
    assert.equal(body.createdAt, '2026-01-02T03:04:05+00:00');
    assert.equal(body.updatedAt, body.createdAt);
    assert.equal(body.createdById, world.clerk.userId);
    assert.equal((await world.clerk.create('Ticket__c', {})).body.name, 'TIC-01501');
  });

  it('removes keys after their retention and deleted records after 30 days, and nothing else', async () => {
    await world.clerk.create('Company__c', { name: 'a' }, { key: 'sweep-old-key' });
    await world.clerk.create('Company__c', { name: 'b' }, { key: 'sweep-new-key' });
    await world.rows(
      `UPDATE $schema._idempotency SET expires_at = now() - interval '1 hour' WHERE key = 'sweep-old-key'`,
    );
    const ids: string[] = [];
    for (const name of ['old', 'new']) {
      const { body } = await world.clerk.create('Company__c', { name });
      await world.clerk.delete('Company__c', body.id, { etag: '"1"' });
      ids.push(body.id);
    }
    await world.rows(
      `UPDATE $schema._recycle_bin SET restorable_until = now() - interval '1 hour' WHERE record_id = $1`,
      [ids[0]],
    );
    await world.rows(
      `INSERT INTO $schema._shares (share_id, object, record_id, principal_type, principal_id, access, created_by_id)
        SELECT gen_random_uuid(), 'Company__c', unnest($1::uuid[]), 'role', 'R', 'read', $2`,
      [ids, world.clerk.userId],
    );
    await world.rows(
      `INSERT INTO $schema._revoked_shares (share_id, object, record_id, principal_type, principal_id, access, created_at, created_by_id, revoked_by_id, granted_tx, kept_until)
        SELECT gen_random_uuid(), 'Company__c', $1, 'role', 'R', 'read', now(), $2, $2, '3'::xid8, now() + days * interval '1 day' FROM unnest(ARRAY[-1, 1]) days`,
      [ids[1], world.clerk.userId],
    );
    await world.rows(
      `INSERT INTO $schema._confirmations (confirmation_id, expires_at)
        SELECT gen_random_uuid(), now() + hours * interval '1 hour' FROM unnest(ARRAY[-1, 1]) hours`,
    );
    const swept = await sweepTenant(world.database, world.tenantId, { send: async () => {}, failed: () => {} });
    assert.deepEqual(swept, { keys: 1, records: 1, shares: 1, confirmations: 1, users: 0, audit: 0 });
    const keys = await world.rows(`SELECT key FROM $schema._idempotency WHERE key LIKE 'sweep-%'`);
    assert.deepEqual(
      keys.map((row) => row['key']),
      ['sweep-new-key'],
    );
    const bin = await world.rows('SELECT record_id FROM $schema._recycle_bin');
    assert.deepEqual(
      bin.map((row) => row['record_id']),
      [ids[1]],
    );
    const shares = await world.rows('SELECT record_id FROM $schema._shares');
    assert.deepEqual(shares, [{ record_id: ids[1] }], 'a record takes its shares along when it goes for good');
    assert.equal((await world.rows('SELECT FROM $schema._revoked_shares')).length, 1);
  });
});
