/**
 * Input of a transition or action: a JSON Schema 2020-12 of the tenant's, bounded so that neither
 * compiling it nor checking a value against it can take long. Source: docs/reference/transitions.md#input.
 */

import { Ajv2020, type ErrorObject, type FuncKeywordDefinition, type ValidateFunction } from 'ajv/dist/2020.js';
import type { ViolationCode } from '../errors/catalogue.ts';
import { type Violation, violation } from '../errors/platform-error.ts';
import { pointerPart } from '../errors/pointer.ts';
import { messageOf } from '../errors/thrown.ts';
import { VIOLATIONS_MAX } from '../errors/violation-list.ts';
import { ExactNumber } from '../json/exact-number.ts';
import { isObject } from '../json/objects.ts';
import { unfitTexts } from '../schema/field-types/common.ts';
import { isDate, readInstant, readTime } from '../values/calendar.ts';
import { exactOf, remainder } from '../values/decimal.ts';
import { checkPattern, matchesPattern, PatternError, patternSize } from '../values/pattern.ts';
import type { Type, Value } from './types.ts';
import { valueOfType } from './values.ts';

type InputSchema = { readonly [keyword: string]: unknown };

const SCHEMA_MAX_CHARS = 16_000;
const DEPTH_MAX = 10;
/** Steps per character: with the size of a body this bounds the time of a match. */
const PATTERN_SIZE_MAX = 200;
/** Comparing items with one another costs their number squared. */
const UNIQUE_ITEMS_MAX = 200;
/** Each value meets each keyword at most once, and leaves an error behind when it does not fit. */
const MEETINGS_MAX = 200_000;
/** Characters times steps per character, over all patterns. */
const PATTERN_STEPS_MAX = 2_000_000;

const FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  date: isDate,
  'date-time': (text) => readInstant(text) !== null,
  time: (text) => readTime(text) !== null,
  email: (text) => text.length <= 254 && /^[^\s@]+@[^\s@.]+(?:\.[^\s@.]+)+$/.test(text),
  uri: (text) => /^[a-z][a-z0-9+.-]*:/i.test(text) && URL.canParse(text),
  uuid: (text) => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text),
};

