/** The page of administration in headless Chromium: an administrator finds out why a user may not change a record. */
import assert from 'node:assert/strict';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { findings, signIn, startChromium, type Visitor, visit } from '../support/chromium.ts';
import { type Api, api, tokenFor } from '../support/client.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

const PHONE = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true } as const;
const DESK = { viewport: { width: 1280, height: 900 } } as const;
/** Folder for screenshots of the page; absent: none are taken. */
const PICTURES = process.env['PICTURES'];

describe('the page of administration in Chromium', function () {
  this.timeout(120_000);
  let platform: TestPlatform;
  let browser: Browser;
  let ada: Api;
  let sam: string;
  let account: string;
  const visitors: Visitor[] = [];
  before(async function () {
    this.timeout(180_000);
    [platform, browser] = await Promise.all([startPlatform(), startChromium()]);
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    sam = (await api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam')).get('/identity')).body.user.id;
    const made = await ada.post('/data/Account', { name: 'Harbour Paper' });
    assert.equal(made.status, 201, made.text);
    account = made.body.id;
  });
  after(async () => {
    for (const { context } of visitors) await context.close();
    await browser?.close();
    await platform?.stop();
  });

  const open = async (path: string, user: string, options: BrowserContextOptions = {}): Promise<Visitor> => {
    const visitor = await visit(browser, platform.baseUrl, { reducedMotion: 'reduce', ...options });
    visitors.push(visitor);
    await visitor.page.goto(platform.baseUrl + path);
    await signIn(visitor.page, `${user}@demo.example`);
    await visitor.page.waitForSelector('body[data-shown]');
    return visitor;
  };
  const why = (): string => `/admin/why?user=${sam}&object=Account&record=${account}`;

  it('leads from a user and a record to what the API explains', async () => {
    const { page, complaints, strangers } = await open('/admin', 'ada');
    await page.click('.areas a[href="/admin/why"]');
    await page.click(`.found a[href$="user=${sam}"]`);
    await page.click('.found a[href$="object=Account"]');
    await page.fill('#search', 'Harbour');
    await page.press('#search', 'Enter');
    await page.click(`.found a[href$="record=${account}"]`);
    await page.waitForSelector('.verdict');
    assert.equal(page.url(), platform.baseUrl + why());
    const shown = await page.locator('.verdict').allInnerTexts();
    for (const [at, operation] of ['read', 'update', 'delete'].entries()) {
      const { body } = await ada.post(`/data/Account/${account}/access/explain`, { operation, userId: sam });
      assert.equal(shown[at]?.startsWith('May not'), !body.allowed, shown[at]);
      for (const { remedy } of body.steps) if (remedy) assert.ok(shown[at]?.includes(remedy), shown[at]);
    }
    assert.ok(shown.some((text) => text.startsWith('May not')));
    await page.goBack();
    await page.waitForSelector('#search');
    assert.deepEqual([complaints, strangers], [[], []]);
  });

  it('says in a sentence that a user may not ask about others', async () => {
    const { page } = await open(why().replace(sam, (await ada.get('/identity')).body.user.id), 'sam');
    assert.equal(await page.locator('.verdict').count(), 0);
    assert.match(await page.innerText('.problem'), /may not ask about other users|no such user or record/);
  });

  for (const size of [PHONE, DESK])
    it(`has no findings of axe at ${size.viewport.width} px, light and dark`, async () => {
      const { page } = await open('/admin', 'ada', { ...size, bypassCSP: true });
      const seen = async (step: string): Promise<void> => {
        assert.deepEqual(await findings(page), [], step);
        if (PICTURES) await page.screenshot({ path: `${PICTURES}/admin-${step}-${size.viewport.width}.png` });
        await page.emulateMedia({ colorScheme: 'dark' });
        assert.deepEqual(await findings(page, 'colours'), [], `${step}, dark`);
        await page.emulateMedia({ colorScheme: 'light' });
        const wider = Number(await page.evaluate('document.documentElement.scrollWidth')) - size.viewport.width;
        assert.ok(wider <= 0, `${step}: ${wider} px wider than the screen`);
      };
      await seen('areas');
      await page.click('.areas a[href="/admin/why"]');
      await page.waitForSelector('#search');
      await seen('search');
      await page.goto(platform.baseUrl + why());
      await page.waitForSelector('.verdict');
      await seen('why');
    });
});
