/** Random expressions over one object that has a field of every type, and random records of it. Seeded, so repeatable. */
import type { FieldTypeName } from '../../../lib/schema/snapshot.ts';

export const FIELDS: Readonly<Record<string, FieldTypeName>> = {
  id: 'id',
  Name: 'text',
  Other: 'text',
  Notes: 'longText',
  Amount: 'currency',
  Rate: 'percent',
  Exact: 'decimal',
  Sum: 'decimal',
  Count: 'integer',
  Flag: 'boolean',
  Done: 'boolean',
  Day: 'date',
  Due: 'date',
  At: 'dateTime',
  Sent: 'dateTime',
  Time: 'time',
  Takes: 'duration',
  Status: 'picklist',
  Tags: 'multiPicklist',
  Colors: 'multiPicklist',
  Ref: 'reference',
  Home: 'address',
  Place: 'geolocation',
  Data: 'json',
};

export const COLUMNS: Readonly<Record<string, string>> = {
  id: 'uuid',
  Name: 'text COLLATE "und-x-icu"',
  Other: 'text COLLATE "und-x-icu"',
  Notes: 'text COLLATE "und-x-icu"',
  Amount: 'numeric(18,2)',
  Rate: 'numeric(9,4)',
  Exact: 'numeric(30,15)',
  Sum: 'numeric',
  Count: 'bigint',
  Flag: 'boolean',
  Done: 'boolean',
  Day: 'date',
  Due: 'date',
  At: 'timestamptz(3)',
  Sent: 'timestamptz(3)',
  Time: 'time(3)',
  Takes: 'interval',
  Status: 'text COLLATE "und-x-icu"',
  Tags: 'text[]',
  Colors: 'text[]',
  Ref: 'uuid',
  Home: 'jsonb',
  Place: 'jsonb',
  Data: 'jsonb',
};

export type Row = Readonly<Record<string, unknown>>;

const TEXTS = [
  '',
  ' ',
  '\u00a0\u2003',
  '\u0085',
  '\ufeff',
  'a',
  'A',
  'b',
  'ab',
  'abab',
  'AB c',
  ' trim\tme \u3000',
  'ß',
  'STRASSE',
  'Straße',
  'ΑΣ',
  'ας',
  'Σ',
  '🙂',
  'ﬁ',
  '\ue000',
  'é',
  'E\u0301x',
  'İ',
  'ı',
  'Ა',
  'ა',
  'ǆ',
  'ŉ',
  'Ꟊ',
  "it's",
  '\\',
  '\\d',
  '$1',
  '$$',
  '%_',
  '"',
  'line\nbreak',
  '\r\n',
  'x'.repeat(300),
  '🙂é'.repeat(60),
  '\u{1e900}',
  'ẞ',
  'ΐ',
  '12',
  '-',
  'null',
  '\u001c',
  '\uffff',
  '\uFFFFfailed',
  '\u0958',
].map((text) => text.normalize('NFC'));
const NUMBERS = [
  '0',
  '1',
  '-1',
  '2',
  '3',
  '7',
  '0.5',
  '-0.5',
  '2.5',
  '-2.5',
  '0.05',
  '1.005',
  '10',
  '99',
  '100',
  '0.1',
  '0.2',
  '0.3',
  '12.5',
  '1e3',
];
const DATES = [
  '0001-01-01',
  '0001-02-28',
  '1582-10-10',
  '1900-02-28',
  '1969-12-31',
  '1970-01-01',
  '2000-02-29',
  '2023-12-31',
  '2024-02-29',
  '2025-01-31',
  '2026-03-29',
  '2026-10-25',
  '2026-11-21',
  '9999-11-30',
  '9999-12-31',
];
const MOMENTS = [
  '0001-01-01T00:00:00.000Z',
  '0001-01-01T12:00:00.000Z',
  '1883-11-18T17:00:00.000Z',
  '1916-05-01T00:00:00.000Z',
  '1969-12-31T23:59:59.999Z',
  '1970-01-01T00:00:00.000Z',
  '2011-12-30T09:59:59.999Z',
  '2011-12-30T10:00:00.000Z',
  '2024-02-29T23:30:00.000Z',
  '2026-03-28T23:00:00.000Z',
  '2026-03-29T00:59:59.999Z',
  '2026-03-29T01:00:00.000Z',
  '2026-10-25T00:30:00.000Z',
  '2026-10-25T01:30:00.000Z',
  '2026-11-01T05:30:00.000Z',
  '2026-11-21T12:00:00.123Z',
  '9999-12-31T12:00:00.000Z',
  '9999-12-31T23:59:59.999Z',
];
const TIMES = ['00:00:00', '09:30:00', '09:30:00.25', '12:00:01', '23:59:59.999'];
const TAGS = ['a', 'b', 'A', 'é', '', ' ', '🙂', "it's", 'c,d', '"'];
const PATTERNS = [
  'a+',
  '[a-z]*',
  '\\\\d{1,3}',
  '(?:a|b)*c?',
  '.*',
  '\\\\S+',
  '[^ab]+',
  '\\\\w+\\\\s?.*',
  '[\\\\D]{0,2}',
  'x{300}',
  '(a|)(b|)',
  '.{2}',
  '[🙂-🙃]?.+',
  '',
  '[é-ü]+',
  '\\\\$1',
  '(?:ab){2}',
];

