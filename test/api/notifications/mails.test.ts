/** Preferences, and mails about notifications. Source: docs/reference/notifications.md#mails. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { ParsedMail } from 'mailparser';
import { Database } from '../../../mixins/database/database.ts';
import type { Answer, Api } from '../../support/client.ts';
import { type MailServer, mailServer, recipient } from '../../support/mail.ts';
import { until } from '../../support/until.ts';
import { type Deals, startDeals } from '../data/deals.ts';

const token43 = (url: string): string => /[\w-]{43}$/.exec(url)?.[0] ?? assert.fail(url);

const refused = (reply: Answer, status: number, code: string): void =>
  assert.deepEqual([reply.status, reply.body?.code], [status, code], reply.text);

describe('mails about notifications', function () {
  this.timeout(120_000);
  let server: MailServer;
  let deals: Deals;
  let database: Database;
  let ada: Api;
  let sam: Api;
  let sue: Api;
  before(async () => {
    server = await mailServer();
    const SMTP_URL = `smtp://127.0.0.1:${server.port}?starttls=off`;
    deals = await startDeals({ env: { SMTP_URL, MAIL_FROM: 'ERP <no-reply@erp.example>' } });
    ({ ada, sam, sue } = deals.as);
    database = new Database(deals.platform.database.url, { size: 1, applicationName: 'notifications test' });
  });
  after(async () => {
    await database?.close();
    await deals?.platform.stop();
    await server?.close();
  });

  const notify = async (to: string, title: string, more: object = {}): Promise<void> => {
    const body = { type: 'Told', recipients: [to], data: { title, body: 'Until Friday.' }, ...more };
    const reply = await ada.post('/notifications', body);
    assert.equal(reply.status, 201, reply.text);
  };
  const mailsTo = async (name: string): Promise<ParsedMail[]> =>
    (await server.mails.all()).filter((mail) => recipient(mail).startsWith(`${name}@`));
  const emailOf = async (who: Api, title: string): Promise<Record<string, unknown>> => {
    const { records } = (await who.get('/notifications?status=all&type=Told')).body;
    const { notificationId } = records.find((item: { title: string }) => item.title === title);
    const { body } = await who.get(`/notifications/${notificationId}/deliveries`);
    return body.records.find(({ channel }: { channel: string }) => channel === 'email');
  };

  /** Hours of the day around now. */
  const quietNow = () => {
    const time = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString().slice(11, 16);
    return { from: time(-1), to: time(12) };
  };
  /** Ends the wait of mails to the user, as if they had been notified and mailed the days before. */
  const mailNow = async (userId: string, days = 0) => {
    await database.query(
      `UPDATE notifications.settings SET mailed_at = mailed_at - (interval '1 hour' + $2 * interval '1 day'),
        critical_mailed_at = critical_mailed_at - (interval '1 hour' + $2 * interval '1 day') WHERE user_id = $1`,
      [userId, days],
    );
    await database.query(
      `UPDATE notifications.items SET mail_at = now(), created_at = created_at - $2 * interval '1 day'
        WHERE user_id = $1 AND mail_at IS NOT NULL`,
      [userId, days],
    );
  };

  it('are one for what comes together, escaped, and end by their link without a sign-in', async () => {
    const titles = ['First <b>', 'Second', 'Third'];
    await deals.setUser('sam', { timezone: 'Europe/London' });
    await sam.patch('/notifications/preferences', { quietHours: quietNow() });
    for (const title of titles) await notify(deals.ids.sam, title);
    await sam.patch('/notifications/preferences', { quietHours: null });
    await mailNow(deals.ids.sam);
    await until(async () => (await mailsTo('sam')).length > 0, 40);
    const [mail] = await mailsTo('sam');
    for (const title of titles) assert.ok(mail!.text?.includes(title), mail!.text);
    assert.ok(String(mail!.html).includes('First &lt;b&gt;'));
    for (const path of ['/notifications', '/account/mails/[\\w-]+'])
      assert.match(String(mail!.html), new RegExp(`<a href="${deals.platform.baseUrl}${path}"`));
    assert.equal((await mailsTo('sam')).length, 1);
    await until(async () => (await emailOf(sam, 'Second'))['state'] === 'sent');
    const list = mail!.headers.get('list');
    const url = /https?:[^\s"'<>]+\/account\/mails\/[\w-]+/.exec(JSON.stringify(list ?? mail!.text))?.[0];
    assert.ok(url, String(mail!.text));
    const page = await fetch(url);
    assert.match(await page.text(), /No more mails/);
    await notify(deals.ids.sam, 'Waiting');
    assert.equal((await emailOf(sam, 'Waiting'))['state'], 'queued');
    const body = new FormData();
    body.set('List-Unsubscribe', 'One-Click');
    const form = { method: 'POST', body, headers: { origin: 'https://mails.example' } };
    assert.equal((await fetch(url, { method: 'DELETE' })).status, 405);
    assert.equal((await fetch(url, form)).status, 200);
    await mailNow(deals.ids.sam);
    await until(async () => (await emailOf(sam, 'Waiting'))['reason'] === 'unsubscribed', 40);
    await notify(deals.ids.sam, 'Fourth');
    assert.equal((await emailOf(sam, 'Fourth'))['reason'], 'unsubscribed');
    const email = async () =>
      (await sam.get('/notifications/preferences')).body.records.find(({ type }: { type: string }) => type === 'Told')
        .channels.email;
    assert.equal(await email(), false);
    await sam.patch('/notifications/preferences', { records: [{ type: 'Told', channels: { email: true } }] });
    assert.equal(await email(), true);
    for (const token of ['unknown', token43(url).toLowerCase()])
      assert.equal((await fetch(url.replace(/[\w-]+$/, token), form)).status, 200);
    assert.equal(await email(), true);
    const { rows } = await database.query<{ hash: Buffer }>(
      'SELECT unsubscribe_hash AS hash FROM notifications.settings WHERE user_id = $1',
      [deals.ids.sam],
    );
    assert.deepEqual(rows[0]?.hash, createHash('sha256').update(token43(url)).digest());
    const elsewhere = new URL(`/password/${token43(url)}`, url);
    assert.doesNotMatch(await (await fetch(elsewhere)).text(), /type="password"/);
  });

  it('follow the preferences and the quiet hours of the user', async () => {
    const at = '/notifications/preferences';
    await deals.setUser('sue', { timezone: 'Europe/London' });
    const changed = await sue.patch(at, {
      records: [{ type: 'Silent', channels: { inApp: false, email: false } }],
      quietHours: quietNow(),
    });
    assert.equal(changed.status, 200, changed.text);
    assert.deepEqual((await sue.get(at)).body, changed.body);
    assert.deepEqual(
      changed.body.records.find(({ type }: { type: string }) => type === 'Silent'),
      {
        type: 'Silent',
        channels: { inApp: false, email: false, push: false, webhook: true },
        locked: false,
      },
    );
    await notify(deals.ids.sue, 'Unseen', { type: 'Silent' });
    assert.deepEqual((await sue.get('/notifications?type=Silent')).body.records, []);
    await notify(deals.ids.sue, 'Tomorrow');
    await notify(deals.ids.sue, 'Now', { severity: 'critical' });
    await until(async () => (await mailsTo('sue')).length > 0, 40);
    const [mail] = await mailsTo('sue');
    assert.equal(mail!.subject, 'Now');
    assert.match(String(mail!.text), /From: Ada Lindqvist\n\s+Severity: Critical/);
    assert.equal((await emailOf(sue, 'Tomorrow'))['state'], 'queued');
    refused(await sue.patch(at, { records: [{ type: 'Told', channels: { push: true } }] }), 400, 'PARAMETER_INVALID');
    refused(await sue.patch(at, { quietHours: { from: '25:00', to: '07:00' } }), 400, 'PARAMETER_INVALID');
    refused(await sue.patch(at, { mails: true }), 400, 'BODY_PROPERTY_UNKNOWN');
    const locked = [{ type: 'agentApprovalRequested', channels: { inApp: false } }];
    refused(await sue.patch(at, { records: locked }), 422, 'VALIDATION_FAILED');
    assert.equal((await sue.patch(at, { quietHours: null })).body.quietHours, null);
  });

  it('follow all of the first choices of a user, though they come at the same moment', async () => {
    const types = ['First', 'Second', 'Third', 'Fourth', 'Fifth'];
    const { mia } = deals.as;
    await Promise.all(
      types.map((type) => mia.patch('/notifications/preferences', { records: [{ type, channels: { email: false } }] })),
    );
    const { records } = (await mia.get('/notifications/preferences')).body;
    const kept = records.map(({ type }: { type: string }) => type);
    assert.deepEqual(
      types.filter((type) => !kept.includes(type)),
      [],
    );
  });

  it('go to no user who was made inactive meanwhile', async () => {
    const { id } = (await sue.get('/identity')).body.user;
    const before = (await mailsTo('sue')).length;
    await deals.setUser('sue', { active: false });
    await mailNow(id);
    await until(async () => {
      const { rows } = await database.query<{ reason: string }>(
        `SELECT deliveries #>> '{email,reason}' AS reason FROM notifications.items WHERE user_id = $1 AND title = 'Tomorrow'`,
        [id],
      );
      return rows[0]?.reason === 'inactive';
    }, 40);
    assert.equal((await mailsTo('sue')).length, before);
  });

  it('are one, and the next waits, in a storm of notifications', async () => {
    const { id } = (await deals.as.mia.get('/identity')).body.user;
    for (let n = 0; n < 10; n++) await notify(id, `Storm ${n}`);
    await until(async () => (await mailsTo('mia')).length > 0, 40);
    for (let n = 0; n < 5; n++) await notify(id, `Later ${n}`);
    assert.equal((await mailsTo('mia')).length, 1);
    const { rows } = await database.query<{ waits: boolean }>(
      `SELECT bool_and(mail_at > now() + interval '8 minutes') AS waits FROM notifications.items
        WHERE user_id = $1 AND title LIKE 'Later%'`,
      [id],
    );
    assert.equal(rows[0]?.waits, true);
    await notify(id, 'Fire', { severity: 'critical' });
    await until(async () => (await mailsTo('mia')).length > 1, 40);
    assert.equal((await mailsTo('mia'))[1]!.subject, 'Fire');
    for (let n = 0; n < 5; n++) await notify(id, `Smoke ${n}`, { severity: 'critical' });
    const smoke = await database.query<{ waits: boolean }>(
      `SELECT bool_and(mail_at > now() + interval '8 minutes') AS waits FROM notifications.items
        WHERE user_id = $1 AND title LIKE 'Smoke%'`,
      [id],
    );
    assert.equal(smoke.rows[0]?.waits, true);
  });

  it('are one digest of what is unread, and of records that can be read, for those who want one', async () => {
    const { mia } = deals.as;
    const waits = async () => {
      const { rows } = await database.query<{ type: string; days: number }>(
        `SELECT type, extract(epoch FROM mail_at - now()) / 86400 AS days FROM notifications.items
          WHERE user_id = $1 AND mail_at IS NOT NULL`,
        [deals.ids.mia],
      );
      return rows;
    };
    const choose = async (emailDigest: string | null) => {
      const etag = (await mia.get('/me')).headers.get('etag')!;
      const chosen = await mia.patch('/me/preferences', { emailDigest }, { etag });
      assert.equal(chosen.status, 200, chosen.text);
    };
    await choose('weekly');
    await mia.post('/notifications/mark-all-read', { before: new Date(Date.now() + 60_000).toISOString() });
    await mailNow(deals.ids.mia, 8);
    await until(async () => (await waits()).length === 0, 40);
    const before = (await mailsTo('mia')).length;
    const [kept, taken] = [(await deals.deal(sam)).body, (await deals.deal(ada)).body];
    const share = { principalType: 'user', principalId: deals.ids.mia, access: 'read' };
    const shared = await ada.post(`/data/Deal__c/${taken.id}/shares`, share);
    assert.equal(shared.status, 201, shared.text);
    await notify(deals.ids.mia, 'Kept', { record: { objectApiName: 'Deal__c', id: kept.id } });
    for (const title of ['Plain', 'Seen']) await notify(deals.ids.mia, title);
    await until(async () => (await waits()).length === 4);
    assert.ok((await waits()).every(({ days }) => days > 0 && days < 7.1));
    await notify(deals.ids.mia, 'Urgent', { severity: 'critical' });
    await until(async () => (await mailsTo('mia')).length > before, 40);
    assert.equal((await mailsTo('mia'))[before]!.subject, 'Urgent');
    // Due, but the digest is another day: it is put back.
    await database.query('UPDATE notifications.items SET mail_at = now() WHERE user_id = $1 AND mail_at IS NOT NULL', [
      deals.ids.mia,
    ]);
    await until(async () => (await waits()).every(({ days }) => days > 0.001), 40);
    assert.equal((await mailsTo('mia')).length, before + 1);
    const { records } = (await mia.get('/notifications?type=Told')).body;
    const { notificationId } = records.find(({ title }: { title: string }) => title === 'Seen');
    await mia.patch(`/notifications/${notificationId}`, { status: 'read' });
    const gone = await ada.delete(`/data/Deal__c/${taken.id}/shares/${shared.body.shareId}`);
    assert.equal(gone.status, 204, gone.text);
    await mailNow(deals.ids.mia, 8);
    await until(async () => (await mailsTo('mia')).length > before + 1, 40);
    const mail = (await mailsTo('mia'))[before + 1]!;
    assert.equal(mail.subject, 'Weekly digest: 2 new notifications');
    for (const title of ['Kept', 'Plain']) assert.ok(mail.text?.includes(title), mail.text);
    assert.doesNotMatch(String(mail.text), /Seen|Urgent|shared/);
    assert.ok(mail.headers.get('list'), 'it can be ended by its link');
    assert.equal((await emailOf(mia, 'Seen'))['reason'], 'read');
    const { rows } = await database.query<{ reason: string }>(
      `SELECT deliveries #>> '{email,reason}' AS reason FROM notifications.items WHERE user_id = $1 AND type = 'recordShared'`,
      [deals.ids.mia],
    );
    assert.deepEqual(rows, [{ reason: 'recordHidden' }]);
    // A process that is lost after the mail was handed over: another one takes the same mail, which is there.
    await database.query(
      `UPDATE notifications.items SET mail_at = now() WHERE user_id = $1 AND mail_id IS NOT NULL AND title IN ('Kept', 'Plain')`,
      [deals.ids.mia],
    );
    assert.equal((await waits()).length, 2);
    await until(async () => (await waits()).length === 0, 40);
    await until(async () => (await emailOf(mia, 'Plain'))['state'] === 'sent', 40);
    await notify(deals.ids.mia, 'Next week');
    assert.ok((await waits()).every(({ days }) => days > 0.001));
    assert.equal((await mailsTo('mia')).length, before + 2);
  });
});
