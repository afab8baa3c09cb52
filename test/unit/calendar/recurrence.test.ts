/** Rules of recurrence: the examples of RFC 5545 (section 3.8.5.3), and rules that could keep a process busy. */
import assert from 'node:assert/strict';
import { readRecurrence, timesOf, writeRecurrence } from '../../../services/calendar/recurrence/rule.ts';
import { exists, instantOf, localOf, wallAt, wallOf } from '../../../services/calendar/recurrence/times.ts';
import { longestTurnDuring } from '../../support/processor.ts';

const zone = 'America/New_York';

async function times(start: string, lines: string | string[], until = '2000-12-31', from = start): Promise<string[]> {
  const wall = wallOf(`${start}T09:00:00`);
  const read = await readRecurrence([lines].flat(), { wall, timezone: zone });
  assert.ok('value' in read, JSON.stringify(read));
  return timesOf(wall, read.value, wallOf(`${from}T00:00:00`), wallOf(`${until}T00:00:00`)).map((one) =>
    localOf(one).slice(0, 10),
  );
}

/** Days as `1997-09-02 03 04, 1997-10-01`. */
const days = (text: string): string[] =>
  text.split(', ').flatMap((month) => {
    const [first = '', ...more] = month.split(' ');
    return [first, ...more.map((day) => `${first.slice(0, 8)}${day}`)];
  });