/** Mulberry32. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }

  below(count: number): number {
    return Math.floor(this.next() * count);
  }

  chance(part: number): boolean {
    return this.next() < part;
  }

  of<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }
}

export function randomRow(random: Random): Row {
  const digits = (count: number): string => Array.from({ length: count }, () => random.below(10)).join('');
  const decimal = (whole: number, scale: number): string => {
    const sign = random.chance(0.4) ? '-' : '';
    if (random.chance(0.3)) return `${sign}${'9'.repeat(whole)}.${'9'.repeat(scale)}`;
    if (random.chance(0.3)) return `${sign}0.${'0'.repeat(scale - 1)}${random.below(9) + 1}`;
    if (random.chance(0.5)) return `${sign}${random.below(20)}`;
    return `${sign}${1 + random.below(9)}${digits(random.below(whole))}.${digits(1 + random.below(scale))}`;
  };
  const uuid = (): string => `0000000${random.below(3)}-0000-7000-8000-00000000000${random.below(4)}`;
  const tags = (): string[] => TAGS.filter(() => random.chance(0.3));
  const make: Record<string, () => unknown> = {
    id: uuid,
    Name: () => random.of(TEXTS),
    Other: () => random.of(TEXTS),
    Notes: () =>
      random.chance(0.1) ? random.of(['ab', '🙂', 'ß']).repeat(60_000 + random.below(5_000)) : random.of(TEXTS),
    Amount: () => decimal(16, 2),
    Rate: () => decimal(5, 4),
    Exact: () => decimal(15, 15),
    Sum: () => decimal(30, 20),
    Count: () => random.of([0, 0, 1, 2, 3, -1, 7, 31, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER]),
    Flag: () => random.chance(0.5),
    Done: () => random.chance(0.5),
    Day: () => random.of(DATES),
    Due: () => random.of(DATES),
    At: () => random.of(MOMENTS),
    Sent: () => random.of(MOMENTS),
    Time: () => random.of(TIMES),
    Takes: () => random.of(['P1D', 'PT0S', 'P1M']),
    Status: () => random.of(['Open', 'open', 'Closed', 'a']),
    Tags: tags,
    Colors: tags,
    Ref: uuid,
    Home: () =>
      JSON.stringify({
        street: random.of(TEXTS),
        city: random.of([null, ...TEXTS]),
        state: null,
        postalCode: '1',
        country: 'DE',
      }),
    Place: () =>
      `{"latitude":${random.of(['0', '-90', '52.5200080'])},"longitude":${random.of(['0', '180', '13.404954'])}}`,
    Data: () => random.of(['{}', '[1]', '"x"', '1']),
  };
  return Object.fromEntries(
    Object.entries(make).map(([name, value]) => [name, name !== 'id' && random.chance(0.22) ? null : value()]),
  );
}

const quoted = (text: string): string => JSON.stringify(text).replace(/[\u007f-\u{10ffff}]/gu, (char) => char);

type Wanted = 'text' | 'number' | 'boolean' | 'date' | 'dateTime' | 'time' | 'list' | 'numbers' | 'flags';

const BY_TYPE: Record<Wanted, readonly string[]> = {
  text: ['Name', 'Other', 'Notes', 'Status', 'Ref', 'id', 'Home.street', 'Home.city'],
  number: ['Amount', 'Rate', 'Exact', 'Sum', 'Count', 'Place.latitude', 'Place.longitude'],
  boolean: ['Flag', 'Done'],
  date: ['Day', 'Due'],
  dateTime: ['At', 'Sent'],
  time: ['Time'],
  list: ['Tags', 'Colors'],
  numbers: [],
  flags: [],
};

/** Source of a random expression of a type. `depth`: how much deeper it may go. */
export function randomExpression(
  random: Random,
  type: Wanted,
  depth: number,
  items: readonly [string, Wanted][] = [],
): string {
  const make = (wanted: Wanted): string => randomExpression(random, wanted, depth - 1 - random.below(2), items);
  const field = (): string => `record.${random.of(BY_TYPE[type])}`;
  const item = items.filter(([, wanted]) => wanted === type);
  if (item.length > 0 && random.chance(0.35)) return random.of(item)[0];
  if (random.chance(0.025)) return `(${make('boolean')} ? null : ${depth > 0 ? make(type) : literal(random, type)})`;
  if (depth <= 0) return BY_TYPE[type].length > 0 && random.chance(0.6) ? field() : literal(random, type);
  if (random.chance(0.09)) return `(${make('boolean')} ? ${make(type)} : ${make(type)})`;
  if (random.chance(0.05)) return `coalesce(${make(type)}, ${make(type)})`;
  switch (type) {
    case 'text':
      return random.of([
        field,
        () => literal(random, 'text'),
        () => `(${make('text')} + ${make('text')})`,
        () => `${make('text')}.${random.of(['lower', 'upper', 'trim'])}()`,
        () => `${make('text')}.replace(${make('text')}, ${make('text')})`,
        () => `${make('text')}.substring(${make('number')})`,
        () => `${make('text')}.substring(${random.below(4)}, ${random.chance(0.5) ? random.below(6) : make('number')})`,
      ])();
    case 'number':
      return random.of([
        field,
        () => literal(random, 'number'),
        () => `(${make('number')} ${random.of(['+', '-', '*', '/', '%'])} ${make('number')})`,
        () => `(${make('number')} ${random.of(['*', '/'])} ${make('number')})`,
        () => `(-${make('number')})`,
        () => `${random.of(['abs', 'floor', 'ceil', 'round'])}(${make('number')})`,
        () => `round(${make('number')}, ${random.chance(0.7) ? random.below(9) - 3 : make('number')})`,
        () => `${random.of(['min', 'max'])}(${make('number')}, ${make('number')})`,
        () => `size(${make(random.of(['text', 'list', 'numbers']))})`,
        () => `daysBetween(${make('date')}, ${make('date')})`,
        () => `${random.of(['year', 'month', 'day', 'weekday'])}(${make('date')})`,
      ])();
    case 'date':
      return random.of([
        field,
        () => 'today',
        () => `date(${make('dateTime')})`,
        () => `addDays(${make('date')}, ${make('number')})`,
        () => `addDays(${make('date')}, ${random.below(4_000) - 2_000})`,
        () => `addMonths(${make('date')}, ${random.chance(0.6) ? random.below(50) - 25 : make('number')})`,
      ])();
    case 'dateTime':
      return random.of([
        field,
        () => 'now',
        () => `addDays(${make('dateTime')}, ${random.chance(0.6) ? random.below(9) - 4 : make('number')})`,
      ])();
    case 'time':
      return random.of([field, () => literal(random, 'time')])();
    case 'list':
    case 'numbers':
    case 'flags': {
      const of: Wanted = type === 'list' ? 'text' : type === 'numbers' ? 'number' : 'boolean';
      const name = `i${items.length}`;
      return random.of([
        () => (type === 'list' ? field() : `[${make(of)}, ${make(of)}]`),
        () => `[${Array.from({ length: random.below(3) + 1 }, () => make(of)).join(', ')}]`,
        () =>
          `${make(type)}.filter(${name}, ${randomExpression(random, 'boolean', depth - 2, [...items, [name, of]])})`,
      ])();
    }
    default:
      return condition(random, make, depth, items);
  }
}

