/** The dashboards of the ERP template, over the sample records, as different users see them in headless Chromium. */
import assert from 'node:assert/strict';
import type { Browser, Page } from 'playwright-core';
import { findings, signIn, startChromium, type Visitor, visit } from '../support/chromium.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { until } from '../support/until.ts';

/** Time from the first call of the page, which names the dashboard, to the last widget shown. */
const OPENS_WITHIN_MS = 1_000;
/** Allowance for a process that was just started, on a machine that runs other suites as well. */
const SLOW = Number(process.env['CI'] === 'true') * 2 + 1;

describe('the dashboards of the demo in Chromium', () => {
  let platform: TestPlatform;
  let browser: Browser;
  const visitors = new Map<string, Visitor>();
  before(async () => {
    [platform, browser] = await Promise.all([startPlatform(), startChromium()]);
  });
  after(async () => {
    for (const { context } of visitors.values()) await context.close();
    await browser?.close();
    await platform?.stop();
  });

  /** The visitor of an earlier test, or a new one who signs in and sees the list. */
  const start = async (username: string): Promise<Visitor> => {
    const known = visitors.get(username);
    if (known) return known;
    const visitor = await visit(browser, platform.baseUrl, { reducedMotion: 'reduce' });
    visitors.set(username, visitor);
    await visitor.page.goto(`${platform.baseUrl}/dashboards`);
    await signIn(visitor.page, username);
    await visitor.page.waitForSelector('.dashboards, .empty');
    return visitor;
  };
  const names = (page: Page): Promise<string[]> => page.locator('.dashboards a').allInnerTexts();
  const open = async (page: Page, name: string): Promise<void> => {
    if (!(await page.locator('.dashboards').count())) await page.click('.brand');
    await page.click(`.dashboards a:has-text("${name}")`);
    await page.waitForSelector('body[data-shown]');
  };

  it('lists the dashboards shared with each user', async () => {
    const [mia, fay] = await Promise.all([start('mia@demo.example'), start('fay@demo.example')]);
    assert.deepEqual(await names(mia.page), ['Pipeline', 'Receivables', 'Sales overview']);
    assert.deepEqual(await names(fay.page), ['Receivables']);
  });

  it('draws every widget of each, with values in it', async () => {
    const { page, complaints } = await start('mia@demo.example');
    for (const [name, widgets] of [
      ['Sales overview', 12],
      ['Receivables', 10],
      ['Pipeline', 9],
    ] as const) {
      await open(page, name);
      assert.equal(await page.locator('.widget').count(), widgets, name);
      assert.equal(await page.locator('body').getAttribute('data-shown'), String(widgets), name);
      assert.deepEqual(await page.locator('.widget .problem, .widget .empty').allInnerTexts(), [], name);
      assert.deepEqual(complaints, [], name);
    }
  });

  it('opens one of twelve widgets in one round of calls, in under a second, with and without cached results', async () => {
    const { page } = await start('mia@demo.example');
    const asked: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/run')) asked.push(request.url());
    });
    const took: Record<'opened' | 'computed', number[]> = { opened: [], computed: [] };
    const best = (): number => Math.max(Math.min(...took.opened), Math.min(...took.computed));
    // A busy machine needs more attempts; a page that is slow by itself is so each time.
    for (let round = 0; round < 30 && (round < 1 || best() >= OPENS_WITHIN_MS * SLOW); round++) {
      await page.click('.brand');
      await page.waitForSelector('.dashboards');
      asked.length = 0;
      let started = performance.now();
      await open(page, 'Sales overview');
      took.opened.push(performance.now() - started);
      assert.equal(asked.length, 12);
      started = performance.now();
      await page.click('button.small');
      await page.waitForSelector('body[data-shown]');
      took.computed.push(performance.now() - started);
      assert.equal(asked.length, 24);
    }
    for (const [how, milliseconds] of Object.entries(took))
      assert.ok(
        Math.min(...milliseconds) < OPENS_WITHIN_MS * SLOW,
        `${how} in ${milliseconds.map(Math.round).join(', ')} ms`,
      );
  });

  it('shows a representative their own part, and that there may be more', async () => {
    const mia = await start('mia@demo.example');
    const sam = await start('sam@demo.example');
    const invoices = async ({ page }: Visitor): Promise<[number, string]> => {
      await open(page, 'Sales overview');
      const widget = page.locator('.widget', { hasText: 'Invoices by status' });
      await widget.locator('.toggle').click();
      const total = await widget.locator('tfoot').innerText();
      return [Number(total.replace(/\D/g, '')), await page.innerText('main')];
    };
    const [[all], [own, text]] = [await invoices(mia), await invoices(sam)];
    assert.ok(own > 0 && own < all, `${own} of ${all}`);
    assert.equal(text.split('Only records that you have access to are counted.').length, 2, 'once for all widgets');
  });

  it('names customers and choices, and offers them as filters', async () => {
    const { page } = await start('mia@demo.example');
    await open(page, 'Sales overview');
    const table = await page.locator('.kind-table tbody').first().innerText();
    assert.doesNotMatch(table, /[0-9a-f]{8}-[0-9a-f]{4}/, 'names, not ids');
    const choices = await page.locator('datalist[id="filter.region-choices"] option').count();
    assert.ok(choices > 1);
    assert.equal(await page.locator('input[name="filter.since"]').getAttribute('type'), 'date');
    const before = await page.locator('.big').first().innerText();
    // The sample records end in the week of their creation.
    const since = new Date(Date.now() - 60 * 86_400_000).toISOString().slice(0, 10);
    await page.fill('input[name="filter.since"]', since);
    await page.click('.filters button[type=submit]');
    await page.waitForSelector('body[data-shown]');
    assert.notEqual(await page.locator('.big').first().innerText(), before);
    assert.equal(new URL(page.url()).search, `?filter.since=${since}`);
  });

  it('leads from a value of a table, a figure or a chart to exactly the records behind it', async () => {
    const visitor = await visit(browser, platform.baseUrl, { reducedMotion: 'reduce' });
    visitors.set('to records', visitor);
    const { page } = visitor;
    await page.goto(`${platform.baseUrl}/dashboards`);
    await signIn(page, 'mia@demo.example');
    await page.waitForSelector('.dashboards');
    const listed = async (): Promise<string> => {
      await page.waitForURL(/\/app\//);
      await page.waitForSelector('.records');
      let found: string | undefined;
      await until(async () => {
        const count = page.getByText('Count all');
        if (await count.isVisible()) await count.click();
        found = /^(?:[\d,]+ of (?=.* shown$)|(?=.* records?$))([\d,]+)/.exec(
          await page.innerText('.figures span'),
        )?.[1];
        return found !== undefined;
      });
      return found!;
    };
    const back = async (): Promise<void> => {
      await page.goBack();
      await page.waitForSelector('body[data-shown]');
    };
    await open(page, 'Pipeline');
    const cell = page.locator('.kind-pivot tbody td a').first();
    const deals = await cell.innerText();
    await cell.click();
    assert.equal(await listed(), deals, 'by source and stage');
    await back();
    const figure = page.locator('.kind-metric .big a').first();
    const openDeals = await figure.innerText();
    await figure.click();
    assert.equal(await listed(), openDeals, 'with the conditions of the widget');
    await back();
    await open(page, 'Sales overview');
    const chart = page.locator('.widget', { hasText: 'Orders by channel' });
    await chart.locator('.toggle').click();
    const orders = await chart.locator('tbody td').first().innerText();
    await chart.locator('.toggle').click();
    await chart.locator('canvas').focus();
    for (const key of ['ArrowRight', 'Enter']) await page.keyboard.press(key);
    assert.equal(await listed(), orders, 'by keyboard, of a bar');
    await back();
    const box = (await chart.locator('canvas').boundingBox())!;
    // The bar of the first channel, just above the axis.
    await chart.locator('canvas').click({ position: { x: box.width * 0.22, y: box.height * 0.85 } });
    assert.equal(await listed(), orders, 'by pointing at the bar');
  });

  it('has no serious findings of axe over real values', async () => {
    const visitor = await visit(browser, platform.baseUrl, { reducedMotion: 'reduce', bypassCSP: true });
    visitors.set('with axe', visitor);
    const { page } = visitor;
    await page.goto(`${platform.baseUrl}/dashboards`);
    await signIn(page, 'mia@demo.example');
    for (const name of ['Sales overview', 'Receivables', 'Pipeline']) {
      await page.waitForSelector('.dashboards');
      await open(page, name);
      assert.deepEqual(await findings(page), [], name);
      await page.click('.brand');
    }
  });
});
