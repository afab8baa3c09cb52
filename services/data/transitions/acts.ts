/** The transitions and actions of an object, ready to be judged: which there are, and what stands against each. */

import { permissionRefusal } from '../../../lib/access/decide.ts';
import type { Access, ObjectAccess, ScopeSet } from '../../../lib/access/types.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { checkExpression } from '../../../lib/expression/check.ts';
import { evaluate, type Facts } from '../../../lib/expression/evaluate.ts';
import { storedFieldsOf, withFormulas } from '../../../lib/expression/formulas.ts';
import type { Expression } from '../../../lib/expression/types.ts';
import { schemaOfObject, valueOfField } from '../../../lib/expression/values.ts';
import { valueTypeName } from '../../../lib/schema/field-types/registry.ts';
import type { ActMeta, EffectMeta, FieldMeta, ObjectMeta, StateModelMeta } from '../../../lib/schema/snapshot.ts';
import { memoize } from '../../../lib/values/memoize.ts';
import { callerFacts, failureOf } from '../evaluation.ts';
import { own } from '../tenants.ts';
import type { View } from '../view.ts';

export interface Act {
  readonly object: ObjectMeta;
  readonly kind: 'transition' | 'action';
  readonly meta: ActMeta;
  /** States in which it can be taken, and where it leads; null for an action, which leaves the state as it is. */
  readonly from: readonly string[] | null;
  readonly to: string | null;
  readonly guard: Expression | null;
}

/** Transitions in the order of the state model, then actions by name. */
const actsOf = memoize((object: ObjectMeta): readonly Act[] => {
  const guard = (meta: ActMeta): Expression | null =>
    meta.guard === null ? null : checkExpression(meta.guard, schemaOfObject(object), ['boolean']);
  const { stateModel, actions } = object;
  return [
    ...(stateModel?.transitions ?? []).map(
      (meta): Act => ({ object, kind: 'transition', meta, from: meta.from, to: meta.to, guard: guard(meta) }),
    ),
    ...actions.map((meta): Act => ({ object, kind: 'action', meta, from: null, to: null, guard: guard(meta) })),
  ];
});

/** The state model, as far as it exists for the caller: who cannot read the state knows of no states. */
export function visibleModel({ object, fields }: ObjectAccess): StateModelMeta | null {
  const model = object.stateModel;
  return model && own(fields, model.field)?.read ? model : null;
}

/** The state that a record is in, as far as the caller knows of states. */
export function stateIn(access: ObjectAccess, stored: Readonly<Record<string, unknown>>): string | null {
  const model = visibleModel(access);
  return model ? ((own(stored, model.field) as string | null | undefined) ?? null) : null;
}

/** What exists for the caller, available or not. */
export const visibleActs = (access: ObjectAccess): readonly Act[] =>
  visibleModel(access) ? actsOf(access.object) : actsOf(access.object).filter((act) => act.kind === 'action');

/** Fields that decide what can be done: the state and what the guards read. */
export const decidingFields = memoize((object: ObjectMeta): readonly FieldMeta[] => {
  const names = new Set(actsOf(object).flatMap((act) => (act.guard ? storedFieldsOf(object, act.guard) : [])));
  if (object.stateModel) names.add(object.stateModel.field);
  return [...names].map((name) => object.fields[name]!);
});

interface Reason {
  readonly code: string;
  readonly message: string;
}

/** What is known about a record and its caller. */
export interface Situation {
  readonly view: View;
  readonly scopes: ScopeSet;
  readonly access: ObjectAccess;
  readonly state: string | null;
  /** Sharing lets the caller change the record. */
  readonly editable: boolean;
  readonly facts: Facts;
  /** Refusals of acts for the parents that they put records under. */
  readonly misplaced: ReadonlyMap<Act, PlatformError>;
}

