/** What users are notified of about events to which they are invited. Source: docs/reference/calendar.md#notifications. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { LIMITS } from '../../../lib/limits.ts';
import type { Api } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import { type Deals, startDeals } from '../data/deals.ts';
import { at, create, meeting, patch, remove, weekly } from './world.ts';

describe('notifications about events', function () {
  this.timeout(120_000);
  let deals: Deals;
  let sam: Api;
  let mia: Api;
  let sue: Api;
  before(async () => {
    deals = await startDeals();
    ({ sam, mia, sue } = deals.as);
    await deals.setUser('sue', { locale: 'de-DE' });
  });
  after(() => deals?.platform.stop());

  const attendees = (...users: (keyof Deals['ids'])[]) => ({
    attendees: users.map((user) => ({ userId: deals.ids[user] })),
  });

  /** Notifications about events that have this title, which each of these tests has of its own. */
  async function about(who: Api, title: string): Promise<{ title: string; body: string }[]> {
    const { records } = (await who.get('/notifications?take=200')).body;
    return records.filter(
      (one: { title: string; type: string }) => one.type.startsWith('calendar') && one.title.endsWith(title),
    );
  }
  const titles = async (who: Api, title: string): Promise<string[]> =>
    (await about(who, title)).map((one) => one.title).sort();
  /** Waits for exactly these. Those that are made together have no order. */
  async function told(who: Api, title: string, wanted: readonly string[]): Promise<void> {
    await until(async () => (await about(who, title)).length >= wanted.length);
    assert.deepEqual(await titles(who, title), wanted.map((word) => `${word}: ${title}`).sort());
  }

  it('are of invitations, other times and cancellations, in the language of each, and not of what is beside', async () => {
    const { eventId } = await create(
      sam,
      meeting('2027-12-07', { title: 'Kick-off', visibility: 'private', ...attendees('mia') }),
    );
    await told(mia, 'Kick-off', ['Invited']);
    const [invited] = (await mia.get('/notifications?type=calendarInvitation')).body.records;
    assert.match(invited.body, /invites you\. When: Tuesday, 7 December 2027, 09:00–10:00 \(Europe\/Berlin\)\.$/);
    assert.deepEqual(
      [invited.record, invited.actor, invited.actions],
      [
        null,
        { userId: deals.ids.sam, agentRunId: null },
        [{ label: 'View the event', operationId: 'calendar.events.get', params: { eventId } }],
      ],
    );
    await patch(sam, eventId, { description: 'New words', busy: false, location: 'Room 2' });
    await patch(sam, eventId, { start: at('2027-12-07T11:00:00'), end: at('2027-12-07T12:00:00') });
    await patch(sam, eventId, { start: at('2027-12-07T11:00:00'), end: at('2027-12-07T12:00:00') });
    await patch(sam, eventId, attendees('mia', 'sue'));
    await patch(sam, eventId, attendees('sue'));
    await patch(sam, eventId, { status: 'canceled' });
    await remove(sam, eventId);
    await told(mia, 'Kick-off', ['Invited', 'Moved', 'No longer invited']);
    await told(sue, 'Kick-off', ['Eingeladen', 'Abgesagt']);
    const [moved] = (await mia.get('/notifications?type=calendarEventMoved')).body.records;
    assert.match(moved.body, /New time: Tuesday, 7 December 2027, 11:00–12:00 \(Europe\/Berlin\)\.$/);
    const [gone] = (await mia.get('/notifications?type=calendarEventCanceled')).body.records;
    assert.deepEqual(gone.actions, []);
    assert.deepEqual(await titles(sam, 'Kick-off'), [], 'the organizer has done it');
    assert.deepEqual(await titles(deals.as.ada, 'Kick-off'), [], 'others are not told');
  });

  it('are of an instance, and once of a series that is changed from an instance on', async () => {
    const { eventId } = await create(sam, meeting('2027-12-06', { title: 'Weekly', ...weekly, ...attendees('mia') }));
    const on = (day: string): string => `${eventId}_202712${day}T090000`;
    await patch(sam, on('13'), { start: at('2027-12-14T09:00:00'), end: at('2027-12-14T10:00:00') });
    await patch(sam, on('13'), { status: 'canceled' });
    await remove(sam, on('13'));
    await patch(sam, on('20'), { title: 'Weekly', location: 'Room 9' });
    await remove(sam, on('20'));
    const later = { start: at('2027-12-27T15:00:00'), end: at('2027-12-27T16:00:00') };
    const begun = await patch(sam, on('27'), later, 'following');
    assert.equal(begun.status, 200, begun.text);
    await remove(sam, `${begun.body.eventId}_20280103T150000`, 'following');
    await remove(sam, eventId);
    const last = meeting('2027-12-06', { title: 'After Weekly', ...attendees('mia') });
    await create(sam, last);
    await until(async () => (await titles(mia, 'After Weekly')).length > 0);
    const found = (await about(mia, ': Weekly')).map(
      ({ title, body }) => `${title.split(':')[0]} ${/, (\d.*), (\d\d:\d\d)/.exec(body)?.slice(1).join(' ')}`,
    );
    assert.deepEqual(
      found.sort(),
      [
        'Invited 6 December 2027 09:00',
        'Moved 14 December 2027 09:00',
        'Canceled 14 December 2027 09:00',
        'Canceled 20 December 2027 09:00',
        'Moved 27 December 2027 15:00',
        'Canceled 3 January 2028 15:00',
        'Canceled 6 December 2027 09:00',
      ].sort(),
    );
  });

  it('tell those who are no longer invited nothing of what the event is from then on', async () => {
    const { eventId } = await create(sam, meeting('2027-12-09', { title: 'Open talk', ...attendees('mia', 'sue') }));
    await told(mia, 'Open talk', ['Invited']);
    const times = { start: at('2027-12-10T15:00:00'), end: at('2027-12-10T16:00:00') };
    await patch(sam, eventId, { title: 'Secret talk', ...times, ...attendees('sue') });
    await told(mia, 'Open talk', ['Invited', 'No longer invited']);
    const gone = (await about(mia, 'Open talk')).find((one) => one.title.startsWith('No longer'));
    assert.match(gone?.body ?? '', /Thursday, 9 December 2027, 09:00–10:00/);
    await told(sue, 'Secret talk', ['Verschoben']);
    assert.deepEqual(await titles(mia, 'Secret talk'), []);
  });

  it('are as many in an hour as a user may send, and the events change nevertheless', async () => {
    const database = new Client({ connectionString: deals.platform.database.url, application_name: 'notices' });
    await database.connect();
    try {
      await database.query('UPDATE notifications.settings SET sent = $1, sent_since = now() WHERE user_id = $2', [
        LIMITS.notification_sent_per_hour_max - 1,
        deals.ids.sam,
      ]);
      await create(sam, meeting('2027-12-11', { title: 'One of too many', ...attendees('mia', 'sue') }));
      await create(deals.as.ada, meeting('2027-12-11', { title: 'Of ada', ...attendees('mia') }));
      await told(mia, 'Of ada', ['Invited']);
      assert.deepEqual(await titles(mia, 'One of too many'), []);
      await database.query("UPDATE notifications.settings SET sent_since = now() - interval '61 minutes'");
      await create(sam, meeting('2027-12-11', { title: 'An hour later', ...attendees('mia') }));
      await told(mia, 'An hour later', ['Invited']);
    } finally {
      await database.end();
    }
  });

  it('are not of what is over, or of a change that is refused', async () => {
    await create(sam, meeting('2020-01-06', { title: 'Past', ...attendees('mia') }));
    const wrong = meeting('2027-12-08', { title: 'Past', recurrence: ['RRULE:x'], ...attendees('mia') });
    assert.equal((await sam.post('/calendar/events', wrong)).status, 422);
    await create(sam, { ...meeting('2027-12-08'), title: 'Then Past', ...attendees('mia') });
    await until(async () => (await titles(mia, 'Past')).length > 0);
    assert.deepEqual(await titles(mia, 'Past'), ['Invited: Then Past']);
  });
});
