/**
 * Deletions of a project's destructive manifest, and the obstacles: the configuration that still refers to
 * it, and records that hold it. Pure; source: docs/reference/metadata.md#deleting.
 */
import { membersOf } from '../../../lib/metadata/manifest.ts';
import { belongsToObject } from '../../../lib/metadata/paths.ts';
import { byCodePoint } from '../../../lib/values/code-points.ts';
import { CUSTOM_OBJECT } from '../kinds/bodies/custom-object.ts';
import { RECORD_TYPE } from '../kinds/bodies/record-type.ts';
import { STATE_MODEL } from '../kinds/bodies/state-model.ts';
import { type Component, componentKey, isOf, type State } from '../kinds/component.ts';
import type { CheckContext, Problem, Reference } from '../kinds/kind.ts';
import { PERMISSION_SET, PROFILE } from '../kinds/permissions.ts';
import { findKind, kindOrder } from '../kinds/registry.ts';
import { ROLE } from '../kinds/role.ts';
import { TENANT_SETTINGS } from '../kinds/tenant-settings.ts';
import { transitionKeys } from '../kinds/transitions-and-actions.ts';
import { type Project, VIOLATIONS_MAX } from '../project/project.ts';
import type { DataCheck } from './data-checks.ts';

/** How long a deleted component is kept. */
export const RETENTION_DAYS = 30;

const NO_PLACE = { line: null, column: null } as const;

type Finding = Pick<Problem, 'code' | 'message' | 'remedy'>;

/** Why a destructive manifest cannot name a member; null: it can. */
export function refusedMember(type: string, fullName: string, before: State): Finding | null {
  if (!findKind(type))
    return { code: 'TYPE_UNKNOWN', message: `There is no type ${type}.`, remedy: 'Remove it from the manifest.' };
  const component = before.get(componentKey(type, fullName));
  if (!component)
    return {
      code: 'MEMBER_NOT_FOUND',
      message: 'The destructive manifest names a component that does not exist.',
      remedy: 'Remove it from the manifest.',
    };
  return null;
}

/** The components that a project deletes, those that belong to a deleted object among them. */
export function deletedComponents(before: State, project: Project): Component[] {
  const named = membersOf(project.destructive?.types ?? []).flatMap(
    ({ type, fullName }) => before.get(componentKey(type, fullName)) ?? [],
  );
  const objects = new Set(named.filter(({ type }) => type === CUSTOM_OBJECT.type).map(({ fullName }) => fullName));
  const deleted = new Set(named);
  if (objects.size > 0)
    for (const component of before.values()) if (objects.has(objectOf(component) ?? '')) deleted.add(component);
  return [...deleted];
}

/** The object that a component belongs to. */
export function objectOf({ type, body }: Component): string | null {
  return belongsToObject(type) && typeof body['object'] === 'string' ? body['object'] : null;
}

/** Components of the project, and of its deleted objects, that it also deletes. */
export function deployedAndDeleted(deleted: readonly Component[], project: Project): Problem[] {
  const objects = new Set(deleted.filter(({ type }) => type === CUSTOM_OBJECT.type).map(({ fullName }) => fullName));
  const names = new Set(deleted.map(({ type, fullName }) => componentKey(type, fullName)));
  return [...project.drafts.values()].flatMap(({ type, fullName, path, body }): Problem[] => {
    const object = belongsToObject(type) ? String(body['object']) : null;
    if (!names.has(componentKey(type, fullName)) && !(object !== null && objects.has(object))) return [];
    const named = object !== null && objects.has(object) ? `its object ${object}` : 'it';
    return [
      {
        code: 'PACKAGE_FILE_MISMATCH',
        type,
        fullName,
        path,
        ...NO_PLACE,
        message: `The project contains the component, and its destructive manifest deletes ${named}.`,
        remedy: `Leave ${path} out of the project, or the member out of the destructive manifest.`,
      },
    ];
  });
}

/** Components that may never be deleted. */
export function checkDeletable(deleted: readonly Component[], context: CheckContext): void {
  for (const component of deleted)
    if (isOf(component, TENANT_SETTINGS))
      context.problem('SYSTEM_COMPONENT_READ_ONLY', component, '', 'The settings of a tenant cannot be deleted.', {
        remedy: 'Change them instead.',
      });
    else if (component.system && !context.platform)
      context.problem(
        'SYSTEM_COMPONENT_READ_ONLY',
        component,
        '',
        'The platform ships it, and only the platform can delete it.',
        { remedy: 'Remove it from the destructive manifest.' },
      );
}

