import assert from 'node:assert/strict';
import { dateOfDay, dayNumber } from '../../../lib/values/calendar.ts';
import { relativeDays, startOfDay } from '../../../lib/values/relative-dates.ts';

const SATURDAY = Date.parse('2026-11-21T12:00:00Z');

const days = (literal: string, now = SATURDAY, timezone = 'UTC'): string[] => {
  const { from, to } = relativeDays(literal, now, timezone)!;
  return [dateOfDay(from), dateOfDay(to - 1)];
};

describe('dates relative to now', () => {
  const ranges: Record<string, [string, string]> = {
    TODAY: ['2026-11-21', '2026-11-21'],
    YESTERDAY: ['2026-11-20', '2026-11-20'],
    TOMORROW: ['2026-11-22', '2026-11-22'],
    THIS_WEEK: ['2026-11-16', '2026-11-22'],
    LAST_WEEK: ['2026-11-09', '2026-11-15'],
    THIS_MONTH: ['2026-11-01', '2026-11-30'],
    LAST_MONTH: ['2026-10-01', '2026-10-31'],
    THIS_QUARTER: ['2026-10-01', '2026-12-31'],
    THIS_YEAR: ['2026-01-01', '2026-12-31'],
    'LAST_N_DAYS:7': ['2026-11-14', '2026-11-21'],
    'NEXT_N_DAYS:7': ['2026-11-22', '2026-11-28'],
  };
  for (const [literal, range] of Object.entries(ranges))
    it(`${literal} on Saturday 2026-11-21 is ${range.join(' to ')}`, () => assert.deepEqual(days(literal), range));

  it('cross the end of a year', () => {
    assert.deepEqual(days('LAST_MONTH', Date.parse('2027-01-15T00:00:00Z')), ['2026-12-01', '2026-12-31']);
  });

  it('begin a week on Monday, also on a Sunday and a Monday', () => {
    assert.deepEqual(days('THIS_WEEK', Date.parse('2026-11-22T23:59:59Z')), ['2026-11-16', '2026-11-22']);
    assert.deepEqual(days('THIS_WEEK', Date.parse('2026-11-23T00:00:00Z')), ['2026-11-23', '2026-11-29']);
  });

  it('follow the caller’s time zone: already tomorrow on Kiritimati, still yesterday in Honolulu', () => {
    const now = Date.parse('2026-11-21T10:30:00Z');
    assert.equal(days('TODAY', now, 'Pacific/Kiritimati')[0], '2026-11-22');
    assert.equal(days('TODAY', Date.parse('2026-11-21T09:30:00Z'), 'Pacific/Honolulu')[0], '2026-11-20');
  });

  it('refuse other literals', () => {
    for (const literal of ['today', 'NOW', 'LAST_N_DAYS', 'LAST_N_DAYS:0', 'LAST_N_DAYS:99999', 'NEXT_N_DAYS:-1', ''])
      assert.equal(relativeDays(literal, SATURDAY, 'UTC'), null, literal);
  });

  it('use UTC when the time zone of the user is unknown', () => {
    assert.deepEqual(days('TODAY', SATURDAY, 'Middle/Earth'), ['2026-11-21', '2026-11-21']);
  });
});

describe('the first moment of a day', () => {
  const starts: [day: string, timezone: string, instant: string][] = [
    ['2026-03-29', 'Europe/Berlin', '2026-03-28T23:00:00.000Z'],
    ['2026-03-30', 'Europe/Berlin', '2026-03-29T22:00:00.000Z'],
    ['2026-10-25', 'Europe/Berlin', '2026-10-24T22:00:00.000Z'],
    ['2026-10-26', 'Europe/Berlin', '2026-10-25T23:00:00.000Z'],
    ['2026-11-01', 'America/New_York', '2026-11-01T04:00:00.000Z'],
    ['2026-11-02', 'America/New_York', '2026-11-02T05:00:00.000Z'],
    ['2026-11-21', 'Asia/Kolkata', '2026-11-20T18:30:00.000Z'],
    ['2026-11-21', 'Pacific/Kiritimati', '2026-11-20T10:00:00.000Z'],
  ];
  for (const [day, timezone, instant] of starts)
    it(`${day} in ${timezone} is ${instant}`, () =>
      assert.equal(new Date(startOfDay(dayNumber(day), timezone)).toISOString(), instant));

  it('is one o’clock where midnight does not exist', () => {
    // Santiago put its clocks forward at midnight.
    assert.equal(
      new Date(startOfDay(dayNumber('2022-09-11'), 'America/Santiago')).toISOString(),
      '2022-09-11T04:00:00.000Z',
    );
  });

  it('is the first of two midnights', () => {
    // Havana put its clocks back from one o’clock to midnight.
    assert.equal(
      new Date(startOfDay(dayNumber('2022-11-06'), 'America/Havana')).toISOString(),
      '2022-11-06T04:00:00.000Z',
    );
  });
});
