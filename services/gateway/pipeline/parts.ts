/**
 * The parts of a composite request: each is checked by the steps of a request of its own, before any is carried out. All
 * that is wrong with the form of any part is one answer. Source: docs/reference/composite.md.
 */
import { API_PREFIX, pathOf } from '../../../lib/addresses.ts';
import { type ErrorCode, isErrorCode } from '../../../lib/errors/catalogue.ts';
import { PlatformError, type Violation, violation } from '../../../lib/errors/platform-error.ts';
import { pointerPart } from '../../../lib/errors/pointer.ts';
import { VIOLATIONS_MAX } from '../../../lib/errors/violation-list.ts';
import { isObject, membersOf } from '../../../lib/json/objects.ts';
import { eachText, hasReference, piecesOf } from '../../../lib/json/references.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { Operation, Parameter } from '../../../lib/operation.ts';
import { relatedObjectsIn } from '../../../lib/query/conditions.ts';
import { LongWork } from '../../../mixins/long-work.ts';
import { mark } from '../../../mixins/watchdog/work.ts';
import { Call } from './call.ts';
import { isId } from './form.ts';
import type { Gate, Step } from './gate.ts';

/** Steps of a part: those of its caller, and those that need its form. */
export interface PartSteps {
  readonly ofCaller: readonly Step[];
  readonly ofForm: readonly Step[];
}

/** Paths that parts may have. */
const ROOTS = ['/data/', '/objects'];
/** Rows for each additional cost unit. */
const ROWS_PER_UNIT = 10;

type Sent = Readonly<Record<string, unknown>>;

/** Step: checks the parts of the call, and charges for them. */
export function enterParts(steps: PartSteps): Step {
  return (gate, x) => {
    const { parts } = x.route.operation;
    if (parts === undefined || !x.asked) return undefined;
    const body: Sent = isObject(x.asked.body) ? x.asked.body : {};
    return parts === 'rows' ? enterRows(gate, x, steps, body) : enterRequests(gate, x, steps, body);
  };
}

/** Checks all rows as one part, because they are the same operation on the same object. */
async function enterRows(gate: Gate, x: Call, { ofCaller }: PartSteps, body: Sent): Promise<void> {
  const named = String(body['operation']);
  const operation = gate.router.routes.find((route) => route.operation.checkedBy?.as === named)?.operation;
  if (!operation) throw new Error(`No operation is tried out as ${named}.`);
  const path = pathOf(operation.path, (name) => (name === 'objectApiName' ? String(body['objectApiName']) : '-'));
  const part = partOf(x, operation.method, path, {});
  for (const step of ofCaller) await step(gate, part);
  const rows: readonly unknown[] = Array.isArray(body['records']) ? body['records'] : [];
  const fields = rows.flatMap((row) => Object.entries(membersOf(membersOf(row)['fields'])));
  const isCleared = ([, value]: readonly [string, unknown]): boolean => value === null;
  part.asked = {
    operationId: operation.operationId,
    path: { objectApiName: String(body['objectApiName']) },
    query: {},
    headers: rows.some((row) => membersOf(row)['duplicateConfirmation'] !== undefined)
      ? { duplicateConfirmation: '' }
      : {},
    // A field that any row sets is set, whatever rows clear it.
    body: Object.fromEntries([...fields.filter(isCleared), ...fields.filter((field) => !isCleared(field))]),
  };
  x.parts = [part];
  x.mutations = rows.length;
  await charge(gate, x, x.route.operation.cost + Math.ceil(rows.length / ROWS_PER_UNIT));
}

