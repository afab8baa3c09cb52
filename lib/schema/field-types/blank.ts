import type { FieldMeta } from '../snapshot.ts';
import { isBlankText } from './common.ts';
import { typeOf } from './registry.ts';
import type { SqlValue } from './types.ts';

/** Whether a value, as it would be stored, is none where a field is required. */
export function isBlank(field: FieldMeta, value: SqlValue): boolean {
  if (value === null) return true;
  const { blank } = typeOf(field);
  if (blank === 'whiteSpace') return typeof value === 'string' && isBlankText(value);
  return blank === 'emptyList' && Array.isArray(value) && value.length === 0;
}
