/**
 * Models of the services' own fixed tables, by Sequelize on a connection that the database door lends:
 *
 *     database.shared('auth', tenantId, (tx) => Credential.findOne({ where: { tenantId, userId }, ...on(tx) }));
 *
 * The door has begun the transaction and set the role and the tenant, so row-level security holds, and a model sends
 * only the statement it was called for. Sequelize has no pool here and no connection of its own: a call without
 * `on(tx)` is refused. Rows are plain objects; all values are bound. Columns are read as the door reads them:
 * `timestamptz`, `date` and `numeric` as text (declare them TEXT), `bigint` as a number. Tables are made by migrations,
 * never by `sync()`. Compare with a list by `Op.any`: `Op.in` makes a new statement for each length.
 */
import pg from 'pg';
import { literal, Sequelize, Transaction, type Utils } from 'sequelize';
import type { Tx } from '../database/database.ts';
import { Sql } from '../database/sql.ts';
import { bindValues, type QueryGenerator } from './bind-values.ts';

type Answer = (error: unknown, result?: { rows: unknown[]; rowCount: number }) => void;

/** The connection that Sequelize sees: each statement goes through the door, prepared by its text. */
class LentConnection {
  readonly #tx: Tx;

  constructor(tx: Tx) {
    this.#tx = tx;
  }

  query(text: string, ...[values, answer]: [Answer, undefined?] | [readonly unknown[], Answer]): void {
    const sql = new Sql();
    if (typeof values !== 'function') sql.values.push(...values);
    const done = typeof values === 'function' ? values : answer;
    this.#tx.query(sql.statement(text)).then(
      (result) => done?.(null, result),
      (error) => done?.(error),
    );
  }
}

class ModelSequelize extends Sequelize {
  /** Every statement of a model passes here. The type is the one that fits each of Sequelize's overloads. */
  override async query(...[statement, options]: Parameters<Sequelize['query']>): Promise<never> {
    if (!options?.transaction) throw new Error('A model was called without a transaction: pass ...on(tx).');
    try {
      return (await super.query(statement, options)) as never;
    } catch (error) {
      throw databaseError(error);
    }
  }
}

/** The error of PostgreSQL inside one of Sequelize's, without the values that Sequelize adds to it. */
function databaseError(error: unknown): unknown {
  if (!(error instanceof Error && 'original' in error && error.original instanceof Error)) return error;
  const { original } = error;
  Reflect.deleteProperty(original, 'sql');
  Reflect.deleteProperty(original, 'parameters');
  return original;
}

/** For `Model.init(…, { sequelize, schema, tableName })`. One for all databases: models hold no connection. */
export const sequelize: Sequelize = new ModelSequelize({
  dialect: 'postgres',
  dialectModule: pg,
  logging: false,
  query: { raw: true },
  define: { timestamps: false, underscored: true },
});
bindValues(sequelize.getQueryInterface().queryGenerator as QueryGenerator);

/** The options that run a model's statement in a transaction of the database door. */
export const on = (tx: Tx): { transaction: Transaction; returning: false } => ({
  transaction: Object.assign(new Transaction(sequelize, {}), { connection: new LentConnection(tx) }),
  // Types of returned rows are declared by the callers.
  returning: false,
});

/** A `timestamptz` column: read as text, written as text or by the database's clock. */
export type Timestamp = string | Utils.Literal;

/** A moment by the database's clock. */
export const secondsFromNow = (seconds: number): Utils.Literal =>
  literal(seconds === 0 ? 'now()' : `now() + make_interval(secs => ${Number(seconds)})`);

export const NOW: Utils.Literal = secondsFromNow(0);
