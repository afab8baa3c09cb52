/** Profile and PermissionSet: the same body, the same checks. */

import { type TObject, Type } from 'typebox';
import type { Giving } from '../../../lib/access/holdings.ts';
import { pointerPart } from '../../../lib/errors/pointer.ts';
import { SYSTEM_PERMISSIONS } from '../../../lib/schema/snapshot.ts';
import { type ComponentOf, type ComponentType, componentKey, componentType } from './component.ts';
import { type CheckContext, defineKind, type Reference } from './kind.ts';
import { API_NAME, apiName, FULL_NAME, group, label, mapOf, optional, setOf, shownFlag, text } from './schema.ts';
import { SYSTEM_FIELD_NAMES } from './system-fields.ts';
import { mayBeUnread, transitionKeysOf } from './transitions-and-actions.ts';

const PROPERTIES = {
  apiName: apiName('Stable name.'),
  label: label('As people read it.'),
  description: optional(text('Intended users.')),
  system: optional(setOf(Type.Enum([...SYSTEM_PERMISSIONS]), 'System permissions.')),
  objects: optional(
    mapOf(
      API_NAME,
      group(
        {
          create: shownFlag(false, 'Make records.'),
          read: shownFlag(false, 'See records, as far as sharing goes.'),
          update: shownFlag(false, 'Change records.'),
          delete: shownFlag(false, 'Delete records.'),
          viewAll: shownFlag(false, 'See every record.'),
          modifyAll: shownFlag(false, 'See, change and delete every record.'),
        },
        'Permissions on one object.',
      ),
      'Permissions by object.',
    ),
  ),
  fields: optional(
    mapOf(
      FULL_NAME,
      group(
        { read: shownFlag(false, 'See the value.'), edit: shownFlag(false, 'Set the value.') },
        'Permissions on one field.',
      ),
      'Permissions by `<Object>.<field>`.',
    ),
  ),
  actions: optional(setOf(Type.String({ pattern: FULL_NAME }), 'Transitions and actions, `<Object>.<key>`.')),
};

type PermissionsComponent = ComponentOf<ComponentType<TObject<typeof PROPERTIES>>>;

export const PROFILE = componentType('Profile', PROPERTIES);
export const PERMISSION_SET = componentType('PermissionSet', PROPERTIES);

/** Permissions of a file; empty without one. */
export const givingOf = (component: PermissionsComponent | undefined): Giving => ({
  system: component?.body.system ?? [],
  objects: component?.body.objects ?? {},
  fields: component?.body.fields ?? {},
  actions: component?.body.actions ?? [],
});

const permissionOn = (type: string, fullName: string, pointer: string): Reference => ({
  type,
  fullName,
  pointer,
  ownCheck: true,
  permission: true,
});

function permissions(type: 'Profile' | 'PermissionSet', target: 'profiles' | 'permissionSets') {
  return defineKind({
    ...componentType(type, PROPERTIES),
    memberFormat: `<${type}>`,
    reversible: true,
    dependsOn: ['CustomObject', 'CustomField', 'StateModel', 'CustomAction'],

    references: ({ objects = {}, fields = {}, actions = [] }) => [
      ...Object.keys(objects).map((name) => permissionOn('CustomObject', name, `/objects/${pointerPart(name)}`)),
      ...Object.keys(fields).map((name) => permissionOn('CustomField', name, `/fields/${pointerPart(name)}`)),
      ...actions.map((name, i) => permissionOn('CustomAction', name, `/actions/${i}`)),
    ],

    check(component, context) {
      checkObjects(component, context);
      checkFields(component, context);
      for (const [i, name] of (component.body.actions ?? []).entries())
        if (!transitionKeysOf(context).has(name) && !mayBeUnread(name, context))
          context.problem('REFERENCE_INVALID', component, `/actions/${i}`, `There is no transition or action ${name}.`);
    },

    isAffected: (_component, changes) =>
      changes.names({ type: 'StateModel' }).size + changes.names({ type: 'CustomAction' }).size > 0,

    compile(component, draft) {
      const { apiName: name, label: text } = component.body;
      draft[target][name] = { apiName: name, label: text, ...givingOf(component) };
    },
  });
}

function checkObjects(component: PermissionsComponent, context: CheckContext): void {
  for (const [name, given] of Object.entries(component.body.objects ?? {})) {
    const pointer = `/objects/${pointerPart(name)}`;
    if (!context.after.has(componentKey('CustomObject', name)))
      context.problem('REFERENCE_INVALID', component, pointer, `There is no object ${name}.`);
    const reads = given.read || given.viewAll || given.modifyAll;
    if (!reads && (given.create || given.update || given.delete))
      context.problem('YAML_SCHEMA_INVALID', component, pointer, 'create, update and delete need read.', {
        remedy: `Set read: true for ${name}.`,
      });
  }
}

function checkFields(component: PermissionsComponent, context: CheckContext): void {
  for (const [name, given] of Object.entries(component.body.fields ?? {})) {
    const pointer = `/fields/${pointerPart(name)}`;
    const [object = '', field = ''] = name.split('.');
    if (SYSTEM_FIELD_NAMES.has(field) && context.after.has(componentKey('CustomObject', object)))
      context.problem(
        'REFERENCE_INVALID',
        component,
        pointer,
        `${field} follows the permissions on the object and takes none of its own.`,
      );
    else if (!context.after.has(componentKey('CustomField', name)))
      context.problem(
        'REFERENCE_INVALID',
        component,
        pointer,
        `There is no field ${name}.${context.meant(field, context.fieldsOf(object).keys(), `${object}.`)}`,
      );
    if (given.edit && !given.read)
      context.problem('YAML_SCHEMA_INVALID', component, pointer, 'edit needs read.', {
        remedy: `Set read: true for ${name}.`,
      });
  }
}

export const profile = permissions('Profile', 'profiles');
export const permissionSet = permissions('PermissionSet', 'permissionSets');
