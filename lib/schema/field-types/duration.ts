import { BLANK, EQUALITY, ORDER, parsed, refused } from './common.ts';
import type { FieldType } from './types.ts';

const DURATION =
  /^P(?=\d|T\d)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.\d{1,6})?S)?)?$/;
/** 10,000 years, for each of the three parts that PostgreSQL keeps apart: months, days, and hours with all below. */
const MONTHS_MAX = 120_000;
const DAYS_MAX = 3_660_000;
const SECONDS_MAX = DAYS_MAX * 86_400;

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
  const part = (index: number): number => Number(match[index] ?? 0);
  if (
    part(1) * 12 + part(2) > MONTHS_MAX ||
    part(3) * 7 + part(4) > DAYS_MAX ||
    part(5) * 3600 + part(6) * 60 + part(7) > SECONDS_MAX
  )
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
  needsTextComparison: true,
  columnType: () => 'interval',
  parseInput: read,
  parseFilter: read,
  operators: [...EQUALITY, ...ORDER, ...BLANK],
  sortable: true,
  groupable: false,
  searchable: false,
  aggregations: ['count', 'sum', 'avg', 'min', 'max'],
  comparison: 'value',
  expressionType: 'opaque',
  outputSql: (column) => column,
  jsonSchema: () => ({ type: 'string', format: 'duration' }),
  attributes: ['defaultValue', 'required'],
  example: () => 'PT1H30M',
};
