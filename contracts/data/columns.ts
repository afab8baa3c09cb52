/** An object as files of its records see it: for bulk, which reads and writes them for its users. */

/** The form of a field's value in a cell of a file. */
export type CellForm = 'text' | 'number' | 'date' | 'boolean' | 'list' | 'json';

export interface Column {
  readonly apiName: string;
  readonly form: CellForm;
  /** The user may write it. */
  readonly edit: boolean;
  /** Of a reference: fields by whose value a record that it may name can be found. */
  readonly keys: readonly string[];
}

export interface ObjectColumns {
  /** Fields that the user can read, in the order of records in answers. */
  readonly columns: readonly Column[];
  readonly may: Readonly<Record<'create' | 'read' | 'update' | 'delete' | 'modifyAll', boolean>>;
}
