/** The application of docs/guides/build-an-application.md in Chromium: built with the guide's commands, short, without a cast. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { after, before, describe, it } from 'mocha';
import type { Browser, Page } from 'playwright-core';
import { signIn, startChromium, visit } from '../support/chromium.ts';
import { api, tokenFor } from '../support/client.ts';
import { userEnvironment } from '../support/erp.ts';
import { exampleNamed } from '../support/examples.ts';
import { deployOverHttp } from '../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { root } from '../support/sources.ts';
import { temporaryFolder } from '../support/temporary.ts';

const SOURCE = join(root, 'docs/guides/application');
const GUIDE = 'docs/guides/build-an-application.md';
/** Maximum lines of a list, and of a form with its errors. */
const LINES_MAX = 10;
const TYPES: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript' };

/** Fetches nothing: the package has no dependencies, and the compiler is that of the checkout. */
const INSTALLED = `
npm() {
  [ "$*" != "install --save-dev typescript" ] || { ln -s "$REPOSITORY/node_modules/typescript" node_modules/; return; }
  command npm "$@"
}
npx() { shift; "$NODE" "$REPOSITORY/node_modules/typescript/bin/tsc" "$@"; }
cd "$REPOSITORY"
`;

describe('the application of the guide in Chromium', function () {
  this.timeout(120_000);
  let platform: TestPlatform;
  let chromium: Browser;
  let folder: string;
  let origin: string;
  let page: Page;
  let complaints: string[];
  const files = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const path = pathname === '/' ? '/index.html' : pathname;
    const text = await readFile(join(folder, path)).catch(() => null);
    response.writeHead(text ? 200 : 404, { 'content-type': TYPES[extname(path)] ?? 'text/plain' }).end(text);
  });

  /** Blocks of the guide as printed, with the compiler of the checkout. */
  async function run(blocks: readonly string[], env: Record<string, string> = {}): Promise<void> {
    const text = blocks.map((name) => exampleNamed(`${GUIDE}#${name}`)).join('');
    await promisify(execFile)('bash', ['--norc', '-euc', INSTALLED + text], {
      cwd: root,
      env: { ...process.env, REPOSITORY: root, NODE: process.execPath, APPLICATION: folder, ...env },
    }).catch(({ stdout, stderr }: { stdout: string; stderr: string }) => {
      throw new Error(stdout + stderr);
    });
  }
  /** Compiles a folder with the command of the guide. */
  const compile = (where: string): Promise<void> => run(['4-compile-it'], { APPLICATION: where });

  before(async () => {
    [platform, chromium] = await Promise.all([startPlatform(), startChromium()]);
    folder = temporaryFolder('application');
    await cp(SOURCE, folder, { recursive: true });
    await new Promise<void>((resolve) => files.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
    const ada = await tokenFor(platform.baseUrl, 'ada@demo.example');
    const client = (await readFile(join(SOURCE, 'Desk.yaml'), 'utf8')).replaceAll('http://localhost:4000', origin);
    await deployOverHttp(api(platform.baseUrl, ada), { 'externalClients/Desk.yaml': client });
    const html = await readFile(join(folder, 'index.html'), 'utf8');
    await writeFile(join(folder, 'index.html'), html.replace('http://localhost:3000', platform.baseUrl));
    const mia = await tokenFor(platform.baseUrl, 'mia@demo.example');
    await run(['2-install-the-client', '3-write-the-types-of-your-objects', '4-compile-it'], {
      ...userEnvironment({ ERP_TOKEN: mia, ERP_BASE_URL: platform.baseUrl }),
      npm_config_audit: 'false',
      npm_config_fund: 'false',
    });
    ({ page, complaints } = await visit(chromium, origin));
  });
  after(async () => {
    await chromium?.close();
    await platform?.stop();
    files.close();
  });

  it('has ten lines for its list, ten for its form, and no cast', async () => {
    const text = await readFile(join(SOURCE, 'app.ts'), 'utf8');
    for (const name of ['showDrafts', 'save']) {
      const [found = ''] = new RegExp(`^async function ${name}[\\s\\S]*?^}$`, 'm').exec(text) ?? [];
      assert.ok(found.split('\n').length <= LINES_MAX, found);
    }
    const code = text.replace(/\/\*\*[\s\S]*?\*\/|\/\/.*/g, '');
    assert.doesNotMatch(code, /\bas\b|\bany\b|@ts-|[\w)\]]!/);
  });

  it("equals the guide's description of it", async () => {
    const plain = (text: string): string => text.replace(/\s+/g, ' ');
    const text = plain(await readFile(join(SOURCE, 'app.ts'), 'utf8'));
    for (const name of ['4-compile-it 2', '4-compile-it 3'])
      assert.ok(text.includes(plain(exampleNamed(`${GUIDE}#${name}`)).trim()), name);
  });

  it('does not compile with a field that is unknown or was not selected, or with a value of another type', async () => {
    const wrong = temporaryFolder('application-wrong');
    await cp(folder, wrong, {
      recursive: true,
      filter: (path) => !path.includes('node_modules'),
    });
    await symlink(join(folder, 'node_modules'), join(wrong, 'node_modules'));
    await writeFile(join(wrong, 'app.ts'), exampleNamed('docs/reference/client.md#connecting'));
    await compile(wrong);
    const text = await readFile(join(SOURCE, 'app.ts'), 'utf8');
    const cases: readonly (readonly [string, string, RegExp])[] = [
      ["fields: ['name', 'Amount__c', 'DueDate__c']", "fields: ['name', 'Amount__c']", /'DueDate__c' does not exist/],
      ["Status__c: 'draft'", "Status__c: 'posted'", /'"posted"' is not assignable/],
      ["sort: ['-createdAt']", "sort: ['-created']", /'"-created"' is not assignable/],
      ["object('Invoice__c')", "object('Invoices')", /'"Invoices"' is not assignable/],
      ["AccountId__c: text('AccountId__c'), ", '', /'AccountId__c' is missing/],
    ];
    for (const [right, other, message] of cases) {
      await writeFile(join(wrong, 'app.ts'), text.replace(right, other));
      await assert.rejects(compile(wrong), message);
    }
  });

  it('signs in through the page of the platform, and returns to its address', async () => {
    await page.goto(`${origin}/#drafts`);
    await page.waitForSelector('#username');
    await signIn(page, 'mia@demo.example');
    await page.click('button[value=allow]');
    await page.waitForURL(`${origin}/#drafts`);
    await page.waitForSelector('#drafts tr');
    await page.waitForFunction('document.querySelector("#open").textContent !== "…"');
    assert.match((await page.textContent('#open')) ?? '', /^EUR \d+(\.\d+)?, USD \d/);
    // No credentials are stored.
    assert.equal(await page.evaluate('JSON.stringify({ ...localStorage, ...sessionStorage })'), '{}');
  });

  it('shows violations beside the fields, and creates a valid record', async () => {
    const before = await page.locator('#drafts tr').first().innerText();
    await page.fill('input[name=Amount__c]', '-5');
    await page.click('form button');
    await page.waitForFunction('document.querySelector("output[name=Amount__c]").value !== ""');
    assert.equal(await page.locator('#drafts tr').first().innerText(), before);
    await page.fill('input[name=Amount__c]', '125.50');
    await page.click('form button');
    await page.waitForFunction(
      'document.querySelector("#drafts td:nth-child(2)").textContent === "125.5" && document.querySelector("output[name=Amount__c]").value === ""',
    );
  });

  it('executes an action, and shows why another one is unavailable', async () => {
    const [name = ''] = (await page.locator('#drafts tr').first().innerText()).split('\t');
    await page.locator('#drafts tr button').first().click();
    const send = page.locator('#actions button', { hasText: /^Send$/ });
    await send.waitFor();
    assert.equal(await send.isDisabled(), true);
    assert.match((await send.getAttribute('title')) ?? '', /lines add up to its amount/);
    await page.locator('#actions button', { hasText: 'Discard' }).click();
    await page.waitForFunction(`document.querySelector("#drafts td").textContent !== ${JSON.stringify(name)}`);
  });

  it('signs in without a prompt when it is opened again', async () => {
    await page.reload();
    await page.waitForSelector('#drafts tr');
    assert.deepEqual(
      complaints.filter((text) => !/status of (401|422)/.test(text)),
      [],
    );
  });
});
