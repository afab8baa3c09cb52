/** An object as files of its records see it: for bulk, which reads and writes them for its users. */
import type { CellForm } from '../../lib/cells/cells.ts';
import type { Asker } from '../../lib/context.ts';

export interface Column {
  readonly apiName: string;
  readonly form: CellForm;
  /** The user may write it. */
  readonly edit: boolean;
  /** Its value is the id of a file. */
  readonly file: boolean;
  /** Records are found by its value. */
  readonly externalId: boolean;
  /** Of a reference: fields by whose value a record that it may name can be found. */
  readonly keys: readonly string[];
}

export interface ObjectColumns {
  /** Fields that the user can read, in the order of records in answers. */
  readonly columns: readonly Column[];
  readonly may: Readonly<Record<'create' | 'read' | 'update' | 'delete' | 'modifyAll', boolean>>;
}

/** A file of records. */
export interface FileFormat {
  readonly format: 'csv' | 'ndjson';
  /** Names of the columns of CSV, in order. */
  readonly columns: readonly string[];
  readonly delimiter: string;
  readonly lineEnding: 'LF' | 'CRLF';
  readonly compression: 'none' | 'gzip';
}

/** Size of a segment before compression; its last record may go beyond it. */
export const SEGMENT_BYTES = 4 * 1024 * 1024;

/** A part of a file of records, which is stored as a blob. */
export interface SegmentToWrite {
  readonly asker: Asker;
  readonly objectApiName: string;
  /** Of the body of `data.records.query`, what selects and sorts the records. */
  readonly query: Readonly<Record<string, unknown>>;
  /** Cursor behind the previous segment; null: this is the first one. */
  readonly cursor: string | null;
  readonly file: FileFormat;
  /** Key of the blob, which is used for one call. */
  readonly key: string;
}

export interface SegmentWritten {
  readonly rows: number;
  /** 0: there are no records, and no blob. */
  readonly bytes: number;
  readonly sha256: string;
  /** null: there are no more records. */
  readonly nextCursor: string | null;
}
