/** The list of field types. A new type is a file of its own and a line here. */
import { FIELD_TYPE_NAMES, type FieldMeta, type FieldTypeName } from '../snapshot.ts';
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

const TYPES: Readonly<Record<FieldTypeName, FieldType>> = {
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
};

/** In the order in which documents list them. */
export const FIELD_TYPES: readonly FieldType[] = FIELD_TYPE_NAMES.map((name) => TYPES[name]);

export const fieldType = (name: FieldTypeName): FieldType => TYPES[name];

/** Name of the type that the values of a field have: of a calculated field, that of its result. */
export const valueTypeName = (field: FieldMeta): FieldTypeName =>
  field.rollup?.resultType ?? field.formula?.resultType ?? field.fieldType;

/**
 * The type that the values of a field have: a calculated field is compared, sorted and answered like a field of its
 * result's type, and written by nobody.
 */
export function typeOf(field: FieldMeta): FieldType {
  const result = valueTypeName(field);
  if (result === field.fieldType) return TYPES[result];
  const key = `${field.fieldType} ${result}`;
  let type = calculated.get(key);
  if (!type) {
    const own = TYPES[field.fieldType];
    const { name, writable, parseInput, attributes } = own;
    // Of a formula nothing is stored.
    const columnType = field.rollup ? TYPES[result].columnType : own.columnType;
    const { searchable } = own;
    calculated.set(key, (type = { ...TYPES[result], name, writable, parseInput, attributes, searchable, columnType }));
  }
  return type;
}

const calculated = new Map<string, FieldType>();
