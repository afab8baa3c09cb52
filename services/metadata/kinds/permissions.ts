/** Profile and PermissionSet: the same body, the same checks. */
import { type TObject, Type } from 'typebox';
import { pointerPart } from '../../../lib/errors/pointer.ts';
import { SYSTEM_PERMISSIONS } from '../../../lib/schema/snapshot.ts';
import { type ComponentOf, type ComponentType, componentKey, componentType, findComponent } from './component.ts';
import { type CheckContext, defineKind } from './kind.ts';
import { API_NAME, apiName, FULL_NAME, group, label, mapOf, optional, setOf, shownFlag, text } from './schema.ts';
import { SYSTEM_FIELD_NAMES } from './system-fields.ts';
import { transitionKeysOf } from './transitions-and-actions.ts';

const PROPERTIES = {
  apiName: apiName('Stable name.'),
  label: label('As people read it.'),
  description: optional(text('Whom it is for.')),
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

function permissions(type: 'Profile' | 'PermissionSet', folder: string, target: 'profiles' | 'permissionSets') {
  const described = componentType(type, PROPERTIES);
  return defineKind({
    ...described,
    memberFormat: `<${type}>`,
    pathPattern: `${folder}/{apiName}.yaml`,
    child: false,
    reversible: true,

    check(component, context) {
      const old = findComponent(context.before, described, component.fullName);
      checkSystemPermissions(component, old, context);
      checkObjects(component, context);
      checkFields(component, context);
      for (const [i, name] of (component.body.actions ?? []).entries())
        if (!transitionKeysOf(context).has(name))
          context.problem('REFERENCE_INVALID', component, `/actions/${i}`, `There is no transition or action ${name}.`);
    },

    isAffected: (_component, changes) =>
      changes.names({ type: 'StateModel' }).size + changes.names({ type: 'CustomAction' }).size > 0,

    compile({ body }, draft) {
      draft[target][body.apiName] = {
        apiName: body.apiName,
        label: body.label,
        system: body.system ?? [],
        objects: body.objects ?? {},
        fields: body.fields ?? {},
        actions: body.actions ?? [],
      };
    },
  });
}

/** Who manages configuration cannot give away, or take for themselves, more than they hold. */
function checkSystemPermissions(
  component: PermissionsComponent,
  old: PermissionsComponent | undefined,
  context: CheckContext,
): void {
  for (const [i, name] of (component.body.system ?? []).entries())
    if (context.permissions && !context.permissions.has(name) && !old?.body.system?.includes(name))
      context.problem(
        'COMPONENT_PERMISSION_DENIED',
        component,
        `/system/${i}`,
        `Only who holds ${name} can give it to others.`,
      );
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
      context.problem('REFERENCE_INVALID', component, pointer, `There is no field ${name}.`);
    if (given.edit && !given.read)
      context.problem('YAML_SCHEMA_INVALID', component, pointer, 'edit needs read.', {
        remedy: `Set read: true for ${name}.`,
      });
  }
}

export const profile = permissions('Profile', 'profiles', 'profiles');
export const permissionSet = permissions('PermissionSet', 'permissionSets', 'permissionSets');
