/**
 * The form of a request: path, query, headers and body, validated against the operation's row. All violations are found
 * before the request is refused. Source: docs/reference/http.md.
 */
import { type TSchema, Type } from 'typebox';
import type { ErrorCode } from '../../../lib/errors/catalogue.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { ViolationList } from '../../../lib/errors/violation-list.ts';
import { completeFingerprint, fingerprintHead, fingerprintWithDigest } from '../../../lib/json/fingerprint.ts';
import { isObject } from '../../../lib/json/objects.ts';
import { JsonError, parseJson, parseJsonBytes } from '../../../lib/json/parse.ts';
import { hasReference, memberAt } from '../../../lib/json/references.ts';
import { LIMITS } from '../../../lib/limits.ts';
import {
  HEADERS,
  type HeaderParameter,
  type Operation,
  type OperationCall,
  type OperationHeaders,
  type Parameter,
  type RequestBody,
} from '../../../lib/operation.ts';
import type { StreamedBody } from '../../../lib/streams.ts';
import { collectBodyViolations, valueProblem } from '../../../lib/validation.ts';
import { sha256Of } from '../../../lib/values/digests.ts';
import { IF_MATCH_RULE, strongEtags } from '../../../lib/values/etags.ts';
import { IDEMPOTENCY_KEY_RULE, isIdempotencyKey } from '../../../lib/values/idempotency-key.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { parameterAdvice } from '../../../lib/values/parameter-advice.ts';
import type { Call } from './call.ts';
import type { Route } from './router.ts';

const NAME_SHOWN_MAX = 100;

/** Violations of a request, in the order in which they were found. */
class Problems {
  readonly #violations = new ViolationList<ErrorCode>();
  /** Of the first violation: the answer has its code. */
  #details: Record<string, unknown> | undefined;
  /** In a part of a composite request: whether a value is not known yet, because a reference stands for it. */
  readonly isOpen: ((value: unknown) => boolean) | null;

  constructor({ content }: Pick<Call, 'content'>) {
    this.isOpen = content && isReferring;
  }

