/** Types of the public API that the page reads (docs/reference/bulk.md), and of what it holds itself. */
import type { Format } from '../../shared/rows.js';

export type Operation = 'create' | 'update' | 'upsert';

export interface Capabilities {
  creatable: boolean;
  updateable: boolean;
}

export interface ObjectSummary {
  apiName: string;
  label: string;
  capabilities: Capabilities;
}

export interface Field {
  apiName: string;
  label: string;
  fieldType: string;
  editable: boolean;
  required: boolean;
  externalId: boolean;
  defaultedOnCreate: boolean;
  referenceTo: string[];
}

export interface Description {
  apiName: string;
  label: string;
  labelPlural: string;
  fields: Field[];
  capabilities: Capabilities;
}

export interface Job {
  jobId: string;
  operation: string;
  objectApiName: string;
  state: 'OPEN' | 'UPLOADED' | 'QUEUED' | 'PROCESSING' | 'CANCELING' | 'COMPLETED' | 'FAILED' | 'CANCELED';
  checkOnly: boolean;
  createdAt: string;
  expiresAt: string;
  counts: { total: number | null; processed: number; succeeded: number; failed: number; unprocessed: number | null };
  error: { code: string; message: string } | null;
}

export interface RowResult {
  rowNumber: number;
  errors: { code: string; message: string; column?: string }[];
}

/** A file that was chosen, and how its bytes are read. */
export interface Source {
  file: File;
  format: Format;
  /** As `TextDecoder` knows it. */
  encoding: string;
  delimiter: string;
}

/** The beginning of a file. */
export interface Sample {
  /** Names of the columns, in their order. */
  columns: string[];
  /** Of the first rows, by place of the column. */
  rows: string[][];
  /** The header of CSV and these rows, as a part of a job. */
  part: Uint8Array<ArrayBuffer> | null;
}

/** What a column may stand for. */
export interface Target {
  /** As the API takes it: `name`, `accountId.accountNumber`, `id`. */
  name: string;
  label: string;
  /** Heading of its group in a list. */
  group: string;
  /** Names by which a column is taken for it, the surest first. */
  aliases: string[];
  form: 'number' | 'date' | 'other';
  required: boolean;
}

/** How the rows of a file become records: kept for the next file. */
export interface Settings {
  operation: Operation;
  /** Of an upsert: the field by which records are found. */
  externalIdField: string;
  /** By name of the column; an empty name: left out. */
  columns: Record<string, string>;
  /** Empty: as in JSON. */
  locale: string;
  /** Rows that look like duplicates are stored as well. */
  duplicates: boolean;
  /** Updates without looking at who has changed a record since. */
  overwrite: boolean;
}
