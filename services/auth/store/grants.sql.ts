/** Statements on grants. The gateway asks for live ones all the time, so these are prepared SQL. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

export interface GrantRow {
  tenantId: string;
  id: string;
  userId: string;
  clientId: string;
  payload: object;
  /** See SignIn. */
  sessionGeneration: number | null;
}

export interface IntegrationOf {
  tenantId: string;
  userId: string;
  clientId: string;
  /** See lib/access/client-marks.ts. */
  authentication: string;
}

/** Saves nothing once all sessions of the user have ended since the sign-in; one lock with the end of them. */
export function saveGrant(grant: GrantRow, expiresInSeconds: number): Statement {
  const sql = new Sql();
  return sql.statement(
    `INSERT INTO auth.grants (tenant_id, id, user_id, client_id, payload, expires_at)
     SELECT tenant_id, ${sql.bind(grant.id, 'text')}, user_id,
       ${sql.bind(grant.clientId, 'text')}, ${sql.bind(JSON.stringify(grant.payload), 'jsonb')},
       now() + make_interval(secs => ${sql.bind(expiresInSeconds, 'float8')})
     FROM auth.credentials
     WHERE tenant_id = ${sql.bind(grant.tenantId, 'uuid')} AND user_id = ${sql.bind(grant.userId, 'uuid')}
       AND session_generation = ${sql.bind(grant.sessionGeneration, 'integer')} FOR SHARE
     ON CONFLICT (tenant_id, id) DO UPDATE SET payload = excluded.payload, expires_at = excluded.expires_at`,
  );
}

export function grantPayload(grantId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT payload FROM auth.grants WHERE id = ${sql.bind(grantId, 'text')} AND expires_at > now()`,
  );
}

/**
 * The newest grant made for the integration user of a client with this mark of authentication; one that ends within a
 * day is not worth using.
 */
export function integrationGrant({ tenantId, userId, clientId, authentication }: IntegrationOf): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT id FROM auth.grants
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')}
       AND client_id = ${sql.bind(clientId, 'text')}
       AND payload ? 'integration' AND payload #>> '{clientMarks,authentication}' = ${sql.bind(authentication, 'text')}
       AND expires_at > now() + interval '1 day'
     ORDER BY created_at DESC LIMIT 1`,
  );
}

export function liveGrants(tenantId: string, grantIds: readonly string[]): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT live_grant.id AS "grantId", live_grant.user_id AS "userId", live_grant.client_id AS "clientId",
       live_grant.payload ? 'integration' AS integration,
       live_grant.payload #>> '{clientMarks,authentication}' AS authentication
     FROM auth.grants live_grant JOIN auth.credentials credential USING (tenant_id, user_id)
     WHERE live_grant.tenant_id = ${sql.bind(tenantId, 'uuid')} AND live_grant.id = ANY(${sql.bind(grantIds, 'text[]')})
       AND live_grant.expires_at > now() AND credential.active`,
  );
}

/** To the minute is enough, and spares a write per check. */
export function markGrantsUsed(tenantId: string, grantIds: readonly string[]): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  return sql.statement(
    `UPDATE auth.grants SET last_used_at = now() WHERE tenant_id = ${tenant} AND id IN (
       SELECT id FROM auth.grants WHERE tenant_id = ${tenant} AND id = ANY(${sql.bind(grantIds, 'text[]')})
         AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
       ORDER BY id FOR UPDATE SKIP LOCKED)`,
  );
}

/** The account page is no application: its grant only records that no consent is needed. */
const isConnection = (accountClientId: string, sql: Sql): string =>
  `client_id <> ${sql.bind(accountClientId, 'text')} AND expires_at > now()`;

/** A connection as it is listed; `createdAt` is exact to the microsecond, for the cursor. */
export interface ConnectionRow {
  id: string;
  clientId: string;
  payload: Record<string, unknown>;
  createdAt: string;
  lastUsedAt: string | null;
}

/** Newest first; `after`: those behind this one. */
export function connectionsOfUser(
  { tenantId, userId }: { tenantId: string; userId: string },
  accountClientId: string,
  after: Pick<ConnectionRow, 'createdAt' | 'id'> | null,
  limit: number,
): Statement {
  const sql = new Sql();
  const behind =
    after === null
      ? ''
      : `AND (created_at, id) < (${sql.bind(after.createdAt, 'timestamptz')}, ${sql.bind(after.id, 'text')})`;
  return sql.statement(
    `SELECT id, client_id AS "clientId", payload, to_json(created_at) #>> '{}' AS "createdAt",
       to_json(last_used_at) #>> '{}' AS "lastUsedAt"
     FROM auth.grants
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')}
       AND ${isConnection(accountClientId, sql)} ${behind}
     ORDER BY created_at DESC, id DESC LIMIT ${sql.bind(limit, 'integer')}`,
  );
}

export function deleteConnection(
  { tenantId, userId }: { tenantId: string; userId: string },
  accountClientId: string,
  id: string,
): Statement {
  const sql = new Sql();
  return sql.statement(
    `DELETE FROM auth.grants
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')}
       AND id = ${sql.bind(id, 'text')} AND ${isConnection(accountClientId, sql)}
     RETURNING client_id AS "clientId"`,
  );
}

export function deleteGrant(grantId: string): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM auth.grants WHERE id = ${sql.bind(grantId, 'text')}`);
}

/** Ends the sign-ins of a user, those under way included. */
export function endSignIns(tenantId: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE auth.credentials SET session_generation = session_generation + 1
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')}`,
  );
}

export function deleteGrantsOfUser(tenantId: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `DELETE FROM auth.grants
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')} RETURNING id`,
  );
}

/** Grants of clients that are neither the platform's nor among those that the tenant's configuration declares. */
export function deleteGrantsOfOtherClients(tenantId: string, clientIds: readonly string[]): Statement {
  const sql = new Sql();
  return sql.statement(
    `DELETE FROM auth.grants
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND client_id <> ALL(${sql.bind(clientIds, 'text[]')})
     RETURNING id`,
  );
}
