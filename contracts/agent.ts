/**
 * Public operations and internal actions of agent: runs of agents, what they did, and what people decided about it.
 * Source: docs/reference/agents.md.
 */
import { type Static, Type } from 'typebox';
import { API_PREFIX } from '../lib/addresses.ts';
import { LIMITS } from '../lib/limits.ts';
import { type ActionsOf, defineOperation, defineParameter, nullable, type Operation } from '../lib/operation.ts';
import { cursor, effectiveTake, KEY_ERRORS, nextCursor, take } from './data/rows.ts';
import type { ServiceDeclaration } from './declaration.ts';
import { AGENT_GUIDANCE } from './guidance/agent.ts';

const RUN_STATUSES = ['RUNNING', 'WAITING_APPROVAL', 'COMPLETED', 'FAILED', 'CANCELED', 'EXPIRED'] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

const APPROVAL_STATUSES = ['PENDING', 'APPROVED', 'REJECTED', 'EXPIRED', 'CANCELED', 'CONSUMED'] as const;
export type ApprovalStatus = (typeof APPROVAL_STATUSES)[number];

const RUN_OUTCOMES = ['succeeded', 'failed', 'canceled'] as const;
export type RunOutcome = (typeof RUN_OUTCOMES)[number];

/** Properties of an operation that policies match. */
export interface JudgedOperation extends Pick<Operation, 'operationId' | 'risk' | 'agentApproval'> {
  /** It would confirm a duplicate, which always needs an approval. */
  readonly duplicateConfirmation: boolean;
}

/** The gateway's question before it forwards a call under a run. */
export interface Admission {
  readonly runId: string;
  readonly operationId: string;
  readonly method: string;
  /** As received, below the host: `/api/v1/data/Invoice__c/0193…`. */
  readonly path: string;
  /** Parameters of the path by name, such as `objectApiName`, `id`, `transitionKey`. */
  readonly pathParameters: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
  /** Apinames of the references that the call expands; absent: none. */
  readonly expanded?: readonly string[];
  /** Objects that filters of the call lead to (`in_related`), as it names them; absent: none. */
  readonly related?: readonly string[];
  /** Fields of a check whose values look a record up by a key, as it names them; absent: none. */
  readonly lookedUp?: readonly string[];
  /** The JSON body for the approver; absent where there is none, or where it is not parsed in the gateway. */
  readonly body?: unknown;
  /** Headers that belong to the fingerprint, by their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** SHA-256 (hex) of what makes the request the same request; null for operations that are no mutations. */
  readonly fingerprint: string | null;
  readonly idempotencyKey: string | null;
  readonly risk: Operation['risk'];
  readonly cost: number;
  readonly mutation: boolean;
  readonly agentApproval: Operation['agentApproval'];
  /** The operation can be tried out: an approval of it is asked for with what it would do. */
  readonly previewable: boolean;
  readonly requestId: string;
  /**
   * Of a check: the operation that it tries out. Policies judge the check as this operation, too; it changes nothing, is
   * counted as a read, and needs no approval. Absent: the call is no check.
   */
  readonly checked?: JudgedOperation;
  /** The request confirms a duplicate, which always needs an approval. */
  readonly duplicateConfirmation: boolean;
  /** Of a composite request: its parts, which policies judge like calls of their own. Absent: it has none. */
  readonly parts?: readonly Admission[];
  /** Of a part: its name in the request. */
  readonly referenceId?: string;
  /** Mutations that it stands for; absent: one, if it is one. */
  readonly mutations?: number;
}

export interface Admitted {
  readonly stepId: string;
  /** The run is a dry run: the mutation is carried out and rolled back. */
  readonly dryRun: boolean;
  /** The approval that the mutation consumes in its transaction; null: it needs none. */
  readonly approvalId: string | null;
  /** The effects for which alone the approval is good; absent: there is no approval, or nothing is known of them. */
  readonly basis?: string;
  /** Of a dry run: the mutation itself would need an approval. */
  readonly approvalRequired: boolean;
  /**
   * Of a check, and of a read whose path names no object: the objects on which a policy denies the operation; absent:
   * none. The service that answers keeps them out.
   */
  readonly deniedObjects?: readonly string[];
  /**
   * The request needs an approval that was not requested yet: it is tried out under this step, and only what could
   * succeed is asked for (`agent.approvals.request`).
   */
  readonly asks: boolean;
}

