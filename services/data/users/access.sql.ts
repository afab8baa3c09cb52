/** Statements about users with whom things are shared. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { table } from '../sql.ts';

/** Those of the users who can sign in: nobody else is given anything. */
export function activeUsersSql(schema: string, userIds: readonly string[]): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT u."id"::text AS "userId" FROM ${table(schema, 'User')} u
    WHERE u."id" = ANY (${sql.bind(userIds, 'uuid[]')}) AND u."active" IS NOT FALSE`);
}
