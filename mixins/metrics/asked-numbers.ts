/** Numbers that the database knows, the same in every process of a service. */
import type { Database } from '../database/database.ts';
import type { Statement } from '../database/statement.ts';

/** The database is queried on demand, at most at this interval. */
const FRESH_MS = 10_000;

/** The rows of a statement as they were at the look before, so that no scrape waits; `none` before the first answer. */
export function askedNumbers<Row>(
  database: Database,
  statement: () => Statement,
  { none, freshMs = FRESH_MS }: { none: readonly Row[]; freshMs?: number },
): () => readonly Row[] {
  let askedAt = Number.NEGATIVE_INFINITY;
  let found = none;
  return () => {
    const now = performance.now();
    if (now - askedAt < freshMs) return found;
    askedAt = now;
    database
      .login((tx) => tx.all<Row>(statement()))
      .then(
        (rows) => (found = rows),
        // The metrics of the database say that it does not answer.
        () => {},
      );
    return found;
  };
}

/** The same of a statement that has one row. */
export function askedRow<Row>(database: Database, statement: () => Statement, none: Row): () => Row {
  const rows = askedNumbers<Row>(database, statement, { none: [none] });
  return () => rows()[0] ?? none;
}
