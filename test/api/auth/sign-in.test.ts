import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { call } from '../../../contracts/call.ts';
import { AuthStore } from '../../../services/auth/store/store.ts';
import { authorize, authorizeUrl, Browser, claims, pkce, refresh, type Seen, tokens } from './browser.ts';
import { type AuthHarness, DEMO, PASSWORD, startAuth } from './harness.ts';

describe('sign-in', () => {
  let auth: AuthHarness;
  before(async () => {
    auth = await startAuth();
  });
  after(() => auth.stop());
  beforeEach(() => auth.database.query('DELETE FROM auth.attempts'));

  const url = (): URL => authorizeUrl(auth.baseUrl, pkce().challenge);
  const attempt = async (username: string, password: string, address = '192.0.2.1'): Promise<Seen> => {
    const browser = new Browser({ 'x-test-address': address });
    return browser.submit(await browser.visit(url()), { username, password });
  };
  const withoutVariables = (html: string): string =>
    html
      .replace(/name="csrf" value="[^"]*"/g, '')
      .replace(/(?:interaction\/|sign_in=)[\w-]+/g, '')
      .replace(/data-options="[^"]*"/, '')
      .replace(/id="username"[^>]*/, '');

  it('answers an unknown user identically to a wrong password', async () => {
    const unknown = await attempt('nobody@demo.example', 'demo-password');
    const wrong = await attempt('sam@demo.example', 'wrong-password');
    assert.equal(unknown.status, 401);
    assert.equal(wrong.status, 401);
    assert.equal(withoutVariables(unknown.html), withoutVariables(wrong.html));
    assert.match(wrong.html, /role="alert"/);
    assert.match(wrong.html, /<title>Problem: sign in/);
  });

  it('takes as long for an unknown or a deactivated user as for a wrong password', async () => {
    const gone = { userId: '01990000-0000-7000-8000-0000000000f1', username: 'gone@demo.example', email: 'x' };
    for (const more of [{ active: true, password: PASSWORD }, { active: false }])
      await call(auth.broker, 'auth.users.sync', { tenantId: DEMO, users: [{ ...gone, ...more }] });
    const once = async (username: string, password = 'wrong-password'): Promise<number> => {
      await auth.database.query('DELETE FROM auth.attempts');
      const browser = new Browser();
      const page = await browser.visit(url());
      const begin = performance.now();
      assert.equal((await browser.submit(page, { username, password })).status, 401);
      return performance.now() - begin;
    };
    // The fastest of many, alternately: load of the machine affects neither, and each further try only brings
    // both closer to their true duration.
    const fastest = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    const alike = (): boolean => Math.min(...fastest) > Math.max(...fastest) * 0.6;
    for (let i = 0; i < 60 && (i < 6 || !alike()); i++) {
      const took = [
        await once('sam@demo.example'),
        await once('nobody@demo.example'),
        await once('gone@demo.example', PASSWORD),
      ];
      for (const [kind, ms] of took.entries()) fastest[kind] = Math.min(fastest[kind]!, ms);
    }
    assert.ok(alike(), fastest.map((ms) => `${ms.toFixed(1)} ms`).join(', '));
  });

  it('admits many simultaneous sign-ins from one address', async () => {
    const store = new AuthStore(auth.database);
    const limit = { freeFailures: 1_000, waitMaxSeconds: 60 };
    const waits: number[] = [];
    for (let round = 0; round < 20; round++)
      waits.push(
        ...(await Promise.all(
          Array.from({ length: 20 }, () => store.attempts.count([{ key: 'address', limit, shared: true }])),
        )),
      );
    assert.deepEqual(
      waits.filter((seconds) => seconds > 0),
      [],
    );
  });

  it('delays guesses ever longer, also with the right password, and whether or not the user exists', async () => {
    for (const username of ['sam@demo.example', 'nobody@demo.example']) {
      for (let i = 0; i < 5; i++) assert.equal((await attempt(username, `wrong-${i}`)).status, 401, `attempt ${i}`);
      const blocked = await attempt(username, 'demo-password');
      assert.equal(blocked.status, 429);
      assert.match(blocked.html, /Too many attempts/);
      const wait = Number(blocked.headers.get('retry-after'));
      assert.ok(wait >= 1 && wait <= 40, `${wait} s`);
    }
    await auth.database.query('UPDATE auth.attempts SET blocked_until = now()');
    await attempt('sam@demo.example', 'wrong-again');
    const longer = await attempt('sam@demo.example', 'demo-password');
    assert.ok(Number(longer.headers.get('retry-after')) > 40);
    await auth.database.query('UPDATE auth.attempts SET blocked_until = now()');
    const right = await attempt('sam@demo.example', 'demo-password');
    assert.equal(right.status, 200);
    assert.equal((await attempt('sam@demo.example', 'wrong')).status, 401, 'the count began anew');
  });

  it('checks at most a few of many simultaneous guesses', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => attempt('sam@demo.example', `guess-${i}`)));
    assert.ok(answers.filter(({ status }) => status === 401).length <= 5);
    assert.ok(answers.filter(({ status }) => status === 429).length >= 15);
  });

  it('delays an address that tries many usernames, and not its neighbour', async () => {
    for (let i = 0; i < 30; i++) await attempt(`user${i}@demo.example`, 'guess', '198.51.100.7');
    assert.equal((await attempt('sam@demo.example', 'demo-password', '198.51.100.7')).status, 429);
    assert.equal((await attempt('sam@demo.example', 'demo-password', '198.51.100.8')).status, 200);
  });

  it('treats an IPv6 network as one address', async () => {
    for (let i = 0; i < 30; i++) await attempt(`user${i}@demo.example`, 'guess', `2001:db8:0:${i.toString(16)}::1`);
    assert.equal((await attempt('sam@demo.example', 'demo-password', '2001:db8:0:ffff::1')).status, 429);
    assert.equal((await attempt('sam@demo.example', 'demo-password', '2001:db8:1::1')).status, 200);
  });

  it('ignores case and surrounding blanks of a username', async () => {
    assert.equal((await attempt('  SAM@Demo.example ', 'demo-password')).status, 200);
  });

  it('shows pages that work without a script, cannot be framed, and label their parts', async () => {
    const page = await new Browser().visit(url());
    const policy = page.headers.get('content-security-policy')!;
    assert.match(policy, /default-src 'none'/);
    assert.match(policy, /frame-ancestors 'none'/);
    assert.match(policy, /form-action 'self' http:\/\/127\.0\.0\.1:49876;/);
    assert.doesNotMatch(policy, /unsafe/);
    assert.equal(page.headers.get('cache-control'), 'no-store');
    assert.equal(page.headers.get('x-content-type-options'), 'nosniff');
    assert.match(policy, /script-src 'sha256-[\w+/=]+';/);
    assert.doesNotMatch(page.html, /<script>|<script[^>]*src| on\w+="| style=/);
    assert.match(page.html, /<html lang="en">/);
    assert.match(page.html, /<main[ >]/);
    assert.match(page.html, /<label for="username">[\s\S]*id="username"/);
    assert.match(page.html, /<label for="password">[\s\S]*id="password"/);
    assert.match(page.html, /autocomplete="current-password"/);
  });

  it('hides its cookies from scripts and other sites', async () => {
    const response = await fetch(url(), { redirect: 'manual' });
    const cookies = response.headers.getSetCookie();
    assert.ok(cookies.length > 0);
    for (const cookie of cookies) {
      assert.match(cookie, /httponly/i);
      assert.match(cookie, /samesite=lax/i);
    }
  });

  describe('behind https', () => {
    after(() => new Browser().visit(url())); // the address that auth knows is the one of the last request
    const ask = async (path: string, cookie = '') => {
      const headers = {
        host: 'erp.example',
        'x-platform-base-url': 'https://erp.example',
        'x-forwarded-proto': 'http',
      };
      const request = {
        method: 'GET',
        url: path,
        headers: { ...headers, cookie },
        body: null,
        remoteAddress: '192.0.2.1',
      };
      const reply = await call(auth.broker, 'auth.http.handle', request);
      return {
        status: reply.status,
        location: new URL([reply.headers['location']].flat()[0] ?? '/', 'https://erp.example').pathname,
        cookies: [reply.headers['set-cookie'] ?? []].flat(),
      };
    };
    const begin = (cookie?: string) => ask(url().pathname + url().search, cookie);
    const jar = (cookies: readonly string[]): string => cookies.map((one) => one.split(';')[0]).join('; ');

    it('every cookie is limited to this host', async () => {
      const { cookies } = await begin();
      assert.ok(cookies.length >= 4);
      for (const cookie of cookies) {
        assert.match(cookie, /^__Host-[\w.~-]+=/);
        assert.match(cookie, /; path=\/(;|$)/);
        assert.match(cookie, /; secure(;|$)/);
        assert.match(cookie, /; httponly/i);
        assert.doesNotMatch(cookie, /domain=/i);
      }
    });

    it('a cookie that another host could have set is ignored', async () => {
      const { location, cookies } = await begin();
      assert.equal((await ask(location, jar(cookies))).status, 200);
      assert.equal((await ask(location, jar(cookies).replaceAll('__Host-', ''))).status, 400);
      assert.equal((await ask(location, jar(cookies).replaceAll(/__Host-|~[\w-]+/g, ''))).status, 400);
    });

    it('several sign-ins can be open in one browser, and the oldest are dropped', async () => {
      const known = new Map<string, string>();
      const started: string[] = [];
      for (let i = 0; i < 8; i++) {
        const { location, cookies } = await begin([...known].map(([name, value]) => `${name}=${value}`).join('; '));
        started.push(location);
        for (const cookie of cookies) {
          const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie)!;
          if (value === '') known.delete(name!);
          else known.set(name!, value!);
        }
      }
      const header = [...known].map(([name, value]) => `${name}=${value}`).join('; ');
      const statuses: number[] = [];
      for (const location of started) statuses.push((await ask(location, header)).status);
      assert.deepEqual(statuses, [400, 400, 200, 200, 200, 200, 200, 200]);
    });
  });

  it('shows the page that posts a response to the client in the design of all others', async () => {
    const browser = new Browser();
    const start = authorizeUrl(auth.baseUrl, pkce().challenge, { response_mode: 'form_post', state: '"><b>' });
    let page = await browser.submit(await browser.visit(start), {
      username: 'sam@demo.example',
      password: 'demo-password',
    });
    page = await browser.submit(page);
    assert.equal(page.status, 200);
    assert.match(page.html, /<form method="post" action="http:\/\/127\.0\.0\.1:49876\/callback">/);
    for (const name of ['code', 'iss', 'state']) assert.match(page.html, new RegExp(`name="${name}" value="[^"]+"`));
    assert.doesNotMatch(page.html, /<b>/);
    assert.match(page.html, /<html lang="en">[\s\S]*<button type="submit">Continue/, 'usable without scripts');
    const script = /<script>([\s\S]*?)<\/script>/.exec(page.html)![1]!;
    const allowed = createHash('sha256').update(script).digest('base64');
    const policy = page.headers.get('content-security-policy')!;
    assert.ok(policy.includes(`script-src 'sha256-${allowed}'`), policy);
    assert.match(policy, /default-src 'none'.*form-action 'self' http:\/\/127\.0\.0\.1:49876;.*frame-ancestors 'none'/);
    const ofOthers = (await new Browser().visit(url())).headers;
    for (const header of ['cache-control', 'referrer-policy', 'x-frame-options', 'x-content-type-options'])
      assert.equal(page.headers.get(header), ofOthers.get(header), header);
  });

  it('shows the switch to another user in the design of all others', async () => {
    const browser = new Browser();
    await authorize(browser, url());
    const again = authorizeUrl(auth.baseUrl, pkce().challenge, { prompt: 'login' });
    const page = await browser.submit(await browser.visit(again), {
      username: 'ada@demo.example',
      password: 'demo-password',
    });
    assert.match(page.html, /action="http[^"]*\/oauth2\/logout\/confirm"/);
    const policy = page.headers.get('content-security-policy')!;
    assert.match(policy, /form-action 'self' http:\/\/127\.0\.0\.1:49876;/);
    const consent = await browser.submit(page);
    assert.match(consent.html, /Allow ERP command line\?/);
    assert.match(consent.html, /ada@demo\.example/);
  });

  it('refuses forms of other sites, other browsers and unknown origin', async () => {
    const victim = new Browser();
    const page = await victim.visit(url());
    const answers = { username: 'sam@demo.example', password: 'demo-password' };
    assert.equal((await victim.submit(page, answers, { 'sec-fetch-site': 'cross-site' })).status, 403);
    assert.equal((await victim.submit(page, answers, { origin: 'https://evil.example' })).status, 403);
    assert.equal((await victim.submit(page, { ...answers, csrf: 'made-up' })).status, 400);
    assert.equal((await new Browser().submit(page, answers)).status, 400);
    const other = new Browser();
    await other.visit(url());
    assert.equal((await other.submit(page, answers)).status, 400);
    assert.equal((await victim.submit(page, answers)).status, 200, 'the real one still works');
  });

  it('signs out on request, after confirmation', async () => {
    const browser = new Browser();
    await authorize(browser, url());
    const page = await browser.visit(`${auth.baseUrl}/oauth2/logout`);
    assert.match(page.html, /Sign out\?/);
    assert.match((await browser.submit(page)).html, /You are signed out/);
    assert.match((await browser.visit(url())).html, /name="password"/);
  });

  it('answers unusual requests with its own pages, never with a 500', async () => {
    const browser = new Browser();
    for (const path of [
      '/oauth2/interaction/none',
      '/password/none',
      '/oauth2/authorize',
      '/oauth2/authorize?client_id=%00&redirect_uri=x',
      '/oauth2/authorize?client_id=erp-cli&client_id=erp-cli',
      '/oauth2/authorize/none',
      '/device?user_code=%3Cscript%3E',
      '/oauth2/nothing',
      '/.well-known/nothing',
      '/oauth2/register',
      '/oauth2/authorize?client_id=erp-cli&request_uri=urn:ietf:params:oauth:request_uri:%00',
      `${url().pathname}${url().search}&nonce=%00`,
    ]) {
      const seen = await browser.open(auth.baseUrl + path);
      assert.ok(seen.status < 500, `${path}: ${seen.status}`);
      assert.doesNotMatch(seen.html, /<script>/);
    }
    const nul = ['device_code', 'token', 'refresh_token', 'code', 'scope', 'client_secret'].map(
      (name) => `${name}=%00`,
    );
    for (const body of [
      'a=1',
      '{',
      '%ff=%fe&username[]=1',
      `client_id=erp-cli&grant_type=urn:ietf:params:oauth:grant-type:device_code&${nul.join('&')}`,
      'client_id=erp-cli&token=%00',
      'client_id=erp-cli&token=a\0',
    ])
      for (const path of ['/oauth2/token', '/oauth2/revoke', '/oauth2/introspect', '/oauth2/par', '/device']) {
        const response = await fetch(auth.baseUrl + path, {
          method: 'POST',
          body,
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
        });
        assert.ok(response.status < 500, `${path}: ${response.status}`);
      }
    const page = await browser.visit(url());
    assert.equal((await browser.submit(page, { username: 'sam\0', password: 'x' })).status, 400);
  });

  describe('set-password links', () => {
    const NEW = '01990000-0000-7000-8000-0000000000d1';
    const user = { userId: NEW, username: 'new@demo.example', email: 'new@demo.example', active: true };
    const sync = () => call(auth.broker, 'auth.users.sync', { tenantId: DEMO, users: [user] });

    it('are created once for a user without a password, work once, and are stored as a hash', async () => {
      await sync();
      await sync();
      const link = await auth.linkTo('new@demo.example');
      assert.equal((await auth.mails.all({ to: 'new@demo.example' })).length, 1);
      assert.ok(!auth.log.some((line) => line.includes(link.slice(-43))), 'no link in the log');
      const { rows } = await auth.database.query<{ n: number }>(
        'SELECT count(*)::int AS n FROM auth.password_links l WHERE position($1 in l::text) > 0',
        [link.split('/').at(-1)],
      );
      assert.equal(rows[0]!.n, 0);

      const browser = new Browser();
      const page = await browser.visit(link);
      assert.match(page.html, /Choose a password/);
      assert.match(page.html, /new@demo\.example/);
      const short = await browser.submit(page, { password: 'short', repeated: 'short' });
      assert.equal(short.status, 422);
      assert.match(short.html, /role="alert"/);
      const unequal = await browser.submit(page, {
        password: 'a fine long password',
        repeated: 'another one entirely',
      });
      assert.equal(unequal.status, 422);
      const fine = { password: 'a fine long password', repeated: 'a fine long password' };
      assert.match((await browser.submit(page, fine)).html, /Your password is set/);
      const again = await browser.submit(page, fine);
      assert.deepEqual([again.status, /Your password is set/.test(again.html)], [200, true], 'the answer was lost');
      const other = { password: 'a finer long password', repeated: 'a finer long password' };
      assert.equal((await browser.submit(page, other)).status, 410);
      assert.equal((await browser.submit(page, { ...fine, form: 'x'.repeat(43) })).status, 410, 'another form');
      assert.equal((await browser.visit(link)).status, 410);
      await authorize(new Browser(), url(), 'new@demo.example', fine.password);
    });

    it('expire', async () => {
      const other = {
        ...user,
        userId: '01990000-0000-7000-8000-0000000000d2',
        username: 'late@demo.example',
        email: 'late@demo.example',
      };
      await call(auth.broker, 'auth.users.sync', { tenantId: DEMO, users: [other] });
      const link = await auth.linkTo('late@demo.example');
      await auth.database.query('UPDATE auth.password_links SET expires_at = now()');
      assert.equal((await new Browser().visit(link)).status, 410);
    });

    it('can be created by an operator for a user who forgot the password, which they replace', async () => {
      const before = await tokens(auth.baseUrl, { scope: 'data:read offline_access' }, 'ada@demo.example');
      const { url: link } = await call(auth.broker, 'auth.users.createLink', { username: 'ada@demo.example' });
      assert.ok(link.startsWith(`${auth.baseUrl}/password/`));
      const browser = new Browser();
      const password = 'entirely new words';
      await browser.submit(await browser.visit(link), { password, repeated: password });
      await authorize(new Browser(), url(), 'ada@demo.example', password);
      assert.equal((await attempt('ada@demo.example', 'demo-password')).status, 401);
      assert.equal((await refresh(auth.baseUrl, before.refresh_token)).status, 400, 'who had the old one is out');
      assert.ok(auth.revoked.includes(claims(before.access_token).grant_id));
      await assert.rejects(call(auth.broker, 'auth.users.createLink', { username: 'nobody@demo.example' }), {
        code: 'PARAMETER_INVALID',
      });
    });

    it('set one password when two requests use one at once', async () => {
      const other = {
        ...user,
        userId: '01990000-0000-7000-8000-0000000000d3',
        username: 'twice@demo.example',
        email: 'twice@demo.example',
      };
      await call(auth.broker, 'auth.users.sync', { tenantId: DEMO, users: [other] });
      const browser = new Browser();
      const page = await browser.visit(await auth.linkTo('twice@demo.example'));
      const answers = await Promise.all(
        ['the first password', 'the second password'].map((password) =>
          browser.submit(page, { password, repeated: password }),
        ),
      );
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 410]);
    });
  });
});
