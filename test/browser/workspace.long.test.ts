/** The workspace in headless Chromium: people find, read and change records, and see what became of it. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { OPERATIONS } from '../../contracts/operations.ts';
import { findings, signIn, startChromium, type Visitor, visit } from '../support/chromium.ts';
import { type Api, api, tokenFor } from '../support/client.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { until } from '../support/until.ts';

const HOSTILE = '<img src=x onerror=alert(1)>';
const PHONE = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true } as const;
const DESK = { viewport: { width: 1280, height: 900 } } as const;
/** Folder for screenshots of the page; absent: none are taken. */
const PICTURES = process.env['PICTURES'];

/** Requests that are operations of the public API, as `METHOD path`. */
const PUBLIC = OPERATIONS.map(
  ({ method, path }) => new RegExp(`^${method} /api/v1${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
);

describe('the workspace in Chromium', function () {
  this.timeout(120_000);
  let platform: TestPlatform;
  let browser: Browser;
  let mia: Api;
  let sam: Api;
  const visitors: Visitor[] = [];
  /** Sessions by user, so that each signs in once. */
  const sessions = new Map<string, NonNullable<BrowserContextOptions['storageState']>>();
  const asked = new Set<string>();
  before(async function () {
    this.timeout(180_000);
    [platform, browser] = await Promise.all([startPlatform(), startChromium()]);
    [mia, sam] = (await Promise.all(['mia', 'sam'].map((name) => tokenFor(platform.baseUrl, name)))).map((token) =>
      api(platform.baseUrl, token),
    ) as [Api, Api];
  });
  after(async () => {
    for (const { context } of visitors) await context.close();
    await browser?.close();
    await platform?.stop();
  });

  const open = async (path: string, options: BrowserContextOptions & { user?: string } = {}): Promise<Visitor> => {
    const { user = 'mia', ...rest } = options;
    const session = sessions.get(user);
    const visitor = await visit(browser, platform.baseUrl, {
      reducedMotion: 'reduce',
      ...(session ? { storageState: session } : {}),
      ...rest,
    });
    visitors.push(visitor);
    visitor.page.on('request', (request) => {
      const { pathname } = new URL(request.url());
      if (pathname.startsWith('/api/')) asked.add(`${request.method()} ${pathname}`);
    });
    await visitor.page.goto(platform.baseUrl + path);
    if (options.javaScriptEnabled === false) return visitor;
    if (!session) await signIn(visitor.page, `${user}@demo.example`);
    await shown(visitor.page);
    sessions.set(user, await visitor.context.storageState());
    return visitor;
  };
  const shown = async (page: Page): Promise<void> => {
    await page.waitForSelector('body[data-shown]');
  };
  const press = (page: Page, name: string): Promise<void> =>
    page.getByRole('button', { name, exact: true }).first().click();
  const picture = async ({ page }: Visitor, name: string): Promise<void> => {
    if (!PICTURES) return;
    mkdirSync(PICTURES, { recursive: true });
    await page.screenshot({ path: `${PICTURES}/workspace-${name}.png` });
  };
  const account = async (name: string, more: object = {}): Promise<string> => {
    const { status, body, text } = await mia.post('/data/Account', { name, ...more });
    assert.equal(status, 201, text);
    return body.id;
  };
  const invoice = async (more: object = {}): Promise<string> => {
    const accountId = await account(`Customer ${randomUUID()}`, { city: randomUUID() });
    const fields = { AccountId__c: accountId, Amount__c: 1234.5, IssueDate__c: '2026-11-01', ...more };
    const { status, body, text } = await mia.post('/data/Invoice__c', fields);
    assert.equal(status, 201, text);
    return body.id;
  };

  it('is one click and a password away from the home page of the demo, as somebody else, too', async () => {
    const visitor = await visit(browser, platform.baseUrl, { reducedMotion: 'reduce' });
    visitors.push(visitor);
    const { page, complaints } = visitor;
    for (const [name, username] of [
      ['Sam', 'sam@demo.example'],
      ['Mia', 'mia@demo.example'],
    ] as const) {
      await page.goto(platform.baseUrl);
      await page.getByRole('link', { name: `Sign in as ${name}` }).click();
      await page.waitForSelector('#password');
      assert.equal(await page.inputValue('#username'), username);
      assert.match(await page.innerText('#password-hint'), /demo-password/);
      await page.fill('#password', 'demo-password');
      await page.getByRole('button', { name: 'Sign in', exact: true }).click();
      await shown(page);
      assert.equal(new URL(page.url()).search, '');
    }
    assert.deepEqual(complaints, []);
  });

  it('lists records by a list view, searches, sorts and pages, in an address of its own', async () => {
    const visitor = await open('/app/Invoice__c');
    const { page, complaints, strangers } = visitor;
    assert.equal(await page.innerText('h1'), 'Invoices');
    assert.equal(await page.locator('.records tbody tr').count(), 50);
    assert.match(await page.innerText('.records tbody tr'), /INV-\d+[\s\S]*€|\$|£/);
    await picture(visitor, 'list');
    await page.selectOption('#view', 'Overdue');
    await page.waitForURL(/list=Overdue/);
    await shown(page);
    assert.match(await page.innerText('.chips'), /Status is one of Sent, Overdue[\s\S]*Due date is before today/);
    await page.getByRole('button', { name: 'Open amount' }).click();
    await page.waitForURL(/sort=OpenAmount__c/);
    await page.waitForSelector('th[aria-sort="ascending"]:has-text("Open amount")');
    await page.getByRole('button', { name: 'Open amount' }).click();
    await page.waitForSelector('th[aria-sort="descending"]:has-text("Open amount")');
    await shown(page);
    await press(page, 'Count all');
    await page.waitForSelector('.figures:has-text(" of ")');
    await page.locator('.more').scrollIntoViewIfNeeded();
    await until(async () => (await page.locator('.records tbody tr').count()) > 50);
    await page.goBack();
    await page.waitForSelector('th[aria-sort="ascending"]:has-text("Open amount")');
    await page.reload();
    await page.waitForSelector('th[aria-sort="ascending"]:has-text("Open amount")');
    assert.deepEqual([complaints, strangers], [[], []]);
  });

  it('filters by conditions that are built, and says when nothing matches', async () => {
    await account(`Zebra ${HOSTILE}`, { city: 'Bremen', employees: 77 });
    const visitor = await open('/app/Account');
    const { page, complaints } = visitor;
    await press(page, 'Filter');
    await page.selectOption('.conditions li:nth-child(1) select >> nth=0', 'city');
    await page.selectOption('.conditions li:nth-child(1) select >> nth=1', 'eq');
    await page.fill('.conditions li:nth-child(1) input', 'Bremen');
    await press(page, 'Add condition');
    await page.selectOption('.conditions li:nth-child(2) select >> nth=0', 'employees');
    await page.selectOption('.conditions li:nth-child(2) select >> nth=1', 'between');
    await page.fill('.conditions li:nth-child(2) .values input >> nth=0', '70');
    await page.fill('.conditions li:nth-child(2) .values input >> nth=1', '80');
    await picture(visitor, 'filters');
    await press(page, 'Apply');
    await page.waitForSelector('.chips:has-text("Employees is between 70 and 80")');
    await shown(page);
    assert.match(await page.innerText('.records'), /Zebra <img src=x/);
    await page.fill('#search', 'no such thing');
    await page.waitForSelector('.empty:has-text("Nothing matches")');
    await picture(visitor, 'nothing');
    await press(page, 'Clear all filters');
    await page.waitForSelector('.records tbody tr >> nth=10');
    assert.deepEqual(complaints, []);
  });

  it('changes a field of selected records, says what became of each, and deletes them', async () => {
    const mark = randomUUID().slice(0, 8);
    const city = `Harbor ${mark}`;
    const ids: string[] = [];
    for (const n of [1, 2, 3, 4]) ids.push(await account(`${randomUUID()} ${mark} ${n}`, { city: `${city} ${n}` }));
    const visitor = await open(`/app/Account?q=${mark}`);
    const { page, complaints } = visitor;
    await until(async () => (await page.locator('.records tbody tr').count()) === 4);
    const boxes = page.locator('.records tbody .pick input');
    await boxes.first().click();
    await boxes.nth(2).click({ modifiers: ['Shift'] });
    assert.equal(await page.innerText('.selected strong'), '3 selected');
    const names = (await page.locator('.records tbody tr').allInnerTexts()).slice(0, 3);
    const first = ids[Number(/ (\d)\s/.exec(names[0] ?? '')?.[1]) - 1]!;
    await press(page, 'Change a field');
    await page.selectOption('#changed-field', { label: 'City' });
    const { body } = await mia.get(`/data/Account/${first}`);
    await mia.patch(`/data/Account/${first}`, { city: 'Elsewhere' }, { etag: `"${body.recordVersion}"` });
    await page.fill('#new-value', city);
    await picture(visitor, 'selection');
    await press(page, 'Change 3 records');
    await page.waitForSelector('.outcome');
    assert.match(await page.innerText('.outcome'), /2 of 3 changed/);
    assert.equal(await page.locator('.outcome li .wrong').count(), 1);
    assert.match(await page.locator('.outcome li').first().innerText(), new RegExp(mark));
    await picture(visitor, 'selection-outcome');
    const cities = await Promise.all(ids.map(async (id) => (await mia.get(`/data/Account/${id}`)).body.city));
    assert.equal(cities.filter((found) => found === city).length, 2);
    assert.equal(cities.filter((found) => found === 'Elsewhere').length, 1);
    await until(async () => (await page.locator('.records tbody tr').count()) === 4);
    await page.getByRole('checkbox', { name: 'Select all that are shown' }).check();
    await press(page, 'Delete');
    assert.match(await page.innerText('.confirm'), /Delete 4 records\?/);
    await page.locator('.confirm').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.waitForSelector('.outcome:has-text("4 of 4 deleted")');
    assert.deepEqual((await mia.get(`/data/Account?search=${mark}`)).body.records, []);
    assert.deepEqual(complaints, []);
  });

  it('saves a list as a file for spreadsheets, in which nothing is a formula', async () => {
    const mark = `Sheet ${randomUUID().slice(0, 8)}`;
    await account(`=SUM(1) ${mark}`, { city: 'a;b', annualRevenue: 1234.5 });
    await account(`Plain, ${mark}`, { city: 'She said "no"' });
    const { page } = await open(`/app/Account?q=${encodeURIComponent(mark)}`);
    const [download] = await Promise.all([page.waitForEvent('download'), press(page, 'Download as CSV')]);
    const text = await readFile(await download.path(), 'utf8');
    assert.match(download.suggestedFilename(), /\.csv$/);
    const [head, ...lines] = text.replace('\ufeff', '').trimEnd().split('\r\n');
    assert.match(head ?? '', /^Account name,/);
    assert.equal(lines.length, 2);
    assert.ok(text.includes(`'=SUM(1) ${mark},`), text);
    assert.ok(text.includes(`"Plain, ${mark}",`), text);
  });

  it('shows a record by its layout, with related lists, steps and why others are not possible', async () => {
    const id = await invoice();
    const visitor = await open(`/app/Invoice__c/${id}`);
    const { page, complaints } = visitor;
    assert.match(await page.innerText('main'), /Amount\s+€1,234\.50/);
    assert.match(await page.innerText('main'), /Invoice lines\s+New invoice line\s+None/);
    await page.click('.steps summary');
    const disabled = page.locator('.impossible li', { hasText: 'Mark as paid' });
    assert.equal(await disabled.locator('button').isDisabled(), true);
    assert.match(await disabled.innerText(), /permission|state/);
    await picture(visitor, 'record');
    await press(page, 'Discard');
    await page.waitForSelector('h1 + .badge:has-text("Canceled")');
    await page.waitForSelector('.history li:has-text("Mia Hartmann moved it on")');
    assert.match(await page.innerText('.history li'), /Status\s+before:\s+Draft →\s+after:\s+Canceled/);
    await page.click('.columns a:has-text("Customer")');
    await page.waitForSelector('h1:has-text("Customer")');
    await page.waitForURL(/\/app\/Account\//);
    assert.deepEqual(complaints, []);
  });

  it('keeps a violation beside its field, and then saves', async () => {
    const id = await invoice();
    const visitor = await open(`/app/Invoice__c/${id}?view=edit`);
    const { page } = visitor;
    await page.fill('#field-DueDate__c', '2026-10-01');
    await page.fill('#field-Amount__c', '0');
    await press(page, 'Save');
    await page.waitForSelector('#field-DueDate__c-error:has-text("An invoice is not due before it is issued.")');
    assert.equal(await page.innerText('#field-Amount__c-error'), 'Amount must be positive.');
    await picture(visitor, 'violations');
    await page.fill('#field-DueDate__c', '2026-12-01');
    await page.fill('#field-Amount__c', '1,000.25');
    await press(page, 'Save');
    await page.waitForURL(`${platform.baseUrl}/app/Invoice__c/${id}`);
    await page.waitForSelector('.history li:has-text("changed it")');
    assert.match(await page.innerText('.history'), /Amount\s+before:\s+€1,234\.50 →\s+after:\s+€1,000\.25/);
    await picture(visitor, 'history');
  });

  it('puts yours and theirs side by side when somebody else was faster', async () => {
    const id = await invoice({ CustomerReference__c: 'before', Notes__c: 'as it was' });
    const visitor = await open(`/app/Invoice__c/${id}?view=edit`);
    const { page } = visitor;
    await page.fill('#field-CustomerReference__c', 'mine');
    await page.fill('#field-Amount__c', '99');
    const path = `/data/Invoice__c/${id}`;
    const theirs = { CustomerReference__c: 'theirs', Notes__c: 'new' };
    const { status } = await mia.patch(path, theirs, { etag: (await mia.get(path)).headers.get('etag')! });
    assert.equal(status, 200);
    await press(page, 'Save');
    await page.waitForSelector('.conflict');
    assert.match(await page.innerText('.conflict'), /Customer reference\s+before\s+theirs\s+mine/);
    assert.match(await page.innerText('.conflict'), /Notes\s+as it was\s+new/);
    await picture(visitor, 'conflict');
    await page.getByRole('radio', { name: /Customer reference: Keep theirs/ }).check();
    await press(page, 'Save this');
    await page.waitForURL(`${platform.baseUrl}/app/Invoice__c/${id}`);
    const { body } = await mia.get(path);
    assert.deepEqual([body.CustomerReference__c, body.Amount__c, body.Notes__c], ['theirs', 99, 'new']);
  });

  it('shows a similar record before a second one is created', async () => {
    const name = `Elbe Shipping ${randomUUID().slice(0, 8)}`;
    await account(name, { city: 'Hamburg', TaxId__c: 'DE 555 001' });
    const visitor = await open('/app/Account?view=new&TaxId__c=DE-555001');
    const { page } = visitor;
    await page.fill('#field-name', 'Elbe Shipping Line');
    await press(page, 'Create');
    await page.waitForSelector('.duplicates');
    assert.match(await page.innerText('.duplicates'), /Elbe Shipping/);
    await picture(visitor, 'duplicates');
    await press(page, 'Save all the same');
    await page.waitForURL(/\/app\/Account\/[0-9a-f-]{36}$/);
    assert.equal(await page.innerText('h1'), 'Elbe Shipping Line');
  });

  it('offers the values that fit the controlling field, and references by search', async () => {
    const customer = `Lookup ${randomUUID().slice(0, 8)}`;
    const accountId = await account(customer, { city: 'Kiel' });
    const { page } = await open('/app/Opportunity__c?view=new');
    const reasons = (): Promise<string[]> => page.locator('#field-LossReason__c option').allInnerTexts();
    assert.deepEqual(await reasons(), ['Not set']);
    await page.selectOption('#field-Stage__c', 'closedLost');
    assert.ok((await reasons()).includes('Price too high'));
    await page.selectOption('#field-LossReason__c', 'price');
    await page.fill('#field-name', 'A deal');
    await page.fill('#field-AccountId__c', customer);
    await page.waitForSelector(`[role=option]:has-text("${customer}")`);
    await page.press('#field-AccountId__c', 'ArrowDown');
    await page.press('#field-AccountId__c', 'Enter');
    assert.equal(await page.inputValue('#field-AccountId__c'), customer);
    await press(page, 'Create');
    await page.waitForURL(/\/app\/Opportunity__c\/[0-9a-f-]{36}$/);
    const { body } = await mia.get(`/data/Opportunity__c/${page.url().split('/').at(-1)}`);
    assert.deepEqual([body.AccountId__c, body.LossReason__c], [accountId, 'price']);
  });

  it('loses nothing while the platform is away, and stores it once', async () => {
    const id = await invoice();
    const { page } = await open(`/app/Invoice__c/${id}?view=edit`);
    const keys = new Set<string | undefined>();
    let away = 2;
    await page.route(`**/api/v1/data/Invoice__c/${id}`, async (route) => {
      if (route.request().method() !== 'PATCH') return route.continue();
      keys.add(route.request().headers()['idempotency-key']);
      if (away-- > 0) return route.abort();
      await route.continue();
    });
    await page.fill('#field-Notes__c', 'typed while it was away');
    await press(page, 'Save');
    await page.waitForSelector('.away:has-text("Nothing you entered is lost")');
    await page.waitForURL(`${platform.baseUrl}/app/Invoice__c/${id}`);
    assert.equal(keys.size, 1);
    const { body } = await mia.get(`/data/Invoice__c/${id}`);
    assert.deepEqual([body.Notes__c, body.recordVersion], ['typed while it was away', 2]);
  });

  it('brings back what was typed when the sign-in has ended meanwhile', async () => {
    const id = await invoice();
    const { page, context } = await open(`/app/Invoice__c/${id}?view=edit`);
    await page.fill('#field-Notes__c', 'typed before the sign-in');
    await page.route(`**/api/v1/data/Invoice__c/${id}`, async (route) => {
      if (route.request().method() !== 'PATCH') return route.continue();
      await route.fulfill({ status: 401, json: { code: 'TOKEN_INVALID', message: 'no', status: 401 } });
    });
    await context.clearCookies();
    // A token that is refused within seconds of the sign-in is no matter of a new one.
    await page.evaluate("sessionStorage.removeItem('erp-app-last')");
    await press(page, 'Save');
    await page.waitForSelector('#username');
    await page.unroute(`**/api/v1/data/Invoice__c/${id}`);
    await signIn(page, 'mia@demo.example');
    await page.waitForSelector('.done:has-text("What you had entered is here again.")');
    assert.equal(await page.inputValue('#field-Notes__c'), 'typed before the sign-in');
    assert.equal(await page.evaluate("sessionStorage.getItem('erp-app-drafts')"), null);
    await press(page, 'Save');
    await page.waitForURL(`${platform.baseUrl}/app/Invoice__c/${id}`);
  });

  it('deletes after a question, and restores', async () => {
    const id = await account('Short-lived');
    const { page } = await open(`/app/Account/${id}`);
    await press(page, 'Delete');
    await page.click('.confirm button.danger');
    await page.waitForSelector('h1:has-text("Short-lived was deleted")');
    await page.reload();
    await page.waitForSelector('.problem:has-text("There is no such record")');
    await press(page, 'Restore');
    await page.waitForSelector('h1:has-text("Short-lived")');
  });

  it('works with the keyboard alone, from the list to a saved change', async () => {
    const id = await invoice();
    const { page } = await open(`/app/Invoice__c/${id}`);
    const reach = async (what: string): Promise<void> => {
      for (let presses = 0; presses < 150; presses++) {
        await page.keyboard.press('Tab');
        if (await page.evaluate(`document.activeElement.matches(${JSON.stringify(what)})`)) return;
      }
      assert.fail(`The keyboard does not reach ${what}.`);
    };
    await reach('a.button');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#field-CustomerReference__c');
    await reach('#field-CustomerReference__c');
    await page.keyboard.type('by keyboard');
    await page.keyboard.press('Enter');
    await page.waitForURL(`${platform.baseUrl}/app/Invoice__c/${id}`);
    await page.waitForSelector('dd:has-text("by keyboard")');
    await shown(page);
    await reach('.asked > button');
    await page.keyboard.press('Enter');
    await page.waitForSelector('dialog[open] .requests li');
    await page.keyboard.press('Escape');
    await until(async () => (await page.locator('dialog[open]').count()) === 0);
  });

  it('finds records of every object, goes anywhere and takes the next step, by one box and the keyboard', async () => {
    const name = `Pälette ${randomUUID().slice(0, 8)}`;
    const accountId = await account(name, { city: randomUUID() });
    const id = await invoice({ AccountId__c: accountId });
    const visitor = await open('/app/Invoice__c');
    const { page, complaints } = visitor;
    const chosen = (): Promise<string> => page.locator('.commands [aria-selected=true]').innerText();
    const offers = (group: string): Promise<string[]> =>
      page.getByRole('group', { name: group, exact: true }).getByRole('option').allInnerTexts();
    const find = async (text: string): Promise<void> => {
      await page.keyboard.press('Control+k');
      await page.waitForSelector('.palette[open]');
      await page.keyboard.type(text);
    };
    await page.focus('#search');
    await find('');
    assert.ok((await offers('On this page')).includes('New invoice'));
    assert.ok((await offers('Other pages')).includes('Dashboards'));
    await picture(visitor, 'palette');
    await page.keyboard.press('ArrowUp');
    assert.equal(
      await page.getAttribute('#palette', 'aria-activedescendant'),
      await page.locator('.commands [role=option]').last().getAttribute('id'),
    );
    await page.keyboard.press('Escape');
    assert.equal(await page.evaluate('document.activeElement.id'), 'search');
    await find(name);
    await page.waitForSelector(`.commands [role=option]:has-text("${name}")`);
    await picture(visitor, 'palette-records');
    assert.match(await chosen(), new RegExp(`${name}\\s+Account`));
    await page.keyboard.press('Enter');
    await page.waitForURL(`${platform.baseUrl}/app/Account/${accountId}`);
    await page.waitForSelector(`h1:has-text("${name}"):focus`);
    await find('new opp');
    assert.match(await chosen(), /^New opportunity$/i);
    await page.keyboard.press('Enter');
    await page.waitForURL(/Opportunity__c\?view=new/);
    await page.goto(`${platform.baseUrl}/app/Invoice__c/${id}`);
    await shown(page);
    await find('discard');
    assert.deepEqual(await offers('On this page'), ['Discard']);
    await page.keyboard.press('Enter');
    await page.waitForSelector('.confirm, .title .badge:not(:text-is("Draft"))');
    await find('xqzw <b>');
    await page.waitForSelector('.palette [role=status]:has-text("Nothing found")');
    assert.equal(await page.getAttribute('#palette', 'aria-expanded'), 'false');
    await page.keyboard.press('Enter');
    assert.ok(await page.isVisible('.palette'));
    assert.deepEqual(complaints, []);
  });

  it('shows the requests of the page as curl and as erp', async () => {
    const visitor = await open('/app/Invoice__c?list=Open');
    const { page } = visitor;
    await page.click('.asked > button');
    await page.locator('.requests summary:has-text("/Invoice__c/query")').first().click();
    await picture(visitor, 'requests');
    const [curl = '', erp = ''] = await page.locator('.requests details[open] pre').allInnerTexts();
    assert.match(curl, /^curl -s http.*\/api\/v1\/data\/Invoice__c\/query[\s\S]*Bearer \$TOKEN/);
    assert.match(erp, /^erp data list Invoice__c --fields .* --filters /);
    assert.doesNotMatch(await page.innerText('dialog'), /eyJ/);
  });

  it('speaks German to those who do', async () => {
    const { page } = await open('/app/Invoice__c', { user: 'sue' });
    await page.route('**/api/v1/identity', async (route) => {
      const response = await route.fetch();
      const body = await response.json();
      await route.fulfill({ response, json: { ...body, user: { ...body.user, locale: 'de-DE' } } });
    });
    await page.reload();
    await shown(page);
    assert.equal(await page.innerText('h1'), 'Rechnungen');
    assert.match(await page.innerText('.records tbody tr'), /\d,\d\d\s€|\d,\d\d\s\$|\d,\d\d\s£/);
    assert.equal(await page.getAttribute('html', 'lang'), 'de');
  });

  it('shows an object without a layout, and nothing of what the user may not see', async () => {
    const { page } = await open('/app/User', { user: 'sam' });
    await page.locator('.records tbody a').first().click();
    await page.waitForSelector('.block dl');
    await page.goto(`${platform.baseUrl}/app/User?view=new`);
    await page.waitForSelector('.problem:has-text("You lack the permission for that")');
    await page.goto(`${platform.baseUrl}/app/NoSuchThing__c`);
    await page.waitForSelector('.problem:has-text("There is no such object")');
    const hidden = await invoice();
    assert.equal((await sam.get(`/data/Invoice__c/${hidden}`)).status, 404);
    await page.goto(`${platform.baseUrl}/app/Invoice__c/${hidden}`);
    await page.waitForSelector('.problem:has-text("There is no such record")');
  });

  for (const size of [PHONE, DESK])
    it(`has no findings of axe at ${size.viewport.width} px, light and dark`, async () => {
      const id = await invoice({ CustomerReference__c: 'Wesel'.repeat(9) });
      const visitor = await open('/app', { ...size, bypassCSP: true });
      const { page } = visitor;
      const seen = async (step: string): Promise<void> => {
        assert.deepEqual(await findings(page), [], step);
        await picture(visitor, `${step}-${size.viewport.width}-light`);
        await page.emulateMedia({ colorScheme: 'dark' });
        assert.deepEqual(await findings(page, 'colours'), [], `${step}, dark`);
        await picture(visitor, `${step}-${size.viewport.width}-dark`);
        await page.emulateMedia({ colorScheme: 'light' });
        const wider = Number(await page.evaluate('document.documentElement.scrollWidth')) - size.viewport.width;
        assert.ok(wider <= 0, `${step}: ${wider} px wider than the screen`);
      };
      const visitPage = async (path: string): Promise<void> => {
        await page.goto(platform.baseUrl + path);
        await shown(page);
      };
      await seen('home');
      await visitPage('/app/Invoice__c?list=Overdue');
      await press(page, 'Filter (2)');
      await seen('list');
      await visitPage(`/app/Invoice__c/${id}`);
      await page.click('.steps summary');
      await seen('record');
      await press(page, 'Discard');
      await page.waitForSelector('.history li');
      await visitPage(`/app/Invoice__c/${id}?view=edit`);
      await page.fill('#field-Amount__c', 'many');
      await press(page, 'Save');
      await page.waitForSelector('#field-Amount__c-error:visible');
      await page.fill('#field-AccountId__c', 'Customer');
      await page.waitForSelector('[role=option]');
      await seen('form');
      await page.click('.asked > button');
      await page.locator('.requests summary').first().click();
      await seen('requests');
      await visitPage(`/app/Invoice__c/${id}`);
      await page.locator('.find > button').click();
      await page.fill('#palette', 'customer');
      await page.waitForSelector('.palette [role=status]:has-text("found")');
      await seen('palette');
      await visitPage('/app/Account?view=new');
      await seen('new');
    });

  it('reports without scripts that it needs them', async () => {
    const { page } = await open('/app', { javaScriptEnabled: false });
    assert.match(await page.innerText('noscript'), /Switch on JavaScript/);
  });

  it('asks for nothing but public operations', () => {
    assert.ok(asked.size > 20);
    assert.deepEqual(
      [...asked].filter((request) => !PUBLIC.some((pattern) => pattern.test(request))),
      [],
    );
  });
});
