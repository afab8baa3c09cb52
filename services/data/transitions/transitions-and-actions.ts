/** The transitions and actions of an object, and the reasons why each is unavailable for a caller and a record. */

import { permissionRefusal } from '../../../lib/access/decide.ts';
import type { Access, ObjectAccess, ScopeSet } from '../../../lib/access/types.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { checkExpression } from '../../../lib/expression/check.ts';
import { type Budget, evaluate, type Facts } from '../../../lib/expression/evaluate.ts';
import { storedFieldsOf, withFormulas } from '../../../lib/expression/formulas.ts';
import type { Expression } from '../../../lib/expression/types.ts';
import { schemaOfObject, valueOfField } from '../../../lib/expression/values.ts';
import { valueTypeName } from '../../../lib/schema/field-types/registry.ts';
import { ownEntry, requireField } from '../../../lib/schema/lookup.ts';
import type {
  EffectMeta,
  FieldMeta,
  ObjectMeta,
  StateModelMeta,
  TransitionOrActionMeta,
} from '../../../lib/schema/snapshot.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { memoize } from '../../../lib/values/memoize.ts';
import { callerFacts, failureOf } from '../evaluation.ts';
import type { View } from '../view.ts';

export interface TransitionOrAction {
  readonly object: ObjectMeta;
  readonly kind: 'transition' | 'action';
  readonly meta: TransitionOrActionMeta;
  /** States in which it can be executed, and the state it leads to; null for an action, which keeps the state. */
  readonly from: readonly string[] | null;
  readonly to: string | null;
  readonly guard: Expression | null;
}

/** Transitions in the order of the state model, then actions by name. */
const transitionsOf = memoize((object: ObjectMeta): readonly TransitionOrAction[] => {
  const guard = (meta: TransitionOrActionMeta): Expression | null =>
    meta.guard === null ? null : checkExpression(meta.guard, schemaOfObject(object), ['boolean']);
  const { stateModel, actions } = object;
  return [
    ...(stateModel?.transitions ?? []).map(
      (meta): TransitionOrAction => ({
        object,
        kind: 'transition',
        meta,
        from: meta.from,
        to: meta.to,
        guard: guard(meta),
      }),
    ),
    ...actions.map(
      (meta): TransitionOrAction => ({ object, kind: 'action', meta, from: null, to: null, guard: guard(meta) }),
    ),
  ];
});

/** The state model if the caller can read the state; it is hidden otherwise. */
export function visibleModel({ object, fields }: ObjectAccess): StateModelMeta | null {
  const model = object.stateModel;
  return model && ownEntry(fields, model.field)?.read ? model : null;
}

/** The state of a record, null when it is hidden from the caller. */
export function stateIn(access: ObjectAccess, stored: Readonly<Record<string, unknown>>): string | null {
  const model = visibleModel(access);
  const state = model && ownEntry(stored, model.field);
  return typeof state === 'string' ? state : null;
}

/** Transitions and actions that the caller sees, available or not. */
export const visibleTransitions = (access: ObjectAccess): readonly TransitionOrAction[] =>
  visibleModel(access)
    ? transitionsOf(access.object)
    : transitionsOf(access.object).filter((transition) => transition.kind === 'action');

/** Fields that decide which transitions are available: the state and what the guards read. */
export const decidingFields = memoize((object: ObjectMeta): readonly FieldMeta[] => {
  const names = new Set(
    transitionsOf(object).flatMap((transition) => (transition.guard ? storedFieldsOf(object, transition.guard) : [])),
  );
  if (object.stateModel) names.add(object.stateModel.field);
  return [...names].map((name) => requireField(object, name));
});

interface Reason {
  readonly code: string;
  readonly message: string;
}

/** State of a record and rights of its caller. */
export interface Situation {
  readonly view: View;
  readonly scopes: ScopeSet;
  readonly access: ObjectAccess;
  readonly state: string | null;
  /** Sharing lets the caller change the record. */
  readonly editable: boolean;
  readonly facts: Facts;
  /** Refusals because of the parents that a transition or action puts records under. */
  readonly misplaced: ReadonlyMap<TransitionOrAction, PlatformError>;
}

