import assert from 'node:assert/strict';
import { call } from '../../../contracts/call.ts';
import { type CallOptions, codes, createWorld, FILES, type Person, type Reply, refusal, type World } from './world.ts';

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
    guard: record.Share__c < 1000 && record.Hidden__c != "stop"
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
          share: record.Share__c
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
  ...field(
    'Task__c',
    'Share__c',
    'fieldType: formula\nformula:\n  expression: 100 / record.Effort__c\n  resultType: decimal\nprecision: 18\nscale: 2',
  ),
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

  it('starts with the initial state, overriding the picklist default', async () => {
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
    assert.deepEqual(schema.body.$defs.create.properties.Stage__c.enum, ['new']);
    const blindly = await blind.send('schema.objects.describe', { objectApiName: 'Task__c' });
    assert.equal(blindly.body.stateModel, null);
    const own = await blind.create('Task__c', { name: 'seen by touch' });
    const [row] = await world.rows(`SELECT "Stage__c" FROM $schema."Task__c" WHERE "id" = $1`, [own.body.id]);
    assert.deepEqual([own.body.Stage__c, row!['Stage__c']], [undefined, 'new']);
    const touched = blind.update('Task__c', own.body.id, { Stage__c: 'going' }, { etag: '"1"' });
    assert.deepEqual(codes(await refusal(touched)), ['/Stage__c FIELD_UNKNOWN']);
  });

  it('lists available transitions, and the reason for others', async () => {
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
      ['going', 'done', [{ code: 'STATE_CONFLICT', message: 'It can only be executed in the state going.' }], false],
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
      finish:
        'SCOPE_INSUFFICIENT OBJECT_PERMISSION_DENIED TRANSITION_NOT_ALLOWED TRANSITION_NOT_ALLOWED RECORD_ACCESS_DENIED STATE_CONFLICT',
      hold: 'SCOPE_INSUFFICIENT OBJECT_PERMISSION_DENIED RECORD_ACCESS_DENIED',
      Nudge: 'SCOPE_INSUFFICIENT OBJECT_PERMISSION_DENIED TRANSITION_NOT_ALLOWED RECORD_ACCESS_DENIED',
    });
    assert.deepEqual(await reasons(blind!), { Nudge: 'RECORD_ACCESS_DENIED' });
    assert.equal((await list(blind!)).body.currentState, null);
    // modifyAllData does not replace the named permission of an action.
    assert.deepEqual((await reasons(world.admin))['Nudge'], 'TRANSITION_NOT_ALLOWED');
  });

  it('outside the model has no transition, and lists the states that have', async () => {
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
        [
          'It can only be executed in the state new or held.',
          'It can only be executed in the state going.',
          'It can only be executed in the state new or going.',
          undefined,
        ],
      );
    }
  });
});

