import { isDate } from '../../values/calendar.ts';
import { BLANK, EQUALITY, ORDER, parsed, refused } from './common.ts';
import type { FieldType } from './types.ts';

const read: FieldType['parseInput'] = (value, field, pointer) => {
  if (typeof value !== 'string')
    return refused(field, pointer, 'FIELD_TYPE_INVALID', `${field.apiName} must be a date as a string.`, {
      expected: 'string',
    });
  if (!isDate(value))
    return refused(
      field,
      pointer,
      'FIELD_FORMAT_INVALID',
      `${field.apiName} must be a day of the calendar such as 2026-11-21.`,
    );
  return parsed(value);
};

/** A day of the calendar, in no time zone. */
export const date: FieldType = {
  name: 'date',
  writable: true,
  bindType: 'date',
  blank: 'null',
  columnType: () => 'date',
  parseInput: read,
  parseFilter: read,
  operators: [...EQUALITY, ...ORDER, ...BLANK],
  sortable: true,
  groupable: true,
  searchable: false,
  aggregations: ['count', 'countDistinct', 'min', 'max'],
  relativeDates: 'days',
  comparison: 'value',
  expressionType: 'date',
  formulaResult: true,
  rollup: 'order',
  outputSql: (column) => column,
  jsonSchema: () => ({ type: 'string', format: 'date' }),
  attributes: ['defaultValue', 'required'],
  example: () => '2026-11-21',
};
