/** Runs as the API shows them. */
import type { AgentRun } from '../../../contracts/agent.ts';
import type { OperationOutput } from '../../../contracts/operations.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import { HIDDEN } from '../approvals/hide.ts';
import type { RunRow, RunSummaryRow } from './run.sql.ts';

/** A moment as the database prints it, in the form of the API. */
export const time = (value: string): string => formatTimestamp(new Date(value));
export const timeOrNull = (value: string | null): string | null => (value === null ? null : time(value));

export const presentSummary = (row: RunSummaryRow): OperationOutput<'agent.runs.list'>['records'][number] => ({
  runId: row.runId,
  agentKey: row.agentKey,
  agentVersion: row.agentVersion,
  goal: row.goal,
  status: row.status,
  dryRun: row.dryRun,
  createdAt: time(row.createdAt),
  startedAt: time(row.createdAt),
  completedAt: timeOrNull(row.endedAt),
  expiresAt: time(row.expiresAt),
  userId: row.userId,
  clientId: row.clientId,
  context: row.context,
  budget: { maxCost: row.maxCost, maxMutations: row.maxMutations, maxRecords: row.maxRecords },
  usage: {
    cost: row.cost,
    requests: row.requests,
    mutations: row.mutations,
    recordsChanged: row.recordsChanged,
  },
  outcome: row.outcome,
  summary: row.summary,
  modelUsage: row.modelUsage,
});

/** `knows`: whether the object exists for the reader; nothing waits under a run that begins or has ended. */
export const presentRun = (row: RunRow, knows: (objectApiName: string) => boolean = () => false): AgentRun => ({
  ...presentSummary(row),
  plan: row.plan,
  pendingApprovals: row.pending.map(({ objectApiName, summary, expiresAt, ...one }) => ({
    ...one,
    summary: objectApiName === null || knows(objectApiName) ? summary : HIDDEN,
    expiresAt: time(expiresAt),
  })),
  output: row.output,
});