  add(code: ErrorCode, pointer: string, message: string, details?: Record<string, unknown>): void {
    if (this.#violations.list.length === 0) this.#details = details;
    this.#violations.add(() => violation(pointer, code, message));
  }

  /** Adds the violations of a body. */
  addBody(schema: TSchema, body: unknown): void {
    const found = this.isOpen ? new ViolationList<ErrorCode>() : this.#violations;
    collectBodyViolations(schema, body, found);
    if (!this.isOpen) return;
    for (const one of found.list) if (!this.isOpen(valueAt(body, one.pointer))) this.#violations.add(() => one);
  }

  /** The refusal of the request; null when nothing is wrong with it. */
  refusal(): PlatformError | null {
    const { list, count } = this.#violations;
    const [first] = list;
    if (!first) return null;
    return new PlatformError(
      first.code,
      list.length === 1 ? first.message : `The request has ${count} problems; see errors.`,
      { errors: [...list], ...(this.#details ? { details: this.#details } : {}) },
    );
  }
}

const isReferring = (value: unknown): boolean => typeof value === 'string' && hasReference(value);

/** The value to which a JSON Pointer leads. */
const valueAt = (body: unknown, pointer: string): unknown =>
  memberAt(
    body,
    pointer
      .split('/')
      .slice(1)
      .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~')),
  );

/** Step: reads the form of the call. */
export function checkForm(_gate: unknown, x: Call): void {
  x.asked = readForm(x, x.route);
}

/** Step: completes the fingerprint of a mutation whose body is parsed here. */
export function identify(_gate: unknown, { asked, route }: Call): void {
  const kind = route.operation.requestBody?.kind;
  if (asked?.fingerprint === undefined || kind === 'raw') return;
  asked.fingerprint =
    kind === 'stream'
      ? fingerprintWithDigest(asked.fingerprint, (asked.body as StreamedBody).sha256 ?? '')
      : completeFingerprint(asked.fingerprint, asked.body);
}

/**
 * Builds the call of the operation, or throws everything that is wrong with the form of the request. The fingerprint of
 * a mutation does not cover the body yet: `identify` does that, since it takes long for a large one.
 */
function readForm(x: Call, route: Route): OperationCall {
  const { operation } = route;
  const problems = new Problems(x);
  const path = readPath(x, route, problems);
  const pairs = readPairs(x.rawQuery, problems);
  const query = readQuery(pairs, route, problems);
  const headers = readHeaders(x, route, query, problems);
  const body = readBody(x, operation, problems);
  const refusal = problems.refusal();
  if (refusal) throw refusal;
  const call: OperationCall = { operationId: operation.operationId, path, query, headers };
  if (body !== undefined) call.body = body;
  if (operation.mutation) {
    call.fingerprint = fingerprintHead({
      method: operation.method,
      path: x.path,
      query: pairs,
      ifMatch: headers.ifMatch,
      expectedRevision: headers.expectedRevision === undefined ? undefined : String(headers.expectedRevision),
      duplicateConfirmation: headers.duplicateConfirmation,
      agentRunId: header(x, 'x-agent-run-id'),
    });
  }
  if (wantsIeee754Compatible(x)) call.ieee754Compatible = true;
  return call;
}

function readPath(x: Call, route: Route, problems: Problems): Record<string, string> {
  const path: Record<string, string> = {};
  for (let i = 0; i < route.parameterNames.length; i++) {
    const name = route.parameterNames[i] ?? '';
    const value = decode(x.pathValues[i] ?? '');
    if (value === null || value.includes('\0')) {
      problems.add('PARAMETER_INVALID', `path:${name}`, `${name} in the path is not valid text.`);
      continue;
    }
    const parameter = route.pathParameters[i];
    const isText = !parameter || !isId(parameter.schema) || problems.isOpen?.(value);
    path[name] = isText ? value : value.toLowerCase();
    if (parameter) check(`path:${name}`, value, parameter, problems);
  }
  return path;
}

/** True for a UUID parameter; UUIDs compare case-insensitively. */
export const isId = (schema: TSchema & { format?: string }): boolean => schema.format === 'uuid';

/** Percent-encoded text decoded; null when it is malformed. */
export function decode(text: string): string | null {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

const decodeForm = (text: string): string | null => decode(text.includes('+') ? text.replaceAll('+', ' ') : text);

/** Names and values of a query string, decoded; a malformed one is reported and left out. */
function readPairs(rawQuery: string, problems: Problems): [string, string][] {
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
      problems.add(
        'PARAMETER_INVALID',
        `query:${name ?? rawName}`,
        'The query has text that is not valid UTF-8 in percent-encoding.',
      );
    else pairs.push([name, value]);
  }
  return pairs;
}

function readQuery(
  pairs: readonly [string, string][],
  { operation: { queryParameters: parameters = [] }, checkedBy }: Route,
  problems: Problems,
): Record<string, unknown> {
  const query: Record<string, unknown> = {};
  const seen = new Set<string>();
  for (const [name, text] of pairs) {
    const parameter = parameters.find((one) => one.name === name);
    if (!parameter) {
      const shown = JSON.stringify(name.slice(0, NAME_SHOWN_MAX));
      const advice = name === 'checkOnly' && checkedBy ? triedOutBy(checkedBy) : meant(name, parameters);
      problems.add('PARAMETER_UNKNOWN', `query:${name}`, `This operation has no query parameter ${shown}.${advice}`);
    } else if (seen.has(name)) {
      problems.add('PARAMETER_INVALID', `query:${name}`, `${name} may be given only once.`);
    } else {
      seen.add(name);
      const value = parameter.json
        ? parsed(`query:${name}`, text, parameter, problems)
        : converted(`query:${name}`, text, parameter, problems);
      if (value !== undefined) query[name] = value;
    }
  }
  for (const { name, required } of parameters)
    if (required && !seen.has(name)) problems.add('PARAMETER_REQUIRED', `query:${name}`, `${name} is required.`);
  return query;
}

const meant = (name: string, parameters: readonly Parameter[]): string =>
  parameterAdvice(
    name,
    parameters.map((one) => one.name),
  );

/** The refusal for callers of an earlier version. */
const triedOutBy = ({ operationId, method, path }: Operation): string =>
  ` Try it out with ${operationId}: ${method} ${path}.`;

/** The value of serialized JSON; its service validates it. */
function parsed(pointer: string, text: string, { name, example }: Parameter, problems: Problems): unknown {
  try {
    return parseJson(text, LIMITS.json_depth_max);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const correct = `${name}=${JSON.stringify(example)}`;
    problems.add(
      'PARAMETER_INVALID',
      pointer,
      `${name} must be JSON, such as ${correct} (percent-encoded): ${error.message}`,
    );
    return undefined;
  }
}

/** The validated value that the text of a parameter stands for; undefined when it is of another type. */
function converted(pointer: string, text: string, parameter: Parameter, problems: Problems): unknown {
  const value = typed(text, parameter.schema);
  if (value === undefined)
    problems.add('PARAMETER_INVALID', pointer, `${parameter.name} must be ${expected(parameter.schema)}.`);
  else check(pointer, value, parameter, problems);
  return value;
}

/** The value that the text of a parameter stands for; undefined: it stands for none. */
function typed(text: string, schema: TSchema): unknown {
  if (Type.IsInteger(schema)) {
    if (!/^-?\d{1,16}$/.test(text)) return undefined;
    const value = Number(text);
    return Number.isSafeInteger(value) ? value : undefined;
  }
  if (Type.IsNumber(schema)) return /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text) ? Number(text) : undefined;
  if (Type.IsBoolean(schema)) return text === 'true' ? true : text === 'false' ? false : undefined;
  if (Type.IsArray(schema)) {
    const values = text === '' ? [] : text.split(',').map((one) => typed(one, schema.items));
    return values.includes(undefined) ? undefined : values;
  }
  return text;
}

function expected(schema: TSchema): string {
  if (Type.IsInteger(schema)) return 'an integer';
  if (Type.IsNumber(schema)) return 'a number';
  if (Type.IsBoolean(schema)) return 'true or false';
  return 'a comma-separated list';
}

function check(pointer: string, value: unknown, parameter: Parameter, problems: Problems): void {
  if (problems.isOpen?.(value)) return;
  const problem = valueProblem(parameter.schema, value);
  if (problem !== null) problems.add('PARAMETER_INVALID', pointer, `${parameter.name} ${problem}.`);
}

function header(x: Call, name: string): string | undefined {
  const value = x.headers[name];
  return typeof value === 'string' ? value : undefined;
}

function readHeaders(
  x: Call,
  { operation, reads }: Route,
  query: Record<string, unknown>,
  problems: Problems,
): OperationHeaders {
  const { mutation, headerParameters = [] } = operation;
  const headers: OperationHeaders = {};
  if (mutation) readIdempotencyKey(x, headers, problems);
  if (reads.ifMatch) readIfMatch(x, operation, headers, problems);
  if (reads.expectedRevision) readRevision(x, operation, query, headers, problems);
  const agentRunId = header(x, 'x-agent-run-id');
  if (agentRunId !== undefined && !isUuid(agentRunId.toLowerCase()))
    problems.add('PARAMETER_INVALID', 'header:X-Agent-Run-Id', 'X-Agent-Run-Id must be a UUID.');
  for (const parameter of headerParameters) readHeader(x, parameter, headers, problems);
  return headers;
}

/** Reads a header of the operation's row, unless it has a rule of its own. */
function readHeader(x: Call, parameter: HeaderParameter, headers: OperationHeaders, problems: Problems): void {
  const { name, required } = parameter;
  const pointer = `header:${name}`;
  const text = header(x, name.toLowerCase());
  if (text === undefined) {
    if (required) problems.add('PARAMETER_REQUIRED', pointer, `${name} is required.`);
    return;
  }
  const property = HEADERS[name];
  if (property === 'idempotencyKey' || property === 'ifMatch' || property === 'expectedRevision') return;
  converted(pointer, text, parameter, problems);
  headers[property] = text;
}

function readIdempotencyKey(x: Call, headers: OperationHeaders, problems: Problems): void {
  const key = header(x, 'idempotency-key');
  if (key === undefined)
    problems.add('IDEMPOTENCY_KEY_REQUIRED', 'header:Idempotency-Key', 'Idempotency-Key is required.');
  else if (!isIdempotencyKey(key))
    problems.add('IDEMPOTENCY_KEY_INVALID', 'header:Idempotency-Key', IDEMPOTENCY_KEY_RULE);
  else headers.idempotencyKey = key;
}

function readIfMatch(x: Call, operation: Operation, headers: OperationHeaders, problems: Problems): void {
  const ifMatch = header(x, 'if-match')?.trim();
  if (ifMatch === undefined) {
    if (operation.precondition === 'ifMatch')
      problems.add('IF_MATCH_REQUIRED', 'header:If-Match', 'If-Match is required: the ETag that was read.');
  } else if (strongEtags(ifMatch) === null) problems.add('IF_MATCH_INVALID', 'header:If-Match', IF_MATCH_RULE);
  else headers.ifMatch = ifMatch;
}

function readRevision(
  x: Call,
  operation: Operation,
  query: Record<string, unknown>,
  headers: OperationHeaders,
  problems: Problems,
): void {
  const text = header(x, 'x-expected-revision');
  const inQuery = query['expectedRevision'];
  const pointer = 'header:X-Expected-Revision';
  if (text !== undefined && !/^\d{1,15}$/.test(text))
    problems.add('PARAMETER_INVALID', pointer, 'X-Expected-Revision must be an integer.');
  else if (text !== undefined && inQuery !== undefined && Number(text) !== inQuery)
    problems.add('PARAMETER_CONFLICT', pointer, 'X-Expected-Revision and expectedRevision differ.');
  else if (text !== undefined) headers.expectedRevision = Number(text);
  else if (typeof inQuery === 'number') headers.expectedRevision = inQuery;
  // A body may have it; where one is required and missing, that is what is wrong.
  else if (
    operation.precondition === 'expectedRevision' &&
    x.body === null &&
    !operation.requestBody?.required &&
    header(x, 'if-match') === undefined
  )
    problems.add('EXPECTED_REVISION_REQUIRED', pointer, 'X-Expected-Revision is required: the revision that was read.');
}

const EMPTY_OBJECT = /^\s*\{\s*\}\s*$/;

const isEmptyObject = (body: Buffer): boolean => EMPTY_OBJECT.test(body.toString('latin1'));

function readBody(x: Call, operation: Operation, problems: Problems): unknown {
  const declared = operation.requestBody;
  if (x.content) return readContent(x.content.value, operation, problems);
  if (declared?.kind === 'stream') return readDeclared(x, operation, problems);
  if (x.body === null) {
    if (declared?.required) problems.add('BODY_REQUIRED', '', 'This operation needs a JSON body.');
    return undefined;
  }
  if (!declared) {
    // Generated clients send an empty object with every POST.
    if (!(operation.mutation && isEmptyObject(x.body)))
      problems.add('REQUEST_MALFORMED', '', 'This operation takes no body.');
    return undefined;
  }
  if (declared.kind === 'raw') return x.body;
  let body: unknown;
  try {
    body = parseJsonBytes(x.body, LIMITS.json_depth_max);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    problems.add('REQUEST_MALFORMED', '', error.message, error.details);
    return undefined;
  }
  checkContent(body, declared, problems);
  return body;
}

function checkContent(body: unknown, declared: RequestBody, problems: Problems): void {
  if (!isObject(body)) problems.add('PARAMETER_INVALID', '', 'The body must be a JSON object.');
  else if (declared.validate !== false) problems.addBody(declared.schema, body);
}

/** The body of a part of a composite request; undefined: it has none. */
function readContent(body: unknown, { requestBody: declared, mutation }: Operation, problems: Problems): unknown {
  const isEmpty = isObject(body) && Object.keys(body).length === 0;
  if (body === undefined) {
    if (declared?.required) problems.add('BODY_REQUIRED', '', 'This operation needs a JSON body.');
  } else if (declared) checkContent(body, declared, problems);
  else if (!(mutation && isEmpty)) problems.add('REQUEST_MALFORMED', '', 'This operation takes no body.');
  return declared ? body : undefined;
}

/** What a client declares about a body that is streamed. */
function readDeclared(x: Call, { mutation }: Operation, problems: Problems): StreamedBody {
  const digest = header(x, 'content-digest');
  const length = header(x, 'content-length');
  const sha256 = digest === undefined ? null : sha256Of(digest);
  const pointer = 'header:Content-Digest';
  if (digest !== undefined && sha256 === null)
    problems.add('PARAMETER_INVALID', pointer, 'Content-Digest must have the SHA-256 of the body: sha-256=:<base64>:.');
  else if (digest === undefined && mutation)
    problems.add('PARAMETER_REQUIRED', pointer, 'Content-Digest is required: sha-256=:<base64>: of the body.');
  const chunked = x.headers['transfer-encoding'] !== undefined;
  return {
    contentType: header(x, 'content-type') ?? null,
    bytes: chunked ? null : Number(length ?? 0),
    sha256,
  };
}

const wantsIeee754Compatible = (x: Call): boolean => {
  const accept = x.headers.accept;
  return accept !== undefined && accept.length > 25 && /;\s*ieee754compatible\s*=\s*true/i.test(accept);
};
