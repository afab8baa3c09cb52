/** The file of a ValueSet, and the values that it has in common with picklists. */
import { type Static, Type } from 'typebox';
import { componentType } from '../component.ts';
import { apiName, flag, group, label, listOf, optional, setOf, text } from '../schema.ts';

/** Values of one picklist. */
export const VALUES_MAX = 1_000;

const VALUE = {
  value: Type.String({ minLength: 1, maxLength: 255, pattern: '^\\S(?:.*\\S)?$', description: 'Stored value.' }),
  label: optional(label('As people read it; the value itself when absent.')),
  active: optional(flag(true, 'Can be chosen; an inactive value stays readable.')),
  default: optional(flag(false, 'Chosen on create when nothing is given.')),
};

/** One value of a picklist, which may depend on the value of another field. */
export const dependentValue = group(
  {
    ...VALUE,
    // An empty list would be no list, and so let every value in.
    validFor: optional({
      ...setOf(
        Type.String({ minLength: 1, maxLength: 255 }),
        'Values of the controlling field that allow this one; all of them when absent.',
      ),
      minItems: 1,
    }),
  },
  'One value.',
);

export const VALUE_SET = componentType('ValueSet', {
  apiName: apiName('Stable name.'),
  label: optional(label('As people read it.')),
  description: optional(text('Meaning of the values.')),
  sorted: optional(flag(false, 'Shown in the order of the labels instead of the order below.')),
  values: listOf(group(VALUE, 'One value.'), 'Values, in their order.', VALUES_MAX),
});

/** A value, of a ValueSet or of a picklist. */
export type Value = Static<typeof dependentValue>;
