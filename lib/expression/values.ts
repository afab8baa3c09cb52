/** Between the fields of a record and the values of an expression. */

import { isObject } from '../json/objects.ts';
import { parseJson } from '../json/parse.ts';
import { fieldType, valueTypeName } from '../schema/field-types/registry.ts';
import type { ValueType } from '../schema/field-types/types.ts';
import { fieldOf } from '../schema/lookup.ts';
import type { FieldTypeName, ObjectMeta } from '../schema/snapshot.ts';
import { readInstant, readTime } from '../values/calendar.ts';
import { exactOf } from '../values/decimal.ts';
import type { Schema, Type, Value } from './types.ts';

/** The type that a field's value has in an expression; null: it cannot be used in one. */
export const typeOfField = (name: FieldTypeName): ValueType | null => fieldType(name).expressionType;

/** The same of a field that an expression may read, or be the formula of. */
export function requireTypeOfField(name: FieldTypeName): ValueType {
  const type = typeOfField(name);
  if (type === null) throw new Error(`Assertion failed: no expression reads a field of type ${name}`);
  return type;
}

/** Schema for checking expressions over records of an object. */
export const schemaOfObject = (object: Pick<ObjectMeta, 'apiName' | 'fields'>): Schema => ({
  object: object.apiName,
  fieldType: (name) => {
    const field = fieldOf(object, name);
    return field && valueTypeName(field);
  },
});

/**
 * A field's value for an expression, from what a write is about to store or from the JSON of what is stored (decimals
 * as text there, so that no digit is lost).
 */
export const valueOfField = (name: FieldTypeName, raw: unknown): Value => valueOfType(typeOfField(name), raw);

const JSON_DEPTH_MAX = 40;

/** A value of a record or a body, as the value of a type. */
export function valueOfType(type: Type | null, raw: unknown): Value {
  if (raw === null || raw === undefined) return null;
  switch (type) {
    case 'number':
      return exactOf(raw);
    case 'boolean':
      return raw === true;
    case 'dateTime': {
      const ms = readInstant(String(raw));
      return ms === null ? null : { ms };
    }
    case 'time':
      return readTime(String(raw));
    case 'list:text':
      return Array.isArray(raw) ? raw.map(String) : null;
    case 'address':
    case 'geolocation': {
      const parts = typeof raw === 'string' ? parseJson(raw, JSON_DEPTH_MAX) : raw;
      if (!isObject(parts)) return null;
      return Object.fromEntries(
        Object.entries(parts).map(([part, value]) => [part, typeof value === 'string' ? value : exactOf(value)]),
      );
    }
    case 'opaque':
      return true;
    default:
      return String(raw);
  }
}
