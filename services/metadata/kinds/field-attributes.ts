/** What the schema of CustomField leaves to the field type. */
import { FIELD_TYPES, type FieldTypeName, fieldType } from '../../../lib/schema/field-types/registry.ts';
import type { FieldType } from '../../../lib/schema/field-types/types.ts';

/** Attributes that only some field types have. */
export const TYPED_ATTRIBUTES: readonly string[] = [...new Set(FIELD_TYPES.flatMap((type) => type.attributes))].filter(
  (name) => name !== 'controllingField',
);

/** The field type of a CustomField. */
export const fieldTypeOf = ({ body }: { readonly body: { readonly [key: string]: unknown } }): FieldType =>
  fieldType(body['fieldType'] as FieldTypeName);

/** Precision and scale of a field as it declares them, or as its type has them; null: its values have no digits. */
export function digitsOf(
  { digits }: FieldType,
  declared: { readonly [key: string]: unknown },
): { readonly precision: number; readonly scale: number } | null {
  if (!digits) return null;
  const precision = Number(declared['precision'] ?? digits.precision);
  return { precision, scale: Number(declared['scale'] ?? Math.min(digits.scale, precision)) };
}

/** Its value is computed by the formula that it declares. */
export const isFormula = (field: Parameters<typeof fieldTypeOf>[0]): boolean =>
  fieldTypeOf(field).calculated === 'formula' && field.body['formula'] !== undefined;

/** Its value is computed over child records by the rollup that it declares. */
export const isRollup = (field: Parameters<typeof fieldTypeOf>[0]): boolean =>
  fieldTypeOf(field).calculated === 'rollup' && field.body['rollup'] !== undefined;
