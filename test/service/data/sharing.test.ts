import assert from 'node:assert/strict';
import { call } from '../../../contracts/call.ts';
import { codes, createWorld, type Person, refusal, type World } from './world.ts';

const lines = (...list: string[]): string => `${list.join('\n')}\n`;

const object = (apiName: string, sharingDefault: string): string =>
  lines(
    'type: CustomObject',
    `apiName: ${apiName}`,
    `label: ${apiName}`,
    `labelPlural: ${apiName}`,
    'nameField:',
    '  label: Name',
    '  fieldType: text',
    `sharingDefault: ${sharingDefault}`,
    'api:',
    '  published: true',
  );

const reference = (objectName: string, apiName: string, fieldType: string, to: string, onDelete: string): string =>
  lines(
    'type: CustomField',
    `apiName: ${apiName}`,
    `object: ${objectName}`,
    `label: ${apiName}`,
    `fieldType: ${fieldType}`,
    'referenceTo:',
    `  - ${to}`,
    `onDelete: ${onDelete}`,
  );

const OBJECTS = ['Deal__c', 'DealLine__c', 'DealTask__c'];

const FILES: Record<string, string> = {
  'roles/Boss.yaml': lines('type: Role', 'apiName: Boss', 'label: Boss'),
  'roles/Rep.yaml': lines('type: Role', 'apiName: Rep', 'label: Rep', 'parent: Boss'),
  'roles/Desk.yaml': lines('type: Role', 'apiName: Desk', 'label: Desk'),
  'roles/Editor.yaml': lines('type: Role', 'apiName: Editor', 'label: Editor'),
  'objects/Deal__c/object.yaml': object('Deal__c', 'private'),
  'objects/DealLine__c/object.yaml': object('DealLine__c', 'controlledByParent'),
  'objects/DealLine__c/fields/DealId__c.yaml': reference(
    'DealLine__c',
    'DealId__c',
    'masterDetail',
    'Deal__c',
    'cascade',
  ),
  'objects/DealTask__c/object.yaml': object('DealTask__c', 'private'),
  'objects/DealTask__c/fields/DealId__c.yaml': reference(
    'DealTask__c',
    'DealId__c',
    'reference',
    'Deal__c',
    'restrict',
  ),
  'objects/Deal__c/sharingRules/DeskReads.yaml': lines(
    'type: SharingRule',
    'apiName: DeskReads',
    'object: Deal__c',
    'kind: criteria',
    'criteria: record.name == "open to the desk"',
    'to:',
    '  role: Desk',
    'access: read',
  ),
  'objects/Deal__c/sharingRules/EditorWrites.yaml': lines(
    'type: SharingRule',
    'apiName: EditorWrites',
    'object: Deal__c',
    'kind: owner',
    'from:',
    '  role: Rep',
    'to:',
    '  role: Editor',
    'access: readWrite',
  ),
  'profiles/Seller.yaml': lines(
    'type: Profile',
    'apiName: Seller',
    'label: Seller',
    'system:',
    '  - apiEnabled',
    'objects:',
    ...OBJECTS.flatMap((name) => [
      `  ${name}:`,
      ...['create', 'read', 'update', 'delete'].map((key) => `    ${key}: true`),
      '    viewAll: false',
      '    modifyAll: false',
    ]),
    'fields:',
    ...['DealLine__c.DealId__c', 'DealTask__c.DealId__c'].flatMap((name) => [
      `  ${name}:`,
      '    read: true',
      '    edit: true',
    ]),
  ),
};

