/** Deleted components that an undoing plan restores. Pure. */
import { CUSTOM_FIELD, type FieldComponent } from '../kinds/bodies/custom-field.ts';
import { CUSTOM_OBJECT } from '../kinds/bodies/custom-object.ts';
import { type Component, type ComponentType, componentKey, findComponent, type State } from '../kinds/component.ts';
import type { CheckContext } from '../kinds/kind.ts';

const isRestored = (
  { type }: ComponentType,
  fullName: string,
  { before, retained, restores }: CheckContext,
): boolean => {
  const key = componentKey(type, fullName);
  return restores && !before.has(key) && retained.has(key);
};

/** The components that come back, as they were when they were deleted. */
export function restoredComponents({ before, after, retained, restores }: CheckContext): State {
  if (!restores) return new Map();
  return new Map([...retained].filter(([key]) => after.has(key) && !before.has(key)));
}

/** True when the records of an object come back. */
export const isRestoredObject = (object: string, context: CheckContext): boolean =>
  isRestored(CUSTOM_OBJECT, object, context);

/** The field as it was when it was deleted, when its values come back. */
export const restoredField = ({ fullName }: Component, context: CheckContext): FieldComponent | undefined =>
  isRestored(CUSTOM_FIELD, fullName, context) ? findComponent(context.retained, CUSTOM_FIELD, fullName) : undefined;
