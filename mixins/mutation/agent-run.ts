/**
 * A change under a run of an agent is committed only while the run is active and its budget lasts, and together with
 * the approval that it uses up: of any number of attempts with one approval one is committed, and one that fails has
 * used nothing. Reasons: docs/decisions/approvals-in-the-transaction.md.
 */
import type { RequestContext, UsedApproval } from '../../lib/context.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { platformTime } from '../../lib/values/clock.ts';
import type { Database } from '../database/database.ts';
import { Sql } from '../database/sql.ts';
import type { Statement } from '../database/statement.ts';
import { consumeApprovalSql, continueRunSql, endStaleApprovalSql } from './agent-run.sql.ts';
import { CallerSql, outboxSql } from './audit.ts';
import { basisOf, type EntryRow, entriesStatement, staleness } from './basis.ts';
import type { Hook, Unit } from './unit.ts';

const REFUSALS = {
  RUN_NOT_ACTIVE: 'The run ended while the call was under way; nothing was changed.',
  AGENT_BUDGET_EXCEEDED: 'The call would change more records than the budget of the run has left; nothing was changed.',
  APPROVAL_REQUIRED: 'Another request has used the approval up; send this one again to ask for another.',
  APPROVAL_PENDING: 'The approval has not been given.',
  APPROVAL_REJECTED: 'The approval was refused.',
  APPROVAL_EXPIRED: 'The approval has expired; send the request with a new Idempotency-Key to ask for another.',
  APPROVAL_STALE: 'Another attempt has found the approval stale; send the request again to ask people anew.',
  APPROVAL_FINGERPRINT_MISMATCH: 'The approval was given for another request.',
} as const;

const MORE_DETAILS: Readonly<Record<string, object>> = {
  APPROVAL_REQUIRED: { status: 'CONSUMED' },
  APPROVAL_STALE: { changed: [], fields: [] },
};

const DAY_EXCEEDED =
  'The call would change more records than the runs of this user and client have left for 24 hours; nothing was changed.';

const isRefusal = (verdict: string): verdict is keyof typeof REFUSALS => Object.hasOwn(REFUSALS, verdict);

/**
 * Checks of a change before its commit; null: its request is under no run. A dry run asks for room alone, so that
 * no approval is requested for a change that the run could not make; its rollback gives the room back. Its basis is noted.
 */
export function runHook(
  service: string,
  request: RequestContext,
  dryRun: boolean,
  note: (basis: string) => void,
): Hook | null {
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
      const { id: approvalId } = approval;
      await demand(unit, consumeApprovalSql(asked, approval), 'CONSUMED', { runId, approvalId });
      unit.actAs('tenant');
      await unit.tx.query(consumedEventStatement(unit, { approvalId, runId }));
    },
    ...(dryRun || approval
      ? {
          conclude: async (unit): Promise<void> => {
            const entries = await unit.tx.all<EntryRow>(entriesStatement(unit.schema, request));
            const basis = basisOf(entries, unit.facts, platformTime());
            if (dryRun) note(basis);
            else if (approval) requireBasis(unit, approval, runId, basis);
          },
        }
      : {}),
  };
}

function consumedEventStatement({ schema, request, call }: Unit, ids: Record<string, string>): Statement {
  const sql = new Sql();
  const data = sql.bind(JSON.stringify({ ...ids, operationId: call.operationId }), 'jsonb');
  return sql.statement(outboxSql(schema, new CallerSql(sql.for(request)), { type: 'agent.approval.consumed', data }));
}

/** Executes only the effects that the approvers were shown. */
function requireBasis({ call }: Unit, { id, basis }: UsedApproval, runId: string, actual: string): void {
  const stale = staleness(basis, actual, call);
  if (!stale) return;
  throw new PlatformError(
    'APPROVAL_STALE',
    'The request would not do what people approved, because something has changed; send it again to ask them anew.',
    { details: { runId, approvalId: id, ...stale } },
  );
}

/** Ends the approval that a change was refused for as stale; the same request then asks anew. */
export async function endStaleApproval(
  database: Database,
  service: string,
  { tenantId, agentRunId, approval }: RequestContext,
): Promise<void> {
  if (agentRunId === null || !approval) return;
  const asked = { tenantId, runId: agentRunId, approvalId: approval.id };
  await database.shared(service, tenantId, (tx) => tx.query(endStaleApprovalSql(asked)));
}

async function demand(
  { tx }: Unit,
  statement: Statement,
  expected: 'RUNNING' | 'CONSUMED',
  details: Record<string, unknown>,
): Promise<void> {
  const { verdict } = await tx.one<{ verdict: string }>(statement);
  if (verdict === expected) return;
  // A budget of the day is named behind its code.
  const [code = '', budget] = verdict.split(/ (.*)/s);
  if (!isRefusal(code)) throw new Error(`The run answers ${verdict} to a change.`);
  const more = budget === undefined ? {} : JSON.parse(budget);
  throw new PlatformError(code, budget === undefined ? REFUSALS[code] : DAY_EXCEEDED, {
    details: { ...details, ...MORE_DETAILS[code], ...more },
  });
}
