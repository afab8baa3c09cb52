/** References that a call gives a value, which policies judge like reads of what they lead to: pure. */
import type { Admission } from '../../../contracts/agent.ts';
import { inputsOfExpression } from '../../../lib/expression/check.ts';
import { isObject } from '../../../lib/json/objects.ts';
import { isReference } from '../../../lib/schema/field-types/registry.ts';
import { fieldOf, objectOf } from '../../../lib/schema/lookup.ts';
import type { FieldMeta, Snapshot, TransitionOrActionMeta } from '../../../lib/schema/snapshot.ts';
import { memoize } from '../../../lib/values/memoize.ts';
import { bodyHasFields, executesTransitions } from '../approvals/operations.ts';
import { transitionOf } from './risk.ts';

/** Fields that the call, or what it tries out, gives a value. */
export function fieldsGiven({ operationId, body, checked }: Admission): string[] {
  return given(checked ? isObject(body) && body['fields'] : bodyHasFields({ operationId }) && body);
}

/** True when the call, or its dry run, sends the input of a transition. */
export const sendsInput = (call: Admission): boolean => inputsGiven(call).length > 0;

const inputsGiven = ({ operationId, body, checked }: Admission): string[] =>
  given(executesTransitions((checked ?? { operationId }).operationId) && isObject(body) && body['input']);

const given = (values: unknown): string[] =>
  isObject(values) ? Object.keys(values).filter((name) => values[name] !== null) : [];

/** Objects to which references lead that the effects of a transition set from what the call sends as its input. */
export function objectsReferredByInput(call: Admission, snapshot: Snapshot): string[] {
  const inputs = inputsGiven(call);
  const { objectApiName = '', transitionKey } = call.pathParameters;
  const object = objectOf(snapshot, objectApiName);
  const key = call.checked && isObject(call.body) ? call.body['transitionKey'] : transitionKey;
  const transition = object && typeof key === 'string' && transitionOf(object, key);
  if (!transition || inputs.length === 0) return [];
  return setFromInput(transition).flatMap(({ objectApiName: created, field: name, names }) => {
    const set = created === null ? object : objectOf(snapshot, created);
    const field: FieldMeta | undefined = set && fieldOf(set, name);
    return field && isReference(field) && inputs.some((input) => names.has(input)) ? field.referenceTo : [];
  });
}

interface SetFromInput {
  /** Of a record that is created; null: of the record itself. */
  readonly objectApiName: string | null;
  readonly field: string;
  readonly names: ReadonlySet<string>;
}

const setFromInput = memoize(({ effects }: TransitionOrActionMeta): readonly SetFromInput[] =>
  effects.flatMap((effect) => {
    if (effect.verb !== 'updateFields' && effect.verb !== 'createRecord') return [];
    const objectApiName = effect.verb === 'createRecord' ? effect.object : null;
    return Object.entries(effect.fields).flatMap(([field, source]) => {
      const names = inputsOfExpression(source);
      return names && names.size > 0 ? [{ objectApiName, field, names }] : [];
    });
  }),
);
