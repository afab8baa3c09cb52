/** Types of the public API that the page reads (docs/reference/agents.md#approvals). */

export interface ApprovalSummary {
  approvalId: string;
  runId: string;
  status: string;
  operationId: string;
  method: string;
  path: string;
  risk: 'low' | 'medium' | 'high';
  summary: string;
  fingerprint: string;
  requestedAt: string;
  expiresAt: string;
  requiredApprovals: number;
  decisions: { userId: string; decision: string; comment: string | null; decidedAt: string }[];
}

export interface Approval extends ApprovalSummary {
  request: {
    query: Record<string, unknown>;
    headers: Record<string, unknown>;
    body: unknown;
    bodyOmitted: boolean;
  };
  preview: Preview | null;
}

export interface PlanChange {
  type: string;
  fullName: string;
  properties: { name: string; from: unknown; to: unknown }[];
  destructive: boolean;
  impact: { records: number | null };
}

export interface PlanProblem {
  type: string;
  fullName: string;
  message: string;
  remedy: string | null;
}

/** Of a call on records, or the plan of a deployment. */
export interface Preview {
  omitted?: boolean;
  hidden?: boolean;
  valid?: boolean;
  /** An object, or `[hidden]`. */
  before?: unknown;
  record?: unknown;
  errors?: { message: string }[];
  duplicates?: { label: string; matches: { displayName: string | null; score: number }[] }[];
  effects?: { kind: string; objectApiName: string; id: string | null; fields: string[]; count?: number }[];
  /** Of a composite request: its parts or rows in their order. */
  parts?: { status: number; before?: unknown; record?: unknown }[];
  creates?: PlanChange[];
  updates?: PlanChange[];
  deletes?: PlanChange[];
  blocked?: PlanProblem[];
  warnings?: PlanProblem[];
  /** Of a rollback. */
  revertsDeploymentId?: string;
  /** Of a quick deploy. */
  validationId?: string;
}

/** A record that a request changes. */
export interface Change {
  /** Of a part; null: the request is one change. */
  title: string | null;
  /** Of the request or part. */
  path: string;
  /** An object, or `[hidden]`. */
  before: unknown;
  record: unknown;
}

export interface Run {
  agentKey: string;
  clientId: string;
  userId: string;
  goal: string;
}

export interface Deployment {
  deploymentId: string;
  createdAt: string;
  createdBy: { displayName: string };
}

export interface DescribedField {
  apiName: string;
  label: string;
  fieldType: string;
  referenceTo: string[] | null;
  picklistValues: { value: string; label: string }[] | null;
}

export interface Description {
  label: string;
  fields: DescribedField[];
}
