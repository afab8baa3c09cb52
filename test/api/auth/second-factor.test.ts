import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { call } from '../../../contracts/call.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { CHALLENGE_SECONDS, Challenges } from '../../../services/auth/factors/challenges.ts';
import { Passkeys } from '../../../services/auth/factors/passkeys.ts';
import { AuthStore } from '../../../services/auth/store/store.ts';
import { SoftwareAuthenticator } from '../../support/authenticator.ts';
import { atTime } from '../../support/time.ts';
import {
  authorizeUrl,
  Browser,
  claims,
  exchange,
  pkce,
  post,
  refresh,
  type Seen,
  type TokenAnswer,
} from './browser.ts';
import { codeFor, codesOn, optionsOn, sealedOn, secretOn } from './factor-pages.ts';
import { ACME, type AuthHarness, DEMO, EVE, externalClient, PASSWORD, SAM, startAuth } from './harness.ts';

const run = promisify(execFile);
const MFA = 'https://refeds.org/profile/mfa';

describe('second factor', () => {
  let auth: AuthHarness;
  let proof: ReturnType<typeof pkce>;
  before(async () => {
    auth = await startAuth();
  });
  after(() => auth.stop());
  beforeEach(async () => {
    auth.secondFactor.clear();
    for (const tenantId of [DEMO, ACME]) await auth.bump(tenantId);
    for (const table of ['passkeys', 'authenticators', 'recovery_codes', 'attempts'])
      await auth.database.query(`DELETE FROM auth.${table}`);
    auth.factorChanges.length = 0;
  });

  const url = (more: Record<string, string> = {}): URL => {
    proof = pkce();
    return authorizeUrl(auth.baseUrl, proof.challenge, { scope: 'openid data:read', ...more });
  };
  const password = async (
    browser: Browser,
    username = 'sam@demo.example',
    more: Record<string, string> = {},
  ): Promise<Seen> => browser.submit(await browser.visit(url(more)), { username, password: PASSWORD });
  const demand = async (policy: 'administrators' | 'everyone', tenantId = DEMO): Promise<void> => {
    auth.secondFactor.set(tenantId, policy);
    await auth.bump(tenantId);
  };
  /** Consents, and returns the tokens. */
  const tokensAfter = async (browser: Browser, page: Seen): Promise<TokenAnswer> => {
    assert.match(page.html, /Allow ERP command line\?/, page.html.slice(-2500));
    const { location } = await browser.submit(page);
    assert.ok(location);
    const { status, body } = await exchange(auth.baseUrl, location.searchParams.get('code') ?? '', proof.verifier);
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  };
  /** Signs in with a password and sets up the required factor. */
  const enrolApp = async (username?: string) => {
    await demand('everyone');
    const browser = new Browser();
    const page = await password(browser, username);
    assert.match(page.html, /Protect your account/);
    const secret = secretOn(page);
    const codesPage = await browser.submit(page, {
      decision: 'addApp',
      setup: sealedOn(page),
      code: codeFor(secret),
    });
    assert.match(codesPage.html, /Keep your recovery codes/, codesPage.html.slice(-2500));
    await auth.database.query('UPDATE auth.authenticators SET last_step = 0');
    return { browser, secret, codes: codesOn(codesPage), codesPage };
  };
  const enrolPasskey = async (
    username?: string,
    device = new SoftwareAuthenticator(auth.baseUrl),
  ): Promise<{ device: SoftwareAuthenticator; browser: Browser; codesPage: Seen }> => {
    await demand('everyone');
    const browser = new Browser();
    const page = await password(browser, username);
    const codesPage = await browser.submit(page, {
      decision: 'addPasskey',
      credential: device.create(optionsOn(page)),
    });
    assert.match(codesPage.html, /Keep your recovery codes/, codesPage.html.slice(-2500));
    return { device, browser, codesPage };
  };

  describe('setting', () => {
    it('off or absent: the password is sufficient', async () => {
      for (const policy of ['off', null] as const) {
        if (policy) auth.secondFactor.set(DEMO, policy);
        await auth.bump();
        const browser = new Browser();
        assert.match((await password(browser, 'ada@demo.example')).html, /Allow ERP command line\?/);
      }
    });

    it('administrators: required only of users who hold an administrative permission', async () => {
      await demand('administrators');
      assert.match((await password(new Browser(), 'ada@demo.example')).html, /Protect your account/);
      assert.match((await password(new Browser(), 'sam@demo.example')).html, /Allow ERP command line\?/);
    });

    it('everyone: required of every user of the tenant, and of no other', async () => {
      await demand('everyone');
      assert.match((await password(new Browser(), 'sam@demo.example')).html, /Protect your account/);
      assert.match((await password(new Browser(), 'eve@acme.example')).html, /Allow ERP command line\?/);
    });

    it('applies to the next authorization in a browser that signed in before the setting', async () => {
      const browser = new Browser();
      await tokensAfter(browser, await password(browser));
      assert.match((await browser.visit(url())).html, /Allow ERP command line\?/);
      await demand('everyone');
      assert.match((await browser.visit(url())).html, /name="password"/);
    });

    it('withholds tokens until the second factor is set up, whatever other page is opened', async () => {
      await demand('everyone');
      const browser = new Browser();
      const page = await password(browser);
      assert.match(page.html, /Protect your account/);
      assert.match((await browser.submit(page, { decision: 'finish' })).html, /Protect your account/);
      assert.match((await browser.submit(page, { decision: 'allow' })).html, /Protect your account/);
      assert.match((await browser.visit(page.url)).html, /Protect your account/);
      assert.match((await browser.visit(url())).html, /name="password"/, 'there is no session yet');
    });
  });

  describe('npm run token', () => {
    const script = (...more: string[]) =>
      run(process.execPath, ['scripts/token.ts', '--user', 'sam@demo.example', '--base-url', auth.baseUrl, ...more]);
    const refused = async (...more: string[]): Promise<string> => {
      const { stdout, stderr } = await script(...more).then(
        () => assert.fail('there is a token'),
        (error: { stdout: string; stderr: string }) => error,
      );
      assert.equal(stdout, '');
      return stderr;
    };

    it('reports that an account needs a second factor, and sets up nothing', async () => {
      await demand('everyone');
      const told = await refused();
      assert.match(
        told,
        /^token: This account needs a second factor and has none yet\. Sign in with a browser at http/,
      );
      assert.deepEqual(
        auth.refusals.slice(-1).filter(({ code }) => code === 'SECOND_FACTOR_WRONG'),
        [],
      );
    });

    it('accepts the code of an authenticator app', async () => {
      const { secret } = await enrolApp();
      assert.match(await refused(), /needs a second factor: add a code of its authenticator app, --code/);
      assert.match(await refused('--code', '000000'), /The code is not right/);
      const { stdout } = await script('--code', codeFor(secret));
      assert.deepEqual(claims(stdout).amr, ['pwd', 'otp', 'mfa']);
    });

    it('reports that a passkey works only in a browser', async () => {
      await auth.database.query(
        `INSERT INTO auth.passkeys (tenant_id, id, user_id, name, public_key, counter, transports, backup_eligible,
           backed_up) VALUES ($1, 'stored', $2, 'Key', '', 0, '{}', true, true)`,
        [DEMO, SAM],
      );
      assert.match(await refused('--code', '123456'), /its passkey works in a browser alone/);
    });
  });

  describe('authenticator app', () => {
    it('is set up with a valid code, issues ten recovery codes once, and signs in from then on', async () => {
      await demand('everyone');
      const browser = new Browser();
      const page = await password(browser);
      assert.match(page.html, /<svg/);
      const secret = secretOn(page);
      const wrong = await browser.submit(page, { decision: 'addApp', setup: sealedOn(page), code: '000000' });
      assert.equal(wrong.status, 401);
      assert.equal(secretOn(wrong), secret, 'the same key is shown again');
      const codesPage = await browser.submit(wrong, {
        decision: 'addApp',
        setup: sealedOn(wrong),
        code: codeFor(secret),
      });
      assert.equal(new Set(codesOn(codesPage)).size, 10);
      assert.deepEqual(codesOn(await browser.visit(page.url)), [], 'shown once');
      const answer = await tokensAfter(browser, await browser.submit(codesPage));
      assert.deepEqual(claims(answer.id_token).amr, ['pwd', 'otp', 'mfa']);
      assert.equal(claims(answer.id_token).acr, MFA);
      const { rows } = await auth.database.query<{ n: number }>(
        'SELECT count(*)::int AS n FROM auth.authenticators a WHERE position($1 in a::text) > 0',
        [Buffer.from(secret).toString('hex')],
      );
      assert.equal(rows[0]?.n, 0, 'the secret is not stored as it is');
      assert.deepEqual(
        auth.factorChanges.map(({ event, userId, actorId }) => ({ event, userId, actorId })),
        [{ event: 'authenticatorAdded', userId: SAM, actorId: SAM }],
      );

      const again = new Browser();
      const second = await password(again);
      assert.match(second.html, /Confirm it is you/);
      assert.match((await again.submit(second, { code: codeFor(secret, 1) })).html, /Allow ERP command line\?/);
    });

    it('accepts each code once, also when two requests send it at the same moment', async () => {
      const { secret } = await enrolApp();
      const browsers = [new Browser(), new Browser()];
      const pages = await Promise.all(browsers.map((browser) => password(browser)));
      const code = codeFor(secret);
      const answers = await Promise.all(pages.map((page, i) => browsers[i]!.submit(page, { code })));
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 401]);
      const late = new Browser();
      assert.equal((await late.submit(await password(late), { code })).status, 401);
    });

    it('is required after the setting was switched off, because the user has set it up', async () => {
      await enrolApp();
      auth.secondFactor.clear();
      await auth.bump();
      assert.match((await password(new Browser())).html, /Confirm it is you/);
    });

    it('delays guesses ever longer', async () => {
      const { secret } = await enrolApp();
      const browser = new Browser({ 'x-test-address': '198.51.100.8' });
      const page = await password(browser);
      for (let i = 0; i < 5; i++) assert.equal((await browser.submit(page, { code: `00000${i}` })).status, 401);
      const blocked = await browser.submit(page, { code: codeFor(secret) });
      assert.equal(blocked.status, 429);
      assert.match(blocked.html, /Too many attempts/);
      const other = new Browser({ 'x-test-address': '198.51.100.9' });
      const elsewhere = await other.submit(await password(other), { code: codeFor(secret) });
      assert.equal(elsewhere.status, 429, 'another address shares the count of the user');
      const told = auth.refusals.filter(({ userId }) => userId === SAM).map(({ code }) => code);
      assert.deepEqual(told.slice(-7), [...Array(5).fill('SECOND_FACTOR_WRONG'), 'SIGN_IN_BLOCKED', 'SIGN_IN_BLOCKED']);
    });

    it('admits its user in known browsers, however often others with the password guess', async () => {
      const { secret, browser: home, codesPage } = await enrolApp();
      await home.submit(codesPage);
      home.cookies.delete('erp_session');
      const guess = async (address: string): Promise<number> => {
        const stranger = new Browser({ 'x-test-address': address });
        return (await stranger.submit(await password(stranger), { code: '000000' })).status;
      };
      // New browsers from new addresses share one count: a password alone makes none of them known.
      const guesses: number[] = [];
      for (let i = 0; i < 8; i++) guesses.push(await guess(`203.0.113.${i % 3}`));
      assert.deepEqual(guesses, [401, 401, 401, 401, 401, 429, 429, 429]);
      home.headers['x-test-address'] = '203.0.113.1';
      const passed = await home.submit(await password(home), { code: codeFor(secret) });
      assert.match(passed.html, /Allow ERP command line\?/, 'a known browser, even behind the address of the guesser');
      await auth.database.query('UPDATE auth.authenticators SET last_step = 0');
      const newBrowser = new Browser();
      const atHome = await newBrowser.submit(await password(newBrowser), { code: codeFor(secret) });
      assert.match(atHome.html, /Allow ERP command line\?/, 'a known network');
      const away = new Browser({ 'x-test-address': '198.51.100.77' });
      assert.equal((await away.submit(await password(away), { code: codeFor(secret, 1) })).status, 429, 'a new place');
    });

    it('delays a known browser by its own wrong codes', async () => {
      const { secret, browser: home, codesPage } = await enrolApp();
      await home.submit(codesPage);
      home.cookies.delete('erp_session');
      const page = await password(home);
      for (let i = 0; i < 5; i++) assert.equal((await home.submit(page, { code: `00000${i}` })).status, 401);
      assert.equal((await home.submit(page, { code: codeFor(secret) })).status, 429);
    });

    it('cannot be replaced with the password alone', async () => {
      const { secret } = await enrolApp();
      const attacker = new Browser();
      const page = await password(attacker);
      const device = new SoftwareAuthenticator(auth.baseUrl);
      const stolen = await attacker.submit(page, { decision: 'addApp', setup: 'x', code: '123456' });
      assert.match(stolen.html, /Confirm it is you/);
      const options = JSON.stringify({
        rp: { id: '127.0.0.1' },
        user: { id: Buffer.from(SAM.replaceAll('-', ''), 'hex').toString('base64url') },
        challenge: 'AAAA',
      });
      const added = await attacker.submit(page, { decision: 'addPasskey', credential: device.create(options) });
      assert.match(added.html, /Confirm it is you/);
      assert.match((await attacker.submit(page, { code: codeFor(secret) })).html, /Allow ERP command line\?/);
    });

    it('accepts no key that was issued for another user', async () => {
      await demand('everyone');
      await demand('everyone', ACME);
      const [sam, eve] = [new Browser(), new Browser()];
      const samPage = await password(sam);
      const evePage = await password(eve, 'eve@acme.example');
      const setup = sealedOn(evePage);
      const answer = await sam.submit(samPage, { decision: 'addApp', setup, code: codeFor(secretOn(evePage)) });
      assert.equal(answer.status, 401);
    });
  });

  describe('recovery codes', () => {
    it('work once each, in any spelling, and are stored as hashes', async () => {
      const { codes } = await enrolApp();
      const [code] = codes;
      assert.ok(code);
      const { rows } = await auth.database.query<{ n: number }>(
        'SELECT count(*)::int AS n FROM auth.recovery_codes c WHERE position($1 in encode(code_hash, $2)) > 0',
        [code.replaceAll('-', ''), 'escape'],
      );
      assert.equal(rows[0]?.n, 0);
      const browser = new Browser();
      const typed = code.toLowerCase().replaceAll('-', ' ');
      const answer = await tokensAfter(
        browser,
        await browser.submit(await password(browser), { decision: 'recovery', recovery: typed }),
      );
      assert.deepEqual(claims(answer.id_token).amr, ['pwd', 'mfa']);
      assert.ok(auth.factorChanges.some(({ event }) => event === 'recoveryCodeUsed'));
      const again = new Browser();
      const refused = await again.submit(await password(again), { decision: 'recovery', recovery: code });
      assert.equal(refused.status, 401);
      assert.match(refused.html, /used already/);
    });

    it("keep their form open and in focus after a wrong one, without an error at the app's field", async () => {
      await enrolApp();
      const browser = new Browser();
      const page = await password(browser);
      assert.match(page.html, /<details>[\s\S]*name="recovery"/);
      assert.match(page.html, /<input id="code"[^>]* autofocus>/);
      const recovery = await browser.submit(page, { decision: 'recovery', recovery: 'AAAA-BBBB-CCCC-DDDD' });
      assert.match(recovery.html, /<details open>/);
      assert.match(recovery.html, /<input id="recovery"[^>]* aria-invalid="true" autofocus>/);
      assert.doesNotMatch(recovery.html, /<input id="code"[^>]*(?:aria-invalid|autofocus)/);
      const code = await browser.submit(page, { code: '000000' });
      assert.match(code.html, /<input id="code"[^>]* aria-invalid="true" autofocus>/);
      assert.match(code.html, /<details>/);
      assert.doesNotMatch(code.html, /<input id="recovery"[^>]*(?:aria-invalid|autofocus)/);
    });

    it('of another user are refused', async () => {
      const { codes } = await enrolApp('ada@demo.example');
      await enrolApp();
      const browser = new Browser();
      const page = await password(browser);
      assert.equal((await browser.submit(page, { decision: 'recovery', recovery: codes[0] ?? '' })).status, 401);
    });
  });

  describe('passkey', () => {
    it('is set up where a second factor is required, and replaces the password from then on', async () => {
      const { device, browser, codesPage } = await enrolPasskey();
      await tokensAfter(browser, await browser.submit(codesPage));

      const again = new Browser();
      const page = await again.visit(url());
      assert.match(page.html, /autocomplete="username webauthn"/);
      const answer = await tokensAfter(
        again,
        await again.submit(page, { decision: 'passkey', credential: device.get(optionsOn(page)) }),
      );
      const token = claims(answer.id_token);
      assert.equal(token.sub, SAM);
      assert.deepEqual(token.amr, ['swk', 'user', 'mfa']);
      assert.equal(token.acr, MFA);
      const { rows } = await auth.database.query<{ counter: number; used: boolean; backed_up: boolean }>(
        'SELECT counter, last_used_at IS NOT NULL AS used, backed_up FROM auth.passkeys',
      );
      assert.deepEqual(rows, [{ counter: 1, used: true, backed_up: true }]);
    });

    it('does not sign in users restricted to a provider, except those who manage access', async () => {
      const { device } = await enrolPasskey();
      const attempt = async (): Promise<number> => {
        const browser = new Browser();
        const page = await browser.visit(url());
        return (await browser.submit(page, { decision: 'passkey', credential: device.get(optionsOn(page)) })).status;
      };
      const corp = {
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
      try {
        auth.identityProviders.set(DEMO, [corp]);
        await auth.bump();
        assert.equal(await attempt(), 401);
        auth.permissions.set(SAM, ['manageAccess']);
        assert.equal(await attempt(), 200);
        auth.permissions.clear();
        auth.identityProviders.set(DEMO, [{ ...corp, passwordSignIn: true }]);
        await auth.bump();
        assert.equal(await attempt(), 200);
      } finally {
        auth.permissions.clear();
        auth.identityProviders.clear();
        await auth.bump();
      }
    });

    it('is the second step after the password', async () => {
      const { device } = await enrolPasskey();
      const browser = new Browser();
      const page = await password(browser);
      assert.match(page.html, /Use a passkey/);
      const answer = await tokensAfter(
        browser,
        await browser.submit(page, { decision: 'passkey', credential: device.get(optionsOn(page)) }),
      );
      assert.deepEqual(claims(answer.id_token).amr, ['pwd', 'swk', 'user', 'mfa']);
    });

    it('is refused for another site, another challenge, without verification, or with a counter that goes back', async () => {
      const { device } = await enrolPasskey();
      const attempt = async (wrong: Parameters<SoftwareAuthenticator['get']>[1]): Promise<number> => {
        const browser = new Browser();
        const page = await browser.visit(url());
        const credential = device.get(optionsOn(page), wrong);
        return (await browser.submit(page, { decision: 'passkey', credential })).status;
      };
      assert.equal(await attempt({}), 200);
      for (const wrong of [
        { origin: 'https://evil.example' },
        { rpId: 'evil.example' },
        { challenge: Buffer.alloc(54, 7).toString('base64url') },
        { userVerified: false },
        { counter: 1 },
        { userHandle: Buffer.from(EVE.replaceAll('-', ''), 'hex').toString('base64url') },
      ])
        assert.equal(await attempt(wrong), 401, JSON.stringify(wrong));
      assert.equal(await attempt({}), 200);
    });

    it('answers a challenge once, only in the browser that got it, and for a limited time', async () => {
      const { device } = await enrolPasskey();
      const browser = new Browser();
      const page = await browser.visit(url());
      const credential = device.get(optionsOn(page));
      const other = new Browser();
      const otherPage = await other.visit(url());
      assert.equal((await other.submit(otherPage, { decision: 'passkey', credential })).status, 401, 'another browser');
      assert.equal((await browser.submit(page, { decision: 'passkey', credential })).status, 200);

      const replaying = new Browser();
      const replayPage = await replaying.visit(url());
      const twice = device.get(optionsOn(replayPage));
      const answers = await Promise.all(
        [1, 2].map(() => replaying.submit(replayPage, { decision: 'passkey', credential: twice })),
      );
      assert.equal(answers.filter(({ html }) => html.includes('Allow ERP command line?')).length, 1);
    });

    it('is verified once per challenge, within ten minutes, also when its counter always stays at zero', async () => {
      const { device } = await enrolPasskey();
      const store = new AuthStore(auth.database);
      const passkeys = new Passkeys(store, { issuer: auth.baseUrl, key: 'a key' });
      const options = await passkeys.signInOptions('sign-in one', null);
      const answer = device.get(options, { counter: 0 });
      assert.equal(await passkeys.verify('sign-in two', answer), null, 'made for another sign-in');
      assert.equal((await passkeys.verify('sign-in one', answer))?.userId, SAM);
      assert.equal(await passkeys.verify('sign-in one', answer), null, 'used already');

      const challenges = new Challenges('a key', store.artifacts);
      const challenge = challenges.make('sign-in one');
      const bytes = Buffer.from(challenge, 'base64url');
      bytes.writeUIntBE(bytes.readUIntBE(0, 6) + 1, 0, 6);
      assert.equal(challenges.isValid(bytes.toString('base64url'), 'sign-in one'), false, 'the time is signed');
      assert.equal(new Challenges('another key', store.artifacts).isValid(challenge, 'sign-in one'), false);
      assert.equal(challenges.isValid(challenge, 'sign-in one'), true);
      atTime(platformTime() + CHALLENGE_SECONDS * 1_000, () =>
        assert.equal(challenges.isValid(challenge, 'sign-in one'), false, 'expired'),
      );
    });

    it('of another tenant does not open the client of this tenant', async () => {
      auth.clients['Portal'] = externalClient({
        apiName: 'Portal',
        redirectUris: ['http://127.0.0.1:49876/callback'],
        scopes: ['data:read'],
      });
      await demand('everyone', ACME);
      const { device } = await enrolPasskey('eve@acme.example');
      const browser = new Browser();
      const page = await browser.visit(url({ client_id: 'demo-Portal', scope: 'data:read' }));
      const credential = device.get(optionsOn(page));
      assert.equal((await browser.submit(page, { decision: 'passkey', credential })).status, 401);
    });

    it('of another user is not accepted as second step', async () => {
      const { device: adas } = await enrolPasskey('ada@demo.example');
      const { device: sams } = await enrolPasskey();
      const browser = new Browser();
      const page = await password(browser);
      const options = JSON.stringify({ ...JSON.parse(optionsOn(page)), allowCredentials: [] });
      assert.equal((await browser.submit(page, { decision: 'passkey', credential: adas.get(options) })).status, 401);
      const again = await browser.visit(page.url);
      const next = await browser.submit(again, { decision: 'passkey', credential: sams.get(optionsOn(again)) });
      assert.match(next.html, /Allow ERP command line\?/);
    });

    it('of a deactivated user is refused', async () => {
      const { device } = await enrolPasskey();
      await auth.database.query('UPDATE auth.credentials SET active = false WHERE user_id = $1', [SAM]);
      try {
        const browser = new Browser();
        const page = await browser.visit(url());
        const credential = device.get(optionsOn(page));
        assert.equal((await browser.submit(page, { decision: 'passkey', credential })).status, 401);
      } finally {
        await auth.database.query('UPDATE auth.credentials SET active = true WHERE user_id = $1', [SAM]);
      }
    });

    it('answers a malformed credential with a page', async () => {
      const { device } = await enrolPasskey();
      for (const credential of [
        '',
        '{',
        'null',
        '[]',
        '{"id":1,"response":{}}',
        '{"id":"AAAA","response":{}}',
        'x'.repeat(20_000),
      ]) {
        const browser = new Browser();
        const page = await browser.visit(url());
        assert.equal((await browser.submit(page, { decision: 'passkey', credential })).status, 401, credential);
        const broken = JSON.stringify({ ...JSON.parse(device.get(optionsOn(page))), response: { clientDataJSON: 1 } });
        assert.equal((await browser.submit(page, { decision: 'passkey', credential: broken })).status, 401);
        await auth.database.query('DELETE FROM auth.attempts');
      }
    });
  });

  describe('reset by an operator', () => {
    it('removes every factor of the user, ends the sessions, and affects no other user', async () => {
      const { device } = await enrolPasskey();
      const { device: adas } = await enrolPasskey('ada@demo.example');
      const browser = new Browser();
      const page = await password(browser);
      const credential = device.get(optionsOn(page));
      const { access_token } = await tokensAfter(
        browser,
        await browser.submit(page, { decision: 'passkey', credential }),
      );
      auth.factorChanges.length = 0;
      auth.secondFactor.clear();
      await auth.bump();
      assert.deepEqual(await call(auth.broker, 'auth.factors.reset', { username: 'SAM@demo.example' }), {
        passkeys: 1,
        authenticator: false,
        recoveryCodes: 10,
      });
      assert.deepEqual(auth.factorChanges, [{ tenantId: DEMO, userId: SAM, actorId: null, event: 'reset' }]);
      assert.ok(auth.revoked.includes(claims(access_token).grant_id));
      assert.match((await browser.visit(url())).html, /name="password"/, 'the session has ended');
      const lost = new Browser();
      const start = await lost.visit(url());
      const refused = await lost.submit(start, { decision: 'passkey', credential: device.get(optionsOn(start)) });
      assert.equal(refused.status, 401);
      assert.match((await password(new Browser())).html, /Allow ERP command line\?/);
      const ada = new Browser();
      const adaPage = await ada.visit(url());
      const adaCredential = adas.get(optionsOn(adaPage));
      assert.equal((await ada.submit(adaPage, { decision: 'passkey', credential: adaCredential })).status, 200);
      await assert.rejects(call(auth.broker, 'auth.factors.reset', { username: 'nobody@demo.example' }), {
        code: 'PARAMETER_INVALID',
      });
    });
  });

  describe('acr_values', () => {
    it('require a second factor for the sign-in, regardless of the setting', async () => {
      const browser = new Browser();
      assert.match((await password(browser, 'sam@demo.example', { acr_values: MFA })).html, /Protect your account/);
    });

    it('and max_age require a new sign-in only of sessions that are too weak or too old', async () => {
      const { browser, secret, codesPage } = await enrolApp();
      await browser.submit(codesPage);
      auth.secondFactor.clear();
      await auth.bump();
      assert.match((await browser.visit(url({ acr_values: MFA, max_age: '900' }))).html, /Allow ERP command line\?/);
      await auth.database.query(
        `UPDATE auth.artifacts SET payload = jsonb_set(payload, '{loginTs}', to_jsonb((payload->>'loginTs')::int - 1000))
         WHERE model = 'Session' AND account_id = $1`,
        [SAM],
      );
      const page = await browser.visit(url({ acr_values: MFA, max_age: '900' }));
      assert.match(page.html, /You signed in too long ago for this/);
      assert.match(page.html, /name="username"[^>]* value="sam@demo\.example"/);
      const second = await browser.submit(page, { username: 'sam@demo.example', password: PASSWORD });
      const started = Math.floor(Date.now() / 1_000);
      const answer = await tokensAfter(browser, await browser.submit(second, { code: codeFor(secret) }));
      for (const token of [claims(answer.id_token), claims(answer.access_token)]) {
        assert.equal(token.acr, MFA);
        assert.deepEqual(token.amr, ['pwd', 'otp', 'mfa']);
        assert.ok(token.auth_time >= started, 'the time of the new sign-in');
      }

      const weak = new Browser();
      await auth.database.query('DELETE FROM auth.authenticators');
      await tokensAfter(weak, await password(weak));
      assert.match((await weak.visit(url())).html, /Allow ERP command line\?/);
      const tooWeak = (await weak.visit(url({ acr_values: MFA }))).html;
      assert.match(tooWeak, /You are signed in with one factor, and this needs two[\s\S]*value="sam@demo\.example"/);
      const first = (await new Browser().visit(url({ acr_values: MFA, max_age: '900' }))).html;
      assert.doesNotMatch(first, /Confirm that it is you|value="sam@/, 'nobody has signed in here');
    });

    it('and max_age apply without the scope openid as well, pushed or not', async () => {
      const scope = 'data:read';
      assert.match(
        (await password(new Browser(), 'sam@demo.example', { acr_values: MFA, scope })).html,
        /Protect your/,
      );
      const browser = new Browser();
      await tokensAfter(browser, await password(browser));
      assert.match((await browser.visit(url({ max_age: '900', scope }))).html, /Allow ERP command line\?/);
      await auth.database.query(
        `UPDATE auth.artifacts SET payload = jsonb_set(payload, '{loginTs}', to_jsonb((payload->>'loginTs')::int - 1000))
         WHERE model = 'Session' AND account_id = $1`,
        [SAM],
      );
      assert.match((await browser.visit(url({ max_age: '900', scope }))).html, /too long ago[\s\S]*value="sam@/);
      const parameters = Object.fromEntries(url({ max_age: '900', scope }).searchParams);
      const pushed = await post(`${auth.baseUrl}/oauth2/par`, parameters);
      assert.equal(pushed.status, 201, JSON.stringify(pushed.body));
      const start = new URL('/oauth2/authorize', auth.baseUrl);
      start.search = String(new URLSearchParams({ client_id: 'erp-cli', request_uri: pushed.body.request_uri }));
      assert.match((await browser.visit(start)).html, /name="password"/);
      const refused = await browser.visit(url({ max_age: 'soon', scope }));
      assert.equal(refused.location?.searchParams.get('error'), 'invalid_request');
    });

    it('are claims of a refreshed token as well, with the time of the sign-in', async () => {
      const { browser, codesPage } = await enrolApp();
      await browser.submit(codesPage);
      const page = await browser.visit(url({ scope: 'data:read offline_access' }));
      const first = await tokensAfter(browser, page);
      await new Promise((resolve) => setTimeout(resolve, 1_100));
      const { body } = await refresh(auth.baseUrl, first.refresh_token);
      const [before, after] = [claims(first.access_token), claims(body.access_token)];
      assert.deepEqual([after.acr, after.amr, after.auth_time], [MFA, ['pwd', 'otp', 'mfa'], before.auth_time]);
    });

    it('are listed in the metadata of the server', async () => {
      const metadata: unknown = await (await fetch(`${auth.baseUrl}/.well-known/oauth-authorization-server`)).json();
      assert.partialDeepStrictEqual(metadata, { acr_values_supported: ['https://refeds.org/profile/sfa', MFA] });
    });
  });
});
