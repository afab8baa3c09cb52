/** Statements and results of PostgreSQL. */

export interface Statement {
  text: string;
  values?: readonly unknown[] | undefined;
  /** Name of a prepared statement; give one to statements that recur. */
  name?: string;
}

export interface Rows<R = Record<string, unknown>> {
  rows: R[];
  rowCount: number;
}
