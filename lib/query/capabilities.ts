/** Query capabilities of a field, shared by the planner and describe. */
import type { ObjectAccess } from '../access/types.ts';
import { changesWithTime } from '../expression/formulas.ts';
import { typeOf } from '../schema/field-types/registry.ts';
import type { Aggregation, Operator } from '../schema/field-types/types.ts';
import type { FieldMeta } from '../schema/snapshot.ts';
import { GRANULARITIES, type Granularity } from './types.ts';

/** Longer texts are not sorted by: an index entry holds no more than 2,700 bytes, and a cursor carries the value. */
const SORTABLE_CHARS_MAX = 1_000;

export const operatorsFor = (field: FieldMeta): readonly Operator[] => typeOf(field).operators;

export const filterable = (field: FieldMeta): boolean => operatorsFor(field).length > 0;

export const sortable = (field: FieldMeta): boolean =>
  typeOf(field).sortable && (field.length ?? 0) <= SORTABLE_CHARS_MAX && !changesWithTime(field);

/** Long texts are not grouped by either: an answer may have thousands of them. */
export const groupable = (field: FieldMeta): boolean =>
  typeOf(field).groupable && (field.length ?? 0) <= SORTABLE_CHARS_MAX && !changesWithTime(field);

export const aggregationsOf = (field: FieldMeta): readonly Aggregation[] => typeOf(field).aggregations;

/** The periods that its values can be grouped into. */
export const granularitiesOf = (field: FieldMeta): readonly Granularity[] =>
  groupable(field) && typeOf(field).relativeDates ? GRANULARITIES : [];

export const searchable = (field: FieldMeta): boolean => typeOf(field).searchable;

/**
 * Fields of a search without searchFields: of the object's default fields those that the user reads, else the
 * name.
 */
export function searchedByDefault({ object, fields }: ObjectAccess): readonly FieldMeta[] {
  const readable = (name: string): FieldMeta[] => {
    const field = fields[name]?.read ? object.fields[name] : undefined;
    return field && searchable(field) ? [field] : [];
  };
  const named = object.defaultSearchFields.flatMap(readable);
  return named.length > 0 ? named : readable(object.nameField);
}
