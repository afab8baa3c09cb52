import assert from 'node:assert/strict';
import type { UserIdentity } from '../../../contracts/data.ts';
import { unsentSql } from '../../../services/data/users/sync.ts';
import { codes, createWorld, refusal, type World } from './world.ts';

describe('users are records', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
  });
  after(() => world?.stop());

  const make = async (name: string, more: Record<string, unknown> = {}) =>
    (
      await world.admin.create('User', {
        displayName: name,
        username: `${name}@one.example`,
        email: `${name}@one.example`,
        profileApiName: 'Clerk',
        ...more,
      })
    ).body;
  const credentials = async (userId: string) =>
    (await world.rows('SELECT username, active FROM auth.credentials WHERE user_id = $1', [userId]))[0];
  const unsent = async (): Promise<number> =>
    (await world.rows(`SELECT count(*)::int FROM $schema._outbox WHERE type = 'auth.user.sync'`))[0]!['count'];

  it('creates a user who can sign in, known to auth at once', async () => {
    const user = await make('new');
    assert.equal(user.name, 'new', 'name and displayName are the same text');
    assert.equal(user.active, true);
    assert.deepEqual(await credentials(user.id), { username: 'new@one.example', active: true });
    assert.equal(await unsent(), 0);
    const identity = (await world.platform.broker.call('data.users.get', {
      tenantId: world.tenantId,
      userId: user.id,
    })) as UserIdentity;
    assert.equal(identity.apiEnabled, true);
    assert.equal(identity.profileApiName, 'Clerk');
    const found = (await world.platform.broker.call('data.users.find', {
      tenantId: world.tenantId,
      username: 'NEW@one.example',
    })) as UserIdentity;
    assert.equal(found.id, user.id);
    assert.equal(
      await world.platform.broker.call('data.users.find', {
        tenantId: world.otherTenantId,
        username: 'new@one.example',
      }),
      null,
    );
  });

  it('lets only those who manage users write them', async () => {
    const user = await make('target');
    const body = { displayName: 'x', username: 'x@one.example', profileApiName: 'Clerk' };
    assert.equal((await refusal(world.clerk.create('User', body))).code, 'OBJECT_PERMISSION_DENIED');
    assert.equal(
      (await refusal(world.clerk.update('User', user.id, { displayName: 'y' }, { etag: '"1"' }))).code,
      'OBJECT_PERMISSION_DENIED',
    );
    assert.equal(
      (await refusal(world.admin.delete('User', user.id, { etag: '"1"' }))).code,
      'OBJECT_PERMISSION_DENIED',
    );
  });

  it('lets nobody give away, or take, a system permission that they do not hold', async () => {
    const helper = await make('helper', { permissionSetApiNames: ['UserAdmin'] });
    const helpdesk = world.person(world.tenantId, helper.id);
    const user = await make('helped');
    const assigned = await helpdesk.update('User', user.id, { permissionSetApiNames: ['UserAdmin'] }, { etag: '"1"' });
    assert.equal(assigned.status, 200, 'what they hold they may give');
    const attempts = [
      () => helpdesk.update('User', helper.id, { profileApiName: 'Administrator' }, { etag: '"1"' }),
      () => helpdesk.update('User', user.id, { profileApiName: 'Administrator' }, { etag: '"2"' }),
      // Permission comes before the version and the content.
      () => helpdesk.update('User', user.id, { profileApiName: 'Administrator', locale: 7 }, { etag: '"7"' }),
      () => helpdesk.create('User', { displayName: 'x', username: 'x@one.example', profileApiName: 'Administrator' }),
    ];
    for (const attempt of attempts) {
      const error = await refusal(attempt());
      assert.equal(error.code, 'FIELD_PERMISSION_DENIED');
      assert.deepEqual(codes(error), ['/profileApiName FIELD_PERMISSION_DENIED']);
    }
    const administrator = await make('boss', { profileApiName: 'Administrator' });
    const same = { profileApiName: 'Administrator', timezone: 'UTC' };
    assert.equal(
      (await helpdesk.update('User', administrator.id, same, { etag: '"1"' })).status,
      200,
      'has it already',
    );
    // One after the other: each changes everybody's permissions. The test below wants one administrator.
    for (const [id, etag] of [
      [helper.id, '"1"'],
      [user.id, '"2"'],
      [administrator.id, '"2"'],
    ] as const)
      assert.equal((await world.admin.update('User', id, { active: false }, { etag })).status, 200);
  });

  it('takes only profiles, roles and permission sets that exist', async () => {
    const error = await refusal(
      make('bad', {
        profileApiName: 'Nope',
        roleApiName: 'constructor',
        permissionSetApiNames: ['Nope'],
        timezone: 'Mars/One',
      }),
    );
    assert.deepEqual(codes(error), [
      '/permissionSetApiNames REFERENCE_NOT_FOUND',
      '/profileApiName REFERENCE_NOT_FOUND',
      '/roleApiName REFERENCE_NOT_FOUND',
      '/timezone FIELD_FORMAT_INVALID',
    ]);
  });

  it('keeps usernames unique over all tenants', async () => {
    await make('taken');
    assert.equal((await refusal(make('again', { username: 'Taken@one.example' }))).code, 'UNIQUE_VALUE_CONFLICT');
    const error = await refusal(make('other', { username: 'admin@two.example' }));
    assert.equal(error.code, 'UNIQUE_VALUE_CONFLICT');
    assert.deepEqual(error.details, { field: 'username' });
    const user = await make('mover');
    assert.equal(
      (await refusal(world.admin.update('User', user.id, { username: 'admin@two.example' }, { etag: '"1"' }))).code,
      'UNIQUE_VALUE_CONFLICT',
    );
  });

  it('gives and takes rights at once, with history', async () => {
    const user = await make('riser', { profileApiName: 'Standard' });
    const person = world.person(world.tenantId, user.id);
    assert.equal((await refusal(person.list('Company__c'))).code, 'OBJECT_NOT_FOUND');
    await world.admin.update('User', user.id, { profileApiName: 'Clerk' }, { etag: '"1"' });
    assert.equal((await person.list('Company__c')).status, 200);
    const [history] = await world.rows(
      `SELECT changes FROM $schema._history WHERE record_id = $1 AND operation = 'update'`,
      [user.id],
    );
    assert.deepEqual(history!['changes'], { profileApiName: { from: 'Standard', to: 'Clerk' } });
  });

  it('ends everything of a deactivated user at once', async () => {
    const user = await make('leaver');
    const person = world.person(world.tenantId, user.id);
    assert.equal((await person.list('Company__c')).status, 200);
    await world.admin.update('User', user.id, { active: false }, { etag: '"1"' });
    assert.deepEqual(await credentials(user.id), { username: 'leaver@one.example', active: false });
    assert.equal((await refusal(person.list('Company__c'))).code, 'TOKEN_REVOKED');
    assert.equal((await refusal(person.create('Company__c', { name: 'x' }))).code, 'TOKEN_REVOKED');
    const identity = (await world.platform.broker.call('data.users.get', {
      tenantId: world.tenantId,
      userId: user.id,
    })) as UserIdentity;
    assert.equal(identity.apiEnabled, false);
  });

  it('never leaves a tenant without somebody who may manage users', async () => {
    const own = await world.admin.get('User', world.admin.userId);
    const etag = own.headers['ETag']!;
    assert.deepEqual(
      codes(await refusal(world.admin.update('User', world.admin.userId, { active: false }, { etag }))),
      ['/active VALIDATION_RULE'],
    );
    assert.deepEqual(
      codes(await refusal(world.admin.update('User', world.admin.userId, { profileApiName: 'Clerk' }, { etag }))),
      [' VALIDATION_RULE'],
    );
    const deputy = await make('deputy', { permissionSetApiNames: ['UserAdmin'] });
    const stepped = await world.admin.update('User', world.admin.userId, { profileApiName: 'Clerk' }, { etag });
    assert.equal(stepped.status, 200);
    const person = world.person(world.tenantId, deputy.id);
    await person.update(
      'User',
      world.admin.userId,
      { permissionSetApiNames: ['UserAdmin'] },
      { etag: stepped.headers['ETag']! },
    );
  });

  it('syncs a user to auth later when it failed at first', async () => {
    const { broker } = world.platform;
    const user = await make('later');
    const auth = broker.getLocalService('auth');
    await broker.destroyService(auth);
    await world.admin.update('User', user.id, { active: false }, { etag: '"1"' });
    assert.equal(await unsent(), 1, 'the change is committed and the word to auth kept');
    broker.createService(auth.originalSchema);
    await broker.waitForServices('auth');
    await make('trigger');
    assert.equal(await unsent(), 0);
    assert.deepEqual(await credentials(user.id), { username: 'later@one.example', active: false });
  });

  it('looks for users that auth has not heard of among them only, not among all events', async () => {
    await world.rows(
      `INSERT INTO $schema._outbox (type, data) SELECT 'data.record.updated', '{}' FROM generate_series(1, 5000)`,
    );
    await world.rows('ANALYZE $schema._outbox');
    const plan = await world.rows(`EXPLAIN ${unsentSql('$schema')}`);
    const scans = plan.flatMap((row) => /\w+ Scan.* on _outbox.*/.exec(row['QUERY PLAN'])?.[0].split('  ')[0] ?? []);
    assert.deepEqual(scans, ['Index Scan using _outbox_user_sync on _outbox o']);
  });
});
