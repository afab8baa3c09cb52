/** How columns are made, and what fills them for the records that are there. Pure. */
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import { emptyRollup } from '../../../lib/schema/rollups.ts';
import { identifier, literal } from '../../../lib/values/sql-text.ts';
import type { Column } from './model.ts';

/**
 * SQL of the value that existing records get when a field becomes required: its default, as the column holds it; null
 * when it has none.
 */
export function fillValue(column: Column): string | null {
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

export const columnDefinition = (column: Column): string =>
  `${identifier(column.name)} ${column.type}${column.notNull ? ' NOT NULL' : ''}${column.name === 'recordVersion' ? ' DEFAULT 1' : ''}`;

/**
 * A column of a table that is there. The default fills its rows without rewriting the table, and goes afterwards: new
 * records get theirs from the data service.
 */
export function addedColumn(column: Column): { readonly sql: string; readonly filled: boolean } {
  const fill = fillValue(column);
  return { sql: `${columnDefinition(column)}${fill === null ? '' : ` DEFAULT ${fill}`}`, filled: fill !== null };
}