function condition(
  random: Random,
  make: (wanted: Wanted) => string,
  depth: number,
  items: readonly [string, Wanted][],
): string {
  const scalar = random.of(['text', 'number', 'boolean', 'date', 'dateTime', 'time'] as const);
  const ordered = random.of(['text', 'number', 'date', 'dateTime', 'time'] as const);
  const list = random.of(['list', 'numbers', 'flags'] as const);
  const of: Wanted = list === 'list' ? 'text' : list === 'numbers' ? 'number' : 'boolean';
  const name = `i${items.length}`;
  return random.of([
    () => `record.${random.of(BY_TYPE.boolean)}`,
    () => random.of(['true', 'false']),
    () => `!${make('boolean')}`,
    () => `(${make('boolean')} && ${make('boolean')})`,
    () => `(${make('boolean')} || ${make('boolean')})`,
    () => `(${make(scalar)} ${random.of(['==', '!='])} ${make(scalar)})`,
    () => `(${make(ordered)} ${random.of(['<', '<=', '>', '>='])} ${make(ordered)})`,
    () => `(${make(ordered)} ${random.of(['<', '<=', '>', '>='])} ${make(ordered)})`,
    () => `(${make(random.of([scalar, list]))} ${random.of(['==', '!='])} null)`,
    () => `(record.${random.of(['Takes', 'Data', 'Home', 'Place', 'Tags'])} ${random.of(['==', '!='])} null)`,
    () => `(${make(of)} in ${make(list)})`,
    () => `isBlank(${make(random.of([scalar, list, 'text']))})`,
    () => `isBlank(${random.chance(0.5) ? 'record.Takes' : `(${make('boolean')} ? record.Home : null)`})`,
    () => `((${make('boolean')} ? record.Home : null).city == ${make('text')})`,
    () => `${make('text')}.${random.of(['contains', 'startsWith', 'endsWith'])}(${make('text')})`,
    () => `${make('text')}.matches("${random.of(PATTERNS)}")`,
    () =>
      `${make(list)}.${random.of(['exists', 'all'])}(${name}, ${randomExpression(random, 'boolean', depth - 2, [...items, [name, of]])})`,
    () =>
      `${make(list)}.${random.of(['exists', 'all'])}(${name}, ${randomExpression(random, 'boolean', depth - 2, [...items, [name, of]])})`,
  ])();
}

function literal(random: Random, type: Wanted): string {
  switch (type) {
    case 'text':
      return quoted(random.of(TEXTS.filter((text) => text.length < 100)));
    case 'number':
      if (random.chance(0.05)) return `1${'0'.repeat(random.below(199))}`;
      return random.chance(0.05)
        ? `0.${'0'.repeat(random.below(190))}1`
        : random.of(NUMBERS).replace(/^-(.*)$/, '(-$1)');
    case 'boolean':
      return random.of(['true', 'false']);
    case 'date':
      return `date("${random.of(DATES)}")`;
    case 'dateTime':
      return `dateTime("${random.of(MOMENTS)}")`;
    case 'time':
      return `time("${random.of(TIMES)}")`;
    case 'list':
      return random.chance(0.2) ? '[]' : `[${quoted(random.of(TAGS))}, ${quoted(random.of(TEXTS.slice(0, 20)))}]`;
    case 'numbers':
      return random.of(['[]', '[1]', '[0, 1, 2.5]']);
    case 'flags':
      return random.of(['[true]', '[false, true]', '[true, false]']);
  }
}