/**
 * Remaining components that refer to a deleted one, by its key. Permissions on transitions name no component: they count
 * for the state model that no longer has them.
 */
export function dependentsOfDeleted(deleted: readonly Component[], after: State): Map<string, Component[]> {
  const found = new Map<string, Component[]>();
  if (deleted.length === 0) return found;
  const keys = transitionKeys(after);
  const providers = new Map<string, Component>();
  for (const component of deleted) {
    providers.set(componentKey(component.type, component.fullName), component);
    if (!isOf(component, STATE_MODEL)) continue;
    for (const { key } of component.body.transitions ?? []) {
      const action = `${component.body.object}.${key}`;
      if (!keys.has(action)) providers.set(componentKey('CustomAction', action), component);
    }
  }
  for (const component of after.values()) {
    const references = findKind(component.type)?.references?.(component.body) ?? [];
    for (const reference of references) {
      const { type, fullName } = reference;
      const provider = providers.get(componentKey(type, fullName));
      if (!provider || (type === 'CustomAction' && keys.has(fullName))) continue;
      if (reference.ownCheck && references.some((other) => standsFor(other, reference, after))) continue;
      const key = componentKey(provider.type, provider.fullName);
      const list = found.get(key) ?? [];
      if (list.at(-1) !== component) list.push(component);
      found.set(key, list);
    }
  }
  return found;
}

/** The same words can name components of several types, as a label does: whether another one of them remains. */
const standsFor = (other: Reference, { pointer, type, fullName }: Reference, after: State): boolean =>
  other.pointer === pointer &&
  other.fullName === fullName &&
  other.type !== type &&
  after.has(componentKey(other.type, fullName));

/** Adds a problem for each deleted component that something still refers to. */
export function checkDependents(
  deleted: readonly Component[],
  dependents: ReadonlyMap<string, readonly Component[]>,
  context: CheckContext,
): void {
  for (const component of deleted) {
    const list = dependents
      .get(componentKey(component.type, component.fullName))
      ?.toSorted((a, b) => kindOrder(a.type) - kindOrder(b.type) || byCodePoint(a.fullName, b.fullName));
    if (!list) continue;
    const shown = list.slice(0, 5).map(({ type, fullName }) => `${type} ${fullName}`);
    const more = list.length > shown.length ? ` and ${list.length - shown.length} more` : '';
    context.problem('DEPENDENT_EXISTS', component, '', `It is still used by ${shown.join(', ')}${more}.`, {
      remedy: 'Change or delete in the same deployment what uses it.',
      details: {
        members: list.slice(0, VIOLATIONS_MAX).map(({ type, fullName }) => ({ type, fullName })),
      },
    });
  }
}

/** Questions to the records that hold the name of a deleted component. */
export function checksOfDeleted(deleted: readonly Component[], { before }: CheckContext): DataCheck[] {
  const gone = new Set(deleted.map(({ type, fullName }) => componentKey(type, fullName)));
  return deleted.flatMap((component): DataCheck[] => {
    const held = heldIn(component);
    if (!held || gone.has(componentKey('CustomObject', held.object))) return [];
    if (!before.has(componentKey('CustomObject', held.object))) return [];
    const { object, field, list, remedy } = held;
    return [
      {
        component,
        object,
        question: { kind: 'anyOf', field, values: [String(component.body['apiName'])], list },
        code: 'DEPENDENT_EXISTS',
        position: NO_PLACE,
        message: `Records of ${object} hold it in ${field}.`,
        remedy,
      },
    ];
  });
}

/** The field of records that holds the name of a component. */
function heldIn(component: Component): { object: string; field: string; list: boolean; remedy: string } | null {
  const user = (field: string, list = false) => ({
    object: 'User',
    field,
    list,
    remedy: 'Take it from these users first; deactivated users count, too.',
  });
  if (isOf(component, PROFILE)) return user('profileApiName');
  if (isOf(component, PERMISSION_SET)) return user('permissionSetApiNames', true);
  if (isOf(component, ROLE)) return user('roleApiName');
  if (isOf(component, RECORD_TYPE))
    return {
      object: component.body.object,
      field: 'recordTypeApiName',
      list: false,
      remedy: 'Give these records another record type first.',
    };
  return null;
}
