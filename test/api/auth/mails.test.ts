/** Mails about accounts: their recipients, content and limits, and the effect of their links. */
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { ParsedMail } from 'mailparser';
import { call } from '../../../contracts/call.ts';
import { linkIn, type MailServer, mailServer, recipient } from '../../support/mail.ts';
import { authorize, authorizeUrl, Browser, claims, pkce, refresh, type Seen, tokens } from './browser.ts';
import { codeFor, sealedOn, secretOn } from './factor-pages.ts';
import { ACME, type AuthHarness, DEMO, externalClient, PASSWORD, startAuth } from './harness.ts';

const FIREFOX = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0';

describe('mails about accounts', () => {
  let auth: AuthHarness;
  let server: MailServer;
  /** Recipients that the server does not take now (450), and does not have (550). */
  const delayed = new Set<string>();
  const rejected = new Set<string>();
  before(async () => {
    server = await mailServer({
      onRcptTo: ({ address }, _session, done) => {
        const responseCode = delayed.has(address) ? 450 : rejected.has(address) ? 550 : null;
        done(responseCode === null ? null : Object.assign(new Error('not now or never'), { responseCode }));
      },
    });
    auth = await startAuth({
      env: { SMTP_URL: `smtp://127.0.0.1:${server.port}?starttls=off`, MAIL_FROM: 'ERP <no-reply@erp.example>' },
    });
    // The public address is the one that the gateway reports.
    await new Browser().visit(`${auth.baseUrl}/password/forgotten`);
  });
  after(async () => {
    await auth?.stop();
    await server?.close();
  });
  beforeEach(async () => {
    await auth.database.query('DELETE FROM auth.attempts');
  });

  const sync = (user: { userId: string; username: string; email: string; active?: boolean; password?: string }) =>
    call(auth.broker, 'auth.users.sync', { tenantId: DEMO, users: [{ active: true, ...user }] });
  const newUser = async (name: string, more: { password?: string } = {}) => {
    const user = { userId: randomUUID(), username: `${name}@demo.example`, email: `${name}@mail.example` };
    await sync({ ...user, ...more });
    return user;
  };
  const ask = async (username: string, headers: Record<string, string> = {}): Promise<Seen> => {
    const browser = new Browser(headers);
    return browser.submit(await browser.visit(`${auth.baseUrl}/password/forgotten`), { username });
  };
  const choose = async (link: string, password: string): Promise<Seen> => {
    const browser = new Browser();
    return browser.submit(await browser.visit(link), { password, repeated: password });
  };
  const url = () => authorizeUrl(auth.baseUrl, pkce().challenge);
  const signsIn = async (username: string, password: string): Promise<boolean> => {
    const browser = new Browser();
    const page = await browser.submit(await browser.visit(url()), { username, password });
    return page.status !== 401;
  };
  /** Resolves once nothing is pending: every mail has been sent. */
  const settled = async (): Promise<void> => {
    for (const end = performance.now() + 15_000; ; await new Promise((resolve) => setTimeout(resolve, 25))) {
      const { rows } = await auth.database.query<{ n: number }>(
        `SELECT (SELECT count(*) FROM auth.mails WHERE ended_at IS NULL)::int
           + (SELECT count(*) FROM auth.reset_requests)::int AS n`,
      );
      if (rows[0]!.n === 0) return;
      assert.ok(performance.now() < end, 'mails wait');
    }
  };
  /** Counts so many mails of other tenants to an address today. */
  const sent = (address: string, kind: string, count: number): Promise<unknown> =>
    auth.database.query(
      `INSERT INTO auth.mails (tenant_id, user_id, kind, address_hash, give_up_at, ended_at, outcome)
       SELECT gen_random_uuid(), gen_random_uuid(), $2, sha256(convert_to(lower($1), 'UTF8')), now(), now(), 'sent'
       FROM generate_series(1, $3) i`,
      [address, kind, count],
    );
  const to = (address: string): Promise<ParsedMail[]> => server.mails.all({ to: address });

  describe('invitations', () => {
    it('reach a new user once, in text and HTML, with a link that sets a password', async () => {
      const user = await newUser('joan');
      await sync(user);
      const mail = await server.mails.next({ to: user.email });
      await settled();
      assert.equal((await to(user.email)).length, 1);
      assert.equal(mail.from?.text, '"ERP" <no-reply@erp.example>');
      assert.equal(mail.headers.get('auto-submitted'), 'auto-generated');
      assert.match(mail.messageId ?? '', /^<[0-9a-f-]{36}@erp\.example>$/);
      const link = linkIn(mail);
      assert.ok(link.startsWith(`${auth.baseUrl}/password/`));
      assert.ok(String(mail.html).includes(`href="${link}"`));
      assert.match(mail.text ?? '', /joan@demo\.example/);
      assert.match((await choose(link, 'a fine long password')).html, /Your password is set/);
      assert.equal(await signsIn(user.username, 'a fine long password'), true);
      assert.equal((await to(user.email)).length, 1, 'the first password is no change');
      await sync({ ...user, email: user.email });
      await settled();
      assert.equal((await to(user.email)).length, 1);
    });

    it('reach an address ten times a day from one tenant, and from others nevertheless', async () => {
      const email = 'wanted@other.example';
      const invite = (tenantId: string, name: string) =>
        call(auth.broker, 'auth.users.sync', {
          tenantId,
          users: [{ userId: randomUUID(), username: name, email, active: true }],
        });
      for (let i = 0; i < 25; i++) await invite(ACME, `flood${i}`);
      await settled();
      assert.equal((await to(email)).length, 10);
      await invite(DEMO, 'wanted');
      await settled();
      assert.equal((await to(email)).length, 11);
    });

    it('reach an address whose quota other tenants have used up, twice a day from each', async () => {
      const email = 'popular@other.example';
      await sent(email, 'invitation', 20);
      for (let i = 0; i < 4; i++)
        await sync({ userId: randomUUID(), username: `popular${i}@demo.example`, email, active: true });
      await settled();
      assert.equal((await to(email)).length, 2);
    });

    it("are sent when anonymous password requests have used up the tenant's quota", async () => {
      const user = await newUser('asked-about', { password: 'known before' });
      await auth.database.query(
        `INSERT INTO auth.mails (tenant_id, user_id, kind, address_hash, give_up_at, ended_at, outcome)
         SELECT $1, gen_random_uuid(), 'passwordReset', sha256(i::text::bytea), now(), now(), 'sent'
         FROM generate_series(1, 1000) i`,
        [DEMO],
      );
      try {
        await ask(user.username);
        await settled();
        assert.deepEqual(await to(user.email), []);
        const other = await newUser('let-in');
        await server.mails.next({ to: other.email });
      } finally {
        await auth.database.query(`DELETE FROM auth.mails WHERE tenant_id = $1 AND kind = 'passwordReset'`, [DEMO]);
      }
    });

    it("carry no attacker's text to users of others, though tenants choose the usernames", async () => {
      const texts = [
        'https://evil.example/login',
        'evil.example/login',
        'www.evil.example',
        'Your account is locked',
        'call-0900-12345-now or-lose-it',
      ];
      for (const [i, username] of texts.entries()) {
        const email = `stranger${i}@other.example`;
        await sync({ userId: randomUUID(), username, email });
        const { text = '', html } = await server.mails.next({ to: email });
        for (const body of [text, String(html)])
          assert.doesNotMatch(body, /evil|locked|0900|Benutzername/, `${username} is in ${body}`);
      }
      const email = 'plain@other.example';
      await sync({ userId: randomUUID(), username: 'm_keller-2', email });
      assert.match((await server.mails.next({ to: email })).text ?? '', /Benutzername: demo\\m_keller-2/);
    });

    it('do not reach users with a password, inactive or integration users, or invalid addresses', async () => {
      auth.clients['Robot'] = externalClient({ apiName: 'Robot', integrationUser: 'Robot@demo.example' });
      await auth.bump();
      const users = [
        { username: 'given@demo.example', email: 'given@mail.example', password: 'a given password' },
        { username: 'asleep@demo.example', email: 'asleep@mail.example', active: false },
        { username: 'robot@demo.example', email: 'robot@mail.example' },
        { username: 'plain', email: 'plain' },
      ];
      const ids = users.map(() => randomUUID());
      for (const [i, user] of users.entries()) await sync({ userId: ids[i]!, ...user });
      await settled();
      for (const { email } of users) assert.deepEqual(await to(email), [], email);
      await sync({ userId: ids[1]!, ...users[1]!, active: true });
      await server.mails.next({ to: 'asleep@mail.example' });
    });

    it('go to a corrected address, and links to the earlier one expire', async () => {
      const user = await newUser('typo');
      const first = linkIn(await server.mails.next({ to: user.email }));
      await sync({ ...user, email: 'right@mail.example' });
      const second = linkIn(await server.mails.next({ to: 'right@mail.example' }));
      assert.equal((await new Browser().visit(first)).status, 410);
      assert.equal((await new Browser().visit(second)).status, 200);
    });
  });

  describe('a forgotten password', () => {
    it('sends nothing to users who sign in only at their company, and neither does an invitation', async () => {
      const user = await newUser('corp', { password: PASSWORD });
      await settled();
      const before = (await to(user.email)).length;
      const provider = {
        apiName: 'Corp',
        label: 'Corp',
        active: true,
        issuer: 'https://login.corp.example',
        clientId: 'erp',
        domains: ['demo.example'],
        usernameClaim: 'email',
        createUsers: null,
        passwordSignIn: false,
      };
      auth.identityProviders.set(DEMO, [provider]);
      await auth.bump();
      try {
        const [known, unknown] = [await ask(user.username), await ask('nobody@demo.example')];
        assert.deepEqual([known.status, known.html], [unknown.status, unknown.html]);
        const later = await newUser('corp-later');
        await settled();
        assert.deepEqual([(await to(user.email)).length, (await to(later.email)).length], [before, 0]);
      } finally {
        auth.identityProviders.clear();
        await auth.bump();
      }
    });

    it('is answered identically for every name, and only a user of that name gets a mail', async () => {
      const user = await newUser('forgetful', { password: 'known before' });
      const pages = [await ask(user.username), await ask('nobody@demo.example'), await ask('nobody')];
      assert.deepEqual(new Set(pages.map(({ status }) => status)), new Set([200]));
      assert.equal(new Set(pages.map(({ html }) => html)).size, 1);
      await settled();
      assert.equal((await to(user.email)).length, 1);
      const { rows } = await auth.database.query("SELECT 1 FROM auth.mails WHERE address LIKE 'nobody%'");
      assert.deepEqual(rows, []);
    });

    it('is replaced by a link of one hour, which ends all sessions and notifies the user', async () => {
      const user = await newUser('careless', { password: PASSWORD });
      const before = await tokens(auth.baseUrl, { scope: 'data:read offline_access' }, user.username);
      await ask(`demo\\${user.username.toUpperCase()}`);
      const mail = await server.mails.next({ to: user.email });
      const link = linkIn(mail);
      const { rows } = await auth.database.query<{ seconds: number }>(
        'SELECT extract(epoch FROM expires_at - now())::float8 AS seconds FROM auth.password_links WHERE user_id = $1',
        [user.userId],
      );
      assert.ok(rows.length === 1 && rows[0]!.seconds > 3_500 && rows[0]!.seconds <= 3_600, JSON.stringify(rows));
      assert.match((await choose(link, 'entirely new words')).html, /Your password is set/);
      assert.equal((await choose(link, 'another one again').catch(() => ({ status: 410 }))).status, 410);
      const told = await server.mails.next({ to: user.email });
      assert.doesNotMatch(told.text ?? '', /\/password\/[\w-]{43}/);
      assert.equal(await signsIn(user.username, PASSWORD), false);
      assert.equal((await refresh(auth.baseUrl, before.refresh_token)).status, 400);
      assert.ok(auth.revoked.includes(claims(before.access_token).grant_id));
      const noted = auth.notes.filter(({ userId }) => userId === user.userId).map(({ operationId }) => operationId);
      assert.deepEqual(noted, ['auth.users.requestPassword', 'auth.users.setPassword']);
    });

    it('does not bypass a second factor', async () => {
      const user = await newUser('guarded', { password: 'known before' });
      const { challenge } = pkce();
      const browser = new Browser();
      const strong = authorizeUrl(auth.baseUrl, challenge, { acr_values: 'https://refeds.org/profile/mfa' });
      const page = await browser.submit(await browser.visit(strong), {
        username: user.username,
        password: 'known before',
      });
      await browser.submit(page, { decision: 'addApp', setup: sealedOn(page), code: codeFor(secretOn(page)) });
      await ask(user.username);
      await choose(linkIn(await server.mails.next({ to: user.email, subject: /asswor/ })), 'entirely new words');
      const fresh = new Browser();
      const next = await fresh.submit(await fresh.visit(url()), {
        username: user.username,
        password: 'entirely new words',
      });
      assert.match(next.html, /Confirm it is you/);
    });

    it('floods no mailbox, and limits the requests of each network', async () => {
      const user = await newUser('flooded', { password: 'known before' });
      const pages = [];
      for (let i = 0; i < 21; i++) pages.push(await ask(user.username, { 'x-test-address': '203.0.113.7' }));
      assert.deepEqual(
        pages.map(({ status }) => status),
        [...Array(20).fill(200), 429],
      );
      assert.equal((await ask(user.username, { 'x-test-address': '198.51.100.7' })).status, 200);
      await settled();
      assert.equal((await to(user.email)).length, 3);
    });

    it('reaches its user, however many mails other tenants have sent to the address', async () => {
      const user = await newUser('beset', { password: 'known before' });
      for (const kind of ['invitation', 'addressConfirmation', 'addressChanged', 'passwordReset'])
        await sent(user.email, kind, 100);
      await ask(user.username);
      await server.mails.next({ to: user.email, subject: /asswor/ });
    });

    it('floods no mailbox by many users of a tenant who all have its address', async () => {
      const email = 'everywhere@mail.example';
      for (let i = 0; i < 25; i++) {
        const username = `everywhere${i}@demo.example`;
        await sync({ userId: randomUUID(), username, email, password: PASSWORD });
        await ask(username, { 'x-test-address': `198.51.100.${100 + i}` });
      }
      await settled();
      assert.equal((await to(email)).length, 20);
    });

    it('sends nothing in a suspended tenant, and answers with the same page as for every name', async () => {
      const user = await newUser('shut-out', { password: 'known before' });
      auth.suspended.add(DEMO);
      await auth.bump();
      try {
        const pages = [await ask(user.username), await ask('nobody@demo.example')];
        assert.equal(new Set(pages.map(({ html }) => html)).size, 1);
        await settled();
        assert.deepEqual(await to(user.email), []);
      } finally {
        auth.suspended.delete(DEMO);
        await auth.bump();
      }
    });

    it('is mailed despite requests that cannot be decrypted, such as after a replaced secret', async () => {
      const user = await newUser('beside', { password: 'known before' });
      const request = { username: user.username, clientId: null, browser: null, address: '203.0.113.9' };
      const { rows } = await auth.database.query<{ id: string }>(
        `WITH request AS (SELECT NULL::jsonb AS plain, '\\x00'::bytea AS sealed FROM generate_series(1, 9)
           UNION ALL SELECT $1, NULL)
         INSERT INTO auth.reset_requests (id, plain, sealed) SELECT gen_random_uuid(), plain, sealed FROM request
         RETURNING CASE WHEN sealed IS NULL THEN NULL ELSE id END AS id`,
        [JSON.stringify(request)],
      );
      await server.mails.next({ to: user.email });
      await auth.database.query('DELETE FROM auth.reset_requests WHERE id = ANY ($1)', [rows.map(({ id }) => id)]);
    });

    it('refuses an empty name, forms of other sites and other methods', async () => {
      const address = `${auth.baseUrl}/password/forgotten`;
      assert.equal((await ask('   ')).status, 422);
      const body = new URLSearchParams({ username: 'sam@demo.example' });
      const foreign = await fetch(address, { method: 'POST', body, headers: { origin: 'https://evil.example' } });
      assert.equal(foreign.status, 403);
      assert.equal((await fetch(address, { method: 'PUT', body })).status, 405);
      assert.equal((await ask(`x\r\nBcc: y@z.example${'a'.repeat(5_000)}`)).status, 200);
      await settled();
    });

    it('is offered on the sign-in page, for the users of that client', async () => {
      auth.clients['Shop'] = externalClient({
        apiName: 'Shop',
        redirectUris: ['http://127.0.0.1:49876/callback'],
        scopes: ['data:read'],
      });
      await auth.bump();
      const user = { userId: randomUUID(), username: 'nodomain', email: 'nodomain@mail.example' };
      await sync({ ...user, password: 'known before' });
      const browser = new Browser();
      const page = await browser.visit(
        authorizeUrl(auth.baseUrl, pkce().challenge, { client_id: 'demo-Shop', scope: 'data:read' }),
      );
      const [, href = ''] = /href="([^"]+)">Forgotten your password/.exec(page.html) ?? [];
      const { pathname, searchParams } = new URL(href.replaceAll('&amp;', '&'), auth.baseUrl);
      assert.deepEqual([pathname, searchParams.get('client')], ['/password/forgotten', 'demo-Shop']);
      const form = await browser.visit(new URL(href.replaceAll('&amp;', '&'), auth.baseUrl));
      const sent = await browser.submit(form, { username: 'nodomain' });
      await server.mails.next({ to: user.email });
      const link = (seen: Seen, text: string): URL => {
        const [, to = ''] = new RegExp(`href="([^"]+)">${text}`).exec(seen.html.replaceAll(/\s+/g, ' ')) ?? [];
        return new URL(to.replaceAll('&amp;', '&'), auth.baseUrl);
      };
      // Both ways back: another name for the same client, or the sign-in that was left.
      const again = await browser.visit(link(sent, 'ask again with another username'));
      assert.match(again.html, /Forgotten password[\s\S]*name="client" value="demo-Shop"/);
      for (const seen of [form, sent, again])
        assert.match((await browser.visit(link(seen, 'Back to the sign-in'))).html, /name="password"/);
    });

    it('leads to no address except a sign-in here', async () => {
      for (const from of ['//evil.example', 'https://evil.example', '../account', 'a/../../x', '"><script>', '']) {
        const address = `${auth.baseUrl}/password/forgotten?${new URLSearchParams({ sign_in: from })}`;
        const browser = new Browser();
        const page = await browser.visit(address);
        const sent = await browser.submit(page, { username: 'nobody', sign_in: from });
        for (const { html } of [page, sent]) assert.doesNotMatch(html, /Back to the sign-in|evil|account"|<script/);
      }
    });
  });

  describe('a changed address', () => {
    /** Subjects of the mails to both addresses. */
    const CHANGED = /Adresse wird|address is being|bestätigen|Confirm/;
    before(() =>
      auth.database.query(
        `CREATE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           PERFORM pg_advisory_xact_lock_shared(4711);
           RETURN NULL;
         END $$`,
      ),
    );
    const waiting = async (): Promise<number> => {
      const { rows } = await auth.database.query<{ waiting: number }>(
        `SELECT count(*)::int AS waiting FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      return rows[0]!.waiting;
    };
    /** Submits the form behind a link; returns the next page. */
    const use = async (link: string): Promise<Seen> => {
      const browser = new Browser();
      const page = await browser.visit(link);
      return page.status === 200 ? browser.submit(page) : page;
    };
    const noted = (operationId: string, userId: string): unknown =>
      auth.notes.find((note) => note.operationId === operationId && note.userId === userId)?.changes;
    const changed = async (name: string, password = PASSWORD) => {
      const user = await newUser(name, { password });
      const next = `${name}.new@mail.example`;
      return { user, next, ...(await change(user, next)) };
    };
    const change = async (
      user: { userId: string; username: string; email: string },
      next: string,
      current = user.email,
    ) => {
      await sync({ ...user, email: next });
      const undo = linkIn(await server.mails.next({ to: current, subject: CHANGED }));
      const confirmation = linkIn(await server.mails.next({ to: next, subject: CHANGED }));
      await settled();
      return { undo, confirmation };
    };
    /** Requests a new password; returns the link that was sent to this address. */
    const linksGoTo = async (username: string, address: string): Promise<string> => {
      await ask(username);
      return linkIn(await server.mails.next({ to: address, subject: /Neues Passwort|new password/ }));
    };
    const daysPass = (userId: string, days: number): Promise<unknown> =>
      auth.database.query(
        'UPDATE auth.address_links SET expires_at = expires_at - make_interval(days => $2) WHERE user_id = $1',
        [userId, days],
      );

    it('gets links once its user has confirmed it there; until then the earlier one does', async () => {
      const user = await newUser('mover', { password: 'known before' });
      await sync({ ...user, email: 'moved@mail.example' });
      const told = await server.mails.next({ to: user.email });
      assert.match(told.text ?? '', /moved@mail\.example/);
      const confirmation = linkIn(await server.mails.next({ to: 'moved@mail.example' }));
      await settled();
      const early = await linksGoTo(user.username, user.email);
      const browser = new Browser();
      const page = await browser.visit(confirmation);
      assert.match(page.html, /moved@mail\.example/);
      assert.equal((await browser.visit(confirmation)).status, 200, 'looking at it does nothing');
      assert.match((await browser.submit(page)).html, /Your address is confirmed/);
      assert.equal((await browser.submit(page)).status, 410);
      await linksGoTo(user.username, 'moved@mail.example');
      assert.equal((await new Browser().visit(early)).status, 410, 'a link that went to the earlier address ends');
      assert.deepEqual(noted('auth.users.confirmAddress', user.userId), {
        mailAddress: { from: user.email, to: 'moved@mail.example' },
      });
    });

    it('gets no link while it is not confirmed, however long', async () => {
      const { user, confirmation } = await changed('mistyped');
      await daysPass(user.userId, 7);
      assert.equal((await use(confirmation)).status, 410);
      await linksGoTo(user.username, user.email);
    });

    it('is dropped from the earlier one before it is confirmed, and every session ends', async () => {
      const { user, undo, confirmation } = await changed('victim');
      const session = await tokens(auth.baseUrl, { scope: 'data:read offline_access' }, user.username);
      assert.match((await use(undo)).html, /The change is undone/);
      for (const link of [undo, confirmation]) assert.equal((await use(link)).status, 410);
      assert.equal((await refresh(auth.baseUrl, session.refresh_token)).status, 400);
      assert.ok(auth.revoked.includes(claims(session.access_token).grant_id));
      assert.equal(await signsIn(user.username, PASSWORD), true, 'the password never was in danger');
      await linksGoTo(user.username, user.email);
    });

    it('is undone from the earlier one for a week, with all that was obtained by it', async () => {
      const { user, next, undo, confirmation } = await changed('robbed', 'words of the owner');
      await use(confirmation);
      await choose(await linksGoTo(user.username, next), PASSWORD);
      const thief = await tokens(auth.baseUrl, { scope: 'data:read offline_access' }, user.username);
      await auth.database.query(
        `INSERT INTO auth.passkeys (tenant_id, id, user_id, name, public_key, counter, transports, backup_eligible, backed_up)
         VALUES ($1, 'of a thief', $2, '', '', 0, '{}', false, false)`,
        [DEMO, user.userId],
      );
      await auth.database.query(
        `INSERT INTO auth.authenticators (tenant_id, user_id, sealed_secret, last_step) VALUES ($1, $2, '', 0)`,
        [DEMO, user.userId],
      );
      await auth.database.query(
        `INSERT INTO auth.recovery_codes (tenant_id, user_id, code_hash) VALUES ($1, $2, 'of a thief')`,
        [DEMO, user.userId],
      );
      const handedOver = await linksGoTo(user.username, next);
      await daysPass(user.userId, 6);
      assert.match((await use(undo)).html, /robbed@mail\.example[\s\S]*choose a new one/);
      assert.deepEqual(noted('auth.users.undoAddress', user.userId), {
        mailAddress: { from: next, to: user.email },
      });
      assert.equal((await use(undo)).status, 410, 'once');
      assert.equal((await new Browser().visit(handedOver)).status, 410);
      assert.equal((await refresh(auth.baseUrl, thief.refresh_token)).status, 400);
      assert.equal(await signsIn(user.username, PASSWORD), false);
      const { rows } = await auth.database.query(
        `SELECT user_id FROM auth.passkeys WHERE user_id = $1 UNION ALL SELECT user_id FROM auth.authenticators WHERE user_id = $1
         UNION ALL SELECT user_id FROM auth.recovery_codes WHERE user_id = $1`,
        [user.userId],
      );
      assert.deepEqual(rows, []);
      await choose(await linksGoTo(user.username, user.email), 'new words of the owner');
      assert.equal(await signsIn(user.username, 'new words of the owner'), true);
    });

    it('keeps factors that its user had before, when it is undone', async () => {
      const user = await newUser('keyring', { password: 'known before' });
      await auth.database.query(
        `INSERT INTO auth.authenticators (tenant_id, user_id, sealed_secret, last_step) VALUES ($1, $2, '', 0)`,
        [DEMO, user.userId],
      );
      const { undo, confirmation } = await change(user, 'keyring.new@mail.example');
      await use(confirmation);
      await use(undo);
      const { rows } = await auth.database.query('SELECT FROM auth.authenticators WHERE user_id = $1', [user.userId]);
      assert.equal(rows.length, 1);
    });

    it('is final a week after its confirmation', async () => {
      const { user, next, undo, confirmation } = await changed('settled');
      await daysPass(user.userId, 6);
      await use(confirmation);
      await daysPass(user.userId, 6);
      assert.equal((await new Browser().visit(undo)).status, 200, 'the week begins with the confirmation');
      await daysPass(user.userId, 1);
      assert.equal((await use(undo)).status, 410);
      await linksGoTo(user.username, next);
    });

    it('does not take effect while its user could not be notified at the earlier one', async () => {
      const user = await newUser('unasked', { password: 'known before' });
      await auth.database.query(
        `INSERT INTO auth.mails (tenant_id, user_id, kind, address_hash, give_up_at, ended_at, outcome)
         SELECT $1, gen_random_uuid(), 'addressChanged', sha256(convert_to($2, 'UTF8')), now(), now(), 'sent'
         FROM generate_series(1, 20) i`,
        [DEMO, user.email],
      );
      const next = 'unasked.new@mail.example';
      await sync({ ...user, email: next });
      const confirmation = linkIn(await server.mails.next({ to: next }));
      for (let i = 0; i < 2; i++) {
        const page = await use(confirmation);
        assert.equal(page.status, 409);
        assert.match(page.html, /not confirmed yet/);
      }
      await linksGoTo(user.username, user.email);
    });

    it('does not take effect before the notice to the earlier one has left', async () => {
      const user = await newUser('slowpoke', { password: 'known before' });
      delayed.add(user.email);
      const next = 'slowpoke.new@mail.example';
      await sync({ ...user, email: next });
      const confirmation = linkIn(await server.mails.next({ to: next }));
      const attempts = async () =>
        (
          await auth.database.query<{ attempts: number }>(
            "SELECT attempts FROM auth.mails WHERE user_id = $1 AND kind = 'addressChanged' AND due_at > now() + interval '20 seconds'",
            [user.userId],
          )
        ).rows[0]?.attempts;
      while ((await attempts()) !== 1) await pause(25);
      assert.equal((await use(confirmation)).status, 409);
      delayed.delete(user.email);
      await auth.database.query('UPDATE auth.mails SET due_at = now() WHERE user_id = $1', [user.userId]);
      await settled();
      assert.match((await use(confirmation)).html, /Your address is confirmed/);
    });

    it('takes effect when the earlier one has no mailbox any more', async () => {
      const user = await newUser('orphaned', { password: 'known before' });
      rejected.add(user.email);
      const next = 'orphaned.new@mail.example';
      await sync({ ...user, email: next });
      const confirmation = linkIn(await server.mails.next({ to: next }));
      await settled();
      assert.match((await use(confirmation)).html, /Your address is confirmed/);
    });

    it('does not take effect by a notice about another one, which a flood of changes has used up', async () => {
      const user = await newUser('besieged', { password: 'known before' });
      for (const name of ['first', 'second', 'third']) await change(user, `besieged.${name}@mail.example`);
      const next = 'besieged.last@mail.example';
      await sync({ ...user, email: next });
      assert.equal((await use(linkIn(await server.mails.next({ to: next })))).status, 409);
      await settled();
      assert.equal((await to(user.email)).length, 3);
      await linksGoTo(user.username, user.email);
    });

    it('is undone from the first one, however often it was changed since', async () => {
      const { user, next, undo, confirmation } = await changed('chased');
      await use(confirmation);
      const second = await change(user, 'chased.twice@mail.example', next);
      await use(second.confirmation);
      await sync({ ...user, email: 'chased.thrice@mail.example' });
      // A thief undoes changes of their own, and deactivates the user.
      assert.match((await use(second.undo)).html, /The change is undone/);
      await sync({ ...user, active: false });
      assert.match((await use(undo)).html, /chased@mail\.example/);
      await sync(user);
      await linksGoTo(user.username, user.email);
    });

    it('is informed when it is taken back, and not proposed again by later changes of the user', async () => {
      const { user, next, undo, confirmation } = await changed('reclaimed');
      await use(confirmation);
      await use(undo);
      await server.mails.next({ to: next, subject: /rückgängig|undone/ });
      await sync({ ...user, email: next, username: 'reclaimed.renamed@demo.example' });
      const { undo: again, user: other, next: pending } = await changed('disputed');
      await use(again);
      await sync({ ...other, email: pending });
      await settled();
      for (const address of [user.email, next, other.email, pending])
        assert.equal((await to(address)).filter(({ subject }) => CHANGED.test(subject ?? '')).length, 1, address);
      await sync(user);
      await change(user, next);
    });

    it('gets no link that was in the making when it was taken back', async () => {
      const { user, next, undo, confirmation } = await changed('retaken', 'known before');
      await use(confirmation);
      await auth.database.query(
        `CREATE TRIGGER hold BEFORE INSERT ON auth.password_links FOR EACH STATEMENT EXECUTE FUNCTION public.hold()`,
      );
      try {
        await auth.database.transaction(async (tx) => {
          await tx.query('SELECT pg_advisory_xact_lock(4711)');
          await ask(user.username);
          while ((await waiting()) < 1) await pause(10);
          assert.match((await use(undo)).html, /The change is undone/);
        });
        await settled();
      } finally {
        await auth.database.query('DROP TRIGGER hold ON auth.password_links');
      }
      assert.equal((await server.mails.all({ to: next, subject: /Neues Passwort|new password/ })).length, 0);
      const { rows } = await auth.database.query('SELECT FROM auth.password_links WHERE user_id = $1', [user.userId]);
      assert.equal(rows.length, 0);
    });

    it('is taken back while a link sets a password, without a deadlock', async () => {
      const { user, next, undo, confirmation } = await changed('contested', 'known before');
      await use(confirmation);
      const link = await linksGoTo(user.username, next);
      await auth.database.query(
        `CREATE TRIGGER hold AFTER UPDATE ON auth.password_links FOR EACH STATEMENT EXECUTE FUNCTION public.hold()`,
      );
      try {
        const { set, undone } = await auth.database.transaction(async (tx) => {
          await tx.query('SELECT pg_advisory_xact_lock(4711)');
          const set = choose(link, 'words of a thief');
          while ((await waiting()) < 1) await pause(10);
          const undone = use(undo);
          while ((await waiting()) < 2) await pause(10);
          return { set, undone };
        });
        assert.match((await set).html, /Your password is set/);
        assert.match((await undone).html, /The change is undone/);
      } finally {
        await auth.database.query('DROP TRIGGER hold ON auth.password_links');
      }
      assert.equal(await signsIn(user.username, 'words of a thief'), false);
    });

    it('voids the links of a change that was not confirmed', async () => {
      const { user, undo, confirmation } = await changed('twice');
      const again = await change(user, 'twice.again@mail.example');
      for (const link of [undo, confirmation]) assert.equal((await use(link)).status, 410);
      await linksGoTo(user.username, user.email);
      await use(again.confirmation);
      await linksGoTo(user.username, 'twice.again@mail.example');
    });

    it('has to be confirmed by users who sign in at their company, too', async () => {
      const user = await newUser('employee');
      await server.mails.next({ to: user.email });
      await auth.database.query(
        `INSERT INTO auth.identities (tenant_id, issuer, subject, user_id) VALUES ($1, 'https://login.corp.example', 'e', $2)`,
        [DEMO, user.userId],
      );
      const { confirmation } = await change(user, 'employee.new@mail.example');
      await linksGoTo(user.username, user.email);
      assert.match((await use(confirmation)).html, /Your address is confirmed/);
    });

    it('waits to be confirmed while the tenant is suspended, but can be undone', async () => {
      const { user, next, undo, confirmation } = await changed('paused');
      const [applied, other] = [await changed('held-back'), await newUser('not-asked', { password: 'known before' })];
      await use(applied.confirmation);
      auth.suspended.add(DEMO);
      await auth.bump();
      try {
        const page = await new Browser().visit(confirmation);
        assert.equal(page.status, 403);
        assert.match(page.html, /Access is suspended/);
        assert.doesNotMatch(page.html, /paused/);
        const posted = await fetch(confirmation, {
          method: 'POST',
          headers: { origin: auth.baseUrl },
          body: new URLSearchParams(),
        });
        assert.equal(posted.status, 403);
        assert.match((await use(applied.undo)).html, /The change is undone/);
        await sync({ ...other, email: 'not-asked.new@mail.example' });
        await settled();
        assert.deepEqual(await to('not-asked.new@mail.example'), []);
      } finally {
        auth.suspended.delete(DEMO);
        await auth.bump();
      }
      assert.match((await use(confirmation)).html, /paused\.new@mail\.example/);
      await linksGoTo(user.username, next);
      await linksGoTo(applied.user.username, applied.user.email);
      await use(undo);
      await linksGoTo(user.username, user.email);
    });

    it('stores its links as hashes alone', async () => {
      const { user, undo, confirmation } = await changed('hashed');
      const { rows } = await auth.database.query<{ hash: Buffer; row: string }>(
        'SELECT token_hash AS hash, link::text AS row FROM auth.address_links link WHERE user_id = $1',
        [user.userId],
      );
      const links = [undo, confirmation].map((link) => link.slice(link.lastIndexOf('/') + 1));
      assert.deepEqual(
        new Set(rows.map(({ hash }) => hash.toString('hex'))),
        new Set(links.map((token) => createHash('sha256').update(token).digest('hex'))),
      );
      for (const { row } of rows) for (const token of links) assert.ok(!row.includes(token));
    });

    it('notifies no address when only its case changes, and is dropped when it is changed back', async () => {
      const user = await newUser('Steady', { password: 'known before' });
      await sync({ ...user, email: user.email.toLowerCase() });
      await settled();
      assert.deepEqual(await to(user.email.toLowerCase()), []);
      await sync({ ...user, email: 'elsewhere@mail.example' });
      const confirmation = linkIn(await server.mails.next({ to: 'elsewhere@mail.example' }));
      await sync(user);
      assert.equal((await new Browser().visit(confirmation)).status, 410);
    });
  });

  describe('about sign-ins', () => {
    it('report a sign-in in a new browser, once for each, but not the first one', async () => {
      const user = await newUser('traveller', { password: 'known before' });
      const first = new Browser();
      await authorize(first, url(), user.username, 'known before');
      const browser = new Browser({ 'user-agent': FIREFOX, 'x-test-address': '203.0.113.77' });
      await authorize(browser, url(), user.username, 'known before');
      const mail = await server.mails.next({ to: user.email });
      assert.match(mail.text ?? '', /Firefox, Windows/);
      assert.match(mail.text ?? '', /203\.0\.113\.77/);
      for (const known of [first, browser]) {
        for (const name of known.cookies.keys()) if (!name.startsWith('erp_browser')) known.cookies.delete(name);
        await authorize(known, url(), user.username, 'known before');
      }
      await signsIn(user.username, 'a wrong password');
      await settled();
      assert.equal((await to(user.email)).length, 1);
    });
  });

  describe('all of them', () => {
    it('keep secrets out of the log and the outbox, and no address once they are sent', async () => {
      await settled();
      const links = (await server.mails.all()).flatMap(({ text }) => /\/([\w-]{43})\b/.exec(text ?? '')?.[1] ?? []);
      assert.ok(links.length > 5);
      const { rows } = await auth.database.query<{ row: string }>('SELECT m::text AS row FROM auth.mails m');
      const kept = [...auth.log, ...rows.map(({ row }) => row)].join('\n');
      for (const link of links) assert.ok(!kept.includes(link));
      assert.ok(!kept.includes('@mail.example'));
      assert.ok((await server.mails.all()).every((mail) => recipient(mail) !== ''));
    });
  });
});