/** An operator's view of a run: nothing that its agent has written. */
export interface ActiveRun {
  readonly runId: string;
  readonly agentKey: string;
  readonly userId: string;
  readonly clientId: string;
  readonly createdAt: string;
  readonly expiresAt: string;
  /** Approvals that wait for people. */
  readonly waiting: number;
}

export interface AgentActions extends ActionsOf<typeof AGENT_OPERATIONS> {
  /**
   * Admits a call of the request's user and client to one of their runs, in one round trip: the budget is counted, the
   * step is stored, the policy is asked. Throws RUN_NOT_FOUND, RUN_NOT_ACTIVE, AGENT_POLICY_DENIED,
   * AGENT_BUDGET_EXCEEDED, and APPROVAL_REQUIRED (an approval was created, of what cannot be tried out),
   * APPROVAL_PENDING, APPROVAL_REJECTED, APPROVAL_EXPIRED with `details.approvalId`.
   */
  'agent.runs.admit': { params: Admission; result: Admitted };
  /** How an admitted call ended. A lost one loses the status of the step, never the step. */
  'agent.steps.settle': {
    params: { stepId: string; status: number; requestId?: string; approvalId?: string };
    result: null;
  };
  /**
   * Asks people to approve a request that was tried out under the step: the approval begins with its preview, and is
   * good for the effects of the dry run alone (`basis`). Answers the refusal of the call: APPROVAL_REQUIRED, or what has come
   * in between.
   */
  'agent.approvals.request': {
    params: { admission: Admission; stepId: string; preview: object; basis?: string };
    result: never;
  };
  /** For operators: the active runs of a tenant, oldest first; and their end, of all of them or of those named. */
  'agent.tenants.listRuns': { params: { tenantId: string }; result: { runs: ActiveRun[] } };
  'agent.tenants.cancelRuns': { params: { tenantId: string; runIds?: string[] }; result: { canceled: string[] } };
  /** Those of an object's transitions and actions for which the policies of a client would have people asked, by key. */
  'agent.transitions.judge': {
    params: { tenantId: string; clientId: string; objectApiName: string; keys: string[] };
    result: string[];
  };
  /** How it is with a run at this moment; null: the tenant has no such run. */
  'agent.runs.state': { params: { tenantId: string; runId: string }; result: { status: RunStatus } | null };
}

const RunStatusSchema = Type.Enum([...RUN_STATUSES], { title: 'AgentRunStatus' });
const ApprovalStatusSchema = Type.Enum([...APPROVAL_STATUSES], { title: 'AgentApprovalStatus' });
const RunOutcomeSchema = Type.Enum([...RUN_OUTCOMES], { title: 'AgentRunOutcome', description: 'How it ended.' });

const closed = { additionalProperties: false };
const uuid = (description?: string) => Type.String({ format: 'uuid', ...(description ? { description } : {}) });
const timestamp = (description?: string) =>
  Type.String({ format: 'date-time', ...(description ? { description } : {}) });
const text = (maxLength: number, description: string, minLength = 1) =>
  Type.String({ minLength, maxLength, description });

const Budget = Type.Object(
  {
    maxCost: Type.Integer({ description: 'Cost units of all calls.' }),
    maxMutations: Type.Integer({ description: 'Calls that change something.' }),
    maxRecords: Type.Integer({
      description: 'Records that calls change; a change that does not fit into what is left is refused as a whole.',
    }),
  },
  { title: 'AgentRunBudget', description: 'Limits on cost and changes of all calls of the run together.' },
);

const Usage = Type.Object(
  {
    cost: Type.Integer({ description: 'Cost units of the admitted calls.' }),
    requests: Type.Integer({ description: 'Calls under the run, refused ones included.' }),
    mutations: Type.Integer({ description: 'Admitted mutations; a repetition under the same key counts once.' }),
    recordsChanged: Type.Integer({ description: 'Records that mutations have changed.' }),
  },
  { title: 'AgentRunUsage', description: 'Used part of the budget.' },
);

