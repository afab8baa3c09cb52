/** RecordType: a kind of records of an object, with the picklist values that they take. */
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import { CUSTOM_FIELD } from './bodies/custom-field.ts';
import { RECORD_TYPE, type RecordTypeComponent } from './bodies/record-type.ts';
import { compileField } from './compile-field.ts';
import { componentsByObject, findComponent } from './component.ts';
import { type CheckContext, defineKind, type Reference } from './kind.ts';
import { checkPerObject } from './per-object.ts';
import { checkInitialStates } from './state-model.ts';

const RECORD_TYPES_PER_OBJECT_MAX = 50;

export const recordType = defineKind({
  ...RECORD_TYPE,
  memberFormat: '<Object>.<RecordType>',
  reversible: true,
  dependsOn: ['CustomObject', 'CustomField'],

  references(body) {
    const { object, picklistValues = {} } = body;
    const found: Reference[] = [{ type: 'CustomObject', fullName: object, pointer: '/object' }];
    for (const field of Object.keys(picklistValues))
      found.push({ type: 'CustomField', fullName: `${object}.${field}`, pointer: `/picklistValues/${field}` });
    return found;
  },

  check(component, context) {
    const body = component.body;
    if (body.default && !body.active)
      context.problem('YAML_SCHEMA_INVALID', component, '/default', 'An inactive type cannot be the default.');
    if (body.object === 'User')
      context.problem('REFERENCE_INVALID', component, '/object', 'Users have no record types.');
    for (const [field, values] of Object.entries(body.picklistValues ?? {}))
      checkValues(component, field, values, context);
  },

  isAffected: ({ body }, changes) => changes.objects(CUSTOM_FIELD).has(body.object),

  checkAll(context) {
    checkPerObject(context, RECORD_TYPE, 'record types', RECORD_TYPES_PER_OBJECT_MAX);
    for (const types of componentsByObject(context.after, RECORD_TYPE).values()) checkDefault(types, context);
    checkInitialStates(context);
  },

  compile(component, draft) {
    const body = component.body;
    draft.objects[body.object]?.recordTypes.push({
      apiName: body.apiName,
      label: body.label,
      active: body.active,
      default: body.default ?? false,
      picklistValues: body.picklistValues ?? {},
    });
  },
});

function checkValues(
  component: RecordTypeComponent,
  name: string,
  values: readonly string[],
  context: CheckContext,
): void {
  const { object } = component.body;
  const field = findComponent(context.after, CUSTOM_FIELD, `${object}.${name}`);
  if (!field) return;
  const pointer = `/picklistValues/${name}`;
  const { picklistValues } = compileField(field, context.after);
  if (!fieldType(field.body.fieldType).choices) {
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

function checkDefault(types: readonly RecordTypeComponent[], context: CheckContext): void {
  let chosen: RecordTypeComponent | undefined;
  for (const component of types) {
    const body = component.body;
    if (!body.active || !body.default) continue;
    if (chosen)
      context.problem('NAME_CONFLICT', component, '/default', `${chosen.fullName} is the default type already.`, {
        remedy: 'Leave default out of one of the two.',
      });
    chosen = component;
  }
}