/** Everything that stands against an act, in the order in which executing it would find out. */
export function reasonsAgainst(act: Act, situation: Situation): Reason[] {
  const { view, scopes, editable, state } = situation;
  const reasons: Reason[] = [];
  const add = (code: string, message: string): void => {
    reasons.push({ code, message });
  };
  if (!scopes.includes('actions:execute')) add('SCOPE_INSUFFICIENT', 'The connection has no scope actions:execute.');
  for (const { code, message } of permissionsMissing(act, view)) add(code, message);
  if (!editable) add('RECORD_ACCESS_DENIED', 'You may read this record, but not change it.');
  if (!startsIn(act, state)) add('STATE_CONFLICT', wrongState(act));
  else if (!guardHolds(act, situation.facts)) add('GUARD_NOT_MET', guardMessage(act));
  const misplaced = situation.misplaced.get(act);
  if (misplaced) add(misplaced.code, misplaced.message);
  return reasons;
}

/** Refusals for want of permissions on objects and fields, which come before what sharing says of the record. */
export function permissionsMissing(act: Act, { access }: View): PlatformError[] {
  const missing = [
    permissionRefusal(access, act.object.apiName, 'update'),
    isPermitted(act, access)
      ? null
      : new PlatformError('TRANSITION_NOT_ALLOWED', notPermitted(act), {
          details: { layer: 'objectPermission', permission: act.meta.permission },
        }),
  ];
  const object = closedObject(act, access);
  if (object !== null)
    missing.push(
      own(access.objects, object) ? permissionRefusal(access, object, 'create') : beyond('objectPermission'),
    );
  else if (closedField(act, access) !== null) missing.push(beyond('fieldPermission'));
  return missing.filter((item) => item !== null);
}

/** What the caller cannot see is not named. */
const beyond = (layer: 'objectPermission' | 'fieldPermission'): PlatformError =>
  new PlatformError('TRANSITION_NOT_ALLOWED', 'You may not do everything that this transition does.', {
    details: { layer },
  });

type Creates = Extract<EffectMeta, { verb: 'createRecord' }>;

const createsOf = ({ meta }: Act): readonly Creates[] =>
  meta.effects.filter((effect): effect is Creates => effect.verb === 'createRecord');

/** The first object of which an act makes a record and the caller may not: they make what comes along. */
export const closedObject = (act: Act, { objects }: Access): string | null =>
  createsOf(act).find(({ object }) => !own(objects, object)?.permission.create)?.object ?? null;

/** The first field, as `<Object>.<field>`, that an act sets in a record it makes and that the caller may not edit. */
export function closedField(act: Act, { objects }: Access): string | null {
  for (const { object, fields } of createsOf(act)) {
    const known = own(objects, object)?.fields;
    const closed = known && Object.keys(fields).find((name) => !own(known, name)?.edit);
    if (closed !== undefined) return `${object}.${closed}`;
  }
  return null;
}

/** Permissions for acts are given by name; no permission on data implies them. */
export const isPermitted = ({ meta }: Act, { actions }: Access): boolean =>
  meta.permission === null || actions.has(meta.permission);

export const notPermitted = ({ meta }: Act): string => `It takes the permission for the action ${meta.permission}.`;

export const startsIn = ({ from }: Act, state: string | null): boolean =>
  from === null || (state !== null && from.includes(state));

export const wrongState = ({ from }: Act): string => `It starts from ${listed(from ?? [])}.`;

export const guardMessage = ({ meta }: Act): string =>
  meta.guardMessage ?? `The condition for “${meta.label}” is not met.`;

const listed = (names: readonly string[]): string =>
  names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;

/** A guard sees all fields, whoever asks; one that cannot be evaluated does not hold. */
export function guardHolds({ guard }: Act, facts: Facts): boolean {
  if (guard === null) return true;
  try {
    return evaluate(guard, facts) === true;
  } catch (error) {
    failureOf(error, 'A guard could not be evaluated in time.');
    return false;
  }
}

/** What the variables stand for before anything happens: `old` is the record itself. */
export function storedFacts(view: View, object: ObjectMeta, stored: Readonly<Record<string, unknown>>): Facts {
  const caller = callerFacts(view, Date.now());
  const stand = withFormulas(
    object,
    (name) => valueOfField(valueTypeName(object.fields[name]!), own(stored, name) ?? null),
    caller,
  );
  return { record: stand, old: stand, isChanged: () => false, ...caller };
}