const agentKey = Type.String({ pattern: '^[a-z][a-z0-9._-]{1,63}$', description: 'Stable name of the agent.' });
const context = Type.Object(
  {
    objectApiName: Type.String({ pattern: '^[A-Za-z][A-Za-z0-9_]{0,39}$', description: 'apiName of an object.' }),
    recordId: uuid('Id of a record of it.'),
  },
  {
    title: 'AgentRunContext',
    ...closed,
    description: 'The record that the run is about, for people who look at it. It gives no access.',
  },
);
const plan = Type.Array(
  Type.Object(
    {
      stepKey: text(64, 'Name of the step within the plan.'),
      operationId: text(100, 'The operation that the step calls.'),
      summary: text(500, 'Purpose of the step, in a sentence.', 0),
    },
    { ...closed, title: 'AgentPlanStep' },
  ),
  { maxItems: 100, description: 'Plan of the agent, for readers. It grants nothing.' },
);
const modelUsage = Type.Object(
  {
    provider: text(100, 'Provider of the model.'),
    model: text(200, 'Name of the model.'),
    inputTokens: Type.Integer({ minimum: 0, maximum: 1_000_000_000_000, description: 'Tokens read.' }),
    outputTokens: Type.Integer({ minimum: 0, maximum: 1_000_000_000_000, description: 'Tokens written.' }),
  },
  { title: 'ModelUsage', ...closed, description: 'Model and tokens, as the agent reports them.' },
);

const Run = Type.Object(
  {
    runId: uuid(),
    agentKey: Type.String(),
    agentVersion: nullable(Type.String()),
    goal: Type.String(),
    status: RunStatusSchema,
    dryRun: Type.Boolean({ description: 'Mutations are carried out and rolled back.' }),
    createdAt: timestamp(),
    startedAt: timestamp(),
    completedAt: nullable(timestamp('When it ended, in whatever way.')),
    expiresAt: timestamp(),
    userId: uuid('User in whose name it acts.'),
    clientId: Type.String(),
    context: nullable(context),
    plan: nullable(plan),
    budget: Budget,
    usage: Usage,
    pendingApprovals: Type.Array(
      Type.Object(
        {
          approvalId: uuid(),
          operationId: Type.String(),
          summary: Type.String(),
          expiresAt: timestamp(),
        },
        { title: 'PendingApproval' },
      ),
      { description: 'Pending approvals, oldest first.' },
    ),
    outcome: nullable(RunOutcomeSchema),
    summary: nullable(Type.String()),
    output: nullable(Type.Object({}, { additionalProperties: true })),
    modelUsage: nullable(modelUsage),
  },
  { title: 'AgentRun' },
);

export type AgentRun = Static<typeof Run>;

/** Entries of lists are without what can be large. */
const { output: _output, plan: _plan, pendingApprovals: _pending, ...summaryProperties } = Run.properties;
const RunSummary = Type.Object(summaryProperties, { title: 'AgentRunSummary' });

const CreateRunBody = Type.Object(
  {
    agentKey,
    goal: text(4_000, 'Purpose of the run.'),
    agentVersion: Type.Optional(text(64, 'Version of the agent.')),
    context: Type.Optional(context),
    plan: Type.Optional(plan),
    budget: Type.Optional(
      Type.Object(
        {
          maxCost: Type.Optional(
            Type.Integer({ minimum: 0, maximum: 10_000, description: 'Cost units of all calls; default: 500.' }),
          ),
          maxMutations: Type.Optional(
            Type.Integer({ minimum: 0, maximum: 1_000, description: 'Calls that change something; default: 20.' }),
          ),
          maxRecords: Type.Optional(
            Type.Integer({ minimum: 0, maximum: 10_000, description: 'Records that calls change; default: 200.' }),
          ),
        },
        { ...closed, description: 'Agent policies can allow less.' },
      ),
    ),
    expiresInSeconds: Type.Optional(
      Type.Integer({
        minimum: 60,
        maximum: 86_400,
        description: 'The run ends by itself after this; default: 3600.',
      }),
    ),
    dryRun: Type.Optional(
      Type.Boolean({ description: 'Every mutation of the run is carried out and rolled back; default: false.' }),
    ),
  },
  { ...closed, title: 'AgentRunInput' },
);

export type CreateRun = Static<typeof CreateRunBody>;

const CompleteRunBody = Type.Object(
  {
    outcome: RunOutcomeSchema,
    summary: text(8_000, 'Summary of the work, for readers.', 0),
    output: Type.Optional(
      Type.Object(
        {},
        {
          additionalProperties: true,
          description: `Results for programs; ${LIMITS.agent_output_max_bytes / 1024} KiB as JSON at most.`,
        },
      ),
    ),
    modelUsage: Type.Optional(modelUsage),
  },
  { ...closed, title: 'AgentRunCompletion' },
);

