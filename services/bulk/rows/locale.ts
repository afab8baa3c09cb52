/** Numbers and days as people of a language write them. Pure. */
import { NUMBER_MAX_CHARS } from '../../../lib/json/exact-number.ts';
import { isDate } from '../../../lib/values/calendar.ts';

export interface LocaleReader {
  /** The number as JSON writes it; the text itself when it is none. */
  number(text: string): string;
  /** The day as `2026-11-21`; the text itself when it is none. */
  day(text: string): string;
}

const SPACES = /[ \u00a0\u202f]/g;
const APOSTROPHES = /['’]/g;

/** The number as the locale writes it, such as `1.234,5`. */
export const inLocale = (number: number, locale: string): string =>
  new Intl.NumberFormat(locale, { numberingSystem: 'latn' }).format(number);

export function localeReader(locale: string): LocaleReader {
  const numbers = new Intl.NumberFormat(locale, { numberingSystem: 'latn' }).formatToParts(1_234_567.5);
  const sign = (type: 'decimal' | 'group', otherwise: string): string =>
    numbers.find((part) => part.type === type)?.value ?? otherwise;
  const decimal = sign('decimal', '.');
  const group = sign('group', ',').replace(SPACES, ' ').replace(APOSTROPHES, "'");
  const order = new Intl.DateTimeFormat(locale, {
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    calendar: 'gregory',
    numberingSystem: 'latn',
  })
    .formatToParts(0)
    .flatMap(({ type }) => (type === 'day' || type === 'month' || type === 'year' ? [type] : []));

  return {
    number: (text) => {
      if (text.length > NUMBER_MAX_CHARS) return text;
      // People type spaces and apostrophes of any kind.
      const given = text.trim().replace(SPACES, ' ').replace(APOSTROPHES, "'");
      const unsigned = given.replace(/^[+-]/, '');
      const [whole = '', fraction, ...more] = unsigned.split(decimal);
      const [first = '', ...groups] = whole.split(group);
      const isWhole = groups.length === 0 || (first.length <= 3 && groups.every((digits) => digits.length === 3));
      const digits = [first, ...groups, ...(fraction === undefined ? [] : [fraction])];
      if (more.length > 0 || !isWhole || !digits.every((part) => /^\d+$/.test(part))) return text;
      // JSON has no zeros in front.
      const integer = [first, ...groups].join('').replace(/^0+(?=\d)/, '');
      return `${given.startsWith('-') ? '-' : ''}${integer}${fraction === undefined ? '' : `.${fraction}`}`;
    },
    day: (text) => {
      const given = text.length > 20 ? '' : text.trim();
      if (isDate(given)) return given;
      const parts = given.split(/[./-]/).map((part) => part.trim());
      const part = (type: 'day' | 'month' | 'year'): string => parts[order.indexOf(type)] ?? '';
      const day = `${part('year')}-${part('month').padStart(2, '0')}-${part('day').padStart(2, '0')}`;
      return parts.filter((one) => one !== '').length === 3 && isDate(day) ? day : text;
    },
  };
}
