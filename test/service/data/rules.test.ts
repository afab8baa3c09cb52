import assert from 'node:assert/strict';
import type { PlatformError } from '../../../lib/errors/platform-error.ts';
import { codes, createWorld, refusal, type World } from './world.ts';

const rule = (
  apiName: string,
  condition: string,
  more: { object?: string; errorField?: string; active?: boolean } = {},
) => {
  const { object = 'Company__c', errorField, active = true } = more;
  return {
    [`objects/${object}/validationRules/${apiName}.yaml`]: [
      'type: ValidationRule',
      `apiName: ${apiName}`,
      `object: ${object}`,
      `active: ${active}`,
      'condition: |',
      `  ${condition}`,
      ...(errorField ? [`errorField: ${errorField}`] : []),
      `message: ${apiName}.`,
      '',
    ].join('\n'),
  };
};

const RULES = {
  ...rule('AmountPositive', 'record.Amount__c <= 0', { errorField: 'Amount__c' }),
  ...rule('AmountStays', 'old != null && old.Amount__c == 100.10 && isChanged(record.Amount__c)', {
    errorField: 'Amount__c',
  }),
  ...rule('ShareOfNothing', 'record.Amount__c / record.Quantity__c > 1000', { errorField: 'Quantity__c' }),
  ...rule('SecretIsLong', 'record.Secret__c.size() > 5 || record.name == "tell"', { errorField: 'Secret__c' }),
  ...rule('NoteNeeded', 'record.Kind__c == "b" && isBlank(record.Note__c)'),
  ...rule(
    'NotByReaders',
    'user.profileApiName == "Clerk" && record.name == "forbidden" && !hasPermission("manageUsers")',
  ),
  ...rule('NotByReviewers', 'record.name == "reviewed" && inGroup("Reviewers")'),
  'groups/Inner.yaml': 'type: Group\napiName: Inner\nlabel: Inner\nmembers:\n  users:\n    - Clerk@one.example\n',
  'groups/Reviewers.yaml': 'type: Group\napiName: Reviewers\nlabel: Reviewers\nmembers:\n  groups:\n    - Inner\n',
  ...rule('NotTomorrow', 'record.Day__c > today && date(record.When__c) < today', { errorField: 'Day__c' }),
  ...rule('OwnParent', 'record.ParentId__c != null && record.ParentId__c == old.ParentId__c && record.name == "again"'),
  ...rule('Switched', 'record.name != "x"', { active: false }),
  ...rule(
    'Endless',
    'record.Note__c == "endless" && [0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, a < 99))))',
  ),
  ...rule('FarAway', 'record.Place__c.latitude > 89.5 || "y" in record.Tags__c && "x" in record.Tags__c'),
  ...rule('CompanyNeeded', 'record.CompanyId__c == null && record.name != null', { object: 'Item__c' }),
};

