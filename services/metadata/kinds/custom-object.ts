/** CustomObject: a table of records, its name field and what the platform keeps with it. */

import { fieldType, isMasterDetail } from '../../../lib/schema/field-types/registry.ts';
import { CUSTOM_FIELD } from './bodies/custom-field.ts';
import { CUSTOM_OBJECT, type ObjectComponent } from './bodies/custom-object.ts';
import { compileObject } from './compile-object.ts';
import { componentKey, componentsOf, findComponent } from './component.ts';
import { type CheckContext, defineKind } from './kind.ts';
import { isCustom } from './names.ts';
import { checkParents } from './parents.ts';
import { isShipped } from './shipped-names.ts';

const OBJECTS_MAX = 1_000;

export const customObject = defineKind({
  ...CUSTOM_OBJECT,
  memberFormat: '<Object>',
  reversible: true,
  dependsOn: ['CustomField'],
  inTable: true,

  references: ({ apiName: name, defaultSearchFields = [] }) =>
    defaultSearchFields.flatMap((field, i) =>
      field === 'name'
        ? []
        : [
            {
              type: 'CustomField',
              fullName: `${name}.${field}`,
              pointer: `/defaultSearchFields/${i}`,
              ownCheck: true,
            },
          ],
    ),

  check(component, context) {
    checkName(component, context);
    checkNameField(component, context);
    checkSharing(component, context);
    checkSearchFields(component, context);
    const { apiName: name, api } = component.body;
    if (!api.published && findComponent(context.before, CUSTOM_OBJECT, name)?.body.api.published !== false)
      context.warning(
        'UNPUBLISHED_OBJECT',
        component,
        '/api/published',
        'The public API does not show this object until api.published is true.',
      );
  },

  isAffected: ({ fullName }, changes) => changes.objects(CUSTOM_FIELD).has(fullName),

  checkAll(context) {
    const objects = componentsOf(context.after, CUSTOM_OBJECT);
    const last = objects.at(-1);
    if (last && objects.length > OBJECTS_MAX)
      context.problem('LIMIT_EXCEEDED', last, '', `A tenant may have at most ${OBJECTS_MAX} objects.`, {
        details: { max: OBJECTS_MAX },
      });
    checkParents(context);
  },

  compile(component, draft) {
    draft.objects[component.fullName] = compileObject(component);
  },
});

function checkName(component: ObjectComponent, context: CheckContext): void {
  const name = component.body.apiName;
  const isKnown = context.before.has(componentKey('CustomObject', name)) || isShipped('CustomObject', name);
  if (!context.platform && !isKnown && !isCustom(name))
    context.problem('NAME_INVALID', component, '/apiName', 'The apiName of a custom object ends in `__c`.', {
      remedy: `Name it ${name}__c.`,
    });
}

function checkNameField(component: ObjectComponent, context: CheckContext): void {
  const { apiName: name, nameField } = component.body;
  const { numbered = false } = fieldType(nameField.fieldType);
  if (numbered && !nameField.format)
    context.problem(
      'YAML_SCHEMA_INVALID',
      component,
      '/nameField',
      'An autoNumber needs a format, such as `INV-{00000}`.',
    );
  if (!numbered && nameField.format)
    context.problem('YAML_SCHEMA_INVALID', component, '/nameField/format', 'Only an autoNumber has a format.');
  const old = findComponent(context.before, CUSTOM_OBJECT, name)?.body.nameField;
  if (old && old.fieldType !== nameField.fieldType)
    context.problem(
      'FIELD_TYPE_CHANGE_UNSUPPORTED',
      component,
      '/nameField/fieldType',
      `The type of \`name\` is ${old.fieldType} and cannot change.`,
    );
}

/** Requirements and exclusions of an object whose records follow their parents. */
function checkSharing(component: ObjectComponent, context: CheckContext): void {
  const { apiName: name, sharingDefault } = component.body;
  if (sharingDefault !== 'controlledByParent') return;
  const invalid = (message: string): void =>
    context.problem('REFERENCE_INVALID', component, '/sharingDefault', message);
  if (![...context.fieldsOf(name).values()].some(({ body }) => isMasterDetail(body)))
    invalid('controlledByParent needs a masterDetail field that names the parent.');
  const followed = findComponent(context.before, CUSTOM_OBJECT, name)?.body.sharingDefault === 'controlledByParent';
  if (
    !followed &&
    [...context.after.values()].some(({ type, body }) => type === 'SharingRule' && body['object'] === name)
  )
    invalid('The object has sharing rules, and records that follow their parent take none.');
}

function checkSearchFields(component: ObjectComponent, context: CheckContext): void {
  const { apiName: name, defaultSearchFields = [] } = component.body;
  const fields = context.fieldsOf(name);
  for (const [i, searched] of defaultSearchFields.entries()) {
    const field = fields.get(searched);
    if (searched === 'name' || (field && fieldType(field.body.fieldType).searchable)) continue;
    context.problem(
      'REFERENCE_INVALID',
      component,
      `/defaultSearchFields/${i}`,
      field
        ? `The field ${searched} holds no text to search.`
        : `There is no field ${searched}.${context.meant(searched, fields.keys())}`,
    );
  }
}
