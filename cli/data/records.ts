/** Records as tables and as lists of their fields. */
import type { Run } from '../command.ts';
import type { Column } from '../output/table.ts';
import { valueText } from '../output/values.ts';
import type { ObjectDescription } from './objects.ts';

export type DataRecord = Readonly<Record<string, unknown>>;

/** A record of an answer, whose fields its schema leaves open. */
export const recordOf = (body: object): DataRecord => ({ ...body });

const COLUMNS_MAX = 7;
/** Values that a table has no room for. */
const UNSHOWN = new Set(['longText', 'richText', 'json', 'address', 'geolocation', 'file']);
/** The same, and references, which are shown where a list view or a layout has them. */
const LONG = new Set([...UNSHOWN, 'reference', 'masterDetail']);
const RIGHT = new Set(['integer', 'decimal', 'currency', 'percent', 'rollup']);

/**
 * Fields that a table shows when none are chosen: id, name and those it is sorted by, then the columns of the first list
 * view, or the fields of the layout; without both the state and the first short ones.
 */
export function defaultFields(description: ObjectDescription, sorted: readonly string[]): string[] {
  const { fields, nameField, listViews, layouts } = description;
  const typeOf = new Map(fields.map(({ apiName, fieldType }) => [apiName, fieldType]));
  const arranged = listViews[0]?.columns ?? layouts[0]?.sections.flatMap(({ columns }) => columns.flat()) ?? [];
  const states = fields.filter(({ stateField }) => stateField).map(({ apiName }) => apiName);
  const own = fields
    .filter(({ system, deprecated, fieldType }) => !system && !deprecated && !LONG.has(fieldType))
    .map(({ apiName }) => apiName);
  const screen = arranged.filter((name) => typeOf.has(name) && !UNSHOWN.has(typeOf.get(name) ?? ''));
  const known = sorted.filter((name) => typeOf.has(name));
  const rest = screen.length > 0 ? screen : [...states, ...own];
  return [...new Set(['id', nameField, ...known, ...rest])].slice(0, COLUMNS_MAX);
}

/** Columns for these fields. */
export const columnsOf = (names: readonly string[], description: ObjectDescription | null): Column[] =>
  names.map((name) => {
    const type = description?.fields.find(({ apiName }) => apiName === name)?.fieldType;
    return { title: name, whole: name === 'id', right: type !== undefined && RIGHT.has(type) };
  });

export const rowOf = (names: readonly string[], record: DataRecord): string[] =>
  names.map((name) => valueText(record[name]));

/** `accountId.name` for each field that `expand` names. */
export const expandedNames = (expand = ''): string[] =>
  [...expand.matchAll(/([^(),]+)\(([^()]*)\)/g)].flatMap(([, reference, fields = '']) =>
    fields.split(',').map((field) => `${reference}.${field}`),
  );

/** The record with the fields of what is expanded under names such as `accountId.name`. */
export function flattened({ _expanded: expanded, ...record }: DataRecord): DataRecord {
  const fields = Object.entries({ ...Object(expanded) }).flatMap(([reference, target]) =>
    Object.entries({ ...Object(target) }).map(([field, value]) => [`${reference}.${field}`, value]),
  );
  return { ...record, ...Object.fromEntries(fields) };
}

/** A record, a line per field. */
export function showRecord({ output }: Run, record: DataRecord): void {
  output.pairs(Object.entries(flattened(record)).map(([name, value]) => [name, valueText(value)]));
}
