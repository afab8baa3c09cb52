/** The users that decide about a plan. */
import type { Statement } from '../../mixins/database/statement.ts';

/** Rows of Principal: the user with the id, and those with these usernames, which are in lower case. */
export const usersStatement = (schema: string, userId: string, usernames: readonly string[]): Statement => ({
  text: `SELECT "id" AS "userId", "username", coalesce("displayName", "username") AS "displayName",
      "active" IS NOT FALSE AS "active", "locale", coalesce("timezone", 'UTC') AS "timezone", "profileApiName",
      "roleApiName", coalesce("permissionSetApiNames", '{}') AS "permissionSetApiNames"
    FROM ${schema}."User" WHERE "id" = $1 OR lower("username") = ANY($2)`,
  values: [userId, usernames],
});
