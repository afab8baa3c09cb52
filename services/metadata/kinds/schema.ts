/** Building blocks of the kinds' schemas, and the canonical form that a schema gives to a body. */
import {
  type Static,
  type TNumberOptions,
  type TObject,
  type TProperties,
  type TSchema,
  type TStringOptions,
  Type,
} from 'typebox';
import { EXPRESSION_MAX_CHARS } from '../../../lib/expression/check.ts';
import { byCodePoint } from '../../../lib/values/code-points.ts';
import type { YamlValue } from '../../../lib/yaml/parse.ts';

export const API_NAME = '^[A-Za-z][A-Za-z0-9_]{0,39}$';
export const FULL_NAME = '^[A-Za-z][A-Za-z0-9_]{0,39}\\.[A-Za-z][A-Za-z0-9_]{0,39}$';

/** Annotations that the canonical form obeys. */
const ALWAYS = { 'x-erp-always': true };
const SET = { 'x-erp-set': true, uniqueItems: true };

export const apiName = (description: string) => Type.String({ pattern: API_NAME, description });
export const label = (description: string, maxLength = 255) =>
  Type.String({ minLength: 1, maxLength, pattern: '\\S', description });
export const text = (description: string, maxLength = 4_000) => Type.String({ maxLength, description });
export const expression = (description: string) =>
  Type.String({ minLength: 1, maxLength: EXPRESSION_MAX_CHARS, pattern: '\\S', description });
/** Left out of the file when it has its default. */
export const flag = (fallback: boolean, description: string) => Type.Boolean({ default: fallback, description });
/**
 * Authors may leave these out, and the canonical form has them in any case: so they are not required in a file, and
 * their type has no `undefined`.
 */
const shown = <T>(schema: TSchema) => Type.Unsafe<T>(Type.Optional(schema));
export const shownFlag = (fallback: boolean, description: string) =>
  shown<boolean>(Type.Boolean({ default: fallback, description, ...ALWAYS }));
export const shownChoice = <T extends string>(values: readonly T[], fallback: T, description: string) =>
  shown<T>(Type.Enum([...values], { default: fallback, description, ...ALWAYS }));
export const shownNumber = (fallback: number, options: TNumberOptions) =>
  shown<number>(Type.Number({ ...options, default: fallback, ...ALWAYS }));
export const shownText = (fallback: string, options: TStringOptions) =>
  shown<string>(Type.String({ ...options, default: fallback, ...ALWAYS }));
export const shownGroup = <P extends TProperties>(properties: P, description: string) =>
  shown<Static<TObject<P>>>(group(properties, description, ALWAYS));
/** A list whose order means nothing; written in code point order. */
export const setOf = <S extends TSchema>(item: S, description: string, maxItems = 1_000) =>
  Type.Array(item, { default: [], maxItems, description, ...SET });
export const listOf = <S extends TSchema>(item: S, description: string, maxItems = 1_000) =>
  Type.Array(item, { maxItems, description });
/** Names to values; written in code point order of the names. */
export const mapOf = <S extends TSchema>(pattern: string, value: S, description: string, maxProperties = 10_000) =>
  Type.Record(Type.String({ pattern }), value, {
    default: {},
    maxProperties,
    additionalProperties: false,
    description,
  });
export const group = <P extends TProperties>(
  properties: P,
  description: string,
  options: Record<string, unknown> = {},
) => Type.Object(properties, { ...options, additionalProperties: false, description });
export const optional = Type.Optional;

interface JsonSchema {
  type?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  patternProperties?: Record<string, JsonSchema>;
  items?: JsonSchema;
  default?: YamlValue;
  'x-erp-always'?: boolean;
  'x-erp-set'?: boolean;
}

const isObject = (value: YamlValue | undefined): value is { [key: string]: YamlValue } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The same value with its texts in NFC, as those of records are. */
export function inNfc(value: YamlValue): YamlValue {
  if (typeof value === 'string') return value.normalize('NFC');
  if (Array.isArray(value)) return value.map(inNfc);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, inNfc(item)]));
}

/** Values that a schema leaves open: JSON such as a default value. */
const isFree = ({ type, properties, patternProperties, items }: JsonSchema): boolean =>
  !(type || properties || patternProperties || items);

/** Keys of a schema without a value mean the same as absent keys; a null within a free value is one. */
export const withoutNulls = (schema: object, value: YamlValue): YamlValue => pruned(schema, value);

function pruned(schema: JsonSchema, value: YamlValue): YamlValue {
  const { items, properties = {}, patternProperties = {} } = schema;
  if (Array.isArray(value)) return items ? value.map((item) => pruned(items, item)) : value;
  if (!isObject(value)) return value;
  const [member] = Object.values(patternProperties);
  const kept: [string, YamlValue][] = [];
  for (const [key, item] of Object.entries(value)) {
    const property = Object.hasOwn(properties, key) ? properties[key] : member;
    const says = item !== null || property === undefined || (property === member && isFree(property));
    if (says) kept.push([key, property ? pruned(property, item) : item]);
  }
  return Object.fromEntries(kept);
}

/**
 * The one body that says what `value` says: keys in the order of the schema, sets in code point order, defaults left out
 * (or filled in, where the schema wants them shown), empty optional keys left out. `value` has passed the schema, and its
 * texts are in NFC.
 */
export function canonicalBody(schema: object, value: YamlValue): { [key: string]: YamlValue } {
  return canonical(schema, value) as { [key: string]: YamlValue };
}

function canonical(schema: JsonSchema, value: YamlValue): YamlValue {
  if (Array.isArray(value)) {
    const { items: one } = schema;
    const items = one ? value.map((item) => canonical(one, item)) : value;
    return schema['x-erp-set'] ? [...items].sort((a, b) => byCodePoint(String(a), String(b))) : items;
  }
  if (!isObject(value)) return value;
  if (schema.properties) {
    const result: { [key: string]: YamlValue } = {};
    for (const [key, property] of Object.entries(schema.properties)) {
      let item: YamlValue | undefined = Object.hasOwn(value, key) ? value[key] : undefined;
      if (property['x-erp-always']) item ??= property.default ?? (property.properties ? {} : undefined);
      if (item === undefined) continue;
      item = canonical(property, item);
      if (!property['x-erp-always'] && !schema.required?.includes(key)) {
        if (property.default !== undefined && JSON.stringify(item) === JSON.stringify(property.default)) continue;
        // An explicitly empty value of an untyped property (a default value, an example) has a meaning.
        if (property.type !== undefined && (item === '' || (Array.isArray(item) && item.length === 0))) continue;
        if (isObject(item) && Object.keys(item).length === 0) continue;
      }
      result[key] = item;
    }
    return result;
  }
  const [member] = Object.values(schema.patternProperties ?? {});
  const entries = Object.entries(value).sort(([a], [b]) => byCodePoint(a, b));
  return Object.fromEntries(entries.map(([key, item]) => [key, member ? canonical(member, item) : item]));
}

/** A schema as the API publishes it: complete by itself, without what only the platform reads. */
export const publishedSchema = (type: string, schema: object): object => ({
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: type,
  ...JSON.parse(JSON.stringify(schema, (key, value) => (key.startsWith('x-erp-') ? undefined : value))),
});
