import { BLANK, parsed, parseText, refused } from './common.ts';
import { PICKLIST_VALUE_MAX_CHARS, parsePicklistValue } from './picklist.ts';
import type { FieldType } from './types.ts';

const VALUES_MAX = 200;

/**
 * A list of different choices, in the order given. In filters, `eq` compares it as a set with a list, `contains` asks
 * for one value in it, `in` for any of the given values; `neq`, `not_contains` and `not_in` are their opposites.
 */
export const multiPicklist: FieldType = {
  name: 'multiPicklist',
  writable: true,
  bindType: 'text[]',
  blank: 'emptyList',
  columnType: () => 'text[]',
  parseInput(value, field, pointer) {
    if (!Array.isArray(value))
      return refused(field, pointer, 'FIELD_TYPE_INVALID', `${field.apiName} must be a list of strings.`, {
        expected: 'array',
      });
    if (value.length > VALUES_MAX)
      return refused(field, pointer, 'FIELD_TOO_LONG', `${field.apiName} takes at most ${VALUES_MAX} values.`, {
        max: VALUES_MAX,
      });
    const values: string[] = [];
    for (const [index, item] of value.entries()) {
      const result = parsePicklistValue(item, field, `${pointer}/${index}`);
      if (!result.ok) return result;
      if (values.includes(result.value))
        return refused(
          field,
          `${pointer}/${index}`,
          'PICKLIST_VALUE_INVALID',
          `${field.apiName} takes each value once.`,
        );
      values.push(result.value);
    }
    return parsed(values);
  },
  /** One value; the planner reads the lists of `eq` and `in` item by item. */
  parseFilter: (value, field, pointer) => parseText(value, field, pointer, PICKLIST_VALUE_MAX_CHARS),
  operators: ['eq', 'neq', 'contains', 'not_contains', 'in', 'not_in', ...BLANK],
  sortable: false,
  groupable: false,
  searchable: false,
  aggregations: ['count'],
  choices: 'many',
  expressionType: 'list:text',
  maxChars: PICKLIST_VALUE_MAX_CHARS,
  needs: ['picklist'],
  outputSql: (column) => column,
  jsonSchema: (field) => ({
    type: 'array',
    uniqueItems: true,
    maxItems: VALUES_MAX,
    items: field.restrictedPicklist
      ? { type: 'string', enum: (field.picklistValues ?? []).filter((o) => o.active).map((o) => o.value) }
      : { type: 'string', maxLength: PICKLIST_VALUE_MAX_CHARS },
  }),
  attributes: ['picklist', 'defaultValue', 'required'],
  example: (field) =>
    (field.picklistValues ?? [])
      .filter((option) => option.active)
      .slice(0, 2)
      .map((o) => o.value),
};
