import { decimalText, readDecimal } from '../../values/decimal-text.ts';
import { BLANK, EQUALITY, ORDER, parsed, refused } from './common.ts';
import type { FieldType, Parsed } from './types.ts';

const MAX = Number.MAX_SAFE_INTEGER;

function read(value: unknown, field: Parameters<FieldType['parseInput']>[1], pointer: string): Parsed<number> {
  const decimal = readDecimal(value);
  if (!decimal || decimal.scale > 0)
    return refused(field, pointer, 'FIELD_TYPE_INVALID', `${field.apiName} must be an integer.`, {
      expected: 'integer',
    });
  const text = decimalText(decimal);
  if (!Number.isSafeInteger(Number(text)))
    return refused(field, pointer, 'FIELD_OUT_OF_RANGE', `${field.apiName} must lie between ${-MAX} and ${MAX}.`, {
      minimum: -MAX,
      maximum: MAX,
    });
  return parsed(Number(text));
}

/** A whole number that every JSON reader holds exactly: ±(2^53 − 1). */
export const integer: FieldType = {
  name: 'integer',
  writable: true,
  bindType: 'bigint',
  blank: 'null',
  columnType: () => 'bigint',
  parseInput(value, field, pointer) {
    const result = read(value, field, pointer);
    if (!result.ok) return result;
    const number = result.value;
    const [minimum, maximum] = [field.minimum ?? -MAX, field.maximum ?? MAX];
    if (number < minimum || number > maximum)
      return refused(
        field,
        pointer,
        'FIELD_OUT_OF_RANGE',
        `${field.apiName} must lie between ${minimum} and ${maximum}.`,
        {
          minimum,
          maximum,
        },
      );
    return result;
  },
  parseFilter: read,
  operators: [...EQUALITY, ...ORDER, ...BLANK],
  sortable: true,
  groupable: true,
  searchable: false,
  aggregations: ['count', 'countDistinct', 'sum', 'avg', 'min', 'max'],
  comparison: 'value',
  expressionType: 'number',
  formulaResult: true,
  rollup: 'numbers',
  outputSql: (column) => column,
  jsonSchema: (field) => ({ type: 'integer', minimum: field.minimum ?? -MAX, maximum: field.maximum ?? MAX }),
  attributes: ['minimum', 'maximum', 'unique', 'externalId', 'defaultValue', 'required'],
  example: () => 12,
};
