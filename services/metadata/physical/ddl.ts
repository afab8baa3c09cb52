/** The statements that lead from one physical model to the next. Pure; every name is quoted. */

import { formattedSql } from '../../../lib/schema/auto-number.ts';
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import { emptyRollup } from '../../../lib/schema/rollups.ts';
import { identifier, literal } from '../../../lib/values/sql-text.ts';
import { blankSql, type Column, type Model, type NumberedColumn, type Table } from './model.ts';

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

/** What becomes of one table, in the order in which PostgreSQL accepts it for all of them. */
interface TableChanges {
  readonly tables: string[];
  readonly drops: string[];
  readonly columns: string[];
  readonly indexes: string[];
  readonly sequences: string[];
  readonly keys: string[];
}

/** Statements in an order that PostgreSQL accepts; `schema` and `role` are quoted names. */
export function ddl(before: Model, after: Model, schema: string, role: string): string[] {
  const changes = [...after.values()].map((table) => changesOf(before.get(table.name), table, schema, role));
  const created = [...after.keys()].filter((name) => !before.has(name)).map((name) => `${schema}.${identifier(name)}`);
  const granted =
    created.length > 0 ? [`GRANT SELECT, INSERT, UPDATE, DELETE ON ${created.join(', ')} TO ${role}`] : [];
  const all = (part: keyof TableChanges): string[] => changes.flatMap((one) => one[part]);
  return [
    ...all('tables'),
    ...all('drops'),
    ...all('columns'),
    ...all('indexes'),
    ...all('sequences'),
    ...all('keys'),
    ...granted,
  ];
}

function changesOf(old: Table | undefined, table: Table, schema: string, role: string): TableChanges {
  const name = `${schema}.${identifier(table.name)}`;
  return {
    tables: old ? [] : [createTable(name, table)],
    drops: old ? dropped(name, old, table, schema) : [],
    columns: old ? alterColumns(name, old, table) : [],
    indexes: [...table.indexes]
      .filter(([index]) => !old || !keepsIndex(old, table, index))
      .map(([index, { unique, on }]) => `CREATE ${unique ? 'UNIQUE ' : ''}INDEX ${identifier(index)} ON ${name} ${on}`),
    sequences: [...table.sequences]
      .filter(([sequence]) => !old?.sequences.has(sequence))
      .flatMap(([sequence, numbered]) => {
        const full = `${schema}.${identifier(sequence)}`;
        return [
          `CREATE SEQUENCE ${full} OWNED BY ${name}.${identifier(numbered.column)}`,
          `GRANT USAGE, SELECT ON SEQUENCE ${full} TO ${role}`,
          ...(old ? numberRecords(name, full, numbered) : []),
        ];
      }),
    keys: addedKeys(name, old, table, schema),
  };
}

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

function addedKeys(name: string, old: Table | undefined, table: Table, schema: string): string[] {
  const added = [...table.foreignKeys]
    .filter(([key]) => !old?.foreignKeys.has(key))
    .map(
      ([key, { column, to }]) =>
        `ADD CONSTRAINT ${identifier(key)} FOREIGN KEY (${identifier(column)})
          REFERENCES ${schema}.${identifier(to)} (id) DEFERRABLE INITIALLY IMMEDIATE`,
    );
  return added.length > 0 ? [`ALTER TABLE ${name} ${added.join(', ')}`] : [];
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
