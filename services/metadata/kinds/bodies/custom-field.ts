/** The file of a CustomField. */

import { Type } from 'typebox';
import { EXPRESSION_MAX_CHARS } from '../../../../lib/expression/check.ts';
import { TEXT_MAX_CHARS } from '../../../../lib/schema/field-types/common.ts';
import { namesOfTypes } from '../../../../lib/schema/field-types/registry.ts';
import { type BodyOf, type ComponentOf, componentType } from '../component.ts';
import { AUTO_NUMBER_FORMAT } from '../names.ts';
import { API_NAME, apiName, flag, group, label, listOf, optional, shownFlag, text } from '../schema.ts';
import { dependentValue, VALUES_MAX } from './value-set.ts';

const optionalInteger = (minimum: number, maximum: number, description: string) =>
  optional(Type.Integer({ minimum, maximum, description }));

export const CUSTOM_FIELD = componentType('CustomField', {
  apiName: apiName('Stable name; custom fields end in `__c`.'),
  object: apiName('The object that it belongs to.'),
  label: label('As people read it.'),
  description: optional(text('For those who configure.')),
  fieldType: Type.Enum(
    namesOfTypes((type) => !type.systemOnly),
    { description: 'Type of the value. Not available yet: file.' },
  ),
  required: optional(flag(false, 'A record needs a value.')),
  unique: optional(flag(false, 'No two records have the same value.')),
  externalId: optional(flag(false, 'A key of another system; records can be referred to by it.')),
  caseSensitive: optional(flag(false, '`unique` and lookups distinguish upper and lower case.')),
  length: optionalInteger(1, TEXT_MAX_CHARS, 'Most characters.'),
  precision: optionalInteger(1, 30, 'Digits in all.'),
  scale: optionalInteger(0, 15, 'Digits after the point.'),
  minimum: optional(Type.Number({ description: 'Smallest value.' })),
  maximum: optional(Type.Number({ description: 'Largest value.' })),
  pattern: optional(
    Type.String({ minLength: 1, maxLength: 500, description: 'Regular expression that the whole value matches.' }),
  ),
  format: optional(Type.String({ pattern: AUTO_NUMBER_FORMAT, description: 'autoNumber: such as `INV-{00000}`.' })),
  defaultValue: optional(Type.Unsafe<unknown>({ description: 'Value of a new record that does not give one.' })),
  currencyField: optional(
    Type.String({ pattern: API_NAME, description: 'currency: the field that holds the ISO 4217 code.' }),
  ),
  formula: optional(
    group(
      {
        expression: Type.String({
          minLength: 1,
          maxLength: EXPRESSION_MAX_CHARS,
          description: 'Expression over `record`, `now` and `today`.',
        }),
        resultType: Type.Enum(
          namesOfTypes((type) => type.formulaResult === true),
          {
            description: 'The type as which its value is shown, filtered and sorted.',
          },
        ),
      },
      'formula: how it is calculated.',
    ),
  ),
  rollup: optional(
    group(
      {
        childObject: Type.String({
          pattern: API_NAME,
          description: 'The object whose records are counted or summed.',
        }),
        referenceField: Type.String({
          pattern: API_NAME,
          description: 'Its reference or masterDetail to this object.',
        }),
        function: Type.Enum(['count', 'sum', 'min', 'max', 'avg'], { description: 'Aggregation of the children.' }),
        field: optional(Type.String({ pattern: API_NAME, description: 'The field of the children; not for count.' })),
        criteria: optional(
          Type.String({
            maxLength: EXPRESSION_MAX_CHARS,
            description: 'Expression over the `record` of a child: only those for which it is true.',
          }),
        ),
      },
      'rollup: what is summed up.',
    ),
  ),
  referenceTo: optional(
    Type.Array(Type.String({ pattern: API_NAME }), {
      minItems: 1,
      maxItems: 1,
      description: 'The object it points to.',
    }),
  ),
  relationshipName: optional(
    Type.String({
      pattern: '^[A-Za-z][A-Za-z0-9_]{0,59}$',
      description: 'Name of this list of children on the object pointed to; by default made of the apiName.',
    }),
  ),
  onDelete: optional(
    Type.Enum(['setNull', 'restrict', 'cascade'], {
      description: 'Effect on this record when the referenced record is deleted.',
    }),
  ),
  picklist: optional(
    group(
      {
        restricted: shownFlag(true, 'Only these values are taken.'),
        controllingField: optional(
          Type.String({
            pattern: API_NAME,
            description: 'A picklist or boolean of the object whose value decides which values are valid (`validFor`).',
          }),
        ),
        valueSet: optional(Type.String({ pattern: API_NAME, description: 'Values of a ValueSet.' })),
        values: optional(listOf(dependentValue, 'Values, in their order.', VALUES_MAX)),
      },
      'picklist and multiPicklist: the values.',
    ),
  ),
  semantics: optional(text('Meaning of the value, where a reader could misunderstand it.')),
  dataClassification: optional(
    Type.Enum(['public', 'internal', 'confidential', 'restricted'], {
      description: 'How carefully the value is to be handled; for people, it decides nothing.',
    }),
  ),
  helpText: optional(text('For those who type it in.', 1_000)),
  deprecated: optional(flag(false, 'Still there, no longer to be used.')),
  example: optional(Type.Unsafe<unknown>({ description: 'A typical value.' })),
});

export type FieldBody = BodyOf<typeof CUSTOM_FIELD>;
export type FieldComponent = ComponentOf<typeof CUSTOM_FIELD>;
export type PicklistBody = NonNullable<FieldBody['picklist']>;
export type FormulaBody = NonNullable<FieldBody['formula']>;
export type RollupBody = NonNullable<FieldBody['rollup']>;
