/** Reverting an agent run as a user with limited access, under the rules of any other write. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createWorld, type Person, type World } from './world.ts';

const yaml = (...lines: string[]): string => `${lines.join('\n')}\n`;

const OVERSEER = yaml(
  'type: PermissionSet',
  'apiName: Overseer',
  'label: Overseer',
  'system:',
  '  - approveAgentActions',
  'objects:',
  '  Company__c:',
  '    create: true',
  '    read: true',
  '    update: true',
  '    delete: false',
  '    viewAll: false',
  '    modifyAll: false',
  'fields:',
  '  Company__c.Note__c:',
  '    read: true',
  '    edit: true',
  '  Company__c.Amount__c:',
  '    read: true',
  '    edit: false',
);

const rule = (apiName: string, condition: string): Record<string, string> => ({
  [`objects/Company__c/validationRules/${apiName}.yaml`]: yaml(
    'type: ValidationRule',
    `apiName: ${apiName}`,
    'object: Company__c',
    'active: true',
    `condition: ${condition}`,
    'message: No.',
  ),
});

const STATES: Record<string, string> = {
  'objects/Order__c/object.yaml': yaml(
    'type: CustomObject',
    'apiName: Order__c',
    'label: Order',
    'labelPlural: Orders',
    'nameField:',
    '  label: Name',
    '  fieldType: text',
    'sharingDefault: private',
    'api:',
    '  published: true',
    'features:',
    '  history: true',
  ),
  'objects/Order__c/fields/Stage__c.yaml': yaml(
    'type: CustomField',
    'apiName: Stage__c',
    'object: Order__c',
    'label: Stage',
    'fieldType: picklist',
    'picklist:',
    '  restricted: true',
    '  values:',
    '    - value: new',
    '      label: New',
    '      default: true',
    '    - value: done',
    '      label: Done',
  ),
  'objects/Order__c/fields/Total__c.yaml': yaml(
    'type: CustomField',
    'apiName: Total__c',
    'object: Order__c',
    'label: Total',
    'fieldType: rollup',
    'rollup:',
    '  childObject: Line__c',
    '  referenceField: OrderId__c',
    '  function: sum',
    '  field: Price__c',
  ),
  'objects/Order__c/stateModels/Stages.yaml': yaml(
    'type: StateModel',
    'apiName: Stages',
    'object: Order__c',
    'field: Stage__c',
    'initial: new',
    'allowDirectEdit: false',
    'transitions:',
    '  - key: finish',
    '    label: Finish',
    '    from:',
    '      - new',
    '    to: done',
    '    risk: low',
    '    requiresComment: false',
    '    effects:',
    '      - verb: createRecord',
    '        object: Line__c',
    '        fields:',
    '          OrderId__c: record.id',
    '          Price__c: "1"',
    '          name: \'"made by the transition"\'',
  ),
  'objects/Line__c/object.yaml': yaml(
    'type: CustomObject',
    'apiName: Line__c',
    'label: Line',
    'labelPlural: Lines',
    'nameField:',
    '  label: Name',
    '  fieldType: text',
    'sharingDefault: controlledByParent',
    'api:',
    '  published: true',
  ),
  'objects/Line__c/fields/OrderId__c.yaml': yaml(
    'type: CustomField',
    'apiName: OrderId__c',
    'object: Line__c',
    'label: Order',
    'fieldType: masterDetail',
    'referenceTo:',
    '  - Order__c',
    'relationshipName: Lines__r',
    'onDelete: cascade',
  ),
  'objects/Line__c/fields/Price__c.yaml': yaml(
    'type: CustomField',
    'apiName: Price__c',
    'object: Line__c',
    'label: Price',
    'fieldType: decimal',
    'precision: 10',
    'scale: 2',
  ),
};

interface Answer {
  reverted: { objectApiName: string; id: string }[];
  skipped: { objectApiName: string | null; id: string | null; reason: string }[];
  remaining: number;
}

describe('permissions for reverting an agent run', () => {
  let world: World;
  let admin: Person;
  let overseer: Person;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
    ({ admin, reader: overseer } = world);
    await world.deploy(world.tenantId, { ...STATES, 'permissionSets/Overseer.yaml': OVERSEER });
    const { body } = await admin.get('User', overseer.userId);
    await admin.update(
      'User',
      overseer.userId,
      { permissionSetApiNames: ['Overseer'] },
      { etag: `"${body.recordVersion.toString(36)}"` },
    );
  });
  after(() => world?.stop());

  const revert = async (agentRunId: string, person = admin): Promise<Answer> => {
    await world.endRun(agentRunId);
    const reply = await person.send('agent.runs.revert', { runId: agentRunId });
    assert.equal(reply.status, 201, reply.text);
    return reply.body;
  };
  const company = async (body: object = {}): Promise<string> =>
    (await admin.create('Company__c', { name: 'Acme', ...body })).body.id;
  const reasons = ({ skipped }: Answer) => Object.fromEntries(skipped.map(({ id, reason }) => [id, reason]));

  it('limit the revert to editable fields of visible records', async () => {
    const agentRunId = randomUUID();
    const [note, amount, secret, both, gone] = [
      await company({ Note__c: 'before' }),
      await company(),
      await company({ Secret__c: randomUUID() }),
      await company({ Note__c: 'before' }),
      await company(),
    ];
    const change = (id: string, body: object) => admin.update('Company__c', id, body, { etag: '"1"', agentRunId });
    await change(note, { Note__c: 'after' });
    await change(amount, { Amount__c: 1 });
    await change(secret, { Secret__c: null });
    await change(both, { Note__c: 'after', Secret__c: 'x' });
    const created = (await admin.create('Company__c', { name: 'New' }, { agentRunId })).body.id;
    await admin.delete('Company__c', gone, { etag: '"1"', agentRunId });
    const answer = await revert(agentRunId, overseer);
    assert.deepEqual(answer.reverted, [{ objectApiName: 'Company__c', id: note }]);
    assert.deepEqual(reasons(answer), {
      [amount]: 'NOT_PERMITTED',
      [secret]: 'NOT_PERMITTED',
      [both]: 'NOT_PERMITTED',
      [created]: 'NOT_PERMITTED',
      [gone]: 'NOT_PERMITTED',
    });
    assert.equal((await admin.get('Company__c', note)).body.Note__c, 'before');
    assert.equal((await admin.get('Company__c', both)).body.Note__c, 'after');
    // Somebody who may do all of it finishes the work.
    const rest = await revert(agentRunId);
    assert.deepEqual([rest.reverted.length, rest.skipped], [6, []]);
  });

  it('hide invisible records in any state', async () => {
    const agentRunId = randomUUID();
    const id = await company({ Note__c: 'before' });
    const order = (await admin.create('Order__c', { name: 'Hidden' }, { agentRunId })).body.id;
    const changed = (await admin.create('Order__c', { name: 'Hidden' }, { agentRunId })).body.id;
    await admin.update('Order__c', changed, { name: 'Changed since' }, { etag: '"1"' });
    await admin.update('Company__c', id, { Note__c: 'after' }, { etag: '"1"', agentRunId });
    const answer = await revert(agentRunId, overseer);
    const unnamed = { objectApiName: null, id: null, reason: 'RECORD_NOT_FOUND' };
    assert.deepEqual(answer, {
      reverted: [{ objectApiName: 'Company__c', id }],
      skipped: [unnamed, unnamed],
      remaining: 0,
    });
    assert.equal((await admin.get('Order__c', order)).status, 200);
  });

  it('include validation rules and unique values', async () => {
    const agentRunId = randomUUID();
    const code = randomUUID();
    const [ruled, taken] = [await company({ Amount__c: 5 }), await company({ Code__c: code })];
    await admin.update('Company__c', ruled, { Amount__c: 500 }, { etag: '"1"', agentRunId });
    await admin.update('Company__c', taken, { Code__c: null }, { etag: '"1"', agentRunId });
    await company({ Code__c: code });
    await world.deploy(world.tenantId, rule('NotFive', 'record.Amount__c == 5'));
    const answer = await revert(agentRunId);
    assert.deepEqual(answer.reverted, []);
    assert.deepEqual(reasons(answer), { [ruled]: 'VALIDATION_FAILED', [taken]: 'UNIQUE_VALUE_CONFLICT' });
  });

  it('skip records with conflicting unique values until one is free', async () => {
    const agentRunId = randomUUID();
    const [one, two] = [randomUUID(), randomUUID()];
    const [first, second] = [await company({ Code__c: one }), await company({ Code__c: two })];
    const change = (id: string, version: number, Code__c: string) =>
      admin.update('Company__c', id, { Code__c }, { etag: `"${version}"`, agentRunId });
    await change(first, 1, 'between');
    await change(second, 1, one);
    await change(first, 2, two);
    const answer = await revert(agentRunId);
    // Each of them waits for the other: no order of whole records gets there.
    assert.deepEqual(reasons(answer), { [first]: 'UNIQUE_VALUE_CONFLICT', [second]: 'UNIQUE_VALUE_CONFLICT' });
    await admin.update('Company__c', first, { Code__c: null }, { etag: '"3"' });
    assert.deepEqual((await revert(agentRunId)).reverted, [{ objectApiName: 'Company__c', id: second }]);
  });

  it('exclude transitions; rollups follow their child records', async () => {
    const agentRunId = randomUUID();
    const order = (await admin.create('Order__c', { name: 'Plain' })).body.id;
    const line = (await admin.create('Line__c', { name: 'One', OrderId__c: order, Price__c: 10 })).body.id;
    const submitted = (await admin.create('Order__c', { name: 'Submitted' })).body.id;
    await admin.update('Line__c', line, { Price__c: 99 }, { etag: '"1"', agentRunId });
    const { recordVersion } = (await admin.get('Order__c', order)).body;
    await admin.update('Order__c', order, { name: 'Renamed' }, { etag: `"${recordVersion.toString(36)}"`, agentRunId });
    await admin.create('Line__c', { name: 'Two', OrderId__c: order, Price__c: 1 }, { agentRunId });
    await admin.send(
      'data.transitions.execute',
      { objectApiName: 'Order__c', id: submitted, transitionKey: 'finish' },
      {},
      {},
      {
        etag: '"1"',
        agentRunId,
      },
    );
    assert.equal((await admin.get('Order__c', order)).body.Total__c, 100);
    const answer = await revert(agentRunId);
    assert.equal(answer.reverted.length, 3);
    assert.deepEqual(answer.skipped.map(({ objectApiName, reason }) => `${objectApiName} ${reason}`).sort(), [
      'Line__c STATE_CHANGED',
      'Order__c STATE_CHANGED',
    ]);
    const { body } = await admin.get('Order__c', order);
    assert.deepEqual([body.name, body.Total__c], ['Plain', 10]);
    assert.equal((await admin.get('Order__c', submitted)).body.Stage__c, 'done');
    assert.deepEqual((await revert(agentRunId)).reverted.length, 3);
  });

  it('report changes of record access by the run', async () => {
    const agentRunId = randomUUID();
    const order = (await admin.create('Order__c', { name: 'Shared' })).body.id;
    await admin.send(
      'data.shares.create',
      { objectApiName: 'Order__c', id: order },
      {},
      { principalType: 'user', principalId: world.clerk.userId, access: 'read' },
      { agentRunId },
    );
    assert.deepEqual(await revert(agentRunId), {
      reverted: [],
      skipped: [{ objectApiName: 'Order__c', id: order, reason: 'SHARING_CHANGED' }],
      remaining: 0,
    });
  });

  it('restore permissions of users, under the rules for users', async () => {
    const agentRunId = randomUUID();
    const { body } = await admin.get('User', world.clerk.userId);
    await admin.update(
      'User',
      world.clerk.userId,
      { permissionSetApiNames: ['UserAdmin'], displayName: 'Renamed' },
      { etag: `"${body.recordVersion.toString(36)}"`, agentRunId },
    );
    assert.deepEqual(reasons(await revert(agentRunId, overseer)), { [world.clerk.userId]: 'NOT_PERMITTED' });
    assert.deepEqual((await revert(agentRunId)).reverted, [{ objectApiName: 'User', id: world.clerk.userId }]);
    const user = (await admin.get('User', world.clerk.userId)).body;
    assert.deepEqual([user.permissionSetApiNames ?? [], user.displayName], [[], 'clerk']);
  });

  it('skip deleted fields and objects', async () => {
    const agentRunId = randomUUID();
    const id = await company({ Note__c: 'before', Website__c: 'https://example.com' });
    await admin.update('Company__c', id, { Note__c: 'after', Website__c: null }, { etag: '"1"', agentRunId });
    await world.rows(
      `UPDATE $schema._audit SET changes = changes || '{"Gone__c": {"from": 1, "to": 2}}', object = object
        WHERE agent_run_id = $1`,
      [agentRunId],
    );
    await world.rows(
      `INSERT INTO $schema._audit (audit_id, user_id, client_id, agent_run_id, channel, operation_id, outcome, request_id,
          object, record_id, kind, record_version, changes)
        VALUES (gen_random_uuid(), $1, 'test', $2, 'api', 'data.records.update', 'committed', 'req_x', 'Gone__c',
          gen_random_uuid(), 'update', 2, '{}')`,
      [admin.userId, agentRunId],
    );
    assert.deepEqual(await revert(agentRunId), {
      reverted: [{ objectApiName: 'Company__c', id }],
      skipped: [{ objectApiName: null, id: null, reason: 'RECORD_NOT_FOUND' }],
      remaining: 0,
    });
  });
});
