/** Fields that hold the id of a record. */
import { isUuid } from '../../values/ids.ts';
import { BLANK, EQUALITY, parsed, refused } from './common.ts';
import type { FieldAttributes, FieldType, Parsed } from './types.ts';

/**
 * The other form in which a body may name the referred record, `{externalIdField: value}`: the writer looks the record
 * up before the value reaches `parseInput`. Null when the value is not of this form.
 */
export function externalReference(value: unknown): { readonly field: string; readonly value: unknown } | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const [entry, ...others] = Object.entries(value);
  return entry && others.length === 0 ? { field: entry[0], value: entry[1] } : null;
}

/** Characters of an id. */
export const ID_CHARS = 36;

/** UUID in lower case, from either case. */
function parseId(value: unknown, field: FieldAttributes, pointer: string): Parsed {
  if (typeof value !== 'string')
    return refused(field, pointer, 'FIELD_TYPE_INVALID', `${field.apiName} must be the id of a record.`, {
      expected: 'string',
    });
  const id = value.length === ID_CHARS ? value.toLowerCase() : value;
  if (!isUuid(id))
    return refused(field, pointer, 'FIELD_FORMAT_INVALID', `${field.apiName} must be the id of a record (a UUID).`);
  return parsed(id);
}

export function referenceType(name: string, attributes: FieldType['attributes']): FieldType {
  return {
    name,
    writable: true,
    bindType: 'uuid',
    blank: 'null',
    columnType: () => 'uuid',
    parseInput: parseId,
    parseFilter: parseId,
    operators: [...EQUALITY, ...BLANK, 'in_related'],
    sortable: true,
    groupable: true,
    searchable: false,
    aggregations: ['count', 'countDistinct'],
    expressionType: 'text',
    outputSql: (column) => column,
    jsonSchema: () => ({ type: 'string', format: 'uuid' }),
    attributes,
    example: () => '0193a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b',
  };
}
