/** The file of a ListView. */
import { Type } from 'typebox';
import { LIMITS } from '../../../../lib/limits.ts';
import { OPERATORS } from '../../../../lib/schema/field-types/types.ts';
import { type ComponentOf, componentType } from '../component.ts';
import { API_NAME, apiName, group, label, listOf, optional, setOf, shownFlag } from '../schema.ts';

const field = (description: string) => Type.String({ pattern: API_NAME, description });
const value = (description: string) => Type.Unsafe<unknown>({ description });

export const LIST_VIEW = componentType('ListView', {
  apiName: apiName('Stable name.'),
  object: apiName('The object whose records it lists.'),
  label: label('As people read it.'),
  columns: {
    ...listOf(field('A field of the object.'), 'The fields that it shows, from left to right.', 50),
    minItems: 1,
    uniqueItems: true,
  },
  filters: optional(
    group(
      {
        logic: Type.Enum(['and', 'or'], { description: 'How the conditions are joined.' }),
        conditions: Type.Array(
          group(
            {
              id: Type.String({ minLength: 1, maxLength: 64, description: 'Names it in errors.' }),
              field: field('A field of the object.'),
              operator: Type.Enum([...OPERATORS], { description: 'As in filters of lists.' }),
              value: optional(value('Value to compare with.')),
              valueTo: optional(value('Upper end of between.')),
            },
            'A condition.',
          ),
          { minItems: 1, maxItems: LIMITS.filter_conditions_max, description: 'One group.' },
        ),
      },
      'Which records; without filters all.',
    ),
  ),
  sort: optional(
    listOf(
      group({ id: field('A field of the object.'), desc: shownFlag(false, 'Downwards.') }, 'A field.'),
      'Order of the records.',
      LIMITS.sort_max,
    ),
  ),
  sharedWith: optional(
    group(
      {
        roles: optional(setOf(field('A role.'), 'The users of these roles and of those above them.', 200)),
        groups: optional(setOf(field('A group.'), 'The members of these groups.', 200)),
      },
      'Users who are offered it; all users without roles and groups. It grants no access to records.',
    ),
  ),
});

export type ListViewComponent = ComponentOf<typeof LIST_VIEW>;
