/** How recurrences are said in words. */
import assert from 'node:assert/strict';
import { de } from '../../../services/auth/mail/languages/de.ts';
import { en } from '../../../services/auth/mail/languages/en.ts';
import type { Every } from '../../../services/auth/mail/languages/language.ts';
import { repetitionOf } from '../../../services/calendar/recurrence/repetition.ts';
import { readRecurrence } from '../../../services/calendar/recurrence/rule.ts';
import { wallOf } from '../../../services/calendar/recurrence/times.ts';

/** A Monday, the second of its month. */
const START = wallOf('2026-12-14T09:00:00');

async function read(lines: string | readonly string[], differ = false) {
  const found = await readRecurrence([lines].flat(), { wall: START, timezone: 'Europe/Berlin' });
  assert.ok('value' in found, JSON.stringify(found));
  return repetitionOf(START, found.value, differ);
}

describe('the words of a recurrence', () => {
  const plain = { interval: 1, weekdays: [], place: null, monthDay: null };

  it('are of the rules that people speak of', async () => {
    const patterns: [rule: string, pattern: object][] = [
      ['FREQ=DAILY;INTERVAL=3', { ...plain, unit: 'day', interval: 3 }],
      ['FREQ=DAILY;BYDAY=TU,MO', { ...plain, unit: 'week', weekdays: ['MO', 'TU'] }],
      ['FREQ=WEEKLY', { ...plain, unit: 'week', weekdays: ['MO'] }],
      ['FREQ=WEEKLY;INTERVAL=2;BYDAY=WE,MO;WKST=SU', { ...plain, unit: 'week', interval: 2, weekdays: ['MO', 'WE'] }],
      ['FREQ=MONTHLY', { ...plain, unit: 'month', monthDay: 14 }],
      ['FREQ=MONTHLY;BYMONTHDAY=14', { ...plain, unit: 'month', monthDay: 14 }],
      ['FREQ=MONTHLY;BYDAY=+2MO', { ...plain, unit: 'month', weekdays: ['MO'], place: 2 }],
      ['FREQ=MONTHLY;BYDAY=MO;BYSETPOS=2', { ...plain, unit: 'month', weekdays: ['MO'], place: 2 }],
      ['FREQ=YEARLY', { ...plain, unit: 'year' }],
      ['FREQ=YEARLY;BYMONTH=12', { ...plain, unit: 'year' }],
      ['FREQ=YEARLY;BYMONTHDAY=14;BYMONTH=12', { ...plain, unit: 'year' }],
    ];
    for (const [rule, pattern] of patterns) assert.deepEqual((await read(`RRULE:${rule}`)).pattern, pattern, rule);
  });

  it('are none of others', async () => {
    for (const rule of [
      'FREQ=DAILY;INTERVAL=2;BYDAY=MO,WE',
      'FREQ=DAILY;BYMONTH=12',
      'FREQ=WEEKLY;BYDAY=MO;BYMONTH=12',
      'FREQ=MONTHLY;BYDAY=MO',
      'FREQ=MONTHLY;BYMONTHDAY=14,28',
      'FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=4',
      'FREQ=YEARLY;BYMONTHDAY=14',
      'FREQ=YEARLY;BYDAY=2MO;BYMONTH=12',
    ])
      assert.equal((await read(`RRULE:${rule}`)).pattern, null, rule);
    assert.deepEqual(await read('RDATE:20261216T090000'), {
      pattern: null,
      count: null,
      until: '2026-12-16',
      exceptions: false,
    });
  });

  it('have the day of the last time, and say that there are exceptions', async () => {
    const until = async (lines: string | readonly string[]) => (await read(lines)).until;
    assert.equal(await until('RRULE:FREQ=WEEKLY;UNTIL=20270103'), '2026-12-28');
    assert.equal(await until('RRULE:FREQ=WEEKLY;INTERVAL=4;UNTIL=20270204'), '2027-01-11');
    assert.equal(await until(['RRULE:FREQ=WEEKLY;UNTIL=20270103', 'EXDATE:20261228T090000']), '2026-12-28');
    assert.deepEqual(
      [(await read('RRULE:FREQ=WEEKLY')).exceptions, (await read('RRULE:FREQ=WEEKLY', true)).exceptions],
      [false, true],
    );
    assert.deepEqual(await read(['RRULE:FREQ=DAILY;COUNT=5', 'EXDATE:20261215T090000']), {
      pattern: { ...plain, unit: 'day' },
      count: 5,
      until: null,
      exceptions: true,
    });
  });

  it('are those of the language', () => {
    const say = (every: Partial<Every> | null, more: object = {}): string[] =>
      [en, de].map(({ repetition }) =>
        repetition({
          every: every && { ...plain, unit: 'month', ...every, weekdays: every.weekdays ?? '' },
          count: null,
          until: null,
          exceptions: false,
          ...more,
        }),
      );
    assert.deepEqual(say({ unit: 'day' }), ['every day', 'jeden Tag']);
    assert.deepEqual(say({ unit: 'week', interval: 2, weekdays: 'X' }, { count: 10 }), [
      'every 2 weeks on X, 10 times',
      'alle 2 Wochen am X, 10-mal',
    ]);
    assert.deepEqual(say({ monthDay: 14 }, { until: 'Y' }), [
      'every month on day 14 until Y',
      'jeden Monat am 14. bis Y',
    ]);
    assert.deepEqual(say({ weekdays: 'X', place: -1 }, { exceptions: true }), [
      'every month on the last X, with exceptions',
      'jeden Monat am letzten X, mit Ausnahmen',
    ]);
    assert.deepEqual(say(null), ['at the times of the calendar file', 'zu den Zeiten der Kalenderdatei']);
  });
});
