/**
 * Each failure of the table "When something fails" in docs/architecture.md that no other file produces on a cluster, one after
 * the other on one cluster: what callers get, what probes, metrics and logs say before, during and after it, and which alerts of
 * k8s/monitoring fire if it lasts. Every process has to come back by itself.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { ALL_SERVICES, type ServiceName } from '../../config/services.ts';
import { tenantSchema } from '../../lib/context.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { authorizeUrl, Browser, pkce, type Seen } from '../api/auth/browser.ts';
import { Link } from '../storm/link.ts';
import { type Answer, type Api, api, tokenFor } from '../support/client.ts';
import { CLIENT_ID, IdentityProvider } from '../support/identity-provider.ts';
import { type MailServer, mailServer } from '../support/mail.ts';
import { assistantTokens } from '../support/mcp.ts';
import { deployOverHttp, fieldFile, wholePackage } from '../support/metadata-tenant.ts';
import { findPromtool } from '../support/promtool.ts';
import { firedAlerts, type Recorded, type Scrape } from '../support/recorded-series.ts';
import { SmallDisk } from '../support/small-disk.ts';
import { until } from './stage.ts';
import { type Line, WatchedCluster } from './watched-cluster.ts';

const WARN = 40;
const ERROR = 50;
/** A process without calls is detected by its missing heartbeats. */
const MISSED_MS = 15_000;
/**
 * Until everything is as usual. A second is usual; a process that has just started and gets no processor time for four is
 * taken for lost once more.
 */
const RECOVERED_MS = 30_000;
/** FIGURES=true prints how long everything took. */
const say = (...what: unknown[]): void => {
  if (process.env['FIGURES'])
    console.log('     ', ...what.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))));
};
const RETRIEVE = { package: { version: 1, types: [{ name: 'CustomObject', members: ['Invoice__c'] }] } };

