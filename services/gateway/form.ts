/**
 * The form of a request: path, query, headers and body, held against the operation's row. All violations are found
 * before the request is refused. Source: docs/reference/http.md.
 */
import { Ajv2020 as Ajv, type ErrorObject } from 'ajv/dist/2020.js';
import formatsPlugin from 'ajv-formats';
import type { TSchema } from 'typebox';
import { LIMITS } from '../../config/limits.ts';
import type { ErrorCode } from '../../lib/errors/catalogue.ts';
import { PlatformError, type Violation, violation } from '../../lib/errors/platform-error.ts';
import { fingerprint } from '../../lib/json/fingerprint.ts';
import { JsonError, parseJson, parseJsonBytes } from '../../lib/json/parse.ts';
import type { Operation, OperationCall, Parameter } from '../../lib/operation.ts';
import type { Exchange } from './exchange.ts';
import { VIOLATIONS_MAX } from './reply.ts';
import type { Route } from './router.ts';

const IDEMPOTENCY_KEY = /^[A-Za-z0-9._:-]{8,200}$/;
const ETAG_LIST = /^"[\x21\x23-\x7e]*"(?:[ \t]*,[ \t]*"[\x21\x23-\x7e]*")*$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const NAME_SHOWN_MAX = 100;

// Ajv and its formats are CommonJS; under Node's ESM their default export may be the namespace.
const addFormats = ((formatsPlugin as unknown as { default?: unknown }).default ?? formatsPlugin) as (ajv: Ajv) => void;
const ajv = new Ajv({ strict: false, allErrors: true, messages: true, logger: false });
addFormats(ajv);

type Validator = ReturnType<Ajv['compile']>;
const validators = new WeakMap<TSchema, Validator>();

function validator(schema: TSchema): Validator {
  let known = validators.get(schema);
  if (!known) validators.set(schema, (known = ajv.compile(schema)));
  return known;
}

interface FormProblem {
  code: ErrorCode;
  violation: Violation;
  details?: Record<string, unknown>;
}

/** Builds the call of the operation, or throws what is wrong with the form of the request. */
export function readForm(x: Exchange, route: Route): OperationCall {
  const { operation } = route;
  const problems: FormProblem[] = [];
  const path = readPath(x, route, problems);
  const pairs = readPairs(x.rawQuery, problems);
  const query = readQuery(pairs, operation.queryParameters ?? [], problems);
  const headers = readHeaders(x, operation, query, problems);
  const body = readBody(x, operation, problems);
  if (problems.length > 0) throw refusal(problems);
  const call: OperationCall = { operationId: operation.operationId, path, query, headers };
  if (body !== undefined) call.body = body;
  if (operation.mutation) {
    call.fingerprint = fingerprint({
      method: operation.method,
      path: x.path,
      query: pairs,
      ifMatch: headers.ifMatch,
      expectedRevision: headers.expectedRevision === undefined ? undefined : String(headers.expectedRevision),
      duplicateConfirmation: headers.duplicateConfirmation,
      agentRunId: header(x, 'x-agent-run-id'),
      body,
    });
  }
  if (wantsIeee754Compatible(x)) call.ieee754Compatible = true;
  return call;
}

function refusal(problems: FormProblem[]): PlatformError {
  const first = problems[0]!;
  const errors = problems.slice(0, VIOLATIONS_MAX).map((problem) => problem.violation);
  const message =
    problems.length === 1 ? first.violation.message : `The request has ${problems.length} problems; see errors.`;
  return new PlatformError(first.code, message, { errors, ...(first.details ? { details: first.details } : {}) });
}

function problem(
  problems: FormProblem[],
  code: ErrorCode,
  pointer: string,
  message: string,
  details?: Record<string, unknown>,
): void {
  problems.push({ code, violation: violation(pointer, code, message), ...(details ? { details } : {}) });
}

