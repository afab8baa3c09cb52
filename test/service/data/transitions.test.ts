import assert from 'node:assert/strict';
import { call } from '../../../services/contracts.ts';
import { codes, createWorld, FILES, type Person, refusal, type World } from './world.ts';

const MODEL = `type: StateModel
apiName: Lifecycle
object: Task__c
field: Stage__c
initial: new
allowDirectEdit: false
transitions:
  - key: start
    label: Start
    description: Work begins.
    from:
      - new
      - held
    to: going
    guard: record.Effort__c > 0 && record.Effort__c == old.Effort__c && !isChanged(record.Effort__c)
    guardMessage: Say how much work it is.
    risk: low
    requiresComment: false
  - key: finish
    label: Finish
    from:
      - going
    to: done
    guard: 100 / record.Effort__c < 1000 && record.Hidden__c != "stop"
    permission: Task__c.finish
    risk: medium
    requiresComment: true
    input:
      properties:
        day:
          format: date
          type: string
        note:
          maxLength: 20
          type: string
        rate:
          exclusiveMinimum: 0
          type: number
      required:
        - rate
      type: object
    effects:
      - verb: updateFields
        fields:
          ClosedOn__c: coalesce(input.day, today)
          Hidden__c: '"by " + user.username'
          Price__c: record.Effort__c * input.rate
      - verb: createRecord
        object: Entry__c
        fields:
          TaskId__c: record.id
          Text__c: coalesce(input.note, record.name)
          name: record.name + " is done"
      - verb: emitEvent
        type: taskDone
        data:
          effort: record.Effort__c
          rate: input.rate
          when: now
      - verb: sendNotification
        type: TaskDone
        to: owner
  - key: hold
    label: Hold
    from:
      - new
      - going
    to: held
    risk: medium
    requiresComment: false
`;

const ACTION = `type: CustomAction
apiName: Nudge
object: Task__c
label: Nudge
risk: low
requiresComment: false
effects:
  - verb: updateFields
    fields:
      Nudges__c: coalesce(record.Nudges__c, 0) + 1
`;

const object = (apiName: string, sharing: string): string =>
  `type: CustomObject\napiName: ${apiName}\nlabel: ${apiName}\nlabelPlural: ${apiName}s\nnameField:\n  label: Name\n  fieldType: text\nsharingDefault: ${sharing}\napi:\n  published: true\nfeatures:\n  history: true\n  search: true\n  events: true\n`;
const field = (of: string, apiName: string, yaml: string): Record<string, string> => ({
  [`objects/${of}/fields/${apiName}.yaml`]: `type: CustomField\napiName: ${apiName}\nobject: ${of}\nlabel: ${apiName}\n${yaml}\n`,
});

const STAGES = ['new', 'going', 'held', 'done']
  .map((value) => `    - value: ${value}\n      label: ${value}`)
  .join('\n');

const rights = (name: string, keys: string[]): string =>
  `  ${name}:\n${['create', 'read', 'update', 'delete', 'viewAll', 'modifyAll'].map((key) => `    ${key}: ${keys.includes(key)}\n`).join('')}`;
const fieldRights = (given: Record<string, boolean>): string =>
  Object.entries(given)
    .map(([name, edit]) => `  ${name}:\n    read: true\n    edit: ${edit}\n`)
    .join('');

const TASK_FIELDS = { Stage__c: true, Effort__c: true, ClosedOn__c: true, Price__c: true, Nudges__c: false };
const task = (names: Record<string, boolean>) =>
  Object.fromEntries(Object.entries(names).map(([name, edit]) => [`Task__c.${name}`, edit]));

