/** Exact decimals: amounts, quantities, rates. Numbers or strings in JSON, never rounded. */

import { compareDecimals, type Decimal, decimalText, readDecimal, wholeDigits } from '../../values/decimal-text.ts';
import { BLANK, EQUALITY, ORDER, parsed, refused } from './common.ts';
import type { FieldAttributes, FieldType, Parsed } from './types.ts';

const PRECISION_DEFAULT = 18;
const SCALE_DEFAULT = 2;

const precisionOf = (field: FieldAttributes): number => field.precision ?? PRECISION_DEFAULT;
const scaleOf = (field: FieldAttributes): number => field.scale ?? Math.min(SCALE_DEFAULT, precisionOf(field));

/** A type that a field is declared with; `becomes` names the others, for all hold the same values. */
export const decimalType = (
  name: string,
  options: {
    attributes?: FieldType['attributes'];
    digits?: FieldType['digits'];
    becomes: readonly string[];
    example: unknown;
  },
): FieldType => ({
  ...decimalValues(name, options),
  comparison: 'value',
  formulaResult: true,
  rollup: 'numbers',
  digits: options.digits ?? { precision: PRECISION_DEFAULT, scale: SCALE_DEFAULT },
  becomes: options.becomes,
});

/** The violation of a number with too many digits, or beyond the bounds of its field; null: it fits. */
function outOfRange(decimal: Decimal, field: FieldAttributes, pointer: string): Parsed | null {
  const [precision, scale] = [precisionOf(field), scaleOf(field)];
  if (decimal.scale > scale)
    return refused(field, pointer, 'FIELD_OUT_OF_RANGE', `${field.apiName} takes at most ${scale} decimals.`, {
      precision,
      scale,
    });
  if (wholeDigits(decimal) > precision - scale)
    return refused(
      field,
      pointer,
      'FIELD_OUT_OF_RANGE',
      `${field.apiName} takes at most ${precision - scale} digits before the decimal point.`,
      { precision, scale },
    );
  for (const [bound, sign] of [
    [field.minimum, -1],
    [field.maximum, 1],
  ] as const) {
    const limit = bound === null ? null : readDecimal(bound);
    if (limit && compareDecimals(decimal, limit) * sign > 0)
      return refused(
        field,
        pointer,
        'FIELD_OUT_OF_RANGE',
        `${field.apiName} must be ${sign < 0 ? 'at least' : 'at most'} ${bound}.`,
        { minimum: field.minimum, maximum: field.maximum },
      );
  }
  return null;
}

/** Common to all types that hold decimals, calculated ones included. */
export function decimalValues(
  name: string,
  options: { attributes?: FieldType['attributes']; example: unknown },
): FieldType {
  return {
    name,
    expressionType: 'number',
    writable: true,
    bindType: 'numeric',
    blank: 'null',
    columnType: (field) => `numeric(${precisionOf(field)},${scaleOf(field)})`,
    parseInput(value, field, pointer) {
      const decimal = readDecimal(value);
      if (!decimal)
        return refused(field, pointer, 'FIELD_TYPE_INVALID', `${field.apiName} must be a number, or one as a string.`, {
          expected: 'number',
        });
      const violation = outOfRange(decimal, field, pointer);
      if (violation) return violation;
      return parsed(decimalText(decimal));
    },
    parseFilter(value, field, pointer) {
      const decimal = readDecimal(value);
      if (decimal) return parsed(decimalText(decimal));
      return refused(field, pointer, 'FIELD_TYPE_INVALID', `${field.apiName} is compared with a number.`, {
        expected: 'number',
      });
    },
    operators: [...EQUALITY, ...ORDER, ...BLANK],
    sortable: true,
    groupable: false,
    searchable: false,
    aggregations: ['count', 'countDistinct', 'sum', 'avg', 'min', 'max'],
    outputSql: (column, _field, ieee754Compatible) => (ieee754Compatible ? `${column}::text` : column),
    jsonSchema: (field) => ({
      type: ['number', 'string'],
      pattern: '^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?$',
      ...(field.minimum === null ? {} : { minimum: field.minimum }),
      ...(field.maximum === null ? {} : { maximum: field.maximum }),
    }),
    attributes: [
      'precision',
      'scale',
      'minimum',
      'maximum',
      'unique',
      'defaultValue',
      'required',
      ...(options.attributes ?? []),
    ],
    example: () => options.example,
  };
}
