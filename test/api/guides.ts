/** Runs the guides as printed: every shell block, in one shell, against a platform of their own. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { call } from '../../contracts/call.ts';
import { callAction } from '../../scripts/console/call.ts';
import { api, tokenFor } from '../support/client.ts';
import { exampleNamed } from '../support/examples.ts';
import { CLIENT_SECRET, IdentityProvider } from '../support/identity-provider.ts';
import { deployOverHttp } from '../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { sharedFolder } from '../support/temporary.ts';
import { authorize, authorizeUrl, Browser, claims, exchange, pkce } from './auth/browser.ts';

const root = join(import.meta.dirname, '..', '..');
/** Blocks that start a platform; here one already runs. */
const STARTS = /npm (ci|start)/;
/** Actors in the middle of a guide: an operator in the console, a person in a browser. */
const INTERRUPTED: ReadonlySet<string> = new Set([
  'sign-in-a-program.md',
  'register-an-application.md',
  'single-sign-on.md',
  'provision-users.md',
]);

/** The person at the terminal. */
interface Person {
  /** Keyboard input. */
  readonly types?: string;
  /** Screen output, in order. */
  readonly reads?: (text: string) => void;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Declares a test of each guide, and with `again` one that repeats them. `packages`: what `npm install` brings, as a folder. */
export function walkGuides({ packages, again }: { packages: string; again: boolean }): void {
  let platform: TestPlatform;
  let folder: string;
  const idp = new IdentityProvider();

  before(async function () {
    this.timeout(120_000);
    await idp.listen();
    platform = await startPlatform({ env: { SSO_PRIVATE_HOSTS: idp.host } });
    folder = await mkdtemp(join(tmpdir(), 'guide-'));
    for (const name of ['docs', 'node_modules', 'package.json']) await symlink(join(root, name), join(folder, name));
  });
  after(async () => {
    await platform?.stop();
    await idp.close();
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  /** The output of a guide's blocks, progress on stderr included. */
  async function walk(
    name: string,
    more: Record<string, string> = {},
    take = (text: string) => text,
    person: Person = {},
  ): Promise<string> {
    const text = take(await readFile(join(root, 'docs', 'guides', name), 'utf8'));
    const blocks = [...text.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map((match) => match[1]!);
    const script = blocks
      .filter((block) => !STARTS.test(block))
      .join('\n')
      .replaceAll('http://localhost:3000', platform.baseUrl);
    // Like npm, without its start-up: the project is in the shell's folder, or in that of --prefix.
    const inProject = `in_project() { [ -e "$1/package.json" ] || { echo "There is no project in $1." >&2; return 1; }; }\n`;
    const npm = `npm() {
      [ "$1" != install ] || { ln -s ${packages} node_modules; return; }
      local project=.
      [ "$1" != --prefix ] || { project=$2; shift 2; }
      in_project "$project" || return
      case $3 in
        erp) node ${root}/cli/bin/erp.js "\${@:5}" ;;
        token) node ${root}/scripts/token.ts "\${@:5}" ;;
      esac
    }\n`;
    const running = promisify(execFile)('bash', ['--norc', '-u', '-c', inProject + npm + script], {
      cwd: folder,
      env: { ...process.env, TMPDIR: sharedFolder('written'), BASE_URL: platform.baseUrl, ...more },
    });
    running.child.stdin?.end(person.types ?? '');
    running.child.stdout?.on('data', person.reads ?? (() => {}));
    const { stdout, stderr } = await running;
    const output = stdout + stderr;
    if (!INTERRUPTED.has(name)) walked.set(name, { more, refusals: codes(output) });
    return output;
  }

  /** Joins a guide's parts around another actor's step: they share their names and the folder. */
  async function interrupted(name: string): Promise<{ text: string; place: string }> {
    const place = await mkdtemp(join(folder, '.place-'));
    const text = await readFile(join(root, 'docs', 'guides', name), 'utf8');
    const run = `openssl() { echo ${randomBytes(6).toString('hex')}; }\n`;
    assert.match(text, /\ncd "\$\(mktemp -d\)"/, `${name} writes its files into the folder in which it is begun`);
    return { text: text.replace('```sh\n', `$&${run}`).replace('mktemp -d', `echo ${place}`), place };
  }

  /** The console's output for its lines in a text; `values` replace `<name>`. */
  async function operate(text: string, values: Readonly<Record<string, string>> = {}): Promise<string> {
    const said: string[] = [];
    for (const [, action = '', params = ''] of text.matchAll(/^erp \$ call (\S+) '(.+)'$/gm))
      said.push(await callAction(platform.broker, action, [params.replace(/<(\w+)>/g, (_, name) => values[name]!)]));
    return said.join('\n');
  }
  const secretIn = (answer: string): string => /secret: '([^']+)'/.exec(answer)![1]!;

  const walked = new Map<string, { more: Record<string, string>; refusals: readonly string[] }>();
  const codes = (output: string): string[] => [
    ...new Set([...output.matchAll(/"code":"([A-Z_]+)","message":"[^"]*","status"/g)].map((match) => match[1]!)),
  ];

  it('use-the-command-line.md reads, changes and deletes a record with erp', async function () {
    this.timeout(60_000);
    const token = await tokenFor(platform.baseUrl, 'ada@demo.example');
    const output = await walk('use-the-command-line.md', {
      ERP_TOKEN: token,
      ERP_BASE_URL: platform.baseUrl,
      XDG_CONFIG_HOME: join(folder, 'config'),
    });
    assert.match(output, /^Account\t/m);
    assert.match(output, /^creditLimit\tcurrency/m);
    assert.match(output, /^creditLimit\t25000\.50$/m);
    assert.match(output, /\tupdate\t.*\tCity\tBath\tBristol$/m);
    assert.match(output, /can be restored until/);
    assert.equal(/^Error:/m.test(output), false);
  });

  it('first-request.md leads from sign-in to a record, and fails only where it is meant to', async function () {
    this.timeout(60_000);
    const output = await walk('first-request.md');
    assert.deepEqual(codes(output).sort(), ['ETAG_MISMATCH', 'FIELD_PERMISSION_DENIED', 'VALIDATION_FAILED']);
    assert.match(output, /"name":"INV-\d{5}"/);
    assert.match(output, /"Status__c":"sent"/);
    assert.match(output, /"TaxAmount__c":250.10,"TotalAmount__c":1500.60/);
    assert.match(output, /"ruleApiName":"Invoice__c.SentStays"/);
    assert.match(output, /"restorableUntil":/);
    assert.match(output, /"restorableUntil":[\s\S]*"name":"Ann Baker"/);
  });

  it('model-your-business.md deploys an object that Sam can use at once', async function () {
    this.timeout(60_000);
    const output = await walk('model-your-business.md');
    assert.deepEqual(codes(output), []);
    assert.match(output, /"valid":true/);
    assert.match(output, /"status":"SUCCEEDED"/);
    assert.match(output, /"name":"M-0001"/);
    assert.match(output, /"metadataVersion":/);
    for (const kind of ['quickDeploy', 'rollback'])
      assert.match(output, new RegExp(`"status":"SUCCEEDED","kind":"${kind}","checkOnly":false`));
    assert.match(output, /"rollback":\{"eligible":true/);
    assert.match(output, /\d\d kinds\n/);
    assert.match(output, /\nRechnung: Rechnung, Beträge, Mahnwesen, Abrechnung, Bemerkungen\n/);
    assert.match(output, /"DueDate__c":"\d{4}-\d\d-\d\d","OpenAmount__c":\d/);
  });

  it('build-an-application.md registers a page that users sign in to', async function () {
    this.timeout(60_000);
    assert.match(await walk('build-an-application.md'), /configuration: SUCCEEDED/);
  });

  it('invite-people.md creates a user, invites her again and creates a link', async function () {
    this.timeout(60_000);
    const output = await walk('invite-people.md');
    assert.deepEqual(codes(output), []);
    assert.match(output, /"userId":"[0-9a-f-]{36}"/);
    assert.match(output, /\nhttp:\S+\/password\/[\w-]{43}\n/);
  });

  it('who-sees-what.md opens private records to Sue by rules and by shares, and explains the rest', async function () {
    this.timeout(60_000);
    const output = await walk('who-sees-what.md');
    assert.deepEqual(codes(output), ['RECORD_NOT_FOUND']);
    assert.match(output, /visits: SUCCEEDED/);
    assert.match(output, /Sam 2\nMia 2\nSue 1\n/);
    assert.match(output, /\nSpring order\n/);
    assert.match(output, /"allowed":false.*"layer":"sharing","result":"deny"/);
    assert.match(output, /\n\nRECORD_NOT_FOUND\ntrue\ntrue\n/);
    const [, before, after, all] = output.match(
      /true\ntrue\nbefore: (\d+)\nregion: SUCCEEDED\nafter: (\d+) of (\d+)\nKim Larsen\n$/,
    )!;
    assert.ok(Number(before) < Number(after));
    assert.equal(after, all);
  });

  it('check-what-is-entered.md refuses with all violations, and computes days and prices', async function () {
    this.timeout(60_000);
    const output = await walk('check-what-is-entered.md');
    assert.deepEqual(codes(output), ['VALIDATION_FAILED']);
    assert.match(output, /rentals: SUCCEEDED/);
    assert.match(output, /code: 'EXPRESSION_INVALID',[^}]*line: 5,\n {2}column: 19,/);
    assert.match(output, /DEPENDENT_PICKLIST_INVALID.*"ruleApiName":"Rental__c.UntilNotBeforeFrom"/);
    assert.match(output, /"checkOnly":true,"valid":false/);
    assert.match(output, /"DailyRate__c":99.50,"Days__c":10,"Price__c":995.00/);
    assert.match(output, /"records":\[\{"id":"[^"]+","name":"RT-0001","Price__c":995.00\}\]/);
    assert.match(output, /"code":"FIELD_READ_ONLY","message":"Price__c/);
  });

  it('give-records-a-life.md leads a complaint to its end, each step by permitted users', async function () {
    this.timeout(60_000);
    const output = await walk('give-records-a-life.md');
    assert.deepEqual(codes(output).sort(), ['STATE_CONFLICT', 'VALIDATION_FAILED']);
    assert.match(output, /complaints: SUCCEEDED/);
    assert.match(output, /'accept: Say first what the customer gets back.'/);
    assert.match(output, /"State__c is changed by transitions."/);
    assert.match(output, /250\naccepted\n1\n.*More than 100 is paid back by a manager/);
    assert.match(output, /\n2026-11-20\nETAG_MISMATCH\n/);
    assert.match(output, /'solve: solved',\n {2}'CallCustomer: accepted',\n {2}'accept: accepted',\n {2}'update',/);
  });

  it('bring-your-data.md tries out, imports, mends and exports, with curl and with erp', async () => {
    const output = await walk('bring-your-data.md', { XDG_CONFIG_HOME: join(folder, 'config') });
    assert.deepEqual(codes(output), []);
    assert.match(output, /\n3,failed,,,false,FIELD_REQUIRED,Firma,name is required\.\n4,failed,/);
    assert.match(output, /"name":"Weaver Street Press [0-9a-f]{12}","annualRevenue":12500\.50/);
    assert.match(output, /^exit code 8\nKundennummer;Firma;Ort;Jahresumsatz;_error$/m);
    assert.match(output, /^rows\t2\nsucceeded\t2\nfailed\t0$/m);
    assert.match(output, /\toffer\.txt\ttext\/plain\t30\tready\nOffer for Weaver Street Press\n/);
    assert.match(output, /\nid,name,accountNumber,annualRevenue,city,_etag\n/);
  });

  it('prevent-duplicates.md shows a duplicate, confirms it once, and blocks a hidden match without revealing it', async function () {
    this.timeout(60_000);
    const output = await walk('prevent-duplicates.md');
    assert.deepEqual(codes(output), ['DUPLICATE_RULE']);
    assert.match(output, /"ruleApiName":"Account.SameTaxId".*"ruleApiName":"Account.SimilarNameAndCity"/);
    assert.match(output, /\nRiverside Bakery [0-9a-f]{12}\nCONFIRMATION_TOKEN_INVALID\nsuppliers: SUCCEEDED\n/);
    assert.match(
      output,
      /\nTimber & Sons Ltd\n\[ 'Similar name, same mailbox: Timber & Sons Ltd 0.83\d*' \]\nTimber & Sons Ltd\n/,
    );
    assert.match(output, /"Supplier__c.SameBankAccount".*"matches":\[\],"hiddenMatchCount":0.*"confirmable":false/);
    assert.match(output, /\nTimber & Sons Ltd\n$/);
  });

  it('configuration-as-files.md plans, deploys and rolls back with erp, and with curl', async function () {
    this.timeout(120_000);
    const output = await walk('configuration-as-files.md', { XDG_CONFIG_HOME: join(folder, 'config') });
    assert.deepEqual(codes(output), []);
    assert.match(output, /^\+condition: record\.Amount__c > 1000000 && record\.Note__c == null$/m);
    assert.match(output, /NoteNeeded\.yaml:5:\d+: error: .*Note__c.*EXPRESSION_INVALID/);
    assert.match(output, /^exit code 6$/m);
    assert.match(output, /^Deployment \S+ succeeded: version \d+\.$/m);
    assert.match(output, /^No differences\.$/m);
    assert.match(output, /^ {2}- ValidationRule Invoice__c\.NoteNeeded/m);
    assert.match(output, /^ D objects\/Invoice__c\/validationRules\/NoteNeeded\.yaml$/m);
    assert.match(output, /^true \[\{"fullName":"Invoice__c\.Amount__c","properties":\[\{"name":"label"/m);
    assert.match(output, /^SUCCEEDED\n\{"deploymentId":"[0-9a-f-]{36}","status":"QUEUED"/m);
  });

  it('find-out-why.md names the layer and the remedy of each refusal', async function () {
    this.timeout(60_000);
    const output = await walk('find-out-why.md');
    assert.deepEqual(codes(output), ['RECORD_ACCESS_DENIED']);
    assert.match(output, /^RECORD_NOT_FOUND\nRECORD_NOT_FOUND\n/);
    assert.match(
      output,
      /layer: 'sharing',\n {4}result: 'deny',[\s\S]*?remedy: 'Sharing does not let the user read the record/,
    );
    const denials = [...output.matchAll(/^ *\[? ?'(\w+): /gm)].map((match) => match[1]);
    assert.deepEqual(denials.slice(0, 7), [
      'fieldPermission',
      'sharing',
      'objectPermission',
      'sharing',
      'recordState',
      'objectPermission',
      'recordState',
    ]);
    assert.match(output, /Invoice__c.DueDateNotBeforeIssueDate: /);
    assert.match(output, /'data.records.update denied RECORD_ACCESS_DENIED'/);
    assert.match(output, /'create: /);
  });

  it('let-an-agent-work.md waits for Mia, executes what she approves once, and reverts it', async function () {
    this.timeout(90_000);
    const output = await walk('let-an-agent-work.md');
    assert.deepEqual(codes(output), ['APPROVAL_REQUIRED']);
    assert.match(output, /as Dunning agent, in the name of Sam Keller/);
    assert.match(output, /\nAGENT_POLICY_DENIED\n/);
    assert.match(output, /'POST \/Invoice__c\/[0-9a-f-]{36}\/transitions\/SendReminder, risk high'/);
    assert.match(output, /kind: '(update|transition)',\n {4}objectApiName: 'Invoice__c'/);
    assert.match(output, /\nAPPROVED\nREJECTED\nexit code 0\n/);
    assert.match(output, /rejected, “I have them on the phone today\.”/);
    assert.match(output, /COMPLETED: 1 sent, 1 rejected, 0 not decided, 2 proposed\./);
    assert.match(output, /\n\{ cost: \d+, requests: \d+, mutations: \d+, recordsChanged: 3 \}\n/);
    assert.match(output, /'201 data\.transitions\.execute 1'/);
    assert.match(output, /'agent\.approvals\.decide committed '/);
    assert.match(output, /\n1\n\[ 'STATE_CHANGED' \]\n\nTOKEN_REVOKED\n/);
    assert.match(
      output,
      /\nAPPROVAL_PENDING\nAPPROVED\n\{"id":"[0-9a-f-]{36}","objectApiName":"Invoice__c","deleted":true/,
    );
    assert.match(output, /\nCONSUMED\nCOMPLETED\n/);
    assert.match(output, /data_transitions_execute: .*\n$/);
  });

  it('provision-users.md keeps the users of a directory up to date, including removals', async function () {
    this.timeout(60_000);
    for (const time of ['first', 'second']) {
      const { text } = await interrupted('provision-users.md');
      const [beginning = '', secretly = '', rest = ''] = text.split(/^(?=## [23]\.)/m);
      const made = await walk('provision-users.md', {}, () => beginning);
      assert.match(made, /^directory: SUCCEEDED\ndirectory-[0-9a-f]{12}@demo\.example\ndirectory: SUCCEEDED\n$/);
      const [setUp = ''] = beginning.split(/^(?=## 1\.)/m);
      const types = `${secretIn(await operate(secretly))}\n`;
      const output = await walk('provision-users.md', {}, () => setUp + secretly + rest, { types });
      assert.equal(
        output,
        'true\n0\nJoan Lakeside\nOrderDesk\ntrue\nOrder desk\nFIELD_PERMISSION_DENIED\nfalse\n0\nfalse\n',
        `the ${time} time`,
      );
    }
  });

  it('sign-in-a-program.md reads the nightly changes, by secret and by key, until it is stopped', async function () {
    this.timeout(120_000);
    for (const time of ['first', 'second']) {
      const { text } = await interrupted('sign-in-a-program.md');
      const [beginning = '', describe = '', secretly = '', rest = ''] = text.split(/^(?=## [123]\.)/m);
      const made = await walk('sign-in-a-program.md', {}, () => beginning + describe);
      assert.match(made, /^warehouse: SUCCEEDED\nwarehouse-[0-9a-f]{12}@demo\.example\nwarehouse: SUCCEEDED\n$/);
      const types = `${secretIn(await operate(secretly))}\n`;
      const output = await walk('sign-in-a-program.md', {}, () => beginning + secretly + rest, { types });
      assert.match(
        output,
        /^900\n1\nSCOPE_INSUFFICIENT\ntrue\n(Quayside Chandlers [0-9a-f]{12})\nupserted \1\nwarehouse: SUCCEEDED\n/,
        `the ${time} time`,
      );
      assert.match(output, /\nwarehouse: SUCCEEDED\ninvalid_client\n\nwarehouse: SUCCEEDED\ninvalid_client\n$/);
    }
  });

  it('register-an-application.md gets a first token for each kind of application', async function () {
    this.timeout(120_000);
    const port = await freePort();
    const { text } = await interrupted('register-an-application.md');
    const [beginning = '', describe = '', secretly = '', website = '', tokens = '', desk = '', device = '', end = ''] =
      text
        .replaceAll('localhost:4000', `localhost:${port}`)
        .replaceAll('listen(4000', `listen(${port}`)
        .split(/^(?=## [1-7]\.)/m);
    const guide = (parts: string[], person: Person = {}): Promise<string> =>
      walk('register-an-application.md', {}, () => [beginning, ...parts].join('\n'), person);
    assert.equal(await guide([describe]), 'applications: SUCCEEDED\n');
    const types = `${secretIn(await operate(secretly))}\n`;

    let greeted: Promise<string> | undefined;
    const greeting = async (address: string): Promise<string> => {
      const back = await authorize(new Browser(), new URL(address));
      assert.equal(back.port, String(port));
      return (await fetch(back)).text();
    };
    const reads = (text: string): void => {
      const [, address] = /^Open (\S+)/.exec(text) ?? [];
      if (address) greeted = greeting(address);
    };
    assert.match(await guide([secretly, website], { types, reads }), /^Open \S+\n$/);
    assert.equal(await greeted, 'Hello Sam Keller, sam@demo.example');

    assert.equal(
      await guide([secretly, tokens], { types }),
      'openid profile email data:read offline_access\n1\nsam@demo.example\ninvalid_token\ninvalid_grant\n',
    );
    const [ask = '', poll = ''] = device.split('Open the address');
    const address = (await guide([ask])).trim();
    const browser = new Browser();
    let page = await browser.submit(await browser.submit(await browser.visit(address)));
    page = await browser.submit(page, { username: 'sam@demo.example', password: 'demo-password' });
    assert.match((await browser.submit(page)).html, /Your device is connected/);
    assert.equal(await guide([poll]), 'data:read offline_access\n');
    assert.equal(await guide([desk, end]), '1\n0\nSam Keller\napplications: SUCCEEDED\ninvalid_token\n');
  });

  it("single-sign-on.md signs the company's users in by its provider, and then only by it", async function () {
    this.timeout(120_000);
    const redirect = exampleNamed('docs/guides/single-sign-on.md#2-register-the-platform-at-the-provider').trim();
    await idp.serve(redirect.replace('https://<your platform>', platform.baseUrl).replace('<key>', 'demo'));
    const { text, place } = await interrupted('single-sign-on.md');
    const [beginning = '', rest = ''] = text.split(/^(?=## 6\.)/m);
    const made = await walk('single-sign-on.md', { ISSUER: idp.issuer }, () => beginning);
    assert.match(made, /^sso: SUCCEEDED\n$/);
    const checked = await operate(beginning, { secret: CLIENT_SECRET });
    assert.match(checked, /secretSet: true,\n[\s\S]*verified: true[\s\S]*ok: true,/);

    const signIn = async (username: string, password = '') => {
      idp.people.set(username, { sub: `of ${username}`, email: username, email_verified: true, name: 'New Person' });
      const browser = new Browser();
      const { verifier, challenge } = pkce();
      const form = await browser.visit(authorizeUrl(platform.baseUrl, challenge));
      let seen = await browser.submit(form, { username, password });
      const away = /^0; url=(.+)$/.exec(seen.headers.get('refresh') ?? '')?.[1];
      if (!away) return seen.html;
      seen = await browser.visit(away);
      while (!seen.location) seen = await browser.submit(seen, { login: username, password: 'any' });
      seen = await browser.visit(seen.location);
      if (seen.status !== 200) return seen.html;
      const { location } = await browser.submit(seen);
      const { body } = await exchange(platform.baseUrl, location!.searchParams.get('code')!, verifier);
      return claims(body.access_token).sub as string;
    };
    const tenants = await call(platform.broker, 'metadata.tenants.list', {});
    const demo = { tenantId: tenants.find(({ key }) => key === 'demo')!.id };
    const sam = await call(platform.broker, 'data.users.find', { ...demo, username: 'sam@demo.example' });
    assert.equal(await signIn('sam@demo.example'), sam?.id);
    assert.match(await signIn('nina@demo.example'), /You have no account here/);
    assert.match(
      await walk('single-sign-on.md', {}, () => beginning.split('## 1.')[0] + rest),
      /sso: SUCCEEDED\nsso: SUCCEEDED\n$/,
    );
    const id = await signIn('nina@demo.example');
    const nina = await call(platform.broker, 'data.users.find', { ...demo, username: 'nina@demo.example' });
    assert.deepEqual([nina?.id, nina?.profileApiName, nina?.displayName], [id, 'Standard', 'New Person']);
    assert.match(await signIn('sam@demo.example', 'demo-password'), /To sign in with Corporate sign-in/);
    assert.equal(await signIn('sam@demo.example'), sam?.id);
    // The guides run alongside sign in with passwords.
    const path = join(place, 'sso', 'identityProviders', 'CorporateLogin.yaml');
    const files = {
      'identityProviders/CorporateLogin.yaml': `${await readFile(path, 'utf8')}`.replace(
        /^active: true/m,
        'active: false',
      ),
    };
    await deployOverHttp(api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada@demo.example')), files);
  });

  it('follow-changes.md keeps a copy up to date, and removes records that become hidden', async function () {
    this.timeout(60_000);
    const output = await walk('follow-changes.md');
    assert.deepEqual(codes(output), []);
    assert.match(output, /^1\n2\nETAG_MISMATCH\n/);
    assert.match(
      output,
      /\n\[ 'upserted Library shelves' \]\n90000\n\[ 'accessLost true' \]\ntrue\n0\nLibrary shelves\n/,
    );
    assert.match(output, /\[ 'restore', 'delete', 'update', 'create' \]\n$/);
  });

  it('hear-of-what-happens.md asks for events, and has them sent to a receiver that verifies them', async function () {
    this.timeout(60_000);
    const env = { XDG_CONFIG_HOME: join(folder, 'config'), HOOKS_PORT: String(await freePort()) };
    const output = await walk('hear-of-what-happens.md', env);
    assert.deepEqual(codes(output), []);
    const event = 'data\\.record\\.created\\s+Account/[0-9a-f-]{36}';
    assert.match(output, /^\[ 'data\.record\.created: true' \]$/m);
    assert.match(output, new RegExp(`^\\S+Z\t${event}\t.*city:  → Hull`, 'm'));
    assert.equal(output.match(new RegExp(`^received ${event}$`, 'gm'))?.length, 1);
    assert.deepEqual(
      [...output.matchAll(new RegExp(`^(\\d+)\t\\d+ ms\t${event}$`, 'gm'))].map((match) => match[1]),
      ['204', '204', '401'],
    );
    assert.match(output, /^whsec_$/m);
    assert.match(output, /^state\tpaused$/m);
  });

  if (!again) return;
  it('is repeatable in another order, with the same refusals, and leaves no file in the starting folder', async function () {
    this.timeout(300_000);
    assert.ok(walked.size > 9);
    const files = await readdir(folder);
    for (const [name, { more, refusals }] of [...walked].reverse())
      assert.deepEqual(codes(await walk(name, more)), refusals, name);
    assert.deepEqual(await readdir(folder), files);
  });
}
