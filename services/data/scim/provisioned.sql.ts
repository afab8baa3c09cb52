/** Statements about what provisioning clients call users and groups, and about users whom they have deleted. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { table } from '../sql.ts';

type Resource = 'User' | 'Group';

export interface ExternalId {
  readonly id: string;
  readonly externalId: string;
}

/** The client's external ids of the resources that have one; `ids` absent: all of them. */
export function externalIdsSql(
  schema: string,
  clientId: string,
  resource: Resource,
  ids?: readonly string[],
): Statement {
  const sql = new Sql();
  const some = ids === undefined ? '' : ` AND resource_id = ANY (${sql.bind(ids, 'text[]')})`;
  return sql.statement(`SELECT resource_id AS id, external_id AS "externalId" FROM ${schema}._external_ids
    WHERE client_id = ${sql.bind(clientId, 'text')} AND resource = ${sql.bind(resource, 'text')}${some}`);
}

/** The resources that the client calls so. */
export function namedSql(schema: string, clientId: string, resource: Resource, externalId: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT resource_id AS id FROM ${schema}._external_ids
    WHERE client_id = ${sql.bind(clientId, 'text')} AND resource = ${sql.bind(resource, 'text')}
      AND external_id = ${sql.bind(externalId, 'text')} LIMIT 200`);
}

/** Sets what the client calls a resource; null: nothing any more. */
export function nameSql(
  schema: string,
  clientId: string,
  resource: Resource,
  id: string,
  externalId: string | null,
): Statement {
  const sql = new Sql();
  const [client, kind, which] = [sql.bind(clientId, 'text'), sql.bind(resource, 'text'), sql.bind(id, 'text')];
  if (externalId === null)
    return sql.statement(`DELETE FROM ${schema}._external_ids
      WHERE client_id = ${client} AND resource = ${kind} AND resource_id = ${which}`);
  return sql.statement(`INSERT INTO ${schema}._external_ids (client_id, resource, resource_id, external_id)
    VALUES (${client}, ${kind}, ${which}, ${sql.bind(externalId, 'text')})
    ON CONFLICT (client_id, resource, resource_id) DO UPDATE SET external_id = excluded.external_id`);
}

/** Ids of the users whom provisioning does not see: deleted by a client, and not active again since. */
export const deprovisionedStatement = (schema: string): Statement => ({
  name: `deprovisioned ${schema}`,
  text: `SELECT gone.user_id AS id FROM ${schema}._deprovisioned_users gone
    JOIN ${table(schema, 'User')} u ON u."id" = gone.user_id AND u."active" IS FALSE`,
});

export function deprovisionSql(schema: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(`INSERT INTO ${schema}._deprovisioned_users (user_id) VALUES (${sql.bind(userId, 'uuid')})
    ON CONFLICT (user_id) DO UPDATE SET at = now()`);
}

export function provisionSql(schema: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM ${schema}._deprovisioned_users WHERE user_id = ${sql.bind(userId, 'uuid')}`);
}

/** Locks out other changes of users and configuration until the end of the transaction. */
export const lockStateStatement = (schema: string): Statement => ({
  name: `lock state ${schema}`,
  text: `SELECT FROM ${schema}._state FOR UPDATE`,
});

/** A user as changes are computed from. */
export interface StoredUser {
  readonly id: string;
  readonly recordVersion: number;
  readonly username: string;
  readonly displayName: string | null;
  readonly email: string | null;
  readonly active: boolean;
  readonly locale: string | null;
  readonly timezone: string | null;
  readonly managerId: string | null;
  readonly profileApiName: string;
  readonly roleApiName: string | null;
  readonly permissionSetApiNames: readonly string[];
  readonly externalId: string | null;
  /** A client has deleted it, and it is still inactive. */
  readonly deprovisioned: boolean;
}

const STORED = `u."id"::text AS id, u."recordVersion"::integer AS "recordVersion", u."username", u."displayName", u."email",
  u."active" IS NOT FALSE AS active, u."locale", u."timezone", u."managerId"::text AS "managerId", u."profileApiName",
  u."roleApiName", coalesce(u."permissionSetApiNames", '{}') AS "permissionSetApiNames",
  named.external_id AS "externalId", gone.user_id IS NOT NULL AND u."active" IS FALSE AS deprovisioned`;

const storedFrom = (schema: string, client: string): string => `FROM ${table(schema, 'User')} u
  LEFT JOIN ${schema}._external_ids named
    ON named.client_id = ${client} AND named.resource = 'User' AND named.resource_id = u."id"::text
  LEFT JOIN ${schema}._deprovisioned_users gone ON gone.user_id = u."id"`;

/** The users with these ids as they are now; the caller sees every user (lib/access/user-object.ts). */
export function storedUsersSql(schema: string, clientId: string, ids: readonly string[]): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT ${STORED} ${storedFrom(schema, sql.bind(clientId, 'text'))}
    WHERE u."id" = ANY (${sql.bind(ids, 'uuid[]')}) ORDER BY u."id"`);
}

/** The user with this username. */
export function storedByNameSql(schema: string, clientId: string, username: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT ${STORED} ${storedFrom(schema, sql.bind(clientId, 'text'))}
    WHERE lower(u."username") = lower(${sql.bind(username, 'text')})`);
}

/** Ids of the users to whom a permission set is assigned, without those whom provisioning does not see. */
export function membersSql(schema: string, permissionSet: string, limit: number): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT u."id"::text AS id FROM ${table(schema, 'User')} u
    WHERE u."permissionSetApiNames" @> ARRAY[${sql.bind(permissionSet, 'text')}]
      AND NOT (u."active" IS FALSE AND EXISTS (SELECT FROM ${schema}._deprovisioned_users gone WHERE gone.user_id = u."id"))
    ORDER BY u."id" LIMIT ${limit}`);
}
