/** The statements that lead from one physical model to the next. Pure; every name is quoted. */

import { formattedSql } from '../../../lib/schema/auto-number.ts';
import { identifier, literal } from '../../../lib/values/sql-text.ts';
import { type AheadStep, foreignKey, NOTHING, type TableAhead, tableAhead } from './ahead.ts';
import { addedColumn, columnDefinition, fillValue } from './columns.ts';
import { blankSql, type Column, type Model, type NumberedColumn, type Table } from './model.ts';

/** A statement; other SQL where what it makes has been made ahead, under `name`. */
interface Statement {
  readonly sql: string;
  readonly ahead?: { readonly name: string; readonly sql: string };
}

/** Statements that lead from one model to the next. */
export interface Ddl {
  readonly statements: readonly Statement[];
  /** Statements that may run before, in this order. */
  readonly ahead: readonly AheadStep[];
  /** Tables that are there and are altered. */
  readonly altered: readonly string[];
}

/** Changes of one table, in the order in which PostgreSQL accepts them for all tables. */
interface TableChanges {
  readonly tables: Statement[];
  readonly drops: Statement[];
  readonly columns: Statement[];
  readonly indexes: Statement[];
  readonly sequences: Statement[];
  readonly keys: Statement[];
}

const plain = (sql: string): Statement => ({ sql });

/** Statements in an order that PostgreSQL accepts; `schema` and `role` are quoted names. */
export function ddl(before: Model, after: Model, schema: string, role: string): Ddl {
  const created = new Set([...after.keys()].filter((name) => !before.has(name)));
  const tables = [...after.values()].map((table) => {
    const old = before.get(table.name);
    const kept = (index: string): boolean => old !== undefined && keepsIndex(old, table, index);
    const ahead = old ? tableAhead(old, table, { schema, created, kept }) : NOTHING;
    return { name: table.name, ahead, changes: changesOf(old, table, ahead, schema, role) };
  });
  const names = [...created].map((name) => `${schema}.${identifier(name)}`);
  const granted =
    names.length > 0 ? [plain(`GRANT SELECT, INSERT, UPDATE, DELETE ON ${names.join(', ')} TO ${role}`)] : [];
  const all = (part: keyof TableChanges): Statement[] => tables.flatMap(({ changes }) => changes[part]);
  const statements = [
    ...all('tables'),
    ...all('drops'),
    ...all('columns'),
    ...all('indexes'),
    ...all('sequences'),
    ...all('keys'),
    ...granted,
  ];
  return {
    statements,
    ahead: tables.flatMap(({ ahead }) => ahead.steps),
    altered: tables
      .filter(({ name, changes }) => before.has(name) && Object.values(changes).some((part) => part.length > 0))
      .map(({ name }) => name)
      .sort(),
  };
}

function changesOf(
  old: Table | undefined,
  table: Table,
  ahead: TableAhead,
  schema: string,
  role: string,
): TableChanges {
  const name = `${schema}.${identifier(table.name)}`;
  return {
    tables: old ? [] : [plain(createTable(name, table))],
    drops: old ? dropped(name, old, table, schema).map(plain) : [],
    columns: old ? alterColumns(name, old, table, ahead) : [],
    indexes: [...table.indexes]
      .filter(([index]) => !old || !keepsIndex(old, table, index))
      .map(([index, { unique, on }]) =>
        either(
          `CREATE ${unique ? 'UNIQUE ' : ''}INDEX ${identifier(index)} ON ${name} ${on}`,
          ahead.names.index.get(index),
          (hidden) => `ALTER INDEX ${schema}.${hidden} RENAME TO ${identifier(index)}`,
        ),
      ),
    sequences: [...table.sequences]
      .filter(([sequence]) => !old?.sequences.has(sequence))
      .flatMap(([sequence, numbered]) => {
        const full = `${schema}.${identifier(sequence)}`;
        return [
          `CREATE SEQUENCE ${full} OWNED BY ${name}.${identifier(numbered.column)}`,
          `GRANT USAGE, SELECT ON SEQUENCE ${full} TO ${role}`,
          ...(old ? numberRecords(name, full, numbered) : []),
        ].map(plain);
      }),
    keys: addedKeys(name, old, table, ahead, schema),
  };
}

/** `rename` gets the quoted name under which the same has been made ahead, if it may have been. */
const either = (sql: string, hidden: string | undefined, rename: (hidden: string) => string): Statement =>
  hidden === undefined ? { sql } : { sql, ahead: { name: hidden, sql: rename(identifier(hidden)) } };

