/**
 * How risky a call is, and whether it gives access: a property of the operation together with its target. Pure.
 * Source: docs/reference/agents.md#risk.
 */
import type { Admission } from '../../../contracts/agent.ts';
import { operationRow } from '../../../contracts/operations.ts';
import { isObject } from '../../../lib/json/objects.ts';
import { givesAccess, type Operation, recordChangeOf } from '../../../lib/operation.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import { fieldsThatShare } from '../../../lib/schema/shares-through.ts';
import type { ObjectMeta, Snapshot, TransitionOrActionMeta } from '../../../lib/schema/snapshot.ts';
import { executesTransitions } from '../approvals/operations.ts';
import type { AccessGiven } from './evaluate.ts';

interface Judgement {
  readonly risk: Operation['risk'];
  readonly access: AccessGiven;
}

/** An operation, what it is on, and what it sends. */
interface Judged {
  readonly operationId: string;
  readonly risk: Operation['risk'];
  readonly objectApiName: string | null;
  readonly transitionKey: string | null;
  readonly body: unknown;
}

type Asked = Pick<Admission, 'operationId' | 'risk' | 'pathParameters' | 'body' | 'checked'>;

/** `checked`: as the operation that a check tries out. */
export function judge(
  { operationId, risk, pathParameters, body, checked }: Asked,
  snapshot: Snapshot,
  asChecked: boolean,
): Judgement {
  const { objectApiName = null, transitionKey = null } = pathParameters;
  if (!asChecked || !checked) return judged({ operationId, risk, objectApiName, transitionKey, body }, snapshot);
  const asked = isObject(body) ? body : {};
  const key = asked['transitionKey'];
  return judged(
    {
      ...checked,
      objectApiName,
      transitionKey: typeof key === 'string' ? key : null,
      body: asked['fields'],
    },
    snapshot,
  );
}

function judged(call: Judged, snapshot: Snapshot): Judgement {
  const access = accessGiven(call);
  if (access !== null) return { risk: 'high', access };
  const { objectApiName, body } = call;
  const object = ownEntry(snapshot.objects, objectApiName ?? '');
  if (executesTransitions(call.operationId) && object)
    return { risk: transitionOf(object, call.transitionKey)?.risk ?? call.risk, access };
  const change = recordChangeOf(operationRow(call.operationId));
  const handsOver =
    object !== undefined &&
    change?.setsFields === true &&
    change.needs.includes('update') &&
    isObject(body) &&
    ownershipFields(object).some((name) => body[name] !== undefined);
  return { risk: handsOver ? 'high' : call.risk, access };
}

function accessGiven({ operationId, objectApiName, body }: Judged): AccessGiven {
  const row = operationRow(operationId);
  if (!row?.givesAccess || !givesAccess(row, objectApiName, body)) return null;
  const { objects, properties } = row.givesAccess;
  if (properties) return 'content';
  return objects ? 'object' : 'operation';
}

/** Fields of a record whose values decide who has it: its owner, and those through which sharing rules share it. */
const ownershipFields = (object: ObjectMeta): readonly string[] => [
  'ownerId',
  ...fieldsThatShare(object).map(({ field }) => field.apiName),
];

export function transitionOf(
  { stateModel, actions }: ObjectMeta,
  key: string | null,
): TransitionOrActionMeta | undefined {
  return [...(stateModel?.transitions ?? []), ...actions].find((one) => one.key === key);
}
