/** The form of the guidance for an operation. */
import type { ErrorCode } from '../../lib/errors/catalogue.ts';
import type { Operation } from '../../lib/operation.ts';

/** Guidance for choosing and using an operation, for assistants and developers. */
export interface Guidance {
  readonly whenToUse: string;
  /** Operations that it is easily confused with, and which to use instead. */
  readonly whenNotToUse: string;
  /** Prerequisites beyond scope, token and the form of the request. */
  readonly preconditions: readonly string[];
  /** Those that a careful client meets all the same, most frequent first; all that there are stand in the row. */
  readonly commonErrors: readonly ErrorCode[];
}

/** Guidance for every operation of a table, and for no other. */
export type GuidanceOf<Rows extends readonly Operation[]> = Readonly<Record<Rows[number]['operationId'], Guidance>>;
