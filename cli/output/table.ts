/** Text in columns, for people: as wide as the terminal at most, in characters as a terminal draws them. */
import { stripVTControlCharacters } from 'node:util';
import stringWidth from 'string-width';

const GAP = '  ';
const COLUMN_MIN = 6;
/** A column that gets less than this is better left out. */
const COLUMN_USEFUL = 12;
const CONTROL = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/**
 * Text of other people on one line. Control characters are replaced, so that a record cannot write over the screen of
 * the reader or turn the direction of its text.
 */
export const plain = (text: string): string => stripVTControlCharacters(text).replace(CONTROL, ' ');

/** Escape sequences that `paint` puts around a text (terminal.ts). None of these can move the cursor, hide a text or write over another. */
const OWN_STYLES = new RegExp(`(${String.fromCharCode(27)}\\[(?:1|2|22|31|32|33|36|39)m)`);

/** Lines as they may go to a terminal: without control characters but for line ends, tabs and, if wanted, our own styles. */
export const safeLines = (text: string, { styled }: { styled: boolean }): string =>
  text
    .split(OWN_STYLES)
    .map((part, at) =>
      at % 2 === 0
        ? part
            .split(/([\n\t])/)
            .map(safePart)
            .join('')
        : styled
          ? part
          : '',
    )
    .join('');

const isSpace = (text: string): boolean => text === '\n' || text === '\t';
const safePart = (part: string): string => (isSpace(part) ? part : plain(part));

/** JSON that says the same without a character that a terminal obeys. */
export const safeJson = (text: string): string =>
  text.replace(CONTROL, (character) =>
    isSpace(character) ? character : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** Cuts a text to a width, with an ellipsis for what is missing. */
export function shorten(text: string, width: number): string {
  if (stringWidth(text) <= width) return text;
  let taken = '';
  let used = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    const next = stringWidth(segment);
    if (used + next > width - 1) break;
    taken += segment;
    used += next;
  }
  return `${taken}…`;
}

export const pad = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - stringWidth(text)));

const padStart = (text: string, width: number): string => ' '.repeat(Math.max(0, width - stringWidth(text))) + text;

export interface Column {
  title: string;
  /** Numbers stand below each other. */
  right?: boolean;
  /** Never cut, such as an id to copy. */
  whole?: boolean;
}

/** How many columns a terminal has room for, from the left: at least one. */
export function columnsThatFit(columns: readonly Column[], rows: readonly (readonly string[])[], room: number): number {
  let used = 0;
  const end = columns.findIndex(({ title, whole }, at) => {
    const widest = rows.reduce((most, row) => Math.max(most, stringWidth(plain(row[at] ?? ''))), stringWidth(title));
    used += (at ? GAP.length : 0) + (whole ? widest : Math.min(widest, COLUMN_USEFUL));
    return used > room;
  });
  return end < 0 ? columns.length : Math.max(end, 1);
}

/** How wide each column of these rows is. Wide columns give way first. */
export function widthsOf(columns: readonly Column[], rows: readonly (readonly string[])[], room: number): number[] {
  const widths = columns.map(({ title }, at) =>
    rows.reduce((widest, row) => Math.max(widest, stringWidth(plain(row[at] ?? ''))), stringWidth(title)),
  );
  shrink(widths, columns, room - GAP.length * (columns.length - 1));
  return widths;
}

/** One line of a table. */
export function tableLine(columns: readonly Column[], widths: readonly number[], row: readonly string[]): string {
  return columns
    .map(({ right }, at) => {
      const width = widths[at] ?? 0;
      const shown = shorten(plain(row[at] ?? ''), width);
      return right ? padStart(shown, width) : pad(shown, width);
    })
    .join(GAP)
    .trimEnd();
}

function shrink(widths: number[], columns: readonly Column[], room: number): void {
  const total = (): number => widths.reduce((sum, width) => sum + width, 0);
  for (let over = total() - room; over > 0; over = total() - room) {
    const free = widths.filter((width, at) => !columns[at]?.whole && width > COLUMN_MIN);
    if (!free.length) return;
    const widest = Math.max(...free);
    const at = widths.findIndex((width, index) => width === widest && !columns[index]?.whole);
    const second = Math.max(COLUMN_MIN, ...free.filter((width) => width < widest));
    widths[at] = Math.max(second === widest ? widest - 1 : second, widest - over, COLUMN_MIN);
  }
}