describe('transitions: executing them', () => {
  let world: World;
  let worker: Person;
  let mate: Person;
  let watcher: Person;
  let blind: Person;
  before(async function () {
    this.timeout(60_000);
    const made = await taskWorld();
    world = made.world;
    ({ worker, mate, watcher, blind } = made.people as Record<'worker' | 'mate' | 'watcher' | 'blind', Person>);
  });
  after(() => world?.stop());

  const task = async (more: object = {}): Promise<string> =>
    (await worker.create('Task__c', { name: 'task', Effort__c: '2.50', ...more })).body.id;
  const act = (
    id: string,
    transitionKey: string,
    body: object | undefined = {},
    options: CallOptions = {},
    person: Person = worker,
  ): Promise<Reply> =>
    person.send('data.transitions.execute', { objectApiName: 'Task__c', id, transitionKey }, {}, body, {
      etag: '"1"',
      ...options,
    });
  const version = async (id: string): Promise<number> =>
    (await world.rows('SELECT "recordVersion" AS v FROM $schema."Task__c" WHERE "id" = $1', [id]))[0]!['v'];
  const count = async (table: string): Promise<number> =>
    (await world.rows(`SELECT count(*)::int AS n FROM $schema.${table}`))[0]!['n'];

  it('move the state, answer the record and leave history, audit and event', async () => {
    const id = await task();
    const reply = await act(id, 'start', { comment: 'Let us go.' });
    assert.equal(reply.status, 201);
    assert.equal(reply.headers['ETag'], '"2"');
    const { executionId, executedAt, record, ...rest } = reply.body;
    assert.deepEqual(rest, { transitionKey: 'start', fromState: 'new', toState: 'going', sideEffects: [] });
    assert.match(executionId, /^[0-9a-f-]{36}$/);
    assert.equal(record.Stage__c, 'going');
    assert.equal(record.recordVersion, 2);
    assert.equal(record.updatedAt, executedAt);
    const entry = { executionId, key: 'start', fromState: 'new', toState: 'going', comment: 'Let us go.' };
    const changes = { Stage__c: { from: 'new', to: 'going' }, '@transition': entry };
    const [history] = await world.rows(
      `SELECT operation, changes, record_version FROM $schema._history WHERE record_id = $1 AND record_version = 2`,
      [id],
    );
    assert.deepEqual(history, { operation: 'transition', changes, record_version: 2 });
    const scopes = ['audit:read', 'data:read'] as const;
    const list = (person: Person) =>
      person.send('data.history.list', { objectApiName: 'Task__c', id }, {}, undefined, { scopes });
    const [shown] = (await list(worker)).body.records;
    assert.deepEqual(
      [shown.operation, shown.changes, shown.transition],
      ['transition', [{ field: 'Stage__c', from: 'new', to: 'going' }], entry],
    );
    assert.equal(JSON.stringify((await list(blind)).body).includes('going'), false);
    const [audit] = await world.rows(
      `SELECT operation_id, outcome, kind, changes FROM $schema._audit WHERE record_id = $1 AND record_version = 2`,
      [id],
    );
    assert.deepEqual(audit, {
      operation_id: 'data.transitions.execute',
      outcome: 'committed',
      kind: 'transition',
      changes,
    });
    const [event] = await world.rows(
      `SELECT type, record_version, data FROM $schema._outbox WHERE record_id = $1 AND record_version = 2`,
      [id],
    );
    assert.equal(event!['type'], 'data.record.transitioned');
    assert.deepEqual(event!['data'].transition, { key: 'start', fromState: 'new', toState: 'going' });
  });

  it('execute all effects in one transaction', async () => {
    const id = await task();
    await act(id, 'start');
    const body = { input: { rate: 10.5, day: '2026-03-04', note: 'well done' }, comment: 'Finished.' };
    const reply = await act(id, 'finish', body, { etag: '"2"' });
    const { record, sideEffects } = reply.body;
    assert.deepEqual(
      [record.Stage__c, record.ClosedOn__c, record.Price__c, record.Hidden__c, record.recordVersion],
      ['done', '2026-03-04', 26.25, undefined, 3],
    );
    assert.deepEqual(
      sideEffects.map((item: { kind: string; objectApiName: string }) => `${item.kind} ${item.objectApiName}`),
      ['create Entry__c', 'event Task__c', 'notification Task__c'],
    );
    const [row] = await world.rows(`SELECT "Hidden__c" AS h FROM $schema."Task__c" WHERE "id" = $1`, [id]);
    assert.equal(row!['h'], 'by worker@one.example');
    const entry = await worker.get('Entry__c', sideEffects[0].id);
    assert.deepEqual(
      [entry.body.name, entry.body.Text__c, entry.body.TaskId__c, entry.body.ownerId],
      ['task is done', 'well done', id, worker.userId],
    );
    const told = await world.rows(
      `SELECT type, object, record_id, data - 'transactionId' AS data FROM $schema._outbox WHERE request_id = (SELECT request_id FROM $schema._history WHERE record_id = $1 AND record_version = 3) ORDER BY type`,
      [id],
    );
    assert.deepEqual(
      told.map((item) => item['type']),
      ['custom.taskDone', 'data.record.created', 'data.record.transitioned', 'notifications.notification.requested'],
    );
    const { effort, rate, share } = told[0]!['data'].data;
    assert.deepEqual([effort, rate, share], [2.5, 10.5, 40]);
    assert.deepEqual(told[3]!['data'].recipientIds, [worker.userId]);
    assert.deepEqual(
      told.slice(1, 3).map((item) => [item['data'].transactionIndex, item['data'].transactionSize]),
      [
        [1, 2],
        [0, 2],
      ],
    );
  });

  it('fail as a whole when a part fails, with pointers to sent values only', async () => {
    const id = await task();
    await act(id, 'start');
    const before = [await count('"Entry__c"'), await count('_outbox'), await count('_history')];
    const finish = (input: object, person = worker) =>
      act(id, 'finish', { input, comment: 'x' }, { etag: '"2"' }, person);
    const dear = await refusal(finish({ rate: 500 }));
    assert.equal(dear.code, 'VALIDATION_FAILED');
    assert.deepEqual(
      dear.errors!.map(({ pointer, field, code, ruleApiName }) => [pointer, field, code, ruleApiName]),
      [['', 'Price__c', 'VALIDATION_RULE', 'Task__c.Cheap']],
    );
    const precise = await refusal(finish({ rate: 1.001 }));
    assert.deepEqual(
      precise.errors!.map(({ pointer, field, code }) => [pointer, field, code]),
      [['', 'Price__c', 'FIELD_OUT_OF_RANGE']],
    );
    // The name of the task is too long for the text of the entry.
    const [other] = [await task({ name: 'a task with a rather long name' })];
    await act(other, 'start');
    const long = await refusal(act(other, 'finish', { input: { rate: 1 }, comment: 'x' }, { etag: '"2"' }));
    assert.deepEqual(
      long.errors!.map(({ pointer, field, code, params }) => [pointer, field, code, params['objectApiName']]),
      [['', 'Text__c', 'FIELD_TOO_LONG', 'Entry__c']],
    );
    assert.deepEqual([await count('"Entry__c"'), await version(id), await version(other)], [before[0], 2, 2]);
    const stage = await worker.get('Task__c', id);
    assert.equal(stage.body.Stage__c, 'going');
  });

  it('accept a valid input, require a comment where configured, and report all problems', async () => {
    const id = await task();
    await act(id, 'start');
    const wrong = await refusal(
      act(id, 'finish', { input: { day: 'soon', note: 'x'.repeat(21), rate: 0, more: 1, 'a/b': 2 } }, { etag: '"2"' }),
    );
    assert.equal(wrong.code, 'TRANSITION_INPUT_INVALID');
    assert.deepEqual(codes(wrong), [
      '/comment FIELD_REQUIRED',
      '/input/a~1b FIELD_UNKNOWN',
      '/input/day FIELD_FORMAT_INVALID',
      '/input/more FIELD_UNKNOWN',
      '/input/note FIELD_TOO_LONG',
      '/input/rate FIELD_OUT_OF_RANGE',
    ]);
    assert.deepEqual(codes(await refusal(act(id, 'finish', undefined, { etag: '"2"' }))), [
      '/comment FIELD_REQUIRED',
      '/input/rate FIELD_REQUIRED',
    ]);
    assert.deepEqual(codes(await refusal(act(id, 'hold', { input: { a: 1 } }, { etag: '"2"' }))), [
      '/input/a FIELD_UNKNOWN',
    ]);
    assert.equal((await act(id, 'hold', undefined, { etag: '"2"' })).status, 201);
  });

  it('are refused with the first failing check, in order', async () => {
    const id = await task();
    const code = async (promise: Promise<unknown>) => {
      const { code: name, details } = await refusal(promise);
      return [name, details?.['layer']].filter((part) => part !== undefined).join(' ');
    };
    assert.equal(await code(act('0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b24', 'nothing')), 'RECORD_NOT_FOUND');
    assert.equal(await code(act(id, 'nothing')), 'TRANSITION_NOT_FOUND');
    assert.equal(await code(act(id, 'constructor')), 'TRANSITION_NOT_FOUND');
    assert.equal(await code(act(id, 'start', {}, {}, blind)), 'TRANSITION_NOT_FOUND');
    assert.equal(await code(act(id, 'Nudge', {}, {}, blind)), 'RECORD_ACCESS_DENIED sharing');
    assert.equal(
      await code(act(id, 'finish', {}, { etag: '"9"' }, watcher)),
      'OBJECT_PERMISSION_DENIED objectPermission',
    );
    assert.equal(await code(act(id, 'finish', {}, { etag: '"9"' }, mate)), 'RECORD_ACCESS_DENIED sharing');
    assert.equal(
      await code(act(id, 'finish', {}, { etag: '"9"' }, world.admin)),
      'TRANSITION_NOT_ALLOWED objectPermission',
    );
    assert.equal(await code(act(id, 'finish', {}, { etag: '"9"' })), 'ETAG_MISMATCH');
    assert.equal(await code(act(id, 'finish', {})), 'TRANSITION_INPUT_INVALID');
    assert.equal(await code(act(id, 'finish', { input: { rate: 1 }, comment: 'x' })), 'STATE_CONFLICT');
    assert.equal(
      await code(
        world.stranger.send(
          'data.transitions.execute',
          { objectApiName: 'Company__c', id, transitionKey: 'start' },
          {},
          {},
          { etag: '"1"' },
        ),
      ),
      'RECORD_NOT_FOUND',
    );
    const conflict = await refusal(act(id, 'finish', { input: { rate: 1 }, comment: 'x' }));
    assert.deepEqual(
      [conflict.details, conflict.message],
      [
        { currentState: 'new', allowed: ['start', 'hold', 'Nudge'], reason: 'state' },
        'It can only be executed in the state going.',
      ],
    );
    const idle = await task({ Effort__c: 0 });
    const guarded = await refusal(act(idle, 'start'));
    assert.deepEqual(
      [guarded.details, guarded.message],
      [{ currentState: 'new', allowed: ['hold', 'Nudge'], reason: 'guard' }, 'Say how much work it is.'],
    );
    // A guard that divides by zero does not hold; one over a hidden field tells only that it does not.
    await world.rows(`UPDATE $schema."Task__c" SET "Stage__c" = 'going' WHERE "id" = ANY($1)`, [[idle, id]]);
    const finish = { input: { rate: 1 }, comment: 'x' };
    const undecided = await refusal(act(idle, 'finish', finish));
    assert.deepEqual([undecided.code, undecided.message], ['STATE_CONFLICT', 'The condition for “Finish” is not met.']);
    await world.rows(`UPDATE $schema."Task__c" SET "Hidden__c" = 'stop' WHERE "id" = $1`, [id]);
    assert.equal((await refusal(act(id, 'finish', finish))).message, undecided.message);
    assert.deepEqual([await version(id), await version(idle)], [1, 1]);
  });

  it('set fields that the caller could not, and change the version even when no field does', async () => {
    const id = await task();
    const reply = await act(id, 'Nudge');
    const { record, fromState, toState } = reply.body;
    assert.deepEqual([record.Nudges__c, fromState, toState, reply.headers['ETag']], [1, 'new', 'new', '"2"']);
    assert.deepEqual((await refusal(act(id, 'Nudge'))).code, 'ETAG_MISMATCH');
    assert.equal((await act(id, 'Nudge', {}, { etag: '"2"' })).body.record.Nudges__c, 2);
    const own = (await blind.create('Task__c', { name: 'own' })).body.id;
    const blindly = await act(own, 'Nudge', {}, {}, blind);
    assert.deepEqual(
      [blindly.body.fromState, blindly.body.toState, blindly.body.record.Nudges__c],
      [null, null, undefined],
    );
  });

  it('require create permission on object and fields of created records', async () => {
    const id = await task();
    await act(id, 'start');
    const finish = { input: { rate: 1 }, comment: 'x' };
    const narrower = PROJECT['profiles/Worker.yaml']!;
    for (const [from, to, layer] of [
      ['Entry__c:\n    create: true', 'Entry__c:\n    create: false', 'OBJECT_PERMISSION_DENIED objectPermission'],
      [
        'Entry__c:\n    create: true\n    read: true',
        'Entry__c:\n    create: false\n    read: false',
        'TRANSITION_NOT_ALLOWED objectPermission',
      ],
      [
        'Entry__c.Text__c:\n    read: true\n    edit: true',
        'Entry__c.Text__c:\n    read: false\n    edit: false',
        'TRANSITION_NOT_ALLOWED fieldPermission',
      ],
      [
        'Entry__c.Text__c:\n    read: true\n    edit: true',
        'Entry__c.Text__c:\n    read: true\n    edit: false',
        'TRANSITION_NOT_ALLOWED fieldPermission',
      ],
    ] as const) {
      assert(narrower.includes(from));
      await world.deploy(world.tenantId, { 'profiles/Worker.yaml': narrower.replace(from, to) });
      const error = await refusal(act(id, 'finish', finish, { etag: '"2"' }));
      assert.equal(`${error.code} ${error.details?.['layer']}`, layer);
      assert.equal(JSON.stringify(error.errors ?? []).includes('Text__c'), false);
    }
    await world.deploy(world.tenantId, { 'profiles/Worker.yaml': narrower });
    assert.equal((await act(id, 'finish', finish, { etag: '"2"' })).status, 201);
  });

  it('execute once per key, and replay the outcome even when the transition was removed', async () => {
    const id = await task();
    const first = await act(id, 'start', {}, { key: 'start-just-once' });
    const again = await act(id, 'start', {}, { key: 'start-just-once' });
    assert.deepEqual([again.status, again.text, again.headers['Idempotency-Replayed']], [201, first.text, 'true']);
    assert.equal(await version(id), 2);
    const other = await refusal(act(id, 'hold', {}, { key: 'start-just-once', etag: '"2"' }));
    assert.equal(other.code, 'IDEMPOTENCY_KEY_REUSED');
    await world.deploy(world.tenantId, {
      'objects/Task__c/stateModels/Lifecycle.yaml': MODEL.replace('key: start', 'key: begin'),
    });
    assert.equal((await refusal(act(id, 'start', {}, { etag: '"2"' }))).code, 'TRANSITION_NOT_FOUND');
    assert.equal((await act(id, 'start', {}, { key: 'start-just-once' })).text, first.text);
    await world.deploy(world.tenantId, { 'objects/Task__c/stateModels/Lifecycle.yaml': MODEL });
  });

  it('succeed for one of several concurrent requests; others get a version conflict', async () => {
    for (let round = 0; round < 5; round++) {
      const id = await task();
      const outcomes = await Promise.all(
        ['start', 'hold', 'Nudge', 'start', 'hold', 'Nudge', 'start', 'hold'].map((key) =>
          act(id, key).then(
            (reply) => `${reply.status}`,
            (error: { code: string }) => error.code,
          ),
        ),
      );
      assert.deepEqual(outcomes.toSorted(), ['201', ...Array.from({ length: 7 }, () => 'ETAG_MISMATCH')]);
      assert.equal(await version(id), 2);
    }
  });

  it('support a dry run with verdict and effects, without a change', async () => {
    const id = await task();
    await act(id, 'start');
    const before = [await count('"Entry__c"'), await count('_outbox'), await count('_history')];
    const check = { operation: 'transition', id, ifMatch: '"2"' };
    const finish = { ...check, transitionKey: 'finish', input: { rate: 2 }, comment: 'x' };
    const tried = await worker.check('Task__c', finish);
    assert.equal(tried.status, 200);
    assert.deepEqual([tried.body.valid, tried.body.record.Stage__c, tried.body.record.Price__c], [true, 'done', 5]);
    assert.deepEqual(
      tried.body.effects.map((item: { kind: string; objectApiName: string }) => `${item.kind} ${item.objectApiName}`),
      [
        'create Entry__c',
        'event Entry__c',
        'transition Task__c',
        'event Task__c',
        'event Task__c',
        'notification Task__c',
      ],
    );
    assert.deepEqual([await count('"Entry__c"'), await count('_outbox'), await count('_history')], before);
    const refused = await worker.check('Task__c', { ...check, transitionKey: 'start' });
    assert.deepEqual([refused.body.valid, refused.body.errors[0].code], [false, 'STATE_CONFLICT']);
  });

  it('report duplicates of changed and created records until all are confirmed', async () => {
    const rule = (of: string, name: string, on: string): Record<string, string> => ({
      [`objects/${of}/duplicateRules/${name}.yaml`]: `type: DuplicateRule\napiName: ${name}\nobject: ${of}\nmatch:\n  - field: ${on}\n`,
    });
    const watched = (file: string): Record<string, string> => ({
      [file]: PROJECT[file]!.replace('search: true\n', 'search: true\n  duplicates: true\n'),
    });
    await world.deploy(world.tenantId, {
      ...watched('objects/Task__c/object.yaml'),
      ...watched('objects/Entry__c/object.yaml'),
      ...rule('Task__c', 'SamePrice', 'Price__c'),
      ...rule('Entry__c', 'SameText', 'Text__c'),
    });
    const body = { input: { rate: 77.5, note: 'twin' }, comment: 'x' };
    const [first, second] = [await task(), await task()];
    for (const id of [first, second]) await act(id, 'start');
    const entry = (await act(first, 'finish', body, { etag: '"2"' })).body.sideEffects[0].id;
    const counts = () => Promise.all(['"Entry__c"', '_outbox', '_history', '_confirmations'].map(count));
    const before = await counts();
    const found = async (options: CallOptions): Promise<[shown: unknown, token: string]> => {
      const { code, details } = await refusal(act(second, 'finish', body, { etag: '"2"', ...options }));
      assert.equal(code, 'DUPLICATE_RULE');
      const { rules, confirmationToken } = details as { rules: Reply['body'][]; confirmationToken: string };
      return [rules.map((fired) => [fired.ruleApiName, fired.matches[0].id]), confirmationToken];
    };
    const [own, token] = await found({ key: 'finish-twin-1' });
    assert.deepEqual(own, [['Task__c.SamePrice', first]]);
    const [made, both] = await found({ key: 'finish-twin-2', confirmation: token });
    assert.deepEqual(made, [['Entry__c.SameText', entry]]);
    assert.deepEqual((await found({ confirmation: token }))[0], made, 'the first token is good as long as it lives');
    const wrong = async (id: string, given: object, person = worker): Promise<void> => {
      const options = { etag: '"2"', confirmation: both };
      assert.equal((await refusal(act(id, 'finish', given, options, person))).code, 'CONFIRMATION_TOKEN_INVALID');
    };
    await wrong(second, { ...body, comment: 'y' });
    await wrong(second, { ...body, input: { ...body.input, rate: 77 } });
    const third = await task();
    await act(third, 'start');
    await wrong(third, body);
    assert.deepEqual(
      (await refusal(act(second, 'hold', {}, { etag: '"2"', confirmation: both }))).code,
      'CONFIRMATION_TOKEN_INVALID',
    );
    assert.deepEqual([await version(second), await count('"Entry__c"')], [2, before[0]]);
    const stored = await act(second, 'finish', body, { etag: '"2"', confirmation: both, key: 'finish-twin-3' });
    assert.equal(stored.status, 201);
    assert.equal(await count('_confirmations'), before[3]! + 1);
    const audit = await world.rows(
      `SELECT record_id, changes FROM $schema._audit WHERE code = 'DUPLICATE_RULE' AND outcome = 'committed' ORDER BY object DESC`,
    );
    assert.deepEqual(audit, [
      { record_id: second, changes: { 'Task__c.SamePrice': { from: null, to: [first] } } },
      { record_id: stored.body.sideEffects[0].id, changes: { 'Entry__c.SameText': { from: null, to: [entry] } } },
    ]);
    const again = await act(second, 'finish', body, { etag: '"2"', confirmation: both, key: 'finish-twin-3' });
    assert.deepEqual([again.text, again.headers['Idempotency-Replayed']], [stored.text, 'true']);
    // Of two similar new records the second reports the first, and both can be confirmed.
    const twice = `    effects:\n${'      - verb: createRecord\n        object: Entry__c\n        fields:\n          Text__c: record.name\n          name: record.name\n'.repeat(2)}`;
    await world.deploy(world.tenantId, {
      'objects/Task__c/stateModels/Lifecycle.yaml': `${MODEL}${twice}`,
    });
    const pair = await task({ name: 'a pair' });
    const alike = await refusal(act(pair, 'hold'));
    assert.deepEqual([alike.code, alike.details!['confirmable']], ['DUPLICATE_RULE', true]);
    const made2 = await act(pair, 'hold', {}, { confirmation: alike.details!['confirmationToken'] as string });
    assert.equal(made2.body.sideEffects.length, 2);
    await world.deploy(world.tenantId, {
      'objects/Task__c/object.yaml': PROJECT['objects/Task__c/object.yaml']!,
      'objects/Task__c/stateModels/Lifecycle.yaml': MODEL,
      'objects/Entry__c/object.yaml': PROJECT['objects/Entry__c/object.yaml']!,
    });
  });

  it('allow direct changes of the state where the model permits them', async () => {
    await world.deploy(world.tenantId, {
      'objects/Task__c/stateModels/Lifecycle.yaml': MODEL.replace('allowDirectEdit: false', 'allowDirectEdit: true'),
    });
    const id = await task();
    assert.equal((await worker.update('Task__c', id, { Stage__c: 'done' }, { etag: '"1"' })).body.Stage__c, 'done');
    const none = await refusal(worker.update('Task__c', id, { Stage__c: 'lost' }, { etag: '"2"' }));
    assert.deepEqual(codes(none), ['/Stage__c PICKLIST_VALUE_INVALID']);
  });
});

