/** StateModel: the states of a record and the transitions between them. */
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import type { StateModelMeta } from '../../../lib/schema/snapshot.ts';
import { RECORD_TYPE } from './bodies/record-type.ts';
import { STATE_MODEL, STATES_MAX, type StateModelBody } from './bodies/state-model.ts';
import { compileField } from './compile-field.ts';
import { type Component, componentKey, componentsOf, findComponent, isOf } from './component.ts';
import { type CheckContext, defineKind, type Reference } from './kind.ts';
import { SYSTEM_FIELD_NAMES } from './system-fields.ts';
import {
  checkTransition,
  compileTransition,
  isTransitionAffected,
  transitionReferences,
} from './transitions-and-actions.ts';

export const stateModel = defineKind({
  ...STATE_MODEL,
  memberFormat: '<Object>.<StateModel>',
  reversible: true,
  dependsOn: ['CustomObject', 'CustomField', 'StateModel', 'CustomAction', 'NotificationTemplate'],

  references,

  check(component, context) {
    const body = component.body;
    if (!context.after.has(componentKey('CustomObject', body.object))) return;
    if (body.object === 'User') {
      context.problem('STATE_MODEL_INVALID', component, '/object', 'Users have no state model.');
      return;
    }
    checkStates(component, context, body);
    const deployed = findComponent(context.before, STATE_MODEL, component.fullName)?.body.transitions;
    for (const [i, transition] of (body.transitions ?? []).entries())
      checkTransition(component, context, {
        object: body.object,
        body: transition,
        before: deployed?.find(({ key }) => key === transition.key),
        pointer: `/transitions/${i}`,
        stateField: body.field,
      });
  },

  isAffected: ({ body }, changes) => isTransitionAffected(references(body), changes),

  checkAll(context) {
    const models = new Map<string, Component>();
    for (const component of componentsOf(context.after, STATE_MODEL)) {
      const { object, active } = component.body;
      if (active === false) continue;
      const other = models.get(object);
      if (other)
        context.problem(
          'STATE_MODEL_INVALID',
          component,
          '/active',
          `${object} has the active state model ${other.fullName} already.`,
          { remedy: 'Set active: false for one of the two.' },
        );
      else models.set(object, component);
    }
    checkInitialStates(context);
    checkKeys(context);
  },

  compile(component, draft) {
    const body = component.body;
    const object = draft.objects[body.object];
    const field = object?.fields[body.field];
    if (!object || !field || body.active === false) return;
    object.fields = { ...object.fields, [body.field]: { ...field, stateField: true, defaultValue: body.initial } };
    object.stateModel = compileStateModel(body);
  },
});

function references(body: StateModelBody): Reference[] {
  const { object, field, transitions } = body;
  const found: Reference[] = [{ type: 'CustomObject', fullName: object, pointer: '/object' }];
  if (!SYSTEM_FIELD_NAMES.has(field))
    found.push({ type: 'CustomField', fullName: `${object}.${field}`, pointer: '/field', access: 'edit' });
  for (const [i, transition] of (transitions ?? []).entries())
    found.push(...transitionReferences(object, transition, `/transitions/${i}`));
  return found;
}

function compileStateModel(body: StateModelBody): StateModelMeta {
  return {
    apiName: body.apiName,
    field: body.field,
    initial: body.initial,
    allowDirectEdit: body.allowDirectEdit,
    transitions: (body.transitions ?? []).map((transition) => ({
      ...compileTransition(transition.key, transition, transition.permission ?? null),
      from: transition.from,
      to: transition.to,
    })),
  };
}

