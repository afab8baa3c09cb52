/** Writes of many records of one object in one call: the internal action behind them, and what becomes of each row. */
import type { ErrorCode, ViolationCode } from '../../lib/errors/catalogue.ts';
import type { Violation } from '../../lib/errors/platform-error.ts';

export const ROW_OPERATIONS = ['create', 'update', 'upsert', 'delete'] as const;

export type RowOperation = (typeof ROW_OPERATIONS)[number];

export interface RowToWrite {
  readonly id?: string;
  readonly ifMatch?: string;
  readonly duplicateConfirmation?: string;
  readonly fields?: object;
  /** Why the row could not be read. It is not written, and has these in its outcome. */
  readonly refused?: readonly RowError[];
}

/** The code of a row that was valid, and was rolled back because another one failed. */
export const ROLLED_BACK = 'ROLLED_BACK';

/** A violation with a pointer into the row; or a refusal, which has a `detail` instead. */
export interface RowError extends Partial<Readonly<Omit<Violation, 'code'>>> {
  readonly code: ViolationCode | ErrorCode | typeof ROLLED_BACK;
  readonly message: string;
  readonly detail?: Readonly<Record<string, unknown>>;
}

/** Outcome of a row, with the status that the operation on one record would have answered. */
export interface RowResult {
  readonly index: number;
  readonly id: string | null;
  readonly status: number;
  readonly etag: string | null;
  readonly created: boolean;
  readonly errors: readonly RowError[];
}

export interface RowsToWrite {
  readonly objectApiName: string;
  readonly operation: RowOperation;
  /** Of an upsert: the field by which the record is found. */
  readonly externalIdField?: string;
  /** One row that fails leaves nothing of the others. */
  readonly allOrNone: boolean;
  readonly checkOnly: boolean;
  /** `report`: duplicates that a person could confirm are stored, and named in the result. Default: `reject`. */
  readonly duplicatePolicy?: 'reject' | 'report';
  /** `lastWriteWins`: rows need no `ifMatch`, and the user needs `modifyAll`. Default: `requireEtag`. */
  readonly conflictPolicy?: 'requireEtag' | 'lastWriteWins';
  readonly rows: readonly RowToWrite[];
}

export interface RowsWritten {
  readonly committed: boolean;
  readonly results: readonly RowResult[];
}
