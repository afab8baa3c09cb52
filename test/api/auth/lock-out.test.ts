/** Failed sign-ins delay further attempts without locking out other users. */
import assert from 'node:assert/strict';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { call } from '../../../contracts/call.ts';
import { TENANT_ATTEMPTS } from '../../../services/auth/attempt-limits.ts';
import { AuthStore } from '../../../services/auth/store/store.ts';
import { authorizeUrl, Browser, pkce, type Seen } from './browser.ts';
import { type AuthHarness, DEMO, PASSWORD, SAM, startAuth } from './harness.ts';

const USER = 'sam@demo.example';

describe('password guessing', () => {
  let auth: AuthHarness;
  before(async () => {
    auth = await startAuth();
  });
  after(() => auth.stop());
  beforeEach(async () => {
    await auth.database.query('DELETE FROM auth.attempts');
    await auth.database.query('DELETE FROM auth.known_origins');
  });

  const attempt = async (
    username: string,
    password: string,
    address: string,
    browser = new Browser(),
  ): Promise<Seen> => {
    // Signed out, but still the same browser.
    for (const name of browser.cookies.keys()) if (!name.startsWith('erp_browser')) browser.cookies.delete(name);
    const page = await browser.open(authorizeUrl(auth.baseUrl, pkce().challenge), undefined, {
      'x-test-address': address,
    });
    const form = await browser.open(page.location!, undefined, { 'x-test-address': address });
    return browser.submit(form, { username, password }, { 'x-test-address': address });
  };
  const statuses = async (attempts: readonly Promise<Seen>[]): Promise<number[]> =>
    (await Promise.all(attempts)).map(({ status }) => status);
  /** Guesses until unknown browsers are refused for this name. */
  const lock = async (username: string): Promise<void> => {
    for (let i = 0; i < 5; i++) await attempt(username, `guess-${i}`, `203.0.113.${i}`);
    assert.equal((await attempt(username, PASSWORD, '203.0.113.99')).status, 429);
  };

  it('from a blocked address counts against that address only', async () => {
    for (let i = 0; i < 30; i++) await attempt(`user${i}@demo.example`, 'guess', '198.51.100.7');
    for (let i = 0; i < 12; i++) assert.equal((await attempt(USER, 'guess', '198.51.100.7')).status, 429);
    const { rows } = await auth.database.query<{ n: number }>(
      "SELECT count(*)::int AS n FROM auth.attempts WHERE key = 'user ' || $1::text",
      [SAM],
    );
    assert.equal(rows[0]!.n, 0);
    for (let i = 0; i < 4; i++) assert.equal((await attempt(USER, 'guess', '198.51.100.8')).status, 401);
    assert.equal((await attempt(USER, PASSWORD, '198.51.100.9')).status, 200);
  });

  it('does not lock out the user in a browser or network where they have signed in before', async () => {
    const mine = new Browser();
    assert.equal((await attempt(USER, PASSWORD, '192.0.2.1', mine)).status, 200);
    await lock(USER);
    assert.equal((await attempt(USER, PASSWORD, '192.0.2.77', mine)).status, 200, 'the browser, on the way');
    assert.equal((await attempt(USER, PASSWORD, '192.0.2.1')).status, 200, 'the network, with a new browser');
    assert.equal((await attempt(USER, PASSWORD, '203.0.113.98')).status, 429, 'and strangers still wait');
  });

  it("does not even lock out a known browser behind the guesser's address", async () => {
    const mine = new Browser();
    assert.equal((await attempt(USER, PASSWORD, '192.0.2.1', mine)).status, 200);
    for (let i = 0; i < 31; i++) await attempt(`user${i}@demo.example`, 'guess', '192.0.2.200');
    assert.equal((await attempt('ada@demo.example', PASSWORD, '192.0.2.200')).status, 429);
    assert.equal((await attempt(USER, PASSWORD, '192.0.2.200', mine)).status, 200);
  });

  it('makes a known browser wait for its own failures, for this user alone', async () => {
    const mine = new Browser();
    assert.equal((await attempt(USER, PASSWORD, '192.0.2.1', mine)).status, 200);
    for (let i = 0; i < 5; i++) assert.equal((await attempt(USER, 'wrong', '192.0.2.1', mine)).status, 401);
    assert.equal((await attempt(USER, PASSWORD, '192.0.2.1', mine)).status, 429);
    await lock('ada@demo.example');
    assert.equal((await attempt('ada@demo.example', PASSWORD, '192.0.2.2', mine)).status, 429, 'known for Sam alone');
  });

  it("recognizes no browser by a cookie that is made up, another user's, or revoked", async () => {
    const mine = new Browser();
    await attempt(USER, PASSWORD, '192.0.2.1', mine);
    const cookie = mine.cookies.get('erp_browser')!;
    assert.match(cookie, /^[\w-]{43}$/);
    const { rows } = await auth.database.query<{ stored: boolean }>(
      'SELECT bool_or(position($1 in known::text) > 0) AS stored FROM auth.known_origins known',
      [cookie],
    );
    assert.equal(rows[0]!.stored, false, 'kept as a hash');
    await lock(USER);
    const forged = new Browser();
    forged.cookies.set('erp_browser', 'x'.repeat(43));
    assert.equal((await attempt(USER, PASSWORD, '192.0.2.2', forged)).status, 429);
    await call(auth.broker, 'auth.users.revoke', { tenantId: DEMO, userId: SAM });
    assert.equal((await attempt(USER, PASSWORD, '192.0.2.2', mine)).status, 429);
  });

  it('waits no longer than the full delay when the clock of the database was set back', async () => {
    const { attempts } = new AuthStore(auth.database);
    const counter = { key: 'user of a clock set back', limit: TENANT_ATTEMPTS, shared: false };
    const waitFor = (time: string): Promise<unknown> =>
      auth.database.query(
        `UPDATE auth.attempts SET blocked_until = clock_timestamp() + interval '${time}' WHERE key = $1`,
        [counter.key],
      );
    assert.equal(await attempts.count([counter]), 0);
    await waitFor('4 s');
    assert.ok((await attempts.count([counter])) > 0);
    await waitFor('1 h');
    assert.equal(await attempts.count([counter]), 0);
    await attempts.takeBack([counter]);
  });

  it('of many names from many addresses is slowed down for the whole tenant, except known browsers', async () => {
    const mine = new Browser();
    assert.equal((await attempt(USER, PASSWORD, '192.0.2.1', mine)).status, 200);
    const { attempts } = new AuthStore(auth.database);
    for (let i = 0; i < 299; i++)
      await attempts.count([{ key: `tenant ${DEMO}`, limit: TENANT_ATTEMPTS, shared: true }]);
    assert.equal((await attempt('ada@demo.example', 'guess', '203.0.113.1')).status, 401);
    const waiting = await attempt('ada@demo.example', PASSWORD, '203.0.113.2');
    assert.equal(waiting.status, 429);
    assert.ok(Number(waiting.headers.get('retry-after')) <= 5);
    assert.equal((await attempt(USER, PASSWORD, '192.0.2.9', mine)).status, 200);
    assert.equal((await attempt('eve@acme.example', PASSWORD, '203.0.113.3')).status, 200, 'another tenant');
  });

  it('in a flood neither stops the process nor locks out known browsers', async function () {
    this.timeout(60_000);
    const mine = new Browser();
    assert.equal((await attempt(USER, PASSWORD, '192.0.2.1', mine)).status, 200);
    const delay = monitorEventLoopDelay({ resolution: 5 });
    delay.enable();
    const before = process.memoryUsage.rss();
    let most = before;
    const sampling = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 20);
    const flood = statuses(
      Array.from({ length: 300 }, (_, i) => attempt(`user${i}@acme.example`, 'guess', `2001:db8:${i.toString(16)}::1`)),
    );
    const own = performance.now();
    const answer = await attempt(USER, PASSWORD, '192.0.2.1', mine);
    const ownMs = performance.now() - own;
    const answers = await flood;
    clearInterval(sampling);
    delay.disable();
    assert.equal(answer.status, 200);
    assert.deepEqual(
      [...new Set(answers)].filter((status) => status !== 401 && status !== 429),
      [],
    );
    const figures = `${(delay.max / 1e6).toFixed(0)} ms, ${((most - before) / 2 ** 20).toFixed(0)} MiB, ${ownMs.toFixed(0)} ms`;
    if (process.env['FIGURES']) console.log(figures, Map.groupBy(answers, (s) => s).get(429)?.length ?? 0);
    assert.ok((most - before) / 2 ** 20 < 400, figures);
  });
});
