/** The file of a Layout. */
import { Type } from 'typebox';
import { type ComponentOf, componentType } from '../component.ts';
import { API_NAME, apiName, group, label, listOf, optional } from '../schema.ts';

const fields = (description: string, max: number) => ({
  ...listOf(Type.String({ pattern: API_NAME }), description, max),
  uniqueItems: true,
});

export const LAYOUT = componentType('Layout', {
  apiName: apiName('Stable name.'),
  object: apiName('The object whose records it shows.'),
  label: optional(label('As people read it; the apiName when absent.')),
  sections: {
    ...listOf(
      group(
        {
          label: label('Its heading.'),
          columns: {
            ...listOf(
              fields('The fields of a column, from top to bottom.', 100),
              'Its columns, from left to right.',
              4,
            ),
            minItems: 1,
          },
        },
        'A section.',
      ),
      'What is shown of a record, from top to bottom.',
      50,
    ),
    minItems: 1,
  },
  relatedLists: optional(
    listOf(
      group(
        {
          relationshipName: Type.String({
            pattern: '^[A-Za-z][A-Za-z0-9_]{0,59}$',
            description: 'Child relationship of the object whose records are listed.',
          }),
          label: optional(label('Its heading; the plural of the child object when absent.')),
          columns: { ...fields('Fields of the child object, from left to right.', 20), minItems: 1 },
        },
        'A related list.',
      ),
      'Lists of the records that refer to the record, from top to bottom.',
      30,
    ),
  ),
  assignments: optional(
    listOf(
      {
        ...group(
          {
            profile: optional(Type.String({ pattern: API_NAME, description: 'Users of this profile; without: all.' })),
            recordType: optional(
              Type.String({ pattern: API_NAME, description: 'Records of this type of the object; without: all.' }),
            ),
          },
          'Who sees which records in it.',
        ),
        minProperties: 1,
      },
      'Where it applies; the layout without assignments applies wherever no other does.',
      200,
    ),
  ),
});

export type LayoutComponent = ComponentOf<typeof LAYOUT>;
