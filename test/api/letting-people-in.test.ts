/** Access for new users: an invitation by mail, or a link that an administrator passes on. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { call } from '../../contracts/call.ts';
import { type Answer, type Api, api, tokenFor } from '../support/client.ts';
import { folderOfMails, linkIn, type Mailbox } from '../support/mail.ts';
import { deployOverHttp } from '../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { authorize, authorizeUrl, Browser, exchange, pkce, type Seen } from './auth/browser.ts';

describe('API: access for new users', () => {
  let platform: TestPlatform;
  let dataDir: string;
  let mails: Mailbox;
  let ada: Api;
  let sam: Api;
  let eve: Api;
  before(async function () {
    this.timeout(120_000);
    dataDir = await mkdtemp(join(tmpdir(), 'erp-test-letting-in-'));
    mails = folderOfMails(dataDir);
    platform = await startPlatform({ env: { DATA_DIR: dataDir } });
    [ada, sam, eve] = (await Promise.all(['ada', 'sam', 'eve'].map((name) => tokenFor(platform.baseUrl, name)))).map(
      (token) => api(platform.baseUrl, token),
    ) as [Api, Api, Api];
    await deployOverHttp(ada, {
      'permissionSets/Reception.yaml':
        'type: PermissionSet\napiName: Reception\nlabel: Reception\nsystem: [manageUsers]\n',
    });
    const found = await userNamed('sam');
    const { headers } = await ada.get(`/data/User/${found.id}`);
    const given = { permissionSetApiNames: ['Reception'] };
    const answer = await ada.patch(`/data/User/${found.id}`, given, { etag: headers.get('etag')! });
    assert.equal(answer.status, 200, answer.text);
  });
  after(async () => {
    await platform?.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  const userNamed = async (name: string): Promise<Answer['body']> => {
    const where = encodeURIComponent(JSON.stringify({ username: `${name}@demo.example` }));
    return (await ada.get(`/data/User?where=${where}`)).body.records[0];
  };
  const create = async (name: string, more: object = {}): Promise<Answer['body']> => {
    const body = {
      username: `${name}@demo.example`,
      email: `${name}@mail.example`,
      displayName: name,
      active: true,
      profileApiName: 'SalesRep',
      ...more,
    };
    const { status, body: user, text } = await ada.post('/data/User', body);
    assert.equal(status, 201, text);
    return user;
  };
  const choose = async (link: string, password: string): Promise<Seen> => {
    const browser = new Browser();
    return browser.submit(await browser.visit(link), { password, repeated: password });
  };
  const session = async (username: string, password: string): Promise<Api> => {
    const { verifier, challenge } = pkce();
    const scope = 'data:read data:write users:manage';
    const url = authorizeUrl(platform.baseUrl, challenge, { scope });
    const location = await authorize(new Browser(), url, username, password);
    const { body } = await exchange(platform.baseUrl, location.searchParams.get('code') ?? '', verifier);
    return api(platform.baseUrl, body.access_token);
  };
  const stored = async (text: string, values: unknown[]): Promise<string> => {
    const { Database } = await import('../../mixins/database/database.ts');
    const database = new Database(platform.database.url, { size: 1, applicationName: 'test' });
    try {
      return JSON.stringify((await database.query(text, values)).rows);
    } finally {
      await database.close();
    }
  };
  const schemaOf = async (): Promise<string> => {
    const tenant = await call(platform.broker, 'metadata.tenants.get', { key: 'demo' });
    return `t_${tenant!.id.replaceAll('-', '')}`;
  };
  /** auth is notified of a new user right after the record is stored. */
  const onceKnown = async (attempt: () => Promise<Answer>): Promise<Answer> => {
    for (const end = performance.now() + 10_000; ; await new Promise((resolve) => setTimeout(resolve, 50))) {
      const answer = await attempt();
      if (answer.body.details?.currentState !== 'inactive' || performance.now() > end) return answer;
    }
  };

  it('an invited user chooses a password, signs in and creates a record', async () => {
    const user = await create('joan');
    const mail = await mails.next({ to: 'joan@mail.example' });
    assert.match(mail.text ?? '', /Northwind/);
    assert.match((await choose(linkIn(mail), 'a fine long password')).html, /Your password is set/);
    const joan = await session('joan@demo.example', 'a fine long password');
    const created = await joan.post('/data/Account', { name: 'Her first customer' });
    assert.equal(created.status, 201, created.text);
    assert.equal(created.body.ownerId, user.id);
  });

  it('an invitation is sent again to a user without a password', async () => {
    const user = await create('late');
    await mails.next({ to: 'late@mail.example' });
    const again = await onceKnown(() => sam.post(`/users/${user.id}/invitations`));
    assert.equal(again.status, 202, again.text);
    const link = linkIn(await mails.next({ to: 'late@mail.example' }));
    await choose(link, 'a fine long password');
    const refused = await ada.post(`/users/${user.id}/invitations`);
    assert.deepEqual([refused.status, refused.body.details], [409, { currentState: 'hasPassword' }]);
    for (let i = 0; i < 2; i++) await create(`other${i}`, { email: 'shared@mail.example' });
  });

  it('repeated invitations do not flood a mailbox', async () => {
    const user = await create('patient');
    const states = [];
    for (let i = 0; i < 3; i++) {
      const { status, body } = await onceKnown(() => ada.post(`/users/${user.id}/invitations`));
      states.push(status === 202 ? 'sent' : body.details.currentState);
    }
    assert.deepEqual(states, ['sent', 'sent', 'tooManyMails']);
  });

  it('a link is returned once, works once, and is stored nowhere', async () => {
    const user = await create('atdesk', { username: 'atdesk' });
    const options = { idempotencyKey: randomUUID() };
    const made = await onceKnown(() =>
      sam.post(`/users/${user.id}/password-links`, undefined, { ...options, idempotencyKey: randomUUID() }),
    );
    assert.equal(made.status, 201, made.text);
    assert.equal(made.body.signInName, 'demo\\atdesk');
    assert.ok(Date.parse(made.body.expiresAt) - Date.now() < 86_401_000);
    const first = await sam.post(`/users/${user.id}/password-links`, undefined, options);
    const repeated = await sam.post(`/users/${user.id}/password-links`, undefined, options);
    assert.equal(repeated.headers.get('idempotency-replayed'), 'true');
    assert.deepEqual(repeated.body, { ...first.body, url: null });
    const token = String(first.body.url).split('/').at(-1)!;
    assert.match(token, /^[\w-]{43}$/);
    const schema = await schemaOf();
    for (const table of [`${schema}._idempotency`, `${schema}._audit`, `${schema}._outbox`, 'auth.password_links'])
      assert.equal(await stored(`SELECT 1 FROM ${table} t WHERE position($1 in t::text) > 0`, [token]), '[]', table);
    assert.match((await choose(first.body.url, 'a fine long password')).html, /Your password is set/);
    assert.equal((await new Browser().visit(first.body.url)).status, 410);
    assert.equal((await new Browser().visit(made.body.url)).status, 410, 'a new password ends the others');
    await session('demo\\atdesk', 'a fine long password');
    const { body } = await ada.get(`/audit?recordId=${user.id}&objectApiName=User`).catch(() => ({ body: null }));
    if (body?.records)
      assert.ok(
        body.records.some((entry: { operationId: string }) => entry.operationId === 'users.passwordLinks.create'),
      );
  });

  it('both are refused without permission, for users with more rights, and across tenants', async () => {
    const user = await create('bystander');
    const administrator = await userNamed('ada');
    const sue = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sue'));
    for (const path of ['password-links', 'invitations']) {
      const post = (by: Api, id: string): Promise<Answer> => by.post(`/users/${id}/${path}`);
      const answers = [
        await post(sue, user.id),
        await post(sue, randomUUID()),
        await post(sam, administrator.id),
        await post(ada, randomUUID()),
        await post(ada, 'nonsense'),
        await post(eve, user.id),
        await post(api(platform.baseUrl), user.id),
        await ada.post(`/users/${user.id}/${path}`, undefined, { idempotencyKey: null }),
      ];
      assert.deepEqual(
        answers.map(({ status, body }) => `${status} ${body.code}`),
        [
          '403 OBJECT_PERMISSION_DENIED',
          '403 OBJECT_PERMISSION_DENIED',
          '403 RECORD_ACCESS_DENIED',
          '404 RECORD_NOT_FOUND',
          '400 PARAMETER_INVALID',
          '404 RECORD_NOT_FOUND',
          '401 TOKEN_MISSING',
          '400 IDEMPOTENCY_KEY_REQUIRED',
        ],
      );
    }
  });

  describe('a link that was passed on ends', () => {
    const change = async (id: string, values: object): Promise<void> => {
      const { headers } = await ada.get(`/data/User/${id}`);
      const answer = await ada.patch(`/data/User/${id}`, values, { etag: headers.get('etag')! });
      assert.equal(answer.status, 200, answer.text);
    };
    const linkBy = async (by: Api, id: string): Promise<string> => {
      const made = await onceKnown(() => by.post(`/users/${id}/password-links`));
      assert.equal(made.status, 201, made.text);
      return made.body.url;
    };
    /** A user who may manage users; signed in, with their id. */
    const receptionist = async (name: string): Promise<{ by: Api; id: string }> => {
      const { id } = await create(name, { permissionSetApiNames: ['Reception'] });
      await choose(await linkBy(ada, id), 'a fine long password');
      return { by: await session(`${name}@demo.example`, 'a fine long password'), id };
    };

    it('when its user gets more rights than its creator holds; also a page that was opened before', async () => {
      const user = await create('promoted');
      const link = await linkBy(sam, user.id);
      const browser = new Browser();
      const page = await browser.visit(link);
      assert.equal(page.status, 200);
      await change(user.id, { profileApiName: 'Administrator' });
      assert.equal((await new Browser().visit(link)).status, 410);
      const password = 'a fine long password';
      assert.equal((await browser.submit(page, { password, repeated: password })).status, 410);
      // A creator who manages access may invite the promoted user.
      assert.match((await choose(await linkBy(ada, user.id), password)).html, /Your password is set/);
    });

    it('when configuration gives its user more rights', async () => {
      const set = (more: string): Record<string, string> => ({
        'permissionSets/Growing.yaml': `type: PermissionSet\napiName: Growing\nlabel: Growing\n${more}`,
      });
      await deployOverHttp(ada, set('system: []\n'));
      const user = await create('grown', { permissionSetApiNames: ['Growing'] });
      const link = await linkBy(sam, user.id);
      assert.equal((await new Browser().visit(link)).status, 200);
      await deployOverHttp(ada, set('system: [manageAccess]\n'));
      assert.equal((await new Browser().visit(link)).status, 410);
    });

    it('when its creator may not invite users any more', async () => {
      const user = await create('newcomer');
      const [moved, gone] = [await receptionist('moved'), await receptionist('gone')];
      const links = [await linkBy(moved.by, user.id), await linkBy(gone.by, user.id)];
      const byAda = await linkBy(ada, user.id);
      await change(moved.id, { permissionSetApiNames: [] });
      await change(gone.id, { active: false });
      for (const link of links) assert.equal((await new Browser().visit(link)).status, 410);
      assert.match((await choose(byAda, 'a fine long password')).html, /Your password is set/);
    });

    it('but not for rights that its user and its creator both hold', async () => {
      const user = await create('colleague');
      const link = await linkBy(sam, user.id);
      await change(user.id, { permissionSetApiNames: ['Reception'], displayName: 'Another name' });
      assert.match((await choose(link, 'a fine long password')).html, /Your password is set/);
    });
  });

  it('an inactive user is never admitted', async () => {
    const user = await create('asleep', { active: false });
    for (const path of ['password-links', 'invitations']) {
      const { status, body } = await ada.post(`/users/${user.id}/${path}`);
      assert.deepEqual([status, body.details], [409, { currentState: 'inactive' }]);
    }
  });
});
