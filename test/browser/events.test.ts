/** The page of webhooks in headless Chromium: a user sets one up, tries it out, and sees what became of each delivery. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
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

describe('the page of webhooks in Chromium', function () {
  this.timeout(120_000);
  let platform: TestPlatform;
  let browser: Browser;
  let server: Server;
  let host: string;
  let mia: Api;
  let sql: pg.Client;
  /** Status by path; 200 elsewhere. */
  const answers = new Map<string, number>();
  const received: { path: string; event: unknown }[] = [];
  const visitors: Visitor[] = [];
  before(async function () {
    this.timeout(180_000);
    server = createServer(async (request, response) => {
      let text = '';
      for await (const chunk of request) text += chunk;
      const path = request.url ?? '';
      received.push({ path, event: JSON.parse(text) });
      response.writeHead(answers.get(path) ?? 200, { 'content-type': 'text/plain' }).end(`Seen ${HOSTILE}`);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    [platform, browser] = await Promise.all([startPlatform({ env: { WEBHOOK_PRIVATE_HOSTS: host } }), startChromium()]);
    mia = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia'));
    sql = new pg.Client({ connectionString: platform.database.url });
    await sql.connect();
  });
  /** No webhook of one test is in the list of the next. */
  beforeEach(async () => {
    for (const { subscriptionId } of (await mia.get('/events/subscriptions?take=200')).body.records) {
      const path = `/events/subscriptions/${subscriptionId}`;
      await mia.delete(path, { etag: (await mia.get(path)).headers.get('etag')! });
    }
  });
  after(async () => {
    for (const { context } of visitors) await context.close();
    await sql?.end();
    await browser?.close();
    await platform?.stop();
    server?.close();
  });

  const subscribe = async (path: string, more: object = {}): Promise<string> => {
    const made = await mia.post('/events/subscriptions', {
      ...{
        name: `Shop ${path}`,
        url: `http://${host}${path}`,
        eventTypes: ['data.record.created'],
        objects: ['Account'],
      },
      ...more,
    });
    assert.equal(made.status, 201, made.text);
    return made.body.subscriptionId;
  };
  const deliveries = async (id: string) => (await mia.get(`/events/subscriptions/${id}/deliveries`)).body.records;
  const tried = (id: string): Promise<void> => until(async () => (await deliveries(id)).length > 0);
  const account = async (name = 'Harbour Paper'): Promise<void> => {
    assert.equal((await mia.post('/data/Account', { name })).status, 201);
  };
  const open = async (path: string, options: BrowserContextOptions = {}): Promise<Visitor> => {
    const visitor = await visit(browser, platform.baseUrl, { reducedMotion: 'reduce', ...options });
    visitors.push(visitor);
    await visitor.page.goto(platform.baseUrl + path);
    if (options.javaScriptEnabled === false) return visitor;
    await signIn(visitor.page, 'mia@demo.example');
    await shown(visitor.page);
    return visitor;
  };
  const shown = async (page: Page): Promise<void> => {
    await page.waitForSelector('body[data-shown]');
  };
  const press = (page: Page, name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click();
  const picture = async ({ page }: Visitor, name: string): Promise<void> => {
    if (!PICTURES) return;
    mkdirSync(PICTURES, { recursive: true });
    await page.screenshot({ path: `${PICTURES}/events-${name}.png`, fullPage: true });
  };

  it('leads from an empty list to a webhook, whose secret is shown once', async () => {
    const visitor = await open('/events', { permissions: ['clipboard-read', 'clipboard-write'] });
    const { page, complaints, strangers } = visitor;
    assert.match(await page.innerText('.empty'), /You have no webhooks/);
    await picture(visitor, 'empty');
    await page.click('.empty a:text-is("Set up a webhook")');
    await page.waitForSelector('#url');
    await page.fill('#name', `Shop ${HOSTILE}`);
    await page.fill('#url', `http://${host}/new`);
    await page.uncheck('input[value="data.record.updated"]');
    await page.check('input[value="Account"]');
    await page.check('#ordering-perRecord');
    await press(page, 'Create the webhook');
    await page.waitForSelector('.secret');
    const secret = await page.inputValue('#copied-secret');
    assert.match(secret, /^whsec_/);
    await press(page, 'Copy the secret');
    await page.waitForSelector('text=Secret copied');
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), secret);
    await picture(visitor, 'secret');
    const [made] = (await mia.get('/events/subscriptions')).body.records;
    assert.deepEqual(
      [made.name, made.eventTypes, made.objects, made.payload, made.ordering, made.signing],
      [`Shop ${HOSTILE}`, ['data.record.created'], ['Account'], 'thin', 'perRecord', 'hmac'],
    );
    await page.click('a:text-is("Go on to the webhook")');
    await page.waitForSelector('.about');
    assert.equal(await page.innerText('h1'), `Shop ${HOSTILE}`);
    assert.doesNotMatch(await page.content(), /whsec_/);
    await page.reload();
    await shown(page);
    assert.doesNotMatch(await page.content(), /whsec_/);
    await page.click('.trail a:text-is("Webhooks")');
    await page.waitForSelector('.webhooks');
    assert.match(await page.innerText('.webhooks li'), /Active[\s\S]*Shop <img[\s\S]*data\.record\.created/);
    assert.deepEqual([complaints, strangers], [[], []]);
  });

  it('shows what the API refuses beside its field, and the rest above the button', async () => {
    const { page } = await open('/events?view=new');
    await page.fill('#url', 'https://10.0.0.7/hooks');
    for (const type of ['created', 'updated']) await page.uncheck(`input[value="data.record.${type}"]`);
    await press(page, 'Create the webhook');
    await page.waitForSelector('#name-error:visible');
    assert.equal(await page.evaluate('document.activeElement.id'), 'name');
    assert.equal(await page.locator('#eventTypes-error').isVisible(), true);
    await page.fill('#name', 'Inside');
    await page.check('input[value="data.record.created"]');
    await press(page, 'Create the webhook');
    await page.waitForSelector('#url-error:has-text("Must lead to a public address.")');
    assert.deepEqual(
      [await page.locator('#name-error').isVisible(), await page.getAttribute('#url', 'aria-invalid')],
      [false, 'true'],
    );
    assert.equal(await page.locator('.problem').count(), 0);
    await page.route('**/api/v1/events/subscriptions', (route) => route.abort());
    await press(page, 'Create the webhook');
    await page.waitForSelector('.problem:has-text("cannot be reached")');
  });

  it('sends a test and shows its delivery with the answer as text', async () => {
    const id = await subscribe('/test');
    const visitor = await open(`/events/${id}`);
    const { page, complaints } = visitor;
    assert.match(await page.innerText('.empty'), /Nothing was sent yet/);
    await press(page, 'Send a test');
    await page.waitForSelector('.done:has-text("The test has arrived: the receiver answered 200")', {
      timeout: 30_000,
    });
    await page.waitForSelector('.deliveries li:has-text("events.subscription.tested")');
    await page.click('.deliveries summary:text-is("1 attempt")');
    assert.match(
      await page.innerText('.deliveries li'),
      /Delivered[\s\S]*1 attempt[\s\S]*Answered 200[\s\S]*Seen <img/,
    );
    assert.deepEqual(complaints, []);
  });

  it('shows failed deliveries, and sends them again', async () => {
    answers.set('/failing', 503);
    const id = await subscribe('/failing');
    await account();
    await tried(id);
    const { page } = await open(`/events/${id}?status=pending`);
    assert.match(await page.innerText('.deliveries li'), /Retrying[\s\S]*Next attempt/);
    await page.click('.deliveries summary:has-text("attempt")');
    assert.match(await page.innerText('.attempts li'), /Answered 503/);
    await page.click('.deliveries summary:text-is("The event")');
    const shownEvent = JSON.parse(await page.innerText('.deliveries pre[aria-label="The event"]'));
    assert.deepEqual(shownEvent, received.find(({ path }) => path === '/failing')?.event);
    await sql.query("UPDATE events.deliveries SET status = 'parked' WHERE subscription_id = $1", [id]);
    await page.click('.tabs a:text-is("Failed")');
    await page.waitForURL(`${platform.baseUrl}/events/${id}?status=parked`);
    await shown(page);
    assert.equal(await page.locator('.deliveries .parked').count(), 1);
    answers.delete('/failing');
    await press(page, 'Try all failed ones again');
    await page.waitForSelector('.done:has-text("1 delivery is tried again.")');
    await until(async () => (await deliveries(id))[0]?.status === 'delivered');
    await page.click('.tabs a:text-is("Delivered")');
    await page.waitForSelector('.deliveries .delivered');
    const before = received.filter(({ path }) => path === '/failing').length;
    await press(page, 'Send again from here');
    await press(page, 'Everything from here');
    await page.waitForSelector('.done:has-text("sent again")');
    await until(() => received.filter(({ path }) => path === '/failing').length > before);
  });

  it('sends again from an event on, and nothing before it', async () => {
    const id = await subscribe('/from');
    for (const name of ['First', 'Second']) await account(name);
    await until(async () => (await deliveries(id)).length === 2);
    const [second] = await deliveries(id);
    const { page } = await open(`/events/${id}`);
    await page.locator('.deliveries li').first().getByRole('button', { name: 'Send again from here' }).click();
    await press(page, 'Everything from here');
    await page.waitForSelector('.done');
    const count = (): number => received.filter(({ path }) => path === '/from').length;
    await until(() => count() > 2);
    await until(async () => (await deliveries(id))[0].attempts.at(-1).at > second.attempts.at(-1).at);
    assert.equal(count(), 3);
  });

  it('pauses, resumes, changes settings, and says when somebody else was faster', async () => {
    const id = await subscribe('/changed');
    const { page } = await open(`/events/${id}`);
    await press(page, 'Pause');
    await page.waitForSelector('.badge.paused');
    assert.match(await page.innerText('main'), /Nothing is sent/);
    await press(page, 'Resume');
    await page.waitForSelector('.badge.active');
    await page.click('.actions a:text-is("Settings")');
    await page.waitForSelector('#url');
    assert.equal(await page.inputValue('#name'), 'Shop /changed');
    await page.fill('#name', 'Warehouse');
    await press(page, 'Save');
    await page.waitForSelector('h1:has-text("Warehouse")');
    const path = `/events/subscriptions/${id}`;
    await mia.patch(path, { name: 'Faster' }, { etag: (await mia.get(path)).headers.get('etag')! });
    await press(page, 'Pause');
    await page.waitForSelector('.problem:has-text("ETAG_MISMATCH")');
    await press(page, 'Load it anew');
    await page.waitForSelector('h1:has-text("Faster")');
  });

  it('replaces the secret and deletes only after a confirmation', async () => {
    const id = await subscribe('/deleted');
    const { page } = await open(`/events/${id}`);
    await press(page, 'Replace the secret');
    await page.waitForSelector('.confirm:focus');
    await press(page, 'Cancel');
    assert.equal(await page.locator('.confirm').count(), 0);
    await press(page, 'Replace the secret');
    await press(page, 'Replace');
    await page.waitForSelector('.secret');
    assert.match(await page.inputValue('#copied-secret'), /^whsec_/);
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.click('.confirm button:text-is("Delete")');
    await page.waitForURL(`${platform.baseUrl}/events`);
    await page.waitForSelector('.empty');
    await page.goto(`${platform.baseUrl}/events/${id}`);
    await page.waitForSelector('.problem:has-text("There is no such webhook")');
  });

  it('says why a webhook is suspended, to which its notification leads', async () => {
    answers.set('/gone', 410);
    const id = await subscribe('/gone');
    await account();
    await until(async () => (await mia.get(`/events/subscriptions/${id}`)).body.state === 'suspended');
    await until(async () => (await mia.get('/notifications?type=webhookSuspended')).body.records.length > 0);
    const { page } = await open('/notifications');
    await page.click(`.actions a[href="/events/${id}"]`);
    await page.waitForSelector('.badge.suspended');
    assert.match(await page.innerText('main'), /has answered 410/);
    answers.delete('/gone');
    await press(page, 'Resume');
    await page.waitForSelector('.badge.active');
  });

  for (const size of [PHONE, DESK])
    it(`has no findings of axe at ${size.viewport.width} px, light and dark`, async () => {
      answers.set('/axe', 500);
      const id = await subscribe('/axe', { name: `Warehouse of ${'Wesel'.repeat(12)}`, signing: 'ed25519' });
      const paused = await subscribe('/paused', { name: 'Chat', eventTypes: ['files.file.ready', 'bulk.job.failed'] });
      const path = `/events/subscriptions/${paused}`;
      await mia.patch(path, { state: 'paused' }, { etag: (await mia.get(path)).headers.get('etag')! });
      await account();
      await tried(id);
      answers.delete('/axe');
      const visitor = await open('/events', { ...size, bypassCSP: true });
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
      await seen('list');
      await page.click(`.webhooks a[href="/events/${id}"]`);
      await page.waitForSelector('.deliveries');
      await press(page, 'Send a test');
      await page.waitForSelector('.done', { timeout: 30_000 });
      await page.locator('.deliveries summary').first().click();
      await page.locator('.deliveries summary').last().click();
      await seen('webhook');
      await press(page, 'Replace the secret');
      await seen('confirmation');
      await press(page, 'Replace');
      await page.waitForSelector('.secret');
      await seen('keys');
      await page.click('.actions a:text-is("Settings")');
      await page.waitForSelector('#url');
      await page.fill('#name', '');
      await press(page, 'Save');
      await page.waitForSelector('#name-error:visible');
      await seen('form');
    });

  it('reports without scripts that it needs them', async () => {
    const { page } = await open('/events', { javaScriptEnabled: false });
    assert.match(await page.innerText('noscript'), /Switch on JavaScript/);
  });
});