function readPath(x: Exchange, route: Route, problems: FormProblem[]): Record<string, string> {
  const path: Record<string, string> = {};
  for (const [i, name] of route.parameterNames.entries()) {
    const raw = x.pathValues[i]!;
    const value = raw.includes('%') ? decode(raw) : raw;
    if (value === null || value.includes('\0')) {
      problem(problems, 'PARAMETER_INVALID', `path:${name}`, `${name} in the address is not valid text.`);
      continue;
    }
    path[name] = value;
    const parameter = route.operation.pathParameters?.find((one) => one.name === name);
    if (parameter) check(`path:${name}`, value, parameter, problems);
  }
  return path;
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** Names and values of a query string, decoded; a malformed one is reported and left out. */
function readPairs(rawQuery: string, problems: FormProblem[]): [string, string][] {
  const pairs: [string, string][] = [];
  if (rawQuery === '') return pairs;
  for (const part of rawQuery.split('&')) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const rawName = equals < 0 ? part : part.slice(0, equals);
    const rawValue = equals < 0 ? '' : part.slice(equals + 1);
    const name = decodeForm(rawName);
    const value = decodeForm(rawValue);
    if (name === null || value === null || name.includes('\0') || value.includes('\0'))
      problem(
        problems,
        'PARAMETER_INVALID',
        `query:${name ?? rawName}`,
        'The query has text that is not valid UTF-8 in percent-encoding.',
      );
    else pairs.push([name, value]);
  }
  return pairs;
}

const decodeForm = (text: string): string | null => {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  return spaced.includes('%') ? decode(spaced) : spaced;
};

function readQuery(
  pairs: readonly [string, string][],
  parameters: readonly Parameter[],
  problems: FormProblem[],
): Record<string, unknown> {
  const query: Record<string, unknown> = {};
  const seen = new Set<string>();
  for (const [name, text] of pairs) {
    const parameter = parameters.find((one) => one.name === name);
    const pointer = `query:${name}`;
    if (!parameter) {
      problem(
        problems,
        'PARAMETER_UNKNOWN',
        pointer,
        `This operation has no query parameter ${JSON.stringify(name.slice(0, NAME_SHOWN_MAX))}.`,
      );
      continue;
    }
    if (seen.has(name)) {
      problem(problems, 'PARAMETER_INVALID', pointer, `${name} may be given only once.`);
      continue;
    }
    seen.add(name);
    if (parameter.json) {
      try {
        query[name] = parseJson(text, LIMITS.json_depth_max);
      } catch (error) {
        if (!(error instanceof JsonError)) throw error;
        problem(problems, 'PARAMETER_INVALID', pointer, `${name} must be serialized JSON: ${error.message}`);
      }
      continue;
    }
    const value = typed(text, parameter.schema);
    if (value === undefined) {
      problem(problems, 'PARAMETER_INVALID', pointer, `${name} must be ${expected(parameter.schema)}.`);
      continue;
    }
    query[name] = value;
    check(pointer, value, parameter, problems);
  }
  for (const parameter of parameters)
    if (parameter.required && !seen.has(parameter.name))
      problem(problems, 'PARAMETER_REQUIRED', `query:${parameter.name}`, `${parameter.name} is required.`);
  return query;
}

interface PlainSchema {
  type?: string;
  enum?: unknown[];
  anyOf?: PlainSchema[];
  const?: unknown;
  items?: PlainSchema;
}

/** The value that the text of a parameter stands for; undefined: it stands for none. */
function typed(text: string, schema: TSchema): unknown {
  const { type, items } = schema as PlainSchema;
  if (type === 'integer') {
    if (!/^-?\d{1,16}$/.test(text)) return undefined;
    const value = Number(text);
    return Number.isSafeInteger(value) ? value : undefined;
  }
  if (type === 'number') return /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text) ? Number(text) : undefined;
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : undefined;
  if (type === 'array') {
    const values = text === '' ? [] : text.split(',').map((one) => (items ? typed(one, items as TSchema) : one));
    return values.includes(undefined) ? undefined : values;
  }
  return text;
}

