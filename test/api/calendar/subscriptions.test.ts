/** The link with which other programs read a user's calendar: made on the account page, read without a sign-in. */
import assert from 'node:assert/strict';
import nodeIcal, { type VEvent } from 'node-ical';
import { Client } from 'pg';
import { call } from '../../../contracts/call.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { demoPassword } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import { Browser, type Seen } from '../auth/browser.ts';
import { type Deals, startDeals } from '../data/deals.ts';
import { create, meeting, patch, remove } from './world.ts';

type Name = 'sam' | 'mia' | 'eve';

describe('calendar links', function () {
  this.timeout(120_000);
  let deals: Deals;
  let database: Client;
  before(async () => {
    deals = await startDeals();
    database = new Client({ connectionString: deals.platform.database.url, application_name: 'calendar links' });
    await database.connect();
  });
  after(async () => {
    await database?.end();
    await deals?.platform.stop();
  });

  const account = (): string => `${deals.platform.baseUrl}/account`;
  async function open(name: Name): Promise<[Browser, Seen]> {
    const browser = new Browser();
    const username = `${name}@${name === 'eve' ? 'acme' : 'demo'}.example`;
    const page = await browser.submit(await browser.visit(account()), { username, password: demoPassword() });
    assert.match(page.html, /<h1>Your account<\/h1>/);
    return [browser, page];
  }
  const press = (browser: Browser, page: Seen, decision: string): Promise<Seen> => {
    const csrf = /name="csrf" value="([^"]*)"/.exec(page.html)?.[1] ?? '';
    return browser.open(account(), new URLSearchParams({ csrf, decision })).then((seen) => browser.follow(seen));
  };
  const linkOn = (page: Seen): string => {
    const [, url] = /value="(http[^"]*\/calendars\/[\w-]{43}\.ics)"/.exec(page.html) ?? [];
    assert.ok(url, page.html);
    return url;
  };
  const createLink = async (name: Name): Promise<string> =>
    linkOn(await press(...(await open(name)), 'createCalendarLink'));
  const read = (url: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> =>
    fetch(url, { method, headers, redirect: 'manual' });
  const status = async (url: string): Promise<number> => {
    const reply = await read(url);
    const text = await reply.text();
    if (reply.status === 404) assert.equal(JSON.parse(text).code, 'ROUTE_NOT_FOUND', text);
    return reply.status;
  };
  const titles = async (url: string): Promise<string[]> =>
    Object.values(nodeIcal.sync.parseICS(await (await read(url)).text())).flatMap((one) =>
      one?.type === 'VEVENT' ? [String((one as VEvent).summary)] : [],
    );

  it('show the calendar of their user as the export does, and nothing of others', async () => {
    const { sam, mia } = deals.as;
    const record = { objectApiName: 'Deal__c', id: (await deals.deal(sam)).body.id };
    const attendees = [{ userId: deals.ids.sam }];
    await create(sam, meeting('2026-12-07', { title: 'Mine', visibility: 'private' }));
    await create(mia, meeting('2026-12-08', { title: 'Invited', visibility: 'private', attendees }));
    await create(mia, meeting('2026-12-08', { title: 'Private of Mia', visibility: 'private' }));
    await create(mia, meeting('2026-12-08', { title: 'On the record of Sam', record }));
    const url = await createLink('sam');
    const reply = await read(url, { 'accept-encoding': 'identity' });
    assert.deepEqual(
      ['content-type', 'cache-control', 'referrer-policy', 'x-robots-tag'].map((name) => reply.headers.get(name)),
      ['text/calendar; charset=utf-8', 'private, no-cache', 'no-referrer', 'noindex'],
    );
    assert.match(reply.headers.get('ratelimit-policy') ?? '', /^"calendar";q=60;w=3600$/);
    const text = await reply.text();
    assert.match(text, /\r\nX-WR-CALNAME:[^\r]+\r\nREFRESH-INTERVAL;VALUE=DURATION:PT1H\r\n/);
    assert.deepEqual(await titles(url), ['Mine', 'Invited']);
    const exported = (await sam.get(`/calendar/calendars/${deals.ids.sam}/export.ics`)).text;
    const events = (file: string): string => file.slice(file.indexOf('BEGIN:VTIMEZONE'));
    assert.equal(events(text), events(exported));
  });

  it('answer programs that have the calendar already with 304, until it changes', async () => {
    const url = await createLink('sam');
    const first = await read(url);
    const etag = first.headers.get('etag') ?? '';
    const again = await read(url, { 'if-none-match': etag });
    assert.deepEqual([again.status, await again.text(), again.headers.get('etag')], [304, '', etag]);
    const { eventId } = await create(deals.as.sam, meeting('2026-12-09', { title: 'New' }));
    const changed = await read(url, { 'if-none-match': etag });
    assert.equal(changed.status, 200);
    assert.notEqual(changed.headers.get('etag'), etag);
    assert.ok((await titles(url)).includes('New'));
    await patch(deals.as.sam, eventId, { title: 'Renamed' });
    assert.ok((await titles(url)).includes('Renamed'));
    await remove(deals.as.sam, eventId);
    assert.ok(!(await titles(url)).includes('Renamed'));
    const head = await read(url, {}, 'HEAD');
    assert.deepEqual([head.status, await head.text()], [200, '']);
    assert.equal((await read(url, {}, 'POST')).status, 405);
  });

  it('are one for each user, and end when they are replaced, revoked, or all sessions end', async () => {
    const first = await createLink('sam');
    const [browser, page] = await open('sam');
    assert.match(page.html, /Replace the link[\s\S]*Revoke the link/);
    assert.ok(!page.html.includes('/calendars/'), 'it was shown once');
    const second = linkOn(await press(browser, page, 'createCalendarLink'));
    assert.deepEqual([await status(first), await status(second)], [404, 200]);
    const mias = await createLink('mia');
    const revoked = await press(browser, page, 'revokeCalendarLink');
    assert.match(revoked.html, /The calendar link is revoked[\s\S]*Create a link/);
    assert.deepEqual([await status(second), await status(mias)], [404, 200]);
    assert.equal((await press(browser, page, 'revokeCalendarLink')).status, 422);
    const third = linkOn(await press(browser, page, 'createCalendarLink'));
    await press(browser, page, 'endSessions');
    assert.equal(await status(third), 404);
    for (const act of ['create', 'revoke']) {
      const entries = `/events/audit?operationId=auth.calendarLinks.${act}&recordId=${deals.ids.sam}&take=1`;
      await until(async () => (await deals.as.ada.get(entries)).body.records.length === 1);
    }
  });

  it('are stored as a hash alone', async () => {
    const url = await createLink('sam');
    const [, token = ''] = /\/calendars\/([\w-]{43})\.ics$/.exec(url) ?? [];
    assert.equal(Buffer.from(token, 'base64url').length, 32);
    const { rows } = await database.query('SELECT l::text AS row FROM auth.calendar_links l');
    assert.ok(rows.length > 0);
    for (const { row } of rows)
      assert.ok(!row.includes(token) && !row.includes(Buffer.from(token).toString('hex')), row);
  });

  it('end with their user, and pause with the API and the tenant of the user', async () => {
    const url = await createLink('eve');
    const { broker } = deals.platform;
    assert.equal(await status(url), 200);
    await call(broker, 'metadata.tenants.suspend', { key: 'acme', reason: 'A test.' });
    assert.equal(await status(url), 404);
    await call(broker, 'metadata.tenants.resume', { key: 'acme' });
    assert.equal(await status(url), 200);
    const sams = await createLink('sam');
    const exported = `/calendar/calendars/${deals.ids.sam}/export.ics`;
    const sam = await deals.sign('sam', 'calendar:read');
    assert.equal((await sam.get(exported)).status, 200);
    const { profileApiName } = (await deals.as.ada.get(`/data/User/${deals.ids.sam}`)).body;
    await deals.setUser('sam', { profileApiName: 'Minimal' });
    await until(async () => (await sam.get(exported)).status === 403);
    assert.equal(await status(sams), 404, 'as little as through the API');
    await deals.setUser('sam', { profileApiName });
    assert.equal(await status(sams), 200);
    await deals.setUser('sam', { active: false });
    assert.equal(await status(sams), 404);
    await deals.setUser('sam', { active: true });
    assert.equal(await status(sams), 404, 'a user who comes back creates another one');
  });

  it('look alike when there are none, of whatever form', async () => {
    const url = await createLink('mia');
    const root = url.slice(0, url.lastIndexOf('/') + 1);
    const unknown = `${url.slice(0, -5)}${url.at(-5) === 'A' ? 'B' : 'A'}.ics`;
    for (const other of [
      unknown,
      `${root}x.ics`,
      root,
      root.slice(0, -1),
      url.slice(0, -4),
      `${url}/`,
      `${root}%00.ics`,
      `${root}${'a'.repeat(5_000)}.ics`,
    ])
      assert.equal(await status(other), 404, other);
    assert.equal((await read(url)).status, 200);
    assert.ok(
      !(await (await fetch(`${deals.platform.baseUrl}/robots.txt`)).text()).includes('/calendars'),
      'programs may read',
    );
  });

  it('are created by the form of the page alone', async () => {
    const [browser] = await open('mia');
    const body = new URLSearchParams({ decision: 'createCalendarLink' });
    assert.equal((await browser.open(account(), body)).status, 400);
    assert.equal((await browser.open(account(), body, { 'sec-fetch-site': 'cross-site' })).status, 403);
  });

  it('are read so often in an hour, from wherever', async () => {
    const url = await createLink('mia');
    const replies: Response[] = [];
    for (let n = 0; n <= LIMITS.calendar_link_reads_per_hour && replies.at(-1)?.status !== 429; n++)
      replies.push(await read(url));
    const { code } = JSON.parse((await replies.at(-1)?.text()) ?? '');
    assert.deepEqual([replies.at(-1)?.status, code], [429, 'RATE_LIMIT_EXCEEDED']);
    assert.ok(replies.length > LIMITS.calendar_link_reads_per_hour / 2, `${replies.length}`);
    assert.equal(await status(await createLink('sam')), 200, 'another user is not held up');
  });
});
