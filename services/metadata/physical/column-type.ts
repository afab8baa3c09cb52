import { typeOf } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';

/** PostgreSQL type of a field's column; null when nothing is stored. */
export const columnType = (field: FieldMeta): string | null => typeOf(field).columnType(field);
