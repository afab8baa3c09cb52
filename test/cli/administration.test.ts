/** `erp users`, `audit` and `data shares`: administration by names. docs/reference/cli.md. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Api, api, tokenFor } from '../support/client.ts';
import { type Ended, keptErpOf, userEnvironment } from '../support/erp.ts';
import { interfere } from '../support/interference.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

describe('erp for administrators', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let ada: Api;
  let env: Record<string, string>;
  let erp: ReturnType<typeof keptErpOf>;

  before(async () => {
    platform = await startPlatform();
    const token = await tokenFor(platform.baseUrl, 'ada@demo.example');
    ada = api(platform.baseUrl, token);
    env = userEnvironment({ ERP_TOKEN: token, ERP_BASE_URL: platform.baseUrl });
    erp = keptErpOf(env);
  });
  after(() => platform.stop());

  const ok = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await erp(args);
    assert.equal(code, 0, `erp ${args.join(' ')}\n${stderr}`);
    return stdout;
  };
  const refused = async (code: number, ...args: string[]): Promise<Ended> => {
    const ended = await erp(args);
    assert.equal(ended.code, code, `erp ${args.join(' ')}\n${ended.stdout}${ended.stderr}`);
    return ended;
  };
  const user = async (username: string): Promise<Record<string, unknown>> =>
    JSON.parse(await ok('users', 'get', username, '--json'));

  it('lists users and shows one, by username, address or id', async () => {
    const list = await ok('users', 'list', '--where', 'profileApiName=SalesRep');
    assert.match(list, /^sam@demo\.example\tSam Keller\tSalesRep\tSalesRep\t/m);
    assert.doesNotMatch(list, /ada@/);
    const shown = await ok('users', 'get', 'SAM@demo.example');
    assert.match(shown, /^manager\tMia Hartmann$/m);
    assert.match(shown, /^user\tSam Keller <sam@demo\.example>$/m);
    const { id } = await user('sam@demo.example');
    assert.equal((await user(String(id)))['username'], 'sam@demo.example');
    const unknown = await refused(2, 'users', 'get', 'nobody@demo.example');
    assert.match(unknown.stderr, /There is no user nobody@demo\.example that you can see\.\n.*erp users list/);
  });

  it('invites, deactivates, reactivates and invites again', async () => {
    const name = `nora-${randomUUID().slice(0, 8)}@demo.example`;
    const invited = await ok(
      ...['users', 'invite', name, '--name', 'Nora Quist', '--user-profile', 'SalesRep', '--role', 'SalesRep'],
      ...['--manager', 'mia@demo.example', '--permission-set', 'OrderDesk'],
    );
    const record = await user(name);
    assert.equal(record['id'], invited.trim());
    assert.deepEqual(
      [record['displayName'], record['email'], record['active'], record['permissionSetApiNames']],
      ['Nora Quist', name, true, ['OrderDesk']],
    );
    assert.equal(record['managerId'], (await user('mia@demo.example'))['id']);
    assert.match(await ok('users', 'resend', name), /on its way/);
    await ok('users', 'deactivate', name);
    assert.equal((await user(name))['active'], false);
    assert.match((await erp(['users', 'deactivate', name])).stderr, /is not active/);
    await ok('users', 'reactivate', name);
    assert.equal((await user(name))['active'], true);
    await ok('users', 'set-profile', name, 'Accountant');
    await ok('users', 'set-role', name, '-');
    const changed = await user(name);
    assert.deepEqual([changed['profileApiName'], changed['roleApiName']], ['Accountant', null]);
  });

  it('lists the users of a shared address, instead of choosing one', async () => {
    const address = `${randomUUID().slice(0, 8)}@demo.example`;
    for (const name of ['one', 'two'])
      await ok(
        ...['users', 'invite', `${name}-${address}`, '--name', name, '--user-profile', 'Minimal', '--email', address],
        '--inactive',
      );
    const { stderr } = await refused(2, 'users', 'get', address);
    assert.match(stderr, /is the address of several users\.\nName one by username: (one|two)-.*, (one|two)-/);
  });

  it('adds and removes permission sets one by one, despite concurrent changes of the user', async () => {
    const sets = async (): Promise<string[]> =>
      (await ok('users', 'permission-sets', 'list', 'fay@demo.example')).split('\n').filter(Boolean);
    const before = await sets();
    const { id } = await user('fay@demo.example');
    let others = 0;
    const other = await interfere(platform.baseUrl, {
      first: async (method) => {
        if (method !== 'PATCH' || others++ > 0) return;
        const path = `/data/User/${id}`;
        const etag = (await ada.get(path)).headers.get('etag')!;
        assert.equal((await ada.patch(path, { locale: 'de' }, { etag })).status, 200);
      },
    });
    try {
      await ok('users', 'permission-sets', 'add', 'fay@demo.example', 'OrderDesk', '--base-url', other.url);
    } finally {
      other.close();
    }
    assert.equal(others, 2, 'it was refused once, and made again');
    assert.deepEqual((await sets()).toSorted(), [...before, 'OrderDesk'].toSorted());
    assert.match(
      (await erp(['users', 'permission-sets', 'add', 'fay@demo.example', 'OrderDesk'])).stderr,
      /has OrderDesk/,
    );
    await ok('users', 'permission-sets', 'remove', 'fay@demo.example', 'OrderDesk');
    assert.deepEqual(await sets(), before);
    const wrong = await refused(6, 'users', 'permission-sets', 'add', 'fay@demo.example', 'Nothing');
    assert.match(wrong.stderr, /There is no such permission set/);
  });

  it('shares a record with a user, a role and a group, and revokes it', async () => {
    const id = (await ok('data', 'create', 'Account', 'name=Shared by hand', 'ownerId=mia@demo.example')).trim();
    await ok(
      'data',
      'shares',
      'add',
      'Account',
      id,
      '--user',
      'pat@demo.example',
      '--access',
      'edit',
      '--reason',
      'Holidays',
    );
    await ok('data', 'shares', 'add', 'Account', id, '--role', 'Finance');
    const list = await ok('data', 'shares', 'list', 'Account', id);
    assert.match(list, /^user Pat Moreau\tedit\t\S+\tAda Lindqvist\tHolidays$/m);
    assert.match(list, /^role Finance\tread\t/m);
    await ok('data', 'shares', 'remove', 'Account', id, '--user', 'pat@demo.example');
    assert.doesNotMatch(await ok('data', 'shares', 'list', 'Account', id), /Pat/);
    assert.match(
      (await refused(1, 'data', 'shares', 'remove', 'Account', id, '--group', 'Finance')).stderr,
      /not shared/,
    );
    assert.match(
      (await refused(2, 'data', 'shares', 'add', 'Account', id)).stderr,
      /one of --user, --role and --group/,
    );
    assert.match(
      await ok('access', 'explain', 'Account', id, '--user', 'mia@demo.example'),
      /^sharing\tpass\t.*mia@demo\.example/m,
    );
  });

  it('accepts usernames for owners and in conditions, and shows names in lists and history', async () => {
    const id = (
      await ok('data', 'create', 'Account', 'name=Named', 'city=Namingen', 'ownerId=sam@demo.example')
    ).trim();
    await ok('data', 'update', 'Account', id, 'ownerId=sue@demo.example', 'city=Renamingen');
    assert.match(
      (await refused(2, 'data', 'update', 'Account', id, 'ownerId=nobody@demo.example')).stderr,
      /There is no user nobody@/,
    );
    const where = ['data', 'list', 'Account', '--where', 'ownerId=sue@demo.example', '--where', 'city=Renamingen'];
    assert.match(await ok(...where), new RegExp(`^${id}\tNamed\t.*\tSue Bennett$`, 'm'));
    assert.match(await ok(...where, '--fields', 'ownerId'), /^[0-9a-f-]{36}$/m, 'ids where fields are named');
    const history = await ok('data', 'history', 'Account', id);
    assert.match(history, /\tAda Lindqvist\tOwner\tSam Keller\tSue Bennett$/m);
    assert.match(history, /\tCity\tNamingen\tRenamingen$/m);
    assert.ok(JSON.parse(await ok('data', 'history', 'Account', id, '--json')).records[0].changes.length > 0);
  });

  it('writes CSV with a header, in which no text is a formula', async () => {
    const city = `Csv ${randomUUID()}`;
    for (const name of ['=HYPERLINK("x")', 'Plain', 'Comma, "quote"', '-2+3', '@SUM(1)', '+49 30 1234'])
      await ok('data', 'create', 'Account', '--data', JSON.stringify({ name, city }));
    const csv = await ok(
      'data',
      'list',
      'Account',
      '--where',
      `city=${city}`,
      '--fields',
      'name,creditLimit',
      '--csv',
      '--all',
      '--take',
      '2',
      '--sort',
      'createdAt',
    );
    assert.equal(
      csv,
      [
        'name,creditLimit',
        '"\'=HYPERLINK(""x"")",',
        'Plain,',
        '"Comma, ""quote""",',
        "'-2+3,",
        "'@SUM(1),",
        '+49 30 1234,',
        '',
      ].join('\r\n'),
    );
    assert.equal(
      await ok('data', 'list', 'Account', '--where', 'city=Nowhere', '--fields', 'name', '--csv'),
      'name\r\n',
    );
    assert.match((await refused(2, 'data', 'list', 'Account', '--csv', '--json')).stderr, /cannot be combined/);
  });

  it('lists the audit trail with names, by user, object, record and outcome', async () => {
    const id = (await ok('data', 'create', 'Account', 'name=Audited')).trim();
    const list = await ok('audit', 'list', '--record', id, '--object', 'Account', '--user', 'ada@demo.example');
    assert.match(list, new RegExp(`^\\S+\tAda Lindqvist\tdata\\.records\\.create\tAccount\t${id}\tcommitted\t\t`, 'm'));
    assert.equal(list.trim().split('\n').length, 1);
    assert.equal(await ok('audit', 'list', '--record', id, '--user', 'sam@demo.example'), '');
    assert.match(await ok('audit', 'list', '--record', id, '--csv'), /^When,Who,Operation,.*\r\n.*Ada Lindqvist/);
    assert.equal(JSON.parse(await ok('audit', 'list', '--take', '1', '--json')).records.length, 1);
    assert.match((await refused(6, 'audit', 'list', '--from', 'yesterday')).stderr, /from/);
  });

  it('explains how to sign in when the token lacks a scope', async () => {
    const token = await tokenFor(platform.baseUrl, 'ada@demo.example', 'data:read data:write me:read');
    const lesser = keptErpOf({ ...env, ERP_TOKEN: token });
    const { code, stderr } = await lesser(['users', 'resend', 'sam@demo.example']);
    assert.equal(code, 4);
    assert.match(stderr, /\(users:manage\): erp login asks for everything/);
  });
});