function expected(schema: TSchema): string {
  const { type } = schema as PlainSchema;
  if (type === 'integer') return 'an integer';
  if (type === 'number') return 'a number';
  if (type === 'boolean') return 'true or false';
  return 'a comma-separated list';
}

function check(pointer: string, value: unknown, parameter: Parameter, problems: FormProblem[]): void {
  const valid = validator(parameter.schema);
  if (valid(value)) return;
  problem(problems, 'PARAMETER_INVALID', pointer, `${parameter.name} ${sentence(valid.errors ?? [])}.`);
}

/** What the validator found, as the end of a sentence. */
function sentence(errors: readonly ErrorObject[]): string {
  const constants = errors.filter((one) => one.keyword === 'const').map((one) => one.params['allowedValue']);
  if (constants.length > 0) return `must be one of ${constants.join(', ')}`;
  const first = errors[0];
  if (!first) return 'is not valid';
  if (first.keyword === 'enum') return `must be one of ${(first.params['allowedValues'] as unknown[]).join(', ')}`;
  return first.message ?? 'is not valid';
}

function header(x: Exchange, name: string): string | undefined {
  const value = x.req.headers[name];
  return typeof value === 'string' ? value : undefined;
}

function readHeaders(
  x: Exchange,
  operation: Operation,
  query: Record<string, unknown>,
  problems: FormProblem[],
): OperationCall['headers'] {
  const headers: OperationCall['headers'] = {};
  const known = new Set(operation.headerParameters?.map((one) => one.name.toLowerCase()));
  if (operation.mutation) {
    const key = header(x, 'idempotency-key');
    if (key === undefined)
      problem(problems, 'IDEMPOTENCY_KEY_REQUIRED', 'header:Idempotency-Key', 'Idempotency-Key is required.');
    else if (!IDEMPOTENCY_KEY.test(key))
      problem(
        problems,
        'IDEMPOTENCY_KEY_INVALID',
        'header:Idempotency-Key',
        'Idempotency-Key must be 8 to 200 letters, digits, periods, hyphens, underscores or colons.',
      );
    else headers.idempotencyKey = key;
  }
  if (operation.precondition === 'ifMatch' || known.has('if-match')) {
    const ifMatch = header(x, 'if-match')?.trim();
    if (ifMatch === undefined) {
      if (operation.precondition === 'ifMatch')
        problem(problems, 'IF_MATCH_REQUIRED', 'header:If-Match', 'If-Match is required: the ETag that was read.');
    } else if (!ETAG_LIST.test(ifMatch))
      problem(problems, 'IF_MATCH_INVALID', 'header:If-Match', 'If-Match must be strong ETags, never * or weak ones.');
    else headers.ifMatch = ifMatch;
  }
  if (operation.precondition === 'expectedRevision' || known.has('x-expected-revision'))
    readRevision(x, operation, query, headers, problems);
  const agentRunId = header(x, 'x-agent-run-id');
  if (agentRunId !== undefined && !UUID.test(agentRunId))
    problem(problems, 'PARAMETER_INVALID', 'header:X-Agent-Run-Id', 'X-Agent-Run-Id must be a UUID.');
  const ifNoneMatch = header(x, 'if-none-match');
  if (ifNoneMatch !== undefined && known.has('if-none-match')) headers.ifNoneMatch = ifNoneMatch;
  const confirmation = header(x, 'x-duplicate-confirmation');
  if (confirmation !== undefined) headers.duplicateConfirmation = confirmation;
  const language = header(x, 'accept-language');
  if (language !== undefined) headers.acceptLanguage = language;
  for (const parameter of operation.headerParameters ?? []) {
    const pointer = `header:${parameter.name}`;
    const text = header(x, parameter.name.toLowerCase());
    if (text === undefined) {
      if (parameter.required) problem(problems, 'PARAMETER_REQUIRED', pointer, `${parameter.name} is required.`);
      continue;
    }
    const value = typed(text, parameter.schema);
    if (value === undefined)
      problem(problems, 'PARAMETER_INVALID', pointer, `${parameter.name} must be ${expected(parameter.schema)}.`);
    else if (!headersWithOwnRule.has(parameter.name.toLowerCase())) check(pointer, value, parameter, problems);
  }
  return headers;
}

