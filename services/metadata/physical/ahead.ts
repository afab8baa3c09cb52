/**
 * The part of a deployment's DDL that runs before its transaction, beside readers and writers: indexes and foreign keys
 * of tables that are there, and the new columns that these are on. It is made under names that no configuration can call
 * for; the transaction then only gives it its names. Pure. Source: docs/decisions/ddl-next-to-writers.md.
 */
import { createHash } from 'node:crypto';
import { required } from '../../../lib/values/required.ts';
import { identifier } from '../../../lib/values/sql-text.ts';
import { addedColumn } from './columns.ts';
import { createIndexSql } from './indexes.ts';
import type { Column, Table } from './model.ts';

/** Something to make, by statements that are a transaction each. */
export interface AheadStep {
  readonly kind: 'column' | 'index' | 'key';
  /** Not quoted. */
  readonly table: string;
  /** Under which it is made. */
  readonly name: string;
  /** Takes no time, under a lock that keeps writers out. */
  readonly quick?: string;
  /** Takes its time next to writers, behind the quick one. */
  readonly long?: string;
}

/** Objects made ahead for one table; temporary names by final names. */
export interface TableAhead {
  readonly names: Readonly<Record<AheadStep['kind'], ReadonlyMap<string, string>>>;
  readonly steps: readonly AheadStep[];
}

/** Names of everything that is made ahead, as a regular expression of PostgreSQL. */
export const AHEAD_NAMES = '^_n[0-9a-f]{8}_';

/**
 * Tells what is to become of it: of another definition it is another thing. The name that it will have stands at the
 * end, where an error of PostgreSQL shows it.
 */
function aheadName(table: string, name: string, definition: string): string {
  const mark = createHash('sha256')
    .update(JSON.stringify([table, name, definition]))
    .digest('hex')
    .slice(0, 8);
  return `_n${mark}${name.startsWith('_') ? '' : '_'}${name}`;
}

/** The name under which an index is made ahead. */
export const aheadIndexName = (table: string, name: string, { unique, on }: { unique: boolean; on: string }): string =>
  aheadName(table, name, `${unique} ${on}`);

/** Replaces quoted names in SQL, but not in its constants. */
const renamed = (sql: string, names: ReadonlyMap<string, string>): string => {
  const quoted = new Map([...names].map(([name, hidden]) => [identifier(name), identifier(hidden)]));
  return sql.replace(/E'(?:[^'\\]|\\.)*'|'[^']*'|"[^"]*"/g, (token) => quoted.get(token) ?? token);
};

const mentions = (sql: string, names: Iterable<string>): boolean =>
  [...names].some((name) => renamed(sql, new Map([[name, ' ']])) !== sql);

/**
 * `created`: tables that the deployment makes, to which nothing can point yet. `kept`: whether an index stays as it is.
 * Columns are made ahead only for what is on them: a column alone takes no time.
 */
export function tableAhead(
  old: Table,
  table: Table,
  where: { readonly schema: string; readonly created: ReadonlySet<string>; readonly kept: (index: string) => boolean },
): TableAhead {
  const { schema } = where;
  const all = [...table.columns.values()];
  const added = all.filter(({ name }) => !old.columns.has(name));
  // A writer who does not know the column could not fill it.
  if (added.some(({ notNull }) => notNull)) return NOTHING;
  const columnNames = new Map(
    added.map((column) => [column.name, aheadName(table.name, column.name, addedColumn(column).sql)]),
  );
  // Their values come or change in the transaction: an index made before would cost more there than one made after.
  const unsettled = new Set([
    ...all.filter(({ name, type }) => old.columns.has(name) && old.columns.get(name)?.type !== type).map(nameOf),
    ...added.filter(({ field }) => field?.rollup).map(nameOf),
    ...[...table.sequences].filter(([sequence]) => !old.sequences.has(sequence)).map(([, { column }]) => column),
  ]);
  const indexes = [...table.indexes].filter(([name, { on }]) => !where.kept(name) && !mentions(on, unsettled));
  // Of a column that is there (one that comes back) the values would be held to it too early.
  const keys = [...table.foreignKeys].filter(([, { column, to }]) => columnNames.has(column) && !where.created.has(to));
  const needed = keys.length > 0 || indexes.some(([, { on }]) => mentions(on, columnNames.keys()));
  const columns = needed ? columnNames : new Map<string, string>();
  const name = `${schema}.${identifier(table.name)}`;
  const indexNames = new Map(indexes.map(([index, what]) => [index, aheadIndexName(table.name, index, what)]));
  const keyNames = new Map(keys.map(([key, { column, to }]) => [key, aheadName(table.name, key, `${column} ${to}`)]));
  const made = (kind: AheadStep['kind'], hidden: string, sql: Pick<AheadStep, 'quick' | 'long'>): AheadStep => ({
    kind,
    table: table.name,
    name: hidden,
    ...sql,
  });
  const columnStep = (column: Column): AheadStep => {
    const hidden = required(columns, column.name);
    const quick = `ALTER TABLE ${name} ADD COLUMN ${addedColumn({ ...column, name: hidden }).sql}`;
    return made('column', hidden, { quick });
  };
  const indexStep = ([index, { unique, on }]: (typeof indexes)[number]): AheadStep => {
    const hidden = required(indexNames, index);
    const wanted = { name: hidden, unique, table: table.name, on: renamed(on, columns) };
    return made('index', hidden, { long: createIndexSql(wanted, { name: hidden, schema, concurrently: true }) });
  };
  const keyStep = ([key, { column, to }]: (typeof keys)[number]): AheadStep => {
    const hidden = required(keyNames, key);
    const constraint = foreignKey(schema, columns.get(column) ?? column, to);
    return made('key', hidden, {
      quick: `ALTER TABLE ${name} ADD CONSTRAINT ${identifier(hidden)} ${constraint} NOT VALID`,
      long: `ALTER TABLE ${name} VALIDATE CONSTRAINT ${identifier(hidden)}`,
    });
  };
  return {
    names: { column: columns, index: indexNames, key: keyNames },
    steps: [
      ...added.filter((column) => columns.has(column.name)).map(columnStep),
      ...indexes.map(indexStep),
      ...keys.map(keyStep),
    ],
  };
}

const NONE: ReadonlyMap<string, string> = new Map();

/** Of tables that are made. */
export const NOTHING: TableAhead = { names: { column: NONE, index: NONE, key: NONE }, steps: [] };

const nameOf = ({ name }: Column): string => name;

/** The part of a constraint that says where a reference points. */
export const foreignKey = (schema: string, column: string, to: string): string =>
  `FOREIGN KEY (${identifier(column)}) REFERENCES ${schema}.${identifier(to)} (id) DEFERRABLE INITIALLY IMMEDIATE`;
