/** A wrong setting stops the start with one sentence that names it. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { readConfig } from '../../../config/env.ts';
import { ALL_SERVICES } from '../../../config/services.ts';

/** As `openssl rand -base64 48` makes one. */
const SECRET = 'hT3Vq0yXo7mB1rKzE9cWfUa5LdJs2GiNpQ8vYt6xZb4R/wOu+lHkMeCgDjAnSPIF';

const SAFE = {
  NODE_ENV: 'production',
  PLATFORM_SECRET: SECRET,
  BASE_URL: 'https://erp.example',
  DATABASE_URL: 'postgres://erp:Zk3_vQ9-mT@localhost/erp',
};

describe('the configuration', () => {
  it('has a default for everything', () => {
    const config = readConfig({});
    assert.equal(config.port, 3000);
    assert.equal(config.databaseUrl, null);
    assert.equal(config.bus, null);
    assert.deepEqual(config.services, ALL_SERVICES);
    assert.equal(config.seedDemo, true);
    assert.match(config.dataDir, /\/\.data$/);
  });

  it('treats an empty variable as not set', () => {
    const names = ['PORT', 'DATABASE_URL', 'NATS_URL', 'SERVICES', 'BASE_URL', 'PLATFORM_SECRET', 'LOG_LEVEL'];
    assert.deepEqual(readConfig(Object.fromEntries(names.map((name) => [name, '']))), readConfig({}));
  });

  it('reads the database logins of services, and requires one without a fallback', () => {
    const own = {
      DATABASE_URL_DATA: 'postgres://login_data:x@db/erp',
      DATABASE_URL_AUTH: 'postgres://login_auth:y@db/erp',
    };
    const env = { ...own, SERVICES: 'auth,data', NATS_URL: 'nats://localhost:4222' };
    assert.deepEqual(readConfig(env).databaseUrls, { auth: own.DATABASE_URL_AUTH, data: own.DATABASE_URL_DATA });
    assert.throws(() => readConfig(own), /DATABASE_URL_GATEWAY is not set/);
    assert.equal(readConfig({ ...own, DATABASE_URL: 'postgres://owner:z@db/erp' }).databaseUrls.gateway, undefined);
  });

  it('normalizes hosts of identity providers', () => {
    const hosts = (SSO_PRIVATE_HOSTS: string) => readConfig({ SSO_PRIVATE_HOSTS }).ssoPrivateHosts;
    assert.deepEqual(hosts(''), []);
    assert.deepEqual(hosts('Login.Corp.example, 10.0.0.7:8443,[::1]:9'), [
      'login.corp.example',
      '10.0.0.7:8443',
      '[::1]:9',
    ]);
    for (const wrong of ['https://login.corp.example', 'login.corp.example/path', 'a b', 'user@host', '*'])
      assert.throws(() => hosts(wrong), /SSO_PRIVATE_HOSTS lists hosts/, wrong);
  });

  it('accepts a contact that fits a line of security.txt', () => {
    const contactOf = (SECURITY_CONTACT: string): string | null => readConfig({ SECURITY_CONTACT }).securityContact;
    assert.equal(contactOf(''), null);
    assert.equal(contactOf('mailto:security@erp.example'), 'mailto:security@erp.example');
    assert.doesNotMatch(contactOf('https://erp.example/a\nContact: mailto:mallory@example.com') ?? '', /\n/);
    for (const text of ['security@erp.example', 'javascript:alert(1)', 'http://erp.example'])
      assert.throws(() => contactOf(text), /^ConfigError: SECURITY_CONTACT must be an address/, text);
  });

  it('enables sign-in in the API reference with the demo, or when the operator sets it', () => {
    const isOffered = (env: Record<string, string>): boolean => readConfig(env).referenceSignIn;
    assert.equal(isOffered({}), true);
    for (const env of [
      { SEED_DEMO: 'false' },
      { DATABASE_ALLOW_DEVELOPMENT: 'true' },
      { API_REFERENCE_SIGN_IN: 'false' },
      SAFE,
    ])
      assert.equal(isOffered(env), false, JSON.stringify(env));
    assert.equal(isOffered({ ...SAFE, API_REFERENCE_SIGN_IN: 'true' }), true);
    assert.throws(() => isOffered({ API_REFERENCE_SIGN_IN: 'yes' }), /^ConfigError: API_REFERENCE_SIGN_IN must be one/);
  });

  it('never seeds demo users in production', () => {
    assert.equal(readConfig({ ...SAFE, SEED_DEMO: 'true' }).seedDemo, false);
  });

  it('accepts only production, development and test as environment', () => {
    assert.equal(readConfig(SAFE).production, true);
    for (const mode of ['', 'development', 'test']) assert.equal(readConfig({ NODE_ENV: mode }).production, false);
    for (const mode of ['Production', 'PRODUCTION', 'prod', 'production ', 'staging'])
      assert.throws(
        () => readConfig({ ...SAFE, NODE_ENV: mode }),
        /^ConfigError: NODE_ENV must be one of production, development, test/,
        mode,
      );
  });

  it('lists the services of a process, each once', () => {
    const config = readConfig({ SERVICES: ' data , gateway,data ', NATS_URL: 'nats://localhost:4222' });
    assert.deepEqual(config.services, ['data', 'gateway']);
  });

  it('sets a drain time for gateways on a bus, within the shutdown time', () => {
    const graceOf = (env: NodeJS.ProcessEnv): number => readConfig(env).shutdownGraceSeconds;
    const bus = { NATS_URL: 'nats://localhost:4222' };
    assert.equal(graceOf({}), 0);
    assert.equal(graceOf(bus), 5);
    assert.equal(graceOf({ ...bus, SERVICES: 'data' }), 0);
    assert.equal(graceOf({ ...bus, SHUTDOWN_SECONDS: '6' }), 2);
    assert.equal(graceOf({ ...bus, SHUTDOWN_SECONDS: '40', SHUTDOWN_GRACE_SECONDS: '30' }), 30);
  });

  it('accepts a list of NATS servers, and removes a trailing slash', () => {
    assert.deepEqual(readConfig({ NATS_URL: 'nats://a:4222,nats://b:4222' }).bus?.servers, ['a:4222', 'b:4222']);
    assert.equal(readConfig({ BASE_URL: 'https://erp.example/' }).baseUrl, 'https://erp.example');
  });

  const wrong: [variable: string, value: string][] = [
    ['PORT', 'http'],
    ['PORT', '65536'],
    ['PORT', '-1'],
    ['PORT', '80.5'],
    ['HEALTH_PORT', 'x'],
    ['SHUTDOWN_SECONDS', '4'],
    ['SHUTDOWN_GRACE_SECONDS', '7'],
    ['DATABASE_POOL_SIZE', '0'],
    ['TRUSTED_PROXIES', '11'],
    ['LOG_LEVEL', 'loud'],
    ['SERVICES', 'gateway,mail'],
    ['DATABASE_URL', 'mysql://localhost/erp'],
    ['DATABASE_URL', 'localhost:5432'],
    ['DATABASE_URL', 'postgres://a,b/erp'],
    ['DATABASE_URL', 'postgresql://erp:x,y@a:5432,b:5432/erp'],
    ['DATABASE_URL_DATA', 'postgres://erp@/erp?host=a,b'],
    ['NATS_URL', 'localhost:4222'],
    ['NATS_URL', 'nats://a:4222,b'],
    ['BASE_URL', 'erp.example'],
    ['PLATFORM_SECRET', 'short'],
    ['CONCURRENCY', '0'],
  ];
  for (const [variable, value] of wrong)
    it(`refuses ${variable}=${value}`, () => {
      assert.throws(
        () => readConfig({ [variable]: value }),
        (error: Error) =>
          error.name === 'ConfigError' && error.message.startsWith(variable) && !error.message.includes('\n'),
      );
    });

  it('repeats no secret in its messages', () => {
    for (const variable of ['PLATFORM_SECRET', 'DATABASE_URL'])
      assert.throws(
        () => readConfig({ [variable]: 'hunter2:secret' }),
        (error: Error) => !error.message.includes('hunter2'),
      );
  });

  it('requires a bus when only some services run here', () => {
    assert.throws(() => readConfig({ SERVICES: 'data' }), /NATS_URL/);
  });
});

