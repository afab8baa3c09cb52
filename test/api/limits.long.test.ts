/** The section Limits of the specification, rule by rule. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ALL_SERVICES } from '../../config/services.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { Database } from '../../mixins/database/database.ts';
import { type Api, api, tokenFor } from '../support/client.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { compileCache, type ServiceProcess, startProcess } from '../support/processes.ts';

interface Printed {
  code: number | null;
  out: string;
  err: string;
}

describe('Limits', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let sam: Api;
  let mia: Api;
  before(async () => {
    platform = await startPlatform({ env: { RATE_CONNECTION_UNITS: '120' } });
    sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
    mia = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia'));
  });
  after(() => platform?.stop());

  it('page size: more than 200 is reduced to 200, which is reported', async () => {
    const answer = await mia.get('/data/Account?take=1000');
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.body.records.length <= 200, true);
    assert.equal(answer.headers.get('x-effective-take'), '200');
  });

  it('up to 10 conditions, no nested groups, up to 2 items in sort', async () => {
    const condition = (i: number) => ({ id: `c${i}`, field: 'name', operator: 'neq', value: 'x' });
    const filters = (conditions: unknown[]) => encodeURIComponent(JSON.stringify({ logic: 'and', conditions }));
    const many = Array.from({ length: 11 }, (_, i) => condition(i));
    assert.equal((await mia.get(`/data/Account?filters=${filters(many.slice(0, 10))}`)).status, 200);
    assert.equal((await mia.get(`/data/Account?filters=${filters(many)}`)).body.code, 'FILTER_TOO_MANY_CONDITIONS');
    const nested = [{ logic: 'or', conditions: [condition(1)] }];
    assert.equal((await mia.get(`/data/Account?filters=${filters(nested)}`)).body.code, 'FILTER_NESTED_GROUP');
    const sort = encodeURIComponent(JSON.stringify([{ id: 'name' }, { id: 'id' }, { id: 'createdAt' }]));
    assert.equal((await mia.get(`/data/Account?sort=${sort}`)).body.code, 'SORT_TOO_MANY');
  });

  it('1. every mutation requires Idempotency-Key of 8 to 200 characters', async () => {
    const post = (idempotencyKey: string | null) => mia.post('/data/Account', { name: 'Limits' }, { idempotencyKey });
    assert.equal((await post(null)).body.code, 'IDEMPOTENCY_KEY_REQUIRED');
    assert.equal((await post('short77')).body.code, 'IDEMPOTENCY_KEY_INVALID');
    assert.equal((await post('x'.repeat(201))).body.code, 'IDEMPOTENCY_KEY_INVALID');
    assert.equal((await post('x'.repeat(200))).status, 201);
  });

  it('2. exceeding the request limit yields 429; X-RateLimit-Remaining counts down to it', async () => {
    let remaining = Number.POSITIVE_INFINITY;
    const start = performance.now();
    /** Two units a second come back; those of a second before are known late. */
    const earned = (since: number): number => Math.ceil(((performance.now() - since) / 1_000) * 2) + 3;
    let last = start;
    for (let i = 0; i < 1_000; i++) {
      const answer = await sam.get('/identity');
      if (answer.status === 429) {
        assert.equal(answer.body.code, 'RATE_LIMIT_EXCEEDED');
        assert.deepEqual(answer.body.details, { policy: 'connection', limit: 120, windowSeconds: 60 });
        assert.ok(Number(answer.headers.get('retry-after')) >= 1);
        assert.ok(i >= 119 && i <= 120 + earned(start), `refused after ${i}`);
        return;
      }
      assert.equal(answer.status, 200);
      const now = Number(answer.headers.get('x-ratelimit-remaining'));
      assert.ok(now <= remaining + earned(last), `${remaining} then ${now}`);
      remaining = now;
      last = performance.now();
    }
    assert.fail('never refused');
  });

  it('3. GET /me/limits shows quotas and windows, and is free', async () => {
    const { body, status } = await mia.get('/me/limits');
    assert.equal(status, 200);
    const connection = body.policies.find((one: { name: string }) => one.name === 'connection');
    assert.equal(connection.limit, 120);
    assert.equal(connection.windowSeconds, 60);
    assert.ok(connection.used > 0);
    assert.ok(body.storage.usedBytes > 0);
    assert.equal((await sam.get('/me/limits')).status, 200, 'also when nothing is left');
  });

  describe('of a tenant', () => {
    let ada: Api;
    let database: Database;
    let dataDir: string;
    let operator: ServiceProcess;
    before(async () => {
      ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
      database = new Database(platform.database.url, { size: 1, applicationName: 'limits test' });
      // Another process on the same database, with the operators' socket.
      dataDir = await mkdtemp(join(tmpdir(), 'erp-limits-'));
      operator = await startProcess({
        services: ALL_SERVICES,
        databaseUrl: platform.database.url,
        natsUrl: '',
        env: { DATA_DIR: dataDir },
      });
    });
    after(async () => {
      await operator?.stop();
      await database?.close();
      await rm(dataDir, { recursive: true, force: true });
    });

    const settings = (rateLimits: object) => ({
      files: {
        'settings/General.yaml':
          'type: TenantSettings\napiName: General\nlocale: en\ntimezone: Europe/Berlin\ncurrency: EUR\n' +
          `rateLimits: ${JSON.stringify(rateLimits)}\n`,
      },
      package: { version: 1, types: [{ name: 'TenantSettings', members: ['General'] }] },
    });
    const limitsOf = async (caller: Api): Promise<Record<string, number>> => {
      const { body, status, text } = await caller.get('/me/limits');
      assert.equal(status, 200, text);
      return Object.fromEntries([
        ...body.policies.map(({ name, limit }: { name: string; limit: number }) => [name, limit]),
        ['concurrency', body.concurrency.limit],
      ]);
    };
    const run = (script: string, args: string[], typed = ''): Promise<Printed> =>
      new Promise((resolve, reject) => {
        const child = spawn(process.execPath, [join('scripts', script), ...args], {
          cwd: join(import.meta.dirname, '../..'),
          env: { PATH: process.env['PATH'], HOME: dataDir, ...compileCache(), DATA_DIR: dataDir, LOG_LEVEL: 'silent' },
        });
        child.stdin.end(typed);
        let [out, err] = ['', ''];
        child.stdout.on('data', (chunk) => (out += chunk));
        child.stderr.on('data', (chunk) => (err += chunk));
        child.once('error', reject);
        child.once('close', (code) => resolve({ code, out, err }));
      });
    const limits = (...args: string[]) => run('limits.ts', args);
    /** Grants are cached for five seconds. */
    const within = async (seconds: number, check: () => Promise<void>): Promise<void> => {
      for (const end = performance.now() + seconds * 1_000; ; )
        try {
          return await check();
        } catch (error) {
          if (performance.now() > end) throw error;
          await new Promise((resolve) => setTimeout(resolve, 250));
        }
    };

    it('cannot be widened by a deployment, which names the limit and its maximum', async () => {
      const wide = { connection: 121, tenant: 1_000_000_001, daily: 500_000, concurrency: 1_001 };
      const { body, status, text } = await ada.post('/metadata/validate', settings(wide));
      assert.equal(status, 200, text);
      assert.equal(body.valid, false);
      assert.deepEqual(
        body.blocked.map(({ code, message, details, line }: Record<string, unknown>) => [code, message, details, line]),
        [
          ['connection', 120],
          ['tenant', 1_000_000_000],
          ['concurrency', 1_000],
        ].map(([, max]) => [
          'LIMIT_EXCEEDED',
          `The limit can only be narrowed: ${max} at most. Only the operator of the platform widens it.`,
          { max },
          6,
        ]),
      );
      const client = {
        files: {
          'externalClients/Wide.yaml':
            'type: ExternalClient\napiName: Wide\nname: Wide\nactive: true\ngrantTypes: ["urn:ietf:params:oauth:grant-type:device_code"]\n' +
            'rateLimits: {connection: 121}\n',
        },
        package: { version: 1, types: [{ name: 'ExternalClient', members: ['Wide'] }] },
      };
      assert.equal((await ada.post('/metadata/validate', client)).body.blocked[0].code, 'LIMIT_EXCEEDED');
      assert.equal((await ada.post('/metadata/validate', settings({ connection: 120 }))).body.valid, true);
    });

    it('that are stored wider, by an older version or under a higher operator limit, are reduced', async () => {
      const stored = (connection: number | null) =>
        database.query(
          `UPDATE metadata.tenants SET rate_limits = rate_limits || jsonb_build_object('connection', $1::int) WHERE key = 'demo'`,
          [connection],
        );
      await stored(1_000_000);
      await new Promise((resolve) => setTimeout(resolve, 6_000));
      assert.equal((await limitsOf(ada))['connection'], 120);
      await stored(null);
    });

    it('are set by the operator with a command, everywhere within seconds, listed, removed and audited', async function () {
      this.timeout(120_000);
      const set = await limits('--tenant', 'demo', 'connection=500', 'concurrency=7');
      assert.equal(set.code, 0, set.err);
      assert.equal(set.out, 'demo: connection=500 tenant=default daily=default concurrency=7\n');
      await within(10, async () => {
        const found = await limitsOf(ada);
        assert.deepEqual([found['connection'], found['concurrency']], [500, 7]);
      });
      assert.equal((await ada.post('/metadata/validate', settings({ connection: 500 }))).body.valid, true);
      assert.equal((await ada.post('/metadata/validate', settings({ connection: 501 }))).body.valid, false);
      assert.equal((await limits()).out, set.out, 'listed');
      const eve = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'eve'));
      assert.equal((await limitsOf(eve))['connection'], 120, 'another tenant has what it had');

      const removed = await limits('--tenant', 'demo', 'connection=default', 'concurrency=default');
      assert.equal(removed.out, 'demo: connection=default tenant=default daily=default concurrency=default\n');
      assert.equal((await limits()).out, 'No limits are set: those of the deployment hold.\n');
      await within(10, async () => assert.equal((await limitsOf(ada))['connection'], 120));

      const { body } = await ada.get('/events/audit?operationId=metadata.tenants.setLimits');
      assert.deepEqual(
        body.records.map(({ outcome, actor, changes }: Record<string, unknown>) => [outcome, actor, changes]),
        [
          [500, null, 7, null],
          [null, 500, null, 7],
        ].map(([connectionFrom, connectionTo, concurrencyFrom, concurrencyTo]) => [
          'committed',
          { userId: null, clientId: null, agentRunId: null },
          [
            { field: 'concurrency', from: concurrencyFrom, to: concurrencyTo },
            { field: 'connection', from: connectionFrom, to: connectionTo },
          ],
        ]),
      );
    });

    it('are raised by the operator after the tenant lowered its own, until it deploys again', async function () {
      this.timeout(120_000);
      const narrow = { connection: 1, tenant: 1, daily: 1, concurrency: 1 };
      // With a partly used budget, a narrow limit leaves nothing.
      for (let i = 0; i < 30; i++) await ada.get('/identity');
      await database.query('UPDATE metadata.tenants SET rate_limits = $1 WHERE key = $2', [narrow, 'demo']);
      await new Promise((resolve) => setTimeout(resolve, 6_000));
      const repair = settings({ connection: 120 });
      const stuck = await ada.post('/metadata/validate', repair);
      assert.equal(stuck.status, 429, stuck.text);
      assert.ok(Number(stuck.headers.get('retry-after')) <= 86_400);
      const lifted = await limits('--tenant', 'demo', 'lift');
      assert.equal(
        lifted.out,
        'demo: connection=default tenant=default daily=default concurrency=default\n',
        lifted.err,
      );
      await within(10, async () => assert.equal((await limitsOf(ada))['tenant'], 1_000_000_000));
      await within(10, async () => {
        const { status, text } = await ada.post('/metadata/validate', repair);
        assert.equal(status, 200, text);
      });
      await within(20, async () => {
        const { body, text } = await ada.get('/events/audit?operationId=metadata.tenants.setLimits&take=1');
        assert.ok(body.records, text);
        const fields = body.records[0].changes.map(({ field, to }: Record<string, unknown>) => [field, to]);
        const names = ['concurrency', 'connection', 'daily', 'tenant'];
        assert.deepEqual(
          fields,
          names.map((name) => [`rateLimits.${name}`, null]),
        );
      });
    });

    it('can be set in the console, whose help lists the settings', async function () {
      this.timeout(60_000);
      const { out } = await run('repl.ts', [], 'help limits\nlimits demo tenant=77\nlimits demo tenant=none\n');
      assert.match(out, /connection=UNITS/);
      assert.match(out, /demo: connection=default tenant=77 daily=default/);
      assert.match(out, /tenant=none is not NAME=NUMBER/);
      assert.equal((await limits('--tenant', 'demo', 'tenant=default')).code, 0);
    });

    it('are unchanged by an invalid command', async function () {
      this.timeout(60_000);
      for (const args of [
        ['--tenant', 'nobody', 'connection=5'],
        ['connection=5'],
        ['--tenant', 'demo', 'connections=5'],
        ['--tenant', 'demo', 'connection=0'],
        ['--tenant', 'demo', 'connection=1e3'],
        ['--what'],
      ]) {
        const { code, err, out } = await limits(...args);
        assert.equal(code, 1, args.join(' '));
        assert.match(err, /^limits: /);
        assert.equal(out, '');
      }
      const help = await limits('--help');
      assert.equal(help.code, 0);
      assert.match(help.out, /connection=UNITS/);
      const wrong = { key: 'demo', limits: { connection: 0.5, nothing: 1 } };
      await assert.rejects(platform.broker.call<unknown, object>('metadata.tenants.setLimits', wrong), (error) => {
        assert.ok(error instanceof PlatformError);
        assert.equal(error.code, 'PARAMETER_INVALID');
        assert.equal(error.errors?.length, 2);
        return true;
      });
    });
  });
});
