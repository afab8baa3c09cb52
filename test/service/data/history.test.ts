/** The history of a record: what a reader is shown of it, page by page. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createWorld, type Person, refusal, type World } from './world.ts';

describe('the history of a record', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
  });
  after(() => world?.stop());

  const history = (person: Person, id: string, query: Record<string, unknown> = {}, objectApiName = 'Company__c') =>
    person.send('data.history.list', { objectApiName, id }, query);
  const company = async (body: Record<string, unknown> = {}): Promise<string> =>
    (await world.admin.create('Company__c', { name: 'Acme', ...body })).body.id;
  const change = (id: string, version: number, body: Record<string, unknown>) =>
    world.admin.update('Company__c', id, body, { etag: `"${version.toString(36)}"` });

  it('lists actor and changes, newest first, with every digit', async () => {
    const id = await company({ Amount__c: '9007199254740993.10', Note__c: 'a' });
    const changed = await change(id, 1, { Amount__c: '0.10', Tags__c: ['x'] });
    assert.equal(changed.status, 200);
    const { text, body } = await history(world.admin, id);
    assert.match(text, /"from":9007199254740993\.10,"to":0\.10/);
    const [update, create] = body.records;
    assert.deepEqual(Object.keys(update), ['changeId', 'at', 'actor', 'operation', 'requestId', 'changes']);
    assert.deepEqual(update.actor, { userId: world.admin.userId, clientId: 'test', agentRunId: null });
    assert.equal(update.operation, 'update');
    assert.match(update.requestId, /^req_/);
    assert.match(update.at, /^\d{4}-\d\d-\d\dT.*\+00:00$/);
    assert.deepEqual(update.changes[1], { field: 'Tags__c', from: null, to: ['x'] });
    assert.equal(create.operation, 'create');
    assert.ok(
      create.changes.some((item: { field: string; to: unknown }) => item.field === 'Note__c' && item.to === 'a'),
    );
    assert.equal(body.nextCursor, null);
    const exact = await world.admin.send('data.history.list', { objectApiName: 'Company__c', id }, {}, undefined, {
      ieee754Compatible: true,
    });
    assert.match(exact.text, /"from":"9007199254740993\.10","to":"0\.10"/);
  });

  it('shows only readable fields, and omits entries without any', async () => {
    const id = await company({ Code__c: `C${randomUUID()}`, Amount__c: 1, Secret__c: 's' });
    await change(id, 1, { Amount__c: 2 });
    await change(id, 2, { Secret__c: 't' });
    await change(id, 3, { Secret__c: 'u', Code__c: `D${randomUUID()}` });
    const { body, text } = await history(world.reader, id);
    assert.deepEqual(
      body.records.map((entry: { operation: string; changes: { field: string }[] }) => [
        entry.operation,
        entry.changes.map((item) => item.field),
      ]),
      [
        ['update', ['Code__c']],
        ['create', ['name', 'Code__c']],
      ],
    );
    assert.doesNotMatch(text, /Secret|Amount/);
    assert.equal((await history(world.admin, id)).body.records.length, 4);
  });

  it('is paged with take and cursor, which are valid for it only', async () => {
    const id = await company({ Count__c: 0 });
    for (let n = 1; n <= 6; n++) await change(id, n, n % 2 ? { Count__c: n, Secret__c: `${n}` } : { Count__c: n });
    const whole = (await history(world.clerk, id)).body.records;
    assert.equal(whole.length, 7);
    const walked = [];
    let cursor: string | null = null;
    do {
      const { body } = await history(world.clerk, id, { take: 3, ...(cursor === null ? {} : { cursor }) });
      walked.push(...body.records);
      cursor = body.nextCursor;
      if (walked.length === 3) {
        const codeOf = async (promise: Promise<unknown>) => (await refusal(promise)).code;
        const other = await company();
        assert.deepEqual((await refusal(history(world.clerk, id, { take: 2, cursor }))).details, { changed: ['take'] });
        assert.deepEqual((await refusal(history(world.clerk, other, { take: 3, cursor }))).details, {
          changed: ['id'],
        });
        assert.equal(await codeOf(history(world.admin, id, { take: 3, cursor })), 'CURSOR_INVALID');
        assert.equal(await codeOf(world.clerk.list('Company__c', { take: 3, cursor })), 'CURSOR_INVALID');
        assert.equal(await codeOf(history(world.clerk, id, { take: 0 })), 'PARAMETER_INVALID');
      }
    } while (cursor !== null);
    assert.deepEqual(walked, whole);
    assert.equal((await history(world.clerk, id, { take: 1_000 })).headers['X-Effective-Take'], '200');
  });

  it('is available for visible records only', async () => {
    const id = await company();
    for (const [person, object, record] of [
      [world.clerk, 'Company__c', randomUUID()],
      [world.clerk, 'Company__c', 'nonsense'],
      [world.stranger, 'Company__c', id],
      [world.clerk, 'Item__c', id],
    ] as const)
      assert.equal((await refusal(history(person, record, {}, object))).code, 'RECORD_NOT_FOUND');
    assert.equal((await refusal(history(world.reader, id, {}, 'Item__c'))).code, 'OBJECT_NOT_FOUND');
    assert.equal((await refusal(history(world.nobody, id))).code, 'API_ACCESS_DISABLED');
    await world.clerk.delete('Company__c', id, { etag: '"1"' });
    assert.equal((await refusal(history(world.admin, id))).code, 'RECORD_NOT_FOUND');
  });

  it('is empty without history tracking, and omits deleted fields', async () => {
    const silent = {
      'objects/Silent__c/object.yaml': [
        'type: CustomObject',
        'apiName: Silent__c',
        'label: Silent',
        'labelPlural: Silents',
        'nameField:',
        '  label: Name',
        '  fieldType: text',
        'sharingDefault: readWrite',
        'api:',
        '  published: true',
        'features:',
        '  history: false',
        '',
      ].join('\n'),
    };
    await world.deploy(world.tenantId, silent);
    const unkept = (await world.admin.create('Silent__c', { name: 'x' })).body.id;
    assert.deepEqual((await history(world.admin, unkept, {}, 'Silent__c')).body, { records: [], nextCursor: null });
    const id = await company({ Note__c: 'x' });
    await change(id, 1, { Note__c: 'y' });
    // A deleted field: its history stays in the table and is not shown.
    await world.rows(`UPDATE $schema._history SET changes = '{"Gone__c":{"from":1,"to":2}}' WHERE record_id = $1`, [
      id,
    ]);
    const { body } = await history(world.admin, id);
    assert.deepEqual(
      body.records.map((entry: { operation: string; changes: unknown[] }) => [entry.operation, entry.changes]),
      [['create', []]],
    );
  });
});
