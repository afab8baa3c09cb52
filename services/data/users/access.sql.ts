/** Statements about users with whom things are shared. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { table } from '../sql.ts';

/** Users who can sign in; no other can be given access. */
export function activeUsersSql(schema: string, userIds: readonly string[]): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT u."id"::text AS "userId" FROM ${table(schema, 'User')} u
    WHERE u."id" = ANY (${sql.bind(userIds, 'uuid[]')}) AND u."active" IS NOT FALSE`);
}
