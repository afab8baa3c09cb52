/** Large calendars are worked on in turns of the event loop: other requests of the process wait for none of them. */
import assert from 'node:assert/strict';
import type { OperationInput } from '../../../contracts/operations.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { CalendarDeps } from '../../../services/calendar/deps.ts';
import type { EventRow } from '../../../services/calendar/events/event.ts';
import { listEvents } from '../../../services/calendar/events/list.ts';
import { queryFreeBusy } from '../../../services/calendar/free-busy.ts';
import { eventFor } from '../../../services/calendar/ics.ts';
import { readRecurrence } from '../../../services/calendar/recurrence/rule.ts';
import { localOf, wallOf } from '../../../services/calendar/recurrence/times.ts';
import { longestTurnDuring } from '../../support/processor.ts';

const DAY_MS = 86_400_000;
const START = '2026-12-07T09:00:00';
const ZONE = 'Europe/Berlin';
const MAX_MS = 250;

const idOf = (n: number): string => `01990000-0000-7000-8000-${String(n).padStart(12, '0')}`;

const compact = (wall: number): string => localOf(wall).replaceAll(/[-:]/g, '');

const days = (first: number, count: number): string =>
  Array.from({ length: count }, (_, i) => compact(wallOf(START) + (first + i) * DAY_MS)).join(',');

/** Daily, with as many exceptions as there may be. */
const READ = await readRecurrence(
  [
    'RRULE:FREQ=DAILY',
    `EXDATE:${days(1, LIMITS.calendar_exceptions_max)}`,
    `RDATE:${days(2_000, LIMITS.calendar_exceptions_max)}`,
  ],
  { wall: wallOf(START), timezone: ZONE },
);

function series(n: number, calendars: readonly string[]) {
  assert.ok('value' in READ, JSON.stringify(READ));
  return {
    ...{ eventId: idOf(n), calendarId: idOf(0), version: 1, sequence: 0, position: n, override: null, overrides: [] },
    ...{ startLocal: START, startTimezone: ZONE, endLocal: '2026-12-07T10:00:00', endTimezone: ZONE },
    recurrence: READ.value,
    content: {
      title: 'Series',
      description: null,
      location: null,
      status: 'confirmed',
      visibility: 'default',
      busy: true,
      reminders: [],
    },
    ...{ attendees: [], objectApiName: null, recordId: null, inCalendars: calendars },
    ...{ createdAt: '2026-11-30T00:00:00Z', updatedAt: '2026-11-30T00:00:00Z' },
  };
}

/** What the handlers ask of others; the database answers these rows. */
const depsOf = (rows: readonly object[]): CalendarDeps =>
  ({
    database: { shared: async () => rows },
    sealingKeys: [Buffer.alloc(32)],
    epoch: async () => ({ epoch: 'epoch' }),
    unknownPrincipals: async () => [],
  }) as unknown as CalendarDeps;

/** Instances of a series, each moved to another time zone. */
const inAllZones = () =>
  Intl.supportedValuesOf('timeZone').map((zone, n) => {
    const startLocal = localOf(wallOf(START) + (501 + n) * DAY_MS);
    const endLocal = localOf(wallOf(startLocal) + 3_600_000);
    return {
      originalStart: startLocal,
      patch: { startLocal, startTimezone: zone, endLocal, endTimezone: zone },
      responses: {},
    };
  });

const request = { tenantId: idOf(1), userId: idOf(0), clientId: 'erp-cli' } as RequestContext;

describe('turns of large calendars', function () {
  this.timeout(30_000);

  it('are given while a page of series is written', async () => {
    const rows = Array.from({ length: LIMITS.take_max }, (_, n) => series(n, []));
    const query = { take: LIMITS.take_max } as OperationInput<'calendar.events.list'>['query'];
    const call = { query } as OperationInput<'calendar.events.list'>;
    const longestMs = await longestTurnDuring(Promise.resolve().then(() => listEvents(depsOf(rows), request, call)));
    assert.ok(longestMs < MAX_MS, `${longestMs} ms`);
  });

  it('are given while a series whose instances are in all time zones is listed', async () => {
    const rows = [{ ...series(1, []), overrides: inAllZones() }];
    const query = { from: '2028-04-20T00:00:00Z', to: '2028-06-20T00:00:00Z', expand: true, take: LIMITS.take_max };
    const call = { query } as OperationInput<'calendar.events.list'>;
    const longestMs = await longestTurnDuring(Promise.resolve().then(() => listEvents(depsOf(rows), request, call)));
    assert.ok(longestMs < MAX_MS, `${longestMs} ms`);
  });

  it('are given while such a series is written for people outside, and its zones count in the bound', async () => {
    const event = series(1, []) as unknown as EventRow;
    const told = { method: 'REQUEST', event, overrides: inAllZones(), isInstance: false } as const;
    const organizer = { address: 'eve@demo.example', name: 'Eve "Support"\r\n Carter' };
    const made = eventFor(told, organizer, Date.parse('2026-11-30T00:00:00Z'));
    const longestMs = await longestTurnDuring(made);
    assert.ok(longestMs < MAX_MS, `${longestMs} ms`);
    const text = (await made)({ address: 'guest@partner.example', optional: false });
    assert.ok(Buffer.byteLength(text) <= 64 * 1_024, `${Buffer.byteLength(text)} bytes`);
    assert.match(text, /\r\nORGANIZER;CN="Eve Support Carter":mailto:eve@demo\.example\r\n/);
    const zones = [...text.matchAll(/\r\nTZID:(.*)\r\n/g)].map(([, zone]) => zone);
    const named = [...text.replaceAll('\r\n ', '').matchAll(/;TZID=(.*?):/g)].map(([, zone]) => zone);
    assert.ok(zones.length > 10, `${zones.length} zones`);
    assert.deepEqual(zones, [...new Set(named)], 'each zone that is named, once');
  });

  const freeBusyOf = (rows: readonly object[], users: readonly string[]) => {
    const body = { userIds: users, from: '2028-04-20T00:00:00Z', to: '2028-06-20T00:00:00Z', timezone: ZONE };
    return queryFreeBusy(depsOf(rows), request, { body } as OperationInput<'calendar.freeBusy.query'>);
  };
  const users = Array.from({ length: LIMITS.calendar_free_busy_users_max }, (_, n) => idOf(1_000 + n));

  it('are given while free and busy of many users is looked for', async () => {
    const rows = Array.from({ length: 8 }, (_, n) => series(n, users));
    const answer = Promise.resolve().then(() => freeBusyOf(rows, users));
    const longestMs = await longestTurnDuring(answer);
    assert.ok(longestMs < MAX_MS, `${longestMs} ms`);
    assert.equal(((await answer).body as { users: unknown[] }).users.length, users.length);
  });

  it('are given until free and busy has too many times of all users together', async () => {
    const rows = Array.from({ length: 100 }, (_, n) => series(n, users));
    const answer = Promise.resolve().then(() => assert.rejects(freeBusyOf(rows, users), { code: 'TOO_MANY_ITEMS' }));
    const longestMs = await longestTurnDuring(answer);
    assert.ok(longestMs < MAX_MS, `${longestMs} ms`);
  });
});
