/** StateModel: the states of a record and the transitions between them. */
import { Type } from 'typebox';
import type { ObjectMeta, StateModelMeta } from '../../../lib/schema/snapshot.ts';
import { type ActBody, actKeys, actNames, actReferences, checkAct, compileAct } from './acts.ts';
import { compileField } from './compile-field.ts';
import { fieldTypeOf } from './field-attributes.ts';
import { type Body, type CheckContext, type Component, componentKey, type Kind, type Reference } from './kind.ts';
import { API_NAME, apiName, flag, group, listOf, optional, shownFlag, text } from './schema.ts';
import { SYSTEM_FIELD_NAMES } from './system-fields.ts';

interface TransitionBody extends ActBody {
  readonly key: string;
  readonly from: string[];
  readonly to: string;
}

export interface StateModelBody extends Body {
  readonly apiName: string;
  readonly object: string;
  readonly active?: boolean;
  readonly field: string;
  readonly initial: string;
  readonly allowDirectEdit: boolean;
  readonly states?: { value: string; description?: string }[];
  readonly transitions?: TransitionBody[];
}

const TRANSITIONS_MAX = 50;
const STATES_MAX = 100;

const state = (description: string) => Type.String({ minLength: 1, maxLength: 255, description });

export const stateModel: Kind = {
  type: 'StateModel',
  memberFormat: '<Object>.<StateModel>',
  pathPattern: 'objects/{object}/stateModels/{apiName}.yaml',
  child: true,
  reversible: true,
  schema: Type.Object(
    {
      type: Type.Literal('StateModel'),
      apiName: apiName('Stable name.'),
      object: apiName('The object that it belongs to.'),
      active: optional(flag(true, 'Records are held to it; an object has one active state model.')),
      field: Type.String({ pattern: API_NAME, description: 'A restricted picklist of the object: the state.' }),
      initial: state('State of a new record.'),
      allowDirectEdit: optional(shownFlag(false, 'The state may also be changed like any other field.')),
      states: optional(
        listOf(
          group(
            { value: state('Value of the picklist.'), description: optional(text('What it means.')) },
            'One state.',
          ),
          'The states; by default all active values of the picklist.',
          STATES_MAX,
        ),
      ),
      transitions: optional(
        listOf(
          group(
            {
              key: apiName('Stable name, unique over the transitions and actions of the object.'),
              ...actNames,
              from: listOf(state('A state.'), 'States in which it can be taken.', STATES_MAX),
              to: state('State in which it ends.'),
              ...actKeys,
            },
            'One transition.',
          ),
          'Transitions, in the order in which they are listed.',
          TRANSITIONS_MAX,
        ),
      ),
    },
    { additionalProperties: false },
  ),

  references(body) {
    const { object, field, transitions } = body as StateModelBody;
    const found: Reference[] = [{ type: 'CustomObject', fullName: object, pointer: '/object' }];
    if (!SYSTEM_FIELD_NAMES.has(field))
      found.push({ type: 'CustomField', fullName: `${object}.${field}`, pointer: '/field' });
    for (const [i, transition] of (transitions ?? []).entries())
      found.push(...actReferences(object, transition, `/transitions/${i}`));
    return found;
  },

  check(component, context) {
    const body = component.body as StateModelBody;
    if (!context.after.has(componentKey('CustomObject', body.object))) return;
    if (body.object === 'User') {
      context.problem('STATE_MODEL_INVALID', component, '/object', 'Users have no state model.');
      return;
    }
    checkStates(component, context, body);
    for (const [i, transition] of (body.transitions ?? []).entries())
      checkAct(component, context, {
        object: body.object,
        body: transition,
        pointer: `/transitions/${i}`,
        stateField: body.field,
      });
  },

  checkAll(context) {
    const models = new Map<string, Component>();
    for (const component of context.after.values()) {
      if (component.type !== 'StateModel') continue;
      const { object, active } = component.body as StateModelBody;
      if (active === false) continue;
      const twin = models.get(object);
      if (twin)
        context.problem(
          'STATE_MODEL_INVALID',
          component,
          '/active',
          `${object} has the active state model ${twin.fullName} already.`,
          { remedy: 'Set active: false for one of the two.' },
        );
      else models.set(object, component);
    }
    checkBeginnings(context);
    checkKeys(context);
  },

  compile(component, draft) {
    const body = component.body as StateModelBody;
    const object = draft.objects[body.object] as { -readonly [K in keyof ObjectMeta]: ObjectMeta[K] } | undefined;
    const field = object?.fields[body.field];
    if (!object || !field || body.active === false) return;
    object.fields = { ...object.fields, [body.field]: { ...field, stateField: true, defaultValue: body.initial } };
    object.stateModel = compileStateModel(body);
  },
};

