/**
 * A change under a run of an agent is committed only while the run is active and its budget lasts, and together with
 * the approval that it uses up: of any number of attempts with one approval one is committed, and one that fails has
 * used nothing. Reasons: docs/decisions/approvals-in-the-transaction.md.
 */
import type { RequestContext, UsedApproval } from '../../lib/context.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { Sql } from '../database/sql.ts';
import type { Statement } from '../database/statement.ts';
import { consumeApprovalSql, continueRunSql } from './agent-run.sql.ts';
import { CallerSql, outboxSql } from './audit.ts';
import type { Hook, Unit } from './unit.ts';

const REFUSALS = {
  RUN_NOT_ACTIVE: 'The run ended while the call was under way; nothing was changed.',
  AGENT_BUDGET_EXCEEDED: 'The call would change more records than the budget of the run has left; nothing was changed.',
  APPROVAL_REQUIRED: 'Another request has used the approval up; send this one again to ask for another.',
  APPROVAL_PENDING: 'The approval has not been given.',
  APPROVAL_REJECTED: 'The approval was refused.',
  APPROVAL_EXPIRED: 'The approval has expired; send the request with a new Idempotency-Key to ask for another.',
  APPROVAL_FINGERPRINT_MISMATCH: 'The approval was given for another request.',
} as const;

const isRefusal = (verdict: string): verdict is keyof typeof REFUSALS => Object.hasOwn(REFUSALS, verdict);

/**
 * What a change asks before it is committed; null: its request is under no run. A dry run asks for room alone, so that
 * nobody is asked about a change that the run could not make; its rollback gives the room back.
 */
export function runHook(service: string, request: RequestContext, dryRun: boolean): Hook | null {
  const { tenantId, requestId, agentRunId: runId, approval } = request;
  if (runId === null) return null;
  const asked = { tenantId, runId, requestId };
  return {
    role: { service },
    run: async (unit) => {
      const { records } = unit.tally;
      // The run before the approval, as everything locks them that ends a run.
      await demand(unit, continueRunSql(asked, records), 'RUNNING', { runId, records });
      if (!approval || dryRun) return;
      requireBasis(unit, approval, runId);
      const { id: approvalId } = approval;
      await demand(unit, consumeApprovalSql(asked, approval), 'CONSUMED', { runId, approvalId });
      unit.actAs('tenant');
      await unit.tx.query(consumedEventStatement(unit, { approvalId, runId }));
    },
  };
}

function consumedEventStatement({ schema, request, call }: Unit, ids: Record<string, string>): Statement {
  const sql = new Sql();
  const data = sql.bind(JSON.stringify({ ...ids, operationId: call.operationId }), 'jsonb');
  return sql.statement(outboxSql(schema, new CallerSql(sql, request), { type: 'agent.approval.consumed', data }));
}

/** An upsert that was approved for a record in one version, or for none, does nothing to another. */
function requireBasis({ found }: Unit, { id, basis }: UsedApproval, runId: string): void {
  if (basis === undefined || basis === found.basis) return;
  const message = 'The record has changed since people approved this; send the request again to ask them anew.';
  throw new PlatformError('APPROVAL_REQUIRED', message, { details: { runId, approvalId: id, status: 'APPROVED' } });
}

async function demand(
  { tx }: Unit,
  statement: Statement,
  expected: 'RUNNING' | 'CONSUMED',
  details: Record<string, unknown>,
): Promise<void> {
  const { verdict } = await tx.one<{ verdict: string }>(statement);
  if (verdict === expected) return;
  if (!isRefusal(verdict)) throw new Error(`The run answers ${verdict} to a change.`);
  const status = verdict === 'APPROVAL_REQUIRED' ? { status: 'CONSUMED' } : {};
  throw new PlatformError(verdict, REFUSALS[verdict], { details: { ...details, ...status } });
}
