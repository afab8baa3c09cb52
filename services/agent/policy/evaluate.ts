/**
 * Evaluates a tenant's agent policies for a call: pure. The first rule that fits decides; where none fits, calls
 * of high risk wait for a person and all others are allowed. Source: docs/reference/agents.md#policies.
 */

import { CLI_CLIENT_ID } from '../../../contracts/auth.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { Operation } from '../../../lib/operation.ts';
import type { AgentPolicyMeta, AgentRuleMeta, ApproverMeta, Snapshot } from '../../../lib/schema/snapshot.ts';

/**
 * By what a call gives access: by its `operation`, whatever it is on; by its `object`; or by its `content`. null: it
 * gives none.
 */
export type AccessGiven = 'operation' | 'object' | 'content' | null;

/** Properties of a call that policies match. */
export interface PolicyCall {
  readonly operationId: string;
  readonly risk: Operation['risk'];
  readonly agentApproval: Operation['agentApproval'];
  /** The object that the call is about; null: none. */
  readonly objectApiName: string | null;
  /** By what it gives access; absent or null: it gives none. */
  readonly access?: AccessGiven;
  /** It creates what a duplicate rule has stopped, which a person must always have seen. */
  readonly duplicateConfirmation: boolean;
}

/** Approvers of a call, and the time limit. */
export interface ApprovalTerms {
  /** apiName; null: the default of the platform. */
  readonly policy: string | null;
  /** Empty: every user who may approve actions of agents. */
  readonly approvers: readonly ApproverMeta[];
  readonly requiredApprovals: number;
  readonly expiresInSeconds: number;
  readonly allowSelfApproval: boolean;
  readonly escalateAfterSeconds: number | null;
  readonly escalateTo: readonly ApproverMeta[];
}

export type Verdict =
  | { readonly decision: 'allow' }
  | { readonly decision: 'deny'; readonly policy: string }
  | {
      readonly decision: 'approve';
      readonly terms: ApprovalTerms;
      /** Of a composite request: other parts need an approval on other terms. */
      readonly differs?: boolean;
    };

/** The policies that bind the runs of a client: those that name it before those for all, each in the order of names. */
export function policiesOf(snapshot: Snapshot, clientId: string): readonly AgentPolicyMeta[] {
  const client = Object.values(snapshot.externalClients).find((one) => one.clientId === clientId);
  const name = client?.apiName ?? (clientId === CLI_CLIENT_ID ? CLI_CLIENT_ID : null);
  const all = Object.values(snapshot.agentPolicies).sort((a, b) => (a.apiName < b.apiName ? -1 : 1));
  const naming = all.filter(({ clients }) => name !== null && clients.includes(name));
  return [...naming, ...all.filter((policy) => policy.clients.includes('*') && !naming.includes(policy))];
}

/** Decides whether a call is executed, waits for approval, or is denied. `policies` in order of precedence. */
export function evaluate(policies: readonly AgentPolicyMeta[], call: PolicyCall): Verdict {
  const found = firstMatch(policies, call);
  const decision = found?.rule.decision ?? (call.risk === 'high' ? 'approve' : 'allow');
  if (found && decision === 'deny') return { decision, policy: found.policy.apiName };
  const always = call.agentApproval === 'always' || call.duplicateConfirmation;
  const waits = always || (decision === 'approve' && call.agentApproval !== 'never');
  return waits ? { decision: 'approve', terms: termsOf(found) } : { decision: 'allow' };
}

interface Match {
  readonly policy: AgentPolicyMeta;
  readonly rule: AgentRuleMeta;
}

function firstMatch(policies: readonly AgentPolicyMeta[], call: PolicyCall): Match | null {
  for (const policy of policies) for (const rule of policy.rules) if (matches(rule, call)) return { policy, rule };
  return null;
}

const matches = (rule: AgentRuleMeta, call: PolicyCall): boolean =>
  fits(rule, call) && (rule.decision !== 'allow' || !call.access || namesAccess(rule, call));

