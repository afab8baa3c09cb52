import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { UserIdentity } from '../../../contracts/data.ts';
import { noteSignIn } from '../../../services/data/users/directory.ts';
import { unsentSql } from '../../../services/data/users/sync.ts';
import { codes, createWorld, refusal, type World } from './world.ts';

const bundle = (name: string, body: string): string => `type: PermissionSet\napiName: ${name}\nlabel: ${name}\n${body}`;

/** Permissions that a clerk who manages users lacks. */
const HIGHER = {
  'roles/Lead.yaml': 'type: Role\napiName: Lead\nlabel: Lead\n',
  'roles/Rep.yaml': 'type: Role\napiName: Rep\nlabel: Rep\nparent: Lead\n',
  'groups/Insiders.yaml': 'type: Group\napiName: Insiders\nlabel: Insiders\nmembers:\n  users: [insider@one.example]\n',
  'permissionSets/Vaults.yaml': bundle('Vaults', 'objects:\n  Vault__c: {read: true}\n'),
  'permissionSets/AllCompanies.yaml': bundle('AllCompanies', 'objects:\n  Company__c: {read: true, viewAll: true}\n'),
  'permissionSets/Secrets.yaml': bundle('Secrets', 'fields:\n  Company__c.Secret__c: {read: true}\n'),
};

