/**
 * How duplicate rules compare the values of a field: each method has a form, an SQL expression that is equal (exact,
 * normalized) or has similar trigrams (fuzzy) for values that match. Indexes are made of the same expressions, so that
 * a check finds its candidates by index. Pure. Source: docs/reference/duplicates.md#methods.
 */
import { fieldType } from './field-types/registry.ts';
import type { FieldMeta, FieldTypeName, MatchMethod } from './snapshot.ts';

/** Characters of a text up to which an index holds it as it is. */
const INDEXED_CHARS = 400;

/** Methods by which values of a type can be compared. */
export function methodsOf(type: FieldTypeName): readonly MatchMethod[] {
  const { comparison } = fieldType(type);
  if (comparison === 'text') return ['exact', 'normalized', 'fuzzy'];
  return comparison === 'value' ? ['exact'] : [];
}

/** SQL of the form of `value`, which is SQL of the column's type; NULL for blank values. */
export function matchForm(method: MatchMethod, field: FieldMeta, value: string): string {
  if (method === 'fuzzy') return `erp.fuzzy_text(${value})`;
  if (method === 'normalized') return `${fieldType(field.fieldType).normalForm ?? 'erp.match_text'}(${value})`;
  return keyForm(field, value);
}

/**
 * SQL of what is the same for equal values of a field and for no others: what a unique index holds, and what a look-up
 * by an external id compares. Text counts without regard to case unless the field says otherwise, so that `value` must
 * have the collation of the column; a long one is hashed, for an entry of an index has 2,704 bytes at most.
 */
export function keyForm(field: FieldMeta, value: string): string {
  if (fieldType(field.fieldType).comparison !== 'text') return value;
  const key = field.caseSensitive ? value : `lower(${value})`;
  return (field.length ?? fieldLength(field)) > INDEXED_CHARS ? `md5(${key})` : key;
}

/** SQL of the class of size that `value`, SQL of a text, belongs to: a list of one. */
export const fuzzyClass = (value: string): string => `erp.fuzzy_class(${value})`;

/** SQL of the classes of all texts that can be so similar to `value`. */
export const fuzzyClasses = (value: string, similarity: string): string => `erp.fuzzy_classes(${value}, ${similarity})`;

/** The most characters of a type whose fields declare no length. */
function fieldLength(field: FieldMeta): number {
  return Number(fieldType(field.fieldType).jsonSchema(field)['maxLength']);
}
