/** `erp` with a token of the environment: results, failures and exit codes. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { tokenFor } from '../support/client.ts';
import { keptErpOf, userEnvironment } from '../support/erp.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

describe('erp with a token', () => {
  let platform: TestPlatform;
  let env: Record<string, string>;

  before(async () => {
    platform = await startPlatform();
    const token = await tokenFor(platform.baseUrl, 'ada@demo.example');
    env = userEnvironment({ ERP_TOKEN: token, ERP_BASE_URL: platform.baseUrl });
  });
  after(() => platform.stop());

  it('prints the identity, a name and its value per line when piped', async () => {
    const { code, stdout, stderr } = await keptErpOf(env)(['whoami']);
    assert.equal(stderr, '');
    assert.equal(code, 0);
    assert.match(stdout, /^user\t.*<ada@demo\.example>$/m);
  });

  it('prints exactly the answer of the API with --json', async () => {
    const { code, stdout } = await keptErpOf(env)(['whoami', '--json']);
    assert.equal(code, 0);
    const response = await fetch(`${platform.baseUrl}/api/v1/identity`, {
      headers: { authorization: `Bearer ${env['ERP_TOKEN']}` },
    });
    assert.equal(stdout, `${await response.text()}\n`);
  });

  it('sends requests as they are written, and changes under a key of their own', async () => {
    const erp = keptErpOf(env);
    const shown = await erp(['api', 'GET', '/identity']);
    assert.deepEqual([shown.code, shown.stderr], [0, '']);
    assert.match(JSON.parse(shown.stdout).user.username, /^ada@/);
    assert.equal((await erp(['api', 'GET', '/api/v1/identity'])).stdout, shown.stdout);
    const asked = ['api', 'POST', '/data/Account/query', '-d', '{"take": 1, "fields": ["name"]}'];
    const found = JSON.parse((await erp(asked)).stdout);
    assert.equal(found.records.length, 1);
    const made = await erp(['api', 'POST', '/data/Account', '--data', '{"name": "By request"}', '--verbose']);
    assert.equal(made.code, 0, made.stderr);
    const { id, recordVersion } = JSON.parse(made.stdout);
    assert.equal(recordVersion, 1);
    const path = `/data/Account/${id}`;
    const unmatched = await erp(['api', 'PATCH', path, '-d', '{"city": "Berlin"}']);
    assert.equal(unmatched.code, 6);
    assert.match(unmatched.stderr, /IF_MATCH_REQUIRED/);
    const changed = await erp(['api', 'PATCH', path, '-d', '{"city": "Berlin"}', '-H', 'If-Match: "1"']);
    assert.equal(JSON.parse(changed.stdout).city, 'Berlin', changed.stderr);
    const lost = await erp(['api', 'GET', '/nowhere']);
    assert.match(lost.stderr, /ROUTE_NOT_FOUND/);
  });

  it('sends them below the address of the API alone, and no headers of its own', async () => {
    const erp = keptErpOf(env);
    for (const path of [
      'identity',
      '/../../oauth2/jwks',
      '/%2e%2e/%2e%2e/metrics',
      '//example.com',
      'https://example.com/',
    ])
      assert.notEqual((await erp(['api', 'GET', path])).code, 0, path);
    for (const path of ['identity', '/../../oauth2/jwks', '/%2e%2e/%2e%2e/metrics', 'https://example.com/'])
      assert.match((await erp(['api', 'GET', path])).stderr, /is no path of the API/, path);
    for (const header of ['Authorization: Bearer x', 'idempotency-key: abcdefgh', 'none'])
      assert.equal((await erp(['api', 'GET', '/identity', '-H', header])).code, 2, header);
    assert.equal((await erp(['api', 'TRACE', '/identity'])).code, 2);
    assert.equal((await erp(['api', 'DELETE', '/data/Account/x', '--dry-run'])).code, 2);
  });

  it('exits with 3 and the request id when the token is refused, and never shows the token', async () => {
    const token = `${env['ERP_TOKEN']?.slice(0, -8)}AAAAAAAA`;
    const erp = keptErpOf({ ...env, ERP_TOKEN: token });
    const { code, stdout, stderr } = await erp(['whoami', '--verbose']);
    assert.equal(code, 3);
    assert.equal(stdout, '');
    assert.match(stderr, /TOKEN_INVALID[\s\S]*request req_\w{26}/);
    assert.match(stderr, /^ERP_TOKEN is refused: set a new one, or unset it and sign in/m);
    assert.equal(stderr.includes(token.slice(0, 30)), false);
    const json = await erp(['whoami', '--json']);
    assert.equal(json.code, 3);
    assert.equal(JSON.parse(json.stderr).code, 'TOKEN_INVALID');
  });

  it('exits with 2 for unknown arguments, and with 3 without a sign-in', async () => {
    const erp = keptErpOf(userEnvironment());
    assert.equal((await erp(['whoami', '--nonsense'])).code, 2);
    assert.equal((await erp(['nonsense'])).code, 2);
    const { code, stderr } = await erp(['whoami']);
    assert.equal(code, 3);
    assert.match(stderr, /erp login/);
  });

  it('sends no token over an unencrypted connection to another machine', async () => {
    const { code, stderr } = await keptErpOf(env)(['whoami', '--base-url', 'http://erp.example']);
    assert.equal(code, 2);
    assert.match(stderr, /not encrypted/);
  });

  it('exits with 4 for a missing permission', async () => {
    const token = await tokenFor(platform.baseUrl, 'pat@demo.example');
    const { code, stderr } = await keptErpOf({ ...env, ERP_TOKEN: token })(['objects', 'list']);
    assert.equal(code, 4);
    assert.match(stderr, /API_ACCESS_DISABLED/);
  });

  it('waits as Retry-After demands, and exits with 7 when that is too long', async () => {
    const times: number[] = [];
    let retryAfterSeconds = 1;
    const server = createServer((_, response) => {
      times.push(performance.now());
      const ok = times.length > 1 && retryAfterSeconds === 1;
      const error = {
        code: 'RATE_LIMITED',
        message: 'Too many requests.',
        status: 429,
        requestId: 'req_0',
        retryAfterSeconds,
      };
      response.writeHead(ok ? 200 : 429).end(ok ? '[]' : JSON.stringify(error));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const erp = keptErpOf({ ...env, ERP_BASE_URL: url });
    assert.equal((await erp(['scopes'])).code, 0);
    assert.ok((times[1] ?? 0) - (times[0] ?? 0) >= 990);
    retryAfterSeconds = 3_600;
    times.length = 0;
    assert.equal((await erp(['scopes'])).code, 7);
    assert.equal(times.length, 1);
    server.close();
    server.closeAllConnections();
  });

  it('completes commands and options, and prints scripts for four shells', async () => {
    const erp = keptErpOf(userEnvironment());
    assert.match((await erp(['complete', '--', 'data', 'tr'])).stdout, /^transitions\t/m);
    assert.match((await erp(['complete', '--', 'data', 'list', '--wh'])).stdout, /^--where\t/m);
    for (const shell of ['bash', 'zsh', 'fish', 'powershell']) {
      const { code, stdout } = await erp(['completion', shell]);
      assert.equal(code, 0);
      assert.match(stdout, /erp complete/);
      if (shell === 'bash') execFileSync('bash', ['-n'], { input: stdout });
    }
  });

  it('completes the options of every command, and values: profiles, states, types, objects', async () => {
    const folder = join(env['HOME'] ?? '', '.config', 'erp');
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const profile = { baseUrl: platform.baseUrl, user: { id: '1' }, tenant: { id: '1' } };
    await writeFile(join(folder, 'config.json'), JSON.stringify({ current: null, profiles: { test: profile } }));
    const completed = async (...words: string[]): Promise<string[]> => {
      const { stdout, stderr } = await keptErpOf(env)(['complete', '--', ...words]);
      assert.equal(stderr, '');
      return stdout.split('\n').flatMap((line) => (line.includes('\t') ? [line.slice(0, line.indexOf('\t'))] : []));
    };
    const options = await completed('metadata', 'deploy', '--');
    for (const name of ['--check-only', '--wait', '--json', '--profile', '--dry-run'])
      assert.ok(options.includes(name), name);
    assert.deepEqual(await completed('whoami', '--profile', ''), ['test']);
    assert.deepEqual(await completed('profiles', 'use', 't'), ['test']);
    assert.deepEqual(await completed('metadata', 'list', '--status', 'S'), ['SUCCEEDED']);
    assert.deepEqual(await completed('metadata', 'types', 'Perm'), ['PermissionSet']);
    assert.deepEqual(await completed('metadata', 'retrieve', '--type', 'Lay'), ['Layout']);
    assert.deepEqual(await completed('data', 'list', '--take', '5', '--json', 'Acc'), ['Account']);
    assert.ok((await completed('objects', 'describe', '')).includes('Invoice__c'));
    assert.deepEqual(await completed('data', 'get', 'Account', ''), []);
    assert.deepEqual(await completed('data', 'list', '--base-url', 'http://127.0.0.1:9', ''), []);
  });
});
