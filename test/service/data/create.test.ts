import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { codes, createWorld, refusal, type World } from './world.ts';

describe('creating records', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
  });
  after(() => world?.stop());

  it('answers the record with its ETag and address', async () => {
    const body = {
      name: 'Acme GmbH',
      Code__c: 'A-1',
      Amount__c: 10.5,
      Quantity__c: '2.125',
      Count__c: 7,
      Tags__c: ['y', 'x'],
      Day__c: '2026-11-21',
      When__c: '2026-11-21T10:00:00+01:00',
      Data__c: { deep: [1, null] },
      Place__c: { latitude: 52.5, longitude: 13.4 },
    };
    const reply = await world.clerk.create('Company__c', body);
    assert.equal(reply.status, 201);
    assert.equal(reply.headers['ETag'], '"1"');
    assert.equal(reply.headers['Location'], `/api/v1/data/Company__c/${reply.body.id}`);
    assert.equal(reply.body.ownerId, world.clerk.userId);
    assert.equal(reply.body.createdById, world.clerk.userId);
    assert.equal(reply.body.recordVersion, 1);
    assert.match(reply.text, /"Amount__c":10\.50[,}]/);
    assert.match(reply.text, /"Quantity__c":2\.125[,}]/);
    assert.deepEqual(reply.body.Tags__c, ['y', 'x']);
    assert.equal(reply.body.When__c, '2026-11-21T09:00:00+00:00');
    assert.deepEqual(reply.body.Data__c, { deep: [1, null] });
    assert.equal(reply.body.Active__c, true, 'the default of a boolean');
    assert.equal(reply.body.Kind__c, 'a', 'the default of a picklist');
    assert.equal(reply.body.Email__c, null);
    assert.ok(!('Secret__c' in reply.body), 'a hidden field is absent');
    const read = await world.clerk.get('Company__c', reply.body.id);
    assert.equal(read.text, reply.text, 'get answers the very same bytes');
    assert.equal(read.headers['ETag'], '"1"');
  });

  it('answers decimals as strings where the caller asks for it', async () => {
    const reply = await world.clerk.create(
      'Company__c',
      { name: 'X', Amount__c: '1234567890123456.78' },
      { ieee754Compatible: true },
    );
    assert.equal(reply.body.Amount__c, '1234567890123456.78');
    const read = await world.clerk.get('Company__c', reply.body.id);
    assert.match(read.text, /"Amount__c":1234567890123456\.78[,}]/);
  });

  it('assigns automatic numbers in their format', async () => {
    const first = await world.clerk.create('Ticket__c', {});
    const second = await world.clerk.create('Ticket__c', {});
    assert.match(first.body.name, /^TIC-\d{5}$/);
    assert.ok(second.body.name > first.body.name);
  });

  it('resolves references by id and by external id', async () => {
    const company = await world.clerk.create('Company__c', { name: 'Parent', Code__c: 'PARENT' });
    const byId = await world.clerk.create('Ticket__c', { CompanyId__c: company.body.id });
    assert.equal(byId.body.CompanyId__c, company.body.id);
    const byCode = await world.clerk.create('Ticket__c', { CompanyId__c: { Code__c: 'parent' } });
    assert.equal(byCode.body.CompanyId__c, company.body.id);
  });

  it('writes history, audit and an event in the same transaction', async () => {
    const { body } = await world.clerk.create('Company__c', { name: 'Trail', Amount__c: 1 }, { key: 'trail-create' });
    const [history] = await world.rows('SELECT * FROM $schema._history WHERE record_id = $1', [body.id]);
    assert.equal(history!['operation'], 'create');
    assert.deepEqual(history!['changes'].name, { from: null, to: 'Trail' });
    assert.equal(history!['changes'].Amount__c.to, 1);
    const [audit] = await world.rows('SELECT * FROM $schema._audit WHERE record_id = $1', [body.id]);
    assert.equal(audit!['outcome'], 'committed');
    assert.equal(audit!['operation_id'], 'data.records.create');
    assert.equal(audit!['idempotency_key'], 'trail-create');
    assert.equal(audit!['ip'], '127.0.0.1');
    const [event] = await world.rows('SELECT * FROM $schema._outbox WHERE record_id = $1', [body.id]);
    assert.equal(event!['type'], 'data.record.created');
    assert.equal(event!['record_version'], 1);
    assert.deepEqual(audit!['changes'], history!['changes']);
    const { transactionId, ...place } = event!['data'];
    assert.deepEqual(place, { transactionIndex: 0, transactionSize: 1 }, 'what changed is told by the audit entry');
    assert.match(transactionId, /^[0-9a-f-]{36}$/);
  });

  it('uses tables without CHECK constraints, which slow down planning', async () => {
    const rows = await world.rows(
      `SELECT conrelid::regclass::text AS on FROM pg_constraint WHERE contype = 'c' AND conrelid = ANY(ARRAY[
        '$schema._idempotency', '$schema._history', '$schema._audit', '$schema._outbox', '$schema."Company__c"']::regclass[])`,
    );
    assert.deepEqual(rows, []);
  });

  it('reports all problems at once', async () => {
    const error = await refusal(
      world.clerk.create('Company__c', {
        Amount__c: 1.234,
        Quantity__c: -1,
        Count__c: 'many',
        Kind__c: 'c',
        Tags__c: ['x', 'x'],
        Email__c: 'nobody',
        Day__c: '2026-02-30',
        Website__c: 5,
        Nope__c: 1,
        id: randomUUID(),
        ParentId__c: randomUUID(),
      }),
    );
    assert.equal(error.code, 'VALIDATION_FAILED');
    assert.deepEqual(codes(error), [
      '/Amount__c FIELD_OUT_OF_RANGE',
      '/Count__c FIELD_TYPE_INVALID',
      '/Day__c FIELD_FORMAT_INVALID',
      '/Email__c FIELD_FORMAT_INVALID',
      '/Kind__c PICKLIST_VALUE_INVALID',
      '/Nope__c FIELD_UNKNOWN',
      '/ParentId__c REFERENCE_NOT_FOUND',
      '/Quantity__c FIELD_OUT_OF_RANGE',
      '/Tags__c/1 PICKLIST_VALUE_INVALID',
      '/Website__c FIELD_TYPE_INVALID',
      '/id FIELD_READ_ONLY',
      '/name FIELD_REQUIRED',
    ]);
  });

  it('refuses invalid bodies', async () => {
    for (const body of [[], 'text', 5, null, true])
      assert.match((await refusal(world.clerk.create('Company__c', body))).code, /^(BODY_REQUIRED|REQUEST_MALFORMED)$/);
  });

  it('treats blank text as missing where a value is required', async () => {
    for (const name of ['', '   ', '\u00a0\t', null])
      assert.deepEqual(codes(await refusal(world.clerk.create('Company__c', { name }))), ['/name FIELD_REQUIRED']);
  });

  it('holds dependent picklists to their controlling field', async () => {
    const error = await refusal(world.clerk.create('Company__c', { name: 'D', Kind__c: 'a', Sub__c: 'b1' }));
    assert.deepEqual(codes(error), ['/Sub__c DEPENDENT_PICKLIST_INVALID']);
    const fine = await world.clerk.create('Company__c', { name: 'D', Kind__c: 'b', Sub__c: 'b1' });
    assert.equal(fine.status, 201);
  });

  it('refuses invalid references', async () => {
    for (const value of [5, [], {}, { Code__c: 'a', name: 'b' }, { Nope__c: 1 }, { name: 'Acme' }, { Secret__c: 'x' }])
      assert.deepEqual(
        codes(await refusal(world.clerk.create('Ticket__c', { CompanyId__c: value }))),
        ['/CompanyId__c REFERENCE_TYPE_INVALID'],
        JSON.stringify(value),
      );
    for (const value of [{ Code__c: 'there is none' }, randomUUID()])
      assert.deepEqual(codes(await refusal(world.clerk.create('Ticket__c', { CompanyId__c: value }))), [
        '/CompanyId__c REFERENCE_NOT_FOUND',
      ]);
  });

  it('accepts only active users as owner', async () => {
    assert.deepEqual(codes(await refusal(world.clerk.create('Company__c', { name: 'O', ownerId: randomUUID() }))), [
      '/ownerId REFERENCE_NOT_FOUND',
    ]);
    const reply = await world.clerk.create('Company__c', { name: 'O', ownerId: world.admin.userId });
    assert.equal(reply.body.ownerId, world.admin.userId);
  });

  it('keeps unique values unique, whatever their case', async () => {
    await world.clerk.create('Company__c', { name: 'U', Code__c: 'Unique' });
    const error = await refusal(world.clerk.create('Company__c', { name: 'U2', Code__c: 'UNIQUE' }));
    assert.equal(error.code, 'UNIQUE_VALUE_CONFLICT');
    assert.deepEqual(error.details, { field: 'Code__c' });
  });

  it('does not name a hidden field whose value is taken', async () => {
    await world.admin.create('Company__c', { name: 'S', Secret__c: 'taken' });
    const error = await refusal(world.admin.create('Company__c', { name: 'S', Secret__c: 'taken' }));
    assert.deepEqual(error.details, { field: 'Secret__c' });
    const hidden = await refusal(world.clerk.create('Company__c', { name: 'S', Secret__c: 'taken' }));
    assert.deepEqual(codes(hidden), ['/Secret__c FIELD_UNKNOWN']);
  });

  it('stores text as it is, however much it looks like SQL or a path', async () => {
    for (const text of [`'; DROP TABLE "Company__c"; --`, '"', '\\', '$1', '%_', '\u202e', '😀', "E'\\x00'"]) {
      const reply = await world.clerk.create('Company__c', { name: text, Note__c: text, Data__c: text });
      const read = await world.clerk.get('Company__c', reply.body.id);
      assert.deepEqual([read.body.name, read.body.Note__c, read.body.Data__c], [text, text, text]);
      const error = await refusal(world.clerk.create('Company__c', { name: 'x', [text]: 1 }));
      assert.equal(error.errors?.[0]?.code, 'FIELD_UNKNOWN');
      assert.equal((await refusal(world.clerk.create(text, { name: 'x' }))).code, 'OBJECT_NOT_FOUND');
      assert.equal((await refusal(world.clerk.get(text, reply.body.id))).code, 'OBJECT_NOT_FOUND');
      assert.equal((await refusal(world.clerk.get('Company__c', text))).code, 'RECORD_NOT_FOUND');
    }
  });

  it('refuses JavaScript property names as fields or objects', async () => {
    for (const name of ['constructor', 'toString', 'hasOwnProperty', '__proto__']) {
      const body = JSON.parse(`{"name":"x",${JSON.stringify(name)}:1}`);
      assert.deepEqual(codes(await refusal(world.clerk.create('Company__c', body))), [`/${name} FIELD_UNKNOWN`]);
      assert.equal((await refusal(world.clerk.create(name, {}))).code, 'OBJECT_NOT_FOUND');
    }
    const error = await refusal(world.clerk.create('Company__c', { name: 'x', 'a/b~c': 1 }));
    assert.deepEqual(codes(error), ['/a~1b~0c FIELD_UNKNOWN']);
  });

  it('distinguishes a read-only field from an absent one', async () => {
    const error = await refusal(world.clerk.create('Company__c', { name: 'x', Fixed__c: 'y', Count__c: 'bad' }));
    assert.equal(error.code, 'FIELD_PERMISSION_DENIED');
    assert.deepEqual(codes(error), ['/Fixed__c FIELD_PERMISSION_DENIED']);
    assert.equal((await refusal(world.reader.create('Company__c', { name: 'x' }))).code, 'OBJECT_PERMISSION_DENIED');
    assert.equal((await refusal(world.clerk.create('Vault__c', { name: 'x' }))).code, 'OBJECT_NOT_FOUND');
    assert.equal((await refusal(world.clerk.create('Draft__c', { name: 'x' }))).code, 'OBJECT_NOT_FOUND');
    assert.equal((await refusal(world.nobody.create('Company__c', { name: 'x' }))).code, 'API_ACCESS_DISABLED');
  });

  it('audits refusals', async () => {
    await refusal(world.reader.create('Company__c', { name: 'x' }, { key: 'denied-one' }));
    await refusal(world.clerk.create('Company__c', {}, { key: 'failed-one' }));
    const rows = await world.rows(
      `SELECT outcome, code, operation_id FROM $schema._audit WHERE idempotency_key IN ('denied-one', 'failed-one') ORDER BY outcome`,
    );
    assert.deepEqual(rows, [
      { outcome: 'denied', code: 'OBJECT_PERMISSION_DENIED', operation_id: 'data.records.create' },
      { outcome: 'failed', code: 'VALIDATION_FAILED', operation_id: 'data.records.create' },
    ]);
  });

  it('keeps tenants apart', async () => {
    const mine = await world.clerk.create('Company__c', { name: 'Mine', Code__c: 'SHARED' });
    const theirs = await world.stranger.create('Company__c', { name: 'Theirs', Code__c: 'SHARED' });
    assert.equal(theirs.status, 201, 'a unique value of another tenant is not taken');
    assert.equal((await refusal(world.stranger.get('Company__c', mine.body.id))).code, 'RECORD_NOT_FOUND');
    assert.deepEqual(codes(await refusal(world.stranger.create('Ticket__c', { CompanyId__c: mine.body.id }))), [
      '/CompanyId__c REFERENCE_NOT_FOUND',
    ]);
  });
});
