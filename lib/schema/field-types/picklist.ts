import { BLANK, EQUALITY, parsed, parseText, refused, TEXT_COLLATION } from './common.ts';
import type { FieldAttributes, FieldType, Parsed } from './types.ts';

export const PICKLIST_VALUE_MAX_CHARS = 255;

/** One value of a picklist; a restricted one takes its active values only. */
export function parsePicklistValue(value: unknown, field: FieldAttributes, pointer: string): Parsed<string> {
  const result = parseText(value, field, pointer, PICKLIST_VALUE_MAX_CHARS);
  if (!result.ok || !field.restrictedPicklist) return result;
  if (field.picklistValues?.some((option) => option.active && option.value === result.value)) return result;
  return refused(field, pointer, 'PICKLIST_VALUE_INVALID', `${field.apiName} does not take this value.`, {
    allowed: (field.picklistValues ?? []).filter((option) => option.active).map((option) => option.value),
  });
}

/** A choice: the stored value, not its label. */
export const picklist: FieldType = {
  name: 'picklist',
  writable: true,
  bindType: 'text',
  blank: 'whiteSpace',
  columnType: () => `text COLLATE "${TEXT_COLLATION}"`,
  parseInput: (value, field, pointer) => {
    const result = parsePicklistValue(value, field, pointer);
    return result.ok ? parsed(result.value) : result;
  },
  // Not held to the list: records may still carry a value that was taken from it.
  parseFilter: (value, field, pointer) => parseText(value, field, pointer, PICKLIST_VALUE_MAX_CHARS),
  operators: [...EQUALITY, ...BLANK],
  sortable: true,
  groupable: true,
  searchable: false,
  aggregations: ['count', 'countDistinct'],
  choices: 'one',
  comparison: 'value',
  fewValues: true,
  expressionType: 'text',
  maxChars: PICKLIST_VALUE_MAX_CHARS,
  needs: ['picklist'],
  controllingValues: (field) =>
    field.restrictedPicklist && field.picklistValues ? field.picklistValues.map((option) => option.value) : null,
  holdsCurrencyCode: true,
  outputSql: (column) => column,
  jsonSchema: (field) =>
    field.restrictedPicklist
      ? { type: 'string', enum: (field.picklistValues ?? []).filter((o) => o.active).map((o) => o.value) }
      : { type: 'string', maxLength: PICKLIST_VALUE_MAX_CHARS },
  attributes: ['picklist', 'controllingField', 'defaultValue', 'required'],
  example: (field) => field.picklistValues?.find((option) => option.active)?.value ?? 'draft',
};
