/** Common to layouts and list views: their fields, and their place in the snapshot. */
import { componentKey } from './component.ts';
import type { CheckContext, Draft, Reference } from './kind.ts';
import { SYSTEM_FIELD_NAMES } from './system-fields.ts';

type Screens = { -readonly [K in keyof Draft['screens'][string]]: Draft['screens'][string][K][number][] };

/** The screens of an object in a draft, to add to. */
export function screensOf(draft: Draft, object: string): Screens {
  const open = draft.screens as Record<string, Screens>;
  return (open[object] ??= { layouts: [], listViews: [] });
}

/** A field that is named; those that every object has need not be there. */
export const fieldReference = (object: string, name: string, pointer: string): Reference[] =>
  SYSTEM_FIELD_NAMES.has(name) ? [] : [{ type: 'CustomField', fullName: `${object}.${name}`, pointer }];

/** True when an object of the planned configuration has a field. */
export const hasField = (object: string, name: string, { after }: CheckContext): boolean =>
  SYSTEM_FIELD_NAMES.has(name) || after.has(componentKey('CustomField', `${object}.${name}`));
