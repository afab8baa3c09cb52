/** The page of notifications in headless Chromium: a user reads, archives and chooses, and the bell counts on every page. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { findings, signIn, startChromium, type Visitor, visit } from '../support/chromium.ts';
import { type Api, api, tokenFor } from '../support/client.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { until } from '../support/until.ts';

const HOSTILE = '<img src=x onerror=alert(1)>';
const PHONE = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true } as const;
const DESK = { viewport: { width: 1280, height: 900 } } as const;
/** Folder for screenshots of the page; absent: none are taken. */
const PICTURES = process.env['PICTURES'];

describe('the page of notifications in Chromium', function () {
  this.timeout(120_000);
  let platform: TestPlatform;
  let browser: Browser;
  let ada: Api;
  let mia: Api;
  const visitors: Visitor[] = [];
  before(async function () {
    this.timeout(180_000);
    [platform, browser] = await Promise.all([startPlatform(), startChromium()]);
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    mia = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia'));
  });
  /** No notification of one test is in the list of the next. */
  beforeEach(async () => {
    const { records } = (await mia.get('/notifications?take=200')).body;
    for (const { notificationId } of records)
      await mia.patch(`/notifications/${notificationId}`, { status: 'archived' });
  });
  after(async () => {
    for (const { context } of visitors) await context.close();
    await browser?.close();
    await platform?.stop();
  });

  const notify = async (title: string, more: object = {}, body = ''): Promise<void> => {
    const recipients = [(await mia.get('/identity')).body.user.id];
    const reply = await ada.post('/notifications', { type: 'Told', recipients, data: { title, body }, ...more });
    assert.equal(reply.status, 201, reply.text);
  };
  const open = async (path: string, options: BrowserContextOptions = {}): Promise<Visitor> => {
    const visitor = await visit(browser, platform.baseUrl, { reducedMotion: 'reduce', ...options });
    visitors.push(visitor);
    await visitor.page.goto(platform.baseUrl + path);
    if (options.javaScriptEnabled === false) return visitor;
    await signIn(visitor.page, 'mia@demo.example');
    await visitor.page.waitForSelector('body[data-shown]');
    return visitor;
  };
  const picture = async ({ page }: Visitor, name: string): Promise<void> => {
    if (!PICTURES) return;
    mkdirSync(PICTURES, { recursive: true });
    await page.screenshot({ path: `${PICTURES}/${name}.png`, fullPage: true });
  };
  const titles = (page: Page): Promise<string[]> => page.locator('.notifications h2').allInnerTexts();
  const entry = (page: Page, title: string) => page.locator('.notifications li', { hasText: title });
  const press = (page: Page, title: string, label: string): Promise<void> =>
    entry(page, title).getByRole('button', { name: label }).click();
  const follow = async (page: Page, link: string, address: string): Promise<void> => {
    await page.click(`.tabs a:text-is("${link}")`);
    await page.waitForURL(platform.baseUrl + address);
    await page.waitForSelector('body[data-shown]');
  };
  const bell = (page: Page, name: string): Promise<void> =>
    page.getByRole('link', { name, exact: true }).waitFor({ state: 'visible' });
  const unread = async (): Promise<number> => (await mia.get('/notifications')).body.unreadCount;

  it('shows notifications as text, the newest first, and says what comes to an empty list', async () => {
    const visitor = await open('/notifications');
    const { page, complaints, strangers } = visitor;
    assert.match(await page.innerText('.empty'), /You have no notifications\s+You are notified when/);
    await bell(page, 'Notifications');
    await picture(visitor, 'empty');
    const account = await ada.post('/data/Account', { name: `Acme ${HOSTILE}` });
    await notify('First');
    const record = { objectApiName: 'Account', id: account.body.id };
    await notify(`Count ${HOSTILE}`, { severity: 'critical', record }, `Until Friday.\n${HOSTILE}`);
    await page.reload();
    await page.waitForSelector('.notifications');
    assert.deepEqual(await titles(page), [`Count ${HOSTILE}`, 'First']);
    assert.match(
      await entry(page, 'Count').innerText(),
      /^Unread\s+Critical[\s\S]*Acme <img[\s\S]*Until Friday\.\n<img/,
    );
    assert.equal(await page.locator('main img').count(), 0);
    assert.equal(await entry(page, 'Count').locator(`a[href="/app/Account/${account.body.id}"]`).count(), 1);
    await bell(page, 'Notifications, 2 unread');
    assert.deepEqual([complaints, strangers], [[], []]);
  });

  it('marks as read and unread, archives, and moves back', async () => {
    await notify('Stays');
    await notify('Goes');
    const { page } = await open('/notifications?view=unread');
    await press(page, 'Goes', 'Mark as read');
    await bell(page, 'Notifications, 1 unread');
    await press(page, 'Goes', 'Mark as unread');
    await bell(page, 'Notifications, 2 unread');
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Mark as read');
    await press(page, 'Goes', 'Archive');
    await page.waitForSelector('#announcements:text("Archived")', { state: 'attached' });
    await bell(page, 'Notifications, 1 unread');
    await follow(page, 'Archived', '/notifications?view=archived');
    assert.equal((await titles(page))[0], 'Goes');
    await press(page, 'Goes', 'Move back from the archive');
    await page.waitForSelector('#announcements:text("Marked as read")', { state: 'attached' });
    await follow(page, 'All', '/notifications');
    assert.deepEqual(await titles(page), ['Goes', 'Stays']);
    await follow(page, 'Unread', '/notifications?view=unread');
    assert.deepEqual(await titles(page), ['Stays']);
  });

  it('marks all as read that were shown, and none that came since', async () => {
    await notify('Seen');
    await notify('Seen as well');
    const { page } = await open('/notifications');
    await notify('Unseen');
    await page.click('button:has-text("Mark all as read")');
    await page.waitForSelector('#announcements:text("2 notifications marked as read")', { state: 'attached' });
    await page.waitForSelector('.notifications li:has-text("Unseen")');
    await bell(page, 'Notifications, 1 unread');
    assert.deepEqual(await page.locator('.unread h2').allInnerTexts(), ['Unseen']);
    assert.equal(await unread(), 1);
  });

  it('shows more by and by, and errors where they arise', async () => {
    for (let n = 1; n <= 27; n++) await notify(`Number ${n}.`);
    const { page } = await open('/notifications');
    assert.equal((await titles(page)).length, 25);
    await page.route('**/api/v1/notifications?take=25&cursor=*', (route) => route.abort());
    await page.click('button:has-text("Show more")');
    await page.waitForSelector('.problem:has-text("cannot be reached")');
    await page.unroute('**/api/v1/notifications?take=25&cursor=*');
    await page.click('button:has-text("Show more")');
    await entry(page, 'Number 1.').waitFor();
    assert.equal(await page.locator('.problem').count(), 0);
    assert.deepEqual((await titles(page)).slice(-2), ['Number 2.', 'Number 1.']);
    assert.equal(await page.locator('button:has-text("Show more")').isVisible(), false);
    await page.route('**/api/v1/notifications/*', (route) => route.abort());
    await press(page, 'Number 1.', 'Archive');
    await entry(page, 'Number 1.').locator('.problem:has-text("cannot be reached")').waitFor();
  });

  it('leads to the approval that an agent asks for', async () => {
    const { user } = (await mia.get('/identity')).body;
    const record = `/data/User/${user.id}`;
    const etag = (await ada.get(record)).headers.get('etag') ?? '';
    const promoted = await ada.patch(record, { profileApiName: 'Administrator' }, { etag });
    assert.equal(promoted.status, 200, promoted.text);
    const { runId } = (await ada.post('/agent/runs', { agentKey: 'tidy', goal: 'Tidy up' })).body;
    const { id } = (await ada.post('/data/Account', { name: 'Old' })).body;
    const headers = { 'x-agent-run-id': runId, 'if-match': '"1"' };
    const { approvalId } = (await ada.delete(`/data/Account/${id}`, { headers })).body.details;
    const asked = '/notifications?status=unread&type=agentApprovalRequested';
    await until(async () => (await mia.get(asked)).body.records.length > 0);
    const { page } = await open('/notifications');
    await page.click(`.actions a[href="/approvals/${approvalId}"]`);
    await page.waitForURL(`${platform.baseUrl}/approvals/${approvalId}`);
    await page.waitForSelector('#decision');
    await bell(page, 'Notifications, 1 unread');
  });

  it('stores preferences and quiet hours, except for those that are locked', async () => {
    await notify('Down', { type: 'ServerDown' });
    const [start, end] = ['09', '10'].map((hour) => ({
      dateTime: `2027-03-01T${hour}:00:00`,
      timezone: 'Europe/Berlin',
    }));
    const attendees = [{ userId: (await mia.get('/identity')).body.user.id }];
    const invited = await ada.post('/calendar/events', { title: 'Review', start, end, attendees });
    assert.equal(invited.status, 201, invited.text);
    await until(async () => (await mia.get('/notifications?type=calendarInvitation')).body.records.length > 0);
    const { page, complaints } = await open('/notifications');
    assert.equal(await entry(page, 'Invited: Review').locator('a[href="/account#calendar"]').count(), 1);
    const [account, leave] = [page.locator('header a[href="/account"]'), page.locator('#leave')];
    assert.equal((await account.boundingBox())?.y, (await leave.boundingBox())?.y, 'the last link wraps alone');
    await follow(page, 'Preferences', '/notifications?view=preferences');
    await page.waitForSelector('[aria-label="Mail: Server down"]');
    assert.ok(await page.isDisabled('[aria-label="Mail: An agent asks for approval"]'));
    await page.uncheck('[aria-label="Mail: A record was assigned to you"]');
    await page.uncheck('[aria-label="Webhook: Told"]');
    await page.check('#quiet');
    await page.fill('#from', '21:30');
    await page.click('button:has-text("Save")');
    await page.waitForSelector('.done');
    const { records, quietHours } = (await mia.get('/notifications/preferences')).body;
    const channels = (wanted: string): unknown =>
      records.find(({ type }: { type: string }) => type === wanted).channels;
    assert.deepEqual(channels('recordAssigned'), { inApp: true, email: false, push: false, webhook: true });
    assert.deepEqual(channels('Told'), { inApp: true, email: true, push: false, webhook: false });
    assert.deepEqual(quietHours, { from: '21:30', to: '07:00' });
    await page.uncheck('#quiet');
    await page.click('button:has-text("Save")');
    await until(async () => (await mia.get('/notifications/preferences')).body.quietHours === null);
    assert.deepEqual(complaints, []);
  });

  it('stores whether mails come at once or as a digest', async () => {
    const digest = async (): Promise<unknown> => (await mia.get('/me')).body.preferences.emailDigest;
    assert.equal(await digest(), null);
    const { page, complaints } = await open('/notifications?view=preferences');
    assert.ok(await page.isChecked('#digest-off'), 'who has not chosen gets mails at once');
    await page.click('button:has-text("Save")');
    await page.waitForSelector('.done');
    assert.equal(await digest(), null, 'what is not changed is not stored');
    for (const label of ['One mail a week, on Monday at eight', 'One mail a day, at eight in the morning']) {
      await page.getByLabel(label).check();
      await page.click('button:has-text("Save")');
      await until(async () => (await digest()) === (label.includes('week') ? 'weekly' : 'daily'));
      await page.waitForSelector('.done');
    }
    await page.reload();
    await page.waitForSelector('body[data-shown]');
    assert.ok(await page.isChecked('#digest-daily'));
    await page.check('#digest-off');
    await page.click('button:has-text("Save")');
    await until(async () => (await digest()) === 'off');
    assert.deepEqual(complaints, []);
  });

  it('counts on the other pages too, every minute while they are visible', async () => {
    await notify('For the bell');
    const visitor = await visit(browser, platform.baseUrl);
    visitors.push(visitor);
    const { page, complaints } = visitor;
    await page.clock.install();
    await page.goto(`${platform.baseUrl}/dashboards`);
    await signIn(page, 'mia@demo.example');
    await bell(page, 'Notifications, 1 unread');
    await notify('One more');
    await page.clock.runFor(60_000);
    await bell(page, 'Notifications, 2 unread');
    await picture(visitor, 'bell-on-dashboards');
    for (const path of ['/import', '/approvals']) {
      await page.goto(platform.baseUrl + path);
      await bell(page, 'Notifications, 2 unread');
    }
    assert.deepEqual(complaints, []);
  });

  it('has no bell where the token does not cover notifications', async () => {
    const visitor = await visit(browser, platform.baseUrl);
    visitors.push(visitor);
    const { page, complaints } = visitor;
    await page.route('**/oauth2/token', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), scope: 'analytics:read analytics:run' } });
    });
    await page.goto(`${platform.baseUrl}/dashboards`);
    await signIn(page, 'mia@demo.example');
    await page.waitForSelector('.dashboards, .empty');
    assert.equal(await page.locator('#bell').count(), 0);
    assert.deepEqual(complaints, []);
  });

  for (const size of [PHONE, DESK])
    it(`has no findings of axe at ${size.viewport.width} px, light and dark`, async () => {
      await notify('Stocktake of the warehouse in Wesel', { severity: 'warning' }, 'Please count until Friday.');
      await notify(
        'Payment run stopped',
        { severity: 'critical' },
        `The bank has refused it. ${'Reference'.repeat(20)}`,
      );
      await notify('Account assigned to you', {}, 'Ada Lindqvist made you the owner of the record.');
      await notify('Price list shared with you');
      const visitor = await open('/notifications', { ...size, bypassCSP: true });
      const { page } = visitor;
      await press(page, 'Account assigned', 'Mark as read');
      await press(page, 'Price list', 'Archive');
      await page.waitForSelector('.gone');
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
      await seen('list');
      await follow(page, 'Preferences', '/notifications?view=preferences');
      await seen('preferences');
    });

  it('can be used with the keyboard', async () => {
    await notify('Typed');
    const { page } = await open('/notifications');
    await page.focus('.tabs a:text-is("Unread")');
    await page.keyboard.press('Enter');
    await page.waitForURL(`${platform.baseUrl}/notifications?view=unread`);
    await page.waitForSelector('body[data-shown]');
    assert.equal(await page.evaluate('document.activeElement.tagName'), 'H1');
    await entry(page, 'Typed').getByRole('button', { name: 'Archive' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForSelector('.gone button:focus');
  });

  it('reports without scripts that it needs them', async () => {
    const { page } = await open('/notifications', { javaScriptEnabled: false });
    assert.match(await page.innerText('noscript'), /Switch on JavaScript/);
  });
});
