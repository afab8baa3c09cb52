import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { call } from '../../../contracts/call.ts';
import { Database } from '../../../mixins/database/database.ts';
import { SoftwareAuthenticator } from '../../support/authenticator.ts';
import { authorizeUrl, Browser, claims, pkce, refresh, type Seen, tokens } from './browser.ts';
import { codeFor, codesOn, optionsOn, sealedOn, secretOn } from './factor-pages.ts';
import { ADA, type AuthHarness, DEMO, PASSWORD, SAM, startAuth } from './harness.ts';

/** Resolves once so many statements wait for a lock. */
async function untilWaiting(database: Database, count: number): Promise<void> {
  for (const end = performance.now() + 10_000; performance.now() < end; await sleep(20)) {
    const { rows } = await database.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    if (rows.length >= count) return;
  }
  assert.fail(`${count} statements wait for a lock`);
}

describe('account page', () => {
  let auth: AuthHarness;
  before(async () => {
    auth = await startAuth();
  });
  after(() => auth.stop());
  beforeEach(async () => {
    auth.secondFactor.clear();
    await auth.bump();
    for (const table of ['passkeys', 'authenticators', 'recovery_codes', 'attempts'])
      await auth.database.query(`DELETE FROM auth.${table}`);
    auth.factorChanges.length = 0;
  });

  const address = (): string => `${auth.baseUrl}/account`;
  /** Signs in with a password alone. */
  const open = async (username = 'sam@demo.example', browser = new Browser()): Promise<[Browser, Seen]> => {
    const page = await browser.submit(await browser.visit(address()), { username, password: PASSWORD });
    return [browser, page];
  };
  const send = (browser: Browser, page: Seen, answers: Record<string, string>): Promise<Seen> => {
    const csrf = /name="csrf" value="([^"]*)"/.exec(page.html)?.[1] ?? '';
    return browser.open(address(), new URLSearchParams({ csrf, ...answers })).then((seen) => browser.follow(seen));
  };
  const passkeyIds = (page: Seen): string[] =>
    [...page.html.matchAll(/name="id" value="([^"]*)"/g)].map(([, id]) => id!);
  const connectionIds = (page: Seen): string[] =>
    [...page.html.matchAll(/name="connection" value="([^"]*)"/g)].map(([, id]) => id!);
  const addPasskey = async (browser: Browser, page: Seen, name = 'Laptop') => {
    const device = new SoftwareAuthenticator(auth.baseUrl);
    const credential = device.create(optionsOn(page));
    return { device, answer: await send(browser, page, { decision: 'addPasskey', credential, name }) };
  };
  /** Signs in anew, with the passkey. */
  const confirm = async (browser: Browser, device: SoftwareAuthenticator): Promise<Seen> => {
    browser.cookies.clear();
    const page = await browser.visit(address());
    return browser.submit(page, { decision: 'passkey', credential: device.get(optionsOn(page)) });
  };
  const age = (seconds: number): Promise<unknown> =>
    auth.database.query(
      `UPDATE auth.artifacts
       SET payload = jsonb_set(payload, '{loginTs}', to_jsonb((payload->>'loginTs')::int - $1::int))
       WHERE model = 'Session'`,
      [seconds],
    );

  it('redirects visitors without a session to sign-in, without asking for consent', async () => {
    const browser = new Browser();
    const start = await browser.visit(address());
    assert.match(start.html, /to continue to <strong>your account<\/strong>/);
    const page = await browser.submit(start, { username: 'sam@demo.example', password: PASSWORD });
    assert.equal(page.url.pathname, '/account');
    assert.match(page.html, /<h1>Your account<\/h1>[\s\S]*sam@demo\.example/);
    assert.doesNotMatch(page.url.search, /code=/, 'there is no token behind this page');
  });

  it('has a button that cancels the sign-in', async () => {
    const browser = new Browser();
    const page = await browser.submit(await browser.visit(address()), { decision: 'cancel' });
    assert.match(page.html, /Access was not granted/);
  });

  it('adds, names, renames, uses and removes passkeys, and issues recovery codes with the first', async () => {
    const [weaker] = await open();
    const [browser, page] = await open();
    const { device, answer } = await addPasskey(browser, page, ' My <b>laptop</b>\n');
    assert.equal(codesOn(answer).length, 10);
    const weak = await weaker.visit(address());
    assert.match(weak.html, /confirm that it is you/, 'the password alone is not enough any more');
    assert.match(weak.html, /My &lt;b&gt;laptop&lt;\/b&gt;/);
    assert.match(weak.html, /not used yet/);
    assert.equal(passkeyIds(weak).length, 0);
    const both = await browser.visit(address());
    assert.doesNotMatch(both.html, /confirm that it is you/, 'this session has just proved password and passkey');
    assert.equal(passkeyIds(both).length, 1);

    const strong = await confirm(browser, device);
    assert.match(strong.html, /last used/);
    const [id = ''] = passkeyIds(strong);
    const renamed = await send(browser, strong, { decision: 'renamePasskey', id, name: 'Phone' });
    assert.match(renamed.html, /The passkey is renamed\.[\s\S]*<b>Phone<\/b>/);
    const removed = await send(browser, renamed, { decision: 'removePasskey', id });
    assert.match(removed.html, /The passkey is removed here/);
    assert.equal((await send(browser, removed, { decision: 'removePasskey', id })).status, 422);
    const { rows } = await auth.database.query('SELECT FROM auth.recovery_codes');
    assert.equal(rows.length, 0, 'codes end with the last factor');
    assert.deepEqual(
      auth.factorChanges.map(({ event, userId, actorId }) => [event, userId, actorId]),
      [
        ['passkeyAdded', SAM, SAM],
        ['passkeyRemoved', SAM, SAM],
      ],
    );
  });

  it('sets up, changes and removes an authenticator app', async () => {
    const [browser, page] = await open();
    const start = await send(browser, page, { decision: 'startApp' });
    const secret = secretOn(start);
    const wrong = await send(browser, start, { decision: 'addApp', setup: sealedOn(start), code: '000000' });
    assert.equal(wrong.status, 422);
    assert.equal(secretOn(wrong), secret);
    const answer = await send(browser, wrong, { decision: 'addApp', setup: sealedOn(wrong), code: codeFor(secret) });
    assert.equal(codesOn(answer).length, 10);

    assert.match((await browser.visit(address())).html, /Make new codes/, 'the session counts both factors');
    await age(301);
    const again = await browser.visit(`${address()}?confirm=yes`);
    assert.match(again.html, /You signed in too long ago for this/);
    assert.match(again.html, /name="username"[^>]* value="sam@demo\.example"/);
    const second = await browser.submit(again, { username: 'sam@demo.example', password: PASSWORD });
    const strong = await browser.submit(second, { code: codeFor(secret, 1) });
    assert.match(strong.html, /10 left/);
    const codes = await send(browser, strong, { decision: 'newCodes' });
    assert.equal(codesOn(codes).length, 10);
    assert.notDeepEqual(codesOn(codes), codesOn(answer));
    assert.match((await send(browser, strong, { decision: 'removeApp' })).html, /The authenticator app is removed/);
  });

  it('changes nothing unless the sign-in is recent', async () => {
    const [browser, page] = await open();
    const credential = new SoftwareAuthenticator(auth.baseUrl).create(optionsOn(page));
    await age(301);
    const stale = await browser.visit(address());
    assert.match(stale.html, /confirm that it is you/);
    assert.doesNotMatch(stale.html, /data-passkey|name="decision"/);
    for (const decision of ['addPasskey', 'startApp', 'newCodes', 'endSessions']) {
      const seen = await send(browser, page, { decision, credential, name: 'x' });
      assert.equal(seen.status, 422, decision);
      assert.match(seen.html, /Nothing was changed[\s\S]*more than five minutes ago[\s\S]*Confirm it is me/, decision);
    }
    assert.equal((await auth.database.query('SELECT FROM auth.passkeys')).rows.length, 0);
  });

  it('changes nothing for a session of one factor where there are two', async () => {
    const [weaker, page] = await open();
    await addPasskey(...(await open()));
    const seen = await send(weaker, page, { decision: 'startApp' });
    assert.equal(seen.status, 422);
    assert.match(seen.html, /Nothing was changed[\s\S]*signed in with one factor[\s\S]*Confirm it is me/);
    assert.doesNotMatch((await weaker.visit(address())).html, /name="decision"/, 'the session is what it was');
  });

  it('refuses forms of other sites, sessions and users', async () => {
    const [browser, page] = await open();
    const [other, otherPage] = await open('ada@demo.example');
    const form = { decision: 'startApp' };
    const csrf = /name="csrf" value="([^"]*)"/.exec(otherPage.html)?.[1] ?? '';
    const body = new URLSearchParams({ ...form, csrf });
    assert.equal((await browser.open(address(), body)).status, 400);
    assert.equal((await browser.open(address(), body, { 'sec-fetch-site': 'cross-site' })).status, 403);
    assert.equal((await browser.open(address(), new URLSearchParams(form))).status, 400);

    const { answer, device } = await addPasskey(other, otherPage);
    assert.equal(answer.status, 200);
    const adas = await confirm(other, device);
    const [id = ''] = passkeyIds(adas);
    assert.ok(id);
    for (const decision of ['removePasskey', 'renamePasskey'])
      assert.equal((await send(browser, page, { decision, id, name: 'mine' })).status, 422);
    const { rows } = await auth.database.query<{ user_id: string; name: string }>(
      'SELECT user_id, name FROM auth.passkeys',
    );
    assert.deepEqual(rows, [{ user_id: ADA, name: 'Laptop' }]);
  });

  it('accepts a new passkey once, for the session that requested it', async () => {
    const [browser, page] = await open();
    const [, otherPage] = await open('sam@demo.example');
    const elsewhere = new SoftwareAuthenticator(auth.baseUrl).create(optionsOn(otherPage));
    assert.equal((await send(browser, page, { decision: 'addPasskey', credential: elsewhere })).status, 422);
    const device = new SoftwareAuthenticator(auth.baseUrl);
    for (const wrong of [{ origin: 'https://evil.example' }, { rpId: 'evil.example' }, { userVerified: false }]) {
      const credential = device.create(optionsOn(page), wrong);
      assert.equal((await send(browser, page, { decision: 'addPasskey', credential })).status, 422);
    }
    const credential = device.create(optionsOn(page));
    const answers = await Promise.all([1, 2].map(() => send(browser, page, { decision: 'addPasskey', credential })));
    assert.equal(answers.filter((answer) => codesOn(answer).length > 0).length, 1);
    assert.equal((await auth.database.query('SELECT FROM auth.passkeys')).rows.length, 1);
  });

  it('enforces the limit of ten passkeys, also for simultaneous requests', async () => {
    const [browser, page] = await open();
    await auth.database.query(
      `INSERT INTO auth.passkeys (tenant_id, id, user_id, name, public_key, counter, transports, backup_eligible, backed_up)
       SELECT $1, 'stored-' || i, $2, 'Key', '', 0, '{}', true, true FROM generate_series(1, 9) AS i`,
      [DEMO, SAM],
    );
    await auth.database.query(
      `UPDATE auth.artifacts SET payload = jsonb_set(payload, '{acr}', '"https://refeds.org/profile/mfa"')
       WHERE model = 'Session'`,
    );
    const pages = await Promise.all([1, 2, 3].map(() => browser.visit(address())));
    // All three wait for the same lock before one of them has stored anything.
    const other = new Database(auth.url, { size: 2, applicationName: 'a lock' });
    try {
      const waiting = await other.shared('auth', DEMO, async (tx) => {
        await tx.query('SELECT FROM auth.credentials WHERE user_id = $1 FOR UPDATE', [SAM]);
        const adding = Promise.all(pages.map((one) => addPasskey(browser, one)));
        await untilWaiting(other, pages.length);
        return { adding };
      });
      await waiting.adding;
    } finally {
      await other.close();
    }
    assert.equal((await auth.database.query('SELECT FROM auth.passkeys')).rows.length, 10);
    assert.doesNotMatch((await browser.visit(address())).html, /Add a passkey/);
    assert.ok(page);
  });

  it('keeps the last factor of a user who must have one', async () => {
    const [browser, page] = await open();
    const { device } = await addPasskey(browser, page);
    auth.secondFactor.set(DEMO, 'everyone');
    await auth.bump();
    const strong = await confirm(browser, device);
    const [id = ''] = passkeyIds(strong);
    const refused = await send(browser, strong, { decision: 'removePasskey', id });
    assert.equal(refused.status, 422);
    assert.match(refused.html, /Add another one before you remove this one/);
  });

  it('does not count a new factor as a sign-in', async () => {
    const [browser, page] = await open();
    await age(200);
    await addPasskey(browser, page);
    assert.equal(passkeyIds(await browser.visit(address())).length, 1);
    await age(101);
    assert.match((await browser.visit(address())).html, /confirm that it is you/);
  });

  it('explains missing passkey support, and the missing button at the limit', async () => {
    const [browser, page] = await open();
    assert.match(page.html, /<noscript><p class="hint">Passkeys need JavaScript/);
    assert.match(page.html, /data-without-passkeys hidden>This browser cannot use passkeys here/);
    assert.match(page.html, /<p class="hint" data-with-passkeys hidden>Sign in with fingerprint/);
    await auth.database.query(
      `INSERT INTO auth.passkeys (tenant_id, id, user_id, name, public_key, counter, transports, backup_eligible, backed_up)
       SELECT $1, 'stored-' || i, $2, 'Key', '', 0, '{}', true, true FROM generate_series(1, 10) AS i`,
      [DEMO, SAM],
    );
    assert.match((await browser.visit(address())).html, /10 passkeys, and there can be no more/);
  });

  it('lists the connections of a user, and ends one of them alone', async () => {
    const offline = { scope: 'data:read me:write offline_access' };
    const [first, second] = [await tokens(auth.baseUrl, offline), await tokens(auth.baseUrl, offline)];
    const ids = [first, second].map(({ access_token }) => String(claims(access_token).grant_id));
    const adas = claims((await tokens(auth.baseUrl, offline, 'ada@demo.example')).access_token).grant_id;
    const [browser, page] = await open();
    const shown = connectionIds(page);
    assert.deepEqual(shown, ids.toReversed(), 'newest first, and neither the page itself nor others');
    assert.match(
      page.html,
      /<h3>ERP command line <span class="count">2<\/span><\/h3>[\s\S]*<code>me:write<\/code> <span class="mark">Far-reaching[\s\S]*<code>data:read<\/code>/,
    );
    assert.equal((await send(browser, page, { decision: 'revokeConnection', connection: adas })).status, 422);
    assert.equal((await refresh(auth.baseUrl, second.refresh_token)).status, 200);

    auth.notes.length = 0;
    const revoked = await send(browser, page, { decision: 'revokeConnection', connection: ids[0]! });
    assert.match(revoked.html, /The connection has ended/);
    assert.deepEqual(connectionIds(revoked), [ids[1]]);
    assert.ok(auth.revoked.includes(ids[0]!) && !auth.revoked.includes(ids[1]!));
    assert.equal((await refresh(auth.baseUrl, first.refresh_token)).body.error, 'invalid_grant');
    assert.deepEqual(
      auth.notes.map(({ operationId, userId, actorId, channel }) => [operationId, userId, actorId, channel]),
      [['me.connections.revoke', SAM, SAM, 'ui']],
    );
    const third = await tokens(auth.baseUrl, offline);
    const two = await browser.visit(address());
    assert.match(two.html, /Allowed <time datetime="[^"]+Z">\d+ \w+ \d{4}, \d\d:\d\d [A-Z]/, 'which of them it is');
    assert.match(two.html, /name="client" value="erp-cli">\s*<button[^>]* value="revokeApplication">Revoke all 2</);
    assert.match(
      (await send(browser, two, { decision: 'revokeApplication', client: 'unknown' })).html,
      /ended already/,
    );
    const none = await send(browser, two, { decision: 'revokeApplication', client: 'erp-cli' });
    assert.match(none.html, /The connections of the application have ended[\s\S]*No application acts in your name/);
    for (const { refresh_token } of [second, third])
      assert.equal((await refresh(auth.baseUrl, refresh_token)).body.error, 'invalid_grant');
    await tokens(auth.baseUrl, offline);

    const again = await send(browser, page, { decision: 'revokeConnection', connection: ids[0]! });
    assert.match(again.html, /has ended already/);
    await age(301);
    const stale = await browser.visit(address());
    assert.match(stale.html, /<h3>ERP command line<\/h3>/);
    assert.deepEqual(connectionIds(stale), [], 'seen, and not to be ended');
  });

  it('signs out everywhere', async () => {
    const [browser, page] = await open();
    const [elsewhere] = await open();
    const ended = await send(browser, page, { decision: 'endSessions' });
    assert.match(ended.html, /signed out everywhere[\s\S]*<a href="\/account">Sign in again<\/a>/);
    for (const one of [browser, elsewhere]) assert.match((await one.visit(address())).html, /name="password"/);
  });

  it('shows nothing to a deactivated user', async () => {
    const [browser] = await open('ada@demo.example');
    const user = { userId: ADA, username: 'ada@demo.example', email: 'ada@demo.example' };
    await call(auth.broker, 'auth.users.sync', { tenantId: DEMO, users: [{ ...user, active: false }] });
    try {
      assert.match((await browser.visit(address())).html, /name="password"/);
    } finally {
      await call(auth.broker, 'auth.users.sync', { tenantId: DEMO, users: [{ ...user, active: true }] });
    }
  });

  it('belongs to a client that gets no tokens', async () => {
    const browser = new Browser();
    const url = authorizeUrl(auth.baseUrl, pkce().challenge, {
      client_id: 'erp-account',
      redirect_uri: address(),
      scope: 'openid',
    });
    const { location } = await browser.open(url);
    assert.equal(location?.searchParams.get('error'), 'invalid_request');
  });
});
