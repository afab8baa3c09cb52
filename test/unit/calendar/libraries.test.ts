/** Random rules have the times that another library finds. A failure prints its seed. */
import assert from 'node:assert/strict';
import rrule from 'rrule';
import { readRecurrence, timesOf } from '../../../services/calendar/recurrence/rule.ts';
import { wallOf } from '../../../services/calendar/recurrence/times.ts';
import { randomNumbers } from '../../support/random.ts';

const RUNS = Number(process.env['RECURRENCE_RUNS'] ?? 40);
const DAYS = ['MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU'];

describe('recurrence of random rules', () => {
  it('is that of another library', async () => {
    const seed = Number(process.env['RECURRENCE_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
    const below = randomNumbers(seed);
    const some = <T>(values: readonly T[], most: number): string =>
      [...new Set(Array.from({ length: 1 + below(most) }, () => values[below(values.length)]))].join();
    const days = Array.from({ length: 31 }, (_, i) => i + 1);
    let compared = 0;
    for (let run = 0; run < RUNS; run++) {
      const frequency = ['DAILY', 'WEEKLY', 'MONTHLY', 'YEARLY'][below(4)] ?? '';
      const parts = [`FREQ=${frequency}`, `INTERVAL=${1 + below(4)}`];
      if (below(2)) parts.push(`BYMONTH=${some([1, 2, 3, 6, 9, 12], 3)}`);
      if (below(2)) parts.push(`BYDAY=${some(DAYS, 4)}`);
      if (frequency !== 'WEEKLY' && below(3) === 0) parts.push(`BYMONTHDAY=${some([...days, -1, -2], 5)}`);
      if (frequency === 'MONTHLY' && parts.some((part) => part.startsWith('BYDAY')) && below(2))
        parts.push('BYSETPOS=-1');
      if (below(3) === 0) parts.push(`COUNT=${1 + below(40)}`);
      const rule = parts.join(';');
      const text = `DTSTART:2024${below(2) ? '0102' : '0229'}T090000Z\nRRULE:${rule}`;
      const other = rrule.rrulestr(text);
      // A series begins with a time of its rule.
      const [first] = other.between(new Date('2024-01-01'), new Date('2027-01-01'), true, (_, i) => i === 0);
      if (!first) continue;
      const start = first.getTime();
      const anchored = rrule.rrulestr(`DTSTART:${first.toISOString().replaceAll(/[-:]|\.000/g, '')}\nRRULE:${rule}`);
      const [from, to] = ['2025-01-01T00:00:00', '2026-12-31T00:00:00'].map(wallOf) as [number, number];
      const expected = anchored.between(new Date(from), new Date(to - 1), true).map((time) => time.getTime());
      const read = await readRecurrence([`RRULE:${rule}`], { wall: start, timezone: 'UTC' });
      if (!('value' in read)) continue;
      const found = timesOf(start, read.value, from, to).filter((wall) => wall >= start);
      assert.deepEqual(found, expected, `seed ${seed}: ${first.toISOString()} ${rule}`);
      compared++;
    }
    assert.ok(compared > RUNS / 2, `seed ${seed}: only ${compared} rules were compared`);
  });
});
