/** What every generated client is put to: the same work, each in the words of its generator. */

export interface Task {
  /** With `/api/v1`. */
  readonly baseUrl: string;
  readonly token: string;
  /** City of the accounts that are listed. */
  readonly city: string;
  /** A run of an agent, under which a deletion waits for an approval. */
  readonly runId: string;
}

export interface Outcome {
  /** Names of the accounts in the city, from Z to A. */
  readonly names: readonly unknown[];
  /** What a check says of a contact without a name. */
  readonly violations: readonly string[];
  /** Code of the refusal of an update with an ETag that is no longer current. */
  readonly refusal: string | undefined;
  /** As it is after the update with the current one. */
  readonly jobTitle: unknown;
  /** What a decision on the deletion takes, from the error that asks for one. */
  readonly approval: { readonly approvalId: string | undefined; readonly fingerprint: string | undefined };
}

export const newKey = (): string => crypto.randomUUID();
