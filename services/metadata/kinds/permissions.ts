/** Profile and PermissionSet: the same body, the same checks. */

import { Type } from 'typebox';
import { pointerPart } from '../../../lib/errors/pointer.ts';
import { type PermissionBundle, SYSTEM_PERMISSIONS, type SystemPermission } from '../../../lib/schema/snapshot.ts';
import { actKeysOf } from './acts.ts';
import { type Body, type Component, componentKey, type Kind } from './kind.ts';
import { API_NAME, apiName, FULL_NAME, group, label, mapOf, optional, setOf, shownFlag, text } from './schema.ts';
import { SYSTEM_FIELD_NAMES } from './system-fields.ts';

interface PermissionsBody extends Body {
  readonly apiName: string;
  readonly label: string;
  readonly system?: SystemPermission[];
  readonly objects?: Record<string, PermissionBundle['objects'][string] & Record<string, boolean>>;
  readonly fields?: Record<string, { read: boolean; edit: boolean }>;
  readonly actions?: string[];
}

const permissionsSchema = (type: 'Profile' | 'PermissionSet') =>
  Type.Object(
    {
      type: Type.Literal(type),
      apiName: apiName('Stable name.'),
      label: label('As people read it.'),
      description: optional(text('Whom it is for.')),
      system: optional(setOf(Type.Enum([...SYSTEM_PERMISSIONS]), 'System permissions.')),
      objects: optional(
        mapOf(
          API_NAME,
          group(
            {
              create: optional(shownFlag(false, 'Make records.')),
              read: optional(shownFlag(false, 'See records, as far as sharing goes.')),
              update: optional(shownFlag(false, 'Change records.')),
              delete: optional(shownFlag(false, 'Delete records.')),
              viewAll: optional(shownFlag(false, 'See every record.')),
              modifyAll: optional(shownFlag(false, 'See, change and delete every record.')),
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
            { read: optional(shownFlag(false, 'See the value.')), edit: optional(shownFlag(false, 'Set the value.')) },
            'Permissions on one field.',
          ),
          'Permissions by `<Object>.<field>`.',
        ),
      ),
      actions: optional(setOf(Type.String({ pattern: FULL_NAME }), 'Transitions and actions, `<Object>.<key>`.')),
    },
    { additionalProperties: false },
  );

function permissions(type: 'Profile' | 'PermissionSet', folder: string, target: 'profiles' | 'permissionSets'): Kind {
  return {
    type,
    memberFormat: `<${type}>`,
    pathPattern: `${folder}/{apiName}.yaml`,
    child: false,
    reversible: true,
    schema: permissionsSchema(type),

    check(component, context) {
      const body = component.body as PermissionsBody;
      // Who manages configuration cannot give away, or take for themselves, more than they hold.
      const old = context.before.get(componentKey(type, component.fullName))?.body as PermissionsBody | undefined;
      for (const [i, name] of (body.system ?? []).entries())
        if (context.permissions && !context.permissions.has(name) && !old?.system?.includes(name))
          context.problem(
            'COMPONENT_PERMISSION_DENIED',
            component,
            `/system/${i}`,
            `Only who holds ${name} can give it to others.`,
          );
      const unknown = (pointer: string, message: string): void =>
        context.problem('REFERENCE_INVALID', component, pointer, message);
      for (const [name, given] of Object.entries(body.objects ?? {})) {
        const pointer = `/objects/${pointerPart(name)}`;
        if (!context.after.has(componentKey('CustomObject', name))) unknown(pointer, `There is no object ${name}.`);
        const reads = given.read || given.viewAll || given.modifyAll;
        if (!reads && (given.create || given.update || given.delete))
          context.problem('YAML_SCHEMA_INVALID', component, pointer, 'create, update and delete need read.', {
            remedy: `Set read: true for ${name}.`,
          });
      }
      for (const [name, given] of Object.entries(body.fields ?? {})) {
        const pointer = `/fields/${pointerPart(name)}`;
        const [object, field] = name.split('.') as [string, string];
        if (SYSTEM_FIELD_NAMES.has(field) && context.after.has(componentKey('CustomObject', object)))
          context.problem(
            'REFERENCE_INVALID',
            component,
            pointer,
            `${field} follows the permissions on the object and takes none of its own.`,
          );
        else if (!context.after.has(componentKey('CustomField', name))) unknown(pointer, `There is no field ${name}.`);
        if (given.edit && !given.read)
          context.problem('YAML_SCHEMA_INVALID', component, pointer, 'edit needs read.', {
            remedy: `Set read: true for ${name}.`,
          });
      }
      for (const [i, name] of (body.actions ?? []).entries())
        if (!actKeysOf(context).has(name)) unknown(`/actions/${i}`, `There is no transition or action ${name}.`);
    },

    compile(component: Component, draft) {
      const body = component.body as PermissionsBody;
      draft[target][body.apiName] = {
        apiName: body.apiName,
        label: body.label,
        system: body.system ?? [],
        objects: body.objects ?? {},
        fields: body.fields ?? {},
        actions: body.actions ?? [],
      };
    },
  };
}

export const profile = permissions('Profile', 'profiles', 'profiles');
export const permissionSet = permissions('PermissionSet', 'permissionSets', 'permissionSets');
