/** CustomObject: a table of records, its name field and what the platform keeps beside it. */
import { Type } from 'typebox';
import { compileObject, type ObjectBody } from './compile-object.ts';
import { fieldTypeOf } from './field-attributes.ts';
import type { Component, Kind } from './kind.ts';
import { componentKey } from './kind.ts';
import { AUTO_NUMBER_FORMAT, isCustom } from './names.ts';
import { checkParents } from './parents.ts';
import { apiName, flag, group, label, optional, setOf, shownChoice, shownFlag, text } from './schema.ts';

const OBJECTS_MAX = 1_000;

export const customObject: Kind = {
  type: 'CustomObject',
  memberFormat: '<Object>',
  pathPattern: 'objects/{apiName}/object.yaml',
  child: false,
  reversible: true,
  inTable: true,
  schema: Type.Object(
    {
      type: Type.Literal('CustomObject'),
      apiName: apiName('Stable name; custom objects end in `__c`.'),
      label: label('One record of it, as people read it.'),
      labelPlural: label('Several records of it.'),
      description: optional(text('What the object is for.')),
      nameField: group(
        {
          label: label('Label of the field `name`.'),
          fieldType: Type.Enum(['text', 'autoNumber'], { description: 'Typed by people, or counted by the platform.' }),
          format: optional(
            Type.String({ pattern: AUTO_NUMBER_FORMAT, description: 'autoNumber: such as `INV-{00000}`.' }),
          ),
        },
        'The field `name`, which every object has.',
      ),
      sharingDefault: optional(
        shownChoice(
          ['private', 'read', 'readWrite', 'controlledByParent'],
          'private',
          'What users see of records that are not their own.',
        ),
      ),
      api: optional(
        group({ published: optional(shownFlag(false, 'The public API knows the object.')) }, 'Publication.', {
          'x-erp-always': true,
        }),
      ),
      features: optional(
        group(
          {
            history: optional(shownFlag(true, 'Field changes are kept.')),
            search: optional(shownFlag(true, 'Records can be found by words.')),
            duplicates: optional(flag(false, 'Duplicate rules are evaluated.')),
            events: optional(shownFlag(true, 'Changes are told as events.')),
          },
          'What the platform keeps beside the records.',
          { 'x-erp-always': true },
        ),
      ),
      defaultSearchFields: optional(
        setOf(
          Type.String({ pattern: '^[A-Za-z][A-Za-z0-9_]{0,39}$' }),
          'Fields that a search without searchFields looks into; `name` when there are none.',
          10,
        ),
      ),
    },
    { additionalProperties: false },
  ),

  check(component, context) {
    const body = component.body as ObjectBody;
    if (!context.platform && !context.before.has(componentKey('CustomObject', body.apiName)) && !isCustom(body.apiName))
      context.problem('NAME_INVALID', component, '/apiName', 'The apiName of a custom object ends in `__c`.', {
        remedy: `Name it ${body.apiName}__c.`,
      });
    if (body.nameField.fieldType === 'autoNumber' && !body.nameField.format)
      context.problem(
        'YAML_SCHEMA_INVALID',
        component,
        '/nameField',
        'An autoNumber needs a format, such as `INV-{00000}`.',
      );
    if (body.nameField.fieldType === 'text' && body.nameField.format)
      context.problem('YAML_SCHEMA_INVALID', component, '/nameField/format', 'Only an autoNumber has a format.');
    const old = context.before.get(componentKey('CustomObject', body.apiName))?.body as ObjectBody | undefined;
    if (old && old.nameField.fieldType !== body.nameField.fieldType)
      context.problem(
        'FIELD_TYPE_CHANGE_UNSUPPORTED',
        component,
        '/nameField/fieldType',
        `\`name\` is ${old.nameField.fieldType} and stays so.`,
      );
    if (
      body.sharingDefault === 'controlledByParent' &&
      ![...context.fieldsOf(body.apiName).values()].some(isMasterDetail)
    )
      context.problem(
        'REFERENCE_INVALID',
        component,
        '/sharingDefault',
        'controlledByParent needs a masterDetail field that names the parent.',
      );
    if (
      body.sharingDefault === 'controlledByParent' &&
      old?.sharingDefault !== 'controlledByParent' &&
      [...context.after.values()].some((c) => c.type === 'SharingRule' && c.body['object'] === body.apiName)
    )
      context.problem(
        'REFERENCE_INVALID',
        component,
        '/sharingDefault',
        'The object has sharing rules, and records that follow their parent take none.',
      );
    const fields = context.fieldsOf(body.apiName);
    for (const [i, name] of (body.defaultSearchFields ?? []).entries()) {
      if (name === 'name') continue;
      const field = fields.get(name);
      if (!field || !fieldTypeOf(field).searchable)
        context.problem(
          'REFERENCE_INVALID',
          component,
          `/defaultSearchFields/${i}`,
          field ? `The field ${name} holds no text to search.` : `There is no field ${name}.`,
        );
    }
    if (!body.api.published && old?.api.published !== false)
      context.warning(
        'UNPUBLISHED_OBJECT',
        component,
        '/api/published',
        'The public API does not show this object until api.published is true.',
      );
  },

  checkAll(context) {
    const objects = [...context.after.values()].filter(({ type }) => type === 'CustomObject');
    if (objects.length > OBJECTS_MAX)
      context.problem('LIMIT_EXCEEDED', objects.at(-1)!, '', `A tenant has ${OBJECTS_MAX} objects at most.`, {
        details: { max: OBJECTS_MAX },
      });
    checkParents(context);
  },

  compile(component, draft) {
    draft.objects[component.fullName] = compileObject(component);
  },
};

const isMasterDetail = (field: Component): boolean => fieldTypeOf(field).relation === 'master';