describe('the configuration of production', () => {
  const production = (env: Record<string, string>) =>
    readConfig({ ...SAFE, NATS_ALLOW_INSECURE: 'true', DATABASE_ALLOW_INSECURE: 'true', ...env });
  const problemsOf = (env: Record<string, string>): string[] => {
    try {
      production(env);
    } catch (error) {
      assert.ok(error instanceof Error && error.name === 'ConfigError');
      return error.message.split('\n').slice(1);
    }
    return [];
  };

  it('reports all unsafe settings at once, without repeating secrets', () => {
    const problems = problemsOf({
      PLATFORM_SECRET: '',
      DATABASE_URL: 'postgres://erp:postgres@db/erp?password=hunter2',
      NATS_URL: 'nats://a:4222,nats://bus:changeme@c:4222',
    });
    assert.equal(problems.length, 3);
    assert.match(problems[0]!, /PLATFORM_SECRET is not set/);
    assert.match(problems[1]!, /DATABASE_URL has a password that everybody knows/);
    assert.match(problems[2]!, /NATS_URL has a password that everybody knows/);
    assert.doesNotMatch(problems.join(), /hunter2|changeme/);
  });

  for (const secret of [
    'a'.repeat(64),
    'abc123'.repeat(8),
    'changeme-changeme-changeme-012345',
    'correct horse battery password staple',
    'please put an example of a secret here',
  ])
    it(`refuses a secret like ${secret.slice(0, 20)}…`, () => {
      assert.match(problemsOf({ PLATFORM_SECRET: secret })[0]!, /PLATFORM_SECRET can be guessed/);
      assert.match(problemsOf({ FILES_KEY: secret })[0]!, /FILES_KEY can be guessed/);
    });

  it('accepts random secrets in any alphabet', () => {
    for (let i = 0; i < 200; i++)
      for (const secret of [
        randomBytes(48).toString('base64'),
        randomBytes(24).toString('base64url'),
        randomBytes(32).toString('hex'),
        randomUUID(),
      ])
        assert.deepEqual(problemsOf({ PLATFORM_SECRET: secret }), [], secret);
  });

  for (const password of ['postgres', 'Password', 'erp', 'secret', 'p%6Fstgres', '123456', 'billing', 'nats'])
    it(`refuses the password ${password} of the user billing`, () => {
      assert.equal(problemsOf({ DATABASE_URL: `postgres://billing:${password}@db/erp` }).length, 1);
      assert.equal(problemsOf({ NATS_URL: `nats://billing:${password}@bus:4222` }).length, 1);
    });

  it('finds them anywhere in an address, along with too short secrets', () => {
    for (const address of ['postgres://db/erp?user=erp&password=postgres', 'postgresql://erp:Erp@db/erp'])
      assert.equal(problemsOf({ DATABASE_URL: address }).length, 1, address);
    assert.equal(problemsOf({ NATS_URL: 'nats://secret@bus:4222' }).length, 1);
    assert.equal(problemsOf({ PLATFORM_SECRET: 'short', DATABASE_URL: 'postgres://erp:erp@db/erp' }).length, 2);
  });

  it('accepts passwords that are not well known, and addresses without one', () => {
    for (const user of ['erp:Zk3_vQ9-mT', 'erp', ''])
      assert.deepEqual(problemsOf({ DATABASE_URL: `postgres://${user}${user && '@'}db/erp` }), []);
  });

  it('can replace a secret that was guessable', () => {
    assert.equal(production({ PLATFORM_SECRET_PREVIOUS: 'a'.repeat(32) }).previousSecret, 'a'.repeat(32));
    assert.throws(() => production({ PLATFORM_SECRET_PREVIOUS: SECRET }), /PLATFORM_SECRET_PREVIOUS/);
  });

  it("requires no secret for an operator's command, but its own password", () => {
    const env = { NODE_ENV: 'production', DATABASE_URL: 'postgres://erp:Zk3_vQ9-mT@localhost/erp' };
    assert.equal(readConfig(env, { command: true }).secret, null);
    assert.throws(() => readConfig({ ...env, DATABASE_URL: 'postgres://erp:erp@localhost/erp' }, { command: true }));
    assert.equal(readConfig({ NODE_ENV: 'production' }, { command: true }).databaseUrl, null);
  });

  it('requires verified TLS to a remote database', () => {
    const refusals = (DATABASE_URL: string): string[] => problemsOf({ DATABASE_URL, DATABASE_ALLOW_INSECURE: '' });
    for (const query of [
      '',
      '?sslmode=disable',
      '?sslmode=prefer',
      '?sslmode=no-verify',
      '?ssl=true',
      '?uselibpqcompat=true&sslmode=require',
    ])
      assert.match(refusals(`postgres://erp@db.internal/erp${query}`).join(), /^- DATABASE_URL .*TLS/, query);
    assert.match(refusals('postgres://erp@localhost/erp?host=db.internal').join(), /TLS/);
    for (const mode of ['require', 'verify-ca', 'verify-full'])
      assert.deepEqual(refusals(`postgres://erp@db.internal/erp?sslmode=${mode}`), []);
    for (const here of ['localhost', '127.0.0.1', '[::1]', '%2Fvar%2Frun%2Fpostgresql'])
      assert.deepEqual(refusals(`postgres://erp@${here}/erp`), [], here);
    for (const here of ['postgres:///erp', 'postgres:///erp?host=/var/run/postgresql'])
      assert.deepEqual(refusals(here), [], here);
    const own = { DATABASE_URL_DATA: 'postgres://erp@db.internal/erp', DATABASE_ALLOW_INSECURE: '' };
    assert.match(problemsOf(own).join(), /^- DATABASE_URL_DATA .*TLS/);
    assert.match(
      problemsOf({ DATABASE_URL: 'postgres://erp@db.internal/erp', DATABASE_ALLOW_INSECURE: 'yes' }).join(),
      /DATABASE_ALLOW_INSECURE=true/,
    );
    assert.deepEqual(problemsOf({ DATABASE_URL: 'postgres://erp@db.internal/erp' }), [], 'opted out');
  });

  it('does not run on the embedded database', () => {
    assert.match(problemsOf({ DATABASE_URL: '' }).join(), /^- DATABASE_URL is not set: the embedded database/);
  });

  it('requires an https address on the gateway', () => {
    assert.match(problemsOf({ BASE_URL: '' }).join(), /^- BASE_URL is not set/);
    assert.match(problemsOf({ BASE_URL: 'http://erp.example' }).join(), /^- BASE_URL must begin with https/);
    for (const here of ['http://localhost:3000', 'http://127.0.0.1', 'http://[::1]:3000'])
      assert.deepEqual(problemsOf({ BASE_URL: here }), []);
    for (const BASE_URL of ['', 'http://erp.example'])
      assert.deepEqual(problemsOf({ BASE_URL, BASE_URL_ALLOW_INSECURE: 'true' }), []);
    assert.deepEqual(problemsOf({ BASE_URL: '', SERVICES: 'data', NATS_URL: 'nats://bus:4222' }), []);
  });
});
