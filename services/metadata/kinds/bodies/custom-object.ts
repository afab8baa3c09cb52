/** The file of a CustomObject. */
import { Type } from 'typebox';
import { type ComponentOf, componentType } from '../component.ts';
import { AUTO_NUMBER_FORMAT } from '../names.ts';
import { apiName, flag, group, label, optional, setOf, shownChoice, shownFlag, shownGroup, text } from '../schema.ts';

export const CUSTOM_OBJECT = componentType('CustomObject', {
  apiName: apiName('Stable name; custom objects end in `__c`.'),
  label: label('One record of it, as people read it.'),
  labelPlural: label('Several records of it.'),
  description: optional(text('Purpose of the object.')),
  nameField: group(
    {
      label: label('Label of the field `name`.'),
      fieldType: Type.Enum(['text', 'autoNumber'], { description: 'Typed by people, or counted by the platform.' }),
      format: optional(Type.String({ pattern: AUTO_NUMBER_FORMAT, description: 'autoNumber: such as `INV-{00000}`.' })),
    },
    'The field `name`, which every object has.',
  ),
  sharingDefault: shownChoice(
    ['private', 'read', 'readWrite', 'controlledByParent'],
    'private',
    'What users see of records that are not their own.',
  ),
  api: shownGroup({ published: shownFlag(false, 'The public API knows the object.') }, 'Publication.'),
  features: shownGroup(
    {
      history: shownFlag(true, 'Field changes are kept.'),
      search: shownFlag(true, 'Records can be found by words.'),
      duplicates: optional(flag(false, 'Duplicate rules are evaluated.')),
      events: shownFlag(true, 'Changes are published as events.'),
    },
    'What the platform keeps with the records.',
  ),
  defaultSearchFields: optional(
    setOf(
      Type.String({ pattern: '^[A-Za-z][A-Za-z0-9_]{0,39}$' }),
      'Fields that a search without searchFields looks into; `name` when there are none.',
      10,
    ),
  ),
});

export type ObjectComponent = ComponentOf<typeof CUSTOM_OBJECT>;
