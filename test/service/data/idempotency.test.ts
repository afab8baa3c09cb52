import assert from 'node:assert/strict';
import pg from 'pg';
import { requestId } from '../../../lib/values/ids.ts';
import { createWorld, refusal, type World } from './world.ts';

describe('idempotency of record mutations', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
  });
  after(() => world?.stop());

  const count = async (name: string): Promise<number> =>
    (await world.rows('SELECT count(*)::int FROM $schema."Company__c" WHERE name = $1', [name]))[0]!['count'];

  it('answers the stored outcome to the same key and body', async () => {
    const first = await world.clerk.create('Company__c', { name: 'Once' }, { key: 'same-key-1' });
    const again = await world.clerk.create('Company__c', { name: 'Once' }, { key: 'same-key-1' });
    assert.equal(again.status, 201);
    assert.equal(again.text, first.text);
    assert.equal(again.headers['ETag'], first.headers['ETag']);
    assert.equal(again.headers['Location'], first.headers['Location']);
    assert.equal(first.headers['Idempotency-Replayed'], undefined);
    assert.equal(again.headers['Idempotency-Replayed'], 'true');
    assert.equal(await count('Once'), 1);
  });

  it('replays a PATCH although its ETag is long outdated', async () => {
    const { body } = await world.clerk.create('Company__c', { name: 'Patched' });
    const first = await world.clerk.update('Company__c', body.id, { Count__c: 1 }, { etag: '"1"', key: 'patch-key-1' });
    await world.clerk.update('Company__c', body.id, { Count__c: 2 }, { etag: '"2"' });
    const again = await world.clerk.update('Company__c', body.id, { Count__c: 1 }, { etag: '"1"', key: 'patch-key-1' });
    assert.equal(again.text, first.text);
    assert.equal(again.headers['ETag'], '"2"');
  });

  it('refuses the key for anything else, whether the first attempt succeeded or failed', async () => {
    await world.clerk.create('Company__c', { name: 'K' }, { key: 'used-key-1' });
    const error = await refusal(world.clerk.create('Company__c', { name: 'L' }, { key: 'used-key-1' }));
    assert.equal(error.code, 'IDEMPOTENCY_KEY_REUSED');
    assert.match(String(error.details!['firstRequestId']), /^req_/);
    assert.match(String(error.details!['firstSeenAt']), /^\d{4}-.*\+00:00$/);
    await refusal(world.clerk.create('Company__c', {}, { key: 'used-key-2' }));
    assert.equal(
      (await refusal(world.clerk.create('Company__c', { name: 'M' }, { key: 'used-key-2' }))).code,
      'IDEMPOTENCY_KEY_REUSED',
    );
    assert.equal(
      (await refusal(world.clerk.create('Company__c', { Nope__c: 1 }, { key: 'used-key-1' }))).code,
      'IDEMPOTENCY_KEY_REUSED',
      'the key is looked at before the body',
    );
    assert.equal(
      (await refusal(world.clerk.create('Ticket__c', {}, { key: 'used-key-1' }))).code,
      'IDEMPOTENCY_KEY_REUSED',
      'one namespace across objects',
    );
  });

  it('executes a failed key again', async () => {
    const conflict = { name: 'Anew', Code__c: 'ANEW' };
    const holder = await world.clerk.create('Company__c', { name: 'Holder', Code__c: 'ANEW' });
    assert.equal(
      (await refusal(world.clerk.create('Company__c', conflict, { key: 'anew-key-1' }))).code,
      'UNIQUE_VALUE_CONFLICT',
    );
    await world.clerk.delete('Company__c', holder.body.id, { etag: '"1"' });
    const reply = await world.clerk.create('Company__c', conflict, { key: 'anew-key-1' });
    assert.equal(reply.status, 201);
    assert.equal(reply.headers['Idempotency-Replayed'], undefined);
  });

  it('carries out no request that was refused, or an earlier one than that, when it comes to a process late', async () => {
    const conflict = { name: 'Late', Code__c: 'LATE' };
    const holder = await world.clerk.create('Company__c', { name: 'Holder', Code__c: 'LATE' });
    const [earlier, refused] = [requestId(Date.now() - 2), requestId(Date.now() - 1)];
    const create = (id?: string) =>
      world.clerk.create('Company__c', conflict, { key: 'late-key-1', ...(id ? { requestId: id } : {}) });
    assert.equal((await refusal(create(refused))).code, 'UNIQUE_VALUE_CONFLICT');
    await world.clerk.delete('Company__c', holder.body.id, { etag: '"1"' });
    for (const id of [refused, earlier]) assert.equal((await refusal(create(id))).code, 'WRITE_CONTENTION');
    assert.equal(await count('Late'), 0);
    assert.equal((await create()).status, 201);
  });

  it('names the first request of a key, however often it was tried', async () => {
    for (let attempt = 0; attempt < 3; attempt++)
      await refusal(world.clerk.create('Company__c', {}, { key: 'first-request' }));
    const [first] = await world.rows(
      `SELECT request_id FROM $schema._audit WHERE idempotency_key = 'first-request' ORDER BY tx LIMIT 1`,
    );
    const error = await refusal(world.clerk.create('Company__c', { name: 'Other' }, { key: 'first-request' }));
    assert.equal(error.details!['firstRequestId'], first!['request_id']);
  });

  it('scopes keys to user and client', async () => {
    const other = world.person(world.tenantId, world.clerk.userId, 'another client');
    await world.clerk.create('Company__c', { name: 'Own' }, { key: 'shared-key' });
    await world.admin.create('Company__c', { name: 'Own' }, { key: 'shared-key' });
    await other.create('Company__c', { name: 'Own' }, { key: 'shared-key' });
    assert.equal(await count('Own'), 3);
  });

  it('creates one record for twenty concurrent duplicate requests', async () => {
    const replies = await Promise.allSettled(
      Array.from({ length: 20 }, () => world.clerk.create('Company__c', { name: 'Twins' }, { key: 'twins-key' })),
    );
    const texts = new Set<string>();
    for (const reply of replies)
      if (reply.status === 'fulfilled') texts.add(reply.value.text);
      else assert.equal(reply.reason.code, 'IDEMPOTENCY_IN_PROGRESS');
    assert.equal(texts.size, 1);
    assert.equal(await count('Twins'), 1);
  });

  it('changes a record once for twenty concurrent duplicate requests', async () => {
    const { body } = await world.clerk.create('Company__c', { name: 'Patch twins' });
    const replies = await Promise.allSettled(
      Array.from({ length: 20 }, () =>
        world.clerk.update('Company__c', body.id, { Count__c: 1 }, { etag: '"1"', key: 'patch-twins-key' }),
      ),
    );
    for (const reply of replies)
      if (reply.status === 'fulfilled') assert.equal(reply.value.headers['ETag'], '"2"');
      else assert.equal(reply.reason.code, 'IDEMPOTENCY_IN_PROGRESS');
    assert.ok(replies.some((reply) => reply.status === 'fulfilled'));
    assert.equal((await world.clerk.get('Company__c', body.id)).headers['ETag'], '"2"');
  });

  it('answers a duplicate request 409 while the first one takes too long', async function () {
    this.timeout(10_000);
    const client = new pg.Client(world.platform.database.url);
    await client.connect();
    try {
      const schema = `t_${world.tenantId.replaceAll('-', '')}`;
      await client.query('BEGIN');
      await client.query(
        `INSERT INTO ${schema}._idempotency (client_id, user_id, key, fingerprint, state, request_id) VALUES ('test', $1, 'slow-twin-key', 'x', 'RESERVED', 'req_x')`,
        [world.clerk.userId],
      );
      const started = Date.now();
      const error = await refusal(world.clerk.create('Company__c', { name: 'Slow' }, { key: 'slow-twin-key' }));
      assert.equal(error.code, 'IDEMPOTENCY_IN_PROGRESS');
      assert.equal(error.retryAfterSeconds, 1);
      assert.ok(Date.now() - started >= 1_500);
      await client.query('ROLLBACK');
      assert.equal((await world.clerk.create('Company__c', { name: 'Slow' }, { key: 'slow-twin-key' })).status, 201);
    } finally {
      await client.end();
    }
  });

  it('treats a key as new after its retention', async () => {
    await world.clerk.create('Company__c', { name: 'Expired' }, { key: 'expired-key' });
    await world.rows(
      `UPDATE $schema._idempotency SET expires_at = now() - interval '1 second' WHERE key = 'expired-key'`,
    );
    const reply = await world.clerk.create('Company__c', { name: 'Expired', Count__c: 2 }, { key: 'expired-key' });
    assert.equal(reply.headers['Idempotency-Replayed'], undefined);
    assert.equal(await count('Expired'), 2);
  });

  it('does not return the stored body to a user who lost access to the object', async () => {
    const { userIds } = (await world.platform.broker.call('data.users.provision', {
      tenantId: world.tenantId,
      users: [
        {
          username: 'loser@one.example',
          email: 'l@one.example',
          displayName: 'L',
          profileApiName: 'Clerk',
          password: 'long enough',
        },
      ],
    })) as { userIds: Record<string, string> };
    const loser = world.person(world.tenantId, userIds['loser@one.example']!);
    await loser.create('Company__c', { name: 'Lost' }, { key: 'lost-object' });
    const user = await world.admin.get('User', loser.userId);
    await world.admin.update('User', loser.userId, { profileApiName: 'Standard' }, { etag: user.headers['ETag']! });
    assert.equal(
      (await refusal(loser.create('Company__c', { name: 'Lost' }, { key: 'lost-object' }))).code,
      'OBJECT_NOT_FOUND',
    );
  });
});