async function enterRequests(gate: Gate, x: Call, steps: PartSteps, body: Sent): Promise<void> {
  const requests: readonly unknown[] = Array.isArray(body['requests']) ? body['requests'] : [];
  const problems: Violation[] = [];
  const known = new Set<string>();
  const every = new Map<unknown, number>();
  for (const [index, request] of requests.entries()) {
    const name = isObject(request) ? request['referenceId'] : null;
    const at = `/requests/${index}`;
    if (every.has(name))
      problems.push(violation(`${at}/referenceId`, 'PARAMETER_INVALID', 'Another part has the same referenceId.'));
    else every.set(name, index);
  }
  const parts: Call[] = [];
  const work = new LongWork();
  let cost = 0;
  for (const [index, request] of requests.entries()) {
    if (!isObject(request)) continue;
    if (work.isLong) await work.turn().then(mark);
    const at = `/requests/${index}`;
    const part = await readPart(gate, x, steps, request, at, problems);
    if (part?.asked) {
      for (const problem of referenceProblems(part, known))
        problems.push({ ...problem, pointer: placed(at, problem.pointer) });
      parts.push(part);
      cost += part.route.operation.cost;
    }
    if (typeof request['referenceId'] === 'string') known.add(request['referenceId']);
    if (problems.length > VIOLATIONS_MAX) break;
  }
  const [first] = problems;
  if (first)
    throw new PlatformError(
      isErrorCode(first.code) ? first.code : 'PARAMETER_INVALID',
      problems.length === 1 ? first.message : 'The request has several problems; see errors.',
      { errors: problems.slice(0, VIOLATIONS_MAX) },
    );
  x.parts = parts;
  x.asked!.parts = parts.map((part, index) => ({
    referenceId: String(membersOf(requests[index])['referenceId']),
    call: part.asked!,
  }));
  // Not sent twice: the fingerprint covers the requests, and the service reads them from `parts`.
  x.asked!.body = { ...body, requests: [] };
  x.mutations = parts.filter((part) => part.route.operation.mutation).length;
  await charge(gate, x, cost);
}

/** Charges the cost of all parts, less that of the call, which has been charged already. It is in flight with that cost. */
async function charge({ budgets }: Gate, x: Call, cost: number): Promise<void> {
  x.costOfParts = cost;
  const connection = x.session?.connection;
  if (!connection) return;
  x.leaveFlight();
  x.enterFlight(budgets.enter(connection, cost));
  const more = cost - x.route.operation.cost;
  if (more > 0) await budgets.charge(connection, more);
}

