/** What can be asked of a field: the one answer for the planner and for describe. */
import { typeOf } from '../field-types/registry.ts';
import type { Operator } from '../field-types/types.ts';
import { movesOn } from '../formulas.ts';
import type { FieldMeta } from '../snapshot/types.ts';

/** Longer texts are not sorted by: an index entry holds no more than 2,700 bytes, and a cursor carries the value. */
const SORTABLE_CHARS_MAX = 1_000;

export const operatorsFor = (field: FieldMeta): readonly Operator[] => typeOf(field).operators;

export const filterable = (field: FieldMeta): boolean => operatorsFor(field).length > 0;

export const sortable = (field: FieldMeta): boolean =>
  typeOf(field).sortable && (field.length ?? 0) <= SORTABLE_CHARS_MAX && !movesOn(field);

export const searchable = (field: FieldMeta): boolean => typeOf(field).searchable;
