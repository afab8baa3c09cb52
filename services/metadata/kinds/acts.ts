/**
 * What transitions and custom actions have in common: guard, permission, input and effects, in their files and in the
 * checks of a deployment. Source: docs/reference/transitions.md.
 */
import { Type } from 'typebox';
import { checkExpression } from '../../../lib/expression/check.ts';
import { type InputSchema, inputProblems, inputTypes } from '../../../lib/expression/transition-input.ts';
import type { Expression, Schema, Type as ValueType } from '../../../lib/expression/types.ts';
import { typeOfField } from '../../../lib/expression/values.ts';
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import type { ActMeta, EffectMeta, FieldTypeName } from '../../../lib/schema/snapshot.ts';
import { memoize } from '../../../lib/values/memoize.ts';
import { compileField } from './compile-field.ts';
import { expressionReferences } from './expression-names.ts';
import { checked, schemaOf } from './expressions.ts';
import { fieldTypeOf } from './field-attributes.ts';
import { type Body, type CheckContext, type Component, componentKey, type Reference } from './kind.ts';
import {
  API_NAME,
  expression,
  FULL_NAME,
  group,
  label,
  listOf,
  mapOf,
  optional,
  shownChoice,
  shownFlag,
  text,
} from './schema.ts';
import { SYSTEM_FIELD_NAMES } from './system-fields.ts';

interface EffectBody extends Body {
  readonly verb: 'updateFields' | 'createRecord' | 'sendNotification' | 'emitEvent' | 'requestApproval';
  readonly object?: string;
  readonly fields?: Record<string, string>;
  readonly type?: string;
  readonly to?: string;
  readonly data?: Record<string, string>;
}

/** A transition in the file of its state model, or the file of a custom action. */
export interface ActBody extends Body {
  readonly label: string;
  readonly description?: string;
  readonly guard?: string;
  readonly guardMessage?: string;
  readonly permission?: string;
  readonly risk: ActMeta['risk'];
  readonly requiresComment: boolean;
  readonly input?: Body;
  readonly effects?: EffectBody[];
}

const EFFECTS_MAX = 20;
const EFFECT_FIELDS_MAX = 100;

const effectSchema = group(
  {
    verb: Type.Enum(['updateFields', 'createRecord', 'sendNotification', 'emitEvent', 'requestApproval'], {
      description: 'What happens.',
    }),
    object: optional(Type.String({ pattern: API_NAME, description: 'createRecord: of which object.' })),
    fields: optional(
      mapOf(
        API_NAME,
        expression('An expression over the record and the input.'),
        'updateFields, createRecord: expressions by field.',
        EFFECT_FIELDS_MAX,
      ),
    ),
    type: optional(
      Type.String({ pattern: API_NAME, description: 'sendNotification: its type; emitEvent: name of the event.' }),
    ),
    to: optional(
      Type.String({
        pattern: API_NAME,
        description: 'sendNotification: owner, actor, or a field that refers to a user.',
      }),
    ),
    data: optional(
      mapOf(
        API_NAME,
        expression('An expression over the record and the input.'),
        'emitEvent: what the event tells, expressions by name.',
        EFFECT_FIELDS_MAX,
      ),
    ),
  },
  'One effect.',
);

/** Keys of an act in its file, after the ones that name it. */
export const actKeys = {
  guard: optional(expression('Expression; it must be true.')),
  guardMessage: optional(text('Told when the guard is not true.', 1_000)),
  permission: optional(
    Type.String({ pattern: FULL_NAME, description: '`<Object>.<key>` that a profile or permission set must name.' }),
  ),
  risk: optional(shownChoice(['low', 'medium', 'high'], 'medium', 'What can go wrong when it is done by mistake.')),
  requiresComment: optional(shownFlag(false, 'Whoever does it says why.')),
  input: optional(
    Type.Record(Type.String(), Type.Unknown(), { description: 'JSON Schema 2020-12 of what is sent along.' }),
  ),
  effects: optional(listOf(effectSchema, 'What happens in the same transaction, in this order.', EFFECTS_MAX)),
};

export const actNames = {
  label: label('As people read it.'),
  description: optional(text('What it does.')),
};

/** Components that an act needs; its own check says when a field of an expression is missing. */
export function actReferences(object: string, body: ActBody, pointer: string): Reference[] {
  const found = expressionReferences(object, body.guard ?? '', `${pointer}/guard`);
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
        });
      found.push(...expressionReferences(object, source, `${at}/fields/${name}`));
    }
    for (const [name, source] of Object.entries(effect.data ?? {}))
      found.push(...expressionReferences(object, source, `${at}/data/${name}`));
  }
  return found;
}

/** Everything a deployment checks about one act; `stateField` is the field that only transitions may move. */
export function checkAct(
  component: Component,
  context: CheckContext,
  act: { object: string; body: ActBody; pointer: string; stateField: string | null },
): void {
  const { object, body, pointer } = act;
  const schema = schemaOf(object, context);
  if (body.guard !== undefined)
    checked(component, context, `${pointer}/guard`, () => checkExpression(body.guard!, schema, ['boolean']));
  if (body.guardMessage !== undefined && body.guard === undefined)
    context.problem('YAML_SCHEMA_INVALID', component, `${pointer}/guardMessage`, 'There is no guard to speak for.');
  for (const problem of body.input ? inputProblems(body.input as InputSchema) : [])
    context.problem('YAML_SCHEMA_INVALID', component, `${pointer}/input${problem.pointer}`, problem.message);
  checkPermission(component, context, object, body.permission, `${pointer}/permission`);
  const known: Schema = { ...schema, input: inputTypes((body.input as InputSchema | undefined) ?? null) };
  const updated = new Set<string>();
  for (const [i, effect] of (body.effects ?? []).entries())
    checkEffect(component, context, { ...act, effect, pointer: `${pointer}/effects/${i}`, schema: known, updated });
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
  else if (!actKeysOf(context).has(permission))
    context.problem('REFERENCE_INVALID', component, pointer, `There is no transition or action ${permission}.`, {
      remedy: 'Name the key of a transition or action of the object.',
    });
}

