/**
 * A company goes live on an installation that was brought up by the pages for operators alone, and what years bring happens to
 * it within a minute: people come, it is suspended, moved, erased and brought back, the secret is replaced, the processes are.
 * Each step runs the commands that its page prints.
 */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'pg';
import { tenantSchema } from '../../lib/context.ts';
import { authorizeUrl, Browser, exchange, pkce, refresh, type Seen } from '../api/auth/browser.ts';
import { codeFor, sealedOn, secretOn } from '../api/auth/factor-pages.ts';
import { type Api, api } from '../support/client.ts';
import { Console } from '../support/console.ts';
import { erpOf } from '../support/erp.ts';
import { exampleNamed } from '../support/examples.ts';
import { CLIENT_SECRET } from '../support/identity-provider.ts';
import { linkIn, recipient } from '../support/mail.ts';
import type { RecordedSpan } from '../support/otlp.ts';
import { read } from '../support/sources.ts';
import { inSteps } from '../support/steps.ts';
import { MAIL_PASSWORD, Production } from './production.ts';
import { until } from './stage.ts';

const CLUSTER = 'docs/reference/operations-cluster.md';
const OPERATORS = 'docs/guides/operators.md';
const INVITE = 'docs/guides/invite-people.md';
const SIGN_ON = 'docs/guides/single-sign-on.md';
const MOVING = 'docs/reference/moving-tenants.md';
const PASSWORD = 'a fine long password';

/** Somebody at the sign-in pages. */
interface Person {
  readonly username: string;
  /** Of the authenticator app, once it is set up, and the time step of the last code. */
  secret?: string;
  step?: number;
}
interface Session {
  readonly token: string;
  readonly api: Api;
  readonly refreshToken: string;
}

