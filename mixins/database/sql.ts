/** Puts the text of a statement together with its bound values. */
import { LRUCache } from 'lru-cache';
import type { Statement } from './statement.ts';

/** Binds a value to a statement and returns its placeholder with a cast, such as `$1::uuid`. */
export type Bind = (value: unknown, type: string) => string;

/** Collects the values of one statement. */
export class Sql {
  readonly values: unknown[] = [];

  /** Binds a value; the placeholder carries the PostgreSQL type. */
  readonly bind: Bind = (value, type) => {
    this.values.push(value);
    return `$${this.values.length}::${type}`;
  };

  /** A prepared statement; the same text has the same name in this process. */
  statement(text: string): Statement {
    return { name: nameOf(text), text, values: this.values };
  }
}

const names = new LRUCache<string, string>({
  maxSize: 32 * 1024 * 1024,
  sizeCalculation: (_name, text) => text.length,
});
let lastName = 0;

function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) names.set(text, (name = `s${++lastName}`));
  return name;
}
