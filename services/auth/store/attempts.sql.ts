/** Counters of sign-in attempts. Each change is one statement, so that attempts at the same moment are all counted. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

/**
 * Counts an attempt unless its key is blocked. The clock is read when the row is held (`clock_timestamp()`): of several
 * attempts at once, the last to get the row may have begun first. A wait of more than there is was set by a clock that
 * has been set back since.
 */
export function countAttempt(key: string, freeFailures: number, waitMaxSeconds: number): Statement {
  const sql = new Sql();
  const keyValue = sql.bind(key, 'text');
  const free = sql.bind(freeFailures, 'integer');
  const waitMax = sql.bind(waitMaxSeconds, 'float8');
  return sql.statement(
    `WITH counted AS (
       INSERT INTO auth.attempts AS attempt (key, failures, blocked_until, updated_at)
       VALUES (${keyValue}, 1, clock_timestamp(), now())
       ON CONFLICT (key) DO UPDATE SET
         failures = CASE WHEN attempt.updated_at < now() - interval '1 hour' THEN 1 ELSE attempt.failures + 1 END,
         blocked_until = clock_timestamp() + make_interval(secs =>
           CASE WHEN attempt.updated_at < now() - interval '1 hour' OR attempt.failures + 1 < ${free} THEN 0
                ELSE least(${waitMax}, power(2, least(attempt.failures + 1 - ${free}, 20))) END),
         updated_at = now()
       WHERE attempt.blocked_until <= clock_timestamp()
         OR attempt.blocked_until > clock_timestamp() + make_interval(secs => ${waitMax})
       RETURNING 1)
     SELECT EXISTS (SELECT FROM counted) AS counted,
       coalesce((SELECT extract(epoch FROM blocked_until - clock_timestamp())
                 FROM auth.attempts WHERE key = ${keyValue}), 0)::float8 AS "waitSeconds"`,
  );
}

/** Takes one counted attempt back. */
export function uncountAttempt(key: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE auth.attempts SET failures = greatest(failures - 1, 0), blocked_until = clock_timestamp()
     WHERE key = ${sql.bind(key, 'text')}`,
  );
}

export function deleteAttempts(key: string): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM auth.attempts WHERE key = ${sql.bind(key, 'text')}`);
}
