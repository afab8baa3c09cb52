/** The statements that lead from one physical model to the next. Pure; every name is quoted. */

import { formattedSql } from '../../../lib/schema/auto-number.ts';
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import { emptyRollup } from '../../../lib/schema/rollups.ts';
import { identifier, literal } from '../../../lib/values/sql-text.ts';
import { blankSql, type Column, type Model, type Table } from './model.ts';

/**
 * SQL of the value that existing records get when a field becomes required: its default, as the column holds it; null
 * when it has none.
 */
function fillValue(column: Column): string | null {
  const { field } = column;
  if (field?.rollup) return emptyRollup(field) === '0' ? '0' : null;
  if (!field?.required || field.defaultValue === null) return null;
  const read = fieldType(field.fieldType).parseInput(field.defaultValue, field, '');
  if (!read.ok || read.value === null) return null;
  const { value } = read;
  const text =
    typeof value === 'object'
      ? `{${value.map((v) => `"${String(v).replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`).join(',')}}`
      : String(value);
  return `${literal(text)}::${column.type.replace(/ COLLATE .*/, '')}`;
}

/** Statements in an order that PostgreSQL accepts; `schema` and `role` are quoted names. */
export function ddl(before: Model, after: Model, schema: string, role: string): string[] {
  const tables: string[] = [];
  const columns: string[] = [];
  const drops: string[] = [];
  const indexes: string[] = [];
  const keys: string[] = [];
  const created: string[] = [];
  const sequences: string[] = [];

  for (const table of after.values()) {
    const name = `${schema}.${identifier(table.name)}`;
    const old = before.get(table.name);
    if (!old) {
      tables.push(createTable(name, table));
      created.push(name);
    } else {
      columns.push(...alterColumns(name, old, table));
      // One of the name of a new index may be left over from a configuration before.
      for (const index of new Set([...old.indexes.keys(), ...table.indexes.keys()]))
        if (!keepsIndex(old, table, index)) drops.push(`DROP INDEX IF EXISTS ${schema}.${identifier(index)}`);
      for (const key of old.foreignKeys.keys())
        if (!table.foreignKeys.has(key)) drops.push(`ALTER TABLE ${name} DROP CONSTRAINT ${identifier(key)}`);
    }
    for (const [index, { unique, on }] of table.indexes)
      if (!old || !keepsIndex(old, table, index))
        indexes.push(`CREATE ${unique ? 'UNIQUE ' : ''}INDEX ${identifier(index)} ON ${name} ${on}`);
    const added: string[] = [];
    for (const [key, { column, to }] of table.foreignKeys)
      if (!old?.foreignKeys.has(key))
        added.push(
          `ADD CONSTRAINT ${identifier(key)} FOREIGN KEY (${identifier(column)}) REFERENCES ${schema}.${identifier(to)} (id) DEFERRABLE INITIALLY IMMEDIATE`,
        );
    if (added.length > 0) keys.push(`ALTER TABLE ${name} ${added.join(', ')}`);
    for (const [sequence, column] of table.sequences)
      if (!old?.sequences.has(sequence)) {
        const full = `${schema}.${identifier(sequence)}`;
        sequences.push(`CREATE SEQUENCE ${full} OWNED BY ${name}.${identifier(column)}`);
        sequences.push(`GRANT USAGE, SELECT ON SEQUENCE ${full} TO ${role}`);
        if (old) sequences.push(...numberRecords(name, full, table.columns.get(column)!));
      }
  }
  if (created.length > 0) keys.push(`GRANT SELECT, INSERT, UPDATE, DELETE ON ${created.join(', ')} TO ${role}`);
  return [...tables, ...drops, ...columns, ...indexes, ...sequences, ...keys];
}

/** A column that is made anew takes the indexes over it along. */
function keepsIndex(old: Table, table: Table, index: string): boolean {
  const on = table.indexes.get(index)?.on;
  if (on === undefined || old.indexes.get(index)?.on !== on) return false;
  return ![...table.columns.values()].some((column) => isRemade(old, column) && on.includes(identifier(column.name)));
}

/** There is nothing to convert in a rollup of another type: it is worked out anew. */
const isRemade = (old: Table, { name, type, field }: Column): boolean =>
  Boolean(field?.rollup) && old.columns.has(name) && old.columns.get(name)!.type !== type;

/** Records that are there already get their numbers in the order in which they were created. */
function numberRecords(name: string, sequence: string, column: Column): string[] {
  const id = identifier(column.name);
  const number = formattedSql(column.field!.format, 'q.n');
  return [
    `UPDATE ${name} t SET ${id} = ${number}, "recordVersion" = t."recordVersion" + 1 FROM (SELECT r.id, row_number() OVER (ORDER BY r."createdAt", r.id) AS n FROM ${name} r) q WHERE q.id = t.id`,
    `SELECT setval('${sequence.replaceAll("'", "''")}', n) FROM (SELECT count(*) AS n FROM ${name}) q WHERE n > 0`,
  ];
}

const definition = (column: Column): string =>
  `${identifier(column.name)} ${column.type}${column.notNull ? ' NOT NULL' : ''}${column.name === 'recordVersion' ? ' DEFAULT 1' : ''}`;

function createTable(name: string, table: Table): string {
  const lines = [...table.columns.values()].map((column) =>
    column.name === 'id' ? 'id uuid PRIMARY KEY' : definition(column),
  );
  // Room on each page, so that a change of fields without an index touches no index.
  return `CREATE TABLE ${name} (${lines.join(', ')}) WITH (fillfactor = 90)`;
}

function alterColumns(name: string, old: Table, table: Table): string[] {
  const actions: string[] = [];
  const after: string[] = [];
  for (const column of table.columns.values()) {
    const had = old.columns.get(column.name);
    const id = identifier(column.name);
    const fill = fillValue(column);
    if (!had) {
      // The default fills existing rows without rewriting the table; new records get theirs from the data service.
      actions.push(`ADD COLUMN ${definition(column)}${fill === null ? '' : ` DEFAULT ${fill}`}`);
      if (fill !== null) after.push(`ALTER TABLE ${name} ALTER COLUMN ${id} DROP DEFAULT`);
      continue;
    }
    if (isRemade(old, column)) {
      actions.push(`DROP COLUMN ${id}`, `ADD COLUMN ${definition(column)}${fill === null ? '' : ` DEFAULT ${fill}`}`);
      if (fill !== null) after.push(`ALTER TABLE ${name} ALTER COLUMN ${id} DROP DEFAULT`);
      continue;
    }
    if (had.type !== column.type) actions.push(`ALTER COLUMN ${id} TYPE ${column.type}`);
    if (had.notNull !== column.notNull) actions.push(`ALTER COLUMN ${id} ${column.notNull ? 'SET' : 'DROP'} NOT NULL`);
    if (fill !== null && column.field?.required && had.field?.required === false)
      after.push(`UPDATE ${name} SET ${id} = ${fill} WHERE ${blankSql(column.field)}`);
  }
  return [...(actions.length > 0 ? [`ALTER TABLE ${name} ${actions.join(', ')}`] : []), ...after];
}
