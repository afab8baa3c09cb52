/** Refused sign-ins are recorded in the audit trail of the intended tenant, without any typed text. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { authorizeUrl, Browser, pkce } from './browser.ts';

interface Entry {
  actor: { userId: string | null; clientId: string | null };
  operationId: string;
  outcome: string;
  code: string;
  objectApiName: string | null;
  recordId: string | null;
  ip: string;
  requestId: string;
  changes: unknown;
}

describe('a refused sign-in', () => {
  let platform: TestPlatform;
  let ada: Api;
  let eve: Api;
  before(async () => {
    platform = await startPlatform({ env: { TRUSTED_PROXIES: '1' } });
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    eve = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'eve'));
  });
  after(() => platform?.stop());

  const attempt = async (username: string, password: string, ip: string): Promise<number> => {
    const browser = new Browser({ 'x-forwarded-for': ip });
    const page = await browser.visit(authorizeUrl(platform.baseUrl, pkce().challenge));
    return (await browser.submit(page, { username, password })).status;
  };
  const entriesOf = async (reader: Api): Promise<Entry[]> =>
    (await reader.get('/events/audit?operationId=auth.user.signIn&take=200')).body.records;
  /** Entries are written a moment later. */
  const eventually = async (reader: Api, count: number): Promise<Entry[]> => {
    for (let i = 0; i < 100; i++) {
      const entries = await entriesOf(reader);
      if (entries.length >= count) return entries;
      await pause(50);
    }
    return entriesOf(reader);
  };

  it('leaves an entry with address, client and reason in the trail of the intended tenant', async () => {
    assert.equal(await attempt('sam@demo.example', 'not it', '198.51.100.1'), 401);
    assert.equal(await attempt('hunter2-typed-here@demo.example', 'x', '198.51.100.2'), 401);
    assert.equal(await attempt('acme\\hunter3', 'x', '198.51.100.3'), 401);
    assert.equal(await attempt('hunter4', 'x', '198.51.100.4'), 401);
    const asSam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
    const sam: string = (await asSam.get('/identity')).body.user.id;
    const entries = (await eventually(ada, 2)).toReversed();
    assert.deepEqual(
      entries.map(({ code, recordId, ip, outcome, objectApiName }) => [code, recordId, ip, outcome, objectApiName]),
      [
        ['PASSWORD_WRONG', sam, '198.51.100.1', 'denied', 'User'],
        ['USER_UNKNOWN', null, '198.51.100.2', 'denied', 'User'],
      ],
    );
    for (const { actor, requestId } of entries) {
      assert.deepEqual([actor.userId, actor.clientId], [null, 'erp-cli']);
      assert.match(requestId, /^req_/);
    }
    assert.deepEqual(
      (await eventually(eve, 1)).map(({ code, ip }) => [code, ip]),
      [['USER_UNKNOWN', '198.51.100.3']],
    );
    for (const reader of [ada, eve])
      assert.doesNotMatch((await reader.get('/events/audit?take=200')).text, /hunter|not it/);
  });

  it('is recorded also when it has to wait, and a flood as a few entries and a count', async () => {
    const before = (await entriesOf(ada)).length;
    for (let i = 0; i < 45; i++) await attempt('sue@demo.example', `guess ${i}`, '203.0.113.7');
    const entries = (await eventually(ada, before + 30)).slice(0, -before);
    assert.equal(entries.length, 30);
    assert.deepEqual(new Set(entries.map(({ code }) => code)), new Set(['PASSWORD_WRONG', 'SIGN_IN_BLOCKED']));
    await attempt('sue@demo.example', 'guess', '203.0.113.8');
    assert.equal((await eventually(ada, before + 31))[0]!.ip, '203.0.113.8', 'another network has entries still');
  });
});
