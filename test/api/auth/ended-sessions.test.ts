/** Requests that are under way while all sessions of their user end leave nothing behind that signs the user in. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { MULTI_FACTOR_ACR } from '../../../contracts/auth.ts';
import { call } from '../../../contracts/call.ts';
import { authorize, authorizeUrl, Browser, exchange, pkce, type Seen, tokens } from './browser.ts';
import { codeFor, sealedOn, secretOn } from './factor-pages.ts';
import { type AuthHarness, DEMO, PASSWORD, SAM, startAuth } from './harness.ts';

const LOCK = 4711;

describe('sessions of a user that end', () => {
  let auth: AuthHarness;
  before(async () => {
    auth = await startAuth();
    await auth.database.query(
      `CREATE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         -- Uses of grants are written now and then, by no request.
         IF current_query() NOT LIKE '%last_used_at%' THEN PERFORM pg_advisory_xact_lock_shared(${LOCK}); END IF;
         RETURN NULL;
       END $$`,
    );
  });
  after(() => auth?.stop());

  const account = (): string => `${auth.baseUrl}/account`;
  const person = { username: 'sam@demo.example', password: PASSWORD };
  const signedIn = async (): Promise<Browser> => {
    const browser = new Browser();
    const page = await browser.submit(await browser.visit(account()), person);
    assert.equal(page.url.pathname, '/account');
    return browser;
  };
  const asksForPassword = async (browser: Browser): Promise<void> =>
    assert.match((await browser.visit(account())).html, /name="password"/);
  const endSessions = () => call(auth.broker, 'auth.users.revoke', { tenantId: DEMO, userId: SAM });
  const waiting = async (): Promise<number> => {
    const { rows } = await auth.database.query<{ waiting: number }>(
      `SELECT count(*)::int AS waiting FROM pg_stat_activity
       WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    return rows[0]!.waiting;
  };

  /** Sends a request, ends all sessions just before or just after it writes to the table, and returns its response. */
  const endAt = async (
    moment: 'BEFORE' | 'AFTER',
    table: string,
    request: () => Promise<Seen>,
    end: () => Promise<unknown> = endSessions,
  ): Promise<Seen> => {
    await auth.database.query(
      `CREATE TRIGGER hold ${moment} INSERT OR UPDATE ON auth.${table} FOR EACH STATEMENT EXECUTE FUNCTION public.hold()`,
    );
    try {
      let over = false;
      const { sent, ended } = await auth.database.transaction(async (tx) => {
        await tx.query(`SELECT pg_advisory_xact_lock(${LOCK})`);
        const sent = request();
        while ((await waiting()) < 1) await pause(10);
        const ended = end().finally(() => {
          over = true;
        });
        while (!over && (await waiting()) < 2) await pause(10);
        return { sent, ended };
      });
      await ended;
      return await sent;
    } finally {
      await auth.database.query(`DROP TRIGGER hold ON auth.${table}`);
    }
  };

  for (const moment of ['BEFORE', 'AFTER'] as const)
    describe(`${moment === 'BEFORE' ? 'before' : 'while'} a request writes`, () => {
      it('leave no browser session that the request would have extended', async () => {
        const browser = await signedIn();
        const silent = { client_id: 'erp-account', response_type: 'none', scope: 'openid', redirect_uri: account() };
        const url = authorizeUrl(auth.baseUrl, null, { ...silent, prompt: 'none' });
        const { location } = await browser.open(url);
        assert.equal(location?.searchParams.get('error'), null, 'the request succeeds while the session lasts');
        await endAt(moment, 'artifacts', () => browser.open(url));
        await asksForPassword(browser);
      });

      it('by signing out of a browser leave none that another request of it would have extended', async () => {
        const browser = await signedIn();
        const silent = { client_id: 'erp-account', response_type: 'none', scope: 'openid', redirect_uri: account() };
        const page = await browser.visit(`${auth.baseUrl}/oauth2/logout`);
        const copy = new Browser();
        for (const [name, value] of browser.cookies) copy.cookies.set(name, value);
        const signOut = (): Promise<Seen> => browser.submit(page);
        const url = authorizeUrl(auth.baseUrl, null, { ...silent, prompt: 'none' });
        await endAt(moment, 'artifacts', () => copy.open(url), signOut);
        await asksForPassword(copy);
      });

      it('leave no grant that the request would have given', async () => {
        const browser = await signedIn();
        const { verifier, challenge } = pkce();
        const page = await browser.visit(authorizeUrl(auth.baseUrl, challenge));
        const seen = await endAt(moment, 'grants', () => browser.submit(page));
        // One that was answered before its session ended is good for nothing.
        const code = seen.location?.searchParams.get('code');
        if (moment === 'BEFORE') assert.equal(code ?? null, null);
        if (code) assert.equal((await exchange(auth.baseUrl, code, verifier)).status, 400);
        const { rows } = await auth.database.query('SELECT FROM auth.grants WHERE user_id = $1', [SAM]);
        assert.equal(rows.length, 0);
      });

      it('leave no sign-in with the password of before', async () => {
        const browser = new Browser();
        const page = await browser.visit(account());
        await endAt(moment, 'artifacts', () => browser.submit(page, person));
        await asksForPassword(browser);
      });

      it('leave no first of two steps of a sign-in', async () => {
        const browser = new Browser();
        const url = authorizeUrl(auth.baseUrl, pkce().challenge, { acr_values: MULTI_FACTOR_ACR });
        const page = await browser.visit(url);
        const second = await endAt(moment, 'artifacts', () => browser.submit(page, person));
        assert.match(second.html, /name="setup"/);
        assert.match((await browser.visit(second.url)).html, /name="password"/);
      });
    });

  it('leave no authenticator app that a request was about to add', async () => {
    const browser = await signedIn();
    const send = (page: Seen, fields: Record<string, string>): Promise<Seen> => browser.submit(page, fields);
    const start = await send(await browser.visit(account()), { decision: 'startApp' });
    const answers = { decision: 'addApp', setup: sealedOn(start), code: codeFor(secretOn(start)) };
    const sent = await auth.database.transaction(async (tx) => {
      await tx.query('UPDATE auth.credentials SET session_generation = session_generation + 1 WHERE user_id = $1', [
        SAM,
      ]);
      const request = send(start, answers);
      while ((await waiting()) < 1) await pause(10);
      return { request };
    });
    assert.equal((await sent.request).status, 422);
    assert.equal((await auth.database.query('SELECT FROM auth.authenticators')).rows.length, 0);
  });

  it('do not keep the user from signing in at once', async () => {
    await tokens(auth.baseUrl);
    await endSessions();
    const browser = new Browser();
    await authorize(browser, authorizeUrl(auth.baseUrl, pkce().challenge));
    await endSessions();
    await authorize(browser, authorizeUrl(auth.baseUrl, pkce().challenge));
    assert.match((await browser.visit(account())).html, /sam@demo\.example/);
  });
});