/** A rule lets agents give access only where it says so: by `risk: high`, or by naming what gives it. */
const namesAccess = (
  { operationIds, risk, objects }: AgentRuleMeta,
  { access, operationId, objectApiName }: PolicyCall,
): boolean =>
  risk === 'high' ||
  (access === 'operation' && operationIds.includes(operationId)) ||
  (access === 'object' && objectApiName !== null && objects.includes(objectApiName));

const fits = ({ operationIds, risk, objects }: AgentRuleMeta, call: PolicyCall): boolean =>
  (operationIds.length === 0 || operationIds.some((id) => names(id, call.operationId))) &&
  (risk === null || risk === call.risk) &&
  (objects.length === 0 || (call.objectApiName !== null && objects.includes(call.objectApiName)));

/** `data.*` names everything that begins with `data.`. */
const names = (id: string, operationId: string): boolean =>
  id.endsWith('.*') ? operationId.startsWith(id.slice(0, -1)) : id === operationId;

const termsOf = (found: Match | null): ApprovalTerms => ({
  policy: found?.policy.apiName ?? null,
  approvers: found?.rule.approvers ?? [],
  requiredApprovals: found?.rule.requiredApprovals ?? 1,
  expiresInSeconds: found?.rule.expiresInSeconds ?? LIMITS.agent_approval_seconds,
  allowSelfApproval: found?.policy.allowSelfApproval ?? false,
  escalateAfterSeconds: found?.rule.escalateAfterSeconds ?? null,
  escalateTo: found?.rule.escalateTo ?? [],
});

interface Budget {
  readonly maxCost: number;
  readonly maxMutations: number;
  readonly maxRecords: number;
}

/** The most that all runs of a client in the name of a user may take within 24 hours. */
export interface DayBudget {
  readonly maxCostPerDay: number;
  readonly maxMutationsPerDay: number;
  readonly maxRecordsPerDay: number;
}

/** Of the platform, where each policy can only narrow it. */
export function dayBudgetOf(policies: readonly AgentPolicyMeta[]): DayBudget {
  const narrowest = (name: keyof DayBudget, most: number): number =>
    Math.min(most, ...policies.map(({ budgets }) => budgets[name] ?? most));
  return {
    maxCostPerDay: narrowest('maxCostPerDay', LIMITS.agent_cost_of_day_max),
    maxMutationsPerDay: narrowest('maxMutationsPerDay', LIMITS.agent_mutations_of_day_max),
    maxRecordsPerDay: narrowest('maxRecordsPerDay', LIMITS.agent_records_of_day_max),
  };
}

const DEFAULT_BUDGET: Budget = { maxCost: 500, maxMutations: 20, maxRecords: 200 };
const BUDGET_NAMES = ['maxCost', 'maxMutations', 'maxRecords'] as const;

/** A part of a budget that is more than a policy allows. */
export interface Excess {
  readonly name: keyof Budget;
  readonly max: number;
  readonly policy: string;
}

/** The budget of a new run: what was asked for, else the default, but never more than each policy allows. */
export function budgetOf(
  policies: readonly AgentPolicyMeta[],
  asked: { readonly [K in keyof Budget]?: number | undefined },
): { readonly budget: Budget; readonly excess: readonly Excess[] } {
  const budget = { ...DEFAULT_BUDGET };
  const excess: Excess[] = [];
  for (const name of BUDGET_NAMES) {
    const narrowest = policies
      .flatMap(({ apiName, budgets }) => (budgets[name] === null ? [] : [{ max: budgets[name], policy: apiName }]))
      .sort((a, b) => a.max - b.max)[0];
    const wanted = asked[name];
    if (wanted !== undefined && narrowest && wanted > narrowest.max) excess.push({ name, ...narrowest });
    budget[name] = Math.min(wanted ?? DEFAULT_BUDGET[name], narrowest?.max ?? Number.POSITIVE_INFINITY);
  }
  return { budget, excess };
}
