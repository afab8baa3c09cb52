import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { codes, createWorld, refusal, type World } from './world.ts';

describe('changing records', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
  });
  after(() => world?.stop());

  const company = async (body: Record<string, unknown> = {}) =>
    (await world.clerk.create('Company__c', { name: 'Acme', ...body })).body;

  it('changes the given fields only and raises the version', async () => {
    const before = await company({ Amount__c: 5, Note__c: 'keep' });
    const reply = await world.clerk.update('Company__c', before.id, { Amount__c: 6, Tags__c: ['x'] }, { etag: '"1"' });
    assert.equal(reply.status, 200);
    assert.equal(reply.headers['ETag'], '"2"');
    assert.equal(reply.body.Amount__c, 6);
    assert.equal(reply.body.Note__c, 'keep');
    assert.equal(reply.body.recordVersion, 2);
    assert.equal(reply.body.updatedById, world.clerk.userId);
    assert.equal((await world.clerk.get('Company__c', before.id)).text, reply.text);
    const cleared = await world.clerk.update(
      'Company__c',
      before.id,
      { Note__c: null, Tags__c: ['y'] },
      { etag: '"2"' },
    );
    assert.equal(cleared.body.Note__c, null);
    assert.deepEqual(cleared.body.Tags__c, ['y'], 'a list is replaced as a whole');
  });

  it('records the changed fields in history and event', async () => {
    const { id } = await company({ Amount__c: 5 });
    await world.clerk.update('Company__c', id, { Amount__c: 7.5, name: 'Acme' }, { etag: '"1"', key: 'update-trail' });
    const [history] = await world.rows(`SELECT * FROM $schema._history WHERE record_id = $1 AND operation = 'update'`, [
      id,
    ]);
    assert.deepEqual(history!['changes'], { Amount__c: { from: 5, to: 7.5 } }, 'only what differs');
    assert.equal(history!['record_version'], 2);
    const [event] = await world.rows(
      `SELECT * FROM $schema._outbox WHERE record_id = $1 AND type = 'data.record.updated'`,
      [id],
    );
    assert.equal(event!['record_version'], 2);
    const [audit] = await world.rows(`SELECT * FROM $schema._audit WHERE idempotency_key = 'update-trail'`);
    assert.equal(audit!['outcome'], 'committed');
    assert.deepEqual([audit!['changes'], audit!['record_version']], [history!['changes'], 2]);
  });

  it('commits nothing when nothing differs', async () => {
    const { id } = await company({ Amount__c: 5, Tags__c: ['x', 'y'], Data__c: { a: 1, b: 2 } });
    const reply = await world.clerk.update(
      'Company__c',
      id,
      { Amount__c: '5.00', Tags__c: ['x', 'y'], Data__c: { b: 2, a: 1 }, Email__c: null },
      { etag: '"1"', key: 'nothing-differs' },
    );
    assert.equal(reply.status, 200);
    assert.equal(reply.headers['ETag'], '"1"');
    assert.equal(reply.body.recordVersion, 1);
    const [{ count } = { count: -1 }] = await world.rows(
      'SELECT count(*)::int FROM $schema._history WHERE record_id = $1',
      [id],
    );
    assert.equal(count, 1, 'the create alone');
    const [key] = await world.rows(`SELECT state FROM $schema._idempotency WHERE key = 'nothing-differs'`);
    assert.equal(key!['state'], 'COMPLETED');
  });

  it('needs an If-Match that names the current version', async () => {
    const { id } = await company();
    const change = { name: 'Other' };
    assert.equal((await refusal(world.clerk.update('Company__c', id, change))).code, 'IF_MATCH_REQUIRED');
    for (const etag of ['*', 'W/"1"', '1', '"1', '"1",', '"a" "b"', 'x"1"'])
      assert.equal(
        (await refusal(world.clerk.update('Company__c', id, change, { etag }))).code,
        'IF_MATCH_INVALID',
        etag,
      );
    const error = await refusal(world.clerk.update('Company__c', id, change, { etag: '"7"' }));
    assert.equal(error.code, 'ETAG_MISMATCH');
    assert.deepEqual(error.details, { currentETag: '"1"' });
    const reply = await world.clerk.update('Company__c', id, change, { etag: '"7", "1"' });
    assert.equal(reply.status, 200, 'one of several matches');
  });

  it('lets one of two writers with the same ETag win', async () => {
    const { id } = await company();
    const results = await Promise.allSettled(
      [1, 2, 3, 4, 5].map((n) => world.clerk.update('Company__c', id, { Count__c: n }, { etag: '"1"' })),
    );
    assert.equal(results.filter((result) => result.status === 'fulfilled').length, 1);
    for (const result of results) if (result.status === 'rejected') assert.equal(result.reason.code, 'ETAG_MISMATCH');
  });

  it('answers 404 alike for absent, hidden and malformed ids', async () => {
    const { id } = await company();
    for (const [object, other] of [
      ['Company__c', randomUUID()],
      ['Company__c', 'x'],
      ['Company__c', `${id}x`],
    ] as const)
      assert.equal(
        (await refusal(world.clerk.update(object, other, { name: 'y' }, { etag: '"1"' }))).code,
        'RECORD_NOT_FOUND',
      );
    for (const object of ['Vault__c', 'Draft__c', 'Nope__c', 'company__c'])
      assert.equal(
        (await refusal(world.clerk.update(object, id, { name: 'y' }, { etag: '"1"' }))).code,
        'OBJECT_NOT_FOUND',
      );
    assert.equal(
      (await refusal(world.stranger.update('Company__c', id, { name: 'y' }, { etag: '"1"' }))).code,
      'RECORD_NOT_FOUND',
    );
  });

  it('checks permission before the version, and the version before the content', async () => {
    const { id } = await company();
    const wrong = { etag: '"9"' };
    assert.equal(
      (await refusal(world.reader.update('Company__c', id, { name: '' }, wrong))).code,
      'OBJECT_PERMISSION_DENIED',
    );
    assert.equal(
      (await refusal(world.clerk.update('Company__c', id, { Fixed__c: 'x' }, wrong))).code,
      'FIELD_PERMISSION_DENIED',
    );
    assert.equal((await refusal(world.clerk.update('Company__c', id, { name: '' }, wrong))).code, 'ETAG_MISMATCH');
    const error = await refusal(
      world.clerk.update(
        'Company__c',
        id,
        { name: '', Secret__c: 'x', recordVersion: 5, Count__c: [] },
        { etag: '"1"' },
      ),
    );
    assert.equal(error.code, 'VALIDATION_FAILED');
    assert.deepEqual(codes(error), [
      '/Count__c FIELD_TYPE_INVALID',
      '/Secret__c FIELD_UNKNOWN',
      '/name FIELD_REQUIRED',
      '/recordVersion FIELD_READ_ONLY',
    ]);
  });

  it('refuses a body without fields', async () => {
    const { id } = await company();
    assert.deepEqual(codes(await refusal(world.clerk.update('Company__c', id, {}, { etag: '"1"' }))), [
      ' FIELD_REQUIRED',
    ]);
  });

  it('checks a dependent picklist against stored values as well', async () => {
    const { id } = await company({ Kind__c: 'a', Sub__c: 'a1' });
    assert.deepEqual(codes(await refusal(world.clerk.update('Company__c', id, { Kind__c: 'b' }, { etag: '"1"' }))), [
      '/Sub__c DEPENDENT_PICKLIST_INVALID',
    ]);
    const reply = await world.clerk.update('Company__c', id, { Kind__c: 'b', Sub__c: 'b1' }, { etag: '"1"' });
    assert.equal(reply.body.Sub__c, 'b1');
  });

  it('changes references by id and by external id', async () => {
    const parent = await company({ Code__c: 'UPD-PARENT' });
    const { id } = await company();
    const reply = await world.clerk.update(
      'Company__c',
      id,
      { ParentId__c: { Code__c: 'UPD-PARENT' } },
      { etag: '"1"' },
    );
    assert.equal(reply.body.ParentId__c, parent.id);
    const same = await world.clerk.update('Company__c', id, { ParentId__c: parent.id }, { etag: '"2"' });
    assert.equal(same.headers['ETag'], '"2"', 'the same record by another name is no change');
    assert.deepEqual(
      codes(await refusal(world.clerk.update('Company__c', id, { ParentId__c: randomUUID() }, { etag: '"2"' }))),
      ['/ParentId__c REFERENCE_NOT_FOUND'],
    );
    const cleared = await world.clerk.update('Company__c', id, { ParentId__c: null }, { etag: '"2"' });
    assert.equal(cleared.body.ParentId__c, null);
  });

  it('returns only readable fields, and changes the ETag for all readers', async () => {
    const { id } = await company();
    const reply = await world.admin.update(
      'Company__c',
      id,
      { Secret__c: 'hidden', Fixed__c: 'shown' },
      { etag: '"1"' },
    );
    assert.equal(reply.body.Secret__c, 'hidden');
    const read = await world.clerk.get('Company__c', id);
    assert.equal(read.headers['ETag'], '"2"');
    assert.ok(!('Secret__c' in read.body));
    assert.equal(read.body.Fixed__c, 'shown');
  });
});
