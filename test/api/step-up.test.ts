import assert from 'node:assert/strict';
import { type Answer, type Api, api } from '../support/client.ts';
import { deployOverHttp } from '../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { authorize, authorizeUrl, Browser, exchange, pkce, type Seen } from './auth/browser.ts';
import { codeFor, sealedOn, secretOn } from './auth/factor-pages.ts';

const SETTINGS = 'settings/General.yaml';
const MFA = 'https://refeds.org/profile/mfa';

describe('API: step-up for operations of high risk', () => {
  let platform: TestPlatform;
  let settings: string;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    const ada = await session('ada@demo.example');
    const { body } = await ada.post('/metadata/retrieve', {
      package: { version: 1, types: [{ name: 'TenantSettings', members: ['General'] }] },
    });
    settings = body.files[SETTINGS];
    assert.match(settings, /type: TenantSettings/);
  });
  after(() => platform?.stop());

  const withPolicy = (policy: string): Record<string, string> => ({
    [SETTINGS]: `${settings.replace(/^secondFactor:.*\n/m, '')}secondFactor: ${policy}\n`,
  });
  const scope = 'data:read data:write metadata:deploy setup:read audit:read users:manage';
  const apiAfter = async (location: URL, verifier: string): Promise<Api> => {
    const { body } = await exchange(platform.baseUrl, location.searchParams.get('code') ?? '', verifier);
    return api(platform.baseUrl, body.access_token);
  };
  async function session(username: string, more: Record<string, string> = {}): Promise<Api> {
    const { verifier, challenge } = pkce();
    const browser = new Browser();
    return apiAfter(
      await authorize(browser, authorizeUrl(platform.baseUrl, challenge, { scope, ...more }), username),
      verifier,
    );
  }
  const challenged = (answer: Answer): void => {
    assert.equal(answer.status, 401, answer.text);
    assert.equal(answer.body.code, 'AUTHENTICATION_INSUFFICIENT');
  };

  it('is not required while the tenant requires no second factor', async () => {
    const ada = await session('ada@demo.example');
    const { body } = await ada.get('/data/User?take=1');
    const [user] = body.records;
    const patched = await ada.patch(
      `/data/User/${user.id}`,
      { fields: { timezone: 'Europe/Berlin' } },
      { etag: `"${user.recordVersion}"` },
    );
    assert.notEqual(patched.status, 401, patched.text);
    await deployOverHttp(ada, withPolicy('off'));
  });

  it('completes: challenge, authorization with acr_values and max_age, second factor, success', async () => {
    const before = await session('ada@demo.example');
    const sam = await session('sam@demo.example');
    await deployOverHttp(before, withPolicy('everyone'));
    const { verifier, challenge } = pkce();
    const browser = new Browser();
    const first = await browser.submit(await browser.visit(authorizeUrl(platform.baseUrl, challenge, { scope })), {
      username: 'ada@demo.example',
      password: 'demo-password',
    });
    assert.match(first.html, /Protect your account/);
    const secret = secretOn(first);
    const codes: Seen = await browser.submit(first, {
      decision: 'addApp',
      setup: sealedOn(first),
      code: codeFor(secret),
    });
    const consent = await browser.submit(codes);
    const { location } = await browser.submit(consent);
    assert.ok(location);
    const recent = await apiAfter(location, verifier);
    await deployOverHttp(recent, withPolicy('everyone'));

    // The token of the earlier sign-in has one factor: its next request reflects that after five seconds at the latest.
    let answer = await before.post('/data/User', {});
    for (let i = 0; i < 200 && answer.status !== 401; i++) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      answer = await before.post('/data/User', {});
    }
    challenged(answer);
    challenged(await before.post('/metadata/deploy', {}));
    challenged(await before.put('/data/User/by/username/x', {}));
    assert.notEqual(
      (await before.post('/data/User/check', { operation: 'create', fields: {} })).status,
      401,
      'a dry run needs no step-up',
    );
    const own = (await sam.get('/identity')).body.user;
    const refusal = await sam.patch(`/data/User/${own.id}`, { fields: { timezone: 'Europe/Berlin' } }, { etag: '"1"' });
    assert.equal(refusal.body.code, 'OBJECT_PERMISSION_DENIED', 'no sign-in would let them');
    assert.notEqual((await before.post('/data/Account', {})).status, 401, 'business data needs no step-up');
    assert.equal((await before.get('/data/User?take=1')).status, 200);

    const [, acr, age] = /acr_values="([^"]+)", max_age=(\d+)/.exec(answer.headers.get('www-authenticate') ?? '') ?? [];
    assert.equal(acr, MFA);
    const again = pkce();
    const stepUp = new Browser();
    const page = await stepUp.submit(
      await stepUp.visit(
        authorizeUrl(platform.baseUrl, again.challenge, { scope, acr_values: acr, max_age: String(age) }),
      ),
      { username: 'ada@demo.example', password: 'demo-password' },
    );
    assert.match(page.html, /Confirm it is you/);
    const wrong = await stepUp.submit(page, { code: '000000' });
    assert.equal(wrong.status, 401);
    const allowed = await stepUp.submit(await stepUp.submit(page, { code: codeFor(secret, 1) }));
    assert.ok(allowed.location);
    const after = await apiAfter(allowed.location, again.verifier);
    assert.notEqual((await after.post('/data/User', {})).status, 401);

    const { body } = await after.get('/events/audit?operationId=auth.factors.authenticatorAdded');
    const { body: me } = await after.get('/identity');
    const { body: refused } = await after.get('/events/audit?outcome=denied&objectApiName=User');
    assert.ok(refused.records.some((entry: { code: string }) => entry.code === 'SECOND_FACTOR_WRONG'));
    const [{ actor, objectApiName, recordId, outcome }] = body.records;
    assert.deepEqual([actor.userId, objectApiName, recordId, outcome], [me.user.id, 'User', me.user.id, 'committed']);
  });
});
