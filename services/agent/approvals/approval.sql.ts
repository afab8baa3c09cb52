/** Statements about approvals. What has passed its time is over, whatever is written down. */

import type { AgentApproval, ApprovalStatus } from '../../../contracts/agent.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { ApproverMeta } from '../../../lib/schema/snapshot.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import type { KnownApproval } from '../admission/decide.ts';
import type { Sight } from '../runs/run.sql.ts';

/** An approver; a manager is the one of the moment at which it was asked for. */
export type Approver = Omit<ApproverMeta, 'manager'> & { readonly manager?: string | null };

export interface NewApproval {
  readonly tenantId: string;
  readonly approvalId: string;
  readonly runId: string;
  readonly userId: string;
  readonly operationId: string;
  readonly method: string;
  readonly path: string;
  readonly pathParameters: Readonly<Record<string, string>>;
  readonly risk: string;
  readonly summary: string;
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON; null: there is none. Of a body that is not kept, only what refers to other records. */
  readonly body: string | null;
  readonly bodyOmitted: boolean;
  /** JSON: the parts of a composite request, or its rows; null: it is one operation. */
  readonly parts: string | null;
  /** JSON; null: the operation cannot be tried out. */
  readonly preview: string | null;
  /** The effects of the dry run, for which alone the approval is good. */
  readonly basis: string | null;
  readonly fingerprint: string;
  /** SHA-256 (hex) of what the request means; null: not known. */
  readonly meaning: string | null;
  readonly idempotencyKey: string;
  readonly policy: string | null;
  readonly requiredApprovals: number;
  readonly approvers: readonly Approver[];
  readonly allowSelfApproval: boolean;
  readonly escalateAfterSeconds: number | null;
  readonly escalateTo: readonly Approver[];
  readonly expiresInSeconds: number;
}

/** Answers when the new approval expires, which is no later than its run. */
export function insertApprovalStatement(approval: NewApproval): Statement {
  const sql = new Sql();
  const { bind } = sql;
  const json = (value: unknown, type: 'json' | 'jsonb'): string => bind(JSON.stringify(value), type);
  return sql.statement(
    `INSERT INTO agent.approvals (tenant_id, approval_id, run_id, user_id, operation_id, method, path, path_parameters,
      risk, summary, query, headers, body, body_omitted, parts, preview, basis, fingerprint, meaning, idempotency_key, policy,
      required_approvals, approvers, allow_self_approval, escalate_at, escalate_to, expires_at)
    VALUES (${bind(approval.tenantId, 'uuid')}, ${bind(approval.approvalId, 'uuid')}, ${bind(approval.runId, 'uuid')},
      ${bind(approval.userId, 'uuid')}, ${bind(approval.operationId, 'text')}, ${bind(approval.method, 'text')},
      ${bind(approval.path, 'text')}, ${json(approval.pathParameters, 'jsonb')}, ${bind(approval.risk, 'text')},
      ${bind(approval.summary, 'text')}, ${json(approval.query, 'json')}, ${json(approval.headers, 'jsonb')},
      ${bind(approval.body, 'json')}, ${bind(approval.bodyOmitted, 'boolean')}, ${bind(approval.parts, 'json')}, ${bind(approval.preview, 'json')},
      ${bind(approval.basis, 'text')}, ${bind(approval.fingerprint, 'text')}, ${bind(approval.meaning, 'text')},
      ${bind(approval.idempotencyKey, 'text')}, ${bind(approval.policy, 'text')},
      ${bind(approval.requiredApprovals, 'smallint')}, ${json(approval.approvers, 'jsonb')},
      ${bind(approval.allowSelfApproval, 'boolean')},
      clock_timestamp() + make_interval(secs => ${bind(approval.escalateAfterSeconds, 'float8')}),
      ${json(approval.escalateTo, 'jsonb')},
      LEAST(clock_timestamp() + make_interval(secs => ${bind(approval.expiresInSeconds, 'float8')}),
        (SELECT expires_at FROM agent.runs
        WHERE tenant_id = ${bind(approval.tenantId, 'uuid')} AND run_id = ${bind(approval.runId, 'uuid')})))
    RETURNING expires_at AS "expiresAt"`,
  );
}

