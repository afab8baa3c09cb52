/** The API reference in headless Chromium: signed in through the forms, with operations that are tried out. */
import assert from 'node:assert/strict';
import type { Browser, Page } from 'playwright-core';
import { findings, signIn, startChromium, type Visitor, visit } from '../support/chromium.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

/** Swagger UI names its blocks by the operation, with a backslash before each period. */
const block = (operationId: string): string => `[id="operations-Data-${operationId.replaceAll('.', '\\\\.')}"]`;
const LIST = block('data.records.list');
const CREATE = block('data.records.create');

describe('the API reference', function () {
  this.timeout(120_000);
  let platform: TestPlatform;
  let browser: Browser;
  let visitor: Visitor;
  let page: Page;
  before(async () => {
    [platform, browser] = await Promise.all([startPlatform(), startChromium()]);
  });
  beforeEach(async () => {
    visitor = await visit(browser, platform.baseUrl);
    page = visitor.page;
    page.setDefaultTimeout(15_000);
  });
  afterEach(() => visitor.context.close());
  after(async () => {
    await browser?.close();
    await platform?.stop();
  });

  /** Signs in from an open operation; the page returns to it. */
  const enter = async (access: string): Promise<void> => {
    await page.goto(`${platform.baseUrl}/api-reference#/Data/data.records.list`);
    await page.selectOption('#access', { label: access });
    await page.click('#enter');
    await signIn(page, 'sam@demo.example');
    await page.click('button[value=allow]');
    await page.waitForSelector('#leave:visible');
    await page.waitForSelector(`${LIST} button.try-out__btn`);
  };

  /** Fills in the first parameters of an operation, sends it, and returns the status. */
  const tryOut = async (operation: string, values: Record<string, string>, body?: string): Promise<string> => {
    const opened = page.locator(operation);
    if (!(await opened.locator('.opblock-body').isVisible()))
      await opened.locator('.opblock-summary-control').first().click();
    const begin = opened.locator('button.try-out__btn').first();
    if ((await begin.innerText()).trim() === 'Try it out') await begin.click();
    for (const [name, value] of Object.entries(values))
      await opened.locator(`tr[data-param-name="${name}"] input`).fill(value);
    if (body !== undefined) await opened.locator('textarea').first().fill(body);
    await opened.locator('button.execute').click();
    const status = opened.locator('.live-responses-table .response-col_status');
    await status.nth(1).waitFor();
    return (await status.nth(1).innerText()).trim();
  };

  const assertQuiet = (allowed: RegExp[] = []): void => {
    assert.deepEqual(
      visitor.complaints.filter((complaint) => !allowed.some((pattern) => pattern.test(complaint))),
      [],
    );
    assert.deepEqual(visitor.strangers, []);
  };

  it('tries an operation out with the chosen scopes, and shows no token', async () => {
    await enter('read');
    assert.equal(new URL(page.url()).hash, '#/Data/data.records.list', 'where the person was');
    assert.equal(new URL(page.url()).search, '', 'the code is not left in the address');
    assert.equal(await tryOut(LIST, { objectApiName: 'Account', take: '1' }), '200');
    assert.match(await page.locator(`${LIST} .live-responses-table`).innerText(), /"records"/);
    assert.doesNotMatch(await page.content(), /eyJ[\w-]{10}/);
    assert.deepEqual(await findings(page), []);
    assert.equal(await tryOut(CREATE, { objectApiName: 'Account' }, '{"name":"Tried Out Ltd"}'), '403');
    assertQuiet([/status of 403/]);
  });

  it('changes records when the user has allowed it, with a key of its own for each request', async () => {
    await enter('read and change');
    for (const name of ['Tried Out Ltd', 'Tried Out Twice Ltd']) {
      const created = page.waitForResponse((response) => response.request().method() === 'POST');
      assert.equal(await tryOut(CREATE, { objectApiName: 'Account' }, JSON.stringify({ name })), '201', name);
      await created;
      await page.locator(`${CREATE} button.btn-clear`).click();
    }
    assertQuiet();
  });

  it('discards the sign-in on sign-out, and with the page', async () => {
    await enter('read');
    const sent = page.waitForRequest((request) => request.url().includes('/api/v1/data/Account'));
    await tryOut(LIST, { objectApiName: 'Account' });
    const authorization = (await (await sent).allHeaders())['authorization'] ?? '';
    assert.match(authorization, /^Bearer eyJ/);
    const ask = (): Promise<Response> =>
      fetch(`${platform.baseUrl}/api/v1/data/Account?take=1`, { headers: { authorization } });
    assert.equal((await ask()).status, 200);
    assert.deepEqual(
      await page.evaluate(
        '[...Object.values(sessionStorage), ...Object.values(localStorage)].filter((it) => /eyJ/.test(it))',
      ),
      [],
    );
    await page.click('#leave');
    await page.waitForSelector('#leave', { state: 'hidden' });
    await page.waitForSelector('#operations-tag-Data');
    assert.equal(await page.locator('button.try-out__btn').count(), 0);
    assert.equal((await ask()).status, 401);
    assertQuiet();
  });

  it('reports a refused consent', async () => {
    await page.goto(`${platform.baseUrl}/api-reference`);
    await page.click('#enter');
    await signIn(page, 'sam@demo.example');
    await page.click('button[value=cancel]');
    await page.waitForSelector('#state:has-text("You have canceled the sign-in.")');
    assertQuiet();
  });

  it('offers nothing to try out when the operator disables it', async () => {
    const other = await startPlatform({ env: { API_REFERENCE_SIGN_IN: 'false' } });
    try {
      const { page: plain, complaints, context } = await visit(browser, other.baseUrl);
      await plain.goto(`${other.baseUrl}/api-reference#/Data/data.records.list`);
      await plain.waitForSelector(`${LIST} .opblock-body`);
      assert.equal(await plain.locator('#trying, button.try-out__btn').count(), 0);
      assert.deepEqual(complaints, []);
      await context.close();
    } finally {
      await other.stop();
    }
  });
});
