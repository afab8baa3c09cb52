/** Functions of auth about users, of the tenant that the transaction is bound to. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { table } from '../sql.ts';

interface HandedOver {
  readonly tenantId: string;
  readonly userId: string;
  /** The user who hands the link over. */
  readonly madeBy: string;
  readonly tokenHash: Buffer;
  readonly validSeconds: number;
}

/** When the link ends; null: auth knows no active user of this id. */
export function addPasswordLink({ tenantId, userId, madeBy, tokenHash, validSeconds }: HandedOver): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT to_json(auth.add_password_link(${sql.bind(tenantId, 'uuid')}, ${sql.bind(userId, 'uuid')},
       ${sql.bind(madeBy, 'uuid')}, ${sql.bind(tokenHash, 'bytea')},
       ${sql.bind(validSeconds, 'integer')})::timestamptz(3)) #>> '{}' AS "expiresAt"`,
  );
}

/** Outcome: `queued`, or why it was not. */
export function queueInvitation(tenantId: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT auth.queue_invitation(${sql.bind(tenantId, 'uuid')}, ${sql.bind(userId, 'uuid')}) AS outcome`,
  );
}

export interface LetInUser {
  readonly username: string;
  readonly displayName: string | null;
  readonly active: boolean | null;
  readonly profileApiName: string;
  readonly roleApiName: string | null;
  readonly permissionSetApiNames: string[] | null;
}

export function letInUser(schema: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(`${user(schema)} WHERE "id" = ${sql.bind(userId, 'uuid')}`);
}

/** Locked until the transaction ends, so that the user gets no further rights meanwhile. */
export function holdUser(schema: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(`${user(schema)} WHERE "id" = ${sql.bind(userId, 'uuid')} FOR NO KEY UPDATE`);
}

const user = (schema: string): string =>
  `SELECT "username", "displayName", "active", "profileApiName", "roleApiName", "permissionSetApiNames"
   FROM ${table(schema, 'User')}`;
