/** Locks that stand for something without a row, such as all subscriptions of a tenant, while a transaction counts them. */
import { Sql } from './sql.ts';
import type { Statement } from './statement.ts';

/** Waits until no other transaction has the lock, and keeps it until this one ends. */
export function namedLockStatement(name: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT pg_advisory_xact_lock(hashtextextended(${sql.bind(name, 'text')}, 0))`);
}
