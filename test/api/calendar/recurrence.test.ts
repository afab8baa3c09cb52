/** Series: instances and their exceptions, scopes, time zones, and rules that are refused. */
import assert from 'node:assert/strict';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { at, create, meeting, patch, refused, remove, starts, weekly } from './world.ts';

describe('series of events', function () {
  this.timeout(120_000);
  let platform: TestPlatform;
  let ada: Api;
  before(async () => {
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
  });
  after(() => platform?.stop());

  const instance = (id: string, time: string): string => `${id}_${time.replaceAll(/[-:]/g, '')}`;
  const get = async (id: string) => {
    const reply = await ada.get(`/calendar/events/${id}`);
    assert.equal(reply.status, 200, reply.text);
    return reply.body;
  };

  it('have instances with ids, and none between them', async () => {
    const { eventId } = await create(ada, meeting('2026-01-05', { ...weekly, title: 'A' }));
    assert.deepEqual(await starts(ada, '2026-01-05', '2026-01-20', 'A'), [
      '2026-01-05T09:00:00',
      '2026-01-12T09:00:00',
      '2026-01-19T09:00:00',
    ]);
    const one = await get(instance(eventId, '2026-01-12T09:00:00'));
    assert.deepEqual(
      [one.recurringEventId, one.originalStart, one.recurrence],
      [eventId, at('2026-01-12T09:00:00'), null],
    );
    for (const time of ['2026-01-13T09:00:00', '2026-01-12T10:00:00', '2025-12-29T09:00:00'])
      refused(await ada.get(`/calendar/events/${instance(eventId, time)}`), 404, 'EVENT_NOT_FOUND');
    refused(await ada.get(`/calendar/events/${eventId}_20260230`), 400, 'PARAMETER_INVALID', ['path:eventId']);
    refused(await patch(ada, eventId, { title: 'B' }, 'this'), 400, 'PARAMETER_INVALID', ['query:scope']);
  });

  it('change one instance, and again, and leave it out', async () => {
    const { eventId } = await create(ada, meeting('2026-02-02', { ...weekly, title: 'One' }));
    const id = instance(eventId, '2026-02-09T09:00:00');
    // Across the border of a day.
    const moved = await patch(ada, id, { start: at('2026-02-10T23:30:00'), end: at('2026-02-11T00:30:00') });
    assert.deepEqual(
      [moved.status, moved.body.eventId, moved.body.originalStart],
      [200, id, at('2026-02-09T09:00:00')],
      moved.text,
    );
    const again = await patch(ada, id, { location: 'Room 9' });
    assert.deepEqual([again.body.start, again.body.location], [at('2026-02-10T23:30:00'), 'Room 9']);
    assert.deepEqual(await starts(ada, '2026-02-02', '2026-02-17', 'One'), [
      '2026-02-02T09:00:00',
      '2026-02-10T23:30:00',
      '2026-02-16T09:00:00',
    ]);
    await patch(ada, eventId, { title: 'Two' });
    assert.equal((await get(id)).title, 'Two');
    refused(await patch(ada, id, { recurrence: ['RRULE:FREQ=DAILY'], attendees: [] }), 400, 'PARAMETER_INVALID', [
      '/recurrence',
      '/attendees',
    ]);
    assert.equal((await remove(ada, id)).status, 200);
    refused(await ada.get(`/calendar/events/${id}`), 404, 'EVENT_NOT_FOUND');
    refused(await remove(ada, id), 404, 'EVENT_NOT_FOUND');
    assert.deepEqual((await get(eventId)).recurrence, [
      'RRULE:FREQ=WEEKLY;BYDAY=MO',
      'EXDATE;TZID=Europe/Berlin:20260209T090000',
    ]);
  });

  it('are split by `following`, with the exceptions on both sides', async () => {
    const { eventId } = await create(
      ada,
      meeting('2026-03-02', { recurrence: ['RRULE:FREQ=WEEKLY;COUNT=6'], title: 'Split' }),
    );
    await patch(ada, instance(eventId, '2026-03-09T09:00:00'), { location: 'Early' });
    await patch(ada, instance(eventId, '2026-03-30T09:00:00'), { location: 'Late' });
    const split = await patch(
      ada,
      instance(eventId, '2026-03-23T09:00:00'),
      { start: at('2026-03-23T11:00:00'), end: at('2026-03-23T12:00:00') },
      'following',
    );
    assert.equal(split.status, 200, split.text);
    const second = split.body.eventId;
    assert.notEqual(second, eventId);
    assert.deepEqual(split.body.recurrence, ['RRULE:FREQ=WEEKLY;COUNT=3']);
    assert.deepEqual((await get(eventId)).recurrence, ['RRULE:FREQ=WEEKLY;UNTIL=20260323T075959Z']);
    assert.deepEqual(await starts(ada, '2026-03-02', '2026-05-01', 'Split'), [
      '2026-03-02T09:00:00',
      '2026-03-09T09:00:00',
      '2026-03-16T09:00:00',
      '2026-03-23T11:00:00',
      '2026-03-30T11:00:00',
      '2026-04-06T11:00:00',
    ]);
    assert.equal((await get(instance(eventId, '2026-03-09T09:00:00'))).location, 'Early');
    assert.equal((await get(instance(second, '2026-03-30T11:00:00'))).location, 'Late');
    assert.equal((await remove(ada, instance(second, '2026-03-30T11:00:00'), 'following')).status, 200);
    assert.deepEqual(await starts(ada, '2026-03-17', '2026-05-01', 'Split'), ['2026-03-23T11:00:00']);
    assert.equal((await remove(ada, instance(eventId, '2026-03-02T09:00:00'), 'following')).status, 200);
    refused(await ada.get(`/calendar/events/${eventId}`), 404, 'EVENT_NOT_FOUND');
  });

  it('are moved as a whole, with what was different in their instances', async () => {
    const { eventId } = await create(ada, meeting('2026-06-01', { ...weekly, title: 'Whole' }));
    await patch(ada, instance(eventId, '2026-06-08T09:00:00'), { location: 'Elsewhere' });
    await remove(ada, instance(eventId, '2026-06-15T09:00:00'));
    const later = { start: at('2026-06-22T14:00:00'), end: at('2026-06-22T16:00:00') };
    const moved = await patch(ada, instance(eventId, '2026-06-22T09:00:00'), later, 'series');
    assert.deepEqual(
      [moved.body.eventId, moved.body.start, moved.body.end],
      [eventId, at('2026-06-01T14:00:00'), at('2026-06-01T16:00:00')],
      moved.text,
    );
    assert.deepEqual(await starts(ada, '2026-06-01', '2026-06-30', 'Whole'), [
      '2026-06-01T14:00:00',
      '2026-06-08T14:00:00',
      '2026-06-22T14:00:00',
      '2026-06-29T14:00:00',
    ]);
    assert.equal((await get(instance(eventId, '2026-06-08T14:00:00'))).location, 'Elsewhere');
    const tuesday = { start: at('2026-06-02T09:00:00'), end: at('2026-06-02T10:00:00') };
    refused(await patch(ada, eventId, tuesday), 422, 'RECURRENCE_INVALID', ['/recurrence']);
    const both = await patch(ada, eventId, { ...tuesday, recurrence: ['RRULE:FREQ=WEEKLY;BYDAY=TU'] });
    assert.equal(both.status, 200, both.text);
    assert.deepEqual(await starts(ada, '2026-06-01', '2026-06-10', 'Whole'), [
      '2026-06-02T09:00:00',
      '2026-06-09T09:00:00',
    ]);
    const once = await patch(ada, eventId, { recurrence: null });
    assert.deepEqual(
      [once.body.recurrence, await starts(ada, '2026-06-01', '2026-06-30', 'Whole')],
      [null, ['2026-06-02T09:00:00']],
    );
  });

  it('keep their local time when clocks change', async () => {
    const daily = {
      recurrence: ['RRULE:FREQ=DAILY'],
      start: at('2026-03-28T02:30:00'),
      end: at('2026-03-28T03:15:00'),
      title: 'Night',
    };
    const { eventId } = await create(ada, daily);
    // The clocks skip 02:30 on the 29th of March, and pass it twice on the 25th of October.
    assert.deepEqual(await starts(ada, '2026-03-28', '2026-03-31', 'Night'), [
      '2026-03-28T02:30:00',
      '2026-03-29T02:30:00',
      '2026-03-30T02:30:00',
    ]);
    const skipped = await get(instance(eventId, '2026-03-29T02:30:00'));
    assert.deepEqual([skipped.start, skipped.end], [at('2026-03-29T02:30:00'), at('2026-03-29T04:15:00')]);
    const body = {
      userIds: [(await ada.get('/identity')).body.user.id],
      from: '2026-10-24T12:00:00Z',
      to: '2026-10-25T12:00:00Z',
      timezone: 'UTC',
    };
    const { users } = (await ada.post('/calendar/free-busy', body, { idempotencyKey: null })).body;
    assert.deepEqual(users[0].busy, [{ from: '2026-10-25T00:30:00+00:00', to: '2026-10-25T01:15:00+00:00' }]);
    await remove(ada, eventId);
  });

  it('of whole days begin and end on days', async () => {
    const { eventId } = await create(ada, {
      title: 'Days',
      start: { date: '2026-08-03' },
      end: { date: '2026-08-05' },
      recurrence: ['RRULE:FREQ=MONTHLY;BYDAY=1MO;UNTIL=20261005', 'EXDATE;VALUE=DATE:20260907'],
    });
    assert.deepEqual(await starts(ada, '2026-08-01', '2026-12-31', 'Days'), ['2026-08-03', '2026-10-05']);
    const id = `${eventId}_20261005`;
    assert.deepEqual((await get(id)).end, { date: '2026-10-07' });
    refused(
      await patch(ada, id, { start: at('2026-10-05T09:00:00'), end: at('2026-10-05T10:00:00') }),
      400,
      'PARAMETER_INVALID',
      ['/start'],
    );
    assert.deepEqual(await starts(ada, '2026-10-06', '2026-10-07', 'Days'), ['2026-10-05']);
  });

  it('have rules that end somewhere, and are refused otherwise', async () => {
    const cases: [string | string[], RegExp][] = [
      ['RRULE:FREQ=SECONDLY', /FREQ/],
      ['RRULE:FREQ=HOURLY;INTERVAL=2', /FREQ/],
      ['RRULE:FREQ=DAILY;BYSECOND=1,2,3', /BYSECOND/],
      ['RRULE:FREQ=DAILY;BYHOUR=9,10', /BYHOUR/],
      ['RRULE:FREQ=DAILY;COUNT=99999999', /COUNT/],
      ['RRULE:FREQ=DAILY;COUNT=2;UNTIL=20261231', /exclude/],
      ['RRULE:FREQ=DAILY;INTERVAL=0', /INTERVAL/],
      ['RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30', /is not a time of the rule/],
      ['RRULE:FREQ=DAILY;BYMONTH=1;BYMONTHDAY=5;COUNT=500', /too many steps/],
      [`RRULE:FREQ=YEARLY;BYYEARDAY=${Array.from({ length: 366 }, (_, i) => i + 1)}`, /at most 50 values/],
      ['RRULE:FREQ=WEEKLY;BYDAY=2MO', /Numbers in BYDAY/],
      ['RRULE:FREQ=WEEKLY;BYDAY=TU', /is not a time of the rule/],
      ['RRULE:FREQ=DAILY;UNTIL=20250101', /is not a time of the rule/],
      ['RRULE:FREQ=DAILY;UNTIL=20260230', /UNTIL/],
      ['RRULE:FREQ=DAILY;FREQ=WEEKLY', /stands twice/],
      ['RRULE:BYDAY=MO', /FREQ is missing/],
      [['RRULE:FREQ=DAILY', 'RRULE:FREQ=DAILY'], /one RRULE/],
      ['EXDATE:20260105T090000', /nothing repeats/],
      ['EXDATE;TZID=Mars/Base:20260105T090000', /time zone/],
      ['RDATE:20260105', /Not a time/],
      ['DTSTART:20260105T090000', /begins with/],
    ];
    for (const [lines, message] of cases) {
      const reply = await ada.post('/calendar/events', meeting('2026-01-05', { recurrence: [lines].flat() }));
      refused(reply, 422, 'RECURRENCE_INVALID');
      assert.match(reply.body.message, message, String(lines).slice(0, 80));
      assert.match(reply.body.errors[0].pointer, /^\/recurrence/);
    }
  });
});