/** The field and the states that exist; what cannot be reached is only worth a warning. */
function checkStates(component: Component, context: CheckContext, body: StateModelBody): void {
  const invalid = (pointer: string, message: string): void =>
    context.problem('STATE_MODEL_INVALID', component, pointer, message);
  if (SYSTEM_FIELD_NAMES.has(body.field)) {
    invalid('/field', `The state is a restricted picklist, and ${body.field} is none.`);
    return;
  }
  const field = context.fieldsOf(body.object).get(body.field);
  if (!field) return;
  const { picklistValues, restrictedPicklist, controllingField } = compileField(field, context.after);
  if (fieldType(field.body.fieldType).choices !== 'one' || !restrictedPicklist) {
    invalid('/field', `The state is a restricted picklist, and ${body.field} is none.`);
    return;
  }
  if (controllingField !== null)
    invalid('/field', `${body.field} depends on ${controllingField}; a state depends on nothing.`);
  const active = new Set((picklistValues ?? []).filter((value) => value.active).map((value) => value.value));
  const declared = body.states?.map((item) => item.value);
  for (const [i, value] of declared?.entries() ?? []) {
    if (!active.has(value)) invalid(`/states/${i}/value`, `${body.field} has no active value ${value}.`);
    if (declared?.indexOf(value) !== i) invalid(`/states/${i}/value`, `Duplicate state ${value}.`);
  }
  const states = new Set(declared ?? active);
  if (states.size > STATES_MAX)
    context.problem('LIMIT_EXCEEDED', component, '/field', `An object may have at most ${STATES_MAX} states.`, {
      remedy: 'Name those of the values that are states.',
      details: { max: STATES_MAX },
    });
  const known = (pointer: string, value: string): void => {
    if (states.has(value)) return;
    invalid(
      pointer,
      active.has(value) ? `${value} is not among the states.` : `${body.field} has no active value ${value}.`,
    );
  };
  known('/initial', body.initial);
  for (const [i, transition] of (body.transitions ?? []).entries()) {
    const at = `/transitions/${i}`;
    if (transition.from.length === 0) invalid(`${at}/from`, 'A transition starts in one state at least.');
    for (const [j, value] of transition.from.entries()) {
      known(`${at}/from/${j}`, value);
      if (transition.from.indexOf(value) !== j) invalid(`${at}/from/${j}`, `Duplicate state ${value}.`);
    }
    known(`${at}/to`, transition.to);
  }
  for (const value of unreachable(body, states))
    context.warning(
      'STATE_MODEL_INVALID',
      component,
      '/transitions',
      `No transition leads from ${body.initial} to ${value}.`,
    );
}

/** A record of a type that does not take the initial state would have none, and no transition leads out of that. */
export function checkInitialStates(context: CheckContext): void {
  const types = componentsOf(context.after, RECORD_TYPE);
  if (types.length === 0) return;
  for (const component of componentsOf(context.after, STATE_MODEL)) {
    const { object, field, initial, active } = component.body;
    if (active === false) continue;
    for (const { fullName, body } of types) {
      const { picklistValues: limited = {} } = body;
      const values = Object.hasOwn(limited, field) ? limited[field] : undefined;
      if (body.object === object && values && !values.includes(initial))
        context.problem(
          'STATE_MODEL_INVALID',
          component,
          '/initial',
          `Records of the type ${fullName} do not take ${initial}.`,
          { remedy: `Add ${initial} to the values of ${field} in the record type.` },
        );
    }
  }
}

function unreachable({ initial, transitions = [] }: StateModelBody, states: ReadonlySet<string>): string[] {
  const reached = new Set([initial]);
  for (let before = 0; before !== reached.size; ) {
    before = reached.size;
    for (const { from, to } of transitions) if (from.some((value) => reached.has(value))) reached.add(to);
  }
  return [...states].filter((value) => !reached.has(value));
}

/** Keys are unique over the active model and the actions of an object, also in their upper and lower case. */
export function checkKeys(context: CheckContext): void {
  const seen = new Map<string, { readonly name: string; readonly type: string }>();
  const modelled = new Set<unknown>();
  const claim = (component: Component, key: string, pointer: string): void => {
    const name = `${String(component.body['object'])}.${key}`;
    const other = seen.get(name.toLowerCase());
    if (other === undefined) seen.set(name.toLowerCase(), { name, type: component.type });
    // That two actions have names of their own is checked as for all components.
    else if (component.type !== 'CustomAction' || other.type !== 'CustomAction')
      context.problem(
        'NAME_CONFLICT',
        component,
        pointer,
        other.name === name
          ? `Duplicate key ${key} among the transitions and actions of the object.`
          : `${name} differs from ${other.name} in upper and lower case only.`,
      );
  };
  for (const component of context.after.values()) {
    if (component.type === 'CustomAction') claim(component, String(component.body['apiName']), '/apiName');
    if (!isOf(component, STATE_MODEL)) continue;
    const { object, active, transitions = [] } = component.body;
    if (active === false || modelled.has(object)) continue;
    modelled.add(object);
    for (const [i, { key }] of transitions.entries()) claim(component, key, `/transitions/${i}/key`);
  }
}
