/** The body schemas of `schema.json` match what create and update accept, type by type. */
import assert from 'node:assert/strict';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { createWorld, FILES, refusal, type World } from './world.ts';

const MORE = {
  'objects/Company__c/fields/Kind__c.yaml': FILES['objects/Company__c/fields/Kind__c.yaml']!.replace(
    '    - value: b\n',
    '    - value: old\n      label: Old\n      active: false\n    - value: b\n',
  ),
  'objects/Company__c/recordTypes/Big.yaml': 'type: RecordType\napiName: Big\nobject: Company__c\nlabel: Big\n',
  'objects/Company__c/recordTypes/Gone.yaml':
    'type: RecordType\napiName: Gone\nobject: Company__c\nlabel: Gone\nactive: false\n',
};

describe('the schema of bodies', () => {
  let world: World;
  // biome-ignore lint/suspicious/noExplicitAny: a JSON Schema, whose parts are looked at
  let schema: any;
  let etag: string;
  let parentId: string;
  const compiled = (name: 'create' | 'update' | 'read'): ValidateFunction => {
    const ajv = new Ajv2020({ strict: false });
    (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
    return ajv.compile({ ...schema, $id: undefined, $ref: `#/$defs/${name}` });
  };

  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
    await world.deploy(world.tenantId, MORE);
    parentId = (await world.clerk.create('Company__c', { name: 'Parent', Code__c: 'P1' })).body.id;
    const reply = await world.clerk.send('schema.objects.getSchema', { objectApiName: 'Company__c' });
    schema = reply.body;
    etag = reply.headers['ETag']!;
  });
  after(() => world?.stop());

  it('accepts exactly the bodies that a create accepts', async () => {
    const bodies: [taken: boolean, body: Record<string, unknown>][] = [
      ...[12.5, '12.50', 0, -1].map((value): [boolean, Record<string, unknown>] => [true, { Amount__c: value }]),
      ...['abc', true, [1]].map((value): [boolean, Record<string, unknown>] => [false, { Amount__c: value }]),
      [false, { Quantity__c: -1 }],
      [true, { Count__c: 3 }],
      [false, { Count__c: 3.5 }],
      [true, { Active__c: false }],
      [false, { Active__c: 'false' }],
      [true, { Kind__c: 'b' }],
      [true, { Kind__c: null }],
      [false, { Kind__c: 'old' }],
      [false, { Kind__c: 'B' }],
      [true, { Tags__c: ['y', 'x'] }],
      [false, { Tags__c: ['x', 'x'] }],
      [false, { Tags__c: ['z'] }],
      [true, { Website__c: 'https://example.com/a' }],
      [false, { Website__c: 'example' }],
      [true, { Email__c: 'ada@example.com' }],
      [false, { Email__c: 'ada' }],
      [true, { Day__c: '2026-02-28' }],
      [false, { Day__c: '2026-02-30' }],
      [true, { When__c: '2026-02-28T10:00:00Z' }],
      [false, { When__c: '2026-02-28' }],
      [true, { Data__c: { any: ['thing', 1] } }],
      [true, { Place__c: { latitude: 1.5, longitude: 2 } }],
      [false, { Place__c: { latitude: 91, longitude: 2 } }],
      [true, { ParentId__c: parentId }],
      [true, { ParentId__c: { Code__c: 'P1' } }],
      [false, { ParentId__c: { Count__c: 1 } }],
      [false, { ParentId__c: {} }],
      [false, { ParentId__c: 'P1' }],
      [true, { recordTypeApiName: 'Big' }],
      [false, { recordTypeApiName: 'Gone' }],
      [false, { recordTypeApiName: 'Nope' }],
      [false, { name: null }],
      [false, { name: '' }],
      [false, { name: 'x'.repeat(256) }],
      [false, { ownerId: null }],
      [false, { id: parentId }],
      [false, { createdAt: '2026-02-28T10:00:00Z' }],
      [false, { Secret__c: 'hidden' }],
      [false, { Fixed__c: 'read only' }],
      [false, { Unknown__c: 1 }],
    ];
    const validate = compiled('create');
    for (const [taken, fields] of bodies) {
      const body = { name: 'Tried', ...fields };
      const text = JSON.stringify(body);
      assert.equal(validate(body), taken, `the schema: ${text}`);
      const created = world.clerk.create('Company__c', body);
      if (taken) assert.equal((await created).status, 201, text);
      else assert.ok([403, 422].includes((await refusal(created)).status), text);
    }
    assert.equal(validate({ Count__c: 1 }), false, 'the name is required');
    assert.equal(compiled('update')({ Count__c: 1 }), true);
    assert.equal(compiled('update')({}), false, 'nothing to change');
  });

  it('allows null only for nullable fields', async () => {
    const { body } = await world.clerk.send('schema.objects.describe', { objectApiName: 'Company__c' });
    const never = body.fields
      .map(({ apiName }: { apiName: string }) => apiName)
      .filter((apiName: string) => !JSON.stringify(schema.$defs.read.properties[apiName]).includes('"null"'));
    const kept = ['id', 'ownerId', 'createdAt', 'createdById', 'updatedAt', 'updatedById', 'recordVersion'];
    assert.deepEqual(never.toSorted(), [...kept, 'name'].toSorted());
    const { body: page } = await world.clerk.list('Company__c', {});
    const validate = compiled('read');
    for (const record of page.records) assert.ok(validate(record), JSON.stringify(validate.errors));
  });

  it('allows stored values in records that bodies no longer accept', () => {
    assert.deepEqual(schema.$defs.read.properties.Kind__c.anyOf[0].enum, ['a', 'old', 'b']);
    assert.deepEqual(schema.$defs.create.properties.Kind__c.anyOf[0].enum, ['a', 'b']);
    assert.equal(schema.$defs.read.properties.Quantity__c.anyOf[0].minimum, undefined);
    assert.equal(schema.$defs.create.properties.Quantity__c.anyOf[0].minimum, 0);
  });

  it('describes references and amounts', () => {
    assert.equal(schema.$defs.read.properties.ParentId__c.description, 'Id of a record of Company__c.');
    assert.match(
      schema.$defs.create.properties.Amount__c.description,
      /16 digits before the decimal point and 2 after/,
    );
  });

  it('has an ETag of its own', async () => {
    const send = (ifNoneMatch: string) =>
      world.clerk.send('schema.objects.getSchema', { objectApiName: 'Company__c' }, {}, undefined, { ifNoneMatch });
    assert.equal((await send(etag)).status, 304);
    const described = await world.clerk.send('schema.objects.describe', { objectApiName: 'Company__c' });
    assert.equal((await send(described.headers['ETag']!)).status, 200);
    assert.notEqual(
      (await world.reader.send('schema.objects.getSchema', { objectApiName: 'Company__c' })).headers['ETag'],
      etag,
    );
  });
});
