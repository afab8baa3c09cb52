/** Statements that find and write down what has passed its time, by the clock of the database. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

/** Tenants with something to do. The login of the service looks across tenants. */
export function dueTenantsStatement(retentionDays: number, take: number): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT DISTINCT tenant_id AS "tenantId" FROM (
      SELECT tenant_id FROM agent.runs WHERE status = 'RUNNING' AND expires_at <= clock_timestamp()
      UNION ALL
      SELECT tenant_id FROM agent.approvals WHERE status IN ('PENDING', 'APPROVED') AND expires_at <= clock_timestamp()
      UNION ALL
      SELECT tenant_id FROM agent.approvals
      WHERE status = 'PENDING' AND escalated_at IS NULL AND escalate_at <= clock_timestamp()
      UNION ALL
      SELECT tenant_id FROM agent.runs
      WHERE status <> 'RUNNING' AND ended_at < now() - make_interval(days => ${sql.bind(retentionDays, 'integer')})
    ) due LIMIT ${sql.bind(take, 'integer')}`,
  );
}

/** Runs whose time is over. Those that a call holds at the moment are left to it, or to the next round. */
export function overdueRunsStatement(tenantId: string, take: number): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT run_id AS "runId" FROM agent.runs
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND status = 'RUNNING' AND expires_at <= clock_timestamp()
    ORDER BY run_id LIMIT ${sql.bind(take, 'integer')} FOR NO KEY UPDATE SKIP LOCKED`,
  );
}

export interface ExpiredApproval {
  /** Before. */
  readonly status: 'PENDING' | 'APPROVED';
  readonly approvalId: string;
  readonly runId: string;
}

export function expireApprovalsStatement(tenantId: string, take: number): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  return sql.statement(
    `UPDATE agent.approvals a SET status = 'EXPIRED'
    FROM (
      SELECT approval_id, status FROM agent.approvals
      WHERE tenant_id = ${tenant} AND status IN ('PENDING', 'APPROVED') AND expires_at <= clock_timestamp()
      ORDER BY approval_id LIMIT ${sql.bind(take, 'integer')} FOR NO KEY UPDATE SKIP LOCKED) due
    WHERE a.tenant_id = ${tenant} AND a.approval_id = due.approval_id
    RETURNING a.approval_id AS "approvalId", a.run_id AS "runId", due.status`,
  );
}

