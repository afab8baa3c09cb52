import { isObject } from '../../json/objects.ts';
import { isBlankText, parsed, parseText, refused } from './common.ts';
import { json } from './json.ts';
import type { FieldType } from './types.ts';

const PARTS: readonly string[] = ['street', 'city', 'state', 'postalCode', 'country'];
const PART_MAX_CHARS = 255;

/** A postal address; each part is a text or null, and at least one is given. Absent parts are stored as null. */
export const address: FieldType = {
  ...json,
  name: 'address',
  expressionType: 'address',
  parseInput(value, field, pointer) {
    if (!isObject(value))
      return refused(field, pointer, 'FIELD_TYPE_INVALID', `${field.apiName} must be {${PARTS.join(', ')}}.`, {
        expected: 'object',
      });
    const unknown = Object.keys(value).find((key) => !PARTS.includes(key));
    if (unknown !== undefined)
      return refused(field, pointer, 'FIELD_FORMAT_INVALID', `${field.apiName} takes ${PARTS.join(', ')} only.`);
    const stored: Record<string, string | null> = {};
    for (const part of PARTS) {
      const text = Object.hasOwn(value, part) ? value[part] : null;
      if (text === null) {
        stored[part] = null;
        continue;
      }
      const result = parseText(text, field, `${pointer}/${part}`, PART_MAX_CHARS);
      if (!result.ok) return result;
      stored[part] = result.value;
    }
    if (Object.values(stored).every((text) => text === null || isBlankText(text)))
      return refused(
        field,
        pointer,
        'FIELD_FORMAT_INVALID',
        `${field.apiName} needs at least one part; null clears it.`,
      );
    return parsed(JSON.stringify(stored));
  },
  jsonSchema: () => ({
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(
      PARTS.map((part) => [part, { type: ['string', 'null'], maxLength: PART_MAX_CHARS }]),
    ),
  }),
  attributes: ['required'],
  example: () => ({
    street: 'Unter den Linden 1',
    city: 'Berlin',
    state: null,
    postalCode: '10117',
    country: 'DE',
  }),
};
