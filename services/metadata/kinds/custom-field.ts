/** CustomField: one column and everything said about its values. */
import { Type } from 'typebox';
import { EXPRESSION_MAX_CHARS } from '../../../lib/expression/check.ts';
import { isBlank } from '../../../lib/schema/field-types/blank.ts';
import { fieldType, namesOfTypes } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { PatternError, patternSize } from '../../../lib/values/pattern.ts';
import { compileField, type FieldBody, onDelete, type PicklistBody, relationshipName } from './compile-field.ts';
import { digitsOf, fieldTypeOf, TYPED_ATTRIBUTES } from './field-attributes.ts';
import { checkFormulaAttributes, checkFormulas, formulaReferences } from './formula.ts';
import type { CheckContext, Component, Kind, Reference } from './kind.ts';
import { componentKey, componentsByObject } from './kind.ts';
import { AUTO_NUMBER_FORMAT, isCustom } from './names.ts';
import { targetsOf } from './parents.ts';
import { checkPerObject } from './per-object.ts';
import { checkRollup, checkRollups, rollupReferences } from './rollup.ts';
import { API_NAME, apiName, flag, group, label, listOf, optional, shownFlag, text } from './schema.ts';
import { SYSTEM_FIELD_NAMES } from './system-fields.ts';
import { VALUES_MAX, valueProblems, valueSchema } from './value-set.ts';

const FIELDS_PER_OBJECT_MAX = 500;
const MASTER_DETAILS_MAX = 2;
/** Characters times the size of a pattern: a body has many texts, and nobody else is served while they are matched. */
const PATTERN_STEPS_MAX = 1_000_000;

const optionalInteger = (minimum: number, maximum: number, description: string) =>
  optional(Type.Integer({ minimum, maximum, description }));

export const customField: Kind = {
  type: 'CustomField',
  memberFormat: '<Object>.<Field>',
  pathPattern: 'objects/{object}/fields/{apiName}.yaml',
  child: true,
  reversible: true,
  inTable: true,
  schema: Type.Object(
    {
      type: Type.Literal('CustomField'),
      apiName: apiName('Stable name; custom fields end in `__c`.'),
      object: apiName('The object that it belongs to.'),
      label: label('As people read it.'),
      description: optional(text('For those who configure.')),
      fieldType: Type.Enum(
        namesOfTypes((type) => !type.systemOnly),
        { description: 'What it holds.' },
      ),
      required: optional(flag(false, 'A record needs a value.')),
      unique: optional(flag(false, 'No two records have the same value.')),
      externalId: optional(flag(false, 'A key of another system; records can be referred to by it.')),
      caseSensitive: optional(flag(false, '`unique` and look-ups tell upper and lower case apart.')),
      length: optionalInteger(1, 131_072, 'Most characters.'),
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
            function: Type.Enum(['count', 'sum', 'min', 'max', 'avg'], { description: 'What is made of them.' }),
            field: optional(
              Type.String({ pattern: API_NAME, description: 'The field of the children; not for count.' }),
            ),
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
          description: 'What happens here when the record pointed to is deleted.',
        }),
      ),
      picklist: optional(
        group(
          {
            restricted: optional(shownFlag(true, 'Only these values are taken.')),
            controllingField: optional(
              Type.String({
                pattern: API_NAME,
                description:
                  'A picklist or boolean of the object whose value decides which values are valid (`validFor`).',
              }),
            ),
            valueSet: optional(Type.String({ pattern: API_NAME, description: 'Values of a ValueSet.' })),
            values: optional(listOf(valueSchema(true), 'Values, in their order.', VALUES_MAX)),
          },
          'picklist and multiPicklist: the values.',
        ),
      ),
      semantics: optional(text('What the value means and what it does not, where a reader could go wrong.')),
      dataClassification: optional(
        Type.Enum(['public', 'internal', 'confidential', 'restricted'], {
          description: 'How carefully the value is to be handled; for people, it decides nothing.',
        }),
      ),
      helpText: optional(text('For those who type it in.', 1_000)),
      deprecated: optional(flag(false, 'Still there, no longer to be used.')),
      example: optional(Type.Unsafe<unknown>({ description: 'A typical value.' })),
    },
    { additionalProperties: false },
  ),

  references(body) {
    const found: Reference[] = [{ type: 'CustomObject', fullName: String(body['object']), pointer: '/object' }];
    for (const [i, name] of targetsOf({ body }).entries())
      found.push({ type: 'CustomObject', fullName: name, pointer: `/referenceTo/${i}` });
    const picklist = body['picklist'] as PicklistBody | undefined;
    if (picklist?.valueSet)
      found.push({ type: 'ValueSet', fullName: picklist.valueSet, pointer: '/picklist/valueSet' });
    if (body['rollup']) found.push(...rollupReferences(body));
    if (body['formula']) found.push(...formulaReferences(body));
    return found;
  },

  check(component, context) {
    checkName(component, context);
    checkAttributes(component, context);
    checkRelations(component, context);
    checkPicklist(component, context);
    checkRollup(component, context);
  },

  checkAll(context) {
    checkPerObject(context, 'CustomField', 'fields', FIELDS_PER_OBJECT_MAX);
    for (const list of componentsByObject(context.after, 'CustomField').values()) {
      const masters = list.filter((field) => fieldTypeOf(field).relation === 'master');
      if (masters.length > MASTER_DETAILS_MAX)
        context.problem(
          'LIMIT_EXCEEDED',
          masters.at(-1)!,
          '/fieldType',
          'An object has two masterDetail fields at most.',
          {
            details: { max: MASTER_DETAILS_MAX },
          },
        );
    }
    checkRelationshipNames(context);
    checkMasterDetailCycles(context);
    checkControllingCircles(context);
    checkRollups(context);
    checkFormulas(context);
  },

  compile(component, draft, state) {
    const object = draft.objects[String(component.body['object'])];
    if (!object) return;
    (object.fields as Record<string, FieldMeta>)[String(component.body['apiName'])] = compileField(component, state);
  },
};