/** Everything that the tests are about, beside the objects of the world. */
const PROJECT: Record<string, string> = {
  'objects/Task__c/object.yaml': object('Task__c', 'read'),
  ...field(
    'Task__c',
    'Stage__c',
    `fieldType: picklist\npicklist:\n  restricted: true\n  values:\n${STAGES.replace('label: held', 'label: held\n      default: true')}`,
  ),
  ...field('Task__c', 'Effort__c', 'fieldType: decimal\nprecision: 10\nscale: 2'),
  ...field('Task__c', 'ClosedOn__c', 'fieldType: date'),
  ...field('Task__c', 'Price__c', 'fieldType: currency\nprecision: 10\nscale: 2'),
  ...field('Task__c', 'Nudges__c', 'fieldType: integer'),
  ...field('Task__c', 'Hidden__c', 'fieldType: text\nlength: 60'),
  'objects/Task__c/stateModels/Lifecycle.yaml': MODEL,
  'objects/Task__c/actions/Nudge.yaml': ACTION,
  'objects/Task__c/validationRules/Cheap.yaml':
    'type: ValidationRule\napiName: Cheap\nobject: Task__c\nactive: true\ncondition: record.Price__c > 1000\nerrorField: Price__c\nmessage: Too dear.\n',
  'objects/Entry__c/object.yaml': object('Entry__c', 'private'),
  ...field(
    'Entry__c',
    'TaskId__c',
    'fieldType: reference\nreferenceTo:\n  - Task__c\nrelationshipName: Entries__r\nonDelete: cascade',
  ),
  ...field('Entry__c', 'Text__c', 'fieldType: text\nlength: 20'),
  'profiles/Worker.yaml': `type: Profile\napiName: Worker\nlabel: Worker\nsystem:\n  - apiEnabled\nobjects:\n${rights('Entry__c', ['create', 'read'])}${rights('Task__c', ['create', 'read', 'update'])}fields:\n${fieldRights({ 'Entry__c.TaskId__c': true, 'Entry__c.Text__c': true, ...task(TASK_FIELDS) })}actions:\n  - Task__c.Nudge\n  - Task__c.finish\n`,
  'profiles/Watcher.yaml': `type: Profile\napiName: Watcher\nlabel: Watcher\nsystem:\n  - apiEnabled\nobjects:\n${rights('Task__c', ['read'])}fields:\n${fieldRights(task({ Stage__c: false }))}`,
  'profiles/Blind.yaml': `type: Profile\napiName: Blind\nlabel: Blind\nsystem:\n  - apiEnabled\nobjects:\n${rights('Task__c', ['create', 'read', 'update'])}actions:\n  - Task__c.Nudge\n`,
};

async function taskWorld(): Promise<{ world: World; people: Record<string, Person> }> {
  const world = await createWorld();
  await world.deploy(world.tenantId, { ...FILES, ...PROJECT });
  const names = ['worker', 'mate', 'watcher', 'blind'];
  const profiles: Record<string, string> = { worker: 'Worker', mate: 'Worker', watcher: 'Watcher', blind: 'Blind' };
  const { userIds } = await call(world.platform.broker, 'data.users.provision', {
    tenantId: world.tenantId,
    users: names.map((name) => ({
      username: `${name}@one.example`,
      email: `${name}@one.example`,
      displayName: name,
      profileApiName: profiles[name]!,
      password: 'a long password',
    })),
  });
  const people = Object.fromEntries(
    names.map((name) => [name, world.person(world.tenantId, userIds[`${name}@one.example`]!)]),
  );
  return { world, people };
}

