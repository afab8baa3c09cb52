/** Decides whether a run admits a call: pure. Source: docs/reference/agents.md#what-happens-to-a-call. */

import type { ApprovalStatus } from '../../../contracts/agent.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { DayBudget } from '../policy/evaluate.ts';
import { time } from '../runs/present.ts';
import type { LockedRun } from '../runs/run.sql.ts';

/** Units that a call takes from the budget of its run. */
export interface Charge {
  readonly cost: number;
  /** 0 or 1. */
  readonly mutations: number;
}

/** 403 for a call that the budget has no room for; null: it has. */
export function budgetRefusal(run: LockedRun, { cost, mutations }: Charge): PlatformError | null {
  if (run.requests >= LIMITS.agent_requests_of_run_max)
    return exceeded('maxRequests', run.requests, LIMITS.agent_requests_of_run_max);
  if (run.cost + cost > run.maxCost) return exceeded('maxCost', run.cost, run.maxCost);
  if (mutations === 0) return null;
  if (run.mutations + mutations > run.maxMutations) return exceeded('maxMutations', run.mutations, run.maxMutations);
  if (run.recordsChanged >= run.maxRecords) return exceeded('maxRecords', run.recordsChanged, run.maxRecords);
  return null;
}

/** Use by user and client since their day began. */
export interface UsedDay {
  readonly cost: number;
  readonly mutations: number;
  readonly records: number;
  readonly resetsAt: string;
}

/** 403 for a call that the day has no room for; null: it has. `day`: null when none has begun. */
export function dayRefusal(
  day: UsedDay | null,
  { cost, mutations }: Charge,
  { maxCostPerDay, maxMutationsPerDay, maxRecordsPerDay }: DayBudget,
): PlatformError | null {
  const used = day ?? { cost: 0, mutations: 0, records: 0, resetsAt: null };
  const refuse = (budget: keyof DayBudget, amount: number, max: number): PlatformError =>
    new PlatformError(
      'AGENT_BUDGET_EXCEEDED',
      `The runs of this user and client have used ${amount} of ${max} in 24 hours (${budget}).`,
      { details: { budget, used: amount, max, resetsAt: used.resetsAt === null ? null : time(used.resetsAt) } },
    );
  if (cost > 0 && used.cost + cost > maxCostPerDay) return refuse('maxCostPerDay', used.cost, maxCostPerDay);
  if (mutations === 0) return null;
  if (used.mutations + mutations > maxMutationsPerDay)
    return refuse('maxMutationsPerDay', used.mutations, maxMutationsPerDay);
  if (used.records >= maxRecordsPerDay) return refuse('maxRecordsPerDay', used.records, maxRecordsPerDay);
  return null;
}

const exceeded = (budget: string, used: number, max: number): PlatformError =>
  new PlatformError('AGENT_BUDGET_EXCEEDED', `The run has used ${used} of ${max} (${budget}).`, {
    details: { budget, used, max },
  });

/** The newest approval that was asked for by the same request of the run. */
export interface KnownApproval {
  readonly approvalId: string;
  readonly status: ApprovalStatus;
  /** Its time has not passed. */
  readonly live: boolean;
  readonly expiresAt: string;
  /** The request that asked for it has the same key. */
  readonly sameKey: boolean;
  /** The request that used it up has the same key: this is its repetition. */
  readonly usedByKey: boolean;
  /** The effects for which alone it is good; null: none were possible when it was asked for. */
  readonly basis: string | null;
  /** Of a rejection. */
  readonly comment: string | null;
}

/** Outcome of a call that needs an approval. */
export type Standing =
  /** No approval was requested yet, or it has ended and the request is a new one by its key. */
  | { readonly next: 'ask' }
  /** It is approved, or this is the repetition of the request that used the approval up. */
  | { readonly next: 'execute'; readonly approvalId: string; readonly basis: string | null }
  | { readonly next: 'refuse'; readonly code: 'APPROVAL_PENDING' | 'APPROVAL_REJECTED' | 'APPROVAL_EXPIRED' };

/**
 * Effect of an approval on a duplicate request. A rejection holds for 24 hours; after an expiry or a use another
 * Idempotency-Key asks anew.
 */
export function standingOf(approval: KnownApproval | null): Standing {
  if (!approval) return { next: 'ask' };
  const { approvalId, status, live, sameKey, usedByKey, basis } = approval;
  switch (status) {
    case 'PENDING':
      if (live) return { next: 'refuse', code: 'APPROVAL_PENDING' };
      break;
    case 'APPROVED':
      if (live) return { next: 'execute', approvalId, basis };
      break;
    case 'REJECTED':
      return { next: 'refuse', code: 'APPROVAL_REJECTED' };
    case 'CONSUMED':
      return usedByKey ? { next: 'execute', approvalId, basis: null } : { next: 'ask' };
    case 'CANCELED':
      return { next: 'ask' };
    case 'EXPIRED':
      break;
  }
  return sameKey ? { next: 'refuse', code: 'APPROVAL_EXPIRED' } : { next: 'ask' };
}
