/** A wrong setting stops the start with one sentence that names it. */
import assert from 'node:assert/strict';
import { readConfig } from '../../../config/env.ts';
import { ALL_SERVICES } from '../../../config/services.ts';

describe('the configuration', () => {
  it('has a default for everything', () => {
    const config = readConfig({});
    assert.equal(config.port, 3000);
    assert.equal(config.databaseUrl, null);
    assert.equal(config.natsUrl, null);
    assert.deepEqual(config.services, ALL_SERVICES);
    assert.equal(config.seedDemo, true);
    assert.match(config.dataDir, /\/\.data$/);
  });

  it('takes an empty variable as not set', () => {
    const names = ['PORT', 'DATABASE_URL', 'NATS_URL', 'SERVICES', 'BASE_URL', 'PLATFORM_SECRET', 'LOG_LEVEL'];
    assert.deepEqual(readConfig(Object.fromEntries(names.map((name) => [name, '']))), readConfig({}));
  });

  it('never seeds demo users in production', () => {
    assert.equal(readConfig({ NODE_ENV: 'production', SEED_DEMO: 'true' }).seedDemo, false);
  });

  it('knows which services a process runs, each once', () => {
    const config = readConfig({ SERVICES: ' data , gateway,data ', NATS_URL: 'nats://localhost:4222' });
    assert.deepEqual(config.services, ['data', 'gateway']);
  });

  it('takes a list of NATS servers, and an address without its last slash', () => {
    assert.equal(readConfig({ NATS_URL: 'nats://a:4222,nats://b:4222' }).natsUrl, 'nats://a:4222,nats://b:4222');
    assert.equal(readConfig({ BASE_URL: 'https://erp.example/' }).baseUrl, 'https://erp.example');
  });

  const wrong: [variable: string, value: string][] = [
    ['PORT', 'http'],
    ['PORT', '65536'],
    ['PORT', '-1'],
    ['PORT', '80.5'],
    ['HEALTH_PORT', 'x'],
    ['DATABASE_POOL_SIZE', '0'],
    ['TRUSTED_PROXIES', '11'],
    ['LOG_LEVEL', 'loud'],
    ['SERVICES', 'gateway,mail'],
    ['DATABASE_URL', 'mysql://localhost/erp'],
    ['DATABASE_URL', 'localhost:5432'],
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

  it('does not repeat a secret in what it says', () => {
    for (const variable of ['PLATFORM_SECRET', 'DATABASE_URL'])
      assert.throws(
        () => readConfig({ [variable]: 'hunter2:secret' }),
        (error: Error) => !error.message.includes('hunter2'),
      );
  });

  it('needs a bus when only some services run here', () => {
    assert.throws(() => readConfig({ SERVICES: 'data' }), /NATS_URL/);
  });
});