export interface OpenApprovals {
  readonly ofRun: number;
  readonly ofUser: number;
  readonly ofTenant: number;
}

/** How many approvals wait for a decision. */
export function pendingStatement(tenantId: string, userId: string, runId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT count(*) FILTER (WHERE run_id = ${sql.bind(runId, 'uuid')})::integer AS "ofRun",
      count(*) FILTER (WHERE user_id = ${sql.bind(userId, 'uuid')})::integer AS "ofUser",
      count(*)::integer AS "ofTenant"
    FROM agent.approvals
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND status = 'PENDING' AND expires_at > clock_timestamp()`,
  );
}

/**
 * Of the approvals that the same request of a run asked for: the one that this key has used up, else one that is open,
 * else a rejection, also of another spelling of the request and by another run of user and client, else the newest. It is
 * held until the transaction ends.
 */
export function knownApprovalStatement(
  { tenantId, userId, clientId }: Pick<RequestContext, 'tenantId' | 'userId' | 'clientId'>,
  runId: string,
  { fingerprint, meaning, idempotencyKey }: Pick<NewApproval, 'fingerprint' | 'meaning' | 'idempotencyKey'>,
): Statement {
  const sql = new Sql();
  const { bind } = sql;
  const key = bind(idempotencyKey, 'text');
  const usedByKey = `EXISTS (SELECT FROM agent.steps s WHERE s.tenant_id = a.tenant_id AND s.run_id = a.run_id
        AND s.mutation AND s.idempotency_key = ${key} AND s.request_id = a.consumed_request_id)`;
  return sql.statement(
    `WITH known AS MATERIALIZED (
      SELECT a.*, a.status = 'CONSUMED' AND ${usedByKey} AS used_by_key
      FROM agent.approvals a
      WHERE a.tenant_id = ${bind(tenantId, 'uuid')} AND (
        a.run_id = ${bind(runId, 'uuid')} AND a.fingerprint = ${bind(fingerprint, 'text')}
        OR a.user_id = ${bind(userId, 'uuid')} AND a.status = 'REJECTED' AND a.meaning = ${bind(meaning, 'text')}
          AND EXISTS (SELECT FROM agent.runs r WHERE r.tenant_id = a.tenant_id AND r.run_id = a.run_id
            AND r.client_id = ${bind(clientId, 'text')})
          AND (a.run_id = ${bind(runId, 'uuid')} OR EXISTS (SELECT FROM agent.decisions d
            WHERE d.tenant_id = a.tenant_id AND d.approval_id = a.approval_id AND d.decision = 'reject'
              AND d.decided_at > clock_timestamp() - make_interval(hours => ${bind(LIMITS.agent_rejection_hours, 'integer')}))))
      ORDER BY used_by_key DESC, (a.status IN ('PENDING', 'APPROVED') AND a.expires_at > clock_timestamp()) DESC,
        (a.status = 'REJECTED') DESC, a.approval_id DESC
      LIMIT 1 FOR NO KEY UPDATE)
    SELECT known.approval_id AS "approvalId", known.status, known.expires_at > clock_timestamp() AS live,
      known.expires_at AS "expiresAt", known.idempotency_key = ${key} AS "sameKey", known.used_by_key AS "usedByKey", known.basis,
      (SELECT d.comment FROM agent.decisions d WHERE d.tenant_id = known.tenant_id
        AND d.approval_id = known.approval_id AND d.decision = 'reject' LIMIT 1) AS comment
    FROM known`,
  );
}

export type KnownApprovalRow = KnownApproval;

/** Writes down that an approval has passed its time: one row, or none when that is no news. */
export function expireApprovalStatement(tenantId: string, approvalId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE agent.approvals SET status = 'EXPIRED'
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND approval_id = ${sql.bind(approvalId, 'uuid')}
      AND status IN ('PENDING', 'APPROVED') AND expires_at <= clock_timestamp()
    RETURNING approval_id`,
  );
}

