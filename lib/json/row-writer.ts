/**
 * Converts rows as PostgreSQL sends them (DataRow messages in text format) to JSON objects without intermediate
 * JavaScript values: the text of each column is copied from the wire into the response, escaped where JSON requires it.
 * Building the same JSON inside PostgreSQL costs the database three times as much, and parsing rows costs this process
 * four times as much.
 */

import { ExactNumber } from './exact-number.ts';

/** How the text of a column becomes JSON, by the OID of its type; others must be cast by the statement. */
type Form = 'raw' | 'plain' | 'escaped' | 'boolean' | 'timestamp' | 'json';

const FORMS: Readonly<Record<number, Form>> = {
  16: 'boolean',
  20: 'raw', // bigint
  21: 'raw', // smallint
  23: 'raw', // integer
  25: 'escaped', // text
  114: 'json',
  1042: 'escaped', // char
  1043: 'escaped', // varchar
  1082: 'plain', // date
  1083: 'plain', // time
  1184: 'timestamp', // timestamptz, in UTC: `2022-01-01 00:10:00+00`
  1186: 'plain', // interval, in ISO 8601 form
  1700: 'raw', // numeric
  2950: 'plain', // uuid
  3802: 'json', // jsonb
};

/** Something that rows of the database are written to. */
export interface RowSink {
  /** Bytes written so far. */
  readonly length: number;
  /** Takes the row whose DataRow message body (number of columns, then length and text of each) starts at `offset`. */
  row(source: Uint8Array, offset: number): void;
}

interface RowColumn {
  readonly name: string;
  readonly oid: number;
}

interface Column {
  readonly name: string;
  readonly form: Form;
  /** `,"name":` with the opening quote of a string, and without. */
  readonly before: Uint8Array;
  readonly beforeNull: Uint8Array;
}

/** The columns of a statement, ready for any number of rows. */
export class RowShape {
  readonly columns: readonly Column[];
  /** Size of the last response in bytes; the next one is probably about as large. */
  sizeHint = 4_096;

  constructor(columns: readonly RowColumn[]) {
    this.columns = columns.map(({ name, oid }, index) => {
      const form = FORMS[oid];
      if (!form) throw new Error(`Column ${name} has type ${oid}, which has no JSON form here.`);
      const key = `${index === 0 ? '{' : ','}${JSON.stringify(name)}:`;
      return {
        name,
        form,
        before: Buffer.from(form === 'raw' || form === 'boolean' || form === 'json' ? key : `${key}"`),
        beforeNull: Buffer.from(`${key}null`),
      };
    });
  }
}

const QUOTE = 34;
const BACKSLASH = 92;
const COMMA = 44;
const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');

/** The letters of \b, \t, \n, \f and \r, by byte; 0 for others. */
const LETTERS = new Uint8Array(32);
for (const [byte, letter] of [
  [8, 'b'],
  [9, 't'],
  [10, 'n'],
  [12, 'f'],
  [13, 'r'],
] as const)
  LETTERS[byte] = letter.charCodeAt(0);

const hexDigit = (value: number): number => (value < 10 ? 48 : 87) + value;

