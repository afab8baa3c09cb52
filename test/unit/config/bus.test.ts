/** The settings of the bus: what they mean, and that every problem of them is reported at once. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { busAddress } from '../../../config/bus.ts';
import { readConfig } from '../../../config/env.ts';

describe('the configuration of the bus', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'erp-bus-config-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const file = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };
  const bus = (env: Record<string, string>) => readConfig(env).bus!;
  const problemsOf = (env: Record<string, string>): string[] => {
    try {
      readConfig(env);
    } catch (error) {
      assert.ok(error instanceof Error && error.name === 'ConfigError');
      return error.message.split('\n');
    }
    return [];
  };

  it('is encrypted when a server is named by tls://, or a TLS file is given', () => {
    const caFile = file('ca.pem', '');
    assert.equal(bus({ NATS_URL: 'nats://a' }).tls, null);
    assert.deepEqual(bus({ NATS_URL: 'tls://a' }).tls, {});
    assert.deepEqual(bus({ NATS_URL: 'nats://a,tls://b' }).tls, {});
    assert.deepEqual(bus({ NATS_URL: 'nats://a', NATS_CA_FILE: caFile }).tls, { caFile });
  });

  it('decodes user and password of the address', () => {
    const { login } = bus({ NATS_URL: 'tls://erp%40bus:p%2Fa%3As%25s@a:4222' });
    assert.deepEqual(login, { user: 'erp@bus', password: 'p/a:s%s' });
  });

  it('names its servers without credentials', () => {
    assert.equal(busAddress(bus({ NATS_URL: 'tls://erp:hunter2@a:4222,tls://erp:hunter2@b' })), 'tls://a:4222,tls://b');
  });

  it('gives every process an id that starts with its services', () => {
    const env = { NATS_URL: 'nats://a', SERVICES: 'gateway,data', NODE_ID: 'pod 7.local' };
    assert.equal(readConfig(env).nodeId, 'data+gateway/pod-7-local');
    assert.equal(readConfig(env, { operator: 'repl' }).nodeId, 'operator/repl');
    // In containers all have the same process id.
    const { NODE_ID: _, ...unnamed } = env;
    const own = `gateway-data-${hostname()}-${process.pid}`.replaceAll('.', '-');
    assert.equal(readConfig(unnamed).nodeId, `data+gateway/${own}`);
  });

  it('reports all problems at once, and repeats no password', () => {
    const problems = problemsOf({
      NATS_URL: 'tls://erp:hunter%E0%A4%A@a:4222,tls://erp:hunter3@b',
      NATS_CA_FILE: '/nowhere/ca.pem',
      NATS_CERT_FILE: file('client.pem', ''),
      NATS_NKEY_FILE: file('user.nk', ''),
      NATS_PASSWORD_FILE: file('password', 'hunter4'),
      BUS_KEYS_FILE: file('keys', 'data tooShort'),
    });
    assert.deepEqual(
      problems.map((problem) => problem.slice(0, problem.indexOf(' '))),
      ['NATS_CA_FILE', 'NATS_CERT_FILE', 'Only', 'NATS_PASSWORD_FILE', 'NATS_URL', 'BUS_KEYS_FILE'],
    );
    assert.doesNotMatch(problems.join(), /hunter/);
  });

  it('requires a key for every service of the process', () => {
    const key = Buffer.alloc(32, 7).toString('base64url');
    const env = { NATS_URL: 'nats://a', SERVICES: 'data,metadata' };
    assert.match(problemsOf({ ...env, BUS_KEYS_FILE: file('keys', `data ${key}\n`) })[0]!, /no key of metadata/);
    const keys = file('keys', `# of this process\ndata ${key}\nmetadata ${key}\nmetadata ${key}\n`);
    assert.equal(bus({ ...env, BUS_KEYS_FILE: keys }).contextKeys?.get('metadata')?.length, 2);
  });

  it('requires a key for every service in the gateway, which calls all of them', () => {
    const key = Buffer.alloc(32, 7).toString('base64url');
    const ofEarlierVersion = ['auth', 'data', 'metadata', 'ratelimit'].map((name) => `${name} ${key}\n`).join('');
    const env = { NATS_URL: 'nats://a', SERVICES: 'gateway', BUS_KEYS_FILE: file('keys', ofEarlierVersion) };
    assert.match(
      problemsOf(env)[0]!,
      /BUS_KEYS_FILE has no key of analytics, agent, mcp, files, bulk, events, notifications, calendar: run `npm run bus-keys`/,
    );
  });

  it('requires TLS, a sign-in and keys in production, unless explicitly disabled', () => {
    const PLATFORM_SECRET = 'kq8-Zr2_vTn5cY9wLx3mBd7hJf1sGa6u';
    const env = {
      NODE_ENV: 'production',
      PLATFORM_SECRET,
      BASE_URL: 'https://erp.example',
      DATABASE_URL: 'postgres://localhost/erp',
      NATS_URL: 'nats://a:4222',
    };
    const problems = problemsOf(env);
    assert.equal(problems.length, 4, problems.join('\n'));
    for (const name of ['NATS_URL', 'NATS_NKEY_FILE', 'BUS_KEYS_FILE'])
      assert.ok(
        problems.some((problem) => problem.startsWith(`- ${name} `)),
        name,
      );
    assert.deepEqual(problemsOf({ ...env, NATS_ALLOW_INSECURE: 'true' }), []);
    const keys = [
      'agent',
      'analytics',
      'auth',
      'bulk',
      'calendar',
      'data',
      'events',
      'files',
      'mcp',
      'metadata',
      'notifications',
      'ratelimit',
    ].map((name) => `${name} ${Buffer.alloc(32, name).toString('base64url')}`);
    const secure = {
      ...env,
      NATS_URL: 'tls://a:4222',
      NATS_NKEY_FILE: file('user.nk', ''),
      BUS_KEYS_FILE: file('keys', keys.join('\n')),
    };
    assert.deepEqual(problemsOf(secure), []);
  });
});