/** Indexes and foreign keys that go. One of the name of a new index may be left over from a configuration before. */
function dropped(name: string, old: Table, table: Table, schema: string): string[] {
  const indexes = [...new Set([...old.indexes.keys(), ...table.indexes.keys()])];
  const keys = [...old.foreignKeys.keys()].filter((key) => !table.foreignKeys.has(key));
  return [
    ...indexes
      .filter((index) => !keepsIndex(old, table, index))
      .map((index) => `DROP INDEX IF EXISTS ${schema}.${identifier(index)}`),
    ...keys.map((key) => `ALTER TABLE ${name} DROP CONSTRAINT ${identifier(key)}`),
  ];
}

function addedKeys(name: string, old: Table | undefined, table: Table, ahead: TableAhead, schema: string): Statement[] {
  return [...table.foreignKeys]
    .filter(([key]) => !old?.foreignKeys.has(key))
    .map(([key, { column, to }]) =>
      either(
        `ALTER TABLE ${name} ADD CONSTRAINT ${identifier(key)} ${foreignKey(schema, column, to)}`,
        ahead.names.key.get(key),
        (hidden) => `ALTER TABLE ${name} RENAME CONSTRAINT ${hidden} TO ${identifier(key)}`,
      ),
    );
}

/** A column that is made anew takes the indexes over it along. */
function keepsIndex(old: Table, table: Table, index: string): boolean {
  const on = table.indexes.get(index)?.on;
  if (on === undefined || old.indexes.get(index)?.on !== on) return false;
  return ![...table.columns.values()].some((column) => isRemade(old, column) && on.includes(identifier(column.name)));
}

/** There is nothing to convert in a rollup of another type: it is computed anew. */
function isRemade(old: Table, { name, type, field }: Column): boolean {
  const before = old.columns.get(name);
  return Boolean(field?.rollup) && before !== undefined && before.type !== type;
}

/** Records that are there already get their numbers in the order in which they were created. */
function numberRecords(name: string, sequence: string, { column, format }: NumberedColumn): string[] {
  const id = identifier(column);
  const number = formattedSql(format, 'numbered.n');
  return [
    `UPDATE ${name} t SET ${id} = ${number}, "recordVersion" = t."recordVersion" + 1
      FROM (SELECT r.id, row_number() OVER (ORDER BY r."createdAt", r.id) AS n FROM ${name} r) numbered
      WHERE numbered.id = t.id`,
    `SELECT setval(${literal(sequence)}, n) FROM (SELECT count(*) AS n FROM ${name}) counted WHERE n > 0`,
  ];
}

function createTable(name: string, table: Table): string {
  const lines = [...table.columns.values()].map((column) =>
    column.name === 'id' ? 'id uuid PRIMARY KEY' : columnDefinition(column),
  );
  // Room on each page, so that a change of fields without an index touches no index.
  return `CREATE TABLE ${name} (${lines.join(', ')}) WITH (fillfactor = 90)`;
}

function alterColumns(name: string, old: Table, table: Table, { names }: TableAhead): Statement[] {
  const found: Statement[] = [];
  const actions: string[] = [];
  const after: string[] = [];
  for (const column of table.columns.values()) {
    const had = old.columns.get(column.name);
    const id = identifier(column.name);
    if (!had || isRemade(old, column)) {
      const added = addedColumn(column);
      const hidden = names.column.get(column.name);
      if (had) actions.push(`DROP COLUMN ${id}`);
      if (hidden === undefined) actions.push(`ADD COLUMN ${added.sql}`);
      else
        found.push(
          either(
            `ALTER TABLE ${name} ADD COLUMN ${added.sql}`,
            hidden,
            (made) => `ALTER TABLE ${name} RENAME COLUMN ${made} TO ${id}`,
          ),
        );
      if (added.filled) after.push(`ALTER TABLE ${name} ALTER COLUMN ${id} DROP DEFAULT`);
      continue;
    }
    const fill = fillValue(column);
    if (had.type !== column.type) actions.push(`ALTER COLUMN ${id} TYPE ${column.type}`);
    if (had.notNull !== column.notNull) actions.push(`ALTER COLUMN ${id} ${column.notNull ? 'SET' : 'DROP'} NOT NULL`);
    if (fill !== null && column.field?.required && had.field?.required === false)
      after.push(`UPDATE ${name} SET ${id} = ${fill} WHERE ${blankSql(column.field)}`);
  }
  const altered = actions.length > 0 ? [plain(`ALTER TABLE ${name} ${actions.join(', ')}`)] : [];
  return [...found, ...altered, ...after.map(plain)];
}
