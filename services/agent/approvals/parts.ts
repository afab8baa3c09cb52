/**
 * Approvals of composite requests: each change is shown, and decided, as the request that it would be alone. Pure.
 * Source: docs/reference/composite.md#agents.
 */
import type { Admission } from '../../../contracts/agent.ts';
import { operationRow } from '../../../contracts/operations.ts';
import { API_PREFIX, pathOf } from '../../../lib/addresses.ts';
import { isObject, membersOf } from '../../../lib/json/objects.ts';
import { parseJson } from '../../../lib/json/parse.ts';
import { filled, hasReference, mapTexts, memberAt, type Reference, textOf } from '../../../lib/json/references.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { recordChangeOf } from '../../../lib/operation.ts';
import { memoize } from '../../../lib/values/memoize.ts';
import type { ApprovalRow } from './approval.sql.ts';
import { executesTransitions } from './operations.ts';

/** A part or row as it was sent. */
interface SentPart {
  /** null for a row. */
  readonly referenceId: string | null;
  readonly operationId: string;
  readonly method: string;
  readonly path: string;
  readonly pathParameters: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** A part of an approval. */
export interface ApprovedPart {
  readonly sent: SentPart;
  /** The part as a request of its own, with the values that its references had in the dry run. */
  readonly row: ApprovalRow;
  readonly isChange: boolean;
  /** Of the dry run. */
  readonly result: Readonly<Record<string, unknown>>;
  readonly before: unknown;
}

export const isChange = ({ operationId }: Pick<SentPart, 'operationId'>): boolean =>
  operationRow(operationId)?.mutation === true;

/** The parts of a composite request, or its rows; null for any other call. */
export function partsOfCall(call: Admission): SentPart[] | null {
  const [first] = call.parts ?? [];
  if (!call.parts || !first) return null;
  return operationRow(call.operationId)?.parts === 'rows'
    ? rowsOf(membersOf(call.body), first)
    : call.parts.map((part) => ({
        referenceId: part.referenceId ?? null,
        operationId: part.operationId,
        method: part.method,
        path: part.path,
        pathParameters: part.pathParameters,
        query: part.query,
        headers: part.headers,
        body: part.body ?? null,
      }));
}

function rowsOf(
  { records, externalIdField }: Record<string, unknown>,
  { operationId, pathParameters }: Admission,
): SentPart[] {
  const { objectApiName = '' } = pathParameters;
  const operation = operationRow(operationId);
  return (Array.isArray(records) ? records : []).map(membersOf).map((record): SentPart => {
    const fields = membersOf(record['fields']);
    const named: Record<string, string> = { objectApiName };
    if (typeof record['id'] === 'string') named['id'] = record['id'];
    if (typeof externalIdField === 'string') {
      named['externalIdField'] = externalIdField;
      named['value'] = textOf(fields[externalIdField]) ?? '';
    }
    return {
      referenceId: null,
      operationId,
      method: operation?.method ?? '',
      path: API_PREFIX + pathOf(operation?.path ?? '', (name) => named[name] ?? ''),
      pathParameters: named,
      query: {},
      headers: Object.fromEntries(
        Object.entries({
          'if-match': record['ifMatch'],
          'x-duplicate-confirmation': record['duplicateConfirmation'],
        }).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
      ),
      body: record['fields'] ?? null,
    };
  });
}

/** Why a composite request cannot be approved as a whole, as a clause of a sentence; null when it can. */
export function unaskable(call: Admission, parts: readonly SentPart[]): string | null {
  const changes = parts.filter(isChange);
  if (membersOf(call.body)['allOrNone'] === false)
    return 'allOrNone is false, while an approval covers all parts or none';
  if (changes.length > LIMITS.agent_approval_changes_max)
    return `an approval may cover at most ${LIMITS.agent_approval_changes_max} changes`;
  // The effects of a transition cannot be shown for a record that does not exist yet.
  const isBlind = ({ operationId, pathParameters }: SentPart): boolean =>
    executesTransitions(operationId) && hasReference(pathParameters['id'] ?? '');
  return changes.some(isBlind) ? 'a transition names its record by a reference' : null;
}

/** The parts of an approval; null: it is one operation. */
export const partsOf = memoize((row: ApprovalRow): ApprovedPart[] | null => {
  if (row.parts === null) return null;
  const sent = listIn(row.parts).filter(isSentPart);
  const preview = membersOf(row.preview === null ? null : parseJson(row.preview, LIMITS.json_depth_max));
  const results = Array.isArray(preview['results']) ? preview['results'].map(membersOf) : [];
  const before = Array.isArray(preview['before']) ? preview['before'] : [];
  const values = valuesOf(sent, results);
  return sent.map((part, at) => ({
    sent: part,
    row: { ...row, ...resolved(part, values), parts: null, preview: null },
    isChange: isChange(part),
    result: results[at] ?? {},
    before: before[at] ?? null,
  }));
});

/** The value of a reference; `new`: the id of a record that only the execution creates. */
type Value = { readonly value: unknown } | 'new';

type Values = (reference: Reference) => Value;

function valuesOf(sent: readonly SentPart[], results: readonly Readonly<Record<string, unknown>>[]): Values {
  const places = new Map(sent.map(({ referenceId }, at) => [referenceId, at]));
  return ({ name, path }) => {
    const at = places.get(name) ?? -1;
    const { status, body } = results[at] ?? {};
    const makes = recordChangeOf(operationRow(sent[at]?.operationId ?? ''))?.needs.includes('create');
    if (makes && status === 201 && path.length === 1 && path[0] === 'id') return 'new';
    return { value: memberAt(body, path) };
  };
}

/** The request with the values of its references. The id of a new record is null in a body, and left out of the path parameters. */
function resolved(
  { operationId, method, path, pathParameters, query, headers, body }: SentPart,
  values: Values,
): Pick<ApprovalRow, 'operationId' | 'method' | 'path' | 'pathParameters' | 'query' | 'headers' | 'body'> {
  const whole = (reference: Reference): unknown => {
    const found = values(reference);
    return found === 'new' ? null : (found.value ?? '');
  };
  const within = (reference: Reference): string => textOf(whole(reference)) ?? '';
  const texts = Object.entries(pathParameters).flatMap(([name, text]) => {
    const value = filled(text, whole, within);
    return value === null ? [] : [[name, String(value)] as const];
  });
  const content = mapTexts(body, (text) => filled(text, whole, within));
  return {
    operationId,
    method,
    path,
    pathParameters: Object.fromEntries(texts),
    query,
    headers,
    body: content === null ? null : JSON.stringify(content),
  };
}

/** The item was stored by partsOfCall. */
const isSentPart = (value: unknown): value is SentPart => isObject(value) && 'operationId' in value;

function listIn(text: string): unknown[] {
  const list: unknown = parseJson(text, LIMITS.json_depth_max);
  return Array.isArray(list) ? list : [];
}
