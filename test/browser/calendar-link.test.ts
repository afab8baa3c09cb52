/** The link to the own calendar in headless Chromium: created, copied, read by a program, revoked. */
import assert from 'node:assert/strict';
import type { Browser, Page } from 'playwright-core';
import { findings, signIn, startChromium, visit } from '../support/chromium.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

describe('the calendar link on the account page', function () {
  this.timeout(120_000);
  let platform: TestPlatform;
  let browser: Browser;
  before(async () => {
    [platform, browser] = await Promise.all([startPlatform(), startChromium()]);
  });
  after(async () => {
    await browser?.close();
    await platform?.stop();
  });

  const open = async (page: Page): Promise<void> => {
    await page.goto(`${platform.baseUrl}/account`);
    await signIn(page, 'sam@demo.example');
    await page.waitForSelector('h1:text("Your account")');
  };

  it('is shown once, copied with a button, and ends when it is revoked', async () => {
    const { context, page, complaints, strangers } = await visit(browser, platform.baseUrl, {
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    await open(page);
    await page.click('button:text("Create a link")');
    await page.waitForSelector('h1:text("Your calendar link")');
    const link = await page.inputValue('label:text("Link") + input');
    assert.match(link, /\/calendars\/[\w-]{43}\.ics$/);
    await page.focus('#link');
    assert.equal(await page.evaluate('getSelection().toString()'), link);
    await page.click('button:text("Copy the link")');
    await page.waitForSelector('[role=status]:text("Copied.")');
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), link);
    assert.equal((await fetch(link)).status, 200);
    await page.click('a:text("Back to your account")');
    await page.waitForSelector('#calendar ~ p:has-text("Whoever has the link sees your calendar")');
    assert.ok(!(await page.content()).includes('/calendars/'));
    await page.click('button:text("Revoke the link")');
    await page.waitForSelector('[role=status]:has-text("The calendar link is revoked")');
    assert.equal((await fetch(link)).status, 404);
    assert.deepEqual([complaints, strangers], [[], []]);
    await context.close();
  });

  it('can be selected and copied by hand where the browser does not do it', async () => {
    const { context, page } = await visit(browser, platform.baseUrl, { javaScriptEnabled: false });
    await open(page);
    await page.click('button:text("Create a link")');
    await page.waitForSelector('h1:text("Your calendar link")');
    assert.equal(await page.locator('button:text("Copy the link")').isVisible(), false);
    assert.equal(await page.locator('#link').isEditable(), false);
    await context.close();
  });

  for (const colorScheme of ['light', 'dark'] as const)
    it(`has no findings of axe, ${colorScheme}`, async () => {
      // axe is evaluated in the page, whose policy would forbid it.
      const { context, page } = await visit(browser, platform.baseUrl, { colorScheme, bypassCSP: true });
      await open(page);
      assert.deepEqual(await findings(page), []);
      await page.click('#calendar ~ form button');
      await page.waitForSelector('h1:text("Your calendar link")');
      assert.deepEqual(await findings(page), []);
      await context.close();
    });
});
