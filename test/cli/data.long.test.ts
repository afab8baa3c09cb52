/** `erp data` and `erp objects`: reading and changing records as users and scripts do. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { api, tokenFor } from '../support/client.ts';
import { keptErpOf, PROGRAM, userEnvironment } from '../support/erp.ts';
import { exampleNamed, likeExample } from '../support/examples.ts';
import { interfere } from '../support/interference.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

describe('erp data', () => {
  let platform: TestPlatform;
  let token: string;
  let env: Record<string, string>;
  let erp: ReturnType<typeof keptErpOf>;

  before(async () => {
    platform = await startPlatform();
    token = await tokenFor(platform.baseUrl, 'ada@demo.example');
    env = userEnvironment({ ERP_TOKEN: token, ERP_BASE_URL: platform.baseUrl });
    erp = keptErpOf(env);
  });
  after(() => platform.stop());

  const create = async (...assignments: string[]): Promise<string> => {
    const { code, stdout, stderr } = await erp(['data', 'create', 'Account', ...assignments]);
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };

  it('lists and describes objects', async () => {
    const { stdout } = await erp(['objects', 'list']);
    assert.match(stdout, /^Account\t/m);
    const described = await erp(['objects', 'describe', 'Account']);
    assert.match(described.stdout, /^creditLimit\tcurrency/m);
    const schema = JSON.parse((await erp(['objects', 'describe', 'Account', '--schema', '--json'])).stdout);
    assert.ok(schema.$defs.create);
  });

  it('suggests similar names of objects and fields', async () => {
    const said = async (...args: string[]): Promise<string> => {
      const { code, stderr } = await erp(args);
      assert.notEqual(code, 0);
      return stderr.replace(/ {2}request .*\n/, '');
    };
    assert.match(await said('data', 'list', 'Acount'), /OBJECT_NOT_FOUND\)\nDid you mean Account\?\n$/);
    assert.match(await said('objects', 'describe', 'Invoice'), /Did you mean Invoice__c\?\n$/);
    assert.match(await said('data', 'list', 'Xyzzy'), /\nerp objects list shows those that you can read\.\n$/);
    assert.equal(
      await said('data', 'list', 'Account', '--fields', 'credtLimit'),
      'Error: There is no field "credtLimit". (PARAMETER_INVALID)\nDid you mean creditLimit?\n',
    );
    assert.match(
      await said('data', 'create', 'Account', '--data', '{"name":"x","zity":"Bonn"}'),
      /Did you mean city\?\n$/,
    );
    assert.match(
      await said('data', 'list', 'Account', '--sort', 'nothingLikeIt'),
      /\nerp objects describe Account shows/,
    );
    const asJson = await erp(['data', 'list', 'Acount', '--json']);
    assert.equal(JSON.parse(asJson.stderr).code, 'OBJECT_NOT_FOUND');
  });

  it('creates a record from assignments, JSON, a file and standard input, and prints its id', async () => {
    const id = await create('name=From Words', 'city=Kiel', 'creditLimit=1200.50');
    const record = JSON.parse((await erp(['data', 'get', 'Account', id, '--json'])).stdout);
    assert.equal(record.city, 'Kiel');
    assert.equal(record.creditLimit, 1200.5);
    const file = join(env['HOME'] ?? '', 'account.json');
    await writeFile(file, '{"name": "From a File", "city": "Bonn"}');
    for (const [args, stdin] of [
      [['--data', '{"name": "From JSON", "city": "Bonn"}'], ''],
      [['--data', `@${file}`], ''],
      [['--data', '-'], '{"name": "From Standard Input", "city": "Bonn"}'],
      [['--data', '{"name": "x"}', 'name=Wins', 'city:="Bonn"'], ''],
    ] as const) {
      const { code, stdout, stderr } = await erp(['data', 'create', 'Account', ...args], { stdin });
      assert.equal(code, 0, stderr);
      assert.match((await erp(['data', 'get', 'Account', stdout.trim()])).stdout, /^city\tBonn$/m);
    }
  });

  it('lists with short conditions, and all pages as lines', async () => {
    for (let at = 1; at <= 5; at++) await create(`name=Listed ${at}`, 'city=Listingen', `creditLimit=${at * 100}`);
    const names = async (...args: string[]): Promise<string[]> => {
      const { code, stdout, stderr } = await erp([
        'data',
        'list',
        'Account',
        '--fields',
        'name',
        '--sort',
        'name',
        ...args,
      ]);
      assert.equal(code, 0, stderr);
      return stdout.split('\n').filter(Boolean);
    };
    assert.deepEqual(await names('--where', 'city=Listingen', '--where', 'creditLimit>=400'), ['Listed 4', 'Listed 5']);
    assert.deepEqual(await names('--where', 'creditLimit between 200,300', '--where', 'name ^= listed'), [
      'Listed 2',
      'Listed 3',
    ]);
    assert.deepEqual(await names('--where', 'name in "Listed 1","Listed 5"'), ['Listed 1', 'Listed 5']);
    assert.deepEqual(await names('--any', '--where', 'name=Listed 1', '--where', 'name=Listed 2'), [
      'Listed 1',
      'Listed 2',
    ]);
    const filters = { logic: 'and', conditions: [{ id: 'a', field: 'city', operator: 'eq', value: 'Listingen' }] };
    assert.equal((await names('--filters', JSON.stringify(filters), '--take', '2', '--all')).length, 5);
    const page = await erp(['data', 'list', 'Account', '--where', 'city=Listingen', '--take', '2']);
    assert.match(page.stderr, /There are more: --all, or --cursor/);
    const lines = (
      await erp(['data', 'list', 'Account', '--where', 'city=Listingen', '--take', '2', '--all', '--json'])
    ).stdout;
    assert.deepEqual(
      lines
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).name)
        .sort(),
      ['Listed 1', 'Listed 2', 'Listed 3', 'Listed 4', 'Listed 5'],
    );
    assert.equal((await erp(['data', 'list', 'Account', '--where', 'nonsense'])).code, 2);
  });

  it('shows the fields that it sorts by, and counts one record as one', async () => {
    await create('name=Sorted', 'city=Sortingen', 'creditLimit=5');
    const list = ['data', 'list', 'Account', '--where', 'city=Sortingen', '--total'];
    const { stdout, stderr } = await erp([...list, '--sort', 'creditLimit,-createdAt']);
    assert.match(stdout, /^[0-9a-f-]{36}\tSorted\t5(\.00)?\t\d{4}-\d\d-\d\dT/);
    assert.match(stderr, /^1 record matches\.$/m);
  });

  it('lists every violation with its field, and exits with 6', async () => {
    const { code, stderr } = await erp(['data', 'create', 'Account', 'creditLimit=much', 'nonsense=1']);
    assert.equal(code, 6);
    assert.match(stderr, /creditLimit: /);
    assert.match(stderr, /nonsense: /);
    assert.match(stderr, /request req_/);
  });

  it('previews a change', async () => {
    const { code, stdout } = await erp(['data', 'create', 'Account', 'name=Never', 'city=Nowhere', '--dry-run']);
    assert.equal(code, 0);
    assert.match(stdout, /It would be done\. Nothing was changed\./);
    assert.equal((await erp(['data', 'list', 'Account', '--where', 'city=Nowhere'])).stdout, '');
    assert.equal((await erp(['data', 'create', 'Account', 'creditLimit=much', '--dry-run'])).code, 6);
  });

  it('previews every change of a record', async () => {
    const id = await create('name=Tried', 'city=Alt', 'accountNumber=AC-990001');
    for (const [command, effect] of [
      [['update', 'Account', id, 'city=Neu'], `update Account ${id} city`],
      [['upsert', 'Account', 'accountNumber', 'AC-990001', 'city=Neu'], `update Account ${id} city`],
      [['upsert', 'Account', 'accountNumber', 'AC-990002', 'name=x', '--create-only'], 'create Account '],
      [['delete', 'Account', id], `delete Account ${id}`],
    ] as const) {
      const { code, stdout, stderr } = await erp(['data', ...command, '--dry-run']);
      assert.equal(code, 0, stderr);
      assert.ok(stdout.includes(`It would be done. Nothing was changed.\n  ${effect}`), stdout);
    }
    const again = ['upsert', 'Account', 'accountNumber', 'AC-990001', 'name=x', '--create-only', '--dry-run'];
    const exists = await erp(['data', ...again]);
    assert.match(exists.stderr, /ETAG_MISMATCH/);
    assert.match((await erp(['data', 'get', 'Account', id])).stdout, /Alt/);
    assert.equal((await erp(['data', 'delete', 'Account', id])).code, 0);
    const { code, stdout } = await erp(['data', 'restore', 'Account', id, '--dry-run']);
    assert.deepEqual([code, stdout.includes(`create Account ${id}`)], [0, true], stdout);
  });

  it('changes, deletes and restores a record, and shows its history', async () => {
    const id = await create('name=Changing', 'city=Alt');
    assert.equal((await erp(['data', 'update', 'Account', id, 'city=Neu'])).stdout, `${id}\n`);
    const history = await erp(['data', 'history', 'Account', id]);
    assert.match(history.stdout, /\tupdate\tAda Lindqvist\tCity\tAlt\tNeu$/m);
    assert.match((await erp(['data', 'delete', 'Account', id])).stdout, /can be restored until/);
    assert.equal((await erp(['data', 'get', 'Account', id])).code, 1);
    assert.equal((await erp(['data', 'restore', 'Account', id])).stdout, `${id}\n`);
    assert.match((await erp(['data', 'get', 'Account', id])).stdout, /^city\tNeu$/m);
    const explained = await erp(['access', 'explain', 'Account', id, '--op', 'update']);
    assert.match(explained.stdout, /^objectPermission\tpass\t/m);
  });

  it("shows three versions after another user's change, and forces nothing, in the script of the guide", async () => {
    const id = await create('name=Contested', 'city=Berlin', 'creditLimit=25000.50');
    let done = false;
    const proxy = await interfere(platform.baseUrl, {
      first: async (method) => {
        if (method !== 'PATCH' || done) return;
        done = true;
        const other = api(platform.baseUrl, token);
        const etag = (await other.get(`/data/Account/${id}`)).headers.get('etag') ?? '';
        await other.patch(`/data/Account/${id}`, { city: 'Kiel', creditLimit: 7 }, { etag });
      },
    });
    const script = exampleNamed('docs/guides/use-the-command-line.md#in-a-script')
      .replace('https://erp.example.com', proxy.url)
      .replace('…', token);
    const run = (record: string) => {
      const function_ = `erp() { "${process.execPath}" "${PROGRAM}" "$@"; }\n`;
      return promisify(execFile)('bash', ['--norc', '-uc', function_ + script], { env: { ...env, id: record } });
    };
    const { stdout, stderr } = await run(id);
    assert.equal(stdout, 'somebody else was faster\n');
    assert.match(
      stderr,
      likeExample(exampleNamed('docs/guides/use-the-command-line.md#when-somebody-else-was-faster')),
    );
    assert.match((await erp(['data', 'get', 'Account', id])).stdout, /^city\tKiel$/m);
    assert.match((await run(id)).stdout, /^done$/m);
    assert.match((await erp(['data', 'get', 'Account', id])).stdout, /^city\tHamburg$/m);
    await assert.rejects(run(randomUUID()), { code: 1 });
    proxy.close();
  });

  it('asks to read the record again after an outdated --if-match', async () => {
    const id = await create('name=Named Version', 'city=Start');
    const { headers } = await api(platform.baseUrl, token).get(`/data/Account/${id}`);
    const stale = headers.get('etag') ?? '';
    await erp(['data', 'update', 'Account', id, 'city=Theirs', 'creditLimit=7']);
    for (const change of ['city=Mine', 'creditLimit=7']) {
      const { code, stderr } = await erp(['data', 'update', 'Account', id, change, '--if-match', stale]);
      assert.equal(code, 5);
      assert.match(stderr, /^Field +Theirs +Yours$/m);
      assert.match(stderr, /Read the record again, and leave out --if-match or give its new version: /);
      assert.doesNotMatch(stderr, /You (both|started)|[Rr]epeat the command/);
      const [, next = ''] = /--if-match '(.*)'/.exec(stderr) ?? [];
      assert.notEqual(next, stale);
      if (change === 'city=Mine') continue;
      assert.equal((await erp(['data', 'update', 'Account', id, change, '--if-match', next])).code, 0);
    }
  });

  it('repeats with the same key until it gets an answer, and applies nothing twice', async () => {
    const keys: unknown[] = [];
    let failures = 0;
    const proxy = await interfere(platform.baseUrl, {
      answers: (method, headers) => {
        if (method !== 'POST') return 'as it is';
        keys.push(headers['idempotency-key']);
        return failures++ < 2 ? 'lost' : 'as it is';
      },
    });
    const { code, stderr } = await erp([
      'data',
      'create',
      'Account',
      'name=Once',
      'city=Onceville',
      '--base-url',
      proxy.url,
    ]);
    proxy.close();
    assert.equal(code, 0, stderr);
    assert.equal(keys.length, 3);
    assert.equal(new Set(keys).size, 1);
    const found = await erp(['data', 'list', 'Account', '--where', 'city=Onceville', '--fields', 'name']);
    assert.equal(found.stdout, 'Once\n');
  });

  it('creates, changes, publishes and deletes a dashboard, and runs a widget', async () => {
    const listed = await erp(['dashboards', 'list']);
    const [, id = ''] = /^(\S+)\tReceivables\t/m.exec(listed.stdout) ?? [];
    const found = JSON.parse((await erp(['dashboards', 'get', id, '--json'])).stdout);
    const widget = found.widgets[0].widgetKey;
    const result = await erp(['dashboards', 'run-widget', id, widget]);
    assert.equal(result.code, 0, result.stderr);
    const made = await erp(['dashboards', 'create', '--data', '{"name": "Made by erp", "widgets": []}']);
    assert.equal(made.code, 0, made.stderr);
    const own = made.stdout.trim();
    assert.equal((await erp(['dashboards', 'update', own, '--data', '{"name": "Renamed"}'])).code, 0);
    assert.equal((await erp(['dashboards', 'publish', own, '--revision', '1'])).code, 5);
    assert.equal((await erp(['dashboards', 'delete', own])).code, 0);
    assert.equal((await erp(['dashboards', 'get', own])).code, 1);
  });

  it('begins a run of an agent, calls under it and ends it', async () => {
    const begun = await erp([
      'agent',
      'runs',
      'create',
      '--json',
      '--data',
      '{"agentKey": "erp-test", "goal": "Look around."}',
    ]);
    assert.equal(begun.code, 0, begun.stderr);
    const { runId } = JSON.parse(begun.stdout);
    assert.equal((await erp(['data', 'list', 'Account', '--take', '1', '--agent-run', runId])).code, 0);
    assert.match(
      (await erp(['agent', 'runs', 'list'])).stdout,
      new RegExp(`^${runId}\\tRUNNING\\terp-test\\tLook around`, 'm'),
    );
    assert.match((await erp(['agent', 'runs', 'cancel', runId])).stdout, /^status\tCANCELED$/m);
    assert.equal((await erp(['agent', 'approvals', 'list'])).code, 0);
  });
});
