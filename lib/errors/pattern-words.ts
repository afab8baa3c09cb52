/**
 * Patterns of schemas in words, for messages: a regular expression is no help to people who fill in a form. Every pattern
 * of an operation and of a kind of configuration is here; a test compares.
 */
const API_NAME = '[A-Za-z][A-Za-z0-9_]{0,39}';

const NAME = 'a letter, then letters, digits or _';

const WORDS: ReadonlyMap<string, string> = new Map([
  [`^${API_NAME}$`, `${NAME}; 40 characters at most`],
  ['^[A-Za-z][A-Za-z0-9_]{0,59}$', `${NAME}; 60 characters at most`],
  ['^[A-Za-z][A-Za-z0-9_]{0,79}$', `${NAME}; 80 characters at most`],
  [`^${API_NAME}\\.${API_NAME}$`, 'two names with a dot between them, such as Invoice__c.Amount__c'],
  ['^[A-Za-z][A-Za-z0-9_-]{0,63}$', 'a letter, then letters, digits, - or _; 64 characters at most'],
  ['^[a-z][a-z0-9_-]{0,63}$', 'a lower-case letter, then lower-case letters, digits, - or _; 64 characters at most'],
  ['^[a-z][a-z0-9._-]{1,63}$', 'a lower-case letter, then lower-case letters, digits, ., - or _; 2 to 64 characters'],
  ['^[A-Za-z]+(\\.[A-Za-z]+)+$', 'words of letters with dots between them, such as data.records.create'],
  [
    '^[a-z][A-Za-z]*(\\.[a-z][A-Za-z]*)*(\\.\\*)?$',
    'the id of an operation, such as data.records.create, or all of an area, such as data.*',
  ],
  ['^[A-Za-z]\\w*(?: *, *[A-Za-z]\\w*)*$', 'names with commas between them, such as Account,Contact'],
  ['^sha256:[0-9a-f]{64}$', 'sha256: and 64 hexadecimal digits in lower case'],
  ['^\\d{4}-\\d{2}-\\d{2}$', 'a day such as 2026-11-21'],
  ['^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}(?::\\d{2})?$', 'a local time without offset such as 2026-11-21T09:30:00'],
  [
    '^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?:_\\d{8}(?:T\\d{6})?)?$',
    'the id of an event, or of an instance of a series',
  ],
  ['^([01][0-9]|2[0-3]):[0-5][0-9]$', 'a time of day such as 22:00'],
  ['^[A-Z]{3}$', 'three capital letters, such as EUR'],
  ['^\\*$', '*'],
  ['^[1-9][0-9]{0,3}$', 'a number from 1 to 9999'],
  ['^(0|[1-9][0-9]{0,15})$', 'a whole number of at most 16 digits'],
  ['\\S', 'text that is not blank'],
  ['^\\S(?:.*\\S)?$', 'one line of text without blanks at its ends'],
  ['^[^{}]{0,30}\\{0{1,15}\\}[^{}]{0,30}$', 'text with one group of zeros in braces, such as INV-{00000}'],
  ['^[\\x21-\\x7e]+$', 'letters, digits and signs of ASCII without blanks'],
  ['^[A-Za-z][A-Za-z0-9_.:/-]{0,99}$', 'a letter, then letters, digits, _, ., :, / or -; 100 characters at most'],
  [
    '^[a-z]{2,3}(?:-[A-Z][a-z]{3})?(?:-(?:[A-Z]{2}|[0-9]{3}))?(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*$',
    'a language tag, such as de or en-US',
  ],
  ['^.*$', 'one line of text'],
  ['^.{1,50}$', 'one line of 1 to 50 characters'],
  ['^.{1,64}$', 'one line of 1 to 64 characters'],
  [
    `^(?:${API_NAME}:)?${API_NAME}(?:\\.${API_NAME})?(?:#.{1,255})?$`,
    'the key of a text, such as Invoice__c.Amount__c or Layout:Invoice__c.Main#Details',
  ],
  ['^[0-9a-f]{64}$', '64 hexadecimal digits in lower case'],
  [
    '^(?!\\.{1,2}$)[^\\u0000-\\u001f\\u007f-\\u009f/\\\\\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]+$',
    'the name of a file without slashes, backslashes and control characters',
  ],
  ['^[^\\0]*$', 'text without the character U+0000'],
]);

/** The end of a message: `must be a letter, then …`; null for a pattern that is not known here. */
export const patternInWords = (pattern: string): string | null => WORDS.get(pattern) ?? null;