const SCHEMA_HERE = ['items', 'additionalProperties', 'unevaluatedProperties', 'unevaluatedItems', 'contains', 'not'];
const SCHEMAS: ReadonlySet<string> = new Set([...SCHEMA_HERE, 'propertyNames', 'if', 'then', 'else']);
const LISTS_OF_SCHEMAS: ReadonlySet<string> = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems']);
const MAPS_OF_SCHEMAS: ReadonlySet<string> = new Set(['properties', 'patternProperties', 'dependentSchemas']);
const KEYWORDS: ReadonlySet<string> = new Set([
  ...['type', 'enum', 'const', 'format', 'pattern', 'minLength', 'maxLength'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  ...['required', 'dependentRequired', 'minProperties', 'maxProperties'],
  ...['minItems', 'maxItems', 'uniqueItems', 'minContains', 'maxContains'],
  ...['title', 'description', 'default', 'examples', 'deprecated', '$comment', '$schema'],
]);
/** With references a schema could go round in cycles, or ask another server. */
const REFERENCES: ReadonlySet<string> = new Set(['$ref', '$dynamicRef', '$id', '$anchor', '$dynamicAnchor', '$defs']);

interface InputProblem {
  /** RFC 6901 pointer into the schema. */
  readonly pointer: string;
  readonly message: string;
}

/** Everything that is wrong with a schema; nothing when it can be used. */
export function inputProblems(schema: InputSchema): InputProblem[] {
  if (JSON.stringify(schema).length > SCHEMA_MAX_CHARS)
    return [{ pointer: '', message: `The schema is longer than ${SCHEMA_MAX_CHARS} characters of JSON.` }];
  const problems: InputProblem[] = [];
  if (schema['type'] !== 'object') problems.push({ pointer: '', message: 'An input is an object: say type: object.' });
  walk(schema, '', 1, problems);
  if (problems.length > 0) return problems;
  const { metaValidator } = inputsChecked();
  if (!metaValidator(schema))
    return (metaValidator.errors ?? [])
      .filter((error) => error.keyword !== 'if' && !COMPOUND_KEYWORDS.has(error.keyword))
      .map((error) => ({ pointer: error.instancePath, message: `The value ${error.message ?? 'is invalid'}.` }));
  const missing = impossible(schema);
  if (missing.length > 0) return missing;
  try {
    compile(schema);
    return [];
  } catch (error) {
    return [{ pointer: '', message: `The schema cannot be used: ${messageOf(error)}.` }];
  }
}

/** Required properties that the input cannot have: only declared properties are accepted. */
function impossible(schema: InputSchema): InputProblem[] {
  const { properties, patternProperties, required } = schema;
  if (isOpen(schema) || patternProperties || !Array.isArray(required)) return [];
  return required
    .map(String)
    .flatMap((name, i) =>
      isObject(properties) && Object.hasOwn(properties, name)
        ? []
        : [{ pointer: `/required/${i}`, message: `${name} is none of the properties.` }],
    );
}

function walk(schema: unknown, at: string, depth: number, problems: InputProblem[]): void {
  const wrong = (pointer: string, message: string): void => {
    problems.push({ pointer, message });
  };
  if (typeof schema === 'boolean') return;
  if (!isObject(schema)) {
    wrong(at, 'A schema is a mapping, true or false.');
    return;
  }
  if (depth > DEPTH_MAX) {
    wrong(at, `The schema nests deeper than ${DEPTH_MAX} levels.`);
    return;
  }
  for (const [keyword, value] of Object.entries(schema)) {
    const here = `${at}/${pointerPart(keyword)}`;
    if (SCHEMAS.has(keyword)) walk(value, here, depth + 1, problems);
    else if (LISTS_OF_SCHEMAS.has(keyword) && Array.isArray(value))
      for (const [i, item] of value.entries()) walk(item, `${here}/${i}`, depth + 1, problems);
    else if (MAPS_OF_SCHEMAS.has(keyword) && isObject(value))
      for (const [name, item] of Object.entries(value)) {
        if (keyword === 'patternProperties') checkAnchored(name, `${here}/${pointerPart(name)}`, wrong);
        walk(item, `${here}/${pointerPart(name)}`, depth + 1, problems);
      }
    else if (REFERENCES.has(keyword)) wrong(here, `${keyword} cannot be used: a schema stands for itself.`);
    else if (keyword === 'pattern') checkAnchored(value, here, wrong);
    else if (keyword === 'format' && !(typeof value === 'string' && Object.hasOwn(FORMATS, value)))
      wrong(here, `There are the formats ${Object.keys(FORMATS).join(', ')}.`);
    else if (keyword === 'uniqueItems' && value === true && !(Number(schema['maxItems']) <= UNIQUE_ITEMS_MAX))
      wrong(here, `uniqueItems needs maxItems of at most ${UNIQUE_ITEMS_MAX}.`);
    else if (keyword === '$schema' && value !== 'https://json-schema.org/draft/2020-12/schema')
      wrong(here, 'The schema is one of https://json-schema.org/draft/2020-12/schema.');
    else if (!KEYWORDS.has(keyword) && !LISTS_OF_SCHEMAS.has(keyword) && !MAPS_OF_SCHEMAS.has(keyword))
      wrong(here, `${keyword} is no keyword of JSON Schema 2020-12 that can be used here.`);
  }
}

/** A pattern that means the same to our engine, which matches whole texts, and to every reader of the schema. */
function checkAnchored(pattern: unknown, at: string, wrong: (pointer: string, message: string) => void): void {
  if (typeof pattern !== 'string' || !/^\^.*\$$/s.test(pattern) || /(?:^|[^\\])(?:\\\\)*\\\$$/.test(pattern)) {
    wrong(at, 'A pattern is a text that begins with ^ and ends with $.');
    return;
  }
  if (hasBareAlternative(pattern)) {
    wrong(at, 'Put the alternatives of a pattern in parentheses: ^(?:a|b)$.');
    return;
  }
  try {
    checkPattern(pattern);
    if (patternSize(pattern) > PATTERN_SIZE_MAX) wrong(at, 'The pattern is too large.');
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    wrong(at, error.message);
  }
}

/** A `|` outside of all parentheses, where `^` and `$` would belong to one alternative each. */
function hasBareAlternative(pattern: string): boolean {
  let depth = 0;
  let inClass = false;
  for (let at = 0; at < pattern.length; at++) {
    const char = pattern[at];
    if (char === '\\') at++;
    else if (inClass) inClass = char !== ']';
    else if (char === '[') inClass = true;
    else if (char === '(') depth++;
    else if (char === ')') depth--;
    else if (char === '|' && depth === 0) return true;
  }
  return false;
}

/** The meta-schema, compiled when the first schema is checked. */
const inputsChecked = (() => {
  let made: { metaValidator: ValidateFunction } | undefined;
  return () => {
    made ??= { metaValidator: new Ajv2020().getSchema('https://json-schema.org/draft/2020-12/schema')! };
    return made;
  };
})();

/** An engine that never backtracks; every pattern has passed `checkAnchored`. */
const linear = Object.assign(
  (pattern: string) => ({ test: (text: string) => matchesPattern(pattern, text), toString: () => pattern }),
  { code: 'linear' },
);

/** On the decimals that were written: divided as binary fractions, 0.07 is no multiple of 0.01. */
const MULTIPLE_OF: FuncKeywordDefinition = {
  keyword: 'multipleOf',
  type: 'number',
  schemaType: 'number',
  validate: (step: number, value: number): boolean => {
    const [exact, unit] = [exactOf(value), exactOf(step)];
    return exact !== null && unit !== null && remainder(exact, unit).units === 0n;
  },
  error: { message: ({ schema }) => `must be a multiple of ${String(schema)}` },
};

/** Each schema has a compiler of its own, so that nothing of it stays when the schema is forgotten. */
function compile(schema: InputSchema): ValidateFunction {
  const ajv = new Ajv2020({
    allErrors: true,
    strict: true,
    // `required` may stand alone within oneOf, not and the like; its properties are then declared further out.
    strictRequired: false,
    allowUnionTypes: true,
    validateSchema: false,
    meta: false,
    logger: false,
    ownProperties: true,
    formats: FORMATS,
    code: { regExp: linear },
  });
  ajv.removeKeyword('multipleOf').addKeyword(MULTIPLE_OF);
  return ajv.compile(served(schema));
}

/** The schema as it is published and applied: what it does not name is not taken. */
export const served = (schema: InputSchema): InputSchema =>
  isOpen(schema) ? schema : { ...schema, additionalProperties: false };

const isOpen = (schema: InputSchema): boolean =>
  Object.hasOwn(schema, 'additionalProperties') || Object.hasOwn(schema, 'unevaluatedProperties');

/** Checks an input and answers all violations, with pointers into the request body. */
export type InputCheck = (input: unknown) => Violation[];

export function inputCheck(schema: InputSchema): InputCheck {
  const validate = compile(schema);
  const weight = weightOf(schema);
  return (input) => {
    const { values, chars } = sizeOf(input);
    if (values * weight.keywords > MEETINGS_MAX || chars * weight.patterns > PATTERN_STEPS_MAX)
      return [violation('/input', 'FIELD_TOO_LONG', 'The input is too large to validate.')];
    const unfit = unfitTexts(input, '/input');
    if (unfit.length > 0)
      return unfit.map((found) => violation(found.pointer, 'FIELD_FORMAT_INVALID', `The value ${found.problem}`));
    return validate(plainNumbers(input)) ? [] : violationsOf(validate.errors ?? []);
  };
}

interface Weight {
  /** Keywords of all schemas within, and the values that they compare with. */
  readonly keywords: number;
  /** Steps per character of all patterns. */
  readonly patterns: number;
}

function weightOf(schema: unknown): Weight {
  let [keywords, patterns] = [1, 0];
  const within = (inner: unknown): void => {
    const weight = weightOf(inner);
    keywords += weight.keywords;
    patterns += weight.patterns;
  };
  for (const [keyword, value] of Object.entries(isObject(schema) ? schema : {}))
    if (SCHEMAS.has(keyword)) within(value);
    else if (LISTS_OF_SCHEMAS.has(keyword) && Array.isArray(value)) value.forEach(within);
    else if (MAPS_OF_SCHEMAS.has(keyword) && isObject(value)) {
      Object.values(value).forEach(within);
      if (keyword === 'patternProperties') for (const name of Object.keys(value)) patterns += patternSize(name);
    } else if (keyword === 'pattern') patterns += patternSize(String(value));
    else keywords += sizeOf(value).values;
  return { keywords, patterns };
}

/** Values in a value, itself among them, and the characters of its texts and names. */
function sizeOf(value: unknown): { values: number; chars: number } {
  let [values, chars] = [1, typeof value === 'string' ? value.length : 0];
  const within = (inner: unknown): void => {
    const size = sizeOf(inner);
    values += size.values;
    chars += size.chars;
  };
  if (Array.isArray(value)) value.forEach(within);
  else if (isObject(value) && !(value instanceof ExactNumber))
    for (const [name, item] of Object.entries(value)) {
      chars += name.length;
      within(item);
    }
  return { values, chars };
}

/** Keywords whose errors only repeat a more precise one; a tenant's schema may use more of them than a contract. */
const COMPOUND_KEYWORDS: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'allOf', 'if', 'not', '$ref', '$dynamicRef']);

