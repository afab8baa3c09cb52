/** Every page in headless Chromium, in light and dark, on a desktop and on a phone of 360 pixels. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { call } from '../../contracts/call.ts';
import { findings, signIn, startChromium, visit } from '../support/chromium.ts';
import { api, tokenFor } from '../support/client.ts';
import { folderOfMails, linkIn } from '../support/mail.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

const PHONE = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true } as const;
const DESK = { viewport: { width: 1280, height: 900 } } as const;

/** Pages for all visitors, and those that mia opens. `/account` redirects all others to the sign-in. */
const OPEN = [
  '/',
  '/nothing/here',
  '/oauth2/nothing',
  '/account',
  '/device',
  '/password/forgotten',
  '/password/unknown',
  '/account/address/unknown',
  '/versions/latest/docs/',
  '/versions/latest/docs/guides/first-request',
  '/versions/latest/docs/reference/limits',
  '/versions/latest/docs/reference/metadata',
  '/versions/latest/docs/errors/ETAG_MISMATCH',
  '/versions/latest/docs/operations/metadata.deployments.cancel',
  '/api-reference',
];
/** Pages behind the links in mails, and the page of a suspended tenant, by their purpose. */
const LINKED = [
  'a password to choose',
  'an address to confirm',
  'a changed address to undo',
  'a suspended tenant',
] as const;
const SIGNED_IN = ['/account', '/app', '/dashboards', '/events', '/import', '/notifications', '/oauth2/logout'];

interface Figures {
  bytes: number;
  requests: number;
  firstPaint: number;
}

/** Since the navigation: bytes received, number of requests, and time of the first paint. */
const FIGURES = `new Promise((done) => {
  const loaded = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  const bytes = loaded.reduce((sum, { transferSize }) => sum + transferSize, 0);
  new PerformanceObserver((paints) => {
    const first = paints.getEntriesByName('first-contentful-paint')[0];
    if (first) done({ bytes, requests: loaded.length, firstPaint: Math.round(first.startTime) });
  }).observe({ type: 'paint', buffered: true });
})`;