/** Columns of an approval in lists. */
export interface ApprovalSummaryRow {
  readonly approvalId: string;
  readonly runId: string;
  readonly status: ApprovalStatus;
  /** In whose name the agent asks. */
  readonly userId: string;
  readonly clientId: string;
  readonly operationId: string;
  readonly method: string;
  readonly path: string;
  readonly pathParameters: Readonly<Record<string, string>>;
  readonly risk: AgentApproval['risk'];
  readonly summary: string;
  readonly fingerprint: string;
  readonly requestedAt: string;
  readonly expiresAt: string;
  readonly policy: string | null;
  readonly requiredApprovals: number;
  readonly approvers: readonly Approver[];
  readonly escalateTo: readonly Approver[];
  readonly allowSelfApproval: boolean;
  readonly escalatedAt: string | null;
  readonly consumedAt: string | null;
  readonly consumedRequestId: string | null;
  readonly decisions: readonly {
    readonly userId: string;
    readonly decision: 'approve' | 'reject';
    readonly comment: string | null;
    readonly decidedAt: string;
  }[];
}

export interface ApprovalRow extends ApprovalSummaryRow {
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON texts, so that numbers keep their digits; of a body that is not kept, only what refers to other records. */
  readonly body: string | null;
  readonly bodyOmitted: boolean;
  /** JSON text: the parts of a composite request, or its rows; null: it is one operation. */
  readonly parts: string | null;
  readonly preview: string | null;
}

/** As it is at the moment: an open one whose time or whose run is over is not open any more. */
const STATUS = `CASE
    WHEN a.status NOT IN ('PENDING', 'APPROVED') THEN a.status
    WHEN r.status <> 'RUNNING' OR r.expires_at <= statement_timestamp() THEN 'CANCELED'
    WHEN a.expires_at <= statement_timestamp() THEN 'EXPIRED'
    ELSE a.status END`;

const SUMMARY = `a.approval_id AS "approvalId", a.run_id AS "runId", ${STATUS} AS status, a.user_id AS "userId",
    r.client_id AS "clientId", a.operation_id AS "operationId", a.method, a.path, a.path_parameters AS "pathParameters",
    a.risk, a.summary, a.fingerprint, a.requested_at AS "requestedAt", a.expires_at AS "expiresAt", a.policy,
    a.required_approvals AS "requiredApprovals", a.approvers, a.escalate_to AS "escalateTo",
    a.allow_self_approval AS "allowSelfApproval",
    coalesce(a.escalated_at, CASE WHEN a.status = 'PENDING' AND a.escalate_at <= statement_timestamp()
      THEN a.escalate_at END) AS "escalatedAt",
    a.consumed_at AS "consumedAt", a.consumed_request_id AS "consumedRequestId",
    (SELECT coalesce(json_agg(json_build_object('userId', d.user_id, 'decision', d.decision, 'comment', d.comment,
        'decidedAt', d.decided_at) ORDER BY d.decided_at), '[]')
      FROM agent.decisions d WHERE d.tenant_id = a.tenant_id AND d.approval_id = a.approval_id) AS decisions`;

const ENTIRE = `${SUMMARY}, a.query, a.headers, a.body::text AS body, a.body_omitted AS "bodyOmitted",
    a.parts::text AS parts, a.preview::text AS preview`;

const FROM = `FROM agent.approvals a JOIN agent.runs r ON r.tenant_id = a.tenant_id AND r.run_id = a.run_id`;

export function approvalStatement(tenantId: string, approvalId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT ${ENTIRE} ${FROM}
    WHERE a.tenant_id = ${sql.bind(tenantId, 'uuid')} AND a.approval_id = ${sql.bind(approvalId, 'uuid')}`,
  );
}

/** Holds the approval until the transaction ends; what is read behind it is its state from then on. */
export function lockApprovalStatement(tenantId: string, approvalId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT FROM agent.approvals
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND approval_id = ${sql.bind(approvalId, 'uuid')}
    FOR NO KEY UPDATE`,
  );
}

