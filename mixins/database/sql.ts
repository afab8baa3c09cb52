/** Puts the text of a statement together with its bound values. */
import { LRUCache } from 'lru-cache';
import type { Statement } from './statement.ts';

/** Binds a value to a statement and returns its placeholder with a cast, such as `$1::uuid`. */
export type Bind = (value: unknown, type: string) => string;

/** Placeholders of a statement that is made for a subject, such as the write of a record. */
export interface Placeholders<T> {
  /** A value of the subject. */
  readonly of: (value: (subject: T) => unknown, type: string) => string;
  /** A value that is the same for all subjects of the statement's text. */
  readonly constant: Bind;
}

/** Placeholders for the values of a part of the subject. */
export const within = <T, U>(
  { of }: Pick<Placeholders<T>, 'of'>,
  part: (subject: T) => U,
): Pick<Placeholders<U>, 'of'> => ({ of: (value, type) => of((subject) => value(part(subject)), type) });

/** Collects the values of one statement. */
export class Sql {
  readonly values: unknown[] = [];

  /** Binds a value; the placeholder carries the PostgreSQL type. */
  readonly bind: Bind = (value, type) => {
    this.values.push(value);
    return `$${this.values.length}::${type}`;
  };

  /** Placeholders for the values of one subject. */
  for<T>(subject: T): Placeholders<T> {
    return { of: (value, type) => this.bind(value(subject), type), constant: this.bind };
  }

  /** A prepared statement; the same text has the same name in this process. */
  statement(text: string): Statement {
    return { ...prepared(text), values: this.values };
  }
}

interface Prepared {
  readonly name: string;
  readonly text: string;
}

const known = new LRUCache<string, Prepared>({
  maxSize: 32 * 1024 * 1024,
  sizeCalculation: (_prepared, text) => text.length,
});
let lastName = 0;

/** The prepared statement with this text: its name, and the one copy of the text. */
export function prepared(text: string): Prepared {
  let statement = known.get(text);
  if (!statement) known.set(text, (statement = { name: `s${++lastName}`, text }));
  return statement;
}
