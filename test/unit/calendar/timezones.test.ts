/** Time zones of files have the offsets that Node knows, when another library reads their rules. */
import assert from 'node:assert/strict';
import rrule from 'rrule';
import { timezoneLines } from '../../../services/calendar/timezones.ts';

const NOW = Date.parse('2026-11-30T00:00:00Z');
const DAY = 86_400_000;

/** Moments at which an offset begins, in order, up to the end of a year. */
function onsetsIn(lines: readonly string[], lastYear: number): { at: number; offset: number }[] {
  const minutes = (text = ''): number =>
    Number(`${text[0]}1`) * (Number(text.slice(1, 3)) * 60 + Number(text.slice(3)));
  const end = new Date(Date.UTC(lastYear + 1, 0, 1));
  return lines
    .join('\n')
    .split(/^BEGIN:(?:STANDARD|DAYLIGHT)$/m)
    .slice(1)
    .flatMap((text) => {
      const value = (name: string): string => new RegExp(`^${name}:(.*)$`, 'm').exec(text)?.[1] ?? '';
      const [from, to] = [minutes(value('TZOFFSETFROM')), minutes(value('TZOFFSETTO'))];
      const rule = value('RRULE');
      const start = `DTSTART:${value('DTSTART')}Z`;
      const times = rrule.rrulestr(rule ? `${start}\nRRULE:${rule}` : `${start}\nRRULE:FREQ=DAILY;COUNT=1`);
      return times
        .between(new Date(0), end, true)
        .map((time) => ({ at: time.getTime() - from * 60_000, offset: to * 60_000 }));
    })
    .sort((one, other) => one.at - other.at);
}

function offsetOf(format: Intl.DateTimeFormat, at: number): number {
  const part = (name: string, parts: Intl.DateTimeFormatPart[]): number =>
    Number(parts.find(({ type }) => type === name)?.value);
  const parts = format.formatToParts(at);
  const [year, month, day] = [part('year', parts), part('month', parts), part('day', parts)];
  return Date.UTC(year, month - 1, day, part('hour', parts), part('minute', parts), part('second', parts)) - at;
}

/** Moments up to a year at which the file and Node differ, around each change of both and in between. */
function differences(zone: string, lines: readonly string[], lastYear: number): string[] {
  const format = new Intl.DateTimeFormat('en', {
    timeZone: zone,
    hourCycle: 'h23',
    ...{ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' },
  });
  const onsets = onsetsIn(lines, lastYear);
  const begin = NOW - 5 * 366 * DAY;
  const inside = onsets.filter(({ at }) => at > begin).flatMap(({ at }) => [at - 1_000, at]);
  const between = Array.from({ length: (lastYear - 2021) * 24 }, (_, n) => begin + n * 15.3 * DAY);
  return [...inside, ...between]
    .map((at) => at - (at % 1_000))
    .filter((at) => at < Date.UTC(lastYear + 1, 0, 1))
    .flatMap((at) => {
      const found = onsets.findLast((onset) => onset.at <= at)?.offset;
      const known = offsetOf(format, at);
      return found === known ? [] : [`${zone} ${new Date(at).toISOString()}: ${found} and not ${known}`];
    });
}

describe('time zones of files', function () {
  this.timeout(60_000);

  it('go on by rules where the zone has some', () => {
    const rules = (zone: string): string[] => timezoneLines(zone, NOW).filter((line) => line.startsWith('RRULE'));
    const yearly = (...parts: string[]): string[] => parts.map((part) => `RRULE:FREQ=YEARLY;${part}`);
    const expected: Record<string, string[]> = {
      'Europe/Berlin': yearly('BYMONTH=3;BYDAY=-1SU', 'BYMONTH=10;BYDAY=-1SU'),
      'America/New_York': yearly('BYMONTH=3;BYDAY=2SU', 'BYMONTH=11;BYDAY=1SU'),
      'Asia/Jerusalem': yearly('BYMONTH=3;BYMONTHDAY=23,24,25,26,27,28,29;BYDAY=FR', 'BYMONTH=10;BYDAY=-1SU'),
      'Australia/Lord_Howe': yearly('BYMONTH=10;BYDAY=1SU', 'BYMONTH=4;BYDAY=1SU'),
      'Asia/Tokyo': [],
      // Its change in October is in November in some years.
      'Africa/Cairo': [],
    };
    for (const [zone, wanted] of Object.entries(expected)) assert.deepEqual(rules(zone), wanted, zone);
  });

  it('have the offsets that Node knows, for decades where there are rules', () => {
    let ruled = 0;
    for (const zone of Intl.supportedValuesOf('timeZone')) {
      if (zone === 'UTC') continue;
      const lines = timezoneLines(zone, NOW);
      const hasRules = lines.some((line) => line.startsWith('RRULE'));
      if (hasRules) ruled++;
      assert.deepEqual(differences(zone, lines, hasRules ? 2070 : 2030).slice(0, 5), [], lines.join('\n'));
    }
    assert.ok(ruled > 80, `${ruled} zones with rules`);
  });
});