const Step = Type.Object(
  {
    stepId: uuid(),
    at: timestamp(),
    operationId: Type.String(),
    method: Type.String(),
    path: Type.String(),
    status: nullable(Type.Integer({ description: 'HTTP status of the answer; null while it is not known.' })),
    requestId: Type.String(),
    cost: Type.Integer(),
    approvalId: nullable(uuid('The approval that was asked for or used.')),
    recordsChanged: Type.Array(Type.Object({ objectApiName: Type.String(), id: uuid() })),
  },
  { title: 'AgentStep' },
);

const Approver = Type.Object(
  {
    kind: Type.Enum(['role', 'group', 'user', 'manager']),
    id: nullable(
      Type.String({
        description: 'apiName of the role or group, username, or id of the manager (null: there is none).',
      }),
    ),
  },
  { title: 'AgentApprover' },
);

const Approval = Type.Object(
  {
    approvalId: uuid(),
    runId: uuid(),
    status: ApprovalStatusSchema,
    operationId: Type.String(),
    method: Type.String(),
    path: Type.String(),
    risk: Type.Enum(['low', 'medium', 'high'], { title: 'RiskLevel' }),
    summary: Type.String(),
    request: Type.Object(
      {
        query: Type.Object({}, { additionalProperties: true }),
        headers: Type.Object(
          {},
          { additionalProperties: true, description: 'Headers that are part of the fingerprint.' },
        ),
        body: Type.Unknown({
          description: 'Without fields that the reader may not read; "[hidden]" where they do not see the record.',
        }),
        bodyOmitted: Type.Boolean({
          description: `The body is longer than ${LIMITS.agent_request_max_bytes / 1024} KiB and was not kept.`,
        }),
      },
      { title: 'ApprovalRequest', description: 'Request to execute.' },
    ),
    preview: nullable(
      Type.Object(
        {},
        {
          additionalProperties: true,
          description: 'Result of a dry run of the request, as far as the reader may see it.',
        },
      ),
    ),
    fingerprint: Type.String({ description: '`sha256:` and 64 hexadecimal digits over the request.' }),
    requestedAt: timestamp(),
    expiresAt: timestamp('Until then it can be decided; once approved, until then it can be used.'),
    policyApiName: nullable(Type.String({ description: 'null: the default of the platform.' })),
    requiredApprovals: Type.Integer(),
    approvers: Type.Array(Approver, { description: 'Empty: everybody who may approve actions of agents.' }),
    escalatedAt: nullable(timestamp()),
    decisions: Type.Array(
      Type.Object(
        {
          userId: uuid(),
          decision: Type.Enum(['approve', 'reject']),
          comment: nullable(Type.String()),
          decidedAt: timestamp(),
        },
        { title: 'RecordedDecision' },
      ),
    ),
    consumedAt: nullable(timestamp()),
    consumedRequestId: nullable(Type.String()),
  },
  { title: 'AgentApproval' },
);

export type AgentApproval = Static<typeof Approval>;

const { request: _request, preview: _preview, ...approvalSummary } = Approval.properties;
const ApprovalSummary = Type.Object(approvalSummary, { title: 'AgentApprovalSummary' });

const DecisionBody = Type.Object(
  {
    decision: Type.Enum(['approve', 'reject']),
    fingerprint: Type.String({
      minLength: 1,
      maxLength: 100,
      description: 'fingerprint of the approval: proves which request was looked at.',
    }),
    comment: Type.Optional(
      Type.String({ maxLength: LIMITS.comment_max_chars, description: 'Required with reject; the agent is shown it.' }),
    ),
  },
  { ...closed, title: 'ApprovalDecision' },
);

const EXAMPLE_RUN_ID = '0193d3b0-52f1-7d42-8a11-5e0c9f7b2d10';
const EXAMPLE_APPROVAL_ID = '0193d3b1-9c1e-7b62-9f0a-3d5c8e7a1b24';
const EXAMPLE_USER = '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33';
const EXAMPLE_APPROVER = '0193d3a7-11c4-7f02-9b3a-8c5d2e6f1a44';
const EXAMPLE_INVOICE = '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b24';
const EXAMPLE_FINGERPRINT = 'sha256:9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab';
const EXAMPLE_PATH = `${API_PREFIX}/data/Invoice__c/${EXAMPLE_INVOICE}`;

