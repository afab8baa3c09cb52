/**
 * Common to transitions and custom actions: guard, permission, input and effects, in their files and in the
 * checks of a deployment. Source: docs/reference/transitions.md.
 */

import { checkExpression } from '../../../lib/expression/check.ts';
import { inputProblems, inputTypes } from '../../../lib/expression/transition-input.ts';
import type { Expression, Schema, Type as ValueType } from '../../../lib/expression/types.ts';
import { typeOfField } from '../../../lib/expression/values.ts';
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import type { EffectMeta, FieldTypeName, TransitionOrActionMeta } from '../../../lib/schema/snapshot.ts';
import { memoize } from '../../../lib/values/memoize.ts';
import { CUSTOM_FIELD } from './bodies/custom-field.ts';
import { CUSTOM_OBJECT } from './bodies/custom-object.ts';
import { STATE_MODEL, type StateModelBody } from './bodies/state-model.ts';
import type { EffectBody, TransitionBody } from './bodies/transitions-and-actions.ts';
import type { Changes } from './changes.ts';
import { compileField } from './compile-field.ts';
import { type Component, componentKey, componentsOf, type State } from './component.ts';
import { expressionReferences } from './expression-names.ts';
import { checked, schemaOf } from './expressions.ts';
import type { CheckContext, Reference } from './kind.ts';
import { SYSTEM_FIELD_NAMES } from './system-fields.ts';

/** Components that a transition or action needs; its own check says when a field of an expression is missing. */
export function transitionReferences(object: string, body: TransitionBody, pointer: string): Reference[] {
  const found = expressionReferences(object, body.guard ?? '', `${pointer}/guard`);
  if (body.permission !== undefined)
    found.push({ type: 'CustomAction', fullName: body.permission, pointer: `${pointer}/permission`, ownCheck: true });
  for (const [i, effect] of (body.effects ?? []).entries()) {
    const at = `${pointer}/effects/${i}`;
    const target = effect.verb === 'createRecord' ? effect.object : object;
    if (effect.verb === 'createRecord' && effect.object !== undefined)
      found.push({ type: 'CustomObject', fullName: effect.object, pointer: `${at}/object` });
    for (const [name, source] of Object.entries(effect.fields ?? {})) {
      if (target !== undefined && !SYSTEM_FIELD_NAMES.has(name))
        found.push({
          type: 'CustomField',
          fullName: `${target}.${name}`,
          pointer: `${at}/fields/${name}`,
          ownCheck: true,
          // A record is created with the permissions of who takes the transition.
          ...(effect.verb === 'updateFields' ? { access: 'edit' } : {}),
        });
      found.push(...expressionReferences(object, source, `${at}/fields/${name}`));
    }
    for (const [name, source] of Object.entries(effect.data ?? {}))
      found.push(...expressionReferences(object, source, `${at}/data/${name}`));
    const { to, template } = effect;
    if (template !== undefined)
      found.push({ type: 'NotificationTemplate', fullName: `${object}.${template}`, pointer: `${at}/template` });
    if (to !== undefined && !PEOPLE_OF_RECORDS.has(to))
      found.push({ type: 'CustomField', fullName: `${object}.${to}`, pointer: `${at}/to`, ownCheck: true });
  }
  return found;
}

/** All checks of a transition or action in a deployment; `stateField` is the field that only transitions may move. */
export function checkTransition(
  component: Component,
  context: CheckContext,
  transition: {
    object: string;
    body: TransitionBody;
    /** The same transition or action as it is deployed; absent: it is new. */
    before: TransitionBody | undefined;
    pointer: string;
    stateField: string | null;
  },
): void {
  const { object, body, before, pointer } = transition;
  const schema = schemaOf(object, context);
  const { guard, input } = body;
  if (guard !== undefined)
    checked(component, context, `${pointer}/guard`, () => checkExpression(guard, schema, ['boolean']));
  if (body.guardMessage !== undefined && guard === undefined)
    context.problem('YAML_SCHEMA_INVALID', component, `${pointer}/guardMessage`, 'There is no guard to speak for.');
  for (const problem of input ? inputProblems(input) : [])
    context.problem('YAML_SCHEMA_INVALID', component, `${pointer}/input${problem.pointer}`, problem.message);
  checkPermission(component, context, object, body.permission, `${pointer}/permission`);
  const known: Schema = { ...schema, input: inputTypes(input ?? null) };
  const updated = new Set<string>();
  const deployed = new Set(before?.effects?.map((effect) => JSON.stringify(effect)));
  for (const [i, effect] of (body.effects ?? []).entries())
    checkEffect(component, context, {
      ...transition,
      effect,
      pointer: `${pointer}/effects/${i}`,
      schema: known,
      updated,
      deployed,
    });
}

