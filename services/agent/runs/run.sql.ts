/** Statements that read runs as they are at this moment: what has passed its time is over, whatever is written down. */
import type { AgentRun, RunStatus } from '../../../contracts/agent.ts';
import { namedLockStatement } from '../../../mixins/database/named-lock.sql.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

/** Owner and budget of the run. */
interface RunTerms {
  readonly agentKey: string;
  readonly userId: string;
  readonly clientId: string;
  readonly dryRun: boolean;
  readonly maxCost: number;
  readonly maxMutations: number;
  readonly maxRecords: number;
  readonly cost: number;
  readonly requests: number;
  readonly mutations: number;
  readonly recordsChanged: number;
}

export interface RunRow extends RunTerms {
  readonly runId: string;
  readonly status: RunStatus;
  readonly agentVersion: string | null;
  readonly goal: string;
  readonly context: AgentRun['context'];
  readonly plan: AgentRun['plan'];
  readonly createdAt: string;
  readonly expiresAt: string;
  readonly endedAt: string | null;
  readonly outcome: AgentRun['outcome'];
  readonly summary: string | null;
  readonly output: AgentRun['output'];
  readonly modelUsage: AgentRun['modelUsage'];
  readonly pending: readonly {
    approvalId: string;
    operationId: string;
    summary: string;
    /** Of what the request is on; null: of no object. */
    objectApiName: string | null;
    expiresAt: string;
  }[];
}

/** Columns of a run in lists. */
export type RunSummaryRow = Omit<RunRow, 'plan' | 'output' | 'pending'>;

/** Waits for a decision, and still can be decided. */
const PENDING = `a.tenant_id = r.tenant_id AND a.run_id = r.run_id AND a.status = 'PENDING'
  AND a.expires_at > statement_timestamp() AND r.status = 'RUNNING' AND r.expires_at > statement_timestamp()`;

const STATUS = `CASE
    WHEN r.status <> 'RUNNING' THEN r.status
    WHEN r.expires_at <= statement_timestamp() THEN 'EXPIRED'
    WHEN EXISTS (SELECT FROM agent.approvals a WHERE ${PENDING}) THEN 'WAITING_APPROVAL'
    ELSE 'RUNNING' END`;

const TERMS = `r.agent_key AS "agentKey", r.user_id AS "userId", r.client_id AS "clientId", r.dry_run AS "dryRun",
    r.max_cost AS "maxCost", r.max_mutations AS "maxMutations", r.max_records AS "maxRecords",
    r.cost, r.requests, r.mutations, r.records_changed AS "recordsChanged"`;

const SUMMARY = `r.run_id AS "runId", ${STATUS} AS status, ${TERMS},
    r.agent_version AS "agentVersion", r.goal, r.context, r.created_at AS "createdAt", r.expires_at AS "expiresAt",
    CASE WHEN r.status = 'RUNNING' AND r.expires_at <= statement_timestamp() THEN r.expires_at ELSE r.ended_at END
      AS "endedAt",
    r.outcome, r.summary, r.model_usage AS "modelUsage"`;

const ENTIRE = `${SUMMARY}, r.plan, r.output, (
    SELECT coalesce(json_agg(json_build_object('approvalId', a.approval_id, 'operationId', a.operation_id,
      'summary', a.summary, 'objectApiName', a.path_parameters ->> 'objectApiName', 'expiresAt', a.expires_at) ORDER BY a.approval_id), '[]')
    FROM agent.approvals a WHERE ${PENDING}) AS pending`;

/** Users and clients whose runs are visible. */
export interface Sight {
  /** null: runs of all users. */
  readonly userId: string | null;
  /** null: runs of all clients. */
  readonly clientId: string | null;
}

/** Stored status of runs: an expired one may still be stored as active. Served by indexes. */
const WRITTEN: Readonly<Record<RunStatus, string>> = {
  RUNNING: `r.status = 'RUNNING'`,
  WAITING_APPROVAL: `r.status = 'RUNNING'`,
  COMPLETED: `r.status = 'COMPLETED'`,
  FAILED: `r.status = 'FAILED'`,
  CANCELED: `r.status = 'CANCELED'`,
  EXPIRED: `r.status IN ('EXPIRED', 'RUNNING')`,
};

const inSight = ({ bind }: Sql, { userId, clientId }: Sight): string =>
  [
    ...(userId === null ? [] : [`AND r.user_id = ${bind(userId, 'uuid')}`]),
    ...(clientId === null ? [] : [`AND r.client_id = ${bind(clientId, 'text')}`]),
  ].join(' ');

export function runStatement(tenantId: string, runId: string, sight: Sight): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT ${ENTIRE} FROM agent.runs r
    WHERE r.tenant_id = ${sql.bind(tenantId, 'uuid')} AND r.run_id = ${sql.bind(runId, 'uuid')} ${inSight(sql, sight)}`,
  );
}

export function runStatusStatement(tenantId: string, runId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT ${STATUS} AS status FROM agent.runs r
    WHERE r.tenant_id = ${sql.bind(tenantId, 'uuid')} AND r.run_id = ${sql.bind(runId, 'uuid')}`,
  );
}

interface RunFilter {
  readonly status: RunStatus | null;
  readonly agentKey: string | null;
  /** Only runs that began before this one. */
  readonly before: string | null;
  readonly take: number;
}

/** Newest first. */
export function runsStatement(tenantId: string, sight: Sight, filter: RunFilter): Statement {
  const sql = new Sql();
  const { bind } = sql;
  const { status, agentKey, before, take } = filter;
  return sql.statement(
    `SELECT ${SUMMARY} FROM agent.runs r
    WHERE r.tenant_id = ${bind(tenantId, 'uuid')} ${inSight(sql, sight)}
      ${status === null ? '' : `AND ${WRITTEN[status]} AND ${STATUS} = ${bind(status, 'text')}`}
      ${agentKey === null ? '' : `AND r.agent_key = ${bind(agentKey, 'text')}`}
      ${before === null ? '' : `AND r.run_id < ${bind(before, 'uuid')}`}
    ORDER BY r.run_id DESC LIMIT ${bind(take, 'integer')}`,
  );
}

export interface ActiveRuns {
  readonly ofUser: number;
  readonly ofTenant: number;
}

/** Lets one of those who begin runs in a tenant count them at a time, until its transaction ends. */
export const lockActiveRunsStatement = (tenantId: string): Statement => namedLockStatement(`agent.runs ${tenantId}`);

export function activeRunsStatement(tenantId: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT count(*) FILTER (WHERE user_id = ${sql.bind(userId, 'uuid')})::integer AS "ofUser",
      count(*)::integer AS "ofTenant"
    FROM agent.runs
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND status = 'RUNNING' AND expires_at > clock_timestamp()`,
  );
}

export interface LockedRun extends RunTerms {
  readonly status: Exclude<RunStatus, 'WAITING_APPROVAL'>;
  /** Its time has not passed. */
  readonly live: boolean;
}

/** The run as it is now, held until the transaction ends. */
export function lockRunStatement(tenantId: string, runId: string, sight: Sight): Statement {
  const sql = new Sql();
  // The clock is read behind the lock: the row may have been waited for.
  return sql.statement(
    `WITH locked AS MATERIALIZED (
      SELECT * FROM agent.runs r
      WHERE r.tenant_id = ${sql.bind(tenantId, 'uuid')} AND r.run_id = ${sql.bind(runId, 'uuid')} ${inSight(sql, sight)}
      FOR NO KEY UPDATE)
    SELECT r.status, r.expires_at > clock_timestamp() AS live, ${TERMS} FROM locked r`,
  );
}