const EXAMPLE_SUMMARY = {
  runId: EXAMPLE_RUN_ID,
  agentKey: 'dunning',
  agentVersion: '1.4.0',
  goal: 'Remind customers of invoices that are overdue by more than two weeks.',
  status: 'WAITING_APPROVAL',
  dryRun: false,
  createdAt: '2026-11-21T00:01:22.123+00:00',
  startedAt: '2026-11-21T00:01:22.123+00:00',
  completedAt: null,
  expiresAt: '2026-11-21T01:01:22.123+00:00',
  userId: EXAMPLE_USER,
  clientId: 'demo-DunningAgent',
  context: { objectApiName: 'Invoice__c', recordId: EXAMPLE_INVOICE },
  budget: { maxCost: 500, maxMutations: 20, maxRecords: 200 },
  usage: { cost: 14, requests: 9, mutations: 2, recordsChanged: 2 },
  outcome: null,
  summary: null,
  modelUsage: null,
};

const EXAMPLE_RUN = {
  ...EXAMPLE_SUMMARY,
  plan: [{ stepKey: 'find', operationId: 'data.records.list', summary: 'Find overdue invoices.' }],
  pendingApprovals: [
    {
      approvalId: EXAMPLE_APPROVAL_ID,
      operationId: 'data.records.delete',
      summary: 'DELETE Invoice__c',
      expiresAt: '2026-11-22T00:01:25.01+00:00',
    },
  ],
  output: null,
};

const EXAMPLE_ENDED = {
  ...EXAMPLE_RUN,
  status: 'COMPLETED',
  completedAt: '2026-11-21T00:06:02.5+00:00',
  pendingApprovals: [],
  outcome: 'succeeded',
  summary: 'Two reminders sent.',
  output: { reminded: 2 },
  modelUsage: { provider: 'example', model: 'example-1', inputTokens: 5_120, outputTokens: 731 },
};

const EXAMPLE_APPROVAL = {
  approvalId: EXAMPLE_APPROVAL_ID,
  runId: EXAMPLE_RUN_ID,
  status: 'PENDING',
  operationId: 'data.records.delete',
  method: 'DELETE',
  path: EXAMPLE_PATH,
  risk: 'high',
  summary: 'DELETE Invoice__c',
  request: { query: {}, headers: { 'if-match': '"k7"' }, body: null, bodyOmitted: false },
  preview: {
    checkOnly: true,
    valid: true,
    record: null,
    errors: [],
    duplicates: [],
    effects: [{ kind: 'delete', objectApiName: 'Invoice__c', id: EXAMPLE_INVOICE, fields: [] }],
    approvalRequired: true,
  },
  fingerprint: EXAMPLE_FINGERPRINT,
  requestedAt: '2026-11-21T00:01:25.01+00:00',
  expiresAt: '2026-11-22T00:01:25.01+00:00',
  policyApiName: 'Default',
  requiredApprovals: 1,
  approvers: [{ kind: 'role', id: 'SalesManager' }],
  escalatedAt: null,
  decisions: [],
  consumedAt: null,
  consumedRequestId: null,
};

const { request: _exampleRequest, preview: _examplePreview, ...EXAMPLE_APPROVAL_SUMMARY } = EXAMPLE_APPROVAL;

const runId = defineParameter({
  name: 'runId',
  required: true,
  description: 'Id of the run (UUID in lower case).',
  schema: Type.String({ format: 'uuid' }),
  example: EXAMPLE_RUN_ID,
});

const approvalId = defineParameter({
  name: 'approvalId',
  required: true,
  description: 'Id of the approval (UUID in lower case).',
  schema: Type.String({ format: 'uuid' }),
  example: EXAMPLE_APPROVAL_ID,
});

const CURSOR_ERRORS = ['PARAMETER_INVALID', 'CURSOR_INVALID', 'CURSOR_EXPIRED', 'CURSOR_QUERY_MISMATCH'] as const;
const BODY_ERRORS = [
  'BODY_REQUIRED',
  'BODY_PROPERTY_UNKNOWN',
  'PARAMETER_REQUIRED',
  'PARAMETER_INVALID',
  'REQUEST_TOO_LARGE',
] as const;

