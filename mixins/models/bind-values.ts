/**
 * Makes Sequelize bind every value. Sequelize 6 binds the values of INSERT and UPDATE, and writes those of SELECT, of
 * DELETE, of lists (`Op.in`) and of function arguments into the text. A bound value can never become SQL and is no part
 * of the text that PostgreSQL logs, and the text stays the same from call to call, so that it is prepared once.
 *
 * Sequelize generates the text of a statement synchronously, and writes each value through one function, `escape`:
 * while a statement is being generated, that function binds instead.
 */
import { Utils } from 'sequelize';

interface StatementOptions {
  bind?: unknown[];
  bindParam?: (value: unknown) => string;
}

/** The parts of Sequelize's query generator that write values; its types leave them out. */
export interface QueryGenerator {
  escape(value: unknown, attribute?: unknown, options?: object): string;
  format(
    value: unknown,
    attribute: unknown,
    options: object | undefined,
    bindParam: (value: unknown) => string,
  ): string;
  selectQuery(table: unknown, options: StatementOptions, model: unknown): string;
  deleteQuery(table: unknown, where: unknown, options: StatementOptions, model: unknown): string;
  bulkInsertQuery(table: unknown, rows: unknown, options: StatementOptions, attributes: unknown): string;
  insertQuery(table: unknown, row: unknown, attributes: unknown, options: StatementOptions): Generated;
  updateQuery(
    table: unknown,
    changes: unknown,
    where: unknown,
    options: StatementOptions,
    attributes: unknown,
  ): Generated | '';
}

interface Generated {
  query: string;
  bind?: unknown[];
}

export function bindValues(generator: QueryGenerator): void {
  const { selectQuery, deleteQuery, bulkInsertQuery, insertQuery, updateQuery } = generator;
  const writeIntoText = generator.escape;
  /** Values of the statement that is being generated. */
  let values: unknown[] | null = null;

  const bind = (value: unknown): string => {
    if (values === null) throw new Error('A value was bound outside the generation of a statement.');
    values.push(value);
    return `$${values.length}`;
  };

  /** Generates a statement; a select inside another statement adds its values to that statement's. */
  const generate = <T>(options: StatementOptions, text: () => T): T => {
    if (values !== null) return text();
    values = [];
    options.bindParam = bind;
    options.bind = values;
    try {
      return text();
    } finally {
      values = null;
    }
  };

  generator.escape = (value, attribute, options) =>
    values === null || value === null || value === undefined || value instanceof Utils.SequelizeMethod
      ? writeIntoText.call(generator, value, attribute, options)
      : generator.format(value, attribute, options, bind);
  generator.selectQuery = (table, options, model) =>
    generate(options, () => selectQuery.call(generator, table, options, model));
  generator.deleteQuery = (table, where, options, model) =>
    generate(options, () => deleteQuery.call(generator, table, where, options, model));
  generator.bulkInsertQuery = (table, rows, options, attributes) =>
    generate(options, () => bulkInsertQuery.call(generator, table, rows, options, attributes));
  generator.insertQuery = (table, row, attributes, options) =>
    generate(options, () => {
      const { query } = insertQuery.call(generator, table, row, attributes, options);
      return { query };
    });
  generator.updateQuery = (table, changes, where, options, attributes) =>
    generate(options, () => {
      const generated = updateQuery.call(generator, table, changes, where, options, attributes);
      return generated === '' ? '' : { query: generated.query };
    });
}