function checkName(component: Component, context: CheckContext): void {
  const body = component.body as FieldBody;
  const exists = context.before.has(componentKey('CustomField', component.fullName));
  if ([...SYSTEM_FIELD_NAMES].some((name) => name.toLowerCase() === body.apiName.toLowerCase()))
    context.problem('NAME_CONFLICT', component, '/apiName', `Every object has a field ${body.apiName} already.`);
  else if (!exists && !context.platform && !isCustom(body.apiName))
    context.problem('NAME_INVALID', component, '/apiName', 'The apiName of a custom field ends in `__c`.', {
      remedy: `Name it ${body.apiName}__c.`,
    });
  if (fieldType(body.fieldType).numbered && body.object.length + body.apiName.length > 57)
    context.problem(
      'NAME_INVALID',
      component,
      '/apiName',
      'The names of the object and of an autoNumber field have 57 characters together at most.',
    );
}

function checkAttributes(component: Component, context: CheckContext): void {
  const body = component.body as FieldBody;
  const type = body.fieldType;
  const { attributes, needs = [], chars, bindType, calculated } = fieldType(type);
  const may: readonly string[] = attributes;
  const invalid = (pointer: string, message: string, remedy?: string): void =>
    context.problem('YAML_SCHEMA_INVALID', component, pointer, message, remedy ? { remedy } : {});
  for (const name of TYPED_ATTRIBUTES)
    if (Object.hasOwn(body, name) && !may.includes(name))
      invalid(`/${name}`, `A field of type ${type} has no ${name}.`);
  for (const name of needs) if (!Object.hasOwn(body, name)) invalid('', `A field of type ${type} needs ${name}.`);
  if (calculated === 'formula') checkFormulaAttributes(body, invalid);

  if (chars && Number(body['length'] ?? 0) > chars.max)
    invalid('/length', `A field of type ${type} holds ${chars.max} characters at most.`, 'Use longText for more.');
  const digits = digitsOf(fieldType(type), body);
  if (digits && digits.scale > digits.precision)
    invalid('/scale', `scale ${digits.scale} is greater than precision ${digits.precision}.`);
  const { minimum, maximum } = body;
  if (typeof minimum === 'number' && typeof maximum === 'number' && minimum > maximum)
    invalid('/minimum', 'minimum is greater than maximum.');
  if (bindType === 'bigint')
    for (const name of ['minimum', 'maximum'])
      if (body[name] !== undefined && !Number.isSafeInteger(body[name]))
        invalid(`/${name}`, `${name} is not an integer.`);
  checkValues(component, context, invalid);
  const { currencyField } = body;
  if (typeof currencyField === 'string') {
    const target = context.fieldsOf(body.object).get(currencyField);
    if (!target || !fieldTypeOf(target).holdsCurrencyCode)
      context.problem(
        'REFERENCE_INVALID',
        component,
        '/currencyField',
        `${currencyField} is not a text or picklist field of ${body.object}.`,
      );
  }
}

/** The pattern and the default value, by the same code that will read the values of records. */
function checkValues(
  component: Component,
  { after }: CheckContext,
  invalid: (pointer: string, message: string) => void,
): void {
  const { pattern, defaultValue } = component.body;
  if (typeof pattern === 'string')
    try {
      const steps = patternSize(pattern) * (compileField(component, after).length ?? 0);
      if (steps > PATTERN_STEPS_MAX)
        invalid('/pattern', `To match the longest text takes ${steps} steps, and ${PATTERN_STEPS_MAX} are the most.`);
    } catch (error) {
      if (!(error instanceof PatternError)) throw error;
      invalid('/pattern', error.message);
      return;
    }
  if (
    defaultValue === undefined ||
    !fieldType((component.body as FieldBody).fieldType).attributes.includes('defaultValue')
  )
    return;
  const field = compileField(component, after);
  const read = fieldType(field.fieldType).parseInput(defaultValue, field, '/defaultValue');
  if (!read.ok) invalid('/defaultValue', read.violation.message);
  else if (field.required && isBlank(field, read.value))
    invalid('/defaultValue', 'The field is required, and its default value is blank.');
}