const READ = { method: 'GET', tag: 'agent', runs: 'outside' } as const;
const CHANGE = { method: 'POST', tag: 'agent', runs: 'outside', agentApproval: 'never' } as const;

const AGENT_OPERATIONS = [
  defineOperation({
    ...CHANGE,
    operationId: 'agent.runs.create',
    path: '/agent/runs',
    risk: 'medium',
    summary: 'Begin a run',
    description:
      'The envelope of the work of an agent in the name of the user. Send its id as X-Agent-Run-Id with every ' +
      'later call: policies and budget then apply to it, and what it did stays together. Complete the run at the ' +
      'end.',
    scopes: ['agent:run'],
    requestBody: {
      required: true,
      schema: CreateRunBody,
      maxBytes: LIMITS.agent_body_max_bytes,
      example: {
        agentKey: 'dunning',
        goal: EXAMPLE_SUMMARY.goal,
        agentVersion: '1.4.0',
        context: EXAMPLE_SUMMARY.context,
        plan: EXAMPLE_RUN.plan,
        budget: { maxCost: 100, maxMutations: 10 },
        expiresInSeconds: 3_600,
        dryRun: false,
      },
    },
    response: {
      status: 201,
      description: 'The run, which is active now.',
      schema: Run,
      headers: { Location: { description: 'Address of the run.', schema: Type.String() } },
      example: { ...EXAMPLE_RUN, status: 'RUNNING', pendingApprovals: [] },
    },
    errors: [...KEY_ERRORS, ...BODY_ERRORS, 'VALIDATION_FAILED', 'AGENT_POLICY_DENIED'],
    action: 'agent.runs.create',
  }),
  defineOperation({
    ...READ,
    operationId: 'agent.runs.list',
    path: '/agent/runs',
    summary: 'List runs',
    description:
      'Newest first: the runs of the user, for a client that is an agent only its own; of all users for those ' +
      'who approve actions of agents (scope agent:approve). Without plan, output and pending approvals.',
    scopes: ['agent:run'],
    queryParameters: [
      {
        name: 'status',
        description: 'Only runs in this state.',
        schema: RunStatusSchema,
        example: 'RUNNING',
      },
      { name: 'agentKey', description: 'Only runs of this agent.', schema: agentKey, example: 'dunning' },
      {
        name: 'mine',
        description: 'Only runs in the name of the user who asks.',
        schema: Type.Boolean({ default: false }),
        example: true,
      },
      take,
      cursor,
    ],
    response: {
      status: 200,
      description: 'A page of runs.',
      schema: Type.Object({ records: Type.Array(RunSummary), nextCursor }, { title: 'AgentRunPage' }),
      headers: effectiveTake,
      example: { records: [EXAMPLE_SUMMARY], nextCursor: null },
    },
    errors: CURSOR_ERRORS,
    action: 'agent.runs.list',
  }),
  defineOperation({
    ...READ,
    operationId: 'agent.runs.get',
    path: '/agent/runs/{runId}',
    summary: 'Read a run',
    description: 'State, budget and what waits for a decision. Seen by the same callers who see it in the list.',
    scopes: 'authenticated',
    oneOfScopes: ['agent:run', 'agent:approve'],
    freePoll: true,
    pathParameters: [runId],
    response: { status: 200, description: 'The run.', schema: Run, example: EXAMPLE_RUN },
    errors: ['RUN_NOT_FOUND'],
    action: 'agent.runs.get',
  }),
  defineOperation({
    ...CHANGE,
    operationId: 'agent.runs.complete',
    path: '/agent/runs/{runId}/complete',
    risk: 'medium',
    summary: 'Complete a run',
    description: 'By the user and client that began it. What still waits for a decision is canceled.',
    scopes: ['agent:run'],
    pathParameters: [runId],
    requestBody: {
      required: true,
      schema: CompleteRunBody,
      maxBytes: LIMITS.agent_body_max_bytes,
      example: {
        outcome: 'succeeded',
        summary: EXAMPLE_ENDED.summary,
        output: EXAMPLE_ENDED.output,
        modelUsage: EXAMPLE_ENDED.modelUsage,
      },
    },
    response: { status: 201, description: 'The run, which has ended.', schema: Run, example: EXAMPLE_ENDED },
    errors: [...KEY_ERRORS, ...BODY_ERRORS, 'RUN_NOT_FOUND', 'RUN_NOT_ACTIVE'],
    action: 'agent.runs.complete',
  }),
  defineOperation({
    ...CHANGE,
    operationId: 'agent.runs.cancel',
    path: '/agent/runs/{runId}/cancel',
    risk: 'medium',
    summary: 'Cancel a run',
    description:
      'Stops a run: no further call is admitted, and what waits for a decision is canceled. Needs the scope ' +
      'agent:run for runs of the user, or agent:approve with the permission to approve actions of agents for ' +
      'those of others.',
    scopes: 'authenticated',
    oneOfScopes: ['agent:run', 'agent:approve'],
    pathParameters: [runId],
    response: {
      status: 201,
      description: 'The run, which has ended.',
      schema: Run,
      example: {
        ...EXAMPLE_ENDED,
        status: 'CANCELED',
        outcome: 'canceled',
        summary: null,
        output: null,
        modelUsage: null,
      },
    },
    errors: [...KEY_ERRORS, 'RUN_NOT_FOUND', 'RUN_NOT_ACTIVE'],
    action: 'agent.runs.cancel',
  }),
  defineOperation({
    ...READ,
    operationId: 'agent.steps.list',
    path: '/agent/runs/{runId}/steps',
    summary: 'List the calls of a run',
    description:
      'Every call that was made under the run, oldest first, with how it ended and which records it changed.',
    scopes: ['agent:run'],
    pathParameters: [runId],
    queryParameters: [take, cursor],
    response: {
      status: 200,
      description: 'A page of steps.',
      schema: Type.Object({ records: Type.Array(Step), nextCursor }, { title: 'AgentStepPage' }),
      headers: effectiveTake,
      example: {
        records: [
          {
            stepId: '0193d3b1-9b2d-7a10-8c44-1d2e3f4a5b6c',
            at: '2026-11-21T00:01:25.003+00:00',
            operationId: 'data.records.update',
            method: 'PATCH',
            path: EXAMPLE_PATH,
            status: 200,
            requestId: 'req_01JD9TZK5N3V8Q2W4X6Y7Z8A9B',
            cost: 2,
            approvalId: null,
            recordsChanged: [{ objectApiName: 'Invoice__c', id: EXAMPLE_INVOICE }],
          },
        ],
        nextCursor: null,
      },
    },
    errors: ['RUN_NOT_FOUND', ...CURSOR_ERRORS],
    action: 'agent.steps.list',
  }),
  defineOperation({
    ...READ,
    operationId: 'agent.approvals.list',
    path: '/agent/approvals',
    summary: 'List approvals',
    description:
      'Approvals that the user may decide or could have decided, or that runs of the user requested; newest first, without request and preview.',
    scopes: ['agent:approve'],
    queryParameters: [
      {
        name: 'status',
        description: 'Only approvals in this state.',
        schema: ApprovalStatusSchema,
        example: 'PENDING',
      },
      take,
      cursor,
    ],
    response: {
      status: 200,
      description: 'A page of approvals.',
      schema: Type.Object({ records: Type.Array(ApprovalSummary), nextCursor }, { title: 'AgentApprovalPage' }),
      headers: effectiveTake,
      example: { records: [EXAMPLE_APPROVAL_SUMMARY], nextCursor: null },
    },
    errors: CURSOR_ERRORS,
    action: 'agent.approvals.list',
  }),
  defineOperation({
    ...READ,
    operationId: 'agent.approvals.get',
    path: '/agent/approvals/{approvalId}',
    summary: 'Read an approval',
    description:
      'The request, its preview and the decisions. Needs the scope agent:approve, or agent:run for an approval that a run of the user asked for.',
    scopes: 'authenticated',
    oneOfScopes: ['agent:approve', 'agent:run'],
    pathParameters: [approvalId],
    response: { status: 200, description: 'The approval.', schema: Approval, example: EXAMPLE_APPROVAL },
    errors: ['APPROVAL_NOT_FOUND'],
    action: 'agent.approvals.get',
  }),
  defineOperation({
    ...CHANGE,
    operationId: 'agent.approvals.decide',
    path: '/agent/approvals/{approvalId}/decision',
    risk: 'high',
    summary: 'Approve or reject a request of an agent',
    description:
      'By a person other than the one in whose name the agent acts, who may approve actions of agents and may ' +
      'execute the operation. An approved request can be executed once, within 60 minutes, by sending it again ' +
      'unchanged.',
    scopes: ['agent:approve'],
    permission: 'approveAgentActions',
    runs: 'refused',
    pathParameters: [approvalId],
    requestBody: {
      required: true,
      schema: DecisionBody,
      maxBytes: LIMITS.agent_body_max_bytes,
      example: { decision: 'approve', fingerprint: EXAMPLE_FINGERPRINT, comment: 'Duplicate of INV-1204.' },
    },
    response: {
      status: 201,
      description: 'The approval with the decision.',
      schema: Approval,
      example: {
        ...EXAMPLE_APPROVAL,
        status: 'APPROVED',
        expiresAt: '2026-11-21T01:02:40.2+00:00',
        decisions: [
          {
            userId: EXAMPLE_APPROVER,
            decision: 'approve',
            comment: 'Duplicate of INV-1204.',
            decidedAt: '2026-11-21T00:02:40.2+00:00',
          },
        ],
      },
    },
    errors: [
      ...KEY_ERRORS,
      ...BODY_ERRORS,
      'OBJECT_PERMISSION_DENIED',
      'FIELD_PERMISSION_DENIED',
      'RECORD_ACCESS_DENIED',
      'RECORD_NOT_FOUND',
      'TRANSITION_NOT_ALLOWED',
      'METADATA_PERMISSION_DENIED',
      'DASHBOARD_NOT_FOUND',
      'APPROVAL_NOT_FOUND',
      'APPROVAL_ACTOR_NOT_HUMAN',
      'APPROVAL_SELF_NOT_ALLOWED',
      'APPROVAL_ALREADY_DECIDED',
      'APPROVAL_FINGERPRINT_MISMATCH',
      'APPROVAL_EXPIRED',
      'APPROVAL_TOO_LARGE',
      'AUTHENTICATION_INSUFFICIENT',
    ],
    action: 'agent.approvals.decide',
  }),
] as const;