function checkPermission(
  component: Component,
  context: CheckContext,
  object: string,
  permission: string | undefined,
  pointer: string,
): void {
  if (permission === undefined) return;
  if (!permission.startsWith(`${object}.`))
    context.problem('REFERENCE_INVALID', component, pointer, `A permission here begins with ${object}.`);
  else if (!transitionKeysOf(context).has(permission) && !mayBeUnread(permission, context))
    context.problem('REFERENCE_INVALID', component, pointer, `There is no transition or action ${permission}.`, {
      remedy: 'Name the key of a transition or action of the object.',
    });
}

/** True when an object that a transition or action refers to, or a field, transition or action of it, has changed. */
export const isTransitionAffected = (references: readonly Reference[], changes: Changes): boolean =>
  references.some(
    ({ fullName }) =>
      changes.names(CUSTOM_OBJECT).has(fullName) ||
      changes.objects(CUSTOM_FIELD).has(fullName) ||
      changes.objects(STATE_MODEL).has(fullName) ||
      changes.objects({ type: 'CustomAction' }).has(fullName),
  );

/** `<Object>.<key>` of every transition and custom action in the configuration to be. */
export const transitionKeysOf = ({ after }: CheckContext): ReadonlySet<string> => transitionKeys(after);

/** True when a transition may belong to a state model whose file could not be read. */
export const mayBeUnread = (transition: string, { unread }: CheckContext): boolean =>
  objectsOfUnreadModels(unread).has(transition.slice(0, transition.indexOf('.')));

const objectsOfUnreadModels = memoize((unread: ReadonlySet<string>): ReadonlySet<string> => {
  const start = componentKey(STATE_MODEL.type, '');
  const names = [...unread].filter((key) => key.startsWith(start)).map((key) => key.slice(start.length));
  return new Set(names.map((name) => name.slice(0, name.indexOf('.'))));
});

/** `<Object>.<key>` of every transition and custom action of a configuration. */
export const transitionKeys = memoize((state: State): ReadonlySet<string> => {
  const keys = new Set<string>();
  for (const { type, body } of state.values())
    if (type === 'CustomAction') keys.add(`${body['object']}.${body['apiName']}`);
  for (const { body } of componentsOf(state, STATE_MODEL))
    for (const { key } of body.transitions ?? []) keys.add(`${body.object}.${key}`);
  return keys;
});

interface EffectCheck {
  readonly object: string;
  readonly effect: EffectBody;
  readonly pointer: string;
  readonly stateField: string | null;
  readonly schema: Schema;
  /** Fields that effects before this one set. */
  readonly updated: Set<string>;
  /** Effects that the deployed transition or action has, as JSON. */
  readonly deployed: ReadonlySet<string>;
}

/** Verbs that nothing carries out yet, with what to do in their place. Effects that are deployed already stay. */
const UNAVAILABLE: ReadonlyMap<EffectBody['verb'], string> = new Map([
  ['emitEvent', 'Remove the effect: `GET /data/{objectApiName}/changes` answers what has changed.'],
  ['requestApproval', 'Give the transition a permission that only approvers hold.'],
]);