/** Why a transition or action is unavailable: all reasons, in the order in which executing it would check them. */
export function unavailableReasons(transition: TransitionOrAction, situation: Situation): Reason[] {
  const { view, scopes, editable, state } = situation;
  const reasons: Reason[] = [];
  const add = (code: string, message: string): void => {
    reasons.push({ code, message });
  };
  if (!scopes.includes('actions:execute')) add('SCOPE_INSUFFICIENT', 'The connection lacks the scope actions:execute.');
  for (const { code, message } of permissionsMissing(transition, view)) add(code, message);
  if (!editable) add('RECORD_ACCESS_DENIED', 'You may read this record, but you may not change it.');
  if (!startsIn(transition, state)) add('STATE_CONFLICT', wrongState(transition));
  else if (!guardHolds(transition, situation.facts)) add('GUARD_NOT_MET', guardMessage(transition));
  const misplaced = situation.misplaced.get(transition);
  if (misplaced) add(misplaced.code, misplaced.message);
  return reasons;
}

/** Refusals for missing permissions on objects and fields, which are checked before sharing. */
export function permissionsMissing(transition: TransitionOrAction, { access }: View): PlatformError[] {
  const missing = [
    permissionRefusal(access, transition.object.apiName, 'update'),
    isPermitted(transition, access)
      ? null
      : new PlatformError('TRANSITION_NOT_ALLOWED', notPermitted(transition), {
          details: { layer: 'objectPermission', permission: transition.meta.permission },
        }),
  ];
  const object = closedObject(transition, access);
  if (object !== null)
    missing.push(
      ownEntry(access.objects, object)
        ? permissionRefusal(access, object, 'create')
        : effectsDenied('objectPermission'),
    );
  else if (closedField(transition, access) !== null) missing.push(effectsDenied('fieldPermission'));
  return missing.filter((item) => item !== null);
}

/** Does not name an object or field that is hidden from the caller. */
const effectsDenied = (layer: 'objectPermission' | 'fieldPermission'): PlatformError =>
  new PlatformError('TRANSITION_NOT_ALLOWED', 'You lack a permission for one of the effects of this transition.', {
    details: { layer },
  });

type Creates = Extract<EffectMeta, { verb: 'createRecord' }>;

const createsOf = ({ meta }: TransitionOrAction): readonly Creates[] =>
  meta.effects.filter((effect): effect is Creates => effect.verb === 'createRecord');

/** The first object whose records an effect creates and the caller may not: effects need the caller's permissions. */
export const closedObject = (transition: TransitionOrAction, { objects }: Access): string | null =>
  createsOf(transition).find(({ object }) => !ownEntry(objects, object)?.permission.create)?.object ?? null;

/** The first field, as `<Object>.<field>`, that an effect sets in a new record and that the caller may not edit. */
export function closedField(transition: TransitionOrAction, { objects }: Access): string | null {
  for (const { object, fields } of createsOf(transition)) {
    const known = ownEntry(objects, object)?.fields;
    const closed = known && Object.keys(fields).find((name) => !ownEntry(known, name)?.edit);
    if (closed !== undefined) return `${object}.${closed}`;
  }
  return null;
}

/** Permissions for transitions and actions are given by name; no permission on data implies them. */
export const isPermitted = ({ meta }: TransitionOrAction, { actions }: Access): boolean =>
  meta.permission === null || actions.has(meta.permission);

export const notPermitted = ({ meta }: TransitionOrAction): string =>
  `The permission for the action ${meta.permission} is required.`;

export const startsIn = ({ from }: TransitionOrAction, state: string | null): boolean =>
  from === null || (state !== null && from.includes(state));

export const wrongState = ({ from }: TransitionOrAction): string =>
  `It can only be executed in the state ${listed(from ?? [])}.`;

export const guardMessage = ({ meta }: TransitionOrAction): string =>
  meta.guardMessage ?? `The condition for “${meta.label}” is not met.`;

const listed = (names: readonly string[]): string =>
  names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;

/** A guard reads all fields, also those hidden from the caller; one that cannot be evaluated does not hold. */
export function guardHolds({ guard }: TransitionOrAction, facts: Facts): boolean {
  if (guard === null) return true;
  try {
    return evaluate(guard, facts) === true;
  } catch (error) {
    failureOf(error, 'A guard could not be evaluated in time.');
    return false;
  }
}

/** The variables of expressions before anything has changed: `old` is the record itself. */
export function storedFacts(
  view: View,
  object: ObjectMeta,
  stored: Readonly<Record<string, unknown>>,
  budget: Budget,
): Facts {
  const caller = callerFacts(view, platformTime(), budget);
  const values = withFormulas(
    object,
    (name) => valueOfField(valueTypeName(requireField(object, name)), ownEntry(stored, name) ?? null),
    caller,
  );
  return { record: values, old: values, isChanged: () => false, ...caller };
}
