/**
 * Work of a plan on the records of each object while writers wait, in words. Indexes and foreign keys are no part of
 * it: those of large tables are made before. Source: docs/reference/metadata.md#apply.
 */
import { isNumbered } from '../../../lib/schema/field-types/registry.ts';
import { CUSTOM_FIELD } from '../kinds/bodies/custom-field.ts';
import { changedFields } from '../kinds/changes.ts';
import { compileField } from '../kinds/compile-field.ts';
import { componentKey, findComponent, type State } from '../kinds/component.ts';
import { columnType } from '../physical/column-type.ts';
import { fillsRecords } from './data-checks.ts';
import type { Plan } from './plan.ts';

/** By object; none for objects whose records are left alone. */
export function longWork({ changed, after, dataChecks, alterations }: Plan, before: State): Map<string, string[]> {
  const found = new Map<string, string[]>();
  const add = (object: string, what: string): void => {
    if (before.has(componentKey('CustomObject', object))) found.set(object, [...(found.get(object) ?? []), what]);
  };
  for (const { body, fullName } of changedFields(changed, after)) {
    const { object, apiName } = body;
    const component = findComponent(after, CUSTOM_FIELD, fullName);
    if (!component) continue;
    const field = compileField(component, after);
    const known = findComponent(before, CUSTOM_FIELD, fullName);
    const old = known && compileField(known, before);
    if (field.rollup) {
      const isSame =
        old && JSON.stringify([old.rollup, columnType(old)]) === JSON.stringify([field.rollup, columnType(field)]);
      if (!isSame) add(field.rollup.childObject, `${fullName} is computed from all of them`);
    } else if (!old) {
      if (isNumbered(field)) add(object, `records are numbered for ${apiName}`);
    } else {
      if (isRewritten(columnType(old), columnType(field))) add(object, `the values of ${apiName} are rewritten`);
      if (field.required && !old.required && fillsRecords(field)) add(object, `${apiName} is filled where it is blank`);
    }
  }
  for (const { component } of alterations) {
    const { object, apiName } = component.body;
    const what = `the values of ${apiName} are rewritten`;
    if (!found.get(object)?.includes(what)) add(object, what);
  }
  // An index answers what is asked about duplicates, and whether there is a record is soon known.
  for (const { object, question, component } of dataChecks)
    if (question.kind !== 'anyRecord' && question.kind !== 'duplicates')
      add(object, `records are checked for ${component.fullName}`);
  return found;
}

/** PostgreSQL leaves values alone whose type only takes more: `text` is always the same, numbers may get longer. */
function isRewritten(before: string | null, after: string | null): boolean {
  if (before === null || after === null || before === after) return false;
  const [[precision = 0, scale], [next = 0, nextScale]] = [digits(before), digits(after)];
  return scale === undefined || scale !== nextScale || next < precision;
}

const digits = (type: string): number[] => /^numeric\((\d+),(\d+)\)$/.exec(type)?.slice(1).map(Number) ?? [];
