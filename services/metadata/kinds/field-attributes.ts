/** What the schema of CustomField leaves to the field type. */
import { FIELD_TYPES } from '../../../lib/schema/field-types/registry.ts';
import type { FieldTypeName } from '../../../lib/schema/snapshot.ts';

/** Attributes without which a field of the type makes no sense. */
export const NEEDED: Readonly<Partial<Record<FieldTypeName, readonly string[]>>> = {
  picklist: ['picklist'],
  multiPicklist: ['picklist'],
  reference: ['referenceTo'],
  masterDetail: ['referenceTo'],
  autoNumber: ['format'],
  formula: ['formula'],
  rollup: ['rollup'],
};

/** Attributes that only some field types have. */
export const TYPED_ATTRIBUTES: readonly string[] = [...new Set(FIELD_TYPES.flatMap((type) => type.attributes))].filter(
  (name) => name !== 'controllingField',
);

export const DECIMAL_DEFAULTS: Readonly<Record<string, { precision: number; scale: number }>> = {
  decimal: { precision: 18, scale: 2 },
  currency: { precision: 18, scale: 2 },
  percent: { precision: 9, scale: 4 },
};

export const LENGTH_DEFAULTS: Readonly<Record<string, { length: number; max: number }>> = {
  text: { length: 255, max: 4_000 },
  longText: { length: 32_768, max: 131_072 },
  richText: { length: 131_072, max: 131_072 },
};
