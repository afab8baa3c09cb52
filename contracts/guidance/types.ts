/** The form of the guidance for an operation. */
import type { ErrorCode } from '../../lib/errors/catalogue.ts';
import type { Operation } from '../../lib/operation.ts';

/** What an assistant, or a person who builds on the API, must know to choose an operation and use it rightly. */
export interface Guidance {
  readonly whenToUse: string;
  /** What it must not be mistaken for, and what to use instead. */
  readonly whenNotToUse: string;
  /** What has to be known, read or held before, beyond scope, token and the form of the request. */
  readonly preconditions: readonly string[];
  /** Those that a careful client meets all the same, most frequent first; all that there are stand in the row. */
  readonly commonErrors: readonly ErrorCode[];
}

/** Guidance for every operation of a table, and for no other. */
export type GuidanceOf<Rows extends readonly Operation[]> = Readonly<Record<Rows[number]['operationId'], Guidance>>;