function checkRelations(component: Component, context: CheckContext): void {
  const body = component.body as FieldBody;
  const { relation } = fieldType(body.fieldType);
  if (!relation) return;
  const action = onDelete(body);
  if (relation === 'master' && action === 'setNull')
    context.problem('YAML_SCHEMA_INVALID', component, '/onDelete', 'A masterDetail field is never empty.', {
      remedy: 'Use cascade or restrict.',
    });
  if (relation === 'reference' && body['required'] === true && action === 'setNull')
    context.problem('YAML_SCHEMA_INVALID', component, '/onDelete', 'A required reference cannot be emptied.', {
      remedy: 'Use restrict or cascade.',
    });
}

function checkPicklist(component: Component, context: CheckContext): void {
  const body = component.body as FieldBody;
  const picklist = body['picklist'] as PicklistBody | undefined;
  if (!picklist) return;
  const invalid = (pointer: string, message: string): void =>
    context.problem('YAML_SCHEMA_INVALID', component, `/picklist${pointer}`, message);
  if (picklist.valueSet !== undefined && picklist.values !== undefined)
    invalid('', 'A picklist has either valueSet or values.');
  if (picklist.restricted && picklist.valueSet === undefined && picklist.values === undefined)
    invalid('', 'A restricted picklist needs valueSet or values.');
  for (const problem of valueProblems(picklist.values ?? [], fieldType(body.fieldType).choices === 'one'))
    invalid(`/values${problem.pointer}`, problem.message);
  if (picklist.controllingField === undefined) {
    if (picklist.values?.some((v) => v.validFor)) invalid('/values', 'validFor needs a controllingField.');
    return;
  }
  const controller = context.fieldsOf(body.object).get(picklist.controllingField);
  if (!controller || !fieldTypeOf(controller).controllingValues)
    context.problem(
      'REFERENCE_INVALID',
      component,
      '/picklist/controllingField',
      `${picklist.controllingField} is not a picklist or boolean field of ${body.object}.`,
    );
  if (picklist.controllingField === body.apiName) invalid('/controllingField', 'A picklist cannot control itself.');
  if (controller) checkValidFor(component, picklist, controller, context);
}

/** A value that waits for something that the controlling field never says could never be chosen. */
function checkValidFor(
  component: Component,
  picklist: PicklistBody,
  controller: Component,
  context: CheckContext,
): void {
  const values = fieldTypeOf(controller).controllingValues?.(compileField(controller, context.after)) ?? null;
  if (values === null) return;
  const known = new Set(values);
  for (const [i, { validFor = [] }] of (picklist.values ?? []).entries())
    for (const [j, value] of validFor.entries())
      if (!known.has(value))
        context.problem(
          'REFERENCE_INVALID',
          component,
          `/picklist/values/${i}/validFor/${j}`,
          `${controller.fullName} has no value ${value}.`,
        );
}

/** Each would wait for the other's value. */
function checkControllingCircles(context: CheckContext): void {
  for (const field of context.after.values()) {
    if (field.type !== 'CustomField') continue;
    const path = new Set<string>();
    const fields = context.fieldsOf(String(field.body['object']));
    for (let name: string | undefined = String(field.body['apiName']); name !== undefined; ) {
      if (path.has(name)) break;
      path.add(name);
      name = (fields.get(name)?.body['picklist'] as PicklistBody | undefined)?.controllingField;
      if (name !== field.body['apiName'] || path.size === 1) continue;
      context.problem(
        'REFERENCE_INVALID',
        field,
        '/picklist/controllingField',
        'Picklists control each other in a circle.',
      );
    }
  }
}

function checkRelationshipNames(context: CheckContext): void {
  const seen = new Map<string, Component>();
  for (const field of context.after.values()) {
    if (field.type !== 'CustomField') continue;
    const name = relationshipName(field);
    for (const parent of targetsOf(field)) {
      const twin = seen.get(`${parent}.${name}`);
      if (twin)
        context.problem(
          'NAME_CONFLICT',
          field,
          '/relationshipName',
          `${parent} already has child records called ${name}, by the field ${twin.fullName}.`,
          { remedy: 'Give one of the two fields a relationshipName.' },
        );
      else seen.set(`${parent}.${name}`, field);
    }
  }
}

/** A record cannot be part of itself: the master of a master never leads back. */
function checkMasterDetailCycles(context: CheckContext): void {
  const masters = new Map<string, { to: string; field: Component }[]>();
  for (const field of context.after.values()) {
    if (field.type !== 'CustomField' || fieldTypeOf(field).relation !== 'master') continue;
    const from = String(field.body['object']);
    const list = masters.get(from) ?? [];
    for (const to of targetsOf(field)) list.push({ to, field });
    masters.set(from, list);
  }
  const reaches = (from: string, target: string, seen: Set<string>): boolean => {
    if (from === target) return true;
    if (seen.has(from)) return false;
    seen.add(from);
    return (masters.get(from) ?? []).some(({ to }) => reaches(to, target, seen));
  };
  for (const [object, list] of masters)
    for (const { to, field } of list)
      if (reaches(to, object, new Set()))
        context.problem('REFERENCE_INVALID', field, '/referenceTo', 'Master and detail form a circle.');
}