function compileStateModel(body: StateModelBody): StateModelMeta {
  return {
    apiName: body.apiName,
    field: body.field,
    initial: body.initial,
    allowDirectEdit: body.allowDirectEdit,
    transitions: (body.transitions ?? []).map((transition) => ({
      ...compileAct(transition.key, transition, transition.permission ?? null),
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
  if (fieldTypeOf(field).choices !== 'one' || !restrictedPicklist) {
    invalid('/field', `The state is a restricted picklist, and ${body.field} is none.`);
    return;
  }
  if (controllingField !== null)
    invalid('/field', `${body.field} depends on ${controllingField}; a state depends on nothing.`);
  const active = new Set((picklistValues ?? []).filter((value) => value.active).map((value) => value.value));
  const declared = body.states?.map((item) => item.value);
  for (const [i, value] of (declared ?? []).entries()) {
    if (!active.has(value)) invalid(`/states/${i}/value`, `${body.field} has no active value ${value}.`);
    if (declared!.indexOf(value) !== i) invalid(`/states/${i}/value`, `The state ${value} stands twice.`);
  }
  const states = new Set(declared ?? active);
  if (states.size > STATES_MAX)
    context.problem('LIMIT_EXCEEDED', component, '/field', `An object has ${STATES_MAX} states at most.`, {
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
      if (transition.from.indexOf(value) !== j) invalid(`${at}/from/${j}`, `The state ${value} stands twice.`);
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
export function checkBeginnings(context: CheckContext): void {
  const components = [...context.after.values()];
  const types = components.filter(({ type }) => type === 'RecordType');
  if (types.length === 0) return;
  for (const component of components) {
    const { object, field, initial, active } = component.body as StateModelBody;
    if (component.type !== 'StateModel' || active === false) continue;
    for (const { fullName, body } of types) {
      const limited = (body['picklistValues'] ?? {}) as Record<string, string[]>;
      const values = Object.hasOwn(limited, field) ? limited[field] : undefined;
      if (body['object'] === object && values && !values.includes(initial))
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
    const twin = seen.get(name.toLowerCase());
    if (twin === undefined) seen.set(name.toLowerCase(), { name, type: component.type });
    // That two actions have names of their own is checked as for all components.
    else if (component.type !== 'CustomAction' || twin.type !== 'CustomAction')
      context.problem(
        'NAME_CONFLICT',
        component,
        pointer,
        twin.name === name
          ? `The key ${key} stands twice among the transitions and actions of the object.`
          : `${name} differs from ${twin.name} in upper and lower case only.`,
      );
  };
  for (const component of context.after.values()) {
    const { active, transitions } = component.body as StateModelBody;
    if (component.type === 'CustomAction') claim(component, String(component.body['apiName']), '/apiName');
    if (component.type !== 'StateModel' || active === false || modelled.has(component.body['object'])) continue;
    modelled.add(component.body['object']);
    for (const [i, { key }] of (transitions ?? []).entries()) claim(component, key, `/transitions/${i}/key`);
  }
}
