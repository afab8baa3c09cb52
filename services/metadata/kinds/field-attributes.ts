/** Attributes of CustomField whose rules depend on the field type. */
import { FIELD_TYPES, fieldType, isMasterDetail } from '../../../lib/schema/field-types/registry.ts';
import type { FieldType } from '../../../lib/schema/field-types/types.ts';
import type { FieldBody, FormulaBody, RollupBody } from './bodies/custom-field.ts';

/** Attributes that only some field types have. */
export const TYPED_ATTRIBUTES: readonly string[] = [...new Set(FIELD_TYPES.flatMap((type) => type.attributes))].filter(
  (name) => name !== 'controllingField',
);

/** Precision and scale as a field declares them, or as its type has them; null: its values have no digits. */
export function digitsOf(
  { digits }: FieldType,
  declared: Pick<FieldBody, 'precision' | 'scale'>,
): { readonly precision: number; readonly scale: number } | null {
  if (!digits) return null;
  const precision = declared.precision ?? digits.precision;
  return { precision, scale: declared.scale ?? Math.min(digits.scale, precision) };
}

/** Its value is computed by the formula that it declares. */
export const isFormula = (body: FieldBody): body is FieldBody & { formula: FormulaBody } =>
  fieldType(body.fieldType).calculated === 'formula' && body.formula !== undefined;

/** Its value is computed over child records by the rollup that it declares. */
export const isRollup = (body: FieldBody): body is FieldBody & { rollup: RollupBody } =>
  fieldType(body.fieldType).calculated === 'rollup' && body.rollup !== undefined;

/** A required reference cannot be emptied, so its default is to keep the record it points to. */
export function onDelete(body: FieldBody): 'setNull' | 'restrict' | 'cascade' {
  if (body.onDelete) return body.onDelete;
  if (isMasterDetail(body)) return 'cascade';
  return body.required ? 'restrict' : 'setNull';
}
