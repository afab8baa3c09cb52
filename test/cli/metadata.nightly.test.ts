/** `erp metadata` on a folder under git: from the retrieve to the deployment, alone and with other users. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { tenantSchema } from '../../lib/context.ts';
import { Database } from '../../mixins/database/database.ts';
import { tokenFor } from '../support/client.ts';
import { type Ended, keptErpOf, PROGRAM, userEnvironment } from '../support/erp.ts';
import { exampleNamed, likeExample } from '../support/examples.ts';
import { interfere } from '../support/interference.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { until } from '../support/until.ts';

const AMOUNT = 'objects/Invoice__c/fields/Amount__c.yaml';
const RULE = 'objects/Invoice__c/validationRules/NotFree.yaml';
const ESCAPE = String.fromCharCode(27);

describe('erp metadata', () => {
  let platform: TestPlatform;
  let folder: string;
  let erp: ReturnType<typeof keptErpOf>;

  before(async () => {
    platform = await startPlatform();
    erp = await erpAs('ada@demo.example');
  });
  after(() => platform.stop());
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'erp-project-'));
    git('init', '--quiet', '--initial-branch=main');
    git('config', 'user.name', 'Ada');
    git('config', 'user.email', 'ada@demo.example');
    git('config', 'commit.gpgsign', 'false');
    await ok(['retrieve', '--type', 'CustomObject:Invoice__c', '--type', 'CustomField:Invoice__c.*']);
    commit('Retrieve invoices');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  async function environmentOf(user: string): Promise<Record<string, string>> {
    const token = await tokenFor(platform.baseUrl, user);
    return userEnvironment({ ERP_TOKEN: token, ERP_BASE_URL: platform.baseUrl });
  }
  const erpAs = async (user: string): Promise<ReturnType<typeof keptErpOf>> => keptErpOf(await environmentOf(user));
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' });
  const commit = (subject: string): void => {
    git('add', '--all');
    git('commit', '--quiet', '--message', subject);
  };
  const read = (path: string): string => readFileSync(join(folder, path), 'utf8');
  const write = (path: string, text: string): void => {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  const label = (text: string): void => write(AMOUNT, read(AMOUNT).replace(/^label: .*$/m, `label: ${text}`));
  const run = (args: string[], more: { cwd?: string } = {}): Promise<Ended> =>
    erp(['metadata', ...args], { cwd: folder, ...more });
  /** The output of a command that must succeed. */
  async function ok(args: string[]): Promise<string> {
    const { code, stdout, stderr } = await run(args);
    assert.equal(code, 0, `erp metadata ${args.join(' ')}\n${stdout}${stderr}`);
    assert.equal(`${stdout}${stderr}`.includes(ESCAPE), false, 'no escape codes where nobody looks on');
    return stdout;
  }
  const rule = (condition: string): string =>
    `# Somebody's reason.\napiName: NotFree\ntype: ValidationRule\nobject: Invoice__c\nactive: true\ncondition: ${condition}\nmessage: Not free.\n`;

  it('retrieves a tree whose hash is that of the platform, and leaves unchanged files untouched', async () => {
    assert.match(read('erp-project.yaml'), /^manifestHash: sha256:[0-9a-f]{64}$/m);
    await ok(['hash', '--check']);
    const { manifestHash } = JSON.parse(await ok(['hash', '--json']));
    assert.match(read('erp-project.yaml'), new RegExp(`^manifestHash: ${manifestHash}$`, 'm'));
    assert.match(await ok(['diff']), /^No differences\.$/m);
    assert.match(await ok(['retrieve']), /^0 files written\.$/m);
    assert.equal(git('status', '--short'), '');
  });

  it('shows problems like a compiler, with 6, and deploys nothing', async () => {
    label('Net amount');
    write(RULE, rule('record.Amuont__c == 0'));
    const { code, stdout, stderr } = await run(['deploy', '--wait']);
    assert.equal(code, 6);
    assert.match(stdout, likeExample(exampleNamed('docs/reference/cli-metadata.md#validate-and-deploy')));
    assert.match(stderr, /The plan is blocked by 1 problem\. Nothing was deployed\./);
    const json = await run(['validate', '--json']);
    assert.equal(json.code, 6);
    assert.equal(JSON.parse(json.stdout).blocked[0].code, 'EXPRESSION_INVALID');
    assert.equal(JSON.parse(json.stderr).code, 'PLAN_BLOCKED');
    write(RULE, 'type: ValidationRule\napiName: [\n');
    const broken = await run(['validate']);
    assert.equal(broken.code, 6);
    assert.match(broken.stdout, /NotFree\.yaml:\d:\d+: error: .* YAML_INVALID/);
  });

  it("shows an edit as diff and plan, deploys exactly this, and updates the folder to the platform's state", async () => {
    label('Net amount');
    write(RULE, rule('record.Amount__c == 0'));
    const shown = await ok(['diff']);
    assert.match(shown, /^~ CustomField Invoice__c\.Amount__c\n[\s\S]*^-label: .*\n\+label: Net amount$/m);
    assert.match(shown, /^\+ ValidationRule Invoice__c\.NotFree$/m);
    assert.equal((await run(['diff', '--exit-code'])).code, 1);
    assert.deepEqual((await ok(['diff', '--name-only'])).trim().split('\n').length, 2);

    const plan = await ok(['validate']);
    assert.match(plan, /label {2}".*" → "Net amount"/);
    assert.match(plan, /^1 to create, 1 to update, 0 to delete, \d+ unchanged\.$/m);
    const planHash = /--expected-plan (sha256:[0-9a-f]{64})/.exec(plan)?.[1] ?? '';
    assert.equal((await run(['deploy', '--expected-plan', `sha256:${'0'.repeat(64)}`])).code, 5);
    const deployed = await run(['deploy', '--wait', '--expected-plan', planHash]);
    assert.equal(deployed.code, 0, deployed.stderr);
    assert.match(deployed.stdout, /succeeded: version \d+\.$/m);
    assert.match(deployed.stderr, /^Updated to what the platform keeps: erp-project\.yaml, manifest\/[^ ]+.*\.$/m);
    assert.doesNotMatch(deployed.stderr, /keeps: .*objects\//);

    assert.match(await ok(['diff']), /^No differences\.$/m);
    await ok(['hash', '--check']);
    assert.match(read('manifest/package.yaml'), /Invoice__c\.NotFree/);
    assert.match(read(RULE), /^# Somebody's reason\.\napiName: NotFree\ntype: ValidationRule\n/, 'comments stay');
    commit('Deploy');
    await ok(['retrieve']);
    assert.equal(git('status', '--short'), '');
  });

  it('leaves equivalent files unchanged, and comments in those that others have changed', async () => {
    const path = RULE.replace('NotFree', 'Kept');
    const text = rule('record.Amount__c == 1').replace('NotFree', 'Kept').trimEnd();
    const mine = `# Why there is one.\n${text.replace('message:', '\n# For the\n# customer.\nmessage:')}   # short\n`;
    write(path, mine);
    await ok(['deploy', '--wait']);
    assert.equal(read(path), mine, 'byte by byte');
    await ok(['hash', '--check']);
    assert.match(await ok(['diff']), /^No differences\.$/m);
    assert.match(await ok(['diff', '--verbose']), /Kept {2}\(formatting only\)/);
    commit('Deploy');
    const theirs = mkdtempSync(join(tmpdir(), 'erp-theirs-'));
    await ok(['retrieve', '--type', 'ValidationRule:Invoice__c.Kept', '--dir', theirs]);
    const file = join(theirs, path);
    writeFileSync(file, readFileSync(file, 'utf8').replace('== 1', '== 2'));
    await ok(['deploy', '--wait', '--dir', theirs]);
    rmSync(theirs, { recursive: true });
    await ok(['retrieve']);
    assert.equal(read(path), mine.replace('== 1', '== 2').replace('   # short', ' # short'));
    await ok(['hash', '--check']);
    commit('Retrieve');
    await ok(['retrieve']);
    assert.equal(git('status', '--short'), '');
    const destructive = read('manifest/destructiveChanges.yaml');
    await ok(['delete', 'ValidationRule:Invoice__c.Kept']);
    await ok(['deploy', '--wait', '--allow-destructive']);
    assert.equal(read('manifest/destructiveChanges.yaml'), destructive);
  });

  it('updates the whole folder with a package, so that no change of others is reverted', async () => {
    const due = 'objects/Invoice__c/fields/DueDate__c.yaml';
    const theirs = mkdtempSync(join(tmpdir(), 'erp-theirs-'));
    await ok(['retrieve', '--type', 'CustomField:Invoice__c.DueDate__c', '--dir', theirs]);
    const text = readFileSync(join(theirs, due), 'utf8').replace(/^label: .*$/m, 'label: To be paid until');
    writeFileSync(join(theirs, due), text);
    await ok(['deploy', '--wait', '--dir', theirs]);
    rmSync(theirs, { recursive: true });

    write('some.yml', 'version: 1\ntypes:\n  - name: CustomField\n    members: [Invoice__c.Amount__c]\n');
    await ok(['retrieve', '--package', 'some.yml']);
    assert.match(read(due), /^label: To be paid until$/m);
  });

  it('reports after a concurrent edit that others have changed the file since the deployment', async () => {
    const status = 'objects/Invoice__c/fields/Status__c.yaml';
    const relabel = (path: string, text: string): void =>
      writeFileSync(path, readFileSync(path, 'utf8').replace(/^label: .*$/m, `label: ${text}`));
    await ok(['retrieve']);
    const theirs = mkdtempSync(join(tmpdir(), 'erp-theirs-'));
    await ok(['retrieve', '--type', 'CustomField:Invoice__c.Status__c', '--dir', theirs]);
    relabel(join(theirs, status), 'Theirs');
    const database = new Database(platform.database.url, { size: 2, applicationName: 'test' });
    const { rows } = await database.query<{ id: string }>("SELECT id FROM metadata.tenants WHERE key = 'demo'");
    const client = await database.pool.connect();
    await client.query('BEGIN');
    await client.query(`SELECT FROM "${tenantSchema(rows[0]!.id)}"._state FOR SHARE`);
    label('Mine meanwhile');
    const going = run(['deploy', '--wait']);
    const queued = async (count: number): Promise<void> => {
      for (;;) {
        const { records } = JSON.parse(await ok(['list', '--json', '--take', '2']));
        const open = records.filter((one: { status: string }) => /QUEUED|VALIDATING|APPLYING/.test(one.status));
        if (open.length >= count) return;
        await sleep(100);
      }
    };
    await queued(1);
    relabel(join(folder, status), 'Later');
    await ok(['deploy', '--dir', theirs]);
    await queued(2);
    await client.query('ROLLBACK');
    client.release();
    await database.close();
    const { code, stderr } = await going;
    assert.equal(code, 0, stderr);
    rmSync(theirs, { recursive: true });
    const again = await run(['deploy', '--wait']);
    assert.equal(again.code, 5, again.stdout + again.stderr);
    assert.match(again.stderr, /METADATA_DRIFT[\s\S]*CustomField Invoice__c\.Status__c/);
  });

  it("does not overwrite other users' deployments, names them, and merges by git", async () => {
    label('Mine');
    commit('Mine');
    const changeDueDate = async (text: string): Promise<void> => {
      const theirs = mkdtempSync(join(tmpdir(), 'erp-theirs-'));
      await ok(['retrieve', '--type', 'CustomField:Invoice__c.Amount__c,Invoice__c.DueDate__c', '--dir', theirs]);
      const due = join(theirs, 'objects/Invoice__c/fields/DueDate__c.yaml');
      writeFileSync(due, readFileSync(due, 'utf8').replace(/^label: .*$/m, `label: ${text}`));
      await ok(['deploy', '--wait', '--dir', theirs]);
      rmSync(theirs, { recursive: true });
    };
    /** Pastes the commands of a hint into a shell. */
    const follow = async (advice: string): Promise<void> => {
      const commands = advice.slice(advice.indexOf('git switch'));
      const { ERP_TOKEN = '', ...env } = await environmentOf('ada@demo.example');
      const shell = `erp() { '${process.execPath}' '${PROGRAM}' "$@"; }\n${commands}`;
      await promisify(execFile)('sh', ['-c', shell], { cwd: folder, env: { ...process.env, ...env, ERP_TOKEN } });
    };
    await changeDueDate('Payable until');

    const { code, stderr } = await run(['deploy', '--wait']);
    assert.equal(code, 5);
    assert.match(stderr, /METADATA_DRIFT[\s\S]*CustomField Invoice__c\.DueDate__c: version \d+, .*, by Ada/);
    await follow(stderr);
    const { differences } = JSON.parse(await ok(['diff', '--json']));
    assert.deepEqual(
      differences.map(({ path, status }: { path: string; status: string }) => [path, status]),
      [[AMOUNT, 'changed']],
    );
    await ok(['deploy', '--wait']);
    commit('Deploy');

    label('Mine again');
    commit('Mine again');
    await changeDueDate('Due');
    assert.equal((await run(['deploy', '--wait'])).code, 5);
    await follow(exampleNamed('docs/reference/cli-metadata.md#validate-and-deploy 2'));
    assert.equal(git('branch', '--show-current').trim(), 'main');
    assert.match(read(AMOUNT), /^label: Mine again$/m, 'the advice works a second time and loses nothing');
    await ok(['deploy', '--wait']);
  });

  it('recognizes its own deployment that was started without --wait', async () => {
    label('Not waited for');
    const { deploymentId } = JSON.parse(await ok(['deploy', '--json']));
    assert.match(await ok(['status', deploymentId, '--wait', '--dir', tmpdir()]), /^status\tSUCCEEDED$/m);
    const { code, stdout, stderr } = await run(['deploy', '--wait']);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /were deployed already/);
    assert.match(stdout, new RegExp(`^Already deployed as version \\d+, by ${deploymentId}; `));
    await ok(['hash', '--check']);
  });

  it('succeeds when a deployment whose answer was lost is repeated', async () => {
    let lost = false;
    const interrupt = new AbortController();
    const proxy = await interfere(platform.baseUrl, {
      answers: (_, headers) => {
        if (lost || !headers['idempotency-key']) return 'as it is';
        lost = true;
        setTimeout(() => interrupt.abort(), 500);
        return 'never';
      },
    });
    try {
      const env: Record<string, string> = { ...(await environmentOf('ada@demo.example')), ERP_BASE_URL: proxy.url };
      const deploy = ['metadata', 'deploy', '--wait'];
      label('Answer lost');
      const first = await keptErpOf(env)(deploy, { cwd: folder, interrupt: interrupt.signal });
      assert.equal(first.code, 130, first.stderr);
      assert.match(first.stderr, /the same command takes it up/);
      const [id = ''] = (await ok(['list', '--take', '1'])).split('\t');
      await ok(['status', id, '--wait', '--dir', tmpdir()]);
      const again = await keptErpOf(env)([...deploy, '--json'], { cwd: folder });
      assert.equal(again.code, 0, again.stderr);
      assert.equal(JSON.parse(again.stdout).deploymentId, id);
      assert.deepEqual(readdirSync(join(env['HOME'] ?? '', '.config', 'erp', 'pending')), []);
      assert.match(await ok(['diff']), /^No differences\.$/m);
    } finally {
      proxy.close();
    }
  });

  it('refuses a folder of another tenant, unless that is intended', async () => {
    const eve = await erpAs('eve@acme.example');
    for (const command of ['retrieve', 'deploy']) {
      const { code, stderr } = await eve(['metadata', command], { cwd: folder });
      assert.equal(code, 5, stderr);
      assert.match(stderr, /The folder is of .*; you are signed in to Acme.*--other-tenant/s);
    }
    assert.equal(git('status', '--short'), '');
    const account = ['--type', 'CustomObject:Account', '--type', 'CustomField:Account.name'];
    const mine = mkdtempSync(join(tmpdir(), 'erp-account-'));
    await ok(['retrieve', ...account, '--dir', mine]);
    const meant = ['--other-tenant', '--dir', mine];
    const deployed = await eve(['metadata', 'deploy', '--wait', ...meant]);
    assert.equal(deployed.code, 0, deployed.stderr + deployed.stdout);
    const retrieved = await eve(['metadata', 'retrieve', '--force', ...meant]);
    assert.equal(retrieved.code, 0, retrieved.stderr);
    assert.match(retrieved.stdout, /of Acme/);
    assert.equal((await run(['retrieve', '--dir', mine])).code, 5);
    rmSync(mine, { recursive: true });
  });

  it('never overwrites an edit that is not in git', async () => {
    label('Not committed');
    const { code, stderr } = await run(['retrieve']);
    assert.equal(code, 5);
    assert.match(stderr, /Amount__c\.yaml[\s\S]*--force/);
    assert.match(read(AMOUNT), /Not committed/);
    const onlyHere = RULE.replace('NotFree', 'OnlyHere');
    write(onlyHere, rule('false').replace('NotFree', 'OnlyHere'));
    assert.equal((await run(['retrieve', '--prune'])).code, 5);
    assert.ok(existsSync(join(folder, onlyHere)));
    await ok(['retrieve', '--force', '--prune']);
    assert.equal(existsSync(join(folder, onlyHere)), false);
    assert.equal(git('status', '--short'), '');
  });

  it('runs no program that the configuration of a repository names', async () => {
    const marks = mkdtempSync(join(tmpdir(), 'erp-marks-'));
    const trap = join(marks, 'trap.sh');
    writeFileSync(trap, `#!/bin/sh\ntouch "${marks}/ran-$1"\ncat\n`, { mode: 0o755 });
    mkdirSync(join(marks, 'hooks'));
    for (const hook of ['post-index-change', 'reference-transaction', 'fsmonitor-watchman'])
      writeFileSync(join(marks, 'hooks', hook), `#!/bin/sh\ntouch "${marks}/ran-${hook}"\n`, { mode: 0o755 });
    write('.gitattributes', '*.yaml filter=trap diff=trap\n');
    commit('Attributes');
    const settings = {
      'core.fsmonitor': `${trap} fsmonitor`,
      'core.hooksPath': join(marks, 'hooks'),
      'core.pager': `${trap} pager`,
      'core.sshCommand': `${trap} ssh`,
      'diff.external': `${trap} external`,
      'diff.trap.textconv': `${trap} textconv`,
      'filter.trap.clean': `${trap} clean`,
      'filter.trap.smudge': `${trap} smudge`,
      'filter.trap.required': 'true',
      'alias.ls-tree': `!${trap} alias`,
      'alias.status': `!${trap} alias`,
    };
    for (const [name, value] of Object.entries(settings)) git('config', name, value);
    label('Not committed');
    const { code, stderr } = await run(['retrieve']);
    assert.equal(code, 5, stderr);
    assert.match(stderr, /Amount__c\.yaml/);
    await ok(['retrieve', '--force']);
    assert.deepEqual(
      readdirSync(marks).filter((name) => name.startsWith('ran-')),
      [],
    );
    rmSync(marks, { recursive: true });
  });

  it('overwrites files equal to the last commit, whatever their line ends', async () => {
    label('Committed');
    write(AMOUNT, read(AMOUNT).replaceAll('\n', '\r\n'));
    git('config', 'core.autocrlf', 'true');
    commit('Change the label');
    await ok(['retrieve']);
    assert.doesNotMatch(read(AMOUNT), /Committed/);
  });

  it('names every file that cannot be sent, before it sends anything', async () => {
    write('objects/Invoice__c/field/Amount__c.yaml', 'a: 1\n');
    write('objects/Invoice__c/fields/Large__c.yaml', `# ${'x'.repeat(1024 * 1024)}\n`);
    writeFileSync(join(folder, 'objects/Invoice__c/fields/Odd__c.yaml'), Buffer.from([0x61, 0xff, 0xfe]));
    symlinkSync('/etc/hostname', join(folder, 'objects/Invoice__c/fields/Link__c.yaml'));
    execFileSync('mkfifo', [join(folder, 'objects/Invoice__c/fields/Pipe__c.yaml')]);
    write('objects/invoice__c/object.yaml', 'type: CustomObject\n');
    write('README.md', 'Not part of it.\n');
    const { code, stderr } = await run(['validate', '--base-url', 'http://127.0.0.1:1']);
    assert.equal(code, 6);
    for (const said of [
      /field\/Amount__c\.yaml: error: .*no type/,
      /Large__c\.yaml: error: .*1 MiB/,
      /Odd__c\.yaml: error: .*UTF-8/,
      /Link__c\.yaml: error: .*symbolic link/,
      /Pipe__c\.yaml: error: .*not a file/,
      /object\.yaml: error: .*upper and lower case/,
    ])
      assert.match(stderr, said);
    assert.equal(stderr.includes('README'), false);
  });

  it('reports a selection that matches nothing, or names an unknown type', async () => {
    const { code, stderr } = await run(['retrieve', '--type', 'CustomField:Invoce__c.*']);
    assert.equal(code, 0);
    assert.match(stderr, /Nothing on the platform matches CustomField:Invoce__c\.\*\./);
    const typo = await run(['retrieve', '--type', 'CustomFeld:Invoice__c.*']);
    assert.equal(typo.code, 2);
    assert.match(typo.stderr, /CustomFeld:Invoice__c\.\*: there is no type CustomFeld\.\nDid you mean CustomField\?/);
  });

  it('does not treat an unreadable erp-project.yaml as absent', async () => {
    const project = read('erp-project.yaml');
    write('erp-project.yaml', project.replace('formatVersion: 1', 'formatVersion: 2'));
    const newer = await run(['deploy']);
    assert.equal(newer.code, 6);
    assert.match(newer.stderr, /erp-project\.yaml:1:\d+: error: This erp knows formatVersion 1 alone\./);
    write('erp-project.yaml', 'metadataVersion: [\n');
    assert.match((await run(['deploy'])).stderr, /erp-project\.yaml:\d+:\d+: error: .*YAML_INVALID/);
  });

  it('accepts CRLF and byte order marks of editors and git as equivalent', async () => {
    write(AMOUNT, `\uFEFF${read(AMOUNT).replaceAll('\n', '\r\n')}`);
    assert.match(await ok(['diff']), /^No differences\.$/m);
    await ok(['hash', '--check']);
  });

  it('writes nothing through a symbolic link', async () => {
    const outside = mkdtempSync(join(tmpdir(), 'erp-outside-'));
    const other = mkdtempSync(join(tmpdir(), 'erp-linked-'));
    mkdirSync(join(other, 'objects'));
    symlinkSync(outside, join(other, 'objects', 'Account'));
    const { code, stderr } = await run(['retrieve', '--type', 'CustomField:Account.*', '--dir', other]);
    assert.equal(code, 6);
    assert.match(stderr, /objects\/Account: error: .*symbolic link/);
    assert.deepEqual(execFileSync('ls', ['-A', outside], { encoding: 'utf8' }), '');
    for (const path of [outside, other]) rmSync(path, { recursive: true });
  });

  it('asks about a missing file that the manifest names, instead of deleting it', async () => {
    rmSync(join(folder, AMOUNT));
    const { code, stderr } = await run(['deploy', '--wait']);
    assert.equal(code, 6);
    assert.match(stderr, /names CustomField Invoice__c\.Amount__c, and its file is gone/);
    assert.match(stderr, /erp metadata delete CustomField:Invoice__c\.Amount__c/);
    await ok(['retrieve']);
    assert.equal(git('status', '--short'), '');
  });

  it('retrieves everything, and lists types and deployments', async () => {
    const all = mkdtempSync(join(tmpdir(), 'erp-all-'));
    const { metadataVersion, manifestHash } = JSON.parse(await ok(['retrieve', '--all', '--dir', all, '--json']));
    assert.match(
      readFileSync(join(all, 'erp-project.yaml'), 'utf8'),
      new RegExp(`metadataVersion: ${metadataVersion}\nmanifestHash: ${manifestHash}`),
    );
    assert.match(await ok(['validate', '--dir', all]), /^Nothing to change; \d+ components are as on the platform\.$/m);
    rmSync(all, { recursive: true });
    assert.match(
      await ok(['types']),
      /^CustomField\t<Object>\.<Field>\tobjects\/\{object\}\/fields\/\{apiName\}\.yaml$/m,
    );
    assert.match(await ok(['types', 'ValidationRule']), /^condition\tyes\t/m);
    const [latest] = (await ok(['list', '--status', 'succeeded', '--take', '1'])).split('\t');
    assert.match(await ok(['status', latest ?? '', '--wait']), /^status\tSUCCEEDED$/m);
    assert.equal((await run(['status', '0193d3c1-7a20-7c11-8a55-2f0e4b6c9d01'])).code, 1);
    assert.equal((await run(['list', '--status', 'DONE'])).code, 2);
  });

  it('records a validation, applies it once, rolls it back, and explains refusals', async () => {
    label('Checked');
    const checked = JSON.parse(await ok(['deploy', '--check-only', '--wait', '--json']));
    assert.deepEqual([checked.kind, checked.status], ['validation', 'SUCCEEDED']);
    for (const command of ['quick-deploy', 'rollback'])
      assert.equal((await run([command, checked.deploymentId, '--dry-run'])).code, 2, `${command} has no dry run`);
    assert.match(await ok(['quick-deploy', checked.deploymentId, '--wait']), /succeeded: version \d+\.$/m);
    assert.match(await ok(['diff']), /^No differences\.$/m, 'the folder has taken over what was applied');
    commit('Deploy');
    const again = await run(['quick-deploy', checked.deploymentId]);
    assert.equal(again.code, 5);
    assert.match(again.stderr, /QUICK_DEPLOY_NOT_ELIGIBLE[\s\S]*Validate again/);

    const [applied = ''] = (await ok(['list', '--take', '1'])).split('\t');
    assert.match(await ok(['status', applied]), /^rollback\tpossible: erp metadata rollback /m);
    assert.match(await ok(['rollback', applied, '--check-only', '--wait']), /would succeed; nothing was applied\.$/m);
    assert.match(
      await ok(['rollback', applied, '--wait']),
      /label {2}"Checked" → ".*"[\s\S]*succeeded: version \d+\.$/m,
    );
    const twice = await run(['rollback', applied]);
    assert.equal(twice.code, 5);
    assert.match(twice.stderr, /cannot be rolled back\.\n {2}it was rolled back already/);
    await ok(['retrieve']);
    assert.match(git('diff'), /^-label: Checked$/m);
  });

  it('deletes marked components, and only when that is allowed', async () => {
    write(RULE, rule('record.Amount__c == 0'));
    await ok(['deploy', '--wait']);
    commit('Add a rule');
    await ok(['delete', 'ValidationRule:Invoice__c.NotFree']);
    assert.equal(existsSync(join(folder, RULE)), false);
    assert.match(await ok(['diff']), /^- ValidationRule Invoice__c\.NotFree {2}to be deleted$/m);
    const refused = await run(['deploy', '--wait']);
    assert.equal(refused.code, 6);
    assert.match(`${refused.stdout}${refused.stderr}`, /DESTRUCTIVE_CHANGES_NOT_ALLOWED/);
    const plan = await ok(['validate', '--allow-destructive']);
    assert.match(plan, /^ {2}- ValidationRule Invoice__c\.NotFree/m);
    await ok(['deploy', '--allow-destructive', '--wait']);
    assert.match(refused.stdout, /help: If that is meant: --allow-destructive\.$/m);
    assert.equal(read('manifest/destructiveChanges.yaml'), 'version: 1\ntypes: []\n');
    assert.equal(read('manifest/package.yaml').includes('NotFree'), false);
    assert.match(await ok(['diff']), /^No differences\.$/m);
    assert.equal((await run(['delete', 'ValidationRule:*'])).code, 2);

    commit('Delete the rule');
    const [id = ''] = (await ok(['list', '--take', '1'])).split('\t');
    const { code, stderr } = await run(['rollback', id, '--wait']);
    assert.equal(code, 0, stderr);
    const [, advice = ''] = /^ {2}erp metadata (retrieve .*)$/m.exec(stderr) ?? [];
    assert.match(advice, /--type 'ValidationRule:Invoice__c\.NotFree'/);
    await ok(advice.replaceAll("'", '').split(' '));
    assert.ok(existsSync(join(folder, RULE)), 'the file is back');
  });

  it('reports unreadable files as missing from the plan', async () => {
    write(RULE, 'type: ValidationRule\napiName: NotFree\nobject: Invoice__c\nunknown: 1\n');
    const { code, stdout } = await run(['validate']);
    assert.equal(code, 6);
    assert.match(stdout, /^1 file could not be read and is not in this plan\.$/m);
  });

  it('deletes components named only by the destructive manifest, with file and manifest entry', async () => {
    write(RULE, rule('record.Amount__c == 0'));
    await ok(['deploy', '--wait']);
    write(
      'manifest/destructiveChanges.yaml',
      'version: 1\ntypes:\n  - name: ValidationRule\n    members: [Invoice__c.NotFree]\n',
    );
    await ok(['deploy', '--allow-destructive', '--wait']);
    assert.equal(existsSync(join(folder, RULE)), false);
    assert.equal(read('manifest/package.yaml').includes('NotFree'), false);
    await ok(['hash', '--check']);
  });

  it('continues after an interrupted wait, and is canceled on demand', async () => {
    const database = new Database(platform.database.url, { size: 1, applicationName: 'erp test' });
    const holder = await database.pool.connect();
    const { rows } = await holder.query("SELECT id FROM metadata.tenants WHERE key = 'demo'");
    const schema = tenantSchema(String(rows[0].id));
    try {
      await holder.query('BEGIN');
      await holder.query(`SELECT FROM ${schema}._state FOR SHARE`);
      label('Held up');
      const child = new AbortController();
      let told = '';
      const waiting = erp(['metadata', 'deploy', '--wait'], {
        cwd: folder,
        interrupt: child.signal,
        onStderr(text) {
          told = text;
          if (/Applying/.test(text)) child.abort();
        },
      });
      assert.equal((await waiting).code, 130);
      const [, id = ''] = /Deployment (\S+) goes on/.exec(told) ?? [];
      assert.match(told, new RegExp(`erp metadata cancel ${id}`));
      const canceled = run(['cancel', id, '--reason', 'Wrong branch.', '--wait']);
      const status = 'SELECT status FROM metadata.deployments WHERE deployment_id = $1';
      await until(async () => (await holder.query(status, [id])).rows[0].status === 'CANCELING');
      await holder.query('ROLLBACK');
      const { code, stdout, stderr } = await canceled;
      assert.equal(code, 0, stderr);
      assert.match(stdout, /^status\tCANCELED$/m);
      assert.match(stdout, /^reason\tWrong branch\.$/m);
      assert.equal((await run(['status', id, '--wait'])).code, 8);
      assert.equal((await run(['cancel', id])).code, 5);
      assert.match(await ok(['diff', '--name-only']), /Amount__c/);
    } finally {
      await holder.query('ROLLBACK');
      holder.release();
      await database.close();
    }
  });

  it('respects permissions: nothing is deployed without them', async () => {
    const sam = await erpAs('sam@demo.example');
    label('Sam');
    const { code, stderr } = await sam(['metadata', 'deploy'], { cwd: folder });
    assert.equal(code, 4);
    assert.match(stderr, /METADATA_PERMISSION_DENIED/);
  });
});
