/**
 * The list of field types, in the order in which documents list them. A new type is a file of its own and a line here.
 */
import { address } from './address.ts';
import { autoNumber } from './autoNumber.ts';
import { boolean } from './boolean.ts';
import { currency } from './currency.ts';
import { date } from './date.ts';
import { dateTime } from './dateTime.ts';
import { decimal } from './decimal.ts';
import { duration } from './duration.ts';
import { email } from './email.ts';
import { file } from './file.ts';
import { formula } from './formula.ts';
import { geolocation } from './geolocation.ts';
import { id } from './id.ts';
import { integer } from './integer.ts';
import { json } from './json.ts';
import { longText } from './longText.ts';
import { masterDetail } from './masterDetail.ts';
import { multiPicklist } from './multiPicklist.ts';
import { percent } from './percent.ts';
import { phone } from './phone.ts';
import { picklist } from './picklist.ts';
import { reference } from './reference.ts';
import { richText } from './richText.ts';
import { rollup } from './rollup.ts';
import { text } from './text.ts';
import { time } from './time.ts';
import type { FieldType } from './types.ts';
import { url } from './url.ts';

const TYPES = {
  id,
  text,
  longText,
  richText,
  integer,
  decimal,
  currency,
  percent,
  boolean,
  date,
  dateTime,
  time,
  duration,
  picklist,
  multiPicklist,
  reference,
  masterDetail,
  email,
  phone,
  url,
  autoNumber,
  formula,
  rollup,
  geolocation,
  address,
  file,
  json,
} satisfies Readonly<Record<string, FieldType>>;

export type FieldTypeName = keyof typeof TYPES;

/** In the order in which documents list them. */
export const FIELD_TYPES: readonly FieldType[] = Object.values(TYPES);

const isFieldTypeName = (name: string): name is FieldTypeName => Object.hasOwn(TYPES, name);

export const FIELD_TYPE_NAMES: readonly FieldTypeName[] = Object.keys(TYPES).filter(isFieldTypeName);

/** Names of the types for which `has` is true. */
export const namesOfTypes = (has: (type: FieldType) => boolean): FieldTypeName[] =>
  FIELD_TYPE_NAMES.filter((name) => has(TYPES[name]));

export const fieldType = (name: FieldTypeName): FieldType => TYPES[name];

/** A field's properties that determine its type; for a calculated field also the type of its values. */
interface TypedField {
  readonly fieldType: FieldTypeName;
  readonly formula: { readonly resultType: FieldTypeName } | null;
  readonly rollup: { readonly resultType: FieldTypeName } | null;
}

/** Name of the type that the values of a field have: of a calculated field, that of its result. */
export const valueTypeName = (field: TypedField): FieldTypeName =>
  field.rollup?.resultType ?? field.formula?.resultType ?? field.fieldType;

/**
 * The type that the values of a field have: a calculated field is compared, sorted and answered like a field of its
 * result's type, and read-only.
 */
export function typeOf(field: TypedField): FieldType {
  const result = valueTypeName(field);
  if (result === field.fieldType) return TYPES[result];
  const key = `${field.fieldType} ${result}`;
  let type = calculatedTypes.get(key);
  if (!type) {
    const own = fieldType(field.fieldType);
    const { name, writable, parseInput, attributes, searchable } = own;
    // Of a formula nothing is stored.
    const columnType = field.rollup ? TYPES[result].columnType : own.columnType;
    calculatedTypes.set(
      key,
      (type = { ...TYPES[result], name, writable, parseInput, attributes, searchable, columnType }),
    );
  }
  return type;
}

const calculatedTypes = new Map<string, FieldType>();

type Named = Pick<TypedField, 'fieldType'>;

/** It holds the id of a record of another object. */
export const isReference = (field: Named): boolean => fieldType(field.fieldType).relation !== undefined;

/** It holds the record that this one is a part of. */
export const isMasterDetail = (field: Named): boolean => fieldType(field.fieldType).relation === 'master';

/** It holds the id of a file. */
export const isFile = (field: Named): boolean => fieldType(field.fieldType).holdsFile === true;

/** The platform gives each new record the next number. */
export const isNumbered = (field: Named): boolean => fieldType(field.fieldType).numbered === true;
