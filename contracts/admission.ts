/**
 * What the gateway asks agent about a call under a run, before it forwards the call, and what it tells afterwards. The
 * change itself asks once more, in its own transaction: mixins/mutation/run.ts.
 */
import type { Operation } from '../lib/operation.ts';

/** A call under a run that has passed all checks of the edge. */
export interface AdmissionRequest extends Pick<Operation, 'risk' | 'cost' | 'mutation' | 'agentApproval'> {
  readonly runId: string;
  readonly operationId: string;
  readonly method: string;
  /** As sent, without the query. */
  readonly path: string;
  readonly query: Readonly<Record<string, unknown>>;
  /** null: there is none, or it is too large to be shown. */
  readonly body: unknown;
  /** Those that belong to the fingerprint. */
  readonly headers: {
    readonly ifMatch: string | null;
    readonly expectedRevision: number | null;
    readonly duplicateConfirmation: string | null;
  };
  /** Of mutations: SHA-256 in lower-case hex; what is approved. Null for reads. */
  readonly fingerprint: string | null;
  /** Of mutations. A request with the key and the fingerprint of an earlier step is that step once more, not a new one. */
  readonly idempotencyKey: string | null;
  readonly requestId: string;
  /** Similar records are confirmed. */
  readonly duplicateConfirmation: boolean;
  /**
   * What the call would do, for a new approval. Absent: a dry run has not been made, and is possible. Null: it is not
   * possible for this operation.
   */
  readonly preview?: CallPreview | null;
}

/** What a dry run in the caller's name has shown. */
export interface CallPreview {
  /** The record as the caller sees it now; null: there is none, or not one. */
  readonly before: Readonly<Record<string, unknown>> | null;
  /** Its answer: `{checkOnly: true, valid, record, errors, duplicates, effects, …}`, or the plan of a deployment. */
  readonly verdict: Readonly<Record<string, unknown>>;
}

/**
 * The call may go on; or `previewNeeded`: a new approval would be asked for, and nothing has been stored or counted yet:
 * the gateway makes the dry run and asks again with it. Everything else is refused with an error.
 */
export type Admission =
  | {
      readonly stepId: string;
      /** Mutations of the run are tried out. */
      readonly dryRun: boolean;
      /** The approval that the change consumes; null: it needs none. */
      readonly approvalId: string | null;
      readonly previewNeeded?: false;
    }
  | { readonly previewNeeded: true };

export interface AdmissionActions {
  'agent.runs.admit': { params: AdmissionRequest; result: Admission };
  /** Not waited for. A step that is never settled was under way when a process ended. */
  'agent.steps.settle': {
    params: {
      readonly stepId: string /** Of the answer. */;
      readonly status: number;
      readonly approvalId: string | null;
    };
    result: null;
  };
}
