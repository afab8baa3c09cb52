/** True or false, and nothing that merely looks like it. */
import { BLANK, parsed, refused } from './common.ts';
import type { FieldType } from './types.ts';

const read: FieldType['parseInput'] = (value, field, pointer) =>
  typeof value === 'boolean'
    ? parsed(value)
    : refused(field, pointer, 'FIELD_TYPE_INVALID', `${field.apiName} must be true or false.`, { expected: 'boolean' });

export const boolean: FieldType = {
  name: 'boolean',
  writable: true,
  bindType: 'boolean',
  blank: 'null',
  columnType: () => 'boolean',
  parseInput: read,
  parseFilter: read,
  operators: ['eq', 'neq', ...BLANK],
  sortable: true,
  groupable: true,
  searchable: false,
  aggregations: ['count'],
  comparison: 'value',
  fewValues: true,
  expressionType: 'boolean',
  formulaResult: true,
  controllingValues: () => ['true', 'false'],
  outputSql: (column) => column,
  jsonSchema: () => ({ type: 'boolean' }),
  attributes: ['defaultValue', 'required'],
  example: () => true,
};
