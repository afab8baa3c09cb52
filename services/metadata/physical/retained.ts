/**
 * Tables and columns of deleted objects and fields. They stay as long as a rollback can bring them back, and nothing
 * holds their values to anything meanwhile: no index, no foreign key, NOT NULL on no field. Deleting leads from the whole
 * table or column to such a stripped one, restoring leads back. Rollups keep no column: they are computed anew. Pure.
 * Source: docs/reference/metadata.md#deleted-objects-and-fields.
 */
import { identifier, literal } from '../../../lib/values/sql-text.ts';
import { CUSTOM_FIELD } from '../kinds/bodies/custom-field.ts';
import { CUSTOM_OBJECT } from '../kinds/bodies/custom-object.ts';
import { type Component, componentKey, isOf, type State } from '../kinds/component.ts';
import { isRollup } from '../kinds/field-attributes.ts';
import { type Column, type Model, physicalModel, type Table } from './model.ts';

/** The tables of `state` with what is kept of deleted objects and fields; `only`: of these objects. */
export function modelWithRetained(state: State, retained: State, only?: ReadonlySet<string>): Model {
  const model = new Map(physicalModel(state, only));
  for (const [name, table] of physicalModel(keptState(state, retained), only)) {
    const live = model.get(name);
    model.set(name, live ? withKeptColumns(live, table, retained) : stripped(table));
  }
  return model;
}

/** Deleted objects and stored fields, and the objects whose fields they were. */
function keptState(state: State, retained: State): State {
  const kept = new Map<string, Component>();
  for (const [key, component] of retained)
    if (isOf(component, CUSTOM_OBJECT)) kept.set(key, component);
    else if (isOf(component, CUSTOM_FIELD) && !isRollup(component.body)) {
      kept.set(key, component);
      const objectKey = componentKey(CUSTOM_OBJECT.type, component.body.object);
      const object = state.get(objectKey);
      if (object) kept.set(objectKey, object);
    }
  return kept;
}

const strippedColumn = (column: Column): Column =>
  column.field ? { ...column, notNull: false, field: { ...column.field, required: false } } : column;

const stripped = (table: Table): Table => ({
  ...table,
  columns: new Map([...table.columns].map(([name, column]) => [name, strippedColumn(column)])),
  indexes: new Map(),
  foreignKeys: new Map(),
});

function withKeptColumns(live: Table, kept: Table, retained: State): Table {
  const isKept = (column: string): boolean => retained.has(componentKey(CUSTOM_FIELD.type, `${live.name}.${column}`));
  const columns = [...kept.columns].filter(([name]) => isKept(name));
  return {
    ...live,
    columns: new Map([...live.columns, ...columns.map(([name, column]) => [name, strippedColumn(column)] as const)]),
    sequences: new Map([...live.sequences, ...[...kept.sequences].filter(([, { column }]) => isKept(column))]),
  };
}

/** Drops the table of an object or the column of a field; a sequence goes with its column. */
export function dropSql(schema: string, { type, fullName }: Pick<Component, 'type' | 'fullName'>): string {
  const [object = '', field = ''] = fullName.split('.');
  const table = `${schema}.${identifier(object)}`;
  return type === CUSTOM_OBJECT.type
    ? `DROP TABLE IF EXISTS ${table}`
    : `ALTER TABLE IF EXISTS ${table} DROP COLUMN IF EXISTS ${identifier(field)}`;
}

/** Drops what is kept without a record or a value. Of records that are gone nothing remains but their trail. */
export const makeRoomSql = (schema: string, kept: Component): string[] => [
  ...(isOf(kept, CUSTOM_OBJECT)
    ? ['_shares', '_revoked_shares'].map(
        (shares) => `DELETE FROM ${schema}.${shares} WHERE object = ${literal(kept.fullName)}`,
      )
    : []),
  dropSql(schema, kept),
];
