/** Statements whose text is put together once for all subjects of one shape; only their values differ. */
import { LRUCache } from 'lru-cache';
import { type Placeholders, prepared, Sql } from './sql.ts';
import type { Statement } from './statement.ts';

interface Template<T> {
  readonly name: string;
  readonly text: string;
  readonly values: readonly ((subject: T) => unknown)[];
  /** Characters that it keeps, about. */
  readonly size: number;
}

/** Characters that all templates keep. Callers choose their shapes: the fields of a body, in any order. */
const KEPT_MAX = 16 * 1024 * 1024;
/** A statement that is larger is put together each time. */
const EACH_MAX = 256 * 1024;
const SIZE_OF_VALUE = 100;

export class Templates<T> {
  readonly #known = new LRUCache<string, Template<T>>({
    maxSize: KEPT_MAX,
    maxEntrySize: EACH_MAX,
    sizeCalculation: ({ size }, shape) => size + shape.length,
  });

  /**
   * The statement for a subject. Subjects of one `shape` have the same text and the same constants: `textOf` is called
   * for the first of them, and keeps no reference to it. `shape` null: the text is made for this subject alone.
   */
  statement(subject: T, shape: string | null, textOf: (placeholders: Placeholders<T>) => string): Statement {
    if (shape === null) {
      const sql = new Sql();
      return sql.statement(textOf(sql.for(subject)));
    }
    let template = this.#known.get(shape);
    if (!template) this.#known.set(shape, (template = templateOf(textOf)));
    const { name, text, values } = template;
    return { name, text, values: values.map((value) => value(subject)) };
  }
}

function templateOf<T>(textOf: (placeholders: Placeholders<T>) => string): Template<T> {
  const values: ((subject: T) => unknown)[] = [];
  let size = 0;
  const of: Placeholders<T>['of'] = (value, type) => `$${values.push(value)}::${type}`;
  const constant: Placeholders<T>['constant'] = (value, type) => {
    size += sizeOf(value);
    return of(() => value, type);
  };
  const text = textOf({ of, constant });
  return { ...prepared(text), values, size: size + text.length + SIZE_OF_VALUE * values.length };
}

const sizeOf = (constant: unknown): number =>
  Array.isArray(constant)
    ? constant.reduce((sum: number, one) => sum + String(one).length, 0)
    : String(constant).length;
