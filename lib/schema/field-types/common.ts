/** Shared by several field types: violations, and the checks of every text. */
import { violation } from '../../errors/platform-error.ts';
import { pointerPart } from '../../errors/pointer.ts';
import type { FieldAttributes, Operator, Parsed, SqlValue } from './types.ts';

/** Code points of the longest text that any field takes. */
export const TEXT_MAX_CHARS = 131_072;

/** Order of texts, whatever the server's locale is: the root collation of Unicode. */
export const TEXT_COLLATION = 'und-x-icu';

type InputCode =
  | 'FIELD_TYPE_INVALID'
  | 'FIELD_TOO_LONG'
  | 'FIELD_OUT_OF_RANGE'
  | 'FIELD_FORMAT_INVALID'
  | 'FIELD_READ_ONLY'
  | 'PICKLIST_VALUE_INVALID';

export const parsed = <T extends SqlValue>(value: T): Parsed<T> => ({ ok: true, value });

export const refused = (
  field: FieldAttributes,
  pointer: string,
  code: InputCode,
  message: string,
  params: Record<string, unknown> = {},
): Parsed<never> => ({ ok: false, violation: violation(pointer, code, message, { field: field.apiName, params }) });

export const readOnly = (field: FieldAttributes, pointer: string): Parsed =>
  refused(field, pointer, 'FIELD_READ_ONLY', `${field.apiName} is kept by the platform.`);

/** Number of characters (code points, not UTF-16 units). */
export function countChars(text: string): number {
  let units = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0xd800 && unit <= 0xdbff) i++;
    units++;
  }
  return units;
}

/** Text that PostgreSQL cannot hold or JSON cannot carry: NUL, half of a surrogate pair. */
export const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed();

/** True for text of nothing but white space, by the same characters as `\s` in the database. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: some control characters are white space
export const isBlankText = (text: string): boolean => /^[\p{Z}\t-\r\x1c-\x1f\x85]*$/u.test(text);

/** A letter of any script has a few; UAX #15 (Stream-Safe Text Process) takes 30 as more than any text needs. */
const COMBINING_MARKS_MAX = 30;
/** From the beginning of a run alone, so that no mark is counted more than once. */
const TOO_MANY_MARKS = new RegExp(`(?:^|\\P{M})\\p{M}{${COMBINING_MARKS_MAX + 1}}`, 'u');

/**
 * Why a text can be neither stored nor compared, as the end of a sentence; null when it can. To be asked before a text
 * is normalized, since the time to sort marks grows with the square of how many follow one another.
 */
export function textProblem(text: string): string | null {
  if (!isStorable(text)) return 'contains a character that cannot be stored (NUL or half of a surrogate pair).';
  return TOO_MANY_MARKS.test(text) ? `has more than ${COMBINING_MARKS_MAX} combining marks in a row.` : null;
}

/** The texts within a JSON value that have a problem, each with its pointer. Names of members are not looked at. */
export function unfitTexts(value: unknown, pointer: string): { pointer: string; problem: string }[] {
  if (typeof value === 'string') {
    const problem = textProblem(value);
    return problem === null ? [] : [{ pointer, problem }];
  }
  if (Array.isArray(value)) return value.flatMap((item, index) => unfitTexts(item, `${pointer}/${index}`));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, item]) => unfitTexts(item, `${pointer}/${pointerPart(name)}`));
}

/** UTF-16 units of a text per character of its NFC form, at most (UAX #15, table 10). */
const UNITS_PER_NFC_CHAR = 4;

/** True when a text cannot have `max` characters in NFC or fewer: what need not be read at all. */
export const isTooLongForNfc = (text: string, max: number): boolean => text.length > UNITS_PER_NFC_CHAR * max;

/** A text as it is stored: NFC, not trimmed, at most `max` characters. */
export function parseText(value: unknown, field: FieldAttributes, pointer: string, max: number): Parsed<string> {
  if (typeof value !== 'string')
    return refused(field, pointer, 'FIELD_TYPE_INVALID', `${field.apiName} must be a string.`, { expected: 'string' });
  const tooLong = (): Parsed<never> =>
    refused(field, pointer, 'FIELD_TOO_LONG', `${field.apiName} is longer than ${max} characters.`, { max });
  if (isTooLongForNfc(value, max)) return tooLong();
  const problem = textProblem(value);
  if (problem !== null) return refused(field, pointer, 'FIELD_FORMAT_INVALID', `${field.apiName} ${problem}`);
  const text = value.normalize('NFC');
  return text.length > max && countChars(text) > max ? tooLong() : parsed(text);
}

export const EQUALITY: readonly Operator[] = ['eq', 'neq', 'in', 'not_in'];
export const ORDER: readonly Operator[] = ['gt', 'gte', 'lt', 'lte', 'between'];
export const CONTENT: readonly Operator[] = ['contains', 'not_contains', 'starts_with'];
export const BLANK: readonly Operator[] = ['is_blank', 'is_not_blank'];