const DESK = `type: StateModel
apiName: Life
object: Desk__c
field: State__c
initial: free
allowDirectEdit: false
transitions:
  - key: fork
    label: Fork
    from:
      - free
    to: free
    input:
      properties:
        other:
          type: string
      type: object
    effects:
      - verb: createRecord
        object: Slip__c
        fields:
          A__c: record.id
          B__c: input.other
          Count__c: "1"
          name: '"slip"'
`;
const toDesk = (name: string): string =>
  `fieldType: reference\nreferenceTo:\n  - Desk__c\nrelationshipName: ${name}\nonDelete: setNull`;
const rollup = (by: string): string =>
  `fieldType: rollup\nrollup:\n  childObject: Slip__c\n  referenceField: ${by}\n  function: sum\n  field: Count__c`;

describe('transitions: concurrent with other writers', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
    await world.deploy(world.tenantId, {
      ...FILES,
      'objects/Desk__c/object.yaml': object('Desk__c', 'readWrite'),
      ...field(
        'Desk__c',
        'State__c',
        'fieldType: picklist\npicklist:\n  restricted: true\n  values:\n    - value: free\n      label: Free',
      ),
      'objects/Desk__c/stateModels/Life.yaml': DESK,
      'objects/Slip__c/object.yaml': object('Slip__c', 'readWrite').replace('search:', 'duplicates: true\n  search:'),
      ...field('Slip__c', 'A__c', toDesk('As__r')),
      ...field('Slip__c', 'B__c', toDesk('Bs__r')),
      ...field('Slip__c', 'Count__c', 'fieldType: integer'),
      ...field('Slip__c', 'Code__c', 'fieldType: text\nlength: 30'),
      ...field('Desk__c', 'CountA__c', rollup('A__c')),
      ...field('Desk__c', 'CountB__c', rollup('B__c')),
      'objects/Slip__c/duplicateRules/SameCode.yaml':
        'type: DuplicateRule\napiName: SameCode\nobject: Slip__c\naction: block\nmatch:\n  - field: Code__c\n',
    });
  });
  after(() => world?.stop());

  const outcome = (promise: Promise<Reply>): Promise<string> =>
    promise.then(
      ({ status }) => `${status}`,
      ({ code }: { code: string }) => code,
    );
  /** Work that ends without a deadlock. */
  const withoutDeadlock = async (work: () => Promise<void>): Promise<void> => {
    const deadlocks = async (): Promise<number> =>
      (await world.rows('SELECT deadlocks::int AS n FROM pg_stat_database WHERE datname = current_database()'))[0]![
        'n'
      ];
    const before = await deadlocks();
    await work();
    // The server counts once a second.
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    await outcome(world.admin.list('Desk__c'));
    assert.equal(await deadlocks(), before);
  };

  it('lock the parents of created records in the common order', async function () {
    this.timeout(60_000);
    const { admin } = world;
    const desks = (await Promise.all([1, 2].map(() => admin.create('Desk__c', { name: 'desk' })))).map(
      ({ body }) => body.id as string,
    );
    let forks = 0;
    await withoutDeadlock(async () => {
      await Promise.all(
        Array.from({ length: 8 }, async (_, index) => {
          const [id, other] = index % 2 ? desks : desks.toReversed();
          for (let tries = 0; tries < 20; tries++) {
            const { headers } = await admin.get('Desk__c', id!);
            const path = { objectApiName: 'Desk__c', id: id!, transitionKey: 'fork' };
            const done = await outcome(
              admin.send('data.transitions.execute', path, {}, { input: { other } }, { etag: headers['ETag']! }),
            );
            assert.ok(done === '201' || done === 'ETAG_MISMATCH', done);
            if (done === '201') forks++;
          }
        }),
      );
    });
    assert.ok(forks > 10, `${forks} forks`);
    for (const id of desks) {
      const { CountA__c, CountB__c } = (await admin.get('Desk__c', id)).body;
      const [row] = await world.rows(
        `SELECT coalesce(sum("Count__c") FILTER (WHERE "A__c" = $1), 0)::int AS a,
                coalesce(sum("Count__c") FILTER (WHERE "B__c" = $1), 0)::int AS b
         FROM $schema."Slip__c"`,
        [id],
      );
      assert.deepEqual([CountA__c, CountB__c], [row!['a'], row!['b']]);
    }
  });

  it('lock the parent before searching duplicates, as creates do', async function () {
    this.timeout(60_000);
    const { admin } = world;
    const desk = (await admin.create('Desk__c', { name: 'desk' })).body.id;
    await withoutDeadlock(async () => {
      for (let round = 0; round < 15; round++) {
        const slip = (await admin.create('Slip__c', { name: 'slip', A__c: desk, Count__c: 1 })).body.id;
        const Code__c = `code ${round}`;
        const done = await Promise.all([
          outcome(admin.update('Slip__c', slip, { Code__c, Count__c: 2 }, { etag: '"1"' })),
          ...[1, 2, 3].map(() => outcome(admin.create('Slip__c', { name: 'twin', A__c: desk, Count__c: 1, Code__c }))),
        ]);
        assert.equal(done.filter((code) => code.startsWith('2')).length, 1, done.join());
        assert.deepEqual([...new Set(done.filter((code) => !code.startsWith('2')))], ['DUPLICATE_RULE']);
      }
    });
  });
});
