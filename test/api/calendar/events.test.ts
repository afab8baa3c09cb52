/** Events: who sees and changes them, what is refused, answers, free and busy, and synchronization. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { LIMITS } from '../../../lib/limits.ts';
import type { Answer, Api } from '../../support/client.ts';
import { type Deals, startDeals } from '../data/deals.ts';
import { at, create, meeting, patch, refused, remove, starts, weekly, window } from './world.ts';

describe('events of calendars', function () {
  this.timeout(120_000);
  let deals: Deals;
  let sam: Api;
  let sue: Api;
  let mia: Api;
  let eve: Api;
  before(async () => {
    deals = await startDeals();
    ({ sam, sue, mia, eve } = deals.as);
  });
  after(() => deals?.platform.stop());

  it('stand in the calendar of who organizes them, and of no other', async () => {
    const event = await create(
      sam,
      meeting('2026-03-02', { description: 'About it', reminders: [{ minutesBefore: 10, channel: 'inApp' }] }),
    );
    assert.equal(event.organizerId, deals.ids.sam);
    assert.deepEqual(event.start, at('2026-03-02T09:00:00'));
    const read = await sam.get(`/calendar/events/${event.eventId}`);
    assert.deepEqual([read.body.title, read.headers.get('etag')], ['Meeting', event.etag]);
    for (const other of [sue, mia, deals.as.ada, eve]) {
      refused(await other.get(`/calendar/events/${event.eventId}`), 404, 'EVENT_NOT_FOUND');
      refused(await patch(other, event.eventId, { title: 'Mine' }), 404, 'EVENT_NOT_FOUND');
      refused(await remove(other, event.eventId), 404, 'EVENT_NOT_FOUND');
      refused(
        await other.post(`/calendar/events/${event.eventId}/respond`, { response: 'accepted' }),
        404,
        'EVENT_NOT_FOUND',
      );
    }
    assert.deepEqual(await starts(sue, '2026-03-01', '2026-03-10', 'Meeting', `&calendarId=${deals.ids.sam}`), []);
    refused(await sam.get(`/calendar/events?calendarId=${deals.ids.eve}`), 404, 'CALENDAR_NOT_FOUND');
    refused(await sam.get(`/calendar/events?calendarId=${randomUUID()}`), 404, 'CALENDAR_NOT_FOUND');
    const calendars = await sam.get('/calendar/calendars');
    assert.equal(calendars.body.records[0].calendarId, deals.ids.sam);
    refused(
      await (await deals.sign('sam', 'calendar:read')).post('/calendar/events', meeting('2026-03-02')),
      403,
      'SCOPE_INSUFFICIENT',
    );
  });

  it('are changed with the ETag that was read, once for each key', async () => {
    const event = await create(sam, meeting('2026-03-03'));
    const path = `/calendar/events/${event.eventId}`;
    const changed = await sam.patch(
      path,
      { location: 'Room 2' },
      { etag: event.etag, idempotencyKey: 'calendar-change-1' },
    );
    assert.deepEqual([changed.status, changed.body.location], [200, 'Room 2'], changed.text);
    const again = await sam.patch(
      path,
      { location: 'Room 2' },
      { etag: event.etag, idempotencyKey: 'calendar-change-1' },
    );
    assert.equal(again.text, changed.text);
    refused(await sam.patch(path, { location: 'Room 3' }, { etag: event.etag }), 412, 'ETAG_MISMATCH');
    const gone = await remove(sam, event.eventId);
    assert.deepEqual([gone.status, gone.body.deleted], [200, true], gone.text);
    refused(await sam.get(path), 404, 'EVENT_NOT_FOUND');
  });

  it('say everything that is wrong with them', async () => {
    const wrong = await sam.post('/calendar/events', {
      title: 'x',
      start: at('2026-13-40T09:00:00', 'Europe/Atlantis'),
      end: { date: '2026-03-02' },
      attendees: [
        { userId: randomUUID() },
        { email: 'nobody' },
        {},
        { userId: deals.ids.sam },
        { userId: deals.ids.eve },
      ],
    });
    refused(wrong, 400, 'PARAMETER_INVALID', [
      '/start/dateTime',
      '/start/timezone',
      '/attendees/1/email',
      '/attendees/2',
      '/attendees/3/userId',
      '/attendees/0/userId',
      '/attendees/4/userId',
    ]);
    refused(
      await sam.post('/calendar/events', meeting('2026-03-29', { start: at('2026-03-29T02:30:00') })),
      400,
      'PARAMETER_INVALID',
      ['/start/dateTime'],
    );
    refused(
      await sam.post('/calendar/events', meeting('2026-03-02', { end: at('2026-03-02T09:00:00') })),
      400,
      'PARAMETER_INVALID',
      ['/end'],
    );
    refused(
      await sam.post('/calendar/events', meeting('2026-03-02', { end: at('2027-09-02T09:00:00') })),
      400,
      'PARAMETER_INVALID',
      ['/end'],
    );
    refused(
      await sam.post('/calendar/events', { ...meeting('2026-03-02'), end: undefined }),
      400,
      'PARAMETER_REQUIRED',
    );
    refused(await sam.post('/calendar/events', meeting('2026-03-02', { notify: true })), 400, 'BODY_PROPERTY_UNKNOWN');
    refused(await sam.get('/calendar/events/nonsense'), 400, 'PARAMETER_INVALID');
    refused(await sam.get('/calendar/events?expand=true&from=2026-03-01T00:00:00Z'), 400, 'PARAMETER_REQUIRED');
    refused(await sam.get(window('2026-01-01', '2027-03-01')), 400, 'PARAMETER_INVALID', ['query:to']);
    refused(
      await sam.get('/calendar/events?syncToken=x&expand=true&from=2026-03-01T00:00:00Z&to=2026-03-02T00:00:00Z'),
      400,
      'PARAMETER_CONFLICT',
    );
  });

  it('on a record are seen by those who see the record, private ones only as time that is taken', async () => {
    const deal = (await deals.deal(sam)).body.id;
    const record = { objectApiName: 'Deal__c', id: deal };
    const event = await create(sam, meeting('2026-04-01', { title: 'Handover', record }));
    const secret = await create(sam, meeting('2026-04-02', { title: 'Salary', visibility: 'private', record }));
    const onRecord = `/calendar/events?objectApiName=Deal__c&recordId=${deal}`;
    const seen = await mia.get(onRecord);
    assert.deepEqual(seen.body.records.map((one: { title: string }) => one.title).sort(), ['Handover', null]);
    const hidden = await mia.get(`/calendar/events/${secret.eventId}`);
    assert.deepEqual(
      [hidden.body.title, hidden.body.record, hidden.body.start],
      [null, null, at('2026-04-02T09:00:00')],
    );
    assert.equal((await mia.get(`/calendar/events/${event.eventId}`)).body.record.id, deal);
    const series = await create(sam, meeting('2026-04-06', { title: 'Weekly', ...weekly, record }));
    const instance = `${series.eventId}_20260413T090000`;
    await patch(sam, instance, { title: 'Dismissals', visibility: 'private' }, 'this');
    assert.equal((await mia.get(`/calendar/events/${instance}`)).body.title, null);
    for (const list of [onRecord, window('2026-04-01', '2026-04-30', `&objectApiName=Deal__c&recordId=${deal}`)]) {
      const { text } = await mia.get(list);
      assert.ok(text.includes('Weekly') && !text.includes('Dismissals'), text);
    }
    assert.equal((await sam.get(`/calendar/events/${instance}`)).body.title, 'Dismissals');
    assert.deepEqual(await starts(mia, '2026-04-01', '2026-04-30', 'Handover', `&calendarId=${deals.ids.sam}`), [
      '2026-04-01T09:00:00',
    ]);
    refused(await patch(mia, event.eventId, { title: 'Mine' }), 403, 'RECORD_ACCESS_DENIED');
    refused(
      await mia.post(`/calendar/events/${event.eventId}/respond`, { response: 'accepted' }),
      403,
      'RECORD_ACCESS_DENIED',
    );
    refused(await sue.get(`/calendar/events/${event.eventId}`), 404, 'EVENT_NOT_FOUND');
    refused(await sue.get(onRecord), 404, 'RECORD_NOT_FOUND');
    refused(await sue.post('/calendar/events', meeting('2026-04-01', { record })), 404, 'RECORD_NOT_FOUND');
    assert.deepEqual(await starts(sue, '2026-04-01', '2026-04-30', 'Handover', `&calendarId=${deals.ids.sam}`), []);
  });

  it('are in the calendars of users who are invited, who answer for themselves', async () => {
    const attendees = [{ userId: deals.ids.sue }, { email: 'guest@partner.example', optional: true }];
    const event = await create(
      sam,
      meeting('2026-05-04', { title: 'Kick-off', ...weekly, attendees, visibility: 'private' }),
    );
    assert.deepEqual(await starts(sue, '2026-05-04', '2026-05-18', 'Kick-off'), [
      '2026-05-04T09:00:00',
      '2026-05-11T09:00:00',
    ]);
    const one = `${event.eventId}_20260511T090000`;
    const declined = await sue.post(`/calendar/events/${one}/respond`, { response: 'declined', comment: 'Away' });
    const answers = (answer: Answer) =>
      answer.body.attendees
        .slice(0, 1)
        .map((who: { response: string; comment: string }) => [who.response, who.comment]);
    assert.deepEqual([declined.status, answers(declined)], [201, [['declined', 'Away']]], declined.text);
    const accepted = await sue.post(`/calendar/events/${event.eventId}/respond`, { response: 'accepted' });
    assert.equal(accepted.body.attendees[0].response, 'accepted');
    assert.equal((await sam.get(`/calendar/events/${one}`)).body.attendees[0].response, 'declined');
    refused(
      await sam.post(`/calendar/events/${event.eventId}/respond`, { response: 'accepted' }),
      403,
      'RECORD_ACCESS_DENIED',
    );
    refused(await patch(sue, event.eventId, { title: 'Mine' }), 403, 'RECORD_ACCESS_DENIED');
    const busy = async (who: Api, from: string, to: string) => {
      const body = { userIds: [deals.ids.sue, deals.ids.mia], from, to, timezone: 'Europe/Berlin' };
      const reply = await who.post('/calendar/free-busy', body, { idempotencyKey: null });
      assert.equal(reply.status, 200, reply.text);
      return reply.body.users.map((user: { busy: unknown[] }) => user.busy);
    };
    assert.deepEqual(await busy(mia, '2026-05-04T00:00:00Z', '2026-05-18T00:00:00Z'), [
      [{ from: '2026-05-04T07:00:00+00:00', to: '2026-05-04T08:00:00+00:00' }],
      [],
    ]);
    await create(sue, { title: 'Holiday', start: { date: '2026-05-05' }, end: { date: '2026-05-06' } });
    await create(sue, meeting('2026-05-06', { busy: false }));
    assert.deepEqual((await busy(mia, '2026-05-05T00:00:00Z', '2026-05-07T00:00:00Z'))[0], [
      { from: '2026-05-05T00:00:00+00:00', to: '2026-05-05T22:00:00+00:00' },
    ]);
    const { start, end } = (await sam.get(`/calendar/events/${event.eventId}`)).body;
    await patch(sam, event.eventId, { start, end });
    assert.deepEqual(answers(await sam.get(`/calendar/events/${one}`)), [['declined', 'Away']], 'it was not moved');
    const other = `${event.eventId}_20260518T090000`;
    await patch(sam, other, meeting('2026-05-19'), 'this');
    assert.deepEqual(answers(await sam.get(`/calendar/events/${other}`)), [['needsAction', null]], 'one was moved');
    assert.equal((await sue.post(`/calendar/events/${event.eventId}/respond`, { response: 'accepted' })).status, 201);
    assert.deepEqual(answers(await sam.get(`/calendar/events/${other}`)), [['accepted', null]]);
    await patch(sam, event.eventId, { start, end: { ...end, dateTime: end.dateTime.replace('T10', 'T11') } });
    for (const id of [event.eventId, one])
      assert.deepEqual(answers(await sam.get(`/calendar/events/${id}`)), [['needsAction', null]], 'all were moved');
    const left = await patch(sam, event.eventId, { attendees: [] });
    assert.deepEqual(left.body.attendees, []);
    refused(await sue.get(`/calendar/events/${event.eventId}`), 404, 'EVENT_NOT_FOUND');
    const wrong = {
      userIds: [deals.ids.eve, deals.ids.sue],
      from: '2026-05-05T00:00:00Z',
      to: '2026-09-05T00:00:00Z',
      timezone: 'Mars/Base',
    };
    refused(await sam.post('/calendar/free-busy', wrong, { idempotencyKey: null }), 400, 'PARAMETER_INVALID', [
      '/timezone',
      '/userIds/0',
    ]);
  });

  it('are synchronized by tokens: what changed, and what is gone', async () => {
    const list = async (query: string) => {
      const reply = await mia.get(`/calendar/events${query}`);
      assert.equal(reply.status, 200, reply.text);
      return reply.body;
    };
    const first = await create(mia, meeting('2026-05-31', { title: 'First' }));
    const series = await create(mia, meeting('2026-06-01', { title: 'Series', ...weekly }));
    const single = await create(mia, meeting('2026-06-02', { title: 'Single' }));
    const invited = await create(
      sam,
      meeting('2026-06-03', { title: 'Invited', attendees: [{ userId: deals.ids.mia }] }),
    );
    const titles: string[] = [];
    const gone: string[] = [];
    let page = await list('?take=1');
    for (;;) {
      titles.push(...page.records.map((one: { title: string }) => one.title));
      gone.push(...page.removedEventIds);
      if (page.nextCursor === null) break;
      assert.equal(page.nextSyncToken, null);
      if (titles.length === 1) await remove(mia, first.eventId);
      page = await list(`?take=1&cursor=${page.nextCursor}`);
    }
    assert.deepEqual(titles, ['First', 'Series', 'Single', 'Invited']);
    assert.deepEqual(gone, [first.eventId]);
    const token = page.nextSyncToken;
    assert.deepEqual((await list(`?syncToken=${token}`)).records, []);
    await patch(mia, `${series.eventId}_20260608T090000`, { title: 'Moved' }, 'this');
    await remove(mia, single.eventId);
    await patch(sam, invited.eventId, { attendees: [] });
    const changes = await list(`?syncToken=${token}`);
    assert.deepEqual(
      changes.records.map((one: { eventId: string; title: string }) => [one.eventId, one.title]),
      [
        [series.eventId, 'Series'],
        [`${series.eventId}_20260608T090000`, 'Moved'],
      ],
    );
    assert.deepEqual(changes.removedEventIds, [single.eventId, invited.eventId]);
    assert.deepEqual((await list(`?syncToken=${changes.nextSyncToken}`)).removedEventIds, []);
    for (const foreign of [sam, eve])
      refused(await foreign.get(`/calendar/events?syncToken=${token}`), 400, 'SYNC_TOKEN_EXPIRED');
    const expired = await mia.get('/calendar/events?syncToken=abc');
    refused(expired, 400, 'SYNC_TOKEN_EXPIRED');
    assert.deepEqual((await list(`?syncToken=${expired.body.details.oldestCursor}`)).records, []);
  });

  it('are bounded in number', async () => {
    const { calendar_instances_max: max } = LIMITS;
    for (let n = 0; n < 7; n++)
      await create(mia, meeting('2026-07-01', { title: `Daily ${n}`, recurrence: ['RRULE:FREQ=DAILY'] }));
    const reply = await mia.get(window('2026-07-01', '2027-06-30'));
    refused(reply, 413, 'TOO_MANY_ITEMS');
    assert.equal(reply.body.details.max, max);
    assert.equal((await mia.get(window('2026-07-01', '2026-08-01'))).body.records.length, 50);
  });
});
