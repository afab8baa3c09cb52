/** What stays of answers and instances that differ when series change, and what callers may not do. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { LIMITS } from '../../../lib/limits.ts';
import type { Answer, Api } from '../../support/client.ts';
import { type Deals, startDeals } from '../data/deals.ts';
import { at, create, meeting, patch, refused, remove, weekly } from './world.ts';

describe('exceptions of series', function () {
  this.timeout(180_000);
  let deals: Deals;
  let ada: Api;
  let sam: Api;
  let mia: Api;
  before(async () => {
    deals = await startDeals();
    ({ ada, sam, mia } = deals.as);
  });
  after(() => deals?.platform.stop());

  const attendees = (...users: (keyof Deals['ids'])[]) => ({
    attendees: users.map((user) => ({ userId: deals.ids[user] })),
  });
  const get = async (who: Api, id: string): Promise<Answer['body']> => {
    const reply = await who.get(`/calendar/events/${id}`);
    assert.equal(reply.status, 200, reply.text);
    return reply.body;
  };
  const answer = async (who: Api, id: string, response: string, comment?: string): Promise<void> => {
    const reply = await who.post(`/calendar/events/${id}/respond`, { response, ...(comment ? { comment } : {}) });
    assert.equal(reply.status, 201, reply.text);
  };
  const responses = async (id: string): Promise<string[]> =>
    (await get(ada, id)).attendees.map(({ response }: { response: string }) => response);

  it('that attendees answer take none from the organizer', async () => {
    const { eventId } = await create(
      ada,
      meeting('2026-12-07', { recurrence: ['RRULE:FREQ=DAILY'], ...attendees('sam') }),
    );
    const day = (n: number): string =>
      `${eventId}_${new Date(Date.parse('2026-12-07') + n * 86_400_000).toISOString().slice(0, 10).replaceAll('-', '')}T090000`;
    const max = LIMITS.calendar_exceptions_max;
    await answer(sam, day(0), 'declined');
    const database = new Client({ connectionString: deals.platform.database.url, application_name: 'exceptions' });
    await database.connect();
    await database
      .query(
        `INSERT INTO calendar.overrides
         SELECT tenant_id, event_id, to_char(date '2026-12-07' + n, 'YYYY-MM-DD') || 'T09:00:00', patch, responses,
           to_char(date '2026-12-07' + n, 'YYYY-MM-DD') || 'T09:00:00'
         FROM calendar.overrides, generate_series(1, $2::int) n WHERE event_id = $1`,
        [eventId, max - 1],
      )
      .finally(() => database.end());
    const more = await sam.post(`/calendar/events/${day(max)}/respond`, { response: 'declined' });
    refused(more, 413, 'TOO_MANY_ITEMS');
    await answer(sam, day(0), 'accepted');
    const canceled = await patch(ada, day(max), { status: 'canceled' });
    assert.equal(canceled.status, 200, canceled.text);
    await answer(sam, eventId, 'accepted');
    await remove(ada, eventId);
  });

  it('are canceled with their series', async () => {
    const { eventId } = await create(ada, meeting('2026-12-07', weekly));
    const id = `${eventId}_20261214T090000`;
    await patch(ada, id, { status: 'canceled' });
    await patch(ada, id, { status: 'confirmed' });
    await patch(ada, eventId, { status: 'canceled' });
    assert.equal((await get(ada, id)).status, 'canceled');
    const window = { from: '2026-12-14T00:00:00Z', to: '2026-12-15T00:00:00Z', timezone: 'Europe/Berlin' };
    const { body } = await ada.post('/calendar/free-busy', { userIds: [deals.ids.ada], ...window });
    assert.deepEqual(body.users[0].busy, []);
    await patch(ada, eventId, { status: 'confirmed' });
    assert.equal((await get(ada, id)).status, 'confirmed');
    await remove(ada, eventId);
  });

  it('lose their answers when `following` moves them, and are dropped when it makes whole days of them', async () => {
    const { eventId } = await create(ada, meeting('2026-12-07', { ...weekly, ...attendees('sam') }));
    await answer(sam, `${eventId}_20261221T090000`, 'declined');
    const times = { start: at('2026-12-14T15:00:00'), end: at('2026-12-14T16:00:00') };
    const moved = await patch(ada, `${eventId}_20261214T090000`, times, 'following');
    assert.equal(moved.status, 200, moved.text);
    const id = `${moved.body.eventId}_20261221T150000`;
    assert.deepEqual(await responses(id), ['needsAction']);
    await patch(ada, id, { title: 'Timed' });
    const days = { start: { date: '2026-12-14' }, end: { date: '2026-12-15' } };
    const whole = await patch(ada, `${moved.body.eventId}_20261214T150000`, days, 'following');
    assert.equal(whole.status, 200, whole.text);
    const later = await patch(ada, `${whole.body.eventId}_20261221`, { title: 'Later' });
    assert.deepEqual([later.status, later.body.start], [200, { date: '2026-12-21' }], later.text);
  });

  it('drop timed overrides when `following` makes whole days', async () => {
    const { eventId } = await create(ada, meeting('2026-12-07', weekly));
    await patch(ada, `${eventId}_20261221T090000`, { title: 'Timed' });
    await patch(ada, `${eventId}_20261228T090000`, {
      start: at('2026-12-28T11:00:00'),
      end: at('2026-12-28T12:00:00'),
    });
    const days = { start: { date: '2026-12-14' }, end: { date: '2026-12-15' } };
    const recurrence = ['RRULE:FREQ=WEEKLY', 'RDATE;VALUE=DATE:20261229'];
    const whole = await patch(ada, `${eventId}_20261214T090000`, { ...days, recurrence }, 'following');
    assert.equal(whole.status, 200, whole.text);
    const { records } = (
      await ada.get(`/calendar/events?expand=true&from=2026-12-14T00:00:00Z&to=2027-01-01T00:00:00Z&take=200`)
    ).body;
    const own = records.filter(
      ({ recurringEventId }: { recurringEventId: string }) => recurringEventId === whole.body.eventId,
    );
    assert.ok(own.length > 0);
    assert.ok(
      own.every(({ start, title }: { start: object; title: string }) => 'date' in start && title === 'Meeting'),
      JSON.stringify(own),
    );
  });

  it('and answers stay when times and recurrence are written back as they are', async () => {
    const single = await create(ada, meeting('2026-12-08', attendees('sam')));
    await answer(sam, single.eventId, 'accepted');
    const same = await patch(ada, single.eventId, { recurrence: null });
    assert.deepEqual([same.body.sequence, await responses(single.eventId)], [0, ['accepted']]);
    const { eventId } = await create(ada, meeting('2026-12-07', { ...weekly, ...attendees('sam') }));
    await answer(sam, `${eventId}_20261214T090000`, 'declined');
    await answer(sam, eventId, 'accepted');
    const written = await patch(ada, eventId, weekly);
    assert.deepEqual(
      [written.body.sequence, await responses(eventId), await responses(`${eventId}_20261214T090000`)],
      [0, ['accepted'], ['declined']],
    );
    const other = await patch(ada, eventId, { recurrence: ['RRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=5'] });
    assert.deepEqual([other.body.sequence, await responses(eventId)], [1, ['needsAction']]);
  });

  it('forget what users answered who are no longer invited', async () => {
    const { eventId } = await create(ada, meeting('2026-12-07', { ...weekly, ...attendees('sam', 'mia') }));
    const id = `${eventId}_20261214T090000`;
    await answer(sam, id, 'declined', 'A secret reason');
    await answer(mia, id, 'tentative');
    await patch(ada, eventId, attendees('mia'));
    await patch(ada, eventId, attendees('sam', 'mia'));
    const { attendees: people } = await get(ada, id);
    assert.deepEqual(
      people.map(({ response, comment }: { response: string; comment: string | null }) => [response, comment]),
      [
        ['needsAction', null],
        ['tentative', null],
      ],
    );
  });

  it('end after they begin also in the night in which clocks go back', async () => {
    const { eventId } = await create(
      ada,
      meeting('2027-10-24', {
        title: 'Night',
        start: at('2027-10-24T02:30:00'),
        end: at('2027-10-24T03:00:00'),
        recurrence: ['RRULE:FREQ=WEEKLY'],
      }),
    );
    const titled = await patch(ada, `${eventId}_20271031T023000`, { title: 'Night shift' });
    const utc = { dateTime: '2027-10-31T01:00:00', timezone: 'UTC' };
    assert.deepEqual([titled.body.start, titled.body.end], [at('2027-10-31T02:30:00'), utc]);
    const file = (await ada.get(`/calendar/calendars/${deals.ids.ada}/export.ics`)).text;
    assert.match(file, /DTSTART;TZID=Europe\/Berlin:20271031T023000\r\nDTEND:20271031T010000Z\r\n/);
    const begun = await patch(ada, `${eventId}_20271031T023000`, { title: 'Later' }, 'following');
    assert.equal(begun.status, 200, begun.text);
    const next = await get(ada, `${begun.body.eventId}_20271107T023000`);
    assert.deepEqual(
      [next.start, next.end],
      [at('2027-11-07T02:30:00'), { dateTime: '2027-11-07T02:00:00', timezone: 'UTC' }],
    );
  });

  it('of rules far away are possible or refused', async () => {
    for (const line of ['RRULE:FREQ=DAILY;UNTIL=99991231', 'RRULE:FREQ=DAILY;UNTIL=99991231T000000Z']) {
      const { eventId } = await create(ada, meeting('2026-12-07', { recurrence: [line], title: 'Far' }));
      assert.equal((await get(ada, `${eventId}_20361207T090000`)).title, 'Far');
      const far = await ada.get(`/calendar/events/${eventId}_99991231T233000`);
      refused(far, 404, 'EVENT_NOT_FOUND');
      await remove(ada, eventId);
    }
    const days = { start: { date: '2026-12-07' }, end: { date: '2026-12-08' } };
    for (const body of [
      meeting('2026-12-07', { recurrence: ['RRULE:FREQ=YEARLY;INTERVAL=1000;COUNT=9'] }),
      { title: 'Days', ...days, recurrence: ['RDATE;VALUE=DATE:99991231'] },
    ])
      refused(await ada.post('/calendar/events', body), 422, 'RECURRENCE_INVALID');
  });

  it('and people outside are not for runs of agents', async () => {
    const { runId } = (await ada.post('/agent/runs', { agentKey: 'planner', goal: 'Plan meetings.' })).body;
    const inRun = { headers: { 'x-agent-run-id': runId } };
    const outside = { attendees: [{ email: 'guest@partner.example' }] };
    refused(await ada.post('/calendar/events', meeting('2026-12-09', outside), inRun), 403, 'AGENT_POLICY_DENIED');
    const { eventId, etag } = await create(ada, meeting('2026-12-09', outside));
    const change = { title: 'Buy now' };
    const reply = await ada.patch(`/calendar/events/${eventId}`, change, { etag: etag ?? '', ...inRun });
    refused(reply, 403, 'AGENT_POLICY_DENIED');
    const among = await ada.post('/calendar/events', meeting('2026-12-09', attendees('sam')), inRun);
    assert.equal(among.status, 201, among.text);
    const invited = await ada.patch(`/calendar/events/${among.body.eventId}`, outside, {
      etag: among.headers.get('etag') ?? '',
      ...inRun,
    });
    refused(invited, 403, 'AGENT_POLICY_DENIED');
  });

  it('and events have a title, mail addresses of others, and attendees who have become inactive', async () => {
    refused(await ada.post('/calendar/events', meeting('2026-12-09', { title: ' \t ' })), 400, 'PARAMETER_INVALID', [
      '/title',
    ]);
    const local = { attendees: [{ email: 'a@localhost' }] };
    refused(await ada.post('/calendar/events', meeting('2026-12-09', local)), 400, 'PARAMETER_INVALID', [
      '/attendees/0/email',
    ]);
    const { eventId } = await create(ada, meeting('2026-12-09', attendees('sam', 'sue')));
    refused(await patch(ada, eventId, { title: ' ' }), 400, 'PARAMETER_INVALID', ['/title']);
    await deals.setUser('sue', { active: false });
    const kept = await patch(ada, eventId, attendees('sue', 'sam'));
    assert.equal(kept.status, 200, kept.text);
    const { eventId: other } = await create(ada, meeting('2026-12-09', attendees('sam')));
    refused(await patch(ada, other, attendees('sam', 'sue')), 400, 'PARAMETER_INVALID', ['/attendees/1/userId']);
  });
});
