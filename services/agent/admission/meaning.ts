/**
 * The canonical form of a request: pure. A rejection holds for all of its spellings; an approval is bound
 * to the bytes all the same. Source: docs/reference/agents.md#approvals.
 */
import { hash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { Admission } from '../../../contracts/agent.ts';
import { operationRow } from '../../../contracts/operations.ts';
import { isObject } from '../../../lib/json/objects.ts';
import { recordChangeOf } from '../../../lib/operation.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import type { Snapshot } from '../../../lib/schema/snapshot.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { executesTransitions, hasRawBody } from '../approvals/operations.ts';
import { isChange, partsOfCall } from '../approvals/parts.ts';

type Asked = Pick<Admission, 'operationId' | 'pathParameters' | 'body'>;

/**
 * SHA-256 (hex) of the operation, the decoded values of its path and the canonical body (RFC 8785), without what a
 * creation sets in any case. Headers are left out: what was rejected for one version of a record, or without confirming
 * a duplicate, is rejected. Of a body that only its service reads, what it means is the plan in its `preview`; null: it
 * is not known yet. A composite request is its changes, and one of a single change is that change.
 */
export function meaningOf(call: Admission, snapshot: Snapshot, preview: object | null): string | null {
  const { operationId, pathParameters } = call;
  const changes = partsOfCall(call)
    ?.filter(isChange)
    .map((part) => [part.operationId, part.pathParameters, contentOf(part, snapshot)]);
  if (changes?.length === 1) return hashOf(changes[0]);
  const content = hasRawBody(operationId) ? planOf(preview) : (changes ?? contentOf(call, snapshot));
  return content === undefined ? null : hashOf([operationId, pathParameters, content]);
}

const hashOf = (request: unknown): string => hash('sha256', canonicalize(inOneCase(request)) ?? '');

const planOf = (preview: object | null): unknown =>
  Object.entries(preview ?? {}).find(([name]) => name === 'planHash')?.[1];

const contentOf = (call: Asked, snapshot: Snapshot): unknown =>
  executesTransitions(call.operationId) ? withoutBlanks(call) : withoutDefaults(call, snapshot);

/** To a transition, null is no input, and white space no comment. */
function withoutBlanks({ body }: Asked): unknown {
  if (!isObject(body)) return null;
  const input = isObject(body['input']) ? Object.entries(body['input']).filter(([, value]) => value !== null) : [];
  const { comment } = body;
  const content = {
    ...(input.length > 0 ? { input: Object.fromEntries(input) } : {}),
    ...(typeof comment === 'string' && comment.trim() !== '' ? { comment } : {}),
  };
  return Object.keys(content).length > 0 ? content : null;
}

/** A field that is set to its default, or to nothing where it has none, is as good as not set. */
function withoutDefaults({ operationId, pathParameters, body = null }: Asked, { objects }: Snapshot): unknown {
  const { needs = [] } = recordChangeOf(operationRow(operationId)) ?? {};
  if (!isObject(body) || needs.length === 0 || needs.some((need) => need !== 'create')) return body;
  const fields = ownEntry(objects, pathParameters['objectApiName'] ?? '')?.fields ?? {};
  const isDefault = (name: string, value: unknown): boolean => {
    const field = ownEntry(fields, name);
    return field !== undefined && canonicalize(value) === canonicalize(field.defaultValue ?? null);
  };
  return Object.fromEntries(Object.entries(body).filter(([name, value]) => !isDefault(name, value)));
}

/** Ids have one meaning in upper and lower case. */
function inOneCase(value: unknown): unknown {
  if (typeof value === 'string') {
    const lower = value.length === 36 ? value.toLowerCase() : value;
    return isUuid(lower) ? lower : value;
  }
  if (Array.isArray(value)) return value.map(inOneCase);
  if (!isObject(value) || 'toJSON' in value) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, inOneCase(inner)]));
}
