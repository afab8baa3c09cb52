/**
 * The statements that give the values of fields another form, before everything else changes. What they change gets a new
 * version: its ETag must not stay. Pure; every name is quoted. Source: docs/reference/metadata.md#altering.
 */
import { identifier } from '../../../lib/values/sql-text.ts';
import { type Alteration, valuesSql } from '../planner/alterations.ts';
import { columnType } from './column-type.ts';
import type { Model, Table } from './model.ts';

interface Altered {
  readonly statements: string[];
  /** The tables as they are after these statements. */
  readonly model: Model;
  /** Objects whose rollups are to be computed anew: their triggers do not see a column of another type. */
  readonly converted: ReadonlySet<string>;
}

export function alteredModel(
  alterations: readonly Alteration[],
  before: Model,
  { schema, timezone }: { readonly schema: string; readonly timezone: string },
): Altered {
  const model = new Map(before);
  const statements: string[] = [];
  const converted = new Set<string>();
  for (const alteration of alterations) {
    const { object, apiName } = alteration.component.body;
    const table = model.get(object);
    const type = columnType(alteration.field);
    const column = table?.columns.get(apiName);
    if (!table || !column || type === null) continue;
    const [name, id] = [`${schema}.${identifier(object)}`, identifier(apiName)];
    const value = valuesSql(alteration, id, timezone);
    if (column.type === type) {
      statements.push(
        `UPDATE ${name} SET ${id} = ${value}, "recordVersion" = "recordVersion" + 1
          WHERE ${id} IS NOT NULL AND ${id} IS DISTINCT FROM ${value}`,
      );
      continue;
    }
    const indexes = [...table.indexes].filter(([, { on }]) => on.includes(id));
    statements.push(
      ...indexes.map(([index]) => `DROP INDEX IF EXISTS ${schema}.${identifier(index)}`),
      `UPDATE ${name} SET "recordVersion" = "recordVersion" + 1 WHERE ${id} IS NOT NULL`,
      `ALTER TABLE ${name} ALTER COLUMN ${id} TYPE ${type} USING ${value}`,
    );
    converted.add(object);
    model.set(object, retyped(table, apiName, type));
  }
  return { statements, model, converted };
}

function retyped(table: Table, name: string, type: string): Table {
  const columns = [...table.columns].map(
    ([key, column]) => [key, key === name ? { ...column, type } : column] as const,
  );
  const indexes = [...table.indexes].filter(([, { on }]) => !on.includes(identifier(name)));
  return { ...table, columns: new Map(columns), indexes: new Map(indexes) };
}