/** `<Object>.<key>` of every transition and custom action in the configuration to be. */
export const actKeysOf = memoize(({ after }: CheckContext): ReadonlySet<string> => {
  const keys = new Set<string>();
  for (const { type, body } of after.values()) {
    if (type === 'CustomAction') keys.add(`${body['object']}.${body['apiName']}`);
    if (type !== 'StateModel') continue;
    for (const { key } of (body['transitions'] as { key: string }[] | undefined) ?? [])
      keys.add(`${body['object']}.${key}`);
  }
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
}

const KEYS_OF: Readonly<Record<EffectBody['verb'], { needed: readonly string[]; more: readonly string[] }>> = {
  updateFields: { needed: ['fields'], more: [] },
  createRecord: { needed: ['object', 'fields'], more: [] },
  sendNotification: { needed: ['type', 'to'], more: [] },
  emitEvent: { needed: ['type'], more: ['data'] },
  requestApproval: { needed: [], more: ['object', 'fields', 'type', 'to', 'data'] },
};

function checkEffect(component: Component, context: CheckContext, check: EffectCheck): void {
  const { effect, pointer, object, schema } = check;
  const wrong = (at: string, message: string): void =>
    context.problem('YAML_SCHEMA_INVALID', component, `${pointer}${at}`, message);
  if (effect.verb === 'requestApproval') {
    context.problem(
      'STATE_MODEL_INVALID',
      component,
      `${pointer}/verb`,
      'Approvals are not offered yet: no service carries requestApproval.',
      { remedy: 'Give the transition a permission that only approvers hold.' },
    );
    return;
  }
  const { needed, more } = KEYS_OF[effect.verb];
  for (const key of needed) if (effect[key] === undefined) wrong('', `${effect.verb} needs ${key}.`);
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
        checked(component, context, `${pointer}/data/${name}`, () => checkExpression(source, schema, TELLABLE));
  }
}

const TELLABLE: readonly ValueType[] = [
  ...(['text', 'number', 'boolean', 'date', 'dateTime', 'time', 'null', 'list:text', 'list:null'] as const),
];

function isRecipient(context: CheckContext, object: string, to: string): boolean {
  if (['owner', 'actor', 'ownerId', 'createdById', 'updatedById'].includes(to)) return true;
  const field = context.fieldsOf(object).get(to)?.body;
  return (
    field !== undefined &&
    fieldTypeOf({ body: field }).relation === 'reference' &&
    String(field['referenceTo']) === 'User'
  );
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
    if (model && name === model['field'] && given?.root.op === 'literal' && given.root.value !== model['initial'])
      context.problem(
        'STATE_MODEL_INVALID',
        component,
        at,
        `A new record of ${object} begins in the state ${String(model['initial'])}.`,
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
        `A record of ${object} needs ${name}, and the effect does not give it.`,
      );
}

/** The state model that records of an object are held to. */
export const activeModel = (context: CheckContext, object: string): Body | undefined =>
  [...context.after.values()].find(
    ({ type, body }) => type === 'StateModel' && body['object'] === object && body['active'] !== false,
  )?.body;

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
  // What a formula or rollup gives is no field type that can be set, so its own type counts here.
  const target = (field?.body['fieldType'] as FieldTypeName | undefined) ?? schemaOf(object, context).fieldType(name);
  const refuse = (message: string): void => context.problem('REFERENCE_INVALID', component, at, message);
  if (target === undefined) {
    refuse(`There is no field ${name} on ${object}.`);
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

/** What an expression for a field of this type may give; null clears the field. */
function valuesFor(type: FieldTypeName): readonly ValueType[] {
  const of = typeOfField(type);
  if (of === null || of === 'opaque') return ['null'];
  return of.startsWith('list:') ? [of, 'list:null', 'null'] : [of, 'null'];
}

/** The act as the snapshot has it. */
export function compileAct(key: string, body: ActBody, permission: string | null): ActMeta {
  return {
    key,
    label: body.label,
    description: body.description ?? null,
    guard: body.guard ?? null,
    guardMessage: body.guardMessage ?? null,
    permission,
    risk: body.risk,
    requiresComment: body.requiresComment,
    input: (body.input as ActMeta['input'] | undefined) ?? null,
    effects: (body.effects ?? []).flatMap(compileEffect),
  };
}

function compileEffect({ verb, object, fields, type, to, data }: EffectBody): EffectMeta[] {
  switch (verb) {
    case 'updateFields':
      return [{ verb, fields: fields ?? {} }];
    case 'createRecord':
      return [{ verb, object: object!, fields: fields ?? {} }];
    case 'sendNotification':
      return [{ verb, type: type!, to: to! }];
    case 'emitEvent':
      return [{ verb, type: type!, data: data ?? {} }];
    default:
      return [];
  }
}
