import { BLANK, EQUALITY, ORDER, parsed, refused } from './common.ts';
import type { FieldType } from './types.ts';

const DURATION =
  /^P(?=\d|T\d)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.\d{1,6})?S)?)?$/;
/** Digits that each part may have, so that the sum always fits into PostgreSQL's interval. */
const DIGITS_MAX = [4, 6, 6, 7, 8, 9, 9];

const read: FieldType['parseInput'] = (value, field, pointer) => {
  if (typeof value !== 'string')
    return refused(field, pointer, 'FIELD_TYPE_INVALID', `${field.apiName} must be a duration as a string.`, {
      expected: 'string',
    });
  const match = value.length > 100 ? null : DURATION.exec(value);
  if (!match)
    return refused(
      field,
      pointer,
      'FIELD_FORMAT_INVALID',
      `${field.apiName} must be an ISO 8601 duration such as P3D or PT1H30M.`,
    );
  if (DIGITS_MAX.some((max, index) => (match[index + 1] ?? '').length > max))
    return refused(field, pointer, 'FIELD_OUT_OF_RANGE', `${field.apiName} is longer than 10,000 years.`);
  return parsed(value);
};

/**
 * A length of time, never negative. ISO 8601; weeks come back as days. Months and days stay apart (a month has no fixed
 * number of days); compared, a month counts 30 days and a day 24 hours.
 */
export const duration: FieldType = {
  name: 'duration',
  writable: true,
  bindType: 'interval',
  blank: 'null',
  columnType: () => 'interval',
  parseInput: read,
  parseFilter: read,
  operators: [...EQUALITY, ...ORDER, ...BLANK],
  sortable: true,
  groupable: false,
  searchable: false,
  aggregations: ['count', 'sum', 'avg', 'min', 'max'],
  outputSql: (column) => column,
  jsonSchema: () => ({ type: 'string', format: 'duration' }),
  attributes: ['defaultValue', 'required'],
  example: () => 'PT1H30M',
};
