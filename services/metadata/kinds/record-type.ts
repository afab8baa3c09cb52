/** RecordType: a kind of records of an object, with the picklist values that they take. */
import { Type } from 'typebox';
import type { RecordTypeMeta } from '../../../lib/schema/snapshot.ts';
import { compileField } from './compile-field.ts';
import { fieldTypeOf } from './field-attributes.ts';
import {
  type Body,
  type CheckContext,
  type Component,
  componentKey,
  componentsByObject,
  type Kind,
  type Reference,
} from './kind.ts';
import { checkPerObject } from './per-object.ts';
import { API_NAME, apiName, flag, label, mapOf, optional, setOf, shownFlag, text } from './schema.ts';
import { checkBeginnings } from './state-model.ts';
import { VALUES_MAX } from './value-set.ts';

interface RecordTypeBody extends Body {
  readonly apiName: string;
  readonly object: string;
  readonly label: string;
  readonly description?: string;
  readonly active: boolean;
  readonly default?: boolean;
  readonly picklistValues?: { readonly [field: string]: string[] };
}

const RECORD_TYPES_PER_OBJECT_MAX = 50;

export const recordType: Kind = {
  type: 'RecordType',
  memberFormat: '<Object>.<RecordType>',
  pathPattern: 'objects/{object}/recordTypes/{apiName}.yaml',
  child: true,
  reversible: true,
  schema: Type.Object(
    {
      type: Type.Literal('RecordType'),
      apiName: apiName('Stable name; records carry it as recordTypeApiName.'),
      object: apiName('The object that it belongs to.'),
      label: label('As people read it.'),
      description: optional(text('What records of this type are.')),
      active: optional(shownFlag(true, 'Records may be given it.')),
      default: optional(flag(false, 'Given to new records that do not say their type.')),
      picklistValues: optional(
        mapOf(
          API_NAME,
          setOf(Type.String({ minLength: 1, maxLength: 255 }), 'The values that the field takes.', VALUES_MAX),
          'picklist and multiPicklist fields that take fewer values in records of this type.',
          500,
        ),
      ),
    },
    { additionalProperties: false },
  ),

  references(body) {
    const { object, picklistValues = {} } = body as RecordTypeBody;
    const found: Reference[] = [{ type: 'CustomObject', fullName: object, pointer: '/object' }];
    for (const field of Object.keys(picklistValues))
      found.push({ type: 'CustomField', fullName: `${object}.${field}`, pointer: `/picklistValues/${field}` });
    return found;
  },

  check(component, context) {
    const body = component.body as RecordTypeBody;
    if (body.default && !body.active)
      context.problem('YAML_SCHEMA_INVALID', component, '/default', 'An inactive type cannot be the default.');
    if (body.object === 'User')
      context.problem('REFERENCE_INVALID', component, '/object', 'Users have no record types.');
    for (const [field, values] of Object.entries(body.picklistValues ?? {}))
      checkValues(component, field, values, context);
  },

  checkAll(context) {
    checkPerObject(context, 'RecordType', 'record types', RECORD_TYPES_PER_OBJECT_MAX);
    for (const types of componentsByObject(context.after, 'RecordType').values()) checkDefault(types, context);
    checkBeginnings(context);
  },

  compile(component, draft) {
    const body = component.body as RecordTypeBody;
    (draft.objects[body.object]?.recordTypes as RecordTypeMeta[] | undefined)?.push({
      apiName: body.apiName,
      label: body.label,
      active: body.active,
      default: body.default ?? false,
      picklistValues: body.picklistValues ?? {},
    });
  },
};

function checkValues(component: Component, name: string, values: readonly string[], context: CheckContext): void {
  const { object } = component.body as RecordTypeBody;
  const field = context.after.get(componentKey('CustomField', `${object}.${name}`));
  if (!field) return;
  const pointer = `/picklistValues/${name}`;
  const { picklistValues } = compileField(field, context.after);
  if (!fieldTypeOf(field).choices) {
    context.problem('REFERENCE_INVALID', component, pointer, `${object}.${name} is no picklist.`);
    return;
  }
  if (values.length === 0)
    context.problem('YAML_SCHEMA_INVALID', component, pointer, 'A picklist takes one value at least.');
  const known = picklistValues && new Set(picklistValues.map((option) => option.value));
  for (const [i, value] of values.entries())
    if (known && !known.has(value))
      context.problem('REFERENCE_INVALID', component, `${pointer}/${i}`, `${object}.${name} has no value ${value}.`);
}

function checkDefault(types: readonly Component[], context: CheckContext): void {
  let chosen: Component | undefined;
  for (const component of types) {
    const body = component.body as RecordTypeBody;
    if (!body.active || !body.default) continue;
    if (chosen)
      context.problem('NAME_CONFLICT', component, '/default', `${chosen.fullName} is the default type already.`, {
        remedy: 'Leave default out of one of the two.',
      });
    chosen = component;
  }
}
