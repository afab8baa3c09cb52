/**
 * Fields whose values become others with a plan: their type changes, or the destructive manifest lets them lose data.
 * Pure; source: docs/reference/metadata.md#altering.
 */
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { CUSTOM_FIELD, type FieldComponent } from '../kinds/bodies/custom-field.ts';
import { VALUE_SET } from '../kinds/bodies/value-set.ts';
import { changedFields } from '../kinds/changes.ts';
import { compileField } from '../kinds/compile-field.ts';
import { type Component, componentKey, findComponent } from '../kinds/component.ts';
import type { CheckContext } from '../kinds/kind.ts';
import { TENANT_SETTINGS } from '../kinds/tenant-settings.ts';
import { convertedSql, narrowing } from '../physical/conversions.ts';

export interface Alteration {
  readonly component: FieldComponent;
  readonly old: FieldMeta;
  readonly field: FieldMeta;
  /** The component that the destructive manifest names: the field or its value set; null: no value may be lost. */
  readonly listed: Pick<Component, 'type' | 'fullName'> | null;
}

export function alterations(changed: readonly Component[], context: CheckContext): Alteration[] {
  return changedFields(changed, context.after).flatMap((component) => {
    const before = findComponent(context.before, CUSTOM_FIELD, component.fullName);
    if (!before) return [];
    const [old, field] = [compileField(before, context.before), compileField(component, context.after)];
    const loses = narrowing(old, field);
    if (loses === null || !isConvertible(old, field)) return [];
    const listed = listedAs(component, context);
    return listed || loses === 'fieldType' ? [{ component, old, field, listed }] : [];
  });
}

/** SQL of the values of the field afterwards, over its column `column`. */
export function valuesSql({ old, field }: Pick<Alteration, 'old' | 'field'>, column: string, timezone: string): string {
  const sql = convertedSql(column, old, field, timezone);
  if (sql === null) throw new Error(`There is no conversion from ${old.fieldType} to ${field.fieldType}.`);
  return `CASE WHEN ${column} IS NOT NULL THEN ${sql} END`;
}

export const timezoneIn = ({ after }: Pick<CheckContext, 'after'>): string =>
  findComponent(after, TENANT_SETTINGS, 'General')?.body.timezone ?? 'UTC';

/** True when a field's values can be converted to its new type. */
export function isConvertible(old: FieldMeta, field: FieldMeta): boolean {
  const isComputed = [old, field].some(({ formula, rollup }) => formula !== null || rollup !== null);
  return !isComputed && convertedSql('x', old, field, 'UTC') !== null;
}

function listedAs({ body, fullName }: FieldComponent, { alters }: CheckContext): Alteration['listed'] {
  const set = body.picklist?.valueSet;
  const names = [
    { type: CUSTOM_FIELD.type, fullName },
    ...(set === undefined ? [] : [{ type: VALUE_SET.type, fullName: set }]),
  ];
  return names.find((name) => alters.has(componentKey(name.type, name.fullName))) ?? null;
}
