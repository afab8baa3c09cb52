/** Users of a company sign in at its own, real OpenID provider, which admits only its own users. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'mocha';
import { call } from '../../../contracts/call.ts';
import type { IdentityProviderMeta } from '../../../lib/schema/snapshot.ts';
import { ProviderSecrets } from '../../../services/auth/single-sign-on/secrets.ts';
import { AuthStore } from '../../../services/auth/store/store.ts';
import { Vault } from '../../../services/auth/vault.ts';
import { CLIENT_ID, CLIENT_SECRET, IdentityProvider } from '../../support/identity-provider.ts';
import { authorizeUrl, Browser, claims, exchange, pkce, type Seen, type TokenAnswer } from './browser.ts';
import { ACME, ADA, type AuthHarness, DEMO, PASSWORD, SAM, startAuth } from './harness.ts';

const PLATFORM_SECRET = 'p'.repeat(40);

describe('single sign-on', () => {
  const idp = new IdentityProvider();
  /** A provider of another tenant, controlled by an attacker. */
  const hostile = new IdentityProvider();
  let auth: AuthHarness;
  let people = 0;

  before(async () => {
    await idp.listen();
    await hostile.listen();
    auth = await startAuth({ env: { SSO_PRIVATE_HOSTS: `${idp.host},${hostile.host},127.0.0.1:9`, PLATFORM_SECRET } });
    await idp.serve(...['demo', 'acme'].map((key) => `${auth.baseUrl}/oauth2/sso/callback/${key}/Corp`));
    await hostile.serve(`${auth.baseUrl}/oauth2/sso/callback/acme/Corp`);
    await declare({});
    await call(auth.broker, 'auth.identityProviders.setSecret', {
      tenantId: DEMO,
      apiName: 'Corp',
      secret: CLIENT_SECRET,
    });
  });
  after(async () => {
    await auth?.stop();
    await idp.close();
    await hostile.close();
  });
  afterEach(async () => {
    idp.tamper = null;
    idp.silent = new Set();
    idp.gone = false;
    auth.refusals.length = 0;
    auth.warnings.length = 0;
    auth.permissions.clear();
    auth.secondFactor.clear();
    await declare({});
  });

  const corp = (changes: Partial<IdentityProviderMeta>): IdentityProviderMeta => ({
    apiName: 'Corp',
    label: 'Corp login',
    active: true,
    issuer: idp.issuer,
    clientId: CLIENT_ID,
    domains: ['demo.example'],
    usernameClaim: 'email',
    createUsers: null,
    passwordSignIn: true,
    ...changes,
  });
  async function declare(changes: Partial<IdentityProviderMeta>, tenantId = DEMO): Promise<void> {
    auth.identityProviders.set(tenantId, [corp(changes)]);
    await auth.bump(tenantId);
  }
  /** A user of the demo tenant without an identity at the provider yet. */
  async function aUser(
    more: { active?: boolean; password?: string } = {},
  ): Promise<{ userId: string; username: string }> {
    const userId = `01990000-0000-7000-8000-00000000c${String(++people).padStart(3, '0')}`;
    const username = `person${people}@demo.example`;
    await call(auth.broker, 'auth.users.sync', {
      tenantId: DEMO,
      users: [{ userId, username, email: username, active: true, invite: false, ...more }],
    });
    return { userId, username };
  }
  /** An identity at the provider. */
  function person(email: string, more: Record<string, unknown> = {}): string {
    const login = `login${++people}`;
    idp.people.set(login, { sub: login, email, email_verified: true, name: 'A Person', ...more });
    return login;
  }

  interface Trip {
    browser: Browser;
    /** PKCE verifier of the authorization request. */
    verifier: string;
    page: Seen;
  }
  const begin = async (more: Record<string, string> = {}, browser = new Browser()): Promise<Trip> => {
    const { verifier, challenge } = pkce();
    return { browser, verifier, page: await browser.visit(authorizeUrl(auth.baseUrl, challenge, more)) };
  };
  /** Enters the username alone; returns the redirect. */
  async function depart({ browser, page }: Trip, username: string): Promise<URL> {
    const left = await browser.submit(page, { username, password: '' });
    assert.equal(left.status, 200, main(left));
    const to = /^0; url=(.+)$/.exec(left.headers.get('refresh') ?? '')?.[1];
    assert.ok(to, main(left));
    return new URL(to);
  }
  /** Signs in at the provider; returns the redirect address of its response. */
  async function atProvider(browser: Browser, url: URL, login: string): Promise<URL> {
    let seen = await browser.visit(url);
    for (let i = 0; i < 5 && !seen.location; i++) seen = await browser.submit(seen, { login, password: 'any' });
    assert.ok(seen.location, main(seen));
    assert.match(seen.location.pathname, /^\/oauth2\/sso\/callback\/(?:demo|acme)\/Corp$/);
    return seen.location;
  }
  async function signInAs(username: string, login: string, trip?: Trip): Promise<Seen> {
    const way = trip ?? (await begin());
    return way.browser.visit(await atProvider(way.browser, await depart(way, username), login));
  }
  async function tokensOf(trip: Trip, seen: Seen): Promise<TokenAnswer> {
    const end = seen.location ? seen : await trip.browser.submit(seen);
    const code = end.location?.searchParams.get('code');
    assert.ok(code, main(end));
    const { status, body } = await exchange(auth.baseUrl, code, trip.verifier);
    assert.equal(status, 200, JSON.stringify(body));
    return claims(body.access_token);
  }
  const main = ({ html }: Seen): string => /<main[\s\S]*<\/main>/.exec(html)?.[0] ?? html;
  const says = (seen: Seen, text: RegExp, status: number): void => {
    assert.match(main(seen), text);
    assert.equal(seen.status, status);
    assert.equal(seen.location, null);
  };
  const refusedWith = (...codes: string[]): void =>
    assert.deepEqual(
      auth.refusals.map(({ code }) => code),
      codes,
    );

  it('leads to the provider of the domain with PKCE, state and nonce, and returns as the user', async () => {
    const { userId, username } = await aUser();
    const trip = await begin();
    const url = await depart(trip, username);
    const { searchParams } = url;
    assert.equal(url.origin, idp.issuer);
    assert.equal(searchParams.get('code_challenge_method'), 'S256');
    for (const name of ['state', 'nonce', 'code_challenge']) assert.match(searchParams.get(name) ?? '', /^[\w-]{43}$/);
    assert.equal(searchParams.get('login_hint'), username);
    assert.equal(searchParams.get('redirect_uri'), `${auth.baseUrl}/oauth2/sso/callback/demo/Corp`);
    const seen = await trip.browser.visit(await atProvider(trip.browser, url, person(username)));
    const token = await tokensOf(trip, seen);
    assert.deepEqual([token.sub, token.tenant_id, token.amr], [userId, DEMO, ['fed']]);
    assert.ok(auth.notes.some((note) => note.operationId === 'auth.identities.add' && note.userId === userId));
  });

  it('leads a name of the domain to the provider, whether or not the user exists', async () => {
    const one = await depart(await begin(), 'sam@demo.example');
    const other = await depart(await begin(), 'nobody-at-all@demo.example');
    assert.deepEqual([...one.searchParams.keys()], [...other.searchParams.keys()]);
    const page = await (await begin()).browser.submit((await begin()).page, {
      username: 'x@demo.example',
      password: '',
    });
    assert.equal(page.status >= 400, true, 'a page of another browser');
  });

  it('asks for a password when no provider is responsible for the name', async () => {
    for (const username of ['eve@acme.example', 'acme\\sam@demo.example', 'sam', '']) {
      const trip = await begin();
      const page = await trip.browser.submit(trip.page, { username, password: '' });
      says(page, /Username and password do not match/, 401);
    }
    await declare({ active: false });
    const trip = await begin();
    says(await trip.browser.submit(trip.page, { username: 'sam@demo.example', password: '' }), /do not match/, 401);
  });

  it('is ignored for a domain that is not verified for the tenant', async () => {
    await declare({ domains: ['demo.example', 'acme.example', 'unproved.example'] });
    for (const username of ['eve@acme.example', 'x@unproved.example']) {
      const trip = await begin();
      says(await trip.browser.submit(trip.page, { username, password: '' }), /do not match/, 401);
    }
    // A user of a verified domain is unknown in another one.
    says(await signInAs('sam@demo.example', person('eve@acme.example')), /You cannot be recognised/, 403);
    refusedWith('PASSWORD_WRONG', 'IDENTITY_NOT_VERIFIED');
    await declare({});
    auth.identityProviders.delete(ACME);
  });

  it('identifies a user by the subject afterwards: a changed address changes nothing', async () => {
    const [one, other] = [await aUser(), await aUser()];
    const login = person(one.username);
    const first = await begin();
    assert.equal((await tokensOf(first, await signInAs(one.username, login, first))).sub, one.userId);
    idp.people.set(login, { sub: login, email: other.username, email_verified: true });
    const second = await begin();
    assert.equal((await tokensOf(second, await signInAs(one.username, login, second))).sub, one.userId);
  });

  it("sends no provider another one's code, wherever the browser is led", async () => {
    const { username } = await aUser();
    hostile.metadata = { authorization_response_iss_parameter_supported: false };
    await declare({ issuer: hostile.issuer, domains: ['acme.example'] }, ACME);
    // The attacker's own sign-in, which waits for a code of the victim.
    const waiting = await depart(await begin(), username);
    // The victim is led to the provider of the attacker's tenant, and from there to their own. Many providers do not
    // name themselves in the response.
    const victim = await begin();
    const led = await depart(victim, 'somebody@acme.example');
    assert.equal(led.origin, hostile.issuer);
    const on = new URL(waiting);
    on.searchParams.set('state', led.searchParams.get('state')!);
    const back = await atProvider(victim.browser, on, person(username));
    back.searchParams.delete('iss');
    assert.ok(back.searchParams.has('code'));
    const seen = await victim.browser.visit(back);
    assert.ok(!hostile.requests.includes('POST /token'), 'it has the code');
    says(seen, /This sign-in is over/, 400);
    auth.identityProviders.delete(ACME);
  });

  it('connects no identity to an existing user by the same address', async () => {
    const { username } = await aUser();
    const trip = await begin();
    await tokensOf(trip, await signInAs(username, person(username), trip));
    says(await signInAs(username, person(username)), /connected with another identity/, 403);
    refusedWith('IDENTITY_OF_ANOTHER');
    // An operator allows connecting the user's new identity.
    const { removed } = await call(auth.broker, 'auth.identities.remove', { username, tenantId: DEMO });
    assert.equal(removed, 1);
    const again = await begin();
    await tokensOf(again, await signInAs(username, person(username), again));
  });

  it('refuses an address that the provider has not verified, a deactivated user and an unknown one', async () => {
    const { username } = await aUser();
    const unverified = [false, 'false', 'no', 0, null, {}];
    for (const email_verified of unverified)
      says(await signInAs(username, person(username, { email_verified })), /cannot be recognised/, 403);
    const away = await aUser({ active: false });
    says(await signInAs(away.username, person(away.username)), /Your account is switched off/, 403);
    says(await signInAs(username, person('new@demo.example')), /You have no account here/, 403);
    refusedWith(...unverified.map(() => 'IDENTITY_NOT_VERIFIED'), 'USER_INACTIVE', 'USER_UNKNOWN');
    assert.deepEqual(auth.provisioned, []);
  });

  it('refuses a connected user who was deactivated', async () => {
    const { userId, username } = await aUser();
    const login = person(username);
    const trip = await begin();
    await tokensOf(trip, await signInAs(username, login, trip));
    await call(auth.broker, 'auth.users.sync', {
      tenantId: DEMO,
      users: [{ userId, username, email: username, active: false }],
    });
    says(await signInAs(username, login), /switched off/, 403);
  });

  const invitations = async (): Promise<number> =>
    (await auth.database.query<{ n: number }>("SELECT count(*)::int AS n FROM auth.mails WHERE kind = 'invitation'"))
      .rows[0]!.n;

  it('creates users when the provider may, once, without a password link', async () => {
    await declare({ createUsers: { profileApiName: 'Standard', roleApiName: 'Seller' } });
    const links = await invitations();
    const login = person('fresh@demo.example', { name: 'Fresh Person' });
    const trip = await begin();
    const { sub } = await tokensOf(trip, await signInAs('fresh@demo.example', login, trip));
    const second = await begin();
    assert.equal((await tokensOf(second, await signInAs('fresh@demo.example', login, second))).sub, sub);
    assert.deepEqual(auth.provisioned, [
      {
        username: 'fresh@demo.example',
        email: 'fresh@demo.example',
        displayName: 'Fresh Person',
        profileApiName: 'Standard',
        roleApiName: 'Seller',
        invite: false,
      },
    ]);
    assert.equal(await invitations(), links);
    auth.provisioned.length = 0;
  });

  it('takes the username from the claim that the configuration names, from userinfo as well', async () => {
    const { userId, username } = await aUser();
    await declare({ usernameClaim: 'preferred_username' });
    const trip = await begin();
    const login = person('private@mail.example', { preferred_username: username, email_verified: false });
    assert.equal((await tokensOf(trip, await signInAs(username, login, trip))).sub, userId);
    assert.ok(idp.requests.includes('GET /me'));
  });

  it('accepts a second factor of the provider, and requires one of ours without it', async () => {
    const { username } = await aUser();
    const login = person(username);
    auth.secondFactor.set(DEMO, 'everyone');
    await auth.bump();
    says(await signInAs(username, login), /Protect your account/, 200);
    idp.tamper = (payload) => ({ ...payload, amr: ['pwd', 'otp', 'mfa'], auth_time: 1_700_000_000 });
    const trip = await begin();
    const token = await tokensOf(trip, await signInAs(username, login, trip));
    assert.deepEqual([token.amr, token.acr], [['fed', 'mfa'], 'https://refeds.org/profile/mfa']);
    assert.equal(token.auth_time, 1_700_000_000, 'when the person proved themselves, not when they came');
  });

  it('requests a recent sign-in from the provider, and trusts only the claim', async () => {
    const { username } = await aUser();
    const login = person(username);
    const trip = await begin({ max_age: '60', scope: 'openid data:read' });
    const token = await tokensOf(trip, await signInAs(username, login, trip));
    assert.equal(idp.asked.at(-1)?.get('max_age'), '60');
    assert.ok(Date.now() / 1000 - token.auth_time < 60);
    idp.tamper = (payload) => ({ ...payload, auth_time: Math.floor(Date.now() / 1000) - 1_000 });
    const old = await begin({ max_age: '60', scope: 'openid data:read' });
    says(await signInAs(username, login, old), /did not work/, 401);
    const again = await begin({ prompt: 'login' });
    await depart(again, username).then((url) => assert.equal(url.searchParams.get('prompt'), 'login'));
  });

  describe('without passwords', () => {
    it('answers the right password like a wrong one, identically for every name of the domain', async () => {
      const { username } = await aUser({ password: PASSWORD });
      await declare({ passwordSignIn: false });
      const pages: string[] = [];
      for (const [name, password] of [
        [username, PASSWORD],
        [username, 'wrong-password'],
        ['nobody@demo.example', PASSWORD],
      ] as const) {
        const trip = await begin();
        const page = await trip.browser.submit(trip.page, { username: name, password });
        says(page, /To sign in with Corp login, leave the password of .* empty/, 401);
        pages.push(
          page.html.replaceAll(name, 'NAME').replace(/(csrf" value|data-options|action)="[^"]*"|sign_in=[\w-]+/g, ''),
        );
      }
      assert.deepEqual([pages[1], pages[2]], [pages[0], pages[0]]);
      refusedWith('SINGLE_SIGN_ON_REQUIRED', 'PASSWORD_WRONG', 'USER_UNKNOWN');
    });

    it('admits users who manage access with a password and a second factor', async () => {
      await declare({ passwordSignIn: false });
      auth.permissions.set(ADA, ['manageAccess']);
      const trip = await begin();
      const page = await trip.browser.submit(trip.page, { username: 'ada@demo.example', password: PASSWORD });
      says(page, /Protect your account/, 200);
    });

    it('creates and accepts set-password links only for users who manage access', async () => {
      const { username } = await aUser();
      const { url } = await call(auth.broker, 'auth.users.createLink', { username, tenantId: DEMO });
      await declare({ passwordSignIn: false });
      await assert.rejects(call(auth.broker, 'auth.users.createLink', { username, tenantId: DEMO }), {
        code: 'PARAMETER_INVALID',
      });
      says(await new Browser().visit(url), /You need no password/, 410);
      const links = await invitations();
      const userId = '01990000-0000-7000-8000-00000000cfff';
      const users = [{ userId, username: 'later@demo.example', email: 'later@demo.example', active: true }];
      await call(auth.broker, 'auth.users.sync', { tenantId: DEMO, users });
      assert.equal(await invitations(), links);
      auth.permissions.set(ADA, ['manageAccess']);
      await call(auth.broker, 'auth.users.createLink', { username: 'ada@demo.example', tenantId: DEMO });
    });
  });

  describe('refuses a response', () => {
    const attempts: [
      what: string,
      why: RegExp,
      tamper: (payload: Record<string, unknown>) => Record<string, unknown> | string,
    ][] = [
      ['with another nonce', /nonce/, (payload) => ({ ...payload, nonce: 'another' })],
      ['without a nonce', /nonce/, ({ nonce: _, ...payload }) => payload],
      ['for another audience', /aud/, (payload) => ({ ...payload, aud: 'another-application' })],
      ['of another client', /azp/, (payload) => ({ ...payload, aud: [CLIENT_ID, 'x'], azp: 'another-application' })],
      ['of another client, for us alone', /azp/, (payload) => ({ ...payload, azp: 'another-application' })],
      ['with an authorized party that is not a string', /azp/, (payload) => ({ ...payload, azp: null })],
      [
        'for several audiences without an authorized party',
        /aud/,
        (payload) => ({ ...payload, aud: [CLIENT_ID, 'x'] }),
      ],
      ['issued in the near future', /iat/, (payload) => ({ ...payload, iat: Number(payload['iat']) + 120 })],
      ['issued too long ago', /iat/, (payload) => ({ ...payload, iat: Number(payload['iat']) - 900 })],
      ['without an issue time', /iat/, ({ iat: _, ...payload }) => payload],
      ['of another issuer', /iss/, (payload) => ({ ...payload, iss: 'https://elsewhere.example' })],
      ['that has expired', /exp|timestamp/, (payload) => ({ ...payload, exp: 1_700_000_000 })],
      ['not valid yet', /nbf|iat|timestamp/, (payload) => ({ ...payload, iat: 4_000_000_000, nbf: 4_000_000_000 })],
      ['without a subject', /sub/, ({ sub: _, ...payload }) => payload],
      [
        'without a signature',
        /alg/,
        (payload) =>
          `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from(JSON.stringify(payload)).toString('base64url')}.`,
      ],
      [
        'with an invalid signature',
        /signature/,
        (payload) =>
          `${Buffer.from('{"alg":"RS256"}').toString('base64url')}.${Buffer.from(JSON.stringify(payload)).toString('base64url')}.${'A'.repeat(342)}`,
      ],
    ];
    for (const [what, why, tamper] of attempts)
      it(what, async () => {
        idp.tamper = tamper;
        says(await signInAs('sam@demo.example', person('sam@demo.example')), /did not work/, 401);
        // The trail stores a limited number of entries per network and minute.
        if (what === 'with another nonce') refusedWith('SINGLE_SIGN_ON_FAILED');
        assert.match(auth.warnings.join('\n'), why);
        assert.match(auth.warnings.join('\n'), /A sign-in at an identity provider failed/);
        assert.doesNotMatch(auth.warnings.join('\n'), /eyJ|code=|a-secret/, 'no token, code or secret in the log');
      });

    it('of another browser, and a second use', async () => {
      const { username } = await aUser();
      const trip = await begin();
      const back = await atProvider(trip.browser, await depart(trip, username), person(username));
      const stranger = await new Browser().visit(back);
      assert.equal(stranger.location, null);
      assert.match(stranger.html, /session|expired|sign/i);
      assert.ok(stranger.status >= 400);
      // Not used up by the other browser.
      await tokensOf(trip, await trip.browser.visit(back));
      says(await trip.browser.visit(back), /This sign-in is over/, 400);
      says(await new Browser().visit(back), /This sign-in is over/, 400);
    });

    it('in an interaction that is not its own', async () => {
      const { username } = await aUser();
      const trip = await begin();
      const back = await atProvider(trip.browser, await depart(trip, username), person(username));
      const other = await begin();
      const uid = /\/oauth2\/interaction\/([\w-]+)/.exec(other.page.html)?.[1];
      const seen = await other.browser.visit(new URL(`/oauth2/interaction/${uid}${back.search}`, auth.baseUrl));
      says(seen, /This sign-in is over/, 400);
    });

    it('of another issuer (RFC 9207), and a changed state', async () => {
      const { username } = await aUser();
      for (const [name, value] of [
        ['iss', 'https://elsewhere.example'],
        ['state', 'x'.repeat(43)],
      ] as const) {
        const trip = await begin();
        const back = await atProvider(trip.browser, await depart(trip, username), person(username));
        back.searchParams.set(name, value);
        const seen = await trip.browser.visit(back);
        assert.ok(seen.status >= 400 && !seen.location, seen.html);
      }
    });

    it('once the configuration names another provider', async () => {
      const { username } = await aUser();
      const trip = await begin();
      const back = await atProvider(trip.browser, await depart(trip, username), person(username));
      await declare({ clientId: 'another' });
      says(await trip.browser.visit(back), /This sign-in is over/, 400);
    });
  });

  it('creates, connects and records no user in a suspended tenant', async () => {
    await declare({ createUsers: { profileApiName: 'Standard', roleApiName: null } });
    const { userId, username } = await aUser();
    const login = person(username);
    const recorded = async (): Promise<unknown> => {
      const { rows } = await auth.database.query(
        `SELECT last_sign_in_at AS at, (SELECT count(*)::int FROM auth.identities WHERE user_id = $1) AS identities
         FROM auth.credentials WHERE user_id = $1`,
        [userId],
      );
      return { ...rows[0], notes: auth.notes.filter((note) => note.userId === userId), users: auth.provisioned };
    };
    auth.suspended.add(DEMO);
    await auth.bump();
    try {
      for (const [name, at] of [
        [username, login],
        ['late@demo.example', person('late@demo.example')],
      ] as const) {
        const { location } = await signInAs(name, at);
        const said = location!.searchParams.get('error_description');
        assert.equal(said, 'the tenant is suspended by the operator of the platform');
      }
      assert.deepEqual(await recorded(), { at: null, identities: 0, notes: [], users: [] });
      const stranger = person('somebody@elsewhere.example');
      says(await signInAs(username, stranger), /cannot be recognised/, 403);
    } finally {
      auth.suspended.delete(DEMO);
      await auth.bump();
    }
    const trip = await begin();
    assert.equal((await tokensOf(trip, await signInAs(username, login, trip))).sub, userId);
  });

  it("decrypts its secret only with the deployment's, also while that is replaced", async () => {
    const store = new AuthStore(auth.database);
    const owner = { tenantId: DEMO, apiName: 'Corp', issuer: idp.issuer, clientId: CLIENT_ID };
    const secrets = (secret: string, previousSecret: string | null = null) =>
      new ProviderSecrets(store, new Vault({ secret, previousSecret }));
    const [old, next] = [PLATFORM_SECRET, 'n'.repeat(40)];
    assert.equal(await secrets(old).of(owner), CLIENT_SECRET);
    assert.equal(await secrets(next, old).of(owner), CLIENT_SECRET);
    assert.ok((await secrets(next, old).reseal()) > 0);
    assert.equal(await secrets(next, old).reseal(), 0);
    assert.equal(await secrets(next).of(owner), CLIENT_SECRET);
    await assert.rejects(secrets(old).of(owner), /another PLATFORM_SECRET/);
    await secrets(old, next).reseal();
    assert.equal(await secrets(old).of({ ...owner, issuer: 'https://elsewhere.example' }), null);
  });

  it('reports that the user cancelled, and signs no one in', async () => {
    const trip = await begin();
    const url = await depart(trip, 'sam@demo.example');
    const back = new URL('/oauth2/sso/callback/demo/Corp', auth.baseUrl);
    back.search = new URLSearchParams({
      error: 'access_denied',
      error_description: '<b>no</b>',
      state: url.searchParams.get('state')!,
      iss: idp.issuer,
    }).toString();
    const seen = await trip.browser.visit(back);
    says(seen, /was stopped/, 401);
    assert.doesNotMatch(seen.html, /<b>no<\/b>/);
  });

  it('accepts a provider that has replaced its keys', async () => {
    const { userId, username } = await aUser();
    const login = person(username);
    const first = await begin();
    await tokensOf(first, await signInAs(username, login, first));
    await idp.serve();
    const again = async () => {
      const trip = await begin();
      const seen = await signInAs(username, login, trip);
      return seen.status === 200 || seen.location ? (await tokensOf(trip, seen)).sub : null;
    };
    let sub = await again();
    for (let i = 0; i < 8 && sub === null; i++)
      sub = await new Promise((resolve) => setTimeout(resolve, 1_000)).then(again);
    assert.equal(sub, userId);
  });

  it('reports a provider that does not answer, without blocking other requests', async () => {
    const { username } = await aUser();
    const login = person(username);
    const trip = await begin();
    const back = await atProvider(trip.browser, await depart(trip, username), login);
    idp.gone = true;
    says(await trip.browser.visit(back), /did not work/, 401);
    idp.gone = false;
    const slow = await begin();
    const late = await atProvider(slow.browser, await depart(slow, username), login);
    idp.silent = new Set(['/token']);
    const started = performance.now();
    says(await slow.browser.visit(late), /did not work/, 401);
    assert.ok(performance.now() - started < 25_000);
    assert.match(auth.warnings.join('\n'), /no answer within 5 s/);
    await declare({ issuer: 'http://127.0.0.1:9' });
    const away = await begin();
    says(await away.browser.submit(away.page, { username, password: '' }), /Corp login does not answer/, 503);
  });

  it('connects to no internal address that the operator has not allowed', async () => {
    for (const issuer of [
      'https://127.0.0.1:1',
      'https://10.0.0.1',
      'https://[::1]:1',
      'https://169.254.169.254',
      'https://localhost:1',
      'http://127.0.0.1:1',
    ]) {
      await declare({ issuer });
      const { discovery } = await call(auth.broker, 'auth.identityProviders.check', {
        tenantId: DEMO,
        apiName: 'Corp',
      });
      assert.equal(discovery.ok, false);
      assert.match(discovery.reason ?? '', /no public address|not https/, issuer);
    }
  });

  it('reports a missing setting to operators, and never the secret', async () => {
    await declare({ domains: ['demo.example', 'unproved.example'] });
    const check = await call(auth.broker, 'auth.identityProviders.check', { tenantId: DEMO, apiName: 'Corp' });
    assert.deepEqual(check, {
      issuer: idp.issuer,
      clientId: CLIENT_ID,
      active: true,
      redirectUri: `${auth.baseUrl}/oauth2/sso/callback/demo/Corp`,
      secretSet: true,
      domains: [
        { domain: 'demo.example', verified: true },
        { domain: 'unproved.example', verified: false },
      ],
      discovery: {
        ok: true,
        reason: null,
        authorizationEndpoint: `${idp.issuer}/auth`,
        tokenEndpoint: `${idp.issuer}/token`,
      },
    });
    const stored = await auth.database.query('SELECT plain, sealed FROM auth.provider_secrets');
    assert.doesNotMatch(JSON.stringify(stored.rows), new RegExp(CLIENT_SECRET));
    await declare({ clientId: 'another' });
    const other = await call(auth.broker, 'auth.identityProviders.check', { tenantId: DEMO, apiName: 'Corp' });
    assert.equal(other.secretSet, false, 'a secret is one for this client alone');
    for (const params of [
      { apiName: 'Nobody', secret: 'x' },
      { apiName: 'Corp', secret: '' },
      { apiName: 'Corp', secret: 'line\nbreak' },
    ])
      await assert.rejects(call(auth.broker, 'auth.identityProviders.setSecret', { tenantId: DEMO, ...params }), {
        code: 'PARAMETER_INVALID',
      });
    assert.doesNotMatch(JSON.stringify(auth.notes), new RegExp(CLIENT_SECRET));
  });

  it('never signs a subject in to another tenant', async () => {
    auth.identityProviders.set(ACME, [corp({ domains: ['acme.example'] })]);
    await auth.bump(ACME);
    await call(auth.broker, 'auth.identityProviders.setSecret', {
      tenantId: ACME,
      apiName: 'Corp',
      secret: CLIENT_SECRET,
    });
    const login = person('sam@demo.example');
    const trip = await begin();
    assert.equal((await tokensOf(trip, await signInAs('sam@demo.example', login, trip))).sub, SAM);
    says(await signInAs('eve@acme.example', login), /cannot be recognised/, 403);
  });
});