export const SERVICE = {
  purpose: 'Runs of agents: what they may do, what waits for a person, and what they did.',
  listens: 'health',
  awaitedByGateway: false,
  kubernetes: {
    replicas: { min: 2, max: 4 },
    connections: 5,
    requests: { cpu: '100m', memory: '256Mi' },
    limits: { cpu: '1', memory: '512Mi' },
  },
  database: { tenants: 'records', jobs: true },
  operations: AGENT_OPERATIONS,
  guidance: AGENT_GUIDANCE,
  calls: [
    'bulk.jobs.carried',
    'analytics.access.check',
    'auth.grants.check',
    'auth.mails.askApprovers',
    'data.access.check',
    'data.records.seen',
    'data.trail.ofRequests',
    'data.users.get',
    'data.users.holding',
    'metadata.snapshots.get',
    'notifications.notify',
  ],
  forOperators: ['agent.tenants.cancelRuns', 'agent.tenants.listRuns'],
  repeatable: ['agent.runs.state', 'agent.tenants.listRuns', 'agent.transitions.judge'],
  hears: ['auth.grants.revoked'],
  consent: {
    'agent:run': { area: 'agents', text: 'Work as an agent, step by step and recorded.' },
    'agent:approve': { area: 'agents', text: 'Approve what agents want to do, and undo what they did.' },
  },
  moving: {
    parts: [
      {
        name: 'agents/runs',
        table: 'agent.runs',
        group: 'trail',
        // Its grant stays behind.
        stored: {
          status: "CASE WHEN r.status = 'RUNNING' THEN 'CANCELED' ELSE r.status END",
          outcome: "CASE WHEN r.status = 'RUNNING' THEN 'canceled' ELSE r.outcome END",
          ended_at: 'coalesce(r.ended_at, now())',
        },
      },
      { name: 'agents/steps', table: 'agent.steps', group: 'trail' },
      {
        name: 'agents/approvals',
        table: 'agent.approvals',
        group: 'trail',
        stored: { status: "CASE WHEN r.status IN ('PENDING', 'APPROVED') THEN 'CANCELED' ELSE r.status END" },
      },
      { name: 'agents/decisions', table: 'agent.decisions', group: 'trail' },
    ],
    leftBehind: ['agent.days'],
  },
} as const satisfies ServiceDeclaration<typeof AGENT_OPERATIONS>;