const CODES: Readonly<Record<string, ViolationCode>> = {
  type: 'FIELD_TYPE_INVALID',
  enum: 'PICKLIST_VALUE_INVALID',
  const: 'PICKLIST_VALUE_INVALID',
  maxLength: 'FIELD_TOO_LONG',
  minimum: 'FIELD_OUT_OF_RANGE',
  maximum: 'FIELD_OUT_OF_RANGE',
  exclusiveMinimum: 'FIELD_OUT_OF_RANGE',
  exclusiveMaximum: 'FIELD_OUT_OF_RANGE',
  multipleOf: 'FIELD_OUT_OF_RANGE',
};

function violationsOf(errors: readonly ErrorObject[]): Violation[] {
  const precise = errors.filter((error) => !COMPOUND_KEYWORDS.has(error.keyword));
  // One more than an answer shows, so that it says that there are more.
  return (precise.length > 0 ? precise : errors).slice(0, VIOLATIONS_MAX + 1).map((error) => {
    const at = `/input${error.instancePath}`;
    const named = (name: unknown): string => `${at}/${pointerPart(String(name))}`;
    if (error.keyword === 'required')
      return violation(named(error.params['missingProperty']), 'FIELD_REQUIRED', 'This property is required.');
    if (error.keyword === 'additionalProperties' || error.keyword === 'unevaluatedProperties') {
      const name = error.params['additionalProperty'] ?? error.params['unevaluatedProperty'];
      return violation(named(name), 'FIELD_UNKNOWN', 'Unknown property.');
    }
    const { allowedValues, limit } = error.params;
    return violation(
      at,
      CODES[error.keyword] ?? 'FIELD_FORMAT_INVALID',
      `The value ${error.message ?? 'is invalid'}.`,
      {
        params: {
          ...(allowedValues === undefined ? {} : { allowedValues }),
          ...(limit === undefined ? {} : { limit }),
        },
      },
    );
  });
}