/** The part as a call of its own, which has passed its checks; null when it is malformed, as `problems` then says. */
async function readPart(
  gate: Gate,
  x: Call,
  { ofCaller, ofForm }: PartSteps,
  { method, path, query, headers, body }: Sent,
  at: string,
  problems: Violation[],
): Promise<Call | null> {
  const refuse = (pointer: string, message: string): null => {
    problems.push(violation(at + pointer, 'PARAMETER_INVALID', message));
    return null;
  };
  const text = String(path);
  if (!ROOTS.some((root) => text.startsWith(root)) || /[?#\s]/.test(text))
    return refuse('/path', 'The path of a part must be below /data or /objects, without a query string.');
  const pairs = Object.entries(isObject(query) ? query : {});
  const rawQuery = pairs.map(([name, value]) => `${encoded(name)}=${encoded(queryText(value))}`).join('&');
  if (text.length + rawQuery.length > LIMITS.uri_max_bytes)
    return refuse('/path', `Path and query may have at most ${LIMITS.uri_max_bytes} characters together.`);
  const part = partOf(
    x,
    String(method),
    rawQuery === '' ? text : `${text}?${rawQuery}`,
    isObject(headers) ? headers : {},
  );
  part.content = { value: body };
  try {
    for (const step of ofCaller) await step(gate, part);
    const { operation, checks } = part.route;
    const isForeign = serviceOf(operation) !== serviceOf(x.route.operation);
    if (
      checks ||
      isForeign ||
      operation.ownTransaction ||
      operation.response.kind ||
      (operation.requestBody?.kind ?? 'json') !== 'json'
    )
      return refuse('/path', 'This operation cannot be a part of a composite request.');
    const bytes = body === undefined ? 0 : Buffer.byteLength(JSON.stringify(body));
    if (bytes > (operation.requestBody?.maxBytes ?? Number.POSITIVE_INFINITY))
      return refuse('/body', `The body may have at most ${operation.requestBody?.maxBytes} bytes.`);
    for (const step of ofForm) await step(gate, part);
    return part;
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
    if (error.code === 'ROUTE_NOT_FOUND' || error.code === 'METHOD_NOT_ALLOWED') return refuse('/path', error.message);
    if (error.status !== 400) throw error;
    const found = error.errors ?? [violation('', error.code, error.message)];
    for (const one of found) problems.push({ ...one, pointer: placed(at, one.pointer) });
    return null;
  }
}

/** The service that answers an operation: one transaction is of one service. */
const serviceOf = ({ action }: Operation): string => action.split('.', 1)[0] ?? '';

const encoded = (text: string): string => encodeURIComponent(text.toWellFormed());

const queryText = (value: unknown): string =>
  typeof value === 'string' ? value : isListOfTexts(value) ? value.join(',') : JSON.stringify(value);

const isListOfTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

/** A request within `x`, by its caller. */
function partOf(x: Call, method: string, path: string, { ifMatch, duplicateConfirmation }: Sent): Call {
  const { ip, door, requestId, startedAt } = x;
  const given = {
    accept: x.headers.accept,
    'accept-language': x.headers['accept-language'],
    'idempotency-key': x.headers['idempotency-key'],
    'x-agent-run-id': x.headers['x-agent-run-id'],
    'if-match': ifMatch,
    'x-duplicate-confirmation': duplicateConfirmation,
  };
  const headers = Object.fromEntries(
    Object.entries(given).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
  const part = new Call({ method, url: API_PREFIX + path, headers, ip, door, requestId, startedAt });
  part.span = x.span;
  part.session = x.session;
  part.budget = x.budget;
  return part;
}

/** A pointer of a single request, as one into the body of the composite request. */
function placed(at: string, pointer: string): string {
  const [where = '', name = ''] = pointer.split(/:(.*)/s);
  if (where === 'path') return `${at}/path`;
  if (where === 'query') return `${at}/query/${pointerPart(name)}`;
  if (where === 'header') return name === 'If-Match' ? `${at}/headers/ifMatch` : `${at}/headers/duplicateConfirmation`;
  return `${at}/body${pointer}`;
}

/** Violations of the rules for references. They may stand for values only, not for what is done to which object. */
function referenceProblems({ asked, route, expanded }: Call, known: ReadonlySet<string>): Violation<ErrorCode>[] {
  const problems: Violation<ErrorCode>[] = [];
  const add = (pointer: string, message: string): void => {
    problems.push(violation(pointer, 'COMPOSITE_REFERENCE_INVALID', message));
  };
  let count = 0;
  const look = (text: string, pointer: string): void => {
    if (!text.includes('@{')) return;
    const pieces = piecesOf(text);
    if (!pieces) add(pointer, 'A reference has the form @{referenceId.field}; write @@{ for the text @{.');
    for (const piece of pieces ?? []) {
      if (typeof piece === 'string') continue;
      // A text of a megabyte has very many.
      if (problems.length > VIOLATIONS_MAX) return;
      count++;
      if (!known.has(piece.name)) add(pointer, `No earlier part has the referenceId ${piece.name}.`);
    }
  };
  const { path, query, body } = asked!;
  for (const [index, name] of route.parameterNames.entries()) {
    const value = path[name] ?? '';
    if (hasReference(value) && !takesReference(name, route.pathParameters[index]))
      add(`path:${name}`, `${name} cannot contain a reference.`);
    else look(value, `path:${name}`);
  }
  for (const [name, value] of Object.entries(query)) eachText(value, `query:${name}`, look);
  eachText(body, '', look);
  if (count > LIMITS.composite_references_max)
    add('', `A part may have at most ${LIMITS.composite_references_max} references.`);
  const input = membersOf(body)['input'];
  if (typeof input === 'string' && hasReference(input))
    add('/input', 'input must be an object: a reference can stand for the value of an input only.');
  const filters = query['filters'] ?? (isObject(body) ? body['filters'] : undefined);
  if ([...expanded, ...relatedObjectsIn(filters)].some(hasReference))
    add('', 'References cannot name related objects or expanded references.');
  return problems;
}

/** The parameter is a value of a record, not a name in the configuration. */
const takesReference = (name: string, parameter: Parameter | undefined): boolean =>
  name === 'value' || (parameter !== undefined && isId(parameter.schema));
