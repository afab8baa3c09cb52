/** ValueSet: values that several picklists share; and what picklists have in common with it. */
import { Type } from 'typebox';
import type { PicklistValue } from '../../../lib/schema/snapshot.ts';
import type { Kind } from './kind.ts';
import { apiName, flag, group, label, listOf, optional, setOf, text } from './schema.ts';

export const VALUES_MAX = 1_000;

interface Value {
  value: string;
  label?: string;
  active?: boolean;
  default?: boolean;
  validFor?: string[];
}

export const valueSchema = (dependent: boolean) =>
  group(
    {
      value: Type.String({ minLength: 1, maxLength: 255, pattern: '^\\S(?:.*\\S)?$', description: 'What is stored.' }),
      label: optional(label('As people read it; the value itself when absent.')),
      active: optional(flag(true, 'Can be chosen; an inactive value stays readable.')),
      default: optional(flag(false, 'Chosen on create when nothing is given.')),
      ...(dependent
        ? {
            // An empty list would be no list, and so let every value in.
            validFor: optional({
              ...setOf(
                Type.String({ minLength: 1, maxLength: 255 }),
                'Values of the controlling field that allow this one; all of them when absent.',
              ),
              minItems: 1,
            }),
          }
        : {}),
    },
    'One value.',
  );

/** What a schema cannot say about a list of values. */
export function valueProblems(values: readonly Value[], single: boolean): { pointer: string; message: string }[] {
  const problems: { pointer: string; message: string }[] = [];
  const seen = new Set<string>();
  let defaults = 0;
  for (const [i, { value, default: isDefault }] of values.entries()) {
    if (seen.has(value)) problems.push({ pointer: `/${i}/value`, message: `The value ${value} stands twice.` });
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

export const valueSet: Kind = {
  type: 'ValueSet',
  memberFormat: '<ValueSet>',
  pathPattern: 'valueSets/{apiName}.yaml',
  child: false,
  reversible: true,
  schema: Type.Object(
    {
      type: Type.Literal('ValueSet'),
      apiName: apiName('Stable name.'),
      label: optional(label('As people read it.')),
      description: optional(text('What the values are.')),
      sorted: optional(flag(false, 'Shown in the order of the labels instead of the order below.')),
      values: listOf(valueSchema(false), 'Values, in their order.', VALUES_MAX),
    },
    { additionalProperties: false },
  ),
  check(component, context) {
    for (const problem of valueProblems(component.body['values'] as unknown as Value[], false))
      context.problem('YAML_SCHEMA_INVALID', component, `/values${problem.pointer}`, problem.message);
  },
};