/** The strict reader keeps numbers of many digits as texts; a schema compares them as numbers. */
function plainNumbers(value: unknown): unknown {
  if (value instanceof ExactNumber) return Number(value.text);
  if (Array.isArray(value)) return value.map(plainNumbers);
  if (!isObject(value)) return value;
  const result: Record<string, unknown> = {};
  for (const [name, item] of Object.entries(value))
    Object.defineProperty(result, name, {
      value: plainNumbers(item),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  return result;
}

/** Types that the properties of an input have in expressions; what has no type of theirs can only be blank or not. */
export function inputTypes(schema: InputSchema | null): Record<string, Type> {
  const properties = schema?.['properties'];
  if (!isObject(properties)) return {};
  return Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, typeOf(property)]));
}

const TEXT_FORMATS: Readonly<Record<string, Type>> = { date: 'date', 'date-time': 'dateTime', time: 'time' };

function typeOf(property: unknown): Type {
  if (!isObject(property)) return 'opaque';
  switch (property['type']) {
    case 'string':
      return TEXT_FORMATS[String(property['format'])] ?? 'text';
    case 'integer':
    case 'number':
      return 'number';
    case 'boolean':
      return 'boolean';
    case 'array':
      return typeOf(property['items']) === 'text' ? 'list:text' : 'opaque';
    default:
      return 'opaque';
  }
}

/** A property of an input that passed its schema, as a value of an expression; texts as fields would hold them. */
export const inputValue = (type: Type, raw: unknown): Value => valueOfType(type, normalized(raw));

function normalized(raw: unknown): unknown {
  if (Array.isArray(raw)) return raw.map(normalized);
  return typeof raw === 'string' ? raw.normalize('NFC') : raw;
}
