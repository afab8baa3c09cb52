/** Guidance for the operations of agent. */
import type { Guidance } from './types.ts';

export const AGENT_GUIDANCE = {
  'agent.runs.create': {
    whenToUse:
      'Before an agent does anything with records: the run bounds cost and changes, keeps what was done together, and lets risky calls wait for a person.',
    whenNotToUse: 'Not once per call: one run is one task. A person at a screen needs none.',
    preconditions: [
      'A goal that people understand, and a budget that fits it.',
      'The `runId` of the answer goes with every later call as `X-Agent-Run-Id`.',
    ],
    commonErrors: ['AGENT_POLICY_DENIED', 'VALIDATION_FAILED', 'CONCURRENCY_LIMIT_EXCEEDED'],
  },
  'agent.runs.list': {
    whenToUse: 'To find a run again after a restart, or for people who oversee what agents do.',
    whenNotToUse: 'Not to wait for a decision: read the approval.',
    preconditions: [],
    commonErrors: ['SCOPE_INSUFFICIENT', 'CURSOR_EXPIRED'],
  },
  'agent.runs.get': {
    whenToUse: 'To see what is left of the budget, and which calls wait for a decision.',
    whenNotToUse: 'Not for the single calls: `agent.steps.list` has them.',
    preconditions: ['The `runId` of a run that the caller may see.'],
    commonErrors: ['RUN_NOT_FOUND'],
  },
  'agent.runs.complete': {
    whenToUse: 'When the task is done or has failed: say what was done, for people. Always end a run.',
    whenNotToUse: 'Not while a decision is still wanted: what waits is canceled with the run.',
    preconditions: ['The run is active, and was begun by this user and client.'],
    commonErrors: ['RUN_NOT_ACTIVE', 'RUN_NOT_FOUND'],
  },
  'agent.runs.cancel': {
    whenToUse: "To stop a run at once: one of the user's own or, for people who oversee agents, one of somebody else.",
    whenNotToUse:
      'Not to take back what it has done: that is `agent.runs.revert`. Not as the normal end: that is `agent.runs.complete`.',
    preconditions: ['The scope `agent:run` for runs of the user, `agent:approve` for those of others.'],
    commonErrors: ['RUN_NOT_ACTIVE', 'RUN_NOT_FOUND', 'SCOPE_INSUFFICIENT'],
  },
  'agent.steps.list': {
    whenToUse: 'To see what a run has called, how each call ended and which records it changed.',
    whenNotToUse: 'Not for old and new values: those are in the history of the record and in the audit trail.',
    preconditions: ['The `runId` of a run that the caller may see.'],
    commonErrors: ['RUN_NOT_FOUND', 'CURSOR_EXPIRED'],
  },
  'agent.approvals.list': {
    whenToUse: 'For a person who decides: what waits for them. For the user of an agent: what was asked in their name.',
    whenNotToUse: 'Not for what exactly would be done: read the approval.',
    preconditions: [],
    commonErrors: ['SCOPE_INSUFFICIENT', 'CURSOR_EXPIRED'],
  },
  'agent.approvals.get': {
    whenToUse:
      'Before deciding, to show the person the request, its preview and the fingerprint; for an agent, to see whether it was decided.',
    whenNotToUse: 'Not to execute what was approved: send the very same request again.',
    preconditions: ['The `approvalId` of `APPROVAL_REQUIRED`, or of the list.'],
    commonErrors: ['APPROVAL_NOT_FOUND', 'SCOPE_INSUFFICIENT'],
  },
  'agent.approvals.decide': {
    whenToUse: 'When a person has read the request with its preview and has said yes or no.',
    whenNotToUse:
      'Never by an agent or program on its own, and not under a run: decisions are made by people, and not by the one in whose name the agent acts.',
    preconditions: [
      'The approval was read, and its `fingerprint` is sent.',
      'The user has the permission `approveAgentActions`, is an approver, and could execute the request.',
    ],
    commonErrors: [
      'APPROVAL_ALREADY_DECIDED',
      'APPROVAL_FINGERPRINT_MISMATCH',
      'APPROVAL_SELF_NOT_ALLOWED',
      'APPROVAL_ACTOR_NOT_HUMAN',
      'APPROVAL_EXPIRED',
    ],
  },
} as const satisfies Readonly<Record<string, Guidance>>;
