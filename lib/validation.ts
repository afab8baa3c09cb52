/**
 * The one validator of requests: values against the schemas of operations, all violations at once that an answer shows.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { TSchema } from 'typebox';
import type { ErrorCode } from './errors/catalogue.ts';
import { type Violation, violation } from './errors/platform-error.ts';
import { pointerPart } from './errors/pointer.ts';
import { ruleInWords } from './errors/rule-words.ts';
import { ViolationList } from './errors/violation-list.ts';

const ajv = new Ajv2020({ strict: false, allErrors: true, messages: true, logger: false });
formats.default(ajv);
// The format of the library also takes the prefix urn:uuid:.
ajv.addFormat('uuid', /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i);

const NAME_SHOWN_MAX = 100;

const validators = new WeakMap<TSchema, ValidateFunction>();

function validator(schema: TSchema): ValidateFunction {
  let known = validators.get(schema);
  if (!known) validators.set(schema, (known = ajv.compile(schema)));
  return known;
}

/** The problem with a parameter's value, as the end of a sentence; null when it is valid. */
export function valueProblem(schema: TSchema, value: unknown): string | null {
  const validate = validator(schema);
  return validate(value) ? null : sentence(validate.errors ?? []);
}

/** Adds what is wrong with a body, with JSON Pointers. */
export function collectBodyViolations(schema: TSchema, body: unknown, into: ViolationList<ErrorCode>): void {
  const validate = validator(schema);
  if (validate(body)) return;
  const errors = validate.errors ?? [];
  const isPrecise = (one: ErrorObject): boolean => !COMPOUND_KEYWORDS.has(one.keyword);
  const anyPrecise = errors.some(isPrecise);
  const notNull = placesOfValues(errors.filter(isPrecise));
  const shown = errors.filter(
    (one) => !anyPrecise || (isPrecise(one) && !(isNullExpected(one) && notNull.has(one.instancePath))),
  );
  const types = Map.groupBy(
    shown.filter(({ keyword }) => keyword === 'type'),
    ({ instancePath }) => instancePath,
  );
  for (const one of shown) {
    const ofPlace = one.keyword === 'type' ? types.get(one.instancePath) : [one];
    // Of several types that a value could have, the first error names all.
    if (ofPlace?.[0] === one) into.add(() => bodyViolation(one, ofPlace));
  }
}

const isNullExpected = ({ keyword, params }: ErrorObject): boolean => keyword === 'type' && params['type'] === 'null';

/**
 * A nullable position that holds a value: its errors are already reported inside it,
 * and null is not the advice to give.
 */
function placesOfValues(errors: readonly ErrorObject[]): ReadonlySet<string> {
  const nullable = new Set(errors.filter(isNullExpected).map(({ instancePath }) => instancePath));
  const found = new Set<string>();
  if (nullable.size === 0) return found;
  for (const { instancePath, keyword } of errors) {
    const parts = instancePath.split('/');
    // This says nothing about what stands there, only that it stands within something.
    if (keyword === 'type') parts.pop();
    for (; parts.length > 0; parts.pop()) {
      const place = parts.join('/');
      if (nullable.has(place)) found.add(place);
    }
  }
  return found;
}

/** Violations of a body, as many as an answer shows. */
export function bodyViolations(schema: TSchema, body: unknown): readonly Violation<ErrorCode>[] {
  const found = new ViolationList<ErrorCode>();
  collectBodyViolations(schema, body, found);
  return found.list;
}

/** Keywords whose errors only repeat a more precise one. */
const COMPOUND_KEYWORDS = new Set(['anyOf', 'oneOf', 'if', 'allOf']);

function bodyViolation(error: ErrorObject, all: readonly ErrorObject[]): Violation<ErrorCode> {
  const { instancePath: at, keyword, params } = error;
  if (keyword === 'required') {
    const name = String(params['missingProperty']);
    return violation(`${at}/${pointerPart(name)}`, 'PARAMETER_REQUIRED', `${name} is required.`);
  }
  if (keyword === 'additionalProperties' || keyword === 'unevaluatedProperties') {
    const name = String(params['additionalProperty'] ?? params['unevaluatedProperty']);
    return violation(
      `${at}/${pointerPart(name)}`,
      at === '' ? 'BODY_PROPERTY_UNKNOWN' : 'PARAMETER_INVALID',
      `There is no property ${JSON.stringify(name.slice(0, NAME_SHOWN_MAX))} here.`,
    );
  }
  return violation(at, 'PARAMETER_INVALID', `${at || 'The body'} ${sentence(all)}.`);
}

/** The types of JSON Schema, in words. */
const TYPES: Readonly<Record<string, string>> = {
  object: 'an object',
  array: 'a list',
  string: 'a string',
  number: 'a number',
  integer: 'an integer',
  boolean: 'true or false',
  null: 'null',
};

/** The validator's finding, as the end of a sentence. */
function sentence(errors: readonly ErrorObject[]): string {
  const constants = errors.filter((one) => one.keyword === 'const').map((one) => one.params['allowedValue']);
  if (constants.length > 0) return `must be ${constants.length > 1 ? 'one of ' : ''}${constants.join(', ')}`;
  const [first] = errors;
  if (first?.keyword === 'enum') return `must be one of ${first.params['allowedValues'].join(', ')}`;
  if (first?.keyword === 'type') {
    const types = new Set(errors.flatMap((one) => (one.keyword === 'type' ? [one.params['type']].flat() : [])));
    return `must be ${[...types].map((type) => TYPES[String(type)]).join(' or ')}`;
  }
  return first ? ruleInWords(first) : 'is not valid';
}
