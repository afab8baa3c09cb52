import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

/** Ends a grant of the user. One row: the client it was given to, null when the user has no such grant. */
export function endGrant(tenantId: string, userId: string, grantId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT auth.end_grant(${sql.bind(tenantId, 'uuid')}, ${sql.bind(userId, 'uuid')}, ${sql.bind(grantId, 'text')})
       AS "clientId"`,
  );
}
