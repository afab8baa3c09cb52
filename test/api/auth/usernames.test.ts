/** A username belongs to a tenant by its domain, and can neither reveal nor take a name of another tenant. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { call } from '../../../contracts/call.ts';
import { authorizeUrl, Browser, pkce, type Seen } from './browser.ts';
import { ACME, type AuthHarness, DEMO, EVE, externalClient, SAM, startAuth } from './harness.ts';

describe('usernames', () => {
  let auth: AuthHarness;
  before(async () => {
    auth = await startAuth();
  });
  after(() => auth.stop());
  beforeEach(async () => {
    await auth.database.query('DELETE FROM auth.attempts');
    await auth.database.query('DELETE FROM auth.known_origins');
  });

  const addUser = async (tenantId: string, username: string, password: string): Promise<string> => {
    const userId = randomUUID();
    const user = { userId, username, email: username, active: true, password };
    await call(auth.broker, 'auth.users.sync', { tenantId, users: [user] });
    return userId;
  };
  const attempt = async (username: string, password: string, browser = new Browser(), more = {}): Promise<Seen> => {
    for (const name of browser.cookies.keys()) if (!name.startsWith('erp_browser')) browser.cookies.delete(name);
    const page = await browser.visit(authorizeUrl(auth.baseUrl, pkce().challenge, more));
    return browser.submit(page, { username, password });
  };
  const signsIn = async (username: string, password: string, browser?: Browser): Promise<boolean> =>
    (await attempt(username, password, browser)).status === 200;
  const unsaid = (seen: Seen): string =>
    seen.html.replace(
      /name="csrf" value="[^"]*"|(?:interaction\/|sign_in=)[\w-]+|id="username"[^>]*|data-\w+="[^"]*"|<script[\s\S]*<\/script>/g,
      '',
    );

  it('may be the same in two tenants, without any observable difference', async () => {
    await addUser(ACME, 'sam@demo.example', 'the password at acme');
    assert.equal(await signsIn('sam@demo.example', 'demo-password'), true, 'the domain is of demo');
    assert.equal(await signsIn('sam@demo.example', 'the password at acme'), false);
    assert.equal(await signsIn('acme\\sam@demo.example', 'the password at acme'), true);
    assert.equal(await signsIn(String.raw`ACME\Sam@demo.example`, 'the password at acme'), true);
    assert.equal(await signsIn('acme\\sam@demo.example', 'demo-password'), false);
    assert.equal(await signsIn('demo\\sam@demo.example', 'demo-password'), true);
    const taken = addUser(ACME, 'SAM@demo.example', 'x');
    await assert.rejects(taken, { code: 'UNIQUE_VALUE_CONFLICT' }, 'within one tenant it is taken');
    for (const checkOnly of [true, false])
      await call(auth.broker, 'auth.users.sync', {
        tenantId: ACME,
        users: [{ userId: randomUUID(), username: 'ada@demo.example', email: 'x', active: true }],
        checkOnly,
      });
  });

  it('are reported to the operator in the form that the user types', async () => {
    const names = ['ceo@demo.example', 'ceo@nobodys.example'];
    const users = names.map((username) => ({ userId: randomUUID(), username, email: username, active: true }));
    const { signInNames } = await call(auth.broker, 'auth.users.sync', { tenantId: DEMO, users });
    const typed = ['ceo@demo.example', 'demo\\ceo@nobodys.example'];
    assert.deepEqual(Object.entries(signInNames).flat(), [names[0], typed[0], names[1], typed[1]]);
    for (const [i, username] of names.entries())
      assert.equal((await call(auth.broker, 'auth.users.createLink', { username })).signInName, typed[i]);
  });

  it('cannot be taken before the owner of the domain registers', async () => {
    await addUser(ACME, 'ceo@squatted.example', 'the squatter knows it');
    assert.equal(await signsIn('ceo@squatted.example', 'the squatter knows it'), false, 'in nobody’s domain');
    const added = await call(auth.broker, 'auth.domains.add', { tenantId: DEMO, domain: 'Squatted.Example' });
    assert.deepEqual(added, { domain: 'squatted.example', usersElsewhere: 1 });
    await addUser(DEMO, 'ceo@squatted.example', 'the real one');
    assert.equal(await signsIn('ceo@squatted.example', 'the real one'), true);
    assert.equal(await signsIn('ceo@squatted.example', 'the squatter knows it'), false);
    assert.equal(await signsIn('acme\\ceo@squatted.example', 'the squatter knows it'), true, 'in their own tenant');
  });

  it("outside of all domains require the tenant's name, except in browsers that have signed in before", async () => {
    await addUser(DEMO, 'kim@free.example', 'kim at demo, long');
    await addUser(ACME, 'kim@free.example', 'kim at acme, long');
    assert.equal(await signsIn('kim@free.example', 'kim at demo, long'), false);
    const mine = new Browser();
    assert.equal(await signsIn('demo\\kim@free.example', 'kim at demo, long', mine), true);
    assert.equal(await signsIn('kim@free.example', 'kim at demo, long', mine), true);
    assert.equal(await signsIn('kim@free.example', 'kim at acme, long', mine), false);
    assert.equal(await signsIn('kim@free.example', 'kim at demo, long'), false, 'another browser');
  });

  it('are answered identically for names of another tenant, unknown names and unknown tenants', async () => {
    await addUser(ACME, 'lee@free.example', 'lee at acme, long');
    const names = ['lee@free.example', 'nobody@free.example', 'nowhere\\lee@free.example', 'demo\\lee@free.example'];
    const pages = [];
    for (const name of names) pages.push(await attempt(name, 'a wrong password'));
    for (const page of pages) {
      assert.equal(page.status, 401);
      assert.equal(unsaid(page), unsaid(pages[0]!));
    }
  });

  it('belong to the tenant of its own client', async () => {
    await addUser(DEMO, 'max@free.example', 'max at demo, long');
    auth.clients['Portal'] = externalClient({
      apiName: 'Portal',
      redirectUris: ['https://portal.example/callback'],
      scopes: ['data:read'],
    });
    await auth.bump();
    const portal = { client_id: 'demo-Portal', redirect_uri: 'https://portal.example/callback', scope: 'data:read' };
    assert.equal((await attempt('max@free.example', 'max at demo, long', new Browser(), portal)).status, 200);
    assert.equal((await attempt('eve@acme.example', 'demo-password', new Browser(), portal)).status, 401);
    assert.equal((await attempt('acme\\eve@acme.example', 'demo-password', new Browser(), portal)).status, 401);
  });

  it('are counted as one user in every spelling', async () => {
    const spellings = ['sam@demo.example', 'demo\\sam@demo.example', ' SAM@demo.example ', 'Demo\\SAM@Demo.Example'];
    for (let i = 0; i < 5; i++) assert.equal((await attempt(spellings[i % 4]!, `guess ${i}`)).status, 401);
    assert.equal((await attempt('sam@demo.example', 'guess')).status, 429);
  });

  it('are shown on the page of a link in the form that the user types', async () => {
    const user = { userId: randomUUID(), username: 'new@free.example', email: 'shown@free.example', active: true };
    await call(auth.broker, 'auth.users.sync', { tenantId: DEMO, users: [user] });
    const browser = new Browser();
    const page = await browser.visit(await auth.linkTo('shown@free.example'));
    assert.match(page.html, /demo\\new@free\.example/);
    const password = 'chosen by the person';
    assert.match((await browser.submit(page, { password, repeated: password })).html, /Sign in as <strong>demo\\new@/);
    assert.equal(await signsIn('demo\\new@free.example', password), true);
  });

  describe('for operators', () => {
    const refused = { code: 'PARAMETER_INVALID' };

    it('belong to one tenant at a time by their domain', async () => {
      await call(auth.broker, 'auth.domains.add', { tenantId: DEMO, domain: 'bücher.example' });
      const again = call(auth.broker, 'auth.domains.add', { tenantId: ACME, domain: 'XN--BCHER-KVA.example' });
      await assert.rejects(again, refused);
      const { domains } = await call(auth.broker, 'auth.domains.list', { tenantId: DEMO });
      assert.ok(domains.includes('xn--bcher-kva.example'));
      const remove = { tenantId: DEMO, domain: 'bücher.example' };
      assert.deepEqual(await call(auth.broker, 'auth.domains.remove', remove), { removed: true });
      await call(auth.broker, 'auth.domains.add', { tenantId: ACME, domain: 'bücher.example' });
      for (const domain of [
        '',
        'example',
        '@demo.example',
        'a b.example',
        'x'.repeat(300),
        'a..example',
        'a.example\0',
      ])
        await assert.rejects(call(auth.broker, 'auth.domains.add', { tenantId: DEMO, domain }), refused, domain);
      await assert.rejects(
        call(auth.broker, 'auth.domains.add', { tenantId: randomUUID(), domain: 'new.example' }),
        refused,
      );
    });

    it('name the intended tenant when several have the name', async () => {
      const here = await addUser(DEMO, 'two@free.example', 'two at demo, long');
      await addUser(ACME, 'two@free.example', 'two at acme, long');
      await assert.rejects(call(auth.broker, 'auth.users.createLink', { username: 'two@free.example' }), refused);
      await call(auth.broker, 'auth.users.createLink', { username: 'two@free.example', tenantId: DEMO });
      const { rows } = await auth.database.query('SELECT user_id FROM auth.password_links WHERE user_id = ANY($1)', [
        [here, SAM, EVE],
      ]);
      assert.deepEqual(rows, [{ user_id: here }]);
    });
  });
});
