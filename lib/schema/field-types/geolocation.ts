import { violation } from '../../errors/platform-error.ts';
import { isObject } from '../../json/objects.ts';
import { compareDecimals, decimalText, readDecimal } from '../../values/decimal-text.ts';
import { BLANK, parsed, refused } from './common.ts';
import { json } from './json.ts';
import type { FieldType } from './types.ts';

const LIMITS = { latitude: 90, longitude: 180 } as const;

/** A point on the earth: `{latitude, longitude}` in degrees (WGS 84). */
export const geolocation: FieldType = {
  ...json,
  name: 'geolocation',
  expressionType: 'geolocation',
  parseInput(value, field, pointer) {
    if (!isObject(value))
      return refused(field, pointer, 'FIELD_TYPE_INVALID', `${field.apiName} must be {latitude, longitude}.`, {
        expected: 'object',
      });
    const unknown = Object.keys(value).find((key) => !Object.hasOwn(LIMITS, key));
    if (unknown !== undefined)
      return refused(field, pointer, 'FIELD_FORMAT_INVALID', `${field.apiName} takes latitude and longitude only.`);
    const parts: string[] = [];
    for (const [part, max] of Object.entries(LIMITS)) {
      const number = typeof value[part] === 'string' ? null : readDecimal(value[part]);
      const at = `${pointer}/${part}`;
      if (!number)
        return {
          ok: false,
          violation: violation(at, 'FIELD_TYPE_INVALID', `${part} must be a number.`, {
            field: field.apiName,
            params: { expected: 'number' },
          }),
        };
      const limit = readDecimal(max)!;
      if (compareDecimals({ ...number, negative: false }, limit) > 0)
        return refused(field, at, 'FIELD_OUT_OF_RANGE', `${part} must lie between -${max} and ${max}.`, {
          minimum: -max,
          maximum: max,
        });
      parts.push(`"${part}":${decimalText(number)}`);
    }
    return parsed(`{${parts.join(',')}}`);
  },
  operators: BLANK,
  jsonSchema: () => ({
    type: 'object',
    required: ['latitude', 'longitude'],
    additionalProperties: false,
    properties: {
      latitude: { type: 'number', minimum: -90, maximum: 90 },
      longitude: { type: 'number', minimum: -180, maximum: 180 },
    },
  }),
  attributes: ['required'],
  example: () => ({ latitude: 52.520008, longitude: 13.404954 }),
};
