/** Notifications over HTTP: each operation works, malformed, forbidden, from another tenant. Source: docs/reference/notifications.md. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { LIMITS } from '../../../lib/limits.ts';
import { Database } from '../../../mixins/database/database.ts';
import type { Answer, Api } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import { type Deals, startDeals } from '../data/deals.ts';

const refused = (reply: Answer, status: number, code: string): void =>
  assert.deepEqual([reply.status, reply.body?.code], [status, code], reply.text);

describe('notifications over HTTP', () => {
  let deals: Deals;
  let ada: Api;
  let sam: Api;
  let sue: Api;
  let eve: Api;
  let database: Database;
  before(async function () {
    this.timeout(120_000);
    deals = await startDeals();
    ({ ada, sam, sue, eve } = deals.as);
    database = new Database(deals.platform.database.url, { size: 1, applicationName: 'notifications test' });
  });
  after(async () => {
    await database?.close();
    await deals?.platform.stop();
  });

  const notify = async (body: Record<string, unknown>): Promise<Answer> => {
    const reply = await ada.post('/notifications', { type: 'Told', recipients: [deals.ids.sam], ...body });
    assert.equal(reply.status, 201, reply.text);
    return reply;
  };
  const titles = async (who: Api, query = ''): Promise<string[]> =>
    (await who.get(`/notifications${query}`)).body.records.map(({ title }: { title: string }) => title);

  it('arrive, are counted, read and archived', async () => {
    const { body: sent } = await notify({
      data: { title: 'Count <b>today</b>', body: 'Until Friday.' },
      severity: 'warning',
    });
    assert.deepEqual(sent, { sent: 1, duplicates: 0 });
    const list = (await sam.get('/notifications?type=Told')).body;
    assert.deepEqual([list.records.length, list.unreadCount, list.nextCursor], [1, 1, null]);
    const { notificationId, createdAt, expiresAt, ...rest } = list.records[0];
    assert.deepEqual(rest, {
      type: 'Told',
      title: 'Count <b>today</b>',
      body: 'Until Friday.',
      severity: 'warning',
      record: null,
      actor: { userId: deals.ids.ada, agentRunId: null },
      actions: [],
      status: 'unread',
      readAt: null,
    });
    assert.equal(Math.round((Date.parse(expiresAt) - Date.parse(createdAt)) / 86_400_000), LIMITS.notification_days);
    const at = `/notifications/${notificationId}`;
    const read = await sam.patch(at, { status: 'read' });
    assert.deepEqual([read.status, read.body.status, read.body.readAt === null], [200, 'read', false], read.text);
    assert.equal((await sam.get('/notifications')).body.unreadCount, 0);
    assert.equal((await sam.patch(at, { status: 'unread' })).body.readAt, null);
    assert.equal((await sam.patch(at, { status: 'archived' })).status, 200);
    assert.deepEqual(await titles(sam), []);
    assert.deepEqual(await titles(sam, '?status=archived'), ['Count <b>today</b>']);
    assert.deepEqual((await sam.get(at)).body.status, 'archived');
    const deliveries = async (): Promise<string[]> => {
      const { records } = (await sam.get(`${at}/deliveries`)).body;
      return records.map(({ channel, state }: Record<string, string>) => `${channel} ${state}`);
    };
    // No mails leave this installation, which is known once one is due.
    await until(async () => (await deliveries()).includes('email suppressed'));
    assert.deepEqual(await deliveries(), ['inApp delivered', 'email suppressed', 'push suppressed', 'webhook sent']);
  });

  it('are those of the caller alone', async () => {
    await notify({ data: { title: 'Private' } });
    const [{ notificationId }] = (await sam.get('/notifications')).body.records;
    for (const other of [ada, sue, eve]) {
      refused(await other.get(`/notifications/${notificationId}`), 404, 'NOTIFICATION_NOT_FOUND');
      refused(await other.get(`/notifications/${notificationId}/deliveries`), 404, 'NOTIFICATION_NOT_FOUND');
      refused(await other.patch(`/notifications/${notificationId}`, { status: 'read' }), 404, 'NOTIFICATION_NOT_FOUND');
      assert.deepEqual(await titles(other, '?type=Told'), []);
    }
    refused(await sam.get('/notifications/x'), 400, 'PARAMETER_INVALID');
    refused(await sam.patch(`/notifications/${notificationId}`, { status: 'gone' }), 400, 'PARAMETER_INVALID');
    refused(await sam.get('/notifications?status=new'), 400, 'PARAMETER_INVALID');
    refused(await (await deals.sign('sam', 'data:read')).get('/notifications'), 403, 'SCOPE_INSUFFICIENT');
  });

  it('are paged, the newest first, and marked up to the one that was seen', async () => {
    await sam.post('/notifications/mark-all-read', { before: '9999-01-01T00:00:00Z' });
    for (const title of ['first', 'second', 'third']) await notify({ type: 'Paged', data: { title } });
    const page = (await sam.get('/notifications?type=Paged&take=2')).body;
    assert.deepEqual(
      page.records.map(({ title }: { title: string }) => title),
      ['third', 'second'],
    );
    const next = (await sam.get(`/notifications?type=Paged&take=2&cursor=${page.nextCursor}`)).body;
    assert.deepEqual([next.records[0].title, next.nextCursor], ['first', null]);
    refused(await sam.get(`/notifications?take=2&cursor=${page.nextCursor}`), 400, 'CURSOR_QUERY_MISMATCH');
    const seen = page.records[1].createdAt;
    const other = await sam.post('/notifications/mark-all-read', { before: seen, type: 'Other' });
    assert.deepEqual([other.status, other.body], [201, { updated: 0 }]);
    assert.deepEqual((await sam.post('/notifications/mark-all-read', { before: seen })).body, { updated: 2 });
    assert.deepEqual(await titles(sam, '?status=unread&type=Paged'), ['third']);
    refused(await sam.post('/notifications/mark-all-read', {}), 400, 'PARAMETER_REQUIRED');
    refused(await sam.post('/notifications/mark-all-read', { before: 'today' }), 400, 'PARAMETER_INVALID');
    refused(
      await sam.post('/notifications/mark-all-read', { before: '2026-13-01T00:00:00Z' }),
      400,
      'PARAMETER_INVALID',
    );
  });

  it('show their record to those who can read it at that moment', async () => {
    const { id } = (await deals.deal(sam)).body;
    const record = { objectApiName: 'Deal__c', id };
    await notify({ type: 'About', data: { title: 'Look' }, recipients: [deals.ids.sam, deals.ids.sue], record });
    const recordOf = async (who: Api) => (await who.get('/notifications?type=About')).body.records[0].record;
    assert.deepEqual(await recordOf(sam), { ...record, name: 'Deal' });
    assert.equal(await recordOf(sue), null);
    const share = { principalType: 'user', principalId: deals.ids.sue, access: 'read' };
    const { shareId } = (await sam.post(`/data/Deal__c/${id}/shares`, share)).body;
    assert.deepEqual(await recordOf(sue), { ...record, name: 'Deal' });
    await sam.delete(`/data/Deal__c/${id}/shares/${shareId}`);
    assert.equal(await recordOf(sue), null);
  });

  it('are sent by those who may, to users whom they see, with all problems at once', async () => {
    const body = { type: 'Told', recipients: [deals.ids.sue], data: { title: 'Hello' } };
    refused(await sam.post('/notifications', body), 403, 'OBJECT_PERMISSION_DENIED');
    refused(
      await (await deals.sign('ada', 'notifications:read')).post('/notifications', body),
      403,
      'SCOPE_INSUFFICIENT',
    );
    const ofUser = { objectApiName: 'Nope__c', id: deals.ids.sue };
    refused(await ada.post('/notifications', { ...body, record: ofUser }), 422, 'VALIDATION_FAILED');
    const hidden = (await deals.deal(sam)).body.id;
    const reply = await ada.post('/notifications', {
      type: 'deploymentFailed',
      recipients: [deals.ids.sue, randomUUID(), deals.ids.eve],
      data: { title: `a${'\u0301'.repeat(100)}` },
      record: { objectApiName: 'Nothing__c', id: hidden },
    });
    refused(reply, 422, 'VALIDATION_FAILED');
    const [unknown, foreign] = reply.body.errors.filter(({ pointer }: { pointer: string }) =>
      /recipients/.test(pointer),
    );
    assert.deepEqual({ ...unknown, pointer: '' }, { ...foreign, pointer: '' });
    assert.deepEqual(
      reply.body.errors.map(({ pointer }: { pointer: string }) => pointer),
      ['/type', '/data/title', '/recipients/1', '/recipients/2', '/record'],
    );
    for (const wrong of [
      { recipients: [] },
      { recipients: Array.from({ length: 101 }, () => randomUUID()) },
      { recipients: ['x'] },
      { data: { title: 'x'.repeat(201) } },
      { type: '1' },
      { severity: 'loud' },
    ])
      refused(await ada.post('/notifications', { ...body, ...wrong }), 400, 'PARAMETER_INVALID');
    refused(await ada.post('/notifications', { ...body, html: '<b>' }), 400, 'BODY_PROPERTY_UNKNOWN');
  });

  it('come once for a dedupe key, and once for an idempotency key', async () => {
    const body = { type: 'Once', recipients: [deals.ids.sam], data: { title: 'Once' }, dedupeKey: 'k' };
    const options = { idempotencyKey: randomUUID() };
    const first = await ada.post('/notifications', body, options);
    assert.deepEqual((await ada.post('/notifications', body, options)).body, first.body);
    const again = await ada.post('/notifications', { ...body, recipients: [deals.ids.sam, deals.ids.sue] });
    assert.deepEqual(again.body, { sent: 1, duplicates: 1 });
    assert.deepEqual(await titles(sam, '?type=Once'), ['Once']);
  });

  it('are bounded for each user, and for each sender', async function () {
    this.timeout(60_000);
    const storm = (from: number, size: number) =>
      database.query(
        `INSERT INTO notifications.items (tenant_id, notification_id, user_id, type, severity, title, body, actions, in_app,
           expires_at, deliveries, status)
         SELECT tenant_id, gen_random_uuid(), user_id, 'Storm', severity, title, body, actions, in_app, expires_at, deliveries, 'unread'
         FROM notifications.items, generate_series($2::int, $3::int) WHERE user_id = $1 AND type = 'Once'`,
        [deals.ids.sue, from, from + size - 1],
      );
    await storm(1, LIMITS.notifications_of_user_max);
    // One that is made at the same moment, such as that about the share above, is one too many until the next.
    await until(async () => {
      await notify({ recipients: [deals.ids.sue], data: { title: 'After the storm' } });
      const list = (await sue.get('/notifications?status=all&take=1')).body;
      return list.unreadCount === LIMITS.notifications_of_user_max;
    });
    assert.ok((await titles(sue, '?type=Told')).includes('After the storm'));
    await database.query('UPDATE notifications.settings SET sent = $1, sent_since = now()', [
      LIMITS.notification_sent_per_hour_max,
    ]);
    const reply = await ada.post('/notifications', {
      type: 'Told',
      recipients: [deals.ids.sam],
      data: { title: 'More' },
    });
    refused(reply, 429, 'RATE_LIMIT_EXCEEDED');
    assert.ok(Number(reply.headers.get('retry-after')) > 0);
    await database.query("UPDATE notifications.settings SET sent_since = now() - interval '61 minutes'");
    await notify({ data: { title: 'Later' } });
  });
});
