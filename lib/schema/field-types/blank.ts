import type { FieldMeta } from '../snapshot.ts';
import { isBlankText } from './common.ts';
import { typeOf } from './registry.ts';
import type { SqlValue } from './types.ts';

/** True when a value, as it would be stored, does not satisfy a required field. */
export function isBlank(field: FieldMeta, value: SqlValue): boolean {
  if (value === null) return true;
  const { blank } = typeOf(field);
  if (blank === 'whiteSpace') return typeof value === 'string' && isBlankText(value);
  return blank === 'emptyList' && Array.isArray(value) && value.length === 0;
}