describe('users are records', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
    await world.deploy(world.tenantId, HIGHER);
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

  it('requires user management to write them', async () => {
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

  it('refuses to grant or revoke a system permission that the caller lacks', async () => {
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
    // Sequential: each changes the permissions of all users. The test below wants one administrator.
    for (const [id, etag] of [
      [helper.id, '"1"'],
      [user.id, '"2"'],
    ] as const)
      assert.equal((await world.admin.update('User', id, { active: false }, { etag })).status, 200);
  });

  it('accepts only existing languages and time zones', async () => {
    const user = await make('traveller', { locale: 'pt-BR', timezone: 'America/Sao_Paulo' });
    for (const locale of ['en_US', 'xx-yy-zz', 'no language', 'EN-us']) {
      const error = await refusal(world.admin.update('User', user.id, { locale, timezone: 'Mars' }, { etag: '"1"' }));
      assert.deepEqual(codes(error), ['/locale FIELD_FORMAT_INVALID', '/timezone FIELD_FORMAT_INVALID'], locale);
    }
    const { fields } = (await world.admin.send('schema.objects.describe', { objectApiName: 'User' })).body;
    const example = Object.fromEntries(
      fields.map((field: { apiName: string; example: unknown }) => [field.apiName, field.example]),
    );
    const { locale, timezone, username } = example;
    const changed = await world.admin.update('User', user.id, { locale, timezone }, { etag: '"1"' });
    assert.deepEqual([changed.body.locale, changed.body.timezone], ['en-GB', 'Europe/Berlin']);
    assert.match(username, /@/);
  });

  it('refuses any change or deactivation of a user who holds more than the caller', async () => {
    const helper = await make('aide', { permissionSetApiNames: ['UserAdmin'] });
    const aide = world.person(world.tenantId, helper.id);
    const higher = [
      await make('ceo', { profileApiName: 'Administrator' }),
      await make('asleep', { profileApiName: 'Administrator', active: false }),
      await make('lead', { roleApiName: 'Lead' }),
      await make('insider'),
    ];
    for (const { id } of higher)
      for (const fields of [
        { email: 'mine@one.example' },
        { username: 'mine@one.example' },
        { active: false },
        { active: true },
        { profileApiName: 'Reader', roleApiName: null },
        { managerId: helper.id },
        { displayName: 'x', locale: 7 },
      ]) {
        const error = await refusal(aide.update('User', id, fields, { etag: '"1"' }));
        assert.equal(error.code, 'RECORD_ACCESS_DENIED', JSON.stringify(fields));
        assert.equal(error.details?.['layer'], 'objectPermission');
        assert.doesNotMatch(error.message, /manage|Lead|Insiders/, 'nothing of what they hold is told');
      }
    // The most that a peer may do, and the user's own changes.
    const equal = await make('equal');
    assert.equal((await aide.update('User', equal.id, { email: 'e@one.example' }, { etag: '"1"' })).status, 200);
    assert.equal((await aide.update('User', helper.id, { locale: 'de' }, { etag: '"1"' })).status, 200);
    for (const { id } of [...higher, equal, helper].filter(({ username }) => username !== 'asleep@one.example')) {
      const { headers } = await world.admin.get('User', id);
      assert.equal((await world.admin.update('User', id, { active: false }, { etag: headers['ETag']! })).status, 200);
    }
  });

  it('refuses to grant a permission, role or membership that the caller lacks', async () => {
    const helper = await make('giver', { permissionSetApiNames: ['UserAdmin'], roleApiName: 'Rep' });
    const giver = world.person(world.tenantId, helper.id);
    const user = await make('taker');
    const attempts: [fields: Record<string, unknown>, pointers: string[]][] = [
      [{ permissionSetApiNames: ['Vaults'] }, ['/permissionSetApiNames FIELD_PERMISSION_DENIED']],
      [{ permissionSetApiNames: ['Secrets'] }, ['/permissionSetApiNames FIELD_PERMISSION_DENIED']],
      [{ permissionSetApiNames: ['UserAdmin', 'AllCompanies'] }, ['/permissionSetApiNames FIELD_PERMISSION_DENIED']],
      [{ roleApiName: 'Lead' }, ['/roleApiName FIELD_PERMISSION_DENIED']],
      [{ username: 'INSIDER@one.example' }, ['/username FIELD_PERMISSION_DENIED']],
      [
        { profileApiName: 'Administrator', permissionSetApiNames: ['Vaults'], roleApiName: 'Lead', active: false },
        [
          '/permissionSetApiNames FIELD_PERMISSION_DENIED',
          '/profileApiName FIELD_PERMISSION_DENIED',
          '/roleApiName FIELD_PERMISSION_DENIED',
        ],
      ],
    ];
    for (const [fields, expected] of attempts)
      for (const attempt of [
        () => giver.update('User', user.id, fields, { etag: '"1"' }),
        () => giver.update('User', helper.id, fields, { etag: '"1"' }),
        () =>
          giver.create('User', {
            displayName: 'x',
            username: 'x@one.example',
            email: 'x@one.example',
            profileApiName: 'Clerk',
            ...fields,
          }),
      ]) {
        const error = await refusal(attempt());
        assert.equal(error.code, 'FIELD_PERMISSION_DENIED', JSON.stringify(fields));
        assert.deepEqual(codes(error), expected);
      }
    const given = { permissionSetApiNames: ['UserAdmin'], roleApiName: 'Rep', profileApiName: 'Reader' };
    assert.equal(
      (await giver.update('User', user.id, given, { etag: '"1"' })).status,
      200,
      'what they hold they may give',
    );
    for (const { id } of [helper, user]) {
      const { headers } = await world.admin.get('User', id);
      assert.equal((await world.admin.update('User', id, { active: false }, { etag: headers['ETag']! })).status, 200);
    }
  });

  it('accepts only existing profiles, roles and permission sets', async () => {
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

  it('keeps usernames unique within the tenant, without revealing those of others', async () => {
    await make('taken');
    const error = await refusal(make('again', { username: 'Taken@one.example' }));
    assert.equal(error.code, 'UNIQUE_VALUE_CONFLICT');
    assert.deepEqual(error.details, { field: 'username' });
    const { rows } = {
      rows: await world.rows("SELECT tenant_id FROM auth.credentials WHERE username = 'admin@two.example'"),
    };
    assert.deepEqual(rows, [{ tenant_id: world.otherTenantId }]);
    const other = await make('other', { username: 'admin@two.example' });
    const mover = await make('mover');
    const moved = await world.admin.update('User', mover.id, { username: 'boss@two.example' }, { etag: '"1"' });
    assert.equal(moved.status, 200);
    assert.equal((await credentials(other.id))!['username'], 'admin@two.example');
  });

  it('refuses an invalid username as a field error, without calling auth', async () => {
    for (const username of ['x'.repeat(300), 'x'.repeat(100_000), 'sam\0@one.example']) {
      const error = await refusal(make('unusual', { username }));
      assert.deepEqual([error.status, error.code], [422, 'VALIDATION_FAILED']);
      assert.deepEqual(
        error.errors?.map(({ pointer }) => pointer),
        ['/username'],
      );
    }
  });

  it('refuses confusable names, and keeps existing ones', async () => {
    for (const [username, character] of [
      ['ad\u0430@one.example', 'U+0430'],
      ['ad\u200Ba@one.example', 'U+200B'],
      ['a\u202Eda@one.example', 'U+202E'],
      ['\u00A0ada@one.example', 'U+00A0'],
    ] as const) {
      const error = await refusal(make('alike', { username }));
      assert.deepEqual(
        error.errors?.map(({ pointer, code, message }) => [pointer, code, message.includes(character)]),
        [['/username', 'FIELD_FORMAT_INVALID', true]],
      );
      const provision = { tenantId: world.tenantId, users: [{ username, email: 'a@one.example', displayName: 'A' }] };
      const users = provision.users.map((one) => ({ ...one, profileApiName: 'Clerk' }));
      await assert.rejects(
        world.platform.broker.call('data.users.provision', { ...provision, users }) as Promise<unknown>,
        {
          code: 'PARAMETER_INVALID',
        },
      );
    }
    const named = await refusal(make('shown', { name: 'Ada\u202E', displayName: 'Ada\u202E' }));
    assert.ok(named.errors?.some(({ pointer }) => pointer === '/displayName'));
    const old = await make('older');
    const username = 'old\u200Ber@one.example';
    await world.rows(`UPDATE $schema."User" SET "username" = '${username}' WHERE "id" = '${old.id}'`);
    const kept = await world.admin.update('User', old.id, { username, timezone: 'Europe/Paris' }, { etag: '"1"' });
    assert.equal(kept.status, 200);
  });

  it('applies permission changes at once, with history', async () => {
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

  it('never leaves a tenant without a manager of users, access and configuration', async () => {
    const own = await world.admin.get('User', world.admin.userId);
    const etag = own.headers['ETag']!;
    assert.deepEqual(
      codes(await refusal(world.admin.update('User', world.admin.userId, { active: false }, { etag }))),
      ['/active VALIDATION_RULE'],
    );
    assert.deepEqual(
      codes(await refusal(world.admin.update('User', world.admin.userId, { profileApiName: 'Clerk' }, { etag }))),
      [' VALIDATION_RULE', ' VALIDATION_RULE', ' VALIDATION_RULE'],
    );
    await make('aider', { permissionSetApiNames: ['UserAdmin'] });
    const alone = await refusal(world.admin.update('User', world.admin.userId, { profileApiName: 'Clerk' }, { etag }));
    assert.deepEqual(
      alone.errors?.map(({ message }) => /who holds (\w+)/.exec(message)?.[1]),
      ['manageAccess', 'metadataManage'],
      'somebody who manages users is no administrator',
    );
    const deputy = await make('deputy', { profileApiName: 'Administrator' });
    const stepped = await world.admin.update('User', world.admin.userId, { profileApiName: 'Clerk' }, { etag });
    assert.equal(stepped.status, 200);
    const person = world.person(world.tenantId, deputy.id);
    await person.update(
      'User',
      world.admin.userId,
      { profileApiName: 'Administrator' },
      { etag: stepped.headers['ETag']! },
    );
  });

  it('syncs a user to auth by itself within seconds, when auth was away at first', async function () {
    this.timeout(20_000);
    const { broker } = world.platform;
    const user = await make('later');
    const auth = broker.getLocalService('auth');
    await broker.destroyService(auth);
    await world.admin.update('User', user.id, { active: false }, { etag: '"1"' });
    assert.equal(await unsent(), 1, 'the change is committed and the word to auth kept');
    broker.createService(auth.originalSchema);
    await broker.waitForServices('auth');
    while ((await unsent()) > 0) await pause(100);
    assert.deepEqual(await credentials(user.id), { username: 'later@one.example', active: false });
  });

  describe('a sign-in', () => {
    const signIn = (userId: string, at: string): Promise<void> =>
      noteSignIn(world.database, world.tenantId, userId, at);
    const changes = (cursor?: string) =>
      world.admin.send('data.changes.list', { objectApiName: 'User' }, cursor === undefined ? {} : { cursor });

    it('changes neither the version nor the history nor the change feed of the user', async () => {
      const user = await make('visitor');
      const read = await world.admin.get('User', user.id);
      const { resumeCursor } = (await changes()).body;
      await signIn(user.id, '2026-03-04T05:06:07Z');
      const after = await world.admin.get('User', user.id);
      assert.equal(after.body.lastSignInAt, '2026-03-04T05:06:07+00:00');
      assert.deepEqual({ ...after.body, lastSignInAt: null }, read.body, 'nothing else has changed');
      assert.equal(after.headers['ETag'], read.headers['ETag']);
      assert.deepEqual((await changes(resumeCursor)).body.records, []);
      const history = await world.admin.send('data.history.list', { objectApiName: 'User', id: user.id });
      assert.deepEqual(
        history.body.records.map(({ operation }: { operation: string }) => operation),
        ['create'],
      );
      const entries = await world.rows(
        `SELECT operation_id, kind, record_version, changes FROM $schema._audit WHERE record_id = $1 AND user_id = $1`,
        [user.id],
      );
      assert.deepEqual(entries, [
        { operation_id: 'auth.user.signedIn', kind: null, record_version: null, changes: null },
      ]);
    });

    it('never conflicts with a concurrent change of the user', async () => {
      const user = await make('busy');
      let { headers } = await world.admin.get('User', user.id);
      for (let round = 10; round < 30; round++) {
        const at = `2026-03-04T05:06:${round}Z`;
        const [changed] = await Promise.all([
          world.admin.update('User', user.id, { locale: round % 2 ? 'de-DE' : 'en-GB' }, { etag: headers['ETag']! }),
          signIn(user.id, at),
          signIn(user.id, '2026-03-04T05:06:07Z'),
        ]);
        assert.equal(changed.status, 200);
        headers = changed.headers;
        const { body } = await world.admin.get('User', user.id);
        assert.equal(body.lastSignInAt, at.replace('Z', '+00:00'), 'the later of both, and not lost by the change');
      }
      const [stored] = await world.rows(`SELECT "recordVersion" FROM $schema."User" WHERE "id" = $1`, [user.id]);
      assert.equal(stored!['recordVersion'], 21, 'one for each change by a person');
    });

    it('is recorded by the platform only', async () => {
      const user = await make('forger');
      const at = { lastSignInAt: '2026-01-01T00:00:00Z' };
      const refused = await refusal(world.admin.update('User', user.id, at, { etag: '"1"' }));
      assert.deepEqual(codes(refused), ['/lastSignInAt FIELD_READ_ONLY']);
      assert.deepEqual(codes(await refusal(make('forged', at))), ['/lastSignInAt FIELD_READ_ONLY']);
    });
  });

  it('finds users not yet synced to auth without reading all events', async () => {
    await world.rows(
      `INSERT INTO $schema._outbox (type, data) SELECT 'data.record.updated', '{}' FROM generate_series(1, 5000)`,
    );
    await world.rows('ANALYZE $schema._outbox');
    const plan = await world.rows(`EXPLAIN ${unsentSql('$schema')}`);
    const scans = plan.flatMap((row) => /\w+ Scan.* on _outbox.*/.exec(row['QUERY PLAN'])?.[0].split('  ')[0] ?? []);
    assert.deepEqual(scans, ['Index Scan using _outbox_user_sync on _outbox o']);
  });
});
