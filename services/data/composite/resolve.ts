/** Resolves the references of a part. Pure. The resolved part is validated like any request. */
import { operationRow } from '../../../contracts/operations.ts';
import type { ErrorCode } from '../../../lib/errors/catalogue.ts';
import { PlatformError, type Violation, violation } from '../../../lib/errors/platform-error.ts';
import { isObject, membersOf } from '../../../lib/json/objects.ts';
import { eachText, filled, mapTexts, type Reference, textOf } from '../../../lib/json/references.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { Operation, OperationCall, PartCall } from '../../../lib/operation.ts';
import { relatedObjectsIn } from '../../../lib/query/conditions.ts';
import { referencesIn } from '../../../lib/query/expand.ts';
import { bodyViolations, valueProblem } from '../../../lib/validation.ts';
import type { Results } from './results.ts';

/** The number of characters that references may still expand to. */
export interface Expansion {
  left: number;
}

/**
 * The call of a part with the values that its references stand for.
 * @throws PlatformError COMPOSITE_REFERENCE_INVALID, REQUEST_TOO_LARGE, or the violations of the resolved call.
 */
export function resolved({ call }: PartCall, results: Results, expansion: Expansion): OperationCall {
  if (!hasAny(call)) return call;
  const ofPart: Expansion = { left: Math.min(LIMITS.body_max_bytes, expansion.left) };
  const before = ofPart.left;
  const missing = new Set<string>();
  const change = (text: string): unknown => expanded(text, results, ofPart, missing);
  const texts = (values: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(values).map(([name, text]) => [name, textOf(change(text)) ?? '']));
  const made: OperationCall = {
    ...call,
    path: texts(call.path),
    query: membersOf(mapTexts(call.query, change)),
    ...(call.body === undefined ? {} : { body: mapTexts(call.body, change) }),
  };
  expansion.left -= before - ofPart.left;
  if (missing.size > 0) throw invalid(`No earlier part has the result ${[...missing].slice(0, 5).join(', ')}.`);
  if (readsOthers(made) !== readsOthers(call))
    throw invalid('References cannot name related objects or expanded references.');
  const row = operationRow(call.operationId);
  const problems = row ? problemsOf(row, made) : [];
  const [first] = problems;
  if (first) throw new PlatformError(first.code, first.message, { errors: problems });
  return made;
}

const invalid = (message: string): PlatformError => new PlatformError('COMPOSITE_REFERENCE_INVALID', message);

function hasAny({ path, query, body }: OperationCall): boolean {
  let found = false;
  eachText([Object.values(path), query, body], '', (text) => {
    found ||= text.includes('@{');
  });
  return found;
}

/** The followed references and related objects of a call, as a text to compare. */
function readsOthers({ query, body }: OperationCall): string {
  const members = isObject(body) ? body : {};
  return JSON.stringify([
    referencesIn({ ...members, ...query }),
    relatedObjectsIn(query['filters'] ?? members['filters']),
  ]);
}

function expanded(text: string, results: Results, expansion: Expansion, missing: Set<string>): unknown {
  if (!text.includes('@{')) return text;
  const find = ({ name, path }: Reference): unknown => {
    const value = results.find(name, path);
    if (value === undefined) missing.add(`${name}.${path.join('.')}`);
    return value;
  };
  const spend = (chars: number): void => {
    expansion.left -= chars;
    if (expansion.left < 0)
      throw new PlatformError(
        'REQUEST_TOO_LARGE',
        `References may expand to at most ${LIMITS.body_max_bytes} characters in a part, and ${LIMITS.composite_body_max_bytes} in all parts.`,
        { details: { maxBytes: LIMITS.body_max_bytes } },
      );
  };
  const whole = (reference: Reference): unknown => {
    const value = find(reference);
    spend(typeof value === 'string' ? value.length : (JSON.stringify(value)?.length ?? 0));
    return value;
  };
  const within = (reference: Reference): string => {
    const value = find(reference);
    const found = textOf(value);
    if (found === null && value !== undefined) missing.add(`${reference.name}.${reference.path.join('.')} as a text`);
    spend(found?.length ?? 0);
    return found ?? '';
  };
  return filled(text, whole, within);
}

/** Violations of the schemas of the operation. */
function problemsOf(row: Operation, { path, query, body }: OperationCall): Violation<ErrorCode>[] {
  const found: Violation<ErrorCode>[] = [];
  for (const parameter of row.pathParameters ?? []) {
    const value = path[parameter.name] ?? '';
    const problem = valueProblem(parameter.schema, value);
    const isLong = value.length > LIMITS.uri_max_bytes || value.includes('\0');
    if (problem !== null || isLong)
      found.push(
        violation(`path:${parameter.name}`, 'PARAMETER_INVALID', `${parameter.name} ${problem ?? 'is too long'}.`),
      );
  }
  for (const { name, schema, json } of row.queryParameters ?? []) {
    if (json || query[name] === undefined) continue;
    const problem = valueProblem(schema, query[name]);
    if (problem !== null) found.push(violation(`query:${name}`, 'PARAMETER_INVALID', `${name} ${problem}.`));
  }
  if (row.requestBody && row.requestBody.validate !== false && body !== undefined)
    found.push(...bodyViolations(row.requestBody.schema, body));
  return found;
}
