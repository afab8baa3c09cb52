/**
 * One statement in the place of many that have the same text: what differs among them comes as columns of the relation
 * `input`, a row for each, in their order.
 */
import { type Bind, type Placeholders, Sql } from './sql.ts';
import type { Statement } from './statement.ts';

interface Column {
  readonly type: string;
  readonly values: readonly unknown[];
}

/** Puts the text of a statement for several subjects together. */
export class SetSql<T> {
  readonly #subjects: readonly T[];
  readonly #sql = new Sql();
  readonly #columns: Column[] = [];

  constructor(subjects: readonly T[]) {
    this.#subjects = subjects;
  }

  /** Values that are the same for all are bound once. */
  readonly placeholders: Placeholders<T> = {
    of: (value, type) => this.#place(this.#subjects.map(value), type),
    constant: (value, type) => this.#sql.bind(value, type),
  };

  /** Values of one place in the texts. */
  #place(values: readonly unknown[], type: string): string {
    const [first] = values;
    if (values.every((value) => value === first)) return this.#sql.bind(first, type);
    return `input.c${this.#columns.push({ type, values }) - 1}`;
  }

  /**
   * The text that `build` makes for each subject, once for all. null: it is not the same for all of them. The text is
   * made with a binder, and must have no other way to the values of its subject.
   */
  common(build: (subject: T, bind: Sql) => string): string | null {
    const recorded = this.#subjects.map((subject) => {
      const recorder = new Recorder((_value, type, index) => `$${index}::${type}`);
      return { text: build(subject, recorder), recorder };
    });
    const [first] = recorded;
    const subject = this.#subjects[0];
    if (!first || subject === undefined || recorded.some(({ text }) => text !== first.text)) return null;
    return build(
      subject,
      new Recorder((_value, type, index) =>
        this.#place(
          recorded.map(({ recorder }) => recorder.values[index]),
          type,
        ),
      ),
    );
  }

  /** The text of `input`: its columns, and n, which counts from 1. */
  input(): string {
    const { bind } = this.#sql;
    const columns = this.#columns.map((_, index) => `c${index}`);
    const arrays = this.#columns.map(({ type, values }) =>
      // An array of arrays would be unnested to its items.
      type.endsWith('[]') ? bind(values.map(jsonOf), 'text[]') : bind(values, `${type}[]`),
    );
    const shown = this.#columns.map(({ type }, index) =>
      type.endsWith('[]')
        ? `CASE WHEN c${index} IS NOT NULL THEN ARRAY(SELECT jsonb_array_elements_text(c${index}::jsonb))::${type} END AS c${index}`
        : `c${index}`,
    );
    if (columns.length === 0) return `SELECT n FROM generate_series(1, ${bind(this.#subjects.length, 'integer')}) n`;
    return `SELECT ${[...shown, 'n'].join(', ')} FROM unnest(${arrays.join(', ')}) WITH ORDINALITY AS given(${[...columns, 'n'].join(', ')})`;
  }

  statement(text: string): Statement {
    return this.#sql.statement(text);
  }
}

const jsonOf = (value: unknown): string | null =>
  value === null || value === undefined ? null : JSON.stringify(value);

/** Keeps the values of one text, and says what stands for them in it. */
class Recorder extends Sql {
  readonly #placed: (value: unknown, type: string, index: number) => string;

  constructor(placed: (value: unknown, type: string, index: number) => string) {
    super();
    this.#placed = placed;
  }

  override readonly bind: Bind = (value, type) => this.#placed(value, type, this.values.push(value) - 1);
}