const KEYS_OF: Readonly<Record<EffectBody['verb'], { needed: readonly string[]; more: readonly string[] }>> = {
  updateFields: { needed: ['fields'], more: [] },
  createRecord: { needed: ['object', 'fields'], more: [] },
  sendNotification: { needed: ['type', 'to'], more: ['template'] },
  emitEvent: { needed: ['type'], more: ['data'] },
  requestApproval: { needed: [], more: ['object', 'fields', 'type', 'to', 'template', 'data'] },
};

function checkEffect(component: Component, context: CheckContext, check: EffectCheck): void {
  const { effect, pointer, object, schema, deployed } = check;
  const wrong = (at: string, message: string): void =>
    context.problem('YAML_SCHEMA_INVALID', component, `${pointer}${at}`, message);
  const remedy = UNAVAILABLE.get(effect.verb);
  // The platform brings back what has been deployed: the configuration of a tenant that moves.
  const mayStay = effect.verb !== 'requestApproval' && (context.platform || deployed.has(JSON.stringify(effect)));
  if (remedy !== undefined && !mayStay) {
    const message = `The effect ${effect.verb} is not available yet.`;
    context.problem('FEATURE_NOT_AVAILABLE', component, `${pointer}/verb`, message, { remedy });
    return;
  }
  const { needed, more } = KEYS_OF[effect.verb];
  for (const key of needed) if (!Object.hasOwn(effect, key)) wrong('', `${effect.verb} needs ${key}.`);
  for (const key of Object.keys(effect))
    if (key !== 'verb' && !needed.includes(key) && !more.includes(key))
      wrong(`/${key}`, `${effect.verb} has no ${key}.`);
  switch (effect.verb) {
    case 'updateFields':
      checkUpdate(component, context, check);
      return;
    case 'createRecord':
      checkCreate(component, context, check);
      return;
    case 'sendNotification':
      if (effect.to !== undefined && !isRecipient(context, object, effect.to))
        context.problem(
          'REFERENCE_INVALID',
          component,
          `${pointer}/to`,
          `${effect.to} is neither owner nor actor nor a field of ${object} that refers to a user.`,
        );
      return;
    default:
      for (const [name, source] of Object.entries(effect.data ?? {}))
        checked(component, context, `${pointer}/data/${name}`, () => checkExpression(source, schema, EVENT_VALUES));
  }
}

/** Sources of an event's data. */
const EVENT_VALUES: readonly ValueType[] = [
  'text',
  'number',
  'boolean',
  'date',
  'dateTime',
  'time',
  'null',
  'list:text',
  'list:null',
];

/** Recipients of a notification besides users that a field of the object refers to. */
const PEOPLE_OF_RECORDS: ReadonlySet<string> = new Set(['owner', 'actor', 'ownerId', 'createdById', 'updatedById']);

function isRecipient(context: CheckContext, object: string, to: string): boolean {
  if (PEOPLE_OF_RECORDS.has(to)) return true;
  const field = context.fieldsOf(object).get(to)?.body;
  return field?.referenceTo?.[0] === 'User' && fieldType(field.fieldType).relation === 'reference';
}

function checkUpdate(component: Component, context: CheckContext, check: EffectCheck): void {
  const { effect, pointer, object, stateField, updated } = check;
  for (const [name, source] of Object.entries(effect.fields ?? {})) {
    const at = `${pointer}/fields/${name}`;
    if (name === stateField) {
      context.problem('STATE_MODEL_INVALID', component, at, `${name} is the state, which only transitions change.`, {
        remedy: 'Name the new state in `to` of a transition.',
      });
      continue;
    }
    if (updated.has(name)) context.problem('YAML_SCHEMA_INVALID', component, at, `${name} is set twice.`);
    updated.add(name);
    checkAssignment(component, context, check, object, name, source, at);
  }
}

