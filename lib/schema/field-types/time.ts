import { readTime } from '../../values/calendar.ts';
import { BLANK, EQUALITY, ORDER, parsed, refused } from './common.ts';
import type { FieldType } from './types.ts';

const read: FieldType['parseInput'] = (value, field, pointer) => {
  if (typeof value !== 'string')
    return refused(field, pointer, 'FIELD_TYPE_INVALID', `${field.apiName} must be a time as a string.`, {
      expected: 'string',
    });
  const time = readTime(value);
  if (time === null)
    return refused(
      field,
      pointer,
      'FIELD_FORMAT_INVALID',
      `${field.apiName} must be a time of day such as 09:30 or 09:30:15.250.`,
    );
  return parsed(time);
};

/** A time of day, in no time zone, to the millisecond. */
export const time: FieldType = {
  name: 'time',
  writable: true,
  bindType: 'time',
  blank: 'null',
  columnType: () => 'time(3)',
  parseInput: read,
  parseFilter: read,
  operators: [...EQUALITY, ...ORDER, ...BLANK],
  sortable: true,
  groupable: true,
  searchable: false,
  aggregations: ['count', 'countDistinct', 'min', 'max'],
  comparison: 'value',
  expressionType: 'time',
  outputSql: (column) => column,
  jsonSchema: () => ({ type: 'string', pattern: '^[0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,9})?)?$' }),
  attributes: ['defaultValue', 'required'],
  example: () => '09:30:00',
};