describe('shared records', () => {
  let world: World;
  const people: Record<string, Person> = {};
  const person = (name: string): Person => people[name]!;

  before(async function () {
    this.timeout(120_000);
    world = await createWorld();
    await world.deploy(world.tenantId, FILES);
    const roles = { boss: 'Boss', rep: 'Rep', colleague: 'Rep', desk: 'Desk', editor: 'Editor' };
    const { userIds } = await call(world.platform.broker, 'data.users.provision', {
      tenantId: world.tenantId,
      users: Object.entries(roles).map(([name, roleApiName]) => ({
        username: `${name}@one.example`,
        email: `${name}@one.example`,
        displayName: name,
        profileApiName: 'Seller',
        roleApiName,
      })),
    });
    for (const name of Object.keys(roles))
      people[name] = world.person(world.tenantId, userIds[`${name}@one.example`]!, name);
  });
  after(() => world?.stop());

  const deal = async (name = 'a deal'): Promise<string> => (await person('rep').create('Deal__c', { name })).body.id;
  const names = async (who: string): Promise<string[]> =>
    (await person(who).list('Deal__c')).body.records.map((record: { id: string }) => record.id);

  it('are visible to the owner and higher roles, and absent for others', async () => {
    const id = await deal();
    for (const who of ['rep', 'boss', 'editor']) {
      assert.equal((await person(who).get('Deal__c', id)).status, 200, who);
      assert.ok((await names(who)).includes(id), who);
    }
    for (const who of ['colleague', 'desk']) {
      assert.ok(!(await names(who)).includes(id), who);
      const hidden = await refusal(person(who).get('Deal__c', id));
      const absent = await refusal(person(who).get('Deal__c', '01939f6e-0000-7000-8000-0000000000ff'));
      assert.deepEqual(hidden.toWire(), absent.toWire());
    }
  });

  it('are changed with edit access, and transferred or deleted with full access', async () => {
    const id = await deal('open to the desk');
    const owner = { ownerId: person('boss').userId };
    for (const attempt of [
      () => person('desk').update('Deal__c', id, { name: 'x' }, { etag: '"1"' }),
      () => person('desk').delete('Deal__c', id, { etag: '"1"' }),
      () => person('editor').update('Deal__c', id, owner, { etag: '"1"' }),
      () => person('editor').delete('Deal__c', id, { etag: '"1"' }),
    ]) {
      const error = await refusal(attempt());
      assert.equal(error.code, 'RECORD_ACCESS_DENIED');
      assert.deepEqual(error.details, { layer: 'sharing' });
    }
    for (const attempt of [
      () => person('colleague').update('Deal__c', id, { name: 'x' }, { etag: '"1"' }),
      () => person('colleague').update('Deal__c', id, { nonsense: 1 }, { etag: '"9"' }),
      () => person('colleague').delete('Deal__c', id, { etag: '"1"' }),
    ])
      assert.equal((await refusal(attempt())).code, 'RECORD_NOT_FOUND');
    assert.equal((await person('editor').update('Deal__c', id, { name: 'seen' }, { etag: '"1"' })).status, 200);
    assert.equal(
      (await refusal(person('desk').get('Deal__c', id))).code,
      'RECORD_NOT_FOUND',
      'no longer meets the rule',
    );
    assert.equal((await person('boss').update('Deal__c', id, owner, { etag: '"2"' })).status, 200);
    assert.equal((await refusal(person('rep').get('Deal__c', id))).code, 'RECORD_NOT_FOUND', 'given away');
    assert.equal((await person('boss').delete('Deal__c', id, { etag: '"3"' })).status, 200);
  });

  it('can be referenced by their readers', async () => {
    const id = await deal('open to the desk');
    assert.equal((await person('desk').create('DealTask__c', { name: 't', DealId__c: id })).status, 201);
    const refused = await refusal(person('colleague').create('DealTask__c', { name: 't', DealId__c: id }));
    assert.deepEqual(codes(refused), ['/DealId__c REFERENCE_NOT_FOUND']);
    const absent = '01939f6e-0000-7000-8000-0000000000ff';
    const unknown = await refusal(person('colleague').create('DealTask__c', { name: 't', DealId__c: absent }));
    assert.deepEqual(refused.toWire(), unknown.toWire());
  });

  it('give their level to the records they control', async () => {
    const id = await deal('open to the desk');
    const line = (await person('rep').create('DealLine__c', { name: 'l', DealId__c: id })).body.id;
    assert.equal((await person('desk').get('DealLine__c', line)).status, 200);
    const changed = await refusal(person('desk').update('DealLine__c', line, { name: 'x' }, { etag: '"1"' }));
    assert.equal(changed.code, 'RECORD_ACCESS_DENIED');
    for (const body of [
      { name: 'l', DealId__c: id },
      { name: 'l', DealId__c: id, nonsense: 1 },
    ])
      assert.equal((await refusal(person('desk').create('DealLine__c', body))).code, 'RECORD_ACCESS_DENIED');
    const hidden = await refusal(person('colleague').create('DealLine__c', { name: 'l', DealId__c: id }));
    assert.deepEqual(codes(hidden), ['/DealId__c REFERENCE_NOT_FOUND']);
    const own = (await person('desk').create('Deal__c', { name: 'own' })).body.id;
    const moved = (await person('desk').create('DealLine__c', { name: 'm', DealId__c: own })).body.id;
    const move = await refusal(person('desk').update('DealLine__c', moved, { DealId__c: id }, { etag: '"1"' }));
    assert.equal(move.code, 'RECORD_ACCESS_DENIED');
    assert.equal(
      (await person('editor').delete('DealLine__c', line, { etag: '"1"' })).status,
      200,
      'edit above is full',
    );
  });

  it('are not counted when invisible, but still conflict', async () => {
    const id = await deal('open to the desk');
    await person('desk').create('DealTask__c', { name: 'hidden from the representative', DealId__c: id });
    const first = await refusal(person('rep').delete('Deal__c', id, { etag: '"1"' }));
    assert.equal(first.code, 'DELETE_RESTRICTED');
    assert.deepEqual(first.details, { dependents: [] });
    await person('rep').create('DealTask__c', { name: 'own', DealId__c: id });
    const second = await refusal(person('rep').delete('Deal__c', id, { etag: '"1"' }));
    assert.deepEqual(second.details, { dependents: [{ objectApiName: 'DealTask__c', count: 1 }] });
  });

  it('of new users are visible to higher roles at once, and of deactivated users permanently', async () => {
    const made = await world.admin.create('User', {
      displayName: 'newcomer',
      username: 'newcomer@one.example',
      email: 'newcomer@one.example',
      active: true,
      profileApiName: 'Seller',
      roleApiName: 'Rep',
    });
    await person('boss').list('Deal__c');
    const newcomer = world.person(world.tenantId, made.body.id, 'newcomer');
    const { id } = (await newcomer.create('Deal__c', { name: 'first' })).body;
    assert.ok((await names('boss')).includes(id));
    await world.admin.update('User', made.body.id, { active: false }, { etag: made.headers['ETag']! });
    assert.ok((await names('boss')).includes(id));
    assert.ok(!(await names('colleague')).includes(id));
  });
});
