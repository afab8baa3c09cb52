/** Statements about requests for a new password, before their user is known. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import type { Kept } from '../vault.ts';

/** Maximum of waiting ones in total: far more than processes leave behind. */
const WAITING_MAX = 10_000;

/** One row: the request is kept; none: too many wait. */
export function insertReset(id: string, { plain, sealed }: Kept): Statement {
  const sql = new Sql();
  return sql.statement(
    `INSERT INTO auth.reset_requests (id, plain, sealed)
     SELECT ${sql.bind(id, 'uuid')}, ${sql.bind(plain && JSON.stringify(plain), 'jsonb')}, ${sql.bind(sealed, 'bytea')}
     WHERE (SELECT count(*) FROM (SELECT FROM auth.reset_requests LIMIT ${WAITING_MAX}) waiting) < ${WAITING_MAX}
     RETURNING id`,
  );
}

/** Takes some for a while, in which no other process does. */
export function takeResets(limit: number, leaseSeconds: number): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE auth.reset_requests request
     SET due_at = clock_timestamp() + make_interval(secs => ${sql.bind(leaseSeconds, 'integer')})
     FROM (SELECT id FROM auth.reset_requests WHERE due_at <= clock_timestamp() ORDER BY due_at
       LIMIT ${sql.bind(limit, 'integer')} FOR UPDATE SKIP LOCKED) taken
     WHERE request.id = taken.id
     RETURNING request.id, request.plain, request.sealed, request.created_at < now() - interval '1 hour' AS stale`,
  );
}

/** One row, unless another process was faster. */
export function deleteReset(id: string): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM auth.reset_requests WHERE id = ${sql.bind(id, 'uuid')} RETURNING id`);
}
