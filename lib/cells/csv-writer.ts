/**
 * Converts rows as PostgreSQL sends them to lines of CSV. The bytes of a cell are copied from the wire where nothing in them has
 * to be changed, or but for quotes around them; the others are written by csvLine(cellOf()), which says what cells look like.
 */
import { GrowingBytes, int32At, jsonAt, type RowShape, type RowSink } from '../json/row-writer.ts';
import { type CellForm, cellOf, csvLine } from './cells.ts';

interface CsvFormat {
  /** Names of the columns, in order. One that a row does not have is empty. */
  readonly columns: readonly string[];
  /** Forms of the columns, by name; text unless given. */
  readonly forms: ReadonlyMap<string, CellForm>;
  readonly delimiter: string;
  readonly lineEnd: string;
}

/** A column of the row, and its bytes in the row at hand. */
interface Cell {
  readonly wire: RowShape['columns'][number]['form'];
  readonly form: CellForm;
  from: number;
  /** Up to `from`: null, or empty. */
  to: number;
}

const SPACE = 32;
const QUOTE = 34;
const LETTER_T = 84;
const ASCII_END = 128;
const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');
/** Completes the time zone, which the database writes as `+00`. */
const ZONE = Buffer.from(':00');

/** A cell may need a change when it begins with one of these bytes, such as an apostrophe, or is not ASCII there. */
const isCarefulStart = (byte: number): boolean =>
  byte <= SPACE || byte >= ASCII_END || byte === 39 || byte === 43 || byte === 45 || byte === 61 || byte === 64;

const isCarefulEnd = (byte: number): boolean => byte <= SPACE || byte >= ASCII_END;

export class CsvWriter extends GrowingBytes implements RowSink {
  readonly #delimiter: string;
  readonly #lineEnd: Uint8Array;
  /** Of the row, in its order. */
  readonly #cells: readonly Cell[];
  /** Of the file, in its order; undefined: the row has no such column. */
  readonly #shown: readonly (Cell | undefined)[];
  /** 1 for bytes with which a cell needs quotes. */
  readonly #quoted = new Uint8Array(256);

  /** `capacity`: bytes that are probably needed. */
  constructor(shape: RowShape, { columns, forms, delimiter, lineEnd }: CsvFormat, capacity: number) {
    super(capacity);
    this.#delimiter = delimiter;
    this.#lineEnd = Buffer.from(lineEnd);
    const cells = new Map(
      shape.columns.map(({ name, form }) => [name, { wire: form, form: forms.get(name) ?? 'text', from: 0, to: 0 }]),
    );
    this.#cells = [...cells.values()];
    this.#shown = columns.map((name) => cells.get(name));
    for (const byte of Buffer.from(`"\r\n${delimiter}`)) this.#quoted[byte] = 1;
  }

  row(source: Uint8Array, offset: number): void {
    let at = offset + 2;
    for (const cell of this.#cells) {
      const length = Math.max(0, int32At(source, at));
      cell.from = at + 4;
      at = cell.to = cell.from + length;
    }
    // Quotes double what they are around, at most; a moment and a boolean get a few bytes more, each line its end.
    const most = 2 * (at - offset) + 8 * this.#shown.length + 2;
    this.reserve(most);
    const delimiter = this.#delimiter.charCodeAt(0);
    let isFirst = true;
    for (const cell of this.#shown) {
      if (!isFirst) this.out[this.size++] = delimiter;
      isFirst = false;
      if (cell && cell.from < cell.to && !this.#copy(source, cell)) {
        this.#write(source, cell);
        this.reserve(most);
      }
    }
    this.#put(this.#lineEnd);
  }

  /** Writes a cell whose bytes are those on the wire, or have quotes around and in them. Returns false for others. */
  #copy(source: Uint8Array, { wire, from, to }: Cell): boolean {
    switch (wire) {
      case 'json':
        return false;
      case 'boolean':
        this.#put(source[from] === 116 ? TRUE : FALSE);
        return true;
      case 'timestamp':
        for (let i = from; i < to; i++) this.out[this.size++] = source[i] === SPACE ? LETTER_T : (source[i] ?? 0);
        this.#put(ZONE);
        return true;
      default:
        if (isCarefulStart(source[from] ?? 0) || isCarefulEnd(source[to - 1] ?? 0)) return false;
    }
    const { out } = this;
    const quoted = this.#quoted;
    let w = this.size;
    for (let i = from; i < to; i++) {
      const byte = source[i] ?? 0;
      if (quoted[byte] === 1) {
        this.#quote(source, from, to);
        return true;
      }
      out[w++] = byte;
    }
    this.size = w;
    return true;
  }

  #quote(source: Uint8Array, from: number, to: number): void {
    const { out } = this;
    let w = this.size;
    out[w++] = QUOTE;
    for (let i = from; i < to; i++) {
      const byte = source[i] ?? 0;
      if (byte === QUOTE) out[w++] = QUOTE;
      out[w++] = byte;
    }
    out[w++] = QUOTE;
    this.size = w;
  }

  #put(bytes: Uint8Array): void {
    for (let i = 0; i < bytes.length; i++) this.out[this.size++] = bytes[i] ?? 0;
  }

  #write(source: Uint8Array, { wire, form, from, to }: Cell): void {
    const value =
      wire === 'json'
        ? jsonAt(source, from, to)
        : Buffer.from(source.buffer, source.byteOffset + from, to - from).toString();
    this.appendText(csvLine([cellOf(value, form)], this.#delimiter));
  }
}