describe('recurrence', () => {
  const EXAMPLES: [string, string | string[], string, string?][] = [
    ['1997-09-02', 'RRULE:FREQ=DAILY;COUNT=10', '1997-09-02 03 04 05 06 07 08 09 10 11'],
    ['1997-09-02', 'RRULE:FREQ=DAILY;INTERVAL=10;COUNT=5', '1997-09-02 12 22, 1997-10-02 12'],
    ['1997-09-02', 'RRULE:FREQ=WEEKLY;COUNT=10', '1997-09-02 09 16 23 30, 1997-10-07 14 21 28, 1997-11-04'],
    [
      '1997-09-02',
      'RRULE:FREQ=WEEKLY;INTERVAL=2;WKST=SU',
      '1997-09-02 16 30, 1997-10-14 28, 1997-11-11 25',
      '1997-12-01',
    ],
    ['1997-09-02', 'RRULE:FREQ=WEEKLY;COUNT=10;WKST=SU;BYDAY=TU,TH', '1997-09-02 04 09 11 16 18 23 25 30, 1997-10-02'],
    [
      '1997-09-02',
      'RRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH',
      '1997-09-02 04 16 18 30, 1997-10-02 14 16',
    ],
    ['1997-08-05', 'RRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO', '1997-08-05 10 19 24'],
    ['1997-08-05', 'RRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU', '1997-08-05 17 19 31'],
    [
      '1997-09-05',
      'RRULE:FREQ=MONTHLY;COUNT=10;BYDAY=1FR',
      '1997-09-05, 1997-10-03, 1997-11-07, 1997-12-05, 1998-01-02, 1998-02-06, 1998-03-06, 1998-04-03, 1998-05-01, 1998-06-05',
    ],
    [
      '1997-09-07',
      'RRULE:FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU',
      '1997-09-07 28, 1997-11-02 30, 1998-01-04 25, 1998-03-01 29, 1998-05-03 31',
    ],
    [
      '1997-09-22',
      'RRULE:FREQ=MONTHLY;COUNT=6;BYDAY=-2MO',
      '1997-09-22, 1997-10-20, 1997-11-17, 1997-12-22, 1998-01-19, 1998-02-16',
    ],
    [
      '1997-09-28',
      'RRULE:FREQ=MONTHLY;BYMONTHDAY=-3',
      '1997-09-28, 1997-10-29, 1997-11-28, 1997-12-29, 1998-01-29, 1998-02-26',
      '1998-03-01',
    ],
    [
      '1997-09-30',
      'RRULE:FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1',
      '1997-09-30, 1997-10-01 31, 1997-11-01 30, 1997-12-01 31, 1998-01-01 31, 1998-02-01',
    ],
    [
      '1997-09-10',
      'RRULE:FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12,13,14,15',
      '1997-09-10 11 12 13 14 15, 1999-03-10 11 12 13',
    ],
    [
      '1997-06-10',
      'RRULE:FREQ=YEARLY;COUNT=10;BYMONTH=6,7',
      '1997-06-10, 1997-07-10, 1998-06-10, 1998-07-10, 1999-06-10, 1999-07-10, 2000-06-10, 2000-07-10, 2001-06-10, 2001-07-10',
      '2002-01-01',
    ],
    [
      '1997-01-01',
      'RRULE:FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200',
      '1997-01-01, 1997-04-10, 1997-07-19, 2000-01-01, 2000-04-09, 2000-07-18, 2003-01-01, 2003-04-10, 2003-07-19, 2006-01-01',
      '2007-01-01',
    ],
    ['1997-05-19', 'RRULE:FREQ=YEARLY;BYDAY=20MO', '1997-05-19, 1998-05-18, 1999-05-17', '2000-01-01'],
    ['1997-05-12', 'RRULE:FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO', '1997-05-12, 1998-05-11, 1999-05-17', '2000-01-01'],
    ['1997-03-13', 'RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=TH', '1997-03-13 20 27, 1998-03-05 12 19 26', '1999-01-01'],
    [
      '1998-02-13',
      'RRULE:FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13',
      '1998-02-13, 1998-03-13, 1998-11-13, 1999-08-13, 2000-10-13',
    ],
    [
      '1997-09-13',
      'RRULE:FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13',
      '1997-09-13, 1997-10-11, 1997-11-08, 1997-12-13',
      '1998-01-01',
    ],
    [
      '1996-11-05',
      'RRULE:FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8',
      '1996-11-05, 2000-11-07, 2004-11-02',
      '2005-01-01',
    ],
    ['1997-09-04', 'RRULE:FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3', '1997-09-04, 1997-10-07, 1997-11-06'],
    [
      '1997-09-29',
      'RRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2',
      '1997-09-29, 1997-10-30, 1997-11-27, 1997-12-30, 1998-01-29, 1998-02-26, 1998-03-30',
      '1998-04-01',
    ],
    [
      '2007-01-15',
      'RRULE:FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5',
      '2007-01-15 30, 2007-02-15, 2007-03-15 30',
      '2008-01-01',
    ],
    [
      '1997-09-02',
      ['RRULE:FREQ=DAILY;COUNT=4', 'EXDATE:19970903T090000', 'RDATE;TZID=UTC:19970910T130000'],
      '1997-09-02 04 05 10',
    ],
  ];
  for (const [start, lines, expected, until] of EXAMPLES)
    it(`follows RFC 5545: ${lines}`, async () => assert.deepEqual(await times(start, lines, until), days(expected)));

  it('ends by UNTIL in UTC, with the time itself', async () => {
    const found = await times('1997-09-02', 'RRULE:FREQ=DAILY;UNTIL=19971224T000000Z');
    assert.deepEqual([found.length, found.at(-1)], [113, '1997-12-23']);
    assert.equal((await times('1997-09-02', 'RRULE:FREQ=DAILY;UNTIL=19970904T130000Z')).at(-1), '1997-09-04');
    assert.equal((await times('1997-09-02', 'RRULE:FREQ=DAILY;UNTIL=19970904')).at(-1), '1997-09-04');
  });

  it('is written as it was read', async () => {
    const lines = [
      'RRULE:FREQ=DAILY;UNTIL=19971224T000000Z',
      `RDATE;TZID=${zone}:19980101T120000`,
      `EXDATE;TZID=${zone}:19970903T090000`,
    ];
    const anchor = { wall: wallOf('1997-09-02T09:00:00'), timezone: zone };
    const read = await readRecurrence(lines, anchor);
    assert.ok('value' in read);
    assert.deepEqual(writeRecurrence(read.value, anchor), lines);
  });

  it('looks at no more than the window, also of rules that are hardly ever true', async () => {
    const began = process.cpuUsage();
    for (const [start, rule] of [
      ['1970-01-01', 'FREQ=DAILY'],
      ['1972-02-29', 'FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29'],
      ['1970-01-01', 'FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYSETPOS=1,2,3,-1'],
      ['1970-01-01', 'FREQ=YEARLY;BYWEEKNO=1,2,3,4,5,6,7,8,9,10,-1,-2;BYDAY=MO,TU,TH'],
      ['1970-01-01', `FREQ=YEARLY;BYYEARDAY=${Array.from({ length: 50 }, (_, i) => i + 1)}`],
      ['1970-02-13', 'FREQ=MONTHLY;INTERVAL=7;BYMONTHDAY=13;BYDAY=FR'],
    ] as const)
      assert.ok((await times(start, `RRULE:${rule}`, '2099-12-31', '2099-01-01')).length <= 366);
    assert.ok(process.cpuUsage(began).user < 3_000_000, 'the rules took more than 3 s of processor time together');
  });

  it('reads lines in bounded turns, however many there are and whatever they say', async () => {
    const values = (count: number) => Array.from({ length: count }, (_, i) => i + 1).join();
    const picked = `RRULE:FREQ=YEARLY;BYYEARDAY=${values(49)};BYSETPOS=1`;
    const day = (i: number) => localOf(wallOf('2000-01-01T09:00:00') + i * 86_400_000).replaceAll(/[-:]/g, '');
    const dates = `RDATE;TZID=Europe/Berlin:${Array.from({ length: 580 }, (_, i) => day(i))}`;
    const problemsOf = async (line: string, count = 1, start = '1970-01-01'): Promise<number> => {
      const lines = Array.from({ length: count }, () => line);
      const reading = readRecurrence(lines, { wall: wallOf(`${start}T09:00:00`), timezone: zone });
      const longestMs = await longestTurnDuring(reading);
      assert.ok(longestMs < 100, `${count} times ${line.slice(0, 60)}: ${longestMs} ms`);
      const read = await reading;
      return 'problems' in read ? read.problems.length : 0;
    };
    assert.equal(await problemsOf(`${picked};COUNT=100`), 0);
    assert.equal(await problemsOf(`${picked};COUNT=1000`), 1);
    assert.equal(await problemsOf(`${picked};COUNT=100`, 20), 19);
    assert.ok((await problemsOf(dates, 20)) > 0);
    for (const frequency of ['DAILY', 'WEEKLY', 'MONTHLY', 'YEARLY', 'YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU'])
      assert.equal(await problemsOf(`RRULE:FREQ=${frequency};COUNT=1000`), 0, frequency);
    for (const rule of ['DAILY;BYMONTHDAY=7;BYDAY=MO', 'WEEKLY;BYMONTH=12'])
      assert.equal(await problemsOf(`RRULE:FREQ=${rule};COUNT=1000`, 1, '2026-12-07'), 1, rule);
  });

  it('takes an UNTIL that is far as one that is as far as times go, and no other times that are', async () => {
    const anchor = { wall: wallOf('2026-12-07T09:00:00'), timezone: zone };
    for (const until of ['99991231', '99991231T000000Z', '99991231T235959']) {
      const read = await readRecurrence([`RRULE:FREQ=DAILY;UNTIL=${until}`], anchor);
      assert.ok('value' in read, JSON.stringify(read));
      assert.match(writeRecurrence(read.value, anchor)[0] ?? '', /^RRULE:FREQ=DAILY;UNTIL=9000\d{4}T\d{6}Z$/);
    }
    for (const line of [
      'RDATE:99991231T090000',
      'EXDATE:99991231T090000',
      'RRULE:FREQ=YEARLY;INTERVAL=1000;COUNT=9',
      'RRULE:FREQ=DAILY;UNTIL=00010101',
    ])
      assert.ok('problems' in (await readRecurrence([line], anchor)), line);
    const read = await readRecurrence(['RRULE:FREQ=DAILY'], anchor);
    assert.ok('value' in read);
    assert.deepEqual(
      timesOf(anchor.wall, read.value, wallOf('9998-12-31T00:00:00'), wallOf('9999-12-31T00:00:00')),
      [],
    );
  });

  it('turns local times into moments as explicit times of RFC 5545', () => {
    const moment = (local: string, timezone: string): string =>
      new Date(instantOf(wallOf(local), timezone)).toISOString();
    assert.equal(moment('2026-03-29T02:30:00', 'Europe/Berlin'), '2026-03-29T01:30:00.000Z');
    assert.equal(exists(wallOf('2026-03-29T02:30:00'), 'Europe/Berlin'), false);
    assert.equal(moment('2026-10-25T02:30:00', 'Europe/Berlin'), '2026-10-25T00:30:00.000Z');
    assert.equal(localOf(wallAt(Date.parse('2026-10-25T01:30:00Z'), 'Europe/Berlin')), '2026-10-25T02:30:00');
    // Samoa left out the 30th of December.
    assert.equal(exists(wallOf('2011-12-30T09:00:00'), 'Pacific/Apia'), false);
  });
});