function checkCreate(component: Component, context: CheckContext, check: EffectCheck): void {
  const { effect, pointer } = check;
  const { object } = effect;
  if (object === undefined || !context.after.has(componentKey('CustomObject', object))) return;
  if (object === 'User') {
    context.problem('REFERENCE_INVALID', component, `${pointer}/object`, 'Users are not created by an effect.');
    return;
  }
  const model = activeModel(context, object);
  for (const [name, source] of Object.entries(effect.fields ?? {})) {
    const at = `${pointer}/fields/${name}`;
    const given = checkAssignment(component, context, check, object, name, source, at);
    if (model && name === model.field && given?.root.op === 'literal' && given.root.value !== model.initial)
      context.problem(
        'STATE_MODEL_INVALID',
        component,
        at,
        `A new record of ${object} begins in the state ${model.initial}.`,
      );
  }
  const needed = [...context.fieldsOf(object)].flatMap(([name, field]) => {
    const { required, defaultValue, fieldType: type } = compileField(field, context.after);
    return required && defaultValue === null && fieldType(type).writable ? [name] : [];
  });
  if (schemaOf(object, context).fieldType('name') === 'text') needed.unshift('name');
  for (const name of needed)
    if (!Object.hasOwn(effect.fields ?? {}, name))
      context.problem(
        'REFERENCE_INVALID',
        component,
        `${pointer}/fields`,
        `The effect creates a record of ${object} without ${name}, which is required.`,
      );
}

/** The state model that records of an object are held to. */
export const activeModel = (context: CheckContext, object: string): StateModelBody | undefined =>
  componentsOf(context.after, STATE_MODEL).find(({ body }) => body.object === object && body.active !== false)?.body;

/** An expression for a field: the field can be set, and takes what the expression gives. */
function checkAssignment(
  component: Component,
  context: CheckContext,
  { schema }: EffectCheck,
  object: string,
  name: string,
  source: string,
  at: string,
): Expression | null {
  const field = context.fieldsOf(object).get(name);
  // The result type of a formula or rollup cannot be set, so the field's own type counts here.
  const target = field?.body.fieldType ?? schemaOf(object, context).fieldType(name);
  const refuse = (message: string): void => context.problem('REFERENCE_INVALID', component, at, message);
  if (target === undefined) {
    refuse(`There is no field ${name} on ${object}.${context.meant(name, context.fieldsOf(object).keys())}`);
    return null;
  }
  const owned = SYSTEM_FIELD_NAMES.has(name) && name !== 'name';
  if (owned || !fieldType(target).writable) {
    refuse(`${name} is kept by the platform and cannot be set.`);
    return null;
  }
  const found = checked(component, context, at, () => checkExpression(source, schema, valuesFor(target)));
  if (found?.root.op !== 'literal' || fieldType(target).choices !== 'one' || !field) return found;
  const { picklistValues, restrictedPicklist } = compileField(field, context.after);
  const { value } = found.root;
  if (restrictedPicklist && value !== null && !picklistValues?.some((item) => item.value === value && item.active))
    refuse(`${name} takes no value ${JSON.stringify(value)}.`);
  return found;
}

/** Result types of an expression for a field of this type; null clears the field. */
function valuesFor(type: FieldTypeName): readonly ValueType[] {
  const of = typeOfField(type);
  if (of === null || of === 'opaque') return ['null'];
  return of.startsWith('list:') ? [of, 'list:null', 'null'] : [of, 'null'];
}

/** The transition or action as the snapshot has it. */
export function compileTransition(
  key: string,
  body: TransitionBody,
  permission: string | null,
): TransitionOrActionMeta {
  return {
    key,
    label: body.label,
    description: body.description ?? null,
    guard: body.guard ?? null,
    guardMessage: body.guardMessage ?? null,
    permission,
    risk: body.risk,
    requiresComment: body.requiresComment,
    input: body.input ?? null,
    effects: (body.effects ?? []).flatMap(compileEffect),
  };
}

function compileEffect({ verb, object, fields = {}, type, to, template, data = {} }: EffectBody): EffectMeta[] {
  // The verb's requirements have been checked.
  if (verb === 'updateFields') return [{ verb, fields }];
  if (verb === 'createRecord' && object !== undefined) return [{ verb, object, fields }];
  if (verb === 'sendNotification' && type !== undefined && to !== undefined)
    return [{ verb, type, to, ...(template === undefined ? {} : { template }) }];
  if (verb === 'emitEvent' && type !== undefined) return [{ verb, type, data }];
  return [];
}
