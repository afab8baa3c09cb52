/** The common task of every generated client, each in the style of its generator. */

export interface Task {
  /** Base URL, including `/api/v1`. */
  readonly baseUrl: string;
  readonly token: string;
  /** City of the listed accounts. */
  readonly city: string;
  /** A run of an agent, under which a deletion waits for approval. */
  readonly runId: string;
}

export interface Outcome {
  /** Names of the accounts in the city, from Z to A. */
  readonly names: readonly unknown[];
  /** Result of a check of a contact without a name. */
  readonly violations: readonly string[];
  /** Code of the refusal of an update with an ETag that is no longer current. */
  readonly refusal: string | undefined;
  /** The record after an update with the current ETag. */
  readonly jobTitle: unknown;
  /** Parameters of the deletion's decision, from the error that requires one. */
  readonly approval: { readonly approvalId: string | undefined; readonly fingerprint: string | undefined };
}

export const newKey = (): string => crypto.randomUUID();
