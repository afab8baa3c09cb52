/** The file of a RecordType. */
import { Type } from 'typebox';
import { type ComponentOf, componentType } from '../component.ts';
import { API_NAME, apiName, flag, label, mapOf, optional, setOf, shownFlag, text } from '../schema.ts';
import { VALUES_MAX } from './value-set.ts';

export const RECORD_TYPE = componentType('RecordType', {
  apiName: apiName('Stable name; records carry it as recordTypeApiName.'),
  object: apiName('The object that it belongs to.'),
  label: label('As people read it.'),
  description: optional(text('Meaning of the type.')),
  active: shownFlag(true, 'Records may be given it.'),
  default: optional(flag(false, 'Given to new records that do not say their type.')),
  picklistValues: optional(
    mapOf(
      API_NAME,
      setOf(Type.String({ minLength: 1, maxLength: 255 }), 'The values that the field takes.', VALUES_MAX),
      'picklist and multiPicklist fields that take fewer values in records of this type.',
      500,
    ),
  ),
});

export type RecordTypeComponent = ComponentOf<typeof RECORD_TYPE>;