/** Stored status of approvals: an expired one may still be stored as open. Served by indexes. */
const WRITTEN: Readonly<Record<ApprovalStatus, string>> = {
  PENDING: `a.status = 'PENDING'`,
  APPROVED: `a.status = 'APPROVED'`,
  REJECTED: `a.status = 'REJECTED'`,
  CONSUMED: `a.status = 'CONSUMED'`,
  EXPIRED: `a.status IN ('EXPIRED', 'PENDING', 'APPROVED')`,
  CANCELED: `a.status IN ('CANCELED', 'PENDING', 'APPROVED')`,
};

interface ApprovalFilter {
  readonly status: ApprovalStatus | null;
  /** Only approvals that were asked for before this one. */
  readonly before: string | null;
  readonly take: number;
}

/** Newest first. Of the whole tenant for people who oversee agents: which they see is decided about each. */
export function approvalsStatement(
  tenantId: string,
  { userId, clientId }: Sight,
  { status, before, take }: ApprovalFilter,
): Statement {
  const sql = new Sql();
  const { bind } = sql;
  return sql.statement(
    `SELECT ${SUMMARY} ${FROM}
    WHERE a.tenant_id = ${bind(tenantId, 'uuid')}
      ${userId === null ? '' : `AND a.user_id = ${bind(userId, 'uuid')}`}
      ${clientId === null ? '' : `AND r.client_id = ${bind(clientId, 'text')}`}
      ${status === null ? '' : `AND ${WRITTEN[status]} AND ${STATUS} = ${bind(status, 'text')}`}
      ${before === null ? '' : `AND a.approval_id < ${bind(before, 'uuid')}`}
    ORDER BY a.approval_id DESC LIMIT ${bind(take, 'integer')}`,
  );
}

/** Settles a pending approval; an approved one can be used for so many seconds, and no longer than its run lives. */
export function decideStatement(
  tenantId: string,
  approvalId: string,
  status: 'APPROVED' | 'REJECTED',
  usableSeconds: number,
): Statement {
  const sql = new Sql();
  const { bind } = sql;
  const state = bind(status, 'text');
  return sql.statement(
    `UPDATE agent.approvals a SET status = ${state}, expires_at = CASE WHEN ${state} = 'APPROVED'
      THEN LEAST(clock_timestamp() + make_interval(secs => ${bind(usableSeconds, 'float8')}),
        (SELECT expires_at FROM agent.runs r WHERE r.tenant_id = a.tenant_id AND r.run_id = a.run_id))
      ELSE expires_at END
    WHERE tenant_id = ${bind(tenantId, 'uuid')} AND approval_id = ${bind(approvalId, 'uuid')} AND status = 'PENDING'`,
  );
}

/** An approval of which people are not sent mails yet. */
export interface NoticedRow extends ApprovalSummaryRow {
  readonly agentKey: string;
  readonly notice: 'asked' | 'escalated';
}

/** Tenants with such approvals. The login of the service looks across tenants. */
export function tenantsWithNoticesStatement(take: number): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT DISTINCT tenant_id AS "tenantId" FROM agent.approvals WHERE notice IS NOT NULL AND status = 'PENDING'
    LIMIT ${sql.bind(take, 'integer')}`,
  );
}

export function noticesStatement(tenantId: string, take: number): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT ${SUMMARY}, r.agent_key AS "agentKey", a.notice ${FROM}
    WHERE a.tenant_id = ${sql.bind(tenantId, 'uuid')} AND a.notice IS NOT NULL AND a.status = 'PENDING'
    ORDER BY a.approval_id LIMIT ${sql.bind(take, 'integer')}`,
  );
}

/** Unless it has escalated meanwhile. */
export function noticedStatement(tenantId: string, { approvalId, notice }: NoticedRow): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE agent.approvals SET notice = NULL WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}
      AND approval_id = ${sql.bind(approvalId, 'uuid')} AND notice = ${sql.bind(notice, 'text')}`,
  );
}