/** A number of a DataRow message. */
export const int32At = (bytes: Uint8Array, at: number): number =>
  (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;

/** Some number may have more digits, or others, than the same number in JavaScript. */
const UNLIKE = /\d[.eE]|\d{16}|-0/;

/** The value of a column with JSON; numbers keep their digits. */
export function jsonAt(source: Uint8Array, from: number, to: number): unknown {
  const text = Buffer.from(source.buffer, source.byteOffset + from, to - from).toString();
  // A reviver takes ten times as long.
  return UNLIKE.test(text) ? JSON.parse(text, keepDigits) : JSON.parse(text);
}

function keepDigits(_name: string, value: unknown, { source }: { source?: string } = {}): unknown {
  return typeof value === 'number' && source !== undefined && String(value) !== source
    ? new ExactNumber(source)
    : value;
}

/** A growing buffer. */
export abstract class GrowingBytes {
  protected out: Buffer;
  protected size = 0;

  constructor(capacity: number) {
    this.out = Buffer.allocUnsafeSlow(capacity);
  }

  /** Bytes written so far. */
  get length(): number {
    return this.size;
  }

  /** Adds text of our own, which must be ASCII. */
  append(text: string): void {
    this.reserve(text.length);
    this.size += this.out.write(text, this.size, 'latin1');
  }

  /** Adds any text. */
  appendText(text: string): void {
    this.reserve(Buffer.byteLength(text));
    this.size += this.out.write(text, this.size);
  }

  /** The bytes written. The writer must not be used afterwards. */
  finish(): Buffer {
    return this.out.subarray(0, this.size);
  }

  protected reserve(bytes: number): void {
    if (this.out.length - this.size >= bytes) return;
    const bigger = Buffer.allocUnsafeSlow(Math.max(this.out.length * 2, this.size + bytes));
    this.out.copy(bigger, 0, 0, this.size);
    this.out = bigger;
  }
}

/** Our own text and rows of the database. */
export class RowWriter extends GrowingBytes implements RowSink {
  readonly #shape: RowShape;
  readonly #lineEnd: string | null;
  #rows = 0;

  /**
   * `lineEnd` null: rows are separated by commas, and JSON in them is copied. Otherwise each row is a line with this end, and
   * JSON is written as JSON.stringify() does it. `capacity`: bytes that are probably needed.
   */
  constructor(shape: RowShape, lineEnd: string | null = null, capacity = shape.sizeHint) {
    super(capacity);
    this.#shape = shape;
    this.#lineEnd = lineEnd;
  }

  /** The columns of the shape come first in the row, further ones are not written. */
  row(source: Uint8Array, offset: number): void {
    const { columns } = this.#shape;
    const lineEnd = this.#lineEnd;
    if (this.#rows++ > 0 && lineEnd === null) {
      this.reserve(1);
      this.out[this.size++] = COMMA;
    }
    let at = offset + 2;
    let out = this.out;
    let w = this.size;
    for (let i = 0; i < columns.length; i++) {
      const { form, before, beforeNull } = columns[i]!;
      const length = int32At(source, at);
      at += 4;
      // The rest is the key, the quotes and the growth of a timestamp.
      const need = beforeNull.length + (length > 0 ? mostBytes(form, source, at, length) : 0) + 16;
      if (out.length - w < need) {
        this.size = w;
        this.reserve(need);
        out = this.out;
      }
      if (length < 0) {
        for (let k = 0; k < beforeNull.length; k++) out[w++] = beforeNull[k]!;
        continue;
      }
      for (let k = 0; k < before.length; k++) out[w++] = before[k]!;
      const end = at + length;
      if (form === 'json' && lineEnd !== null) {
        this.size = w;
        this.appendText(JSON.stringify(jsonAt(source, at, end)));
        out = this.out;
        w = this.size;
        at = end;
        continue;
      }
      switch (form) {
        case 'json':
        case 'raw':
          while (at < end) out[w++] = source[at++]!;
          break;
        case 'plain':
          while (at < end) out[w++] = source[at++]!;
          out[w++] = QUOTE;
          break;
        case 'escaped':
          while (at < end) {
            const byte = source[at++]!;
            if (byte >= 32 && byte !== QUOTE && byte !== BACKSLASH) out[w++] = byte;
            else {
              out[w++] = BACKSLASH;
              if (byte >= 32) out[w++] = byte;
              else if (lineEnd !== null && LETTERS[byte]) out[w++] = LETTERS[byte];
              else {
                out[w] = 117; // \u00XX
                out[w + 1] = 48;
                out[w + 2] = 48;
                out[w + 3] = hexDigit(byte >> 4);
                out[w + 4] = hexDigit(byte & 15);
                w += 5;
              }
            }
          }
          out[w++] = QUOTE;
          break;
        case 'boolean': {
          const word = source[at] === 116 ? TRUE : FALSE;
          for (let k = 0; k < word.length; k++) out[w++] = word[k]!;
          at = end;
          break;
        }
        case 'timestamp':
          // `2022-01-01 00:10:00.5+00` → `2022-01-01T00:10:00.5+00:00`
          while (at < end) {
            const byte = source[at++]!;
            out[w++] = byte === 32 ? 84 : byte;
          }
          out[w] = 58;
          out[w + 1] = 48;
          out[w + 2] = 48;
          out[w + 3] = QUOTE;
          w += 4;
          break;
      }
    }
    this.size = w;
    this.reserve(1);
    this.out[this.size++] = 125;
    if (lineEnd !== null) this.append(lineEnd);
  }

  override finish(): Buffer {
    this.#shape.sizeHint = Math.min(1_048_576, Math.max(512, Math.ceil(this.size * 1.1)));
    return super.finish();
  }
}

/** Texts from here on are looked at before memory is reserved for them. */
const LONG_TEXT_BYTES = 4_096;

/** Bytes that a column takes at most: in a text, a byte may become six (\u001f). */
function mostBytes(form: Form, source: Uint8Array, at: number, length: number): number {
  if (form !== 'escaped') return length;
  if (length < LONG_TEXT_BYTES) return length * 6;
  let bytes = length;
  for (let i = at; i < at + length; i++) {
    const byte = source[i]!;
    if (byte < 32) bytes += 5;
    else if (byte === QUOTE || byte === BACKSLASH) bytes++;
  }
  return bytes;
}

/** Texts of the columns from `first` on of a DataRow message body; null for SQL null. */
export function rowTexts(source: Uint8Array, offset: number, first: number): (string | null)[] {
  const bytes = Buffer.from(source.buffer, source.byteOffset, source.byteLength);
  const count = (source[offset]! << 8) | source[offset + 1]!;
  const texts: (string | null)[] = [];
  let at = offset + 2;
  for (let i = 0; i < count; i++) {
    const length = int32At(source, at);
    at += 4;
    if (i >= first) texts.push(length < 0 ? null : bytes.toString('utf8', at, at + length));
    if (length > 0) at += length;
  }
  return texts;
}