describe('a company goes live', function () {
  this.timeout(180_000);
  inSteps();
  let production: Production;
  let _joan: Session;
  let nora: Session;
  let tenantId: string;
  let record: { id: string; name: string };
  /** Of the audit trail at the time of the export. */
  let end: string;
  const joanHerself: Person = { username: 'joan@lakeside.example' };

  before(async () => {
    production = await Production.begin();
  });
  after(() => production?.end());
  // Reached after an earlier failure: another process may have ended already.
  afterEach('no process ended by itself', () => {
    assert.deepEqual([...production.crashes(), ...production.failures], []);
  });

  /** The line of an example that has this in it. */
  const line = (name: string, part: string): string => {
    const found = exampleNamed(name)
      .split('\n')
      .find((one) => one.includes(part));
    assert.ok(found, `${part} in ${name}`);
    return found;
  };
  /** How an administrator of a company of their own gets what the guides get for Ada of the demo. */
  const tokenOf = (guide: string): string => /`ADA=(\$\(.+\))`/.exec(read(guide))![1]!;
  /** A command of the pages, as the operator. */
  const asOperator = (text: string): Promise<string> => production.shell(text, production.operator);
  /** Commands in a pod, between the lines of the page that give it the keys of the operator and take them away. */
  const inPod = (...commands: string[]): Promise<string> => {
    const [pod, copy, , remove] = exampleNamed(`${CLUSTER}#console-in-a-pod`).split('\n');
    const [asOwner] = /^as_owner\(\) \{[\s\S]*?^\}$/m.exec(exampleNamed(`${CLUSTER}#console-in-a-pod 2`))!;
    return production.shell([pod, copy, asOwner, ...commands, remove].join('\n'));
  };
  /** Console output of the last of these commands. */
  const inConsole = async (...commands: string[]): Promise<string> => {
    const console = new Console({ HOME: production.folder, ...production.operator });
    try {
      let answer = await console.answer();
      for (const command of commands) answer = await console.type(command);
      return answer;
    } finally {
      await console.end();
    }
  };

  /** For the administrator of a tenant that has just been made of a file, as the page says. */
  const linkFor = async (tenant: string): Promise<string> => {
    const [command] = /call auth\.users\.createLink '\{[^`]*tenantId[^`]*\}'/.exec(read(MOVING))!;
    const answer = await inConsole(command.replace('…', joanHerself.username).replace('…', tenant));
    const [link] = /https:\/\/\S+\/password\/[\w-]{43}/.exec(answer) ?? [];
    assert.ok(link, answer);
    return link;
  };

  const choosePassword = async (link: string): Promise<void> => {
    const browser = new Browser();
    const page = await browser.submit(await browser.visit(link), { password: PASSWORD, repeated: PASSWORD });
    assert.match(page.html, /Your password is set/);
  };
  /** From the page for the password to the way back to the client. */
  const through = async (browser: Browser, page: Seen, person: Person): Promise<URL> => {
    let seen = await browser.submit(page, { username: person.username, password: PASSWORD });
    const now = Math.floor(Date.now() / 30_000);
    const step = Math.max(now, (person.step ?? 0) + 1);
    if (/Protect your account/.test(seen.html)) {
      person.secret = secretOn(seen);
      const answers = { decision: 'addApp', setup: sealedOn(seen), code: codeFor(person.secret, step - now) };
      seen = await browser.submit(await browser.submit(seen, answers));
      person.step = step;
    } else if (/Confirm it is you/.test(seen.html)) {
      assert.ok(person.secret, `${person.username} has no authenticator app`);
      seen = await browser.submit(seen, { code: codeFor(person.secret, step - now) });
      person.step = step;
    }
    if (!seen.location) seen = await browser.submit(seen);
    assert.ok(seen.location, `the way back to the client, not: ${seen.html.slice(-2_500)}`);
    return seen.location;
  };
  const sessionOf = async (location: URL, verifier: string): Promise<Session> => {
    const { status, body } = await exchange(production.baseUrl, location.searchParams.get('code')!, verifier);
    assert.equal(status, 200, JSON.stringify(body));
    return {
      token: body.access_token,
      api: api(production.baseUrl, body.access_token),
      refreshToken: body.refresh_token,
    };
  };
  const SCOPE = 'data:read data:write offline_access';
  const signIn = async (person: Person): Promise<Session> => {
    const { verifier, challenge } = pkce();
    const browser = new Browser();
    const page = await browser.visit(authorizeUrl(production.baseUrl, challenge, { scope: SCOPE }));
    return sessionOf(await through(browser, page, person), verifier);
  };

  describe('is brought up by the pages', () => {
    it('with the owner of the database, the Secrets and the keys of the bus as printed', async () => {
      const password = randomBytes(24).toString('hex');
      await production.sql(`${OPERATORS}#start-and-stop 3`, (text) => text.replace('…', password));
      await production.run(`${CLUSTER}#kubernetes 3`, {
        change: (text) =>
          text
            .replace(/(:\/\/erp:)\w+(@\$database)/, `$1${password}$2`)
            .replace(/(smtp:\/\/erp:)\w+/, `$1${MAIL_PASSWORD}`),
      });
      await production.run(`${CLUSTER}#kubernetes 4`);
      await production.startNats(production.file('keys'));
    });

    it('with the migration of all tables and logins, which the pods wait for', async () => {
      const waiting = production.waitForMigration('data');
      await pause(1_500);
      await production.run(`${CLUSTER}#prometheus-and-grafana`);
      assert.equal(await production.migrate(), 'The database is up to date.\n');
      assert.match(await waiting, /^Waiting for the migration\. .+\n$/);
    });

    it('with a process for each service, which are ready and see each other', async () => {
      await production.startAll();
      const gateway = production.pods.get('gateway')!;
      await until('all are seen', async () => !(await production.ready(gateway)).degraded, 10_000);
      for (const pod of production.pods.values()) {
        const { status, checks } = await production.ready(pod);
        assert.deepEqual([pod.service, status], [pod.service, 'ready'], JSON.stringify(checks));
        assert.match(await (await fetch(`${pod.health}/metrics`)).text(), /^erp_bus_connected 1$/m);
      }
      assert.equal((await fetch(`${production.baseUrl}/metrics`)).status, 404, 'callers see no metrics');
    });
  });

  describe('lets people in', () => {
    it('its administrator, who chooses a password, sets up a second factor and signs in with erp', async () => {
      const made = await production.run(`${OPERATORS}#a-new-tenant`, { env: production.operator });
      tenantId = /^id +(\S+)$/m.exec(made)![1]!;
      const mail = await production.mail.mails.next({ to: 'joan@lakeside.example' });
      assert.match(linkIn(mail), new RegExp(`^${production.baseUrl}/password/`));
      await choosePassword(/^password link +(\S+)$/m.exec(made)![1]!);
      const erp = erpOf({
        PATH: process.env['PATH']!,
        HOME: production.folder,
        NODE_EXTRA_CA_CERTS: production.file('ca.crt'),
      });
      let visited: Promise<unknown> | undefined;
      const { code, stderr } = await erp(['login', '--no-browser', '--base-url', production.baseUrl], {
        onStderr: (text) => {
          const [address] = /https:\/\/\S+(?=\s)/.exec(text) ?? [];
          if (!address || visited) return;
          const browser = new Browser();
          visited = browser
            .visit(address)
            .then((page) => through(browser, page, joanHerself))
            .then((back) => fetch(back));
        },
      });
      await visited;
      assert.equal(code, 0, stderr);
    });

    it('a user invited by mail, who chooses a password and creates a record', async () => {
      const own = (text: string): string => text.replaceAll('demo.example', 'lakeside.example');
      const blocks = ['', '#1-create-the-user', '#2-send-the-invitation-again', '#3-hand-over-a-link-yourself'];
      const text = [`${INVITE}#invite-people`, ...blocks.slice(1).map((name) => INVITE + name)].map(exampleNamed);
      const printed = await production.shell(
        own(production.here(text.join('\n'))).replace('$(token_of ada)', tokenOf(INVITE)),
      );
      assert.match(printed, /"userId":"[0-9a-f-]{36}"/);
      assert.match(printed, /\nhttps:\S+\/password\/[\w-]{43}\n/);
      const mails = async () => (await production.mail.mails.all()).filter((mail) => /^nora-/.test(recipient(mail)));
      await until('both invitations are there', async () => (await mails()).length === 2, 15_000);
      const [, mail] = await mails();
      await choosePassword(linkIn(mail!));
      nora = await signIn({ username: recipient(mail!) });
      const created = await nora.api.post('/data/Account', { name: 'The first customer' });
      assert.equal(created.status, 201, created.text);
      record = created.body;
    });

    it('a new user from the company’s own identity provider', async () => {
      await production.provider.serve(`${production.baseUrl}/oauth2/sso/callback/lakeside/CorporateLogin`);
      const blocks = [
        'sign-in-with-the-account-of-your-company',
        '3-declare-it',
        '6-let-the-first-sign-in-create-the-user',
      ];
      const text = blocks.map((name) => exampleNamed(`${SIGN_ON}#${name}`)).join('\n');
      const own = production.here(text).replaceAll('demo.example', 'lakeside.example');
      const printed = await production.shell(own.replace('$(token_of ada)', tokenOf(SIGN_ON)), {
        ISSUER: production.provider.issuer,
      });
      assert.match(printed, /sso: SUCCEEDED\nsso: SUCCEEDED\n/);
      const typed = exampleNamed(`${SIGN_ON}#4-set-its-secret-and-check-it`)
        .replaceAll('"demo"', '"lakeside"')
        .replace('<secret>', CLIENT_SECRET)
        .matchAll(/^erp \$ (.+)$/gm);
      const answer = await inConsole(...[...typed].map(([, command]) => command!));
      assert.match(answer, /ok: true/);
      const username = 'omar@lakeside.example';
      production.provider.people.set(username, { sub: '1', email: username, email_verified: true, name: 'Omar Reed' });
      const browser = new Browser();
      const { verifier, challenge } = pkce();
      const form = await browser.visit(authorizeUrl(production.baseUrl, challenge, { scope: SCOPE }));
      const left = await browser.submit(form, { username, password: '' });
      let seen = await browser.visit(/^0; url=(.+)$/.exec(left.headers.get('refresh') ?? '')![1]!);
      while (!seen.location) seen = await browser.submit(seen, { login: username, password: 'any' });
      seen = await browser.visit(seen.location);
      const { location } = seen.location ? seen : await browser.submit(seen);
      const omar = await sessionOf(location!, verifier);
      const { body } = await omar.api.get('/identity');
      assert.deepEqual([body.user.displayName, body.tenant.id], ['Omar Reed', tenantId]);
    });
  });

  describe('is looked after', () => {
    it('by a command in a pod', async () => {
      const printed = await production.run(`${CLUSTER}#console-in-a-pod`);
      assert.match(printed, /^lakeside +\S+ +active/m);
      assert.deepEqual(readdirSync(production.file('tmp')), []);
    });

    it('by a console beside a pod', async () => {
      const printed = await production.run(`${CLUSTER}#console-in-a-pod 3`, { input: 'tenant list\n' });
      assert.match(printed, /^(erp \$ )?lakeside +\S+ +active/m);
      assert.deepEqual(readdirSync(production.file('tmp')), ['console']);
      rmSync(production.file('tmp/console'));
    });

    it('a slow request is found by its id: in the logs of all processes, and where its time went in its trace', async () => {
      const blocker = new Client({ connectionString: production.postgres.url('erp') });
      await blocker.connect();
      await blocker.query(`BEGIN; LOCK TABLE ${tenantSchema(tenantId)}."Account" IN ACCESS EXCLUSIVE MODE`);
      const asked = nora.api.get('/data/Account?take=1');
      const waits = `SELECT FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = 'erp')`;
      await until('it waits', async () => (await blocker.query(waits)).rows.length > 0, 20_000);
      await blocker.query('SELECT pg_sleep(1.5)');
      await blocker.query('COMMIT');
      await blocker.end();
      const requestId = (await asked).headers.get('x-request-id')!;
      await until('its line is written', async () => production.logs().includes(requestId), 20_000);
      const found = await production.run(`${OPERATORS}#follow-a-request`, {
        change: (text) => text.replace(/req_\w+/, requestId),
      });
      // A busy machine may add lines about what the request waited for.
      const answered = found
        .matchAll(/^\[pod\/gateway-\S+\] (.+)$/gm)
        .map(([, text]) => JSON.parse(text!))
        .find(({ operationId }) => operationId === 'data.records.list');
      assert.ok(answered, found);
      const { ms, traceparent } = answered;
      assert.ok(ms > 1_400, found);
      const spans = (): RecordedSpan[] =>
        production.collector.spans.filter(({ traceId }) => traceId === traceparent.split('-')[1]);
      const lasted = ({ start, end }: RecordedSpan): number => end - start;
      const statements = () => spans().filter(({ attributes }) => attributes['db.system.name'] === 'postgresql');
      const reads = ({ name }: RecordedSpan): boolean => name.endsWith('.Account');
      await until('its statements are sent', async () => statements().some(reads), 10_000);
      const [slowest] = statements().sort((a, b) => lasted(b) - lasted(a));
      assert.deepEqual([slowest!.service, slowest!.name], ['erp-data', `SELECT ${tenantSchema(tenantId)}.Account`]);
      assert.ok(lasted(slowest!) > 0.9 * ms, `${lasted(slowest!)} of ${ms} ms`);
    });

    it('it is suspended within seconds, and resumed', async () => {
      const life = `${OPERATORS}#the-life-of-a-tenant`;
      assert.match(await asOperator(line(life, 'suspend')), /^state +suspended$/m);
      const refused = async () => (await nora.api.get('/identity')).body.code === 'TENANT_SUSPENDED';
      await until('nobody works', refused, 6_000);
      assert.equal((await refresh(production.baseUrl, nora.refreshToken)).body.error, 'access_denied');
      assert.match(await asOperator(line(life, 'resume')), /^state +active$/m);
      await until('people work', async () => (await nora.api.get('/identity')).status === 200, 6_000);
    });
  });

  describe('is moved', () => {
    const life = `${OPERATORS}#the-life-of-a-tenant`;

    it('into a file and a sandbox, by commands in a pod', async () => {
      const page = `${CLUSTER}#console-in-a-pod 2`;
      const printed = await inPod(line(page, 'tenant.ts export'), line(page, 'tenant.ts copy'));
      assert.match(printed, /^tenant +lakesidetest, Lakeside Bakery Ltd, a sandbox$/m);
      assert.match(printed, /^tenant +lakeside, as of /m);
      end = /^audit trail +ends at (\S+)$/m.exec(printed)![1]!;
      const check = line(`${MOVING}#moving-tenants`, '--check');
      assert.match(await asOperator(check), /^file +whole$/m);
    });

    it('a deletion is taken back', async () => {
      assert.match(await asOperator(line(life, '-- delete')), /^state +deleting$/m);
      await until('nobody works', async () => (await nora.api.get('/identity')).status === 403, 6_000);
      assert.match(await asOperator(line(life, 'undelete')), /^state +active$/m);
      await until('people work', async () => (await nora.api.get(`/data/Account/${record.id}`)).status === 200, 6_000);
    });

    it('it is deleted at once', async () => {
      assert.match(await asOperator(line(`${OPERATORS}#one-tenant 5`, '-- delete')), /^state +deleting$/m);
      // Requests that were admitted before have a minute, in which nothing happens.
      await production.postgres.query(
        `UPDATE metadata.tenants SET delete_at = now() - interval '1 s' WHERE key = 'lakeside'`,
      );
    });
  });

  describe('goes on while the installation changes', () => {
    let signedIn: Session;
    const inSandbox: Person = { username: 'lakesidetest\\joan@lakeside.example' };
    const failed: string[] = [];
    let answered = 0;
    let working = true;
    let traffic: Promise<unknown>;

    before(async () => {
      const shown = await inConsole(`call metadata.tenants.get '{"key":"lakesidetest"}'`);
      const id = /id: '([0-9a-f-]{36})'/.exec(shown)![1]!;
      await choosePassword(await linkFor(id));
      signedIn = await signIn(inSandbox);
      const { body } = await signedIn.api.get('/data/Account?take=1');
      assert.equal(body.records.length, 1, JSON.stringify(body));
      const caller = async (): Promise<void> => {
        while (working) {
          const began = performance.now();
          for (const body of [null, { name: `Account ${answered}` }]) {
            const answer = await fetch(
              `${production.baseUrl}/api/v1/data/Account?take=1`.replace(body ? /\?.*/ : '', ''),
              {
                method: body ? 'POST' : 'GET',
                headers: {
                  authorization: `Bearer ${signedIn.token}`,
                  ...(body ? { 'content-type': 'application/json', 'idempotency-key': randomUUID() } : {}),
                },
                ...(body ? { body: JSON.stringify(body) } : {}),
              },
            ).catch((error: Error) => error);
            if (answer instanceof Error) failed.push(String(answer.cause ?? answer));
            else if (answer.status >= 300) failed.push(`${answer.status} ${await answer.text()}`);
            else answered++;
          }
          await pause(Math.max(0, 100 - (performance.now() - began)));
        }
      };
      traffic = Promise.all([caller(), caller()]);
    });

    const SECRET = `${CLUSTER}#another-secret-on-kubernetes`;

    it('the secret is replaced by two rollouts and a command', async () => {
      await production.shell(exampleNamed(SECRET));
      assert.notEqual(production.secret('platform', 'PLATFORM_SECRET_PREVIOUS'), '');
      const command = line(`${CLUSTER}#console-in-a-pod`, 'tenant.ts');
      assert.match(await inPod(command.replace('tenant.ts list', 'rotate-secret.ts')), /^Sealed anew: [1-9]/);
    });

    it('the old secret is removed by the rollout of an upgrade, which keeps all sessions', async () => {
      const [functions = ''] = exampleNamed(SECRET).split(/^old=/m);
      await production.shell(functions.replace(/^.*rollout.*\n/gm, '') + exampleNamed(`${SECRET} 2`));
      const address = production.secret('platform', 'DATABASE_URL_AGENT').replace('postgres://login_agent:', '');
      const prepared = await production.run(`${CLUSTER}#upgrade-on-kubernetes`, {
        change: (text) => text.replace('…', address),
      });
      assert.match(prepared, /^New or changed in this run: nats\.$/m);
      await production.run(`${CLUSTER}#upgrade-on-kubernetes 2`);
      working = false;
      await traffic;
      assert.deepEqual(failed.slice(0, 5), [], `${failed.length} failed, ${answered} were answered`);
      assert.ok(answered > 100);
      const again = await refresh(production.baseUrl, signedIn.refreshToken);
      assert.equal(again.status, 200, JSON.stringify(again.body));
      await signIn(inSandbox);
    });
  });

  describe('comes back', () => {
    it('after its erasure, of which the proof says that nothing is left', async () => {
      const erased = async () =>
        /^ {2}looked for its id in \d+ tables: nothing is left$/m.test(
          await asOperator('npm run --silent tenant -- deletions lakeside --check'),
        );
      await until('it is erased', erased, 120_000);
    });

    it('from the file, with its records and its trail, and its administrator signs in', async () => {
      const importing = line(`${CLUSTER}#console-in-a-pod 2`, 'tenant.ts import');
      // The key and the domains of the tenant that is gone are free again.
      const printed = await inPod(importing.replace(' --key lakeside2 --without-domains', ''));
      assert.match(printed, /^domains +lakeside\.example$/m);
      const [expecting] = /npm .* --expect /.exec(exampleNamed(`${OPERATORS}#the-audit-trail 3`))!;
      const verified = await asOperator(`${expecting.replace('demo', 'lakeside')} ${end}`);
      assert.match(verified, /^lakeside: intact, /);
      await choosePassword(await linkFor(/^id +(\S+)$/m.exec(printed)![1]!));
      const back = await signIn({ username: joanHerself.username });
      const { status, body } = await back.api.get(`/data/Account/${record.id}`);
      assert.deepEqual([status, body.name], [200, record.name]);
    });
  });

  describe('and leaves nothing behind', () => {
    it('no secret in a log, no line that is an error', () => {
      const logs = production.logs();
      const errors = logs.split('\n').filter((text) => /^\{"level":(50|60)/.test(text));
      assert.deepEqual(errors, []);
      for (const secret of [
        MAIL_PASSWORD,
        CLIENT_SECRET,
        PASSWORD,
        production.secret('platform', 'PLATFORM_SECRET'),
        nora.refreshToken,
      ])
        assert.equal(logs.includes(secret), false);
    });
  });
});
