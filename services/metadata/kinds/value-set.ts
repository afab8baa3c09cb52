/** ValueSet: values that several picklists share; and what picklists have in common with it. */
import type { PicklistValue } from '../../../lib/schema/snapshot.ts';
import { VALUE_SET, type Value } from './bodies/value-set.ts';
import { defineKind } from './kind.ts';

/** Rules of a list of values that a schema cannot express. */
export function valueProblems(values: readonly Value[], single: boolean): { pointer: string; message: string }[] {
  const problems: { pointer: string; message: string }[] = [];
  const seen = new Set<string>();
  let defaults = 0;
  for (const [i, { value, default: isDefault }] of values.entries()) {
    if (seen.has(value)) problems.push({ pointer: `/${i}/value`, message: `Duplicate value ${value}.` });
    seen.add(value);
    if (isDefault && ++defaults === 2 && single)
      problems.push({ pointer: `/${i}/default`, message: 'Only one value can be the default.' });
  }
  return problems;
}

export function compileValues(values: readonly Value[], sorted = false): PicklistValue[] {
  const list = values.map((v) => ({
    value: v.value,
    label: v.label ?? v.value,
    active: v.active ?? true,
    default: v.default ?? false,
    validFor: v.validFor ?? null,
  }));
  return sorted ? list.sort((a, b) => a.label.localeCompare(b.label, 'en') || (a.value < b.value ? -1 : 1)) : list;
}

export const valueSet = defineKind({
  ...VALUE_SET,
  memberFormat: '<ValueSet>',
  reversible: true,
  check(component, context) {
    for (const problem of valueProblems(component.body.values, false))
      context.problem('YAML_SCHEMA_INVALID', component, `/values${problem.pointer}`, problem.message);
  },
});
