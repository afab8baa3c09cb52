/** Limits and charges for one tenant's database time. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import type { ServiceName } from '../../config/services.ts';
import { type Answer, type Api, api, tokenFor } from '../support/client.ts';
import { startNats } from '../support/nats.ts';
import { createPlatformDatabase, startPlatform, type TestPlatform } from '../support/platform.ts';

/** Makes PostgreSQL take this long for each record of the object that the tenant reads. */
async function slowDown(platform: TestPlatform, tenantId: string, object: string, seconds: number): Promise<void> {
  const client = new pg.Client({ connectionString: platform.database.url });
  await client.connect();
  try {
    const table = `t_${tenantId.replaceAll('-', '')}."${object}"`;
    await client.query(
      `CREATE POLICY slow ON ${table} USING (pg_sleep(${seconds}) IS NOT NULL);
       ALTER TABLE ${table} ENABLE ROW LEVEL SECURITY`,
    );
  } finally {
    await client.end();
  }
}

const timed = async <T>(work: Promise<T>): Promise<{ answer: T; ms: number }> => {
  const started = performance.now();
  const answer = await work;
  return { answer, ms: performance.now() - started };
};

const tenantOf = async (who: Api): Promise<string> => (await who.get('/identity')).body.tenant.id;

describe('a tenant whose requests occupy the database for long', function () {
  this.timeout(120_000);

  describe('other tenants', () => {
    const RECORDS = 50;
    let platform: TestPlatform;
    let slow: Promise<Answer[]>;

    before(async () => {
      platform = await startPlatform({ env: { DATABASE_POOL_SIZE: '10' } });
      const mia = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia'));
      const eve = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'eve'));
      assert.equal((await eve.get('/data/Account?take=1')).status, 200);
      await slowDown(platform, await tenantOf(mia), 'Account', 2 / RECORDS);
      slow = Promise.all(Array.from({ length: 40 }, () => mia.get(`/data/Account?take=${RECORDS}`)));
      await pause(500);
    });
    after(async () => {
      await slow;
      await platform?.stop();
    });

    it('get their lists at once', async () => {
      const eve = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'eve'));
      for (let n = 0; n < 5; n++) {
        const { answer, ms } = await timed(eve.get('/data/Account?take=5'));
        assert.equal(answer.status, 200, answer.text);
        assert.ok(ms < 1_000, `${Math.round(ms)} ms`);
      }
    });

    it('sign in at once, as do its own users', async () => {
      const { ms } = await timed(tokenFor(platform.baseUrl, 'sue'));
      assert.ok(ms < 4_000, `${Math.round(ms)} ms`);
    });

    it('are protected by its concurrency limit', async () => {
      const answers = await slow;
      const refused = answers.filter(({ status }) => status !== 200);
      assert.ok(refused.length > 0 && refused.length < 40, `${refused.length} of 40`);
      for (const { status, body, headers } of refused) {
        assert.equal(status, 429, body);
        assert.equal(body.code, 'CONCURRENCY_LIMIT_EXCEEDED');
        assert.deepEqual(body.details, { max: 5 });
        assert.equal(headers.get('retry-after'), '1');
      }
    });
  });

  describe('charges', () => {
    let platform: TestPlatform;
    let mia: Api;
    let eve: Api;

    before(async () => {
      platform = await startPlatform({ env: { RATE_CONNECTION_UNITS: '600' } });
      mia = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia'));
      eve = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'eve'));
      await slowDown(platform, await tenantOf(mia), 'Account', 1);
    });
    after(() => platform?.stop());

    const remaining = async (who: Api): Promise<number> => {
      const { body } = await who.get('/me/limits');
      return body.policies.find(({ name }: { name: string }) => name === 'connection').remaining;
    };

    it('cover a list, which ends after five seconds with advice', async () => {
      const { answer, ms } = await timed(mia.get('/data/Account?take=50'));
      assert.equal(answer.status, 503, answer.text);
      assert.equal(answer.body.code, 'SERVICE_UNAVAILABLE');
      assert.match(answer.body.message, /exceeded the time limit of 5 s\. Narrow the filter/);
      assert.ok(ms > 4_900 && ms < 25_000, `${Math.round(ms)} ms, and 50 s without a limit`);
      const left = await remaining(mia);
      assert.ok(left < 200, `${left} units are left of 600; 5 s cost 475 beyond the price`);
    });

    it('use up its budget, while other tenants continue', async () => {
      await mia.get('/data/Account?take=50');
      const refused = await mia.get('/data/Contact?take=1');
      assert.equal(refused.status, 429, refused.text);
      assert.equal(refused.body.code, 'RATE_LIMIT_EXCEEDED');
      assert.equal(refused.body.details.policy, 'connection');
      assert.ok(Number(refused.headers.get('retry-after')) > 5, refused.headers.get('retry-after') ?? '');
      assert.equal((await eve.get('/data/Account?take=5')).status, 200);
    });
  });

  it('is charged over the bus as well', async () => {
    const nats = await startNats();
    const env = { RATE_CONNECTION_UNITS: '600' };
    const database = await createPlatformDatabase();
    const started: TestPlatform[] = [];
    const run = async (...services: ServiceName[]): Promise<TestPlatform> => {
      const platform = await startPlatform({ services, natsUrl: nats.url, database, env });
      started.push(platform);
      return platform;
    };
    try {
      const [{ baseUrl }] = await Promise.all([run('gateway', 'auth', 'ratelimit'), run('data', 'metadata')]);
      // The processes discover each other within a moment.
      const signIn = async (attempt = 1): Promise<string> =>
        tokenFor(baseUrl, 'mia').catch((error) => {
          if (attempt === 20) throw error;
          return pause(500).then(() => signIn(attempt + 1));
        });
      const mia = api(baseUrl, await signIn());
      await slowDown(started[0]!, await tenantOf(mia), 'Account', 1);
      assert.equal((await mia.get('/data/Account?take=50')).status, 503);
      const { body } = await mia.get('/me/limits');
      assert.ok(body.policies[0].remaining < 200, JSON.stringify(body.policies[0]));
    } finally {
      for (const platform of started) await platform.stop();
      await database.drop();
      await nats.stop();
    }
  });
});