const headersWithOwnRule = new Set(['if-match', 'idempotency-key', 'x-expected-revision', 'x-agent-run-id']);

function readRevision(
  x: Exchange,
  operation: Operation,
  query: Record<string, unknown>,
  headers: OperationCall['headers'],
  problems: FormProblem[],
): void {
  const text = header(x, 'x-expected-revision');
  const inQuery = query['expectedRevision'];
  if (text !== undefined && !/^\d{1,15}$/.test(text))
    problem(problems, 'PARAMETER_INVALID', 'header:X-Expected-Revision', 'X-Expected-Revision must be an integer.');
  else if (text !== undefined && inQuery !== undefined && Number(text) !== inQuery)
    problem(
      problems,
      'PARAMETER_CONFLICT',
      'header:X-Expected-Revision',
      'X-Expected-Revision and expectedRevision differ.',
    );
  else if (text !== undefined) headers.expectedRevision = Number(text);
  else if (typeof inQuery === 'number') headers.expectedRevision = inQuery;
  else if (operation.precondition === 'expectedRevision' && x.body === null)
    problem(
      problems,
      'EXPECTED_REVISION_REQUIRED',
      'header:X-Expected-Revision',
      'X-Expected-Revision is required: the revision that was read.',
    );
}

function readBody(x: Exchange, operation: Operation, problems: FormProblem[]): unknown {
  const declared = operation.requestBody;
  if (x.body === null) {
    if (declared?.required) problem(problems, 'BODY_REQUIRED', '', 'This operation needs a JSON body.');
    return undefined;
  }
  if (!declared) {
    problem(problems, 'REQUEST_MALFORMED', '', 'This operation takes no body.');
    return undefined;
  }
  let body: unknown;
  try {
    body = parseJsonBytes(x.body, LIMITS.json_depth_max);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    problem(problems, 'REQUEST_MALFORMED', '', error.message, error.details);
    return undefined;
  }
  if (declared.validate === false) {
    if (typeof body !== 'object' || body === null || Array.isArray(body))
      problem(problems, 'PARAMETER_INVALID', '', 'The body must be a JSON object.');
    return body;
  }
  const valid = validator(declared.schema);
  if (!valid(body)) bodyProblems(valid.errors ?? [], problems);
  return body;
}

/** Keywords that only repeat what a more precise error beside them says. */
const ENVELOPES = new Set(['anyOf', 'oneOf', 'if', 'allOf']);

function bodyProblems(errors: readonly ErrorObject[], problems: FormProblem[]): void {
  const precise = errors.filter((one) => !ENVELOPES.has(one.keyword));
  for (const one of precise.length > 0 ? precise : errors) {
    const at = one.instancePath;
    if (one.keyword === 'required') {
      const name = String(one.params['missingProperty']);
      problem(problems, 'PARAMETER_REQUIRED', `${at}/${pointerPart(name)}`, `${name} is required.`);
    } else if (one.keyword === 'additionalProperties' || one.keyword === 'unevaluatedProperties') {
      const name = String(one.params['additionalProperty'] ?? one.params['unevaluatedProperty']);
      problem(
        problems,
        at === '' ? 'BODY_PROPERTY_UNKNOWN' : 'PARAMETER_INVALID',
        `${at}/${pointerPart(name)}`,
        `There is no property ${JSON.stringify(name.slice(0, NAME_SHOWN_MAX))} here.`,
      );
    } else problem(problems, 'PARAMETER_INVALID', at, `${at || 'The body'} ${sentence([one])}.`);
  }
}

const pointerPart = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');

const wantsIeee754Compatible = (x: Exchange): boolean => {
  const accept = x.req.headers.accept;
  return accept !== undefined && accept.length > 25 && /;\s*ieee754compatible\s*=\s*true/i.test(accept);
};