describe('state models: the state of a record', () => {
  let world: World;
  let people: Record<string, Person>;
  before(async function () {
    this.timeout(60_000);
    ({ world, people } = await taskWorld());
  });
  after(() => world?.stop());

  it('begins as the model says, whatever the default of the picklist', async () => {
    const { worker } = people as { worker: Person };
    assert.equal((await worker.create('Task__c', { name: 'one' })).body.Stage__c, 'new');
    assert.equal((await worker.create('Task__c', { name: 'one', Stage__c: 'new' })).body.Stage__c, 'new');
    for (const value of ['going', 'held', 'nothing', null, 7])
      assert.deepEqual(codes(await refusal(worker.create('Task__c', { name: 'one', Stage__c: value }))), [
        '/Stage__c FIELD_READ_ONLY',
      ]);
  });

  it('is changed by transitions only, and describe says so', async () => {
    const { worker, blind } = people as Record<'worker' | 'blind', Person>;
    const { body, headers } = await worker.create('Task__c', { name: 'two' });
    for (const value of ['going', 'new', null])
      assert.deepEqual(
        codes(await refusal(worker.update('Task__c', body.id, { Stage__c: value }, { etag: headers['ETag']! }))),
        ['/Stage__c FIELD_READ_ONLY'],
      );
    const described = await worker.send('schema.objects.describe', { objectApiName: 'Task__c' });
    assert.equal(described.body.stateModel, 'Lifecycle');
    const stage = described.body.fields.find((item: { apiName: string }) => item.apiName === 'Stage__c');
    assert.deepEqual(
      [stage.stateField, stage.creatable, stage.updateable, stage.defaultValue, stage.defaultedOnCreate],
      [true, true, false, 'new', true],
    );
    const schema = await worker.send('schema.objects.getSchema', { objectApiName: 'Task__c' });
    assert.equal(Object.hasOwn(schema.body.$defs.update.properties, 'Stage__c'), false);
    assert.equal(Object.hasOwn(schema.body.$defs.create.properties, 'Stage__c'), true);
    const blindly = await blind.send('schema.objects.describe', { objectApiName: 'Task__c' });
    assert.equal(blindly.body.stateModel, null);
    const own = await blind.create('Task__c', { name: 'seen by touch' });
    const [row] = await world.rows(`SELECT "Stage__c" FROM $schema."Task__c" WHERE "id" = $1`, [own.body.id]);
    assert.deepEqual([own.body.Stage__c, row!['Stage__c']], [undefined, 'new']);
    const touched = blind.update('Task__c', own.body.id, { Stage__c: 'going' }, { etag: '"1"' });
    assert.deepEqual(codes(await refusal(touched)), ['/Stage__c FIELD_UNKNOWN']);
  });

  it('lists what can be done and why the rest cannot', async () => {
    const { worker, watcher, blind, mate } = people as Record<string, Person>;
    const { body } = await worker!.create('Task__c', { name: 'three' });
    const list = async (person: Person, options = {}) =>
      await person.send('data.transitions.list', { objectApiName: 'Task__c', id: body.id }, {}, undefined, options);
    const seen = await list(worker!);
    assert.equal(seen.headers['ETag'], '"1"');
    const { records, ...rest } = seen.body;
    assert.deepEqual(rest, { nextCursor: null, currentState: 'new', etag: '"1"' });
    assert.deepEqual(
      records.map((item: { transitionKey: string; available: boolean }) => [item.transitionKey, item.available]),
      [
        ['start', false],
        ['finish', false],
        ['hold', true],
        ['Nudge', true],
      ],
    );
    assert.deepEqual(records[0], {
      transitionKey: 'start',
      label: 'Start',
      description: 'Work begins.',
      fromState: 'new',
      toState: 'going',
      kind: 'transition',
      available: false,
      unavailableReasons: [{ code: 'GUARD_NOT_MET', message: 'Say how much work it is.' }],
      risk: 'low',
      requiresComment: false,
      requiresApproval: false,
      input: null,
    });
    assert.deepEqual(
      [records[1].fromState, records[1].toState, records[1].unavailableReasons, records[1].input.additionalProperties],
      [null, 'done', [{ code: 'STATE_CONFLICT', message: 'It starts from going.' }], false],
    );
    assert.deepEqual([records[3].fromState, records[3].toState, records[3].kind], ['new', 'new', 'action']);
    const reasons = async (person: Person, options = {}) =>
      Object.fromEntries(
        (await list(person, options)).body.records.map(
          (item: { transitionKey: string; unavailableReasons: { code: string }[] }) => [
            item.transitionKey,
            item.unavailableReasons.map((reason) => reason.code).join(' '),
          ],
        ),
      );
    assert.deepEqual(await reasons(mate!), {
      start: 'RECORD_ACCESS_DENIED GUARD_NOT_MET',
      finish: 'RECORD_ACCESS_DENIED STATE_CONFLICT',
      hold: 'RECORD_ACCESS_DENIED',
      Nudge: 'RECORD_ACCESS_DENIED',
    });
    assert.deepEqual(await reasons(watcher!, { scopes: ['actions:read'] }), {
      start: 'SCOPE_INSUFFICIENT OBJECT_PERMISSION_DENIED RECORD_ACCESS_DENIED GUARD_NOT_MET',
      finish: 'SCOPE_INSUFFICIENT OBJECT_PERMISSION_DENIED RECORD_ACCESS_DENIED TRANSITION_NOT_ALLOWED STATE_CONFLICT',
      hold: 'SCOPE_INSUFFICIENT OBJECT_PERMISSION_DENIED RECORD_ACCESS_DENIED',
      Nudge: 'SCOPE_INSUFFICIENT OBJECT_PERMISSION_DENIED RECORD_ACCESS_DENIED TRANSITION_NOT_ALLOWED',
    });
    assert.deepEqual(await reasons(blind!), { Nudge: 'RECORD_ACCESS_DENIED' });
    assert.equal((await list(blind!)).body.currentState, null);
    // Who may change everything still needs the permission for an act by its name.
    assert.deepEqual((await reasons(world.admin))['Nudge'], 'TRANSITION_NOT_ALLOWED');
  });

  it('that is none of the model has no way out, and says from where there would be one', async () => {
    const { worker } = people as { worker: Person };
    const { body } = await worker.create('Task__c', { name: 'four', Effort__c: 1 });
    for (const stage of ['NULL', "'lost'"]) {
      await world.rows(`UPDATE $schema."Task__c" SET "Stage__c" = ${stage} WHERE "id" = $1`, [body.id]);
      const seen = await worker.send('data.transitions.list', { objectApiName: 'Task__c', id: body.id });
      assert.equal(seen.body.currentState, stage === 'NULL' ? null : 'lost');
      assert.deepEqual(
        seen.body.records.map(
          (item: { unavailableReasons: { message: string }[] }) => item.unavailableReasons[0]?.message,
        ),
        ['It starts from new or held.', 'It starts from going.', 'It starts from new or going.', undefined],
      );
    }
  });
});
