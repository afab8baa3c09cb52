import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createWorld, refusal, type World } from './world.ts';

describe('deleting records', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
  });
  after(() => world?.stop());

  const make = async (object: string, body: Record<string, unknown> = {}) =>
    (await world.clerk.create(object, object === 'Ticket__c' ? body : { name: 'Thing', ...body })).body;

  it('moves the record to the recycle bin', async () => {
    const { id } = await make('Company__c', { Amount__c: 3 });
    const reply = await world.clerk.delete('Company__c', id, { etag: '"1"' });
    assert.equal(reply.status, 200);
    const { deletedAt, restorableUntil, ...rest } = reply.body;
    assert.deepEqual(rest, { id, objectApiName: 'Company__c', deleted: true, cascaded: [] });
    assert.equal(Date.parse(restorableUntil) - Date.parse(deletedAt), 30 * 86_400_000);
    assert.equal((await refusal(world.clerk.get('Company__c', id))).code, 'RECORD_NOT_FOUND');
    assert.equal((await refusal(world.clerk.delete('Company__c', id, { etag: '"1"' }))).code, 'RECORD_NOT_FOUND');
    const [bin] = await world.rows('SELECT * FROM $schema._recycle_bin WHERE record_id = $1', [id]);
    assert.equal(bin!['record'].Amount__c, 3);
    assert.equal(bin!['root_id'], id);
    const [history] = await world.rows(`SELECT * FROM $schema._history WHERE record_id = $1 AND operation = 'delete'`, [
      id,
    ]);
    assert.deepEqual(history!['changes'].Amount__c, { from: 3, to: null });
    const [event] = await world.rows(
      `SELECT * FROM $schema._outbox WHERE record_id = $1 AND type = 'data.record.deleted'`,
      [id],
    );
    assert.ok(event);
  });

  it('deletes details on every level', async () => {
    const root = await make('Company__c');
    const items = await Promise.all([1, 2].map(() => make('Item__c', { CompanyId__c: root.id })));
    for (const item of items) for (let i = 0; i < 2; i++) await make('Part__c', { ItemId__c: item.id });
    const reply = await world.clerk.delete('Company__c', root.id, { etag: '"1"' });
    assert.deepEqual(reply.body.cascaded, [
      { objectApiName: 'Item__c', count: 2 },
      { objectApiName: 'Part__c', count: 4 },
    ]);
    const [bin] = await world.rows('SELECT count(*)::int FROM $schema._recycle_bin WHERE root_id = $1', [root.id]);
    assert.equal(bin!['count'], 7);
    const events = await world.rows(
      `SELECT data->>'transactionId' AS tx, data->'transactionSize' AS size, data->'transactionIndex' AS index FROM $schema._outbox
       WHERE type = 'data.record.deleted' AND record_id IN (SELECT record_id FROM $schema._recycle_bin WHERE root_id = $1)`,
      [root.id],
    );
    assert.equal(new Set(events.map((event) => event['tx'])).size, 1);
    assert.deepEqual(events.map((event) => event['index']).sort(), [0, 1, 2, 3, 4, 5, 6]);
    assert.equal(events[0]!['size'], 7);
    assert.equal((await refusal(world.clerk.get('Item__c', items[0].id))).code, 'RECORD_NOT_FOUND');
  });

  it('clears references of records that stay, each with its own history', async () => {
    const parent = await make('Company__c');
    const child = await make('Company__c', { ParentId__c: parent.id });
    await world.clerk.delete('Company__c', parent.id, { etag: '"1"' });
    const read = await world.clerk.get('Company__c', child.id);
    assert.equal(read.body.ParentId__c, null);
    assert.equal(read.headers['ETag'], '"2"');
    const [history] = await world.rows(`SELECT * FROM $schema._history WHERE record_id = $1 AND operation = 'update'`, [
      child.id,
    ]);
    assert.deepEqual(history!['changes'], { ParentId__c: { from: parent.id, to: null } });
  });

  it('is refused while restricting references to it or its details exist', async () => {
    const company = await make('Company__c');
    const tickets = [
      await make('Ticket__c', { CompanyId__c: company.id }),
      await make('Ticket__c', { CompanyId__c: company.id }),
    ];
    const error = await refusal(world.clerk.delete('Company__c', company.id, { etag: '"1"' }));
    assert.equal(error.code, 'DELETE_RESTRICTED');
    assert.deepEqual(error.details, { dependents: [{ objectApiName: 'Ticket__c', count: 2 }] });
    for (const ticket of tickets) await world.clerk.delete('Ticket__c', ticket.id, { etag: '"1"' });
    assert.equal((await world.clerk.delete('Company__c', company.id, { etag: '"1"' })).status, 200);
  });

  it('deletes a record that refers to itself', async () => {
    const { id } = await make('Company__c');
    await world.clerk.update('Company__c', id, { ParentId__c: id }, { etag: '"1"' });
    assert.equal((await world.clerk.delete('Company__c', id, { etag: '"2"' })).body.deleted, true);
  });

  it('needs the current version, the permission and the record', async () => {
    const { id } = await make('Company__c');
    assert.equal((await refusal(world.clerk.delete('Company__c', id))).code, 'IF_MATCH_REQUIRED');
    assert.equal((await refusal(world.clerk.delete('Company__c', id, { etag: '*' }))).code, 'IF_MATCH_INVALID');
    assert.equal((await refusal(world.clerk.delete('Company__c', id, { etag: '"2"' }))).code, 'ETAG_MISMATCH');
    assert.equal(
      (await refusal(world.reader.delete('Company__c', id, { etag: '"1"' }))).code,
      'OBJECT_PERMISSION_DENIED',
    );
    assert.equal((await refusal(world.stranger.delete('Company__c', id, { etag: '"1"' }))).code, 'RECORD_NOT_FOUND');
    assert.equal(
      (await refusal(world.clerk.delete('Company__c', randomUUID(), { etag: '"1"' }))).code,
      'RECORD_NOT_FOUND',
    );
    assert.equal((await refusal(world.clerk.delete('Vault__c', id, { etag: '"1"' }))).code, 'OBJECT_NOT_FOUND');
  });

  it('answers a replay with the stored result', async () => {
    const { id } = await make('Company__c');
    const first = await world.clerk.delete('Company__c', id, { etag: '"1"', key: 'delete-replay' });
    const again = await world.clerk.delete('Company__c', id, { etag: '"1"', key: 'delete-replay' });
    assert.equal(again.text, first.text);
    assert.equal(again.headers['Idempotency-Replayed'], 'true');
  });
});