describe('validation rules', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
    await world.deploy(world.tenantId, RULES);
  });
  after(() => world?.stop());

  const create = (body: Record<string, unknown>, who = world.clerk) =>
    who.create('Company__c', { name: 'Acme', ...body });
  const company = async (body: Record<string, unknown> = {}) => (await create(body)).body;

  it('refuse a create and an update with the documented error', async () => {
    const expected = {
      pointer: '/Amount__c',
      field: 'Amount__c',
      code: 'VALIDATION_RULE',
      message: 'AmountPositive.',
      ruleApiName: 'Company__c.AmountPositive',
      params: {},
    };
    const created = await refusal(create({ Amount__c: 0 }));
    assert.equal(created.code, 'VALIDATION_FAILED');
    assert.equal(created.message, 'The record was not saved: 1 problem.');
    assert.deepEqual(created.errors, [expected]);
    const { id } = await company({ Amount__c: '0.01' });
    const updated = await refusal(world.clerk.update('Company__c', id, { Amount__c: '-0.01' }, { etag: '"1"' }));
    assert.deepEqual(updated.errors, [expected]);
    assert.equal((await world.clerk.get('Company__c', id)).body.Amount__c, 0.01, 'nothing was stored');
  });

  it('are answered together with violations of fields, all at once', async () => {
    const error = await refusal(
      world.clerk.create('Company__c', { Amount__c: 0, Count__c: 'many', Kind__c: 'b', Sub__c: 'a1', Nope__c: 1 }),
    );
    assert.deepEqual(codes(error), [
      ' VALIDATION_RULE',
      '/Amount__c VALIDATION_RULE',
      '/Count__c FIELD_TYPE_INVALID',
      '/Nope__c FIELD_UNKNOWN',
      '/Sub__c DEPENDENT_PICKLIST_INVALID',
      '/name FIELD_REQUIRED',
    ]);
    const { id } = await company({ Amount__c: 5 });
    const change = await refusal(
      world.clerk.update('Company__c', id, { Amount__c: -1, Kind__c: 'b', Email__c: 'x' }, { etag: '"1"' }),
    );
    assert.deepEqual(codes(change), [
      ' VALIDATION_RULE',
      '/Amount__c VALIDATION_RULE',
      '/Email__c FIELD_FORMAT_INVALID',
    ]);
  });

  it('are skipped for an invalid value', async () => {
    assert.deepEqual(codes(await refusal(create({ Amount__c: 'much' }))), ['/Amount__c FIELD_TYPE_INVALID']);
  });

  it('see the new values over the stored ones, defaults included, decimals to the last digit', async () => {
    const { id } = await company({ Amount__c: '100.10', Kind__c: 'b', Note__c: 'why' });
    const cleared = await refusal(world.clerk.update('Company__c', id, { Note__c: ' ' }, { etag: '"1"' }));
    assert.deepEqual(codes(cleared), [' VALIDATION_RULE'], 'the stored kind and the new note');
    const changed = await refusal(world.clerk.update('Company__c', id, { Amount__c: 100.11 }, { etag: '"1"' }));
    assert.equal(changed.errors![0]!.ruleApiName, 'Company__c.AmountStays');
    const same = await world.clerk.update('Company__c', id, { Amount__c: '100.1', name: 'B' }, { etag: '"1"' });
    assert.equal(same.body.recordVersion, 2, 'a value that is stored already is no change');
  });

  it('read nulls without a crash', async () => {
    assert.equal((await create({ Amount__c: 5, Quantity__c: null, Tags__c: null, Place__c: null })).status, 201);
    assert.equal((await create({})).status, 201);
    const { id } = await company({ Amount__c: 5, Tags__c: ['x'], Place__c: { latitude: 89.4, longitude: 0 } });
    const reply = await world.clerk.update('Company__c', id, { Amount__c: null, Tags__c: ['y'] }, { etag: '"1"' });
    assert.equal(reply.status, 200);
    const far = { Place__c: { latitude: 89.6, longitude: 0 }, Tags__c: null };
    assert.deepEqual(codes(await refusal(world.clerk.update('Company__c', id, far, { etag: '"2"' }))), [
      ' VALIDATION_RULE',
    ]);
  });

  it('that cannot be evaluated refuse the write, with the reason', async () => {
    const { errors } = await refusal(create({ Amount__c: 5, Quantity__c: 0 }));
    assert.deepEqual(errors, [
      {
        pointer: '/Quantity__c',
        field: 'Quantity__c',
        code: 'VALIDATION_RULE',
        message: 'The rule Company__c.ShareOfNothing cannot be evaluated: it divides by zero.',
        ruleApiName: 'Company__c.ShareOfNothing',
        params: { reason: 'DIVISION_BY_ZERO' },
      },
    ]);
    const endless = await refusal(create({ Note__c: 'endless' }));
    assert.deepEqual(
      endless.errors!.map((error) => [error.ruleApiName, error.params['reason']]),
      [['Company__c.Endless', 'COST_EXCEEDED']],
    );
  });

  it('never name a field that the caller cannot read', async () => {
    const hidden = (await refusal(create({ name: 'tell' }))).errors![0]!;
    assert.deepEqual([hidden.pointer, hidden.field], ['', null]);
    assert.equal(hidden.ruleApiName, 'Company__c.SecretIsLong');
    const shown = (await refusal(create({ name: 'tell' }, world.admin))).errors![0]!;
    assert.deepEqual([shown.pointer, shown.field], ['/Secret__c', 'Secret__c']);
    // A body that names the hidden field is answered like one that names a field that does not exist.
    const [named, absent] = await Promise.all(
      ['Secret__c', 'Absent__c'].map(async (name) => codes(await refusal(create({ name: 'tell', [name]: 'x' })))),
    );
    assert.deepEqual(
      named!.map((code) => code.replace('Secret__c', '…')),
      absent!.map((code) => code.replace('Absent__c', '…')),
    );
  });

  it('see hidden values that are stored', async () => {
    const { id } = await company({});
    await world.rows(`UPDATE $schema."Company__c" SET "Secret__c" = 'long enough' WHERE id = $1`, [id]);
    const error = await refusal(world.clerk.update('Company__c', id, { name: 'Other' }, { etag: '"1"' }));
    assert.deepEqual(
      error.errors!.map(({ pointer, field }) => [pointer, field]),
      [['', null]],
    );
  });

  it('can use the current user and date', async () => {
    assert.deepEqual(codes(await refusal(create({ name: 'forbidden' }))), [' VALIDATION_RULE']);
    assert.equal((await create({ name: 'forbidden' }, world.admin)).status, 201);
    assert.deepEqual(codes(await refusal(create({ name: 'reviewed' }))), [' VALIDATION_RULE'], 'a member');
    assert.equal((await create({ name: 'reviewed' }, world.admin)).status, 201, 'no member');
    const late = { Day__c: '9999-01-01', When__c: '2001-01-01T00:00:00Z' };
    assert.deepEqual(codes(await refusal(create(late))), ['/Day__c VALIDATION_RULE']);
    assert.equal((await create({ ...late, Day__c: '2001-01-01' })).status, 201);
  });

  it('see the record that an external id refers to', async () => {
    await create({ Code__c: 'PARENT' });
    const item = await world.clerk.create('Item__c', { name: 'a', CompanyId__c: { Code__c: 'PARENT' } });
    assert.equal(item.status, 201);
    const lost = await refusal(world.clerk.create('Item__c', { name: 'a', CompanyId__c: { Code__c: 'NOBODY' } }));
    assert.ok(codes(lost).includes('/CompanyId__c REFERENCE_NOT_FOUND'));
  });

  it('apply from their deployment on, to concurrent writes as well', async () => {
    const { id } = await company({});
    await world.deploy(world.tenantId, rule('NoGamma', 'record.name == "gamma"'));
    assert.deepEqual(codes(await refusal(world.clerk.update('Company__c', id, { name: 'gamma' }, { etag: '"1"' }))), [
      ' VALIDATION_RULE',
    ]);
    // Writes while the rule is switched off and on again are stored or refused by it, and never fail in another way.
    let deploying = true;
    const switching = (async () => {
      for (const active of [false, true])
        await world.deploy(world.tenantId, rule('NoGamma', 'record.name == "gamma"', { active }));
    })().finally(() => {
      deploying = false;
    });
    while (deploying)
      await create({ name: 'gamma' }).catch((error: PlatformError) =>
        assert.deepEqual(codes(error), [' VALIDATION_RULE'], error.message),
      );
    await switching;
    assert.deepEqual(codes(await refusal(create({ name: 'gamma' }))), [' VALIDATION_RULE']);
  });
});
