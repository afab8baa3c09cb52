import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createWorld, refusal, type World } from './world.ts';

describe('reading objects and records', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
    for (let n = 0; n < 7; n++)
      await world.clerk.create('Company__c', {
        name: `Company ${n}`,
        Count__c: n,
        Code__c: `C${n}`,
        Kind__c: n % 2 ? 'a' : 'b',
      });
  });
  after(() => world?.stop());

  it('lists readable objects with the capabilities of the connection', async () => {
    const { body } = await world.clerk.send('schema.objects.list', {});
    assert.deepEqual(
      body.records.map((item: { apiName: string }) => item.apiName),
      ['Company__c', 'Item__c', 'Part__c', 'Ticket__c', 'User'],
    );
    assert.deepEqual(body.records[0].capabilities, {
      creatable: true,
      updateable: true,
      deletable: true,
      editable: true,
    });
    assert.deepEqual(body.records[4].capabilities, {
      creatable: false,
      updateable: false,
      deletable: false,
      editable: false,
    });
    const readOnly = await world.clerk.send('schema.objects.list', {}, {}, undefined, { scopes: ['data:read'] });
    for (const { capabilities } of readOnly.body.records)
      assert.deepEqual(capabilities, { creatable: false, updateable: false, deletable: false, editable: false });
    assert.equal((await refusal(world.nobody.send('schema.objects.list', {}))).code, 'API_ACCESS_DISABLED');
  });

  it('describes the readable fields and nothing else', async () => {
    const reply = await world.clerk.send('schema.objects.describe', { objectApiName: 'Company__c' });
    const { body } = reply;
    const names = body.fields.map((field: { apiName: string }) => field.apiName);
    assert.deepEqual(names.slice(0, 9), [
      'id',
      'ownerId',
      'createdAt',
      'createdById',
      'updatedAt',
      'updatedById',
      'recordVersion',
      'recordTypeApiName',
      'name',
    ]);
    assert.ok(!names.includes('Secret__c'));
    const by = Object.fromEntries(body.fields.map((field: { apiName: string }) => [field.apiName, field]));
    assert.deepEqual(by.Amount__c.filterOperators.includes('between'), true);
    assert.equal(by.Fixed__c.editable, false);
    assert.equal(by.Kind__c.picklistValues[0].isDefault, true);
    assert.equal(by.Kind__c.defaultedOnCreate, true);
    assert.equal(by.Sub__c.controllingField, 'Kind__c');
    assert.deepEqual(by.Sub__c.picklistValues[0].validFor, ['a']);
    assert.deepEqual(by.ParentId__c.referenceTo, ['Company__c']);
    assert.equal(by.id.editable, false);
    assert.equal(by.ownerId.editable, true);
    assert.equal(body.ownerField, 'ownerId');
    assert.ok(body.childRelationships.some((item: { objectApiName: string }) => item.objectApiName === 'Item__c'));
    assert.equal(reply.headers['ETag'], `"${body.schemaVersion}"`);
  });

  it('answers 304 to a describe that has not changed, and a new tag after a deployment', async () => {
    const first = await world.reader.send('schema.objects.describe', { objectApiName: 'Company__c' });
    const etag = first.headers['ETag']!;
    const again = await world.reader.send('schema.objects.describe', { objectApiName: 'Company__c' }, {}, undefined, {
      ifNoneMatch: etag,
    });
    assert.equal(again.status, 304);
    const clerk = await world.clerk.send('schema.objects.describe', { objectApiName: 'Company__c' });
    assert.notEqual(clerk.headers['ETag'], etag, 'another user, another description');
  });

  it('serves JSON Schemas of the bodies', async () => {
    const { body } = await world.clerk.send('schema.objects.getSchema', { objectApiName: 'Company__c' });
    assert.equal(body.$schema, 'https://json-schema.org/draft/2020-12/schema');
    assert.deepEqual(body.$defs.create.required, ['name']);
    assert.ok(!('Fixed__c' in body.$defs.create.properties));
    assert.ok('Fixed__c' in body.$defs.read.properties);
    assert.ok(!('Secret__c' in body.$defs.read.properties));
    const reader = await world.reader.send('schema.objects.getSchema', { objectApiName: 'Company__c' });
    assert.equal(reader.body.$defs.create, false);
  });

  it('pages through records with a cursor, each exactly once', async () => {
    const seen: number[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < 10; page++) {
      const { body } = await world.clerk.list('Company__c', {
        take: 3,
        includeTotal: true,
        sort: [{ id: 'Count__c', desc: true }],
        ...(cursor ? { cursor } : {}),
      });
      assert.equal(body.total, 7);
      seen.push(...body.records.map((record: { Count__c: number }) => record.Count__c));
      cursor = body.nextCursor;
      if (!cursor) break;
    }
    assert.deepEqual(seen, [6, 5, 4, 3, 2, 1, 0]);
  });

  it('accepts the same query as a body', async () => {
    const query = {
      filters: { logic: 'and', conditions: [{ id: '1', field: 'Kind__c', operator: 'eq', value: 'a' }] },
      sort: [{ id: 'name' }],
    };
    const listed = await world.clerk.list('Company__c', query);
    const queried = await world.clerk.send('data.records.query', { objectApiName: 'Company__c' }, {}, query);
    assert.equal(queried.text, listed.text);
    assert.equal(listed.body.records.length, 3);
    const error = await refusal(
      world.clerk.send('data.records.query', { objectApiName: 'Company__c' }, {}, { nope: 1 }),
    );
    assert.equal(error.code, 'BODY_PROPERTY_UNKNOWN');
    assert.equal(
      (await refusal(world.clerk.send('data.records.query', { objectApiName: 'Company__c' }, {}, []))).status,
      400,
    );
  });

  it('reports when it returns fewer records than requested', async () => {
    const reply = await world.clerk.list('Company__c', { take: 1_000 });
    assert.equal(reply.headers['X-Effective-Take'], '200');
    assert.equal((await world.clerk.list('Company__c', { take: 200 })).headers['X-Effective-Take'], undefined);
  });

  it('answers fields and ETags on request', async () => {
    const { body } = await world.clerk.list('Company__c', { fields: 'name,Count__c', includeEtag: true, take: 1 });
    assert.deepEqual(Object.keys(body.records[0]).sort(), ['Count__c', '_etag', 'id', 'name']);
    assert.equal(body.records[0]._etag, '"1"');
    assert.equal((await refusal(world.clerk.list('Company__c', { fields: 'Secret__c' }))).code, 'PARAMETER_INVALID');
    assert.equal((await refusal(world.clerk.list('Company__c', { fields: 'Nope__c' }))).code, 'PARAMETER_INVALID');
  });

  it('reads one record, with its ETag, some of its fields, or not at all when it has not changed', async () => {
    const { body } = await world.clerk.list('Company__c', { take: 1 });
    const { id } = body.records[0];
    const reply = await world.clerk.get('Company__c', id);
    assert.deepEqual(reply.body, body.records[0]);
    assert.equal(reply.headers['ETag'], '"1"');
    assert.equal((await world.clerk.get('Company__c', id, { ifNoneMatch: '"0", W/"1"' })).status, 304);
    assert.equal((await world.clerk.get('Company__c', id, { ifNoneMatch: '"2"' })).status, 200);
    assert.deepEqual(Object.keys((await world.clerk.get('Company__c', id, { fields: 'name' })).body), ['id', 'name']);
    assert.equal((await refusal(world.clerk.get('Company__c', id, { fields: 'Secret__c' }))).code, 'PARAMETER_INVALID');
    const reader = await world.reader.get('Company__c', id);
    assert.ok('Code__c' in reader.body && !('Count__c' in reader.body));
  });

  it('answers 404 alike for absent, deleted, hidden and malformed ids', async () => {
    const { body } = await world.clerk.create('Company__c', { name: 'Gone' });
    await world.clerk.delete('Company__c', body.id, { etag: '"1"' });
    const messages = new Set<string>();
    for (const id of [body.id, randomUUID(), 'x', `${body.id}'`]) {
      const error = await refusal(world.clerk.get('Company__c', id));
      assert.equal(error.code, 'RECORD_NOT_FOUND');
      messages.add(error.message);
    }
    assert.equal(messages.size, 1);
    for (const object of ['Vault__c', 'Draft__c', 'Nope__c', 'COMPANY__C', '"Company__c"', '_state']) {
      const error = await refusal(world.clerk.get(object, body.id));
      assert.equal(error.code, 'OBJECT_NOT_FOUND');
      assert.equal((await refusal(world.clerk.list(object))).code, 'OBJECT_NOT_FOUND');
      assert.equal(
        (await refusal(world.clerk.send('schema.objects.describe', { objectApiName: object }))).code,
        'OBJECT_NOT_FOUND',
      );
      messages.add(error.message);
    }
    assert.equal(messages.size, 2);
  });

  it('lists no transitions for records without a state model, after the same checks', async () => {
    const { body } = await world.clerk.list('Company__c', { take: 1 });
    const path = { objectApiName: 'Company__c', id: body.records[0].id };
    const reply = await world.clerk.send('data.transitions.list', path);
    assert.deepEqual(reply.body, { records: [], nextCursor: null, currentState: null, etag: '"1"' });
    assert.equal(reply.headers['ETag'], '"1"');
    assert.equal((await refusal(world.stranger.send('data.transitions.list', path))).code, 'RECORD_NOT_FOUND');
    assert.equal(
      (await refusal(world.clerk.send('data.transitions.list', { ...path, objectApiName: 'Vault__c' }))).code,
      'OBJECT_NOT_FOUND',
    );
  });

  it('shows only basic fields of users to every user', async () => {
    const { body } = await world.reader.list('User', { sort: [{ id: 'displayName' }] });
    assert.deepEqual(
      body.records.map((user: { displayName: string }) => user.displayName),
      ['admin', 'clerk', 'nobody', 'reader'],
    );
    assert.deepEqual(Object.keys(body.records[0]).sort(), ['displayName', 'id', 'name']);
  });

  it('uses a new configuration at once, deployed by any process', async () => {
    await world.clerk.list('Company__c', { take: 1 });
    await world.deploy(world.tenantId, {
      'objects/Company__c/fields/Fresh__c.yaml':
        'type: CustomField\napiName: Fresh__c\nobject: Company__c\nlabel: Fresh\nfieldType: text\n',
    });
    const { body } = await world.admin.list('Company__c', { take: 1 });
    assert.equal(body.records[0].Fresh__c, null);
    assert.ok(!('Fresh__c' in (await world.clerk.list('Company__c', { take: 1 })).body.records[0]));
    const created = await world.admin.create('Company__c', { name: 'F', Fresh__c: 'x' });
    assert.equal(created.body.Fresh__c, 'x');
  });

  it('applies the loss of a permission at once', async () => {
    const { headers } = await world.admin.get('User', world.reader.userId);
    assert.equal((await world.reader.list('Company__c', { take: 1 })).status, 200);
    const changed = await world.admin.update(
      'User',
      world.reader.userId,
      { profileApiName: 'Standard' },
      { etag: headers['ETag']! },
    );
    assert.equal((await refusal(world.reader.list('Company__c', { take: 1 }))).code, 'OBJECT_NOT_FOUND');
    assert.equal((await refusal(world.reader.create('Company__c', { name: 'x' }))).code, 'OBJECT_NOT_FOUND');
    await world.admin.update(
      'User',
      world.reader.userId,
      { profileApiName: 'Reader' },
      { etag: changed.headers['ETag']! },
    );
    assert.equal((await world.reader.list('Company__c', { take: 1 })).status, 200);
  });
});