describe('every page in Chromium', function () {
  this.timeout(300_000);
  let platform: TestPlatform;
  let browser: Browser;
  let signedIn: NonNullable<BrowserContextOptions['storageState']>;
  let dataDir: string;
  const figures: string[] = [];
  const links = new Map<string, string>();
  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'erp-test-pages-'));
    [platform, browser] = await Promise.all([startPlatform({ env: { DATA_DIR: dataDir } }), startChromium()]);
    await receiveLinks();
    const { page, context } = await visit(browser, platform.baseUrl);
    await page.goto(`${platform.baseUrl}/account`);
    await signIn(page, 'mia@demo.example');
    await page.waitForSelector('h1:text("Your account")');
    signedIn = await context.storageState();
    await context.close();
  });
  after(async () => {
    await browser?.close();
    await platform?.stop();
    await rm(dataDir, { recursive: true, force: true });
    if (figures.length > 0) process.stdout.write(`\n    bytes, requests, first paint:\n${figures.join('')}`);
  });

  /** Invites a user, changes another user's address, and suspends the tenant of an invited user. */
  async function receiveLinks(): Promise<void> {
    const mails = folderOfMails(dataDir);
    const [ada, eve] = (await Promise.all(['ada', 'eve'].map((name) => tokenFor(platform.baseUrl, name)))).map(
      (token) => api(platform.baseUrl, token),
    );
    const received = async (name: (typeof LINKED)[number], to: string): Promise<void> => {
      links.set(name, new URL(linkIn(await mails.next({ to }))).pathname);
    };
    for (const [who, domain] of [
      [ada!, 'demo.example'],
      [eve!, 'acme.example'],
    ] as const) {
      const [username, email] = [`new.colleague@${domain}`, `new.colleague@mail.${domain}`];
      const body = { username, email, displayName: 'New Colleague', profileApiName: 'Minimal', active: true };
      const { status, text } = await who.post('/data/User', body);
      assert.equal(status, 201, text);
      await received(who === ada ? 'a password to choose' : 'a suspended tenant', email);
    }
    await call(platform.broker, 'metadata.tenants.suspend', { key: 'acme', reason: 'a test' });
    const where = encodeURIComponent(JSON.stringify({ username: 'sam@demo.example' }));
    const { id, email } = (await ada!.get(`/data/User?where=${where}`)).body.records[0];
    const { headers } = await ada!.get(`/data/User/${id}`);
    const to = 'somebody.with.a.long.name@another-mailbox.example';
    const { status, text } = await ada!.patch(`/data/User/${id}`, { email: to }, { etag: headers.get('etag')! });
    assert.equal(status, 200, text);
    await received('an address to confirm', to);
    await received('a changed address to undo', email);
  }

  const opened = async (page: Page, name: string): Promise<void> => {
    const path = links.get(name) ?? name;
    await page.goto(platform.baseUrl + path, { waitUntil: 'load' });
    if (path === '/dashboards') await page.waitForSelector('.dashboards, .empty');
    if (['/app', '/events', '/import', '/notifications'].includes(path)) await page.waitForSelector('body[data-shown]');
    if (path === '/api-reference') {
      await page.click('#operations-tag-Data');
      await page.locator('.opblock-post .opblock-summary-control').first().click();
      await page.waitForSelector('.opblock-post .responses-wrapper');
      // Swagger UI draws parts of an operation later, greyed out until then.
      await page.waitForSelector('.loading-container, .opblock-loading-animation', { state: 'detached' });
    }
  };

  for (const [who, paths] of [
    ['all visitors', OPEN],
    ['recipients of its link', LINKED],
    ['signed-in users', SIGNED_IN],
  ] as const)
    for (const path of paths)
      it(`${path}, for ${who}`, async () => {
        const cookies = who === 'signed-in users' ? { storageState: signedIn } : {};
        for (const size of [DESK, PHONE]) {
          const where = `${path} at ${size.viewport.width} px`;
          // axe is evaluated in the page, whose policy would forbid it.
          const options = { ...size, ...cookies, bypassCSP: true, reducedMotion: 'reduce' } as const;
          const { page, context, strangers } = await visit(browser, platform.baseUrl, options);
          await opened(page, path);
          if (size === DESK) {
            const { bytes, requests, firstPaint } = (await page.evaluate(FIGURES)) as Figures;
            figures.push(`    ${path.padEnd(48)} ${bytes} B, ${requests}, ${firstPaint} ms\n`);
          }
          assert.deepEqual(await findings(page), [], where);
          // A phone makes its window as wide as the page.
          const wider = Number(await page.evaluate('document.documentElement.scrollWidth')) - size.viewport.width;
          assert.ok(wider <= 0, `${where}: ${wider} px wider than the screen`);
          await page.emulateMedia({ colorScheme: 'dark' });
          assert.deepEqual(await findings(page, 'colours'), [], `${where}, dark`);
          assert.deepEqual(strangers, [], where);
          await context.close();
        }
      });

  for (const size of [DESK, PHONE])
    it(`the documents can be searched at ${size.viewport.width} px, by keyboard`, async () => {
      const options = { ...size, colorScheme: 'dark', bypassCSP: true } as const;
      const { page, context } = await visit(browser, platform.baseUrl, options);
      await opened(page, '/versions/latest/docs/reference/limits');
      await page.fill('#site-search-field', 'ETAG_MISMATCH');
      await page.waitForSelector('#site-results a');
      assert.deepEqual(await findings(page), []);
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Enter');
      await page.waitForSelector('h1:text("ETAG_MISMATCH")');
      await context.close();
    });

  it('examples in the documents name this address, and are copied by keyboard', async () => {
    const permissions = ['clipboard-read', 'clipboard-write'];
    const { page, context } = await visit(browser, platform.baseUrl, { permissions });
    await opened(page, '/versions/latest/docs/guides/first-request');
    const address = `API=${platform.baseUrl}/api/v1`;
    const example = page.locator('.example', { hasText: address }).first();
    await example.locator('.copy').focus();
    await page.keyboard.press('Enter');
    await page.waitForSelector('.copy:text("Copied")');
    const copied = String(await page.evaluate('navigator.clipboard.readText()'));
    assert.ok(copied.includes(address), copied);
    assert.equal(copied, await example.locator('pre').textContent());
    assert.doesNotMatch(await page.innerText('article'), /localhost:3000/);
    await context.close();
  });

  it('the sections of a document are beside it, and on a phone above it on request', async () => {
    for (const size of [DESK, PHONE]) {
      const { page, context } = await visit(browser, platform.baseUrl, size);
      await opened(page, '/versions/latest/docs/reference/records');
      const sections = page.locator('.contents a');
      if (size === PHONE) {
        assert.equal(await sections.first().isVisible(), false);
        await page.click('.contents summary');
      }
      assert.equal(await sections.first().isVisible(), true);
      await sections.last().click();
      assert.match(page.url(), /#[\w-]+$/);
      await context.close();
    }
  });

  it('none violates its own policy', async () => {
    const { page, context, complaints } = await visit(browser, platform.baseUrl);
    for (const path of [...OPEN, ...LINKED]) await opened(page, path);
    // The pages about errors are answered with the error's status.
    assert.deepEqual(
      complaints.filter((text) => !/status of (?:403|404|410)/.test(text)),
      [],
    );
    await context.close();
  });

  it('pages behind links state their purpose, and can be used by keyboard alone', async () => {
    const { page, context } = await visit(browser, platform.baseUrl);
    const shown = async (name: (typeof LINKED)[number], says: string): Promise<void> => {
      await opened(page, name);
      const text = await page.locator('main').innerText();
      for (const part of says.split(' … ')) assert.ok(text.includes(part), `${name}: ${part} in ${text}`);
    };
    const press = async (...keys: string[]): Promise<void> => {
      for (const key of keys) await page.keyboard.press(key);
    };
    await shown('a suspended tenant', 'Access is suspended … Nothing is lost');
    await shown(
      'a changed address to undo',
      'for sam@demo.example … somebody.with.a.long.name@another-mailbox.example',
    );
    await shown('an address to confirm', 'for sam@demo.example … somebody.with.a.long.name@another-mailbox.example');
    await page.focus('a');
    await press('Tab', 'Enter');
    await page.waitForSelector('h1.done');
    await shown('a password to choose', 'for new.colleague@demo.example');
    await page.keyboard.type('a few words in a row');
    await press('Tab');
    await page.keyboard.type('a few words in a row');
    await press('Enter');
    await page.waitForSelector('h1:text("Your password is set")');
    for (const path of ['/dashboards', '/account'])
      assert.ok(await page.locator(`main a[href="${path}"]`).count(), path);
    await context.close();
  });

  it('prints omit the header, and use paper colours', async () => {
    const { page, context } = await visit(browser, platform.baseUrl, { colorScheme: 'dark', bypassCSP: true });
    await opened(page, '/');
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    assert.equal(await page.locator('header nav').isVisible(), false);
    assert.equal(
      await page.evaluate('getComputedStyle(document.documentElement).backgroundColor'),
      'rgb(255, 255, 255)',
    );
    assert.equal(await page.evaluate('getComputedStyle(document.querySelector("h1")).color'), 'rgb(0, 0, 0)');
    await context.close();
  });
});
