/**
 * Changes of a plan, for the kinds whose components must be checked again though their own files stay as they are.
 */
import { CUSTOM_FIELD, type FieldComponent } from './bodies/custom-field.ts';
import { VALUE_SET } from './bodies/value-set.ts';
import { type Component, type ComponentType, componentsOf, isOf, type State } from './component.ts';

export interface Changes {
  /** Full names of the changed components of a type. */
  names(type: Pick<ComponentType, 'type'>): ReadonlySet<string>;
  /** Objects to which changed components of a type belong. */
  objects(type: Pick<ComponentType, 'type'>): ReadonlySet<string>;
}

/** The changes of a plan. A field counts as changed when the ValueSet of its values is. */
export function changesOf(changed: readonly Component[], after: State): Changes {
  const byType = Map.groupBy(new Set([...changed, ...changedFields(changed, after)]), ({ type }) => type);
  const sets = (of: (component: Component) => string): Changes['names'] => {
    const known = new Map([...byType].map(([type, components]) => [type, new Set(components.map(of))]));
    return ({ type }) => known.get(type) ?? new Set();
  };
  return { names: sets(({ fullName }) => fullName), objects: sets(({ body }) => String(body['object'])) };
}

/** Changed fields, and those whose values stand in a ValueSet that changed. */
export function changedFields(changed: readonly Component[], after: State): FieldComponent[] {
  const fields = changed.filter((component) => isOf(component, CUSTOM_FIELD));
  const sets = new Set(changed.filter(({ type }) => type === VALUE_SET.type).map(({ fullName }) => fullName));
  if (sets.size === 0) return fields;
  const own = new Set(fields.map(({ fullName }) => fullName));
  const uses = ({ fullName, body }: FieldComponent): boolean =>
    !own.has(fullName) && body.picklist?.valueSet !== undefined && sets.has(body.picklist.valueSet);
  return [...fields, ...componentsOf(after, CUSTOM_FIELD).filter(uses)];
}
