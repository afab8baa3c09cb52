/** The section Limits of the specification, rule by rule. */
import assert from 'node:assert/strict';
import { type Api, api, tokenFor } from '../support/client.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

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

  it('page size: more than 200 is answered with 200, and said', async () => {
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
    for (let i = 0; i < 200; i++) {
      const answer = await sam.get('/identity');
      if (answer.status === 429) {
        assert.equal(answer.body.code, 'RATE_LIMIT_EXCEEDED');
        assert.deepEqual(answer.body.details, { policy: 'connection', limit: 120, windowSeconds: 60 });
        assert.ok(Number(answer.headers.get('retry-after')) >= 1);
        assert.ok(i >= 119 && i <= 130, `refused after ${i}`);
        return;
      }
      assert.equal(answer.status, 200);
      const now = Number(answer.headers.get('x-ratelimit-remaining'));
      assert.ok(now <= remaining + 3, `${remaining} then ${now}`);
      remaining = now;
    }
    assert.fail('never refused');
  });

  it('3. GET /me/limits shows quotas and windows, and costs nothing', async () => {
    const { body, status } = await mia.get('/me/limits');
    assert.equal(status, 200);
    const connection = body.policies.find((one: { name: string }) => one.name === 'connection');
    assert.equal(connection.limit, 120);
    assert.equal(connection.windowSeconds, 60);
    assert.ok(connection.used > 0);
    assert.ok(body.storage.usedBytes > 0);
    assert.equal((await sam.get('/me/limits')).status, 200, 'also when nothing is left');
  });
});
