import { readInstant } from '../../values/calendar.ts';
import { BLANK, EQUALITY, ORDER, parsed, refused } from './common.ts';
import type { FieldType } from './types.ts';

const read: FieldType['parseInput'] = (value, field, pointer) => {
  if (typeof value !== 'string')
    return refused(field, pointer, 'FIELD_TYPE_INVALID', `${field.apiName} must be a date-time as a string.`, {
      expected: 'string',
    });
  const instant = readInstant(value);
  if (instant === null)
    return refused(
      field,
      pointer,
      'FIELD_FORMAT_INVALID',
      `${field.apiName} must be a date-time with offset such as 2026-11-21T09:30:00Z (RFC 3339).`,
    );
  return parsed(new Date(instant).toISOString());
};

/** A moment in time, kept in UTC to the millisecond. RFC 3339. */
export const dateTime: FieldType = {
  name: 'dateTime',
  writable: true,
  bindType: 'timestamptz',
  blank: 'null',
  columnType: () => 'timestamptz(3)',
  parseInput: read,
  parseFilter: read,
  operators: [...EQUALITY, ...ORDER, ...BLANK],
  sortable: true,
  groupable: true,
  searchable: false,
  aggregations: ['count', 'countDistinct', 'min', 'max'],
  relativeDates: 'moments',
  comparison: 'value',
  expressionType: 'dateTime',
  formulaResult: true,
  rollup: 'order',
  outputSql: (column) => column,
  jsonSchema: () => ({ type: 'string', format: 'date-time' }),
  attributes: ['defaultValue', 'required'],
  example: () => '2026-11-21T09:30:00+00:00',
};
