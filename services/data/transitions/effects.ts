/**
 * Effects of transitions and actions, compiled once per configuration: what they read, what they set, and the values
 * that their expressions give. Source: docs/reference/transitions.md#effects.
 */

import { type Violation, violation } from '../../../lib/errors/platform-error.ts';
import { checkExpression } from '../../../lib/expression/check.ts';
import { evaluate, type Facts } from '../../../lib/expression/evaluate.ts';
import { storedFieldsOf } from '../../../lib/expression/formulas.ts';
import { type InputCheck, inputCheck, inputTypes, inputValue } from '../../../lib/expression/transition-input.ts';
import type { Expression, Instant, Type, Value } from '../../../lib/expression/types.ts';
import { schemaOfObject } from '../../../lib/expression/values.ts';
import { ExactNumber } from '../../../lib/json/exact-number.ts';
import { ownEntry, requireField } from '../../../lib/schema/lookup.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { type Exact, exactText } from '../../../lib/values/decimal.ts';
import { memoize } from '../../../lib/values/memoize.ts';
import { failureOf } from '../evaluation.ts';
import { decidingFields, type TransitionOrAction } from './transitions-and-actions.ts';

/** Expressions by the names of what they give. */
type Expressions = readonly (readonly [name: string, expression: Expression])[];

interface CompiledEffects {
  readonly input: InputCheck | null;
  readonly inputTypes: Readonly<Record<string, Type>>;
  readonly updates: Expressions;
  readonly creates: readonly { readonly objectApiName: string; readonly fields: Expressions }[];
  readonly messages: readonly Message[];
  /** Stored fields that all of it reads, and those that it sets. */
  readonly reads: readonly FieldMeta[];
  readonly sets: readonly FieldMeta[];
}

/** A notification or an event that an effect sends. */
export type Message =
  | { readonly kind: 'notification'; readonly type: string; readonly to: string; readonly template: string | null }
  | { readonly kind: 'event'; readonly type: string; readonly data: Expressions };

const ANY: readonly Type[] = [
  ...(['text', 'number', 'boolean', 'date', 'dateTime', 'time', 'null', 'address', 'geolocation'] as const),
  ...(['list:text', 'list:number', 'list:boolean', 'list:date', 'list:dateTime', 'list:time', 'list:null'] as const),
];

export const compiledEffects = memoize((transition: TransitionOrAction): CompiledEffects => {
  const { object, meta } = transition;
  const types = inputTypes(meta.input);
  const schema = { ...schemaOfObject(object), input: types };
  const all: Expression[] = [];
  const expressions = (of: Readonly<Record<string, string>>): Expressions =>
    Object.entries(of).map(([name, source]) => {
      const expression = checkExpression(source, schema, ANY);
      all.push(expression);
      return [name, expression];
    });
  const updates: Expressions[] = [];
  const creates: CompiledEffects['creates'][number][] = [];
  const messages: Message[] = [];
  for (const effect of meta.effects)
    switch (effect.verb) {
      case 'updateFields':
        updates.push(expressions(effect.fields));
        break;
      case 'createRecord':
        creates.push({ objectApiName: effect.object, fields: expressions(effect.fields) });
        break;
      case 'sendNotification':
        messages.push({ kind: 'notification', type: effect.type, to: effect.to, template: effect.template ?? null });
        break;
      default:
        messages.push({ kind: 'event', type: effect.type, data: expressions(effect.data) });
    }
  const recipients = messages.flatMap((message) => (message.kind === 'notification' ? recipientField(message.to) : []));
  const names = new Set([...all.flatMap((expression) => storedFieldsOf(object, expression)), ...recipients]);
  const sets = updates.flat().map(([name]) => requireField(object, name));
  return {
    input: meta.input && inputCheck(meta.input),
    inputTypes: types,
    updates: updates.flat(),
    creates,
    messages,
    reads: [...decidingFields(object), ...[...names].map((name) => requireField(object, name))],
    sets:
      object.stateModel && transition.kind === 'transition'
        ? [...sets, requireField(object, object.stateModel.field)]
        : sets,
  };
});

/** The field that names the recipient; none for the user who acts. */
export const recipientField = (to: string): string[] => (to === 'actor' ? [] : [to === 'owner' ? 'ownerId' : to]);

/** The facts of a record, and the input of the transition. */
export const withInput = (
  facts: Facts,
  { inputTypes: types }: CompiledEffects,
  input: Record<string, unknown>,
): Facts => ({
  ...facts,
  input: (name) => {
    const type = types[name];
    return type === undefined ? null : inputValue(type, ownEntry(input, name));
  },
});

/** Results of expressions in the form of a body; failures become violations. */
export function valuesOf(expressions: Expressions, facts: Facts, invalid: Violation[]): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, expression] of expressions)
    try {
      values[name] = asJson(evaluate(expression, facts));
    } catch (error) {
      const failure = failureOf(error, 'The effects could not be computed in time.');
      const message = `The value of ${name} cannot be computed: ${failure.message}.`;
      invalid.push(violation('', 'FIELD_OUT_OF_RANGE', message, { field: name, params: { reason: failure.reason } }));
    }
  return values;
}

function asJson(value: Value): unknown {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(asJson);
  if (isInstant(value)) return new Date(value.ms).toISOString();
  if (isExact(value)) return new ExactNumber(exactText(value));
  return Object.fromEntries(Object.entries(value).map(([part, item]) => [part, asJson(item)]));
}

const isInstant = (value: object): value is Instant => 'ms' in value;
const isExact = (value: object): value is Exact => 'units' in value;