describe('when something fails', function () {
  this.timeout(120_000);
  const idp = new IdentityProvider();
  let mails: MailServer;
  let toMails: Link;
  let cluster: WatchedCluster;
  let superuser: Client;
  let sam: Api;
  let ada: Api;
  let mia: Api;
  let eve: Api;
  let assistant: string;
  let schema: string;

  before(async () => {
    [mails] = await Promise.all([mailServer(), idp.listen()]);
    toMails = await Link.open(() => mails.port);
    cluster = await WatchedCluster.start({
      auth: {
        SSO_PRIVATE_HOSTS: idp.host,
        SMTP_URL: `smtp://127.0.0.1:${toMails.port}?starttls=off`,
        MAIL_FROM: 'no-reply@demo.example',
      },
    });
    superuser = new Client({ connectionString: cluster.database.url, application_name: 'test support' });
    await superuser.connect();
    const { baseUrl } = cluster;
    const as = async (user: string): Promise<Api> => api(baseUrl, await tokenFor(baseUrl, user));
    [sam, ada, mia, eve] = await Promise.all([as('sam'), as('ada'), as('mia'), as('eve')]);
    assistant = (await assistantTokens(baseUrl, 'ada')).access_token;
    schema = `"${tenantSchema((await ada.get('/identity')).body.tenant.id)}"`;
    await idp.serve(`${baseUrl}/oauth2/sso/callback/demo/Corp`);
  });
  // So that one failure has no others behind it.
  afterEach(async function () {
    if (this.currentTest?.state !== 'failed') return;
    idp.gone = false;
    latest = undefined;
    await superuser.query('ROLLBACK');
    await superuser.query(`ALTER DATABASE ${cluster.database.name} RESET default_transaction_read_only`);
    await cluster.mend();
  });
  after(async () => {
    await superuser?.end();
    await cluster?.stop();
    toMails?.close();
    await mails?.close();
    await idp.close();
  });

  const post = (path: string, init: RequestInit): Promise<Answer> =>
    fetch(`${cluster.baseUrl}${path}`, { method: 'POST', redirect: 'manual', ...init }).then(async (response) => {
      const text = await response.text();
      const isJson = response.headers.get('content-type')?.includes('json');
      return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : text };
    });
  let names = 0;
  /** A request of each kind, and what it is usually answered with. */
  const REQUESTS: Readonly<Record<string, readonly [usual: number, send: () => Promise<Answer>]>> = {
    token: [
      400,
      () =>
        post('/oauth2/token', {
          body: new URLSearchParams({
            grant_type: 'refresh_token',
            client_id: 'erp-cli',
            refresh_token: 'A'.repeat(43),
          }),
        }),
    ],
    identity: [200, () => ada.get('/identity')],
    connections: [200, () => sam.get('/me/connections')],
    limits: [200, () => sam.get('/me/limits')],
    capabilities: [200, () => sam.get('/capabilities')],
    objects: [200, () => sam.get('/objects')],
    list: [200, () => sam.get('/data/Account?take=1')],
    create: [201, () => mia.post('/data/Account', { name: `Whatever fails ${++names}` })],
    users: [200, () => ada.get('/data/User?take=1')],
    audit: [200, () => ada.get('/events/audit?take=1')],
    retrieve: [200, () => ada.post('/metadata/retrieve', RETRIEVE)],
    deployments: [200, () => ada.get('/metadata/deployments')],
    dashboards: [200, () => sam.get('/analytics/dashboards')],
    runs: [200, () => sam.get('/agent/runs')],
    approvals: [200, () => sam.get('/agent/approvals')],
    assistant: [
      200,
      () =>
        post('/mcp', {
          headers: {
            authorization: `Bearer ${assistant}`,
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
          },
          body: JSON.stringify({
            jsonrpc: '2.0',
            id: 1,
            method: 'tools/call',
            params: { name: 'docs_search', arguments: { query: 'limits' } },
          }),
        }),
    ],
  };
  const ALL = Object.keys(REQUESTS);

  /**
   * Sends all of them at once. Those that fail are answered with 503 within so many milliseconds, the others as usual, and
   * those of which it depends on what a cache still knows in one way or the other.
   */
  async function answers(
    failing: readonly string[],
    { within = 1_000, either = [] as readonly string[] } = {},
  ): Promise<void> {
    const wrong = await Promise.all(
      Object.entries(REQUESTS).map(async ([name, [usual, send]]) => {
        const began = performance.now();
        const { status, headers, body, text } = await send();
        const took = performance.now() - began;
        if (either.includes(name) && status === usual) return [];
        if (!failing.includes(name) && !either.includes(name))
          return status === usual ? [] : `${name}: ${status} ${text.slice(0, 200)}`;
        const retryAfter = Number(headers.get('retry-after'));
        // Auth answers as OAuth says.
        const isOwn = name === 'token' && body.error === 'temporarily_unavailable';
        if (status !== 503 || !(isOwn || body.code === 'SERVICE_UNAVAILABLE'))
          return `${name}: ${status} ${text.slice(0, 200)}`;
        if (!(retryAfter >= 1 && (isOwn || (body.retryable && body.retryAfterSeconds === retryAfter))))
          return `${name}: ${text}`;
        return took < within ? [] : `${name}: after ${Math.round(took)} ms`;
      }),
    );
    assert.deepEqual(wrong.flat(), []);
  }

  /** The same; a machine that gave no processor time for a moment is asked once more. */
  const steadily = (failing: readonly string[], options: Parameters<typeof answers>[1]): Promise<void> =>
    answers(failing, options).catch(() => answers(failing, options));

  const recorded = new Map<string, Recorded>();
  let latest: Scrape | undefined;
  let diskWasFull: number | undefined;
  let browser: Browser;
  let page: Seen;
  let refusedAt = 0;
  let mailsBackAt = 0;

  interface Failure {
    readonly begin: () => unknown;
    /** Every process that is concerned shows it; metrics are recorded from here on. */
    readonly seen: () => unknown;
    /** Requests that are answered with 503, and those that may be. */
    readonly failing: readonly string[];
    readonly either?: readonly string[];
    /** Milliseconds until a 503; of the first ones two seconds more, in which the failure is found out. */
    readonly within?: number;
    /** Further checks while it lasts. */
    readonly meanwhile?: () => unknown;
    readonly end: () => unknown;
    /** Connections are cut under reads, of which only those of records are repeated. */
    readonly cuts?: boolean;
  }

  /** New lines of a service, at level warn and above. */
  type Said = (service: ServiceName) => Line[];

  /** From a whole cluster to a whole cluster. */
  async function through(name: string, failure: Failure): Promise<Said> {
    const { failing, either = [], within = 1_000 } = failure;
    latest ??= await cluster.scrape();
    const before = latest;
    const marks = new Map(ALL_SERVICES.map((service) => [service, cluster.lines(service).length]));
    const times: Record<string, number> = {};
    const timed = async (what: string, work: () => unknown): Promise<void> => {
      const began = performance.now();
      await work();
      times[what] = Math.round(performance.now() - began);
    };
    await failure.begin();
    await timed('first', () => answers(failing, { within: within + 2_000, either: failure.cuts ? ALL : either }));
    await timed('seen', failure.seen);
    await timed('answers', () => steadily(failing, { within, either }));
    const first = await cluster.scrape();
    await failure.meanwhile?.();
    await steadily(failing, { within, either });
    const second = await cluster.scrape();
    await timed('end', failure.end);
    await timed('recovers', () => untilUsual());
    await timed('whole', () => cluster.isWhole());
    latest = await cluster.scrape();
    recorded.set(name, { before, during: [first, second], after: latest });
    say(name, times);
    const said: Said = (service) =>
      cluster
        .lines(service)
        .slice(marks.get(service))
        .filter(({ level }) => level >= WARN);
    return said;
  }

  /** All requests are answered as usual again. */
  async function untilUsual(): Promise<void> {
    let last: unknown;
    const usual = (): Promise<boolean> =>
      answers([], { within: Number.POSITIVE_INFINITY }).then(
        () => true,
        (error) => {
          last = error;
          return false;
        },
      );
    await until('requests are answered as usual', usual, RECOVERED_MS).catch((error) =>
      assert.fail(`${error.message}: ${String(last)}`),
    );
  }

  const others = (gone: readonly ServiceName[]): ServiceName[] => ALL_SERVICES.filter((one) => !gone.includes(one));
  const has = (lines: Line[], text: RegExp): void => {
    const found = lines.filter(({ msg }) => text.test(msg));
    assert.ok(found.length > 0, `no line ${text} in ${JSON.stringify(lines)}`);
    for (const line of found) assert.equal(line.level, WARN, JSON.stringify(line));
  };
  /** Probes of these processes say 503 because of this check alone, and that they live; answers after how long the last did. */
  async function unready(check: string, services: readonly ServiceName[], within: number): Promise<void> {
    const began = performance.now();
    await Promise.all(
      services.map(async (service) => {
        await cluster.untilReady('not ready', ({ code }) => code === 503, { service, within });
        say(`  ${service} is not ready after`, Math.round(performance.now() - began));
        const { status, checks } = await cluster.ready(service);
        assert.equal(status, 'unready');
        const failed = Object.entries(checks).flatMap(([name, holds]) => (holds ? [] : name));
        assert.deepEqual(failed, [check], service);
        assert.equal((await cluster.probe(service, '/healthz')).status, 200, service);
      }),
    );
  }

  /** Kills services, one process each, and starts them again. */
  const killed = (gone: readonly ServiceName[], failing: readonly string[], more: Partial<Failure> = {}): Failure => ({
    begin: () => Promise.all(gone.map((service) => cluster.kill(service))),
    seen: async () => {
      const began = performance.now();
      await Promise.all(
        others(gone).map((service) =>
          cluster.untilReady(
            `${gone} away`,
            ({ services }) => gone.every((one) => !services[one] || services[one].status === 'away'),
            { service, within: MISSED_MS },
          ),
        ),
      );
      say('  missed by all after', Math.round(performance.now() - began));
    },
    failing,
    end: () => Promise.all(gone.map((service) => cluster.begin(service))),
    ...more,
    meanwhile: async () => {
      const { code, degraded, services, checks } = await cluster.ready();
      assert.equal(code, 200, 'the gateway stays ready');
      assert.deepEqual([...degraded].sort(), gone.map((one) => `${one}Unavailable`).sort());
      for (const one of gone) {
        assert.deepEqual([services[one]!.status, services[one]!.processes], ['away', 0]);
        assert.ok(services[one]!.awaySeconds! > 0);
        assert.notEqual(checks[one], false);
        await cluster.shows('gateway', `erp_service_available{service="${one}"}`, (value) => value === 0);
        await cluster.shows('gateway', `erp_service_processes{service="${one}"}`, (value) => value === 0);
        await cluster.shows('gateway', `erp_service_away_seconds{service="${one}"}`, (value) => value! > 0);
      }
      for (const one of others(gone)) {
        assert.equal(services[one]!.status, 'present', one);
        assert.equal((await cluster.ready(one)).code, 200, `${one} does its own work`);
      }
      await more.meanwhile?.();
    },
  });

  it('no failure: every request succeeds, and every process is ready', async () => {
    await untilUsual();
    assert.deepEqual((await cluster.ready()).degraded, []);
  });

  it('analytics, agent, mcp and ratelimit away: their own operations are 503, and nothing else is', async () => {
    const gone = ['analytics', 'agent', 'mcp', 'ratelimit'] as const;
    const said = await through(
      'four services',
      killed(gone, ['dashboards', 'runs', 'approvals', 'assistant', 'limits']),
    );
    const lines = said('gateway');
    for (const one of gone) has(lines, new RegExp(`^Node '${one}/.*' disconnected unexpectedly\\.$`));
    for (const { level, code } of lines.filter(({ status }) => status === 503))
      assert.deepEqual([level, code], [WARN, 'SERVICE_UNAVAILABLE']);
  });

  it('metadata and auth away: known sessions continue on cached configurations', async () => {
    const said = await through(
      'auth and metadata',
      killed(['auth', 'metadata'], ['token', 'identity', 'connections', 'limits', 'retrieve', 'deployments'], {
        meanwhile: async () => {
          const page = await fetch(`${cluster.baseUrl}/account`, {
            headers: { accept: 'text/html' },
            redirect: 'manual',
          });
          assert.deepEqual([page.status, page.headers.has('retry-after')], [503, true], 'nobody signs in');
        },
      }),
    );
    has(said('gateway'), /^auth does not answer: grants that it has confirmed go on for 900 s, confirmed by data\.$/);
    has(said('gateway'), /^auth answers again\.$/);
  });

  it('data away: nearly everything is 503, and a change under way is done once', async () => {
    const body = { name: `Killed under way ${randomUUID()}` };
    const key = { idempotencyKey: randomUUID() };
    let underWay: Promise<Answer> | undefined;
    await through(
      'data',
      killed(
        ['data'],
        [
          'objects',
          'list',
          'create',
          'users',
          'audit',
          'identity',
          'retrieve',
          'deployments',
          'dashboards',
          'runs',
          'approvals',
        ],
        {
          // Permissions of a user are cached for five seconds.
          either: ['connections', 'limits', 'capabilities', 'assistant'],
          begin: async () => {
            await superuser.query(`BEGIN; LOCK TABLE ${schema}."Account" IN SHARE MODE`);
            underWay = mia.post('/data/Account', body, key);
            await waitsForLock('erp data %');
            await cluster.kill('data');
            await superuser.query('ROLLBACK');
            const { status, body: lost } = await underWay;
            assert.deepEqual([status, lost.code, lost.retryable], [503, 'SERVICE_UNAVAILABLE', true]);
            assert.match(lost.message, /whether it was carried out is not known/);
          },
        },
      ),
    );
    const made = await mia.post('/data/Account', body, key);
    assert.equal(made.status, 201, made.text);
    const { rowCount } = await superuser.query(`SELECT FROM ${schema}."Account" WHERE "name" = $1`, [body.name]);
    assert.equal(rowCount, 1);
  });

  it('metadata away after data was started: a tenant whose configuration was not read yet waits for it', async () => {
    // Acme has asked for nothing since data was started in the test before.
    await cluster.kill('metadata');
    const { status, body, headers } = await eve.get('/data/Account?take=1');
    assert.deepEqual([status, body.code, headers.has('retry-after')], [503, 'SERVICE_UNAVAILABLE', true]);
    assert.equal((await sam.get('/data/Account?take=1')).status, 200);
    await cluster.begin('metadata');
    await until('it is read', async () => (await eve.get('/data/Account?take=1')).status === 200, 5_000);
    await cluster.isWhole();
    latest = undefined;
  });

  it('the identity provider of a company away: sign-in reports it, and existing sessions continue', async () => {
    await deployOverHttp(ada, {
      'identityProviders/Corp.yaml': `type: IdentityProvider
apiName: Corp
label: Corp login
active: true
issuer: ${idp.issuer}
clientId: ${CLIENT_ID}
domains:
  - demo.example
usernameClaim: email
passwordSignIn: true
`,
    });
    idp.gone = true;
    browser = new Browser();
    page = await browser.visit(authorizeUrl(cluster.baseUrl, pkce().challenge));
    const refused = await browser.submit(page, { username: 'sam@demo.example', password: '' });
    assert.equal(refused.status, 503);
    assert.match(refused.html, /Corp login does not answer/);
    await answers([]);
    for (const service of ALL_SERVICES) assert.deepEqual((await cluster.ready(service)).degraded, [], service);
    has(cluster.lines('auth'), /^A sign-in at an identity provider failed\.$/);
    refusedAt = performance.now();
  });

  it('the mail server away: mails are queued, and nothing else waits', async () => {
    toMails.set('reset');
    const user = {
      username: 'new@demo.example',
      email: 'new@demo.example',
      displayName: 'New',
      active: true,
      profileApiName: 'SalesRep',
    };
    const made = await ada.post('/data/User', user);
    assert.equal(made.status, 201, made.text);
    const said = (): boolean => cluster.lines('auth').some(({ msg }) => msg.startsWith('Mails cannot be sent'));
    await until('it is tried', async () => said(), 5_000);
    has(cluster.lines('auth'), /^Mails cannot be sent; retrying\.$/);
    const { code, degraded } = await cluster.ready('auth');
    assert.deepEqual([code, degraded], [200, []]);
  });

  it('the disk of PostgreSQL full: reads succeed, and failed writes leave no partial change', async function () {
    const disk = await SmallDisk.mount(superuser);
    if (!disk) return this.skip();
    try {
      await disk.take([`${schema}._history`, `${schema}._audit`]);
      const said = await through('full disk', {
        begin: async () => {
          await disk.fill();
          await until(
            'a change finds the disk full',
            async () => (await mia.post('/data/Account', { name: 'Fills' })).status === 503,
            10_000,
          );
        },
        seen: async () => {
          const { status, headers, body } = await mia.post('/data/Account', { name: 'Too much' });
          assert.deepEqual([status, headers.get('retry-after')], [503, '10']);
          assert.match(body.message, /no space left for changes\. Nothing was changed/);
          const { rowCount } = await superuser.query(`SELECT FROM ${schema}."Account" WHERE "name" = 'Too much'`);
          assert.equal(rowCount, 0);
          const { code, degraded } = await cluster.ready('data');
          assert.deepEqual([code, degraded], [200, ['databaseFull']]);
        },
        failing: ['create'],
        end: () => disk.makeRoom(),
      });
      diskWasFull = performance.now();
      has(
        said('data'),
        /^The database failed \(full: .+\): make room on the disk of the database; writes go on by themselves then\. \(data\)$/,
      );
    } finally {
      await disk.unmount();
    }
  });

  it('queued mails are shown in metrics', async () => {
    // Metrics from the database are up to ten seconds old, and appear in the next scrape.
    await cluster.shows('auth', 'erp_mails_waiting', (value) => value! > 0, 15_000);
    assert.ok((await cluster.metric('auth', 'erp_mails_oldest_seconds'))! > 0);
    toMails.set('whole');
    mailsBackAt = performance.now();
  });

  it('the gateway away: requests fail, and the other processes report it', async () => {
    const before = (latest ??= await cluster.scrape());
    await cluster.kill('gateway');
    await assert.rejects(sam.get('/identity'));
    // Its caller: the tools for assistants.
    await cluster.untilReady('gateway away', ({ services }) => services['gateway']!.status === 'away', {
      service: 'mcp',
      within: MISSED_MS,
    });
    const during = [await cluster.scrape(), await cluster.scrape()] as const;
    await cluster.begin('gateway');
    await untilUsual();
    await cluster.isWhole();
    latest = await cluster.scrape();
    recorded.set('gateway', { before, during, after: latest });
  });

  it('the database of auth away: the gateway reports that auth does not answer', async () => {
    const said = await through('the database of auth', {
      begin: () => cluster.setWays('reset', ['auth']),
      seen: async () => {
        await unready('database', ['auth'], 3_000);
        await until(
          'a request finds out that auth does not answer',
          async () => {
            await sam.get('/data/Account?take=1');
            return `${(await cluster.ready()).degraded}` === 'authUnavailable';
          },
          8_000,
        );
        const { code, services } = await cluster.ready();
        assert.deepEqual([code, services['auth']!.status], [200, 'present']);
      },
      failing: ['token', 'connections', 'limits'],
      // It has what it is made of in memory for some seconds.
      either: ['identity'],
      end: () => cluster.setWays('whole', ['auth']),
    });
    has(
      said('auth'),
      /^The database failed \(unreachable: .+\): see that the server runs and that its address leads to it\. \(\w+\)$/,
    );
    has(said('auth'), /^The database answers again, after [\d.]+ s\. \(\w+\)$/);
    has(said('gateway'), /^auth does not answer/);
    has(said('gateway'), /^auth answers again\.$/);
  });

  it('a worker of a deployment lost: another one takes the deployment within 5 s', async () => {
    const port = await freePort();
    const copy = await cluster.beginCopy('metadata', port);
    await cluster.untilReady('two processes', ({ services }) => services['metadata']!.processes === 2);
    const worker = { main: () => cluster.lines('metadata').length, copy: () => copy.output().length };
    const [main, other] = [worker.main(), worker.copy()];
    await superuser.query(`BEGIN; LOCK TABLE ${schema}."Account" IN ACCESS SHARE MODE`);
    const deploymentId = await accepted(fieldFile('Account', 'Worker__c', 'fieldType: text\nlength: 40'));
    await waitsForLock('erp metadata %');
    const has = (text: string): boolean => text.includes(deploymentId) && text.includes('A deployment has started.');
    const isCopy = has(copy.output().slice(other));
    const metrics = async (): Promise<string> =>
      isCopy
        ? (await cluster.probe('metadata', '/metrics')).text()
        : (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const began = performance.now();
    await (isCopy ? cluster.killCopy(copy) : cluster.kill('metadata'));
    await superuser.query('ROLLBACK');
    await until('another worker has it', async () => (await state(deploymentId)).takes === 2, 5_000);
    say('a worker was lost; taken again after', Math.round(performance.now() - began));
    await until('it has ended', async () => (await state(deploymentId)).status === 'SUCCEEDED', 30_000);
    await until('metrics', async () => /^erp_deployment_workers_lost_total 1$/m.test(await metrics()), 3_000);
    const lines = isCopy ? cluster.lines('metadata').slice(main) : cluster.linesOf(copy.output().slice(other));
    const taken = lines.find(({ msg }) => msg === 'A deployment was taken over: its worker was lost.');
    assert.equal(taken?.level, WARN);
    assert.equal((await ada.get('/metadata/deployments')).status, 200);
    if (!isCopy) {
      await cluster.begin('metadata');
      await cluster.endCopy(copy);
    }
    await cluster.isWhole();
    latest = undefined;
  });

  it('the disk was full: 30 s after the last failed write, it is no longer reported', async function () {
    if (diskWasFull === undefined) return this.skip();
    const ms = await cluster.untilReady('all is well', ({ degraded }) => degraded.length === 0, {
      service: 'data',
      within: Math.max(1, diskWasFull + 32_000 - performance.now()),
    });
    say('waited', ms);
  });

  it('mails are sent within a minute after the mail server is back', async () => {
    await until(
      'the mail has come',
      async () => (await mails.mails.all({ to: 'new@demo.example' })).length === 1,
      mailsBackAt + 62_000 - performance.now(),
    );
    say('a mail came within', Math.round(performance.now() - mailsBackAt));
    const said = (): boolean => cluster.lines('auth').some(({ msg }) => msg.startsWith('Mails can be sent again'));
    await until('it is said', async () => said(), 2_000);
    has(cluster.lines('auth'), /^Mails can be sent again after \d+ s\.$/);
  });

  it('NATS away: no process is ready, and a configuration change meanwhile takes effect afterwards', async () => {
    const files = fieldFile('Account', 'WithoutBus__c', 'fieldType: text\nlength: 40');
    const field = (): Promise<Answer> => ada.post('/data/Account', { name: 'After NATS', WithoutBus__c: 'stored' });
    let deploymentId = '';
    const said = await through('NATS', {
      begin: async () => {
        await superuser.query(`BEGIN; LOCK TABLE ${schema}."Account" IN ACCESS SHARE MODE`);
        deploymentId = await accepted(files);
        await waitsForLock('erp metadata %');
        await cluster.nats.stop();
        await superuser.query('ROLLBACK');
      },
      seen: async () => {
        await unready('bus', ALL_SERVICES, 3_000);
        for (const service of ALL_SERVICES) {
          const { degraded, services } = await cluster.ready(service);
          assert.deepEqual(degraded, [], 'nobody else is blamed');
          for (const [name, state] of Object.entries(services))
            if (name !== service) assert.deepEqual(state, { status: 'unknown', processes: 0 }, `${service}: ${name}`);
          await cluster.shows(service, 'erp_bus_connected', (value) => value === 0);
        }
        await cluster.shows('gateway', 'erp_service_available{service="auth"}', (value) => value === null);
      },
      failing: ALL.filter((name) => name !== 'capabilities'),
      meanwhile: () =>
        until('the deployment has ended', async () => (await state(deploymentId)).status === 'SUCCEEDED', 30_000),
      end: () => cluster.nats.start(),
    });
    for (const service of ALL_SERVICES) {
      has(said(service), /^Lost the connection to NATS; reconnecting\.$/);
      has(said(service), /^Reconnected to NATS\.$/);
    }
    const made = await field();
    assert.deepEqual([made.status, made.body.WithoutBus__c], [201, 'stored'], made.text);
  });

  it('PostgreSQL away: no process is ready, whether its connections are reset or silent', async () => {
    const SILENT: readonly ServiceName[] = ['metadata', 'agent'];
    const said = await through('PostgreSQL', {
      begin: () => {
        cluster.setWays('reset', others(SILENT));
        cluster.setWays('drop', SILENT);
      },
      seen: async () => {
        await unready('database', ALL_SERVICES, 4_000);
        assert.deepEqual((await cluster.ready()).degraded, [], 'nobody else is blamed');
      },
      failing: ALL.filter((name) => name !== 'capabilities' && name !== 'assistant'),
      // Search in the documents needs no database.
      either: ['assistant'],
      end: () => cluster.setWays('whole'),
    });
    // An outage of auth was told of a moment ago, and what comes and goes has a line every 30 s.
    for (const service of others([...SILENT, 'auth'])) {
      has(
        said(service),
        /^The database failed \(unreachable: .+\): see that the server runs and that its address leads to it\. \(\w+\)$/,
      );
      has(said(service), /^The database answers again, after [\d.]+ s\. \(\w+\)$/);
    }
  });

  it('PostgreSQL read-only, as in a failover: reads succeed, and processes stay ready', async () => {
    const { name } = cluster.database;
    const said = await through('read-only', {
      begin: async () => {
        await superuser.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
        await superuser.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND application_name <> 'test support'",
          [name],
        );
      },
      seen: async () => {
        for (const service of ALL_SERVICES)
          await cluster.untilReady('read-only', ({ degraded }) => `${degraded}` === 'databaseReadOnly', { service });
        for (const service of ALL_SERVICES) {
          assert.equal((await cluster.ready(service)).code, 200, service);
          await cluster.shows(service, 'erp_database_read_only', (value) => value === 1);
        }
      },
      cuts: true,
      failing: ['create'],
      end: () => superuser.query(`ALTER DATABASE ${name} RESET default_transaction_read_only`),
    });
    for (const service of ALL_SERVICES) {
      has(
        said(service),
        /^The database is read-only: changes are answered with 503 until its address leads to one that takes them\. \(\w+\)$/,
      );
      has(said(service), /^The database takes changes again, after [\d.]+ s\. \(\w+\)$/);
    }
  });

  it('the identity provider was away: sign-in redirects there again ten seconds after its failure', async () => {
    idp.gone = false;
    idp.people.set('sam', { sub: 'sam', email: 'sam@demo.example', email_verified: true, name: 'Sam' });
    await until(
      'people are sent there again',
      async () => {
        const again = await browser.submit(page, { username: 'sam@demo.example', password: '' });
        return (again.headers.get('refresh') ?? '').includes(idp.host);
      },
      12_000,
    );
    say('people are sent there again after', Math.round(performance.now() - refusedAt));
  });

  /** Deploys without waiting for the end. */
  async function accepted(files: Record<string, string>): Promise<string> {
    const { status, body, text } = await ada.post('/metadata/deploy', { files, package: wholePackage(files) });
    assert.equal(status, 202, text);
    return body.deploymentId;
  }
  async function state(deploymentId: string): Promise<{ status: string; takes: number }> {
    const { rows } = await superuser.query('SELECT status, takes FROM metadata.deployments WHERE deployment_id = $1', [
      deploymentId,
    ]);
    return rows[0];
  }
  /** A connection of that name waits for a lock. */
  function waitsForLock(name: string): Promise<void> {
    return until(
      `${name} waits for a lock`,
      async () =>
        (
          await superuser.query(
            `SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE $1
              AND wait_event_type = 'Lock'`,
            [name],
          )
        ).rowCount! > 0,
      10_000,
    );
  }

  /** Alerts that fire if a failure lasts; `ErpRequestsFail` as well where a gateway counts requests. */
  const ALERTS: Readonly<Record<string, readonly string[]>> = {
    'four services': ['analytics', 'agent', 'mcp', 'ratelimit'].map((service) => `ErpServiceAway ${service}`),
    'auth and metadata': ['ErpServiceAway auth', 'ErpServiceAway metadata'],
    data: ['ErpServiceAway data'],
    gateway: ['ErpGatewaysAway', 'ErpServiceAway gateway'],
    'the database of auth': ['ErpDatabaseFails auth unreachable'],
    NATS: ALL_SERVICES.map((service) => `ErpBusDisconnected ${service}`),
    PostgreSQL: ['ErpDatabaseFails auth unreachable', 'ErpDatabaseFails data unreachable'],
    'read-only': ['ErpDatabaseReadOnly', 'ErpDatabaseFails data readOnly'],
    'full disk': ['ErpDatabaseFails data full'],
  };
  /** Alerts that may also fire: calls and jobs that fail as a consequence, and machine load. */
  const CONSEQUENCES = /^Erp(?:ActionsFail|Jobs\w+|DatabaseFails|ProcessesLost|EventLoop\w+|RequestsSlow)\b/;
  const HISTORY = /^Erp(?:ProcessesLost|EventLoop\w+|RequestsSlow)\b/;

  it('every lasting failure fires exactly its alerts, none before and none afterwards', function () {
    const path = findPromtool();
    if (!path) this.skip();
    for (const [name, series] of recorded) {
      const { before, during, after } = firedAlerts(path, series);
      say(name, during);
      const expected = [...ALERTS[name]!, ...(name === 'gateway' ? [] : ['ErpRequestsFail'])].sort();
      assert.deepEqual(
        during.filter((alert) => expected.includes(alert) || !CONSEQUENCES.test(alert)),
        expected,
        name,
      );
      assert.deepEqual(
        [...before, ...after].filter((alert) => !HISTORY.test(alert)),
        [],
        name,
      );
    }
  });

  it('outages are no errors: no process logged one', () => {
    const errors = ALL_SERVICES.flatMap((service) => cluster.lines(service).filter(({ level }) => level >= ERROR));
    assert.deepEqual(errors, []);
  });
});