export function escalateStatement(tenantId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE agent.approvals SET escalated_at = escalate_at, notice = 'escalated'
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND status = 'PENDING' AND escalated_at IS NULL
      AND escalate_at <= clock_timestamp()`,
  );
}

/** Removes runs that ended long ago, with everything that belongs to them, and days as old. */
export function forgetStatement(tenantId: string, retentionDays: number, take: number): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  return sql.statement(
    `WITH old AS MATERIALIZED (
      SELECT run_id FROM agent.runs
      WHERE tenant_id = ${tenant} AND status <> 'RUNNING'
        AND ended_at < now() - make_interval(days => ${sql.bind(retentionDays, 'integer')})
      ORDER BY run_id LIMIT ${sql.bind(take, 'integer')}),
    asked AS MATERIALIZED (
      SELECT approval_id FROM agent.approvals WHERE tenant_id = ${tenant} AND run_id IN (SELECT run_id FROM old)),
    decisions AS (
      DELETE FROM agent.decisions WHERE tenant_id = ${tenant} AND approval_id IN (SELECT approval_id FROM asked)),
    approvals AS (DELETE FROM agent.approvals WHERE tenant_id = ${tenant} AND run_id IN (SELECT run_id FROM old)),
    days AS (
      DELETE FROM agent.days WHERE tenant_id = ${tenant}
        AND began_at < now() - make_interval(days => ${sql.bind(retentionDays, 'integer')})),
    steps AS (DELETE FROM agent.steps WHERE tenant_id = ${tenant} AND run_id IN (SELECT run_id FROM old))
    DELETE FROM agent.runs WHERE tenant_id = ${tenant} AND run_id IN (SELECT run_id FROM old)`,
  );
}

/** Tenants that have runs. The login of the service looks across tenants. */
export function tenantsWithRunsStatement(): Statement {
  return new Sql().statement(`SELECT DISTINCT tenant_id AS "tenantId" FROM agent.runs`);
}

/** Stored size of columns; long values are compressed. */
const bytesOf = (...columns: string[]): string =>
  columns.map((column) => `coalesce(pg_column_size(${column}), 0)`).join(' + ');

/**
 * SQL of the rows beyond the share of their user: the room of a tenant is divided among its users, and who exceeds
 * their part loses their own oldest rows. Nothing is beyond it while the tenant has room. `rows` has user_id and bytes.
 */
const beyondShare = (id: string, rows: string, maxBytes: string): string =>
  `SELECT ${id} FROM (
      SELECT ${id}, sum(bytes) OVER (PARTITION BY user_id ORDER BY ${id} DESC) AS of_user, sum(bytes) OVER () AS total
      FROM (${rows}) sized) kept
    WHERE total > ${maxBytes} AND of_user > ${maxBytes} / (SELECT count(DISTINCT user_id) FROM (${rows}) users)`;

/** Leaves out the outputs and plans of ended runs beyond the shares of their users. */
export function dropOutputsStatement(tenantId: string, maxBytes: number): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  const rows = `SELECT run_id, user_id, ${bytesOf('output', 'plan')} AS bytes FROM agent.runs
      WHERE tenant_id = ${tenant} AND status <> 'RUNNING' AND (output IS NOT NULL OR plan IS NOT NULL)`;
  return sql.statement(
    `UPDATE agent.runs SET output = NULL, plan = NULL
    WHERE tenant_id = ${tenant} AND run_id IN (${beyondShare('run_id', rows, sql.bind(maxBytes, 'bigint'))})`,
  );
}

/** Leaves out the requests and previews of ended approvals beyond the shares of their users; effects stay. */
export function dropRequestsStatement(tenantId: string, maxBytes: number): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  const rows = `SELECT approval_id, user_id, ${bytesOf('body', 'parts', 'preview')} AS bytes FROM agent.approvals
      WHERE tenant_id = ${tenant} AND status NOT IN ('PENDING', 'APPROVED') AND NOT (body IS NULL AND body_omitted)`;
  return sql.statement(
    `UPDATE agent.approvals SET body = NULL, parts = NULL, body_omitted = true,
      preview = CASE WHEN preview IS NOT NULL
        THEN json_build_object('omitted', true, 'effects', coalesce(preview -> 'effects', '[]')) END
    WHERE tenant_id = ${tenant}
      AND approval_id IN (${beyondShare('approval_id', rows, sql.bind(maxBytes, 'bigint'))})`,
  );
}

/** An active run and the grant under which it began. */
export interface GrantedRun {
  readonly tenantId: string;
  readonly runId: string;
  readonly grantId: string;
  readonly clientId: string;
  readonly userId: string;
}

const GRANTED = `SELECT tenant_id AS "tenantId", run_id AS "runId", grant_id AS "grantId", client_id AS "clientId",
    user_id AS "userId" FROM agent.runs WHERE status = 'RUNNING'`;

/** Active runs of these grants, whichever tenant they belong to. */
export function runsOfGrantsStatement(grantIds: readonly string[]): Statement {
  const sql = new Sql();
  return sql.statement(`${GRANTED} AND grant_id = ANY (${sql.bind(grantIds, 'text[]')})`);
}

/** Active runs of a tenant that other clients than these began. */
export function runsOfOtherClientsStatement(tenantId: string, clientIds: readonly string[]): Statement {
  const sql = new Sql();
  return sql.statement(
    `${GRANTED} AND tenant_id = ${sql.bind(tenantId, 'uuid')} AND client_id <> ALL (${sql.bind(clientIds, 'text[]')})`,
  );
}

/** Active runs in the order of their ids, from after `after`. */
export function grantedRunsStatement(after: string | null, take: number): Statement {
  const sql = new Sql();
  return sql.statement(
    `${GRANTED} ${after === null ? '' : `AND run_id > ${sql.bind(after, 'uuid')}`}
    ORDER BY run_id LIMIT ${sql.bind(take, 'integer')}`,
  );
}

/** Active runs of a tenant, oldest first: no more than a tenant may have. */
export function activeRunsOfTenantStatement(tenantId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT r.run_id AS "runId", r.agent_key AS "agentKey", r.user_id AS "userId", r.client_id AS "clientId",
      r.created_at AS "createdAt", r.expires_at AS "expiresAt",
      (SELECT count(*)::integer FROM agent.approvals a WHERE a.tenant_id = r.tenant_id AND a.run_id = r.run_id
        AND a.status = 'PENDING' AND a.expires_at > statement_timestamp()) AS waiting
    FROM agent.runs r
    WHERE r.tenant_id = ${sql.bind(tenantId, 'uuid')} AND r.status = 'RUNNING' AND r.expires_at > statement_timestamp()
    ORDER BY r.run_id`,
  );
}

/** Of all tenants. */
export interface Numbers {
  readonly runs: number;
  readonly approvals: number;
  readonly overdueSeconds: number;
}

/** How much goes on, and how late its ends are written down. */
export const numbersStatement = (): Statement => ({
  text: `SELECT
    (SELECT count(*)::integer FROM agent.runs WHERE status = 'RUNNING' AND expires_at > clock_timestamp()) AS runs,
    (SELECT count(*)::integer FROM agent.approvals WHERE status = 'PENDING' AND expires_at > clock_timestamp())
      AS approvals,
    greatest(0, extract(epoch FROM clock_timestamp() - least(
      (SELECT min(expires_at) FROM agent.runs WHERE status = 'RUNNING'),
      (SELECT min(expires_at) FROM agent.approvals WHERE status IN ('PENDING', 'APPROVED')))))::float8
      AS "overdueSeconds"`,
});
