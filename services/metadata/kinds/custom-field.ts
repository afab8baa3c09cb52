/** CustomField: one column and everything said about its values. */
import { isBlank } from '../../../lib/schema/field-types/blank.ts';
import { fieldType, isMasterDetail } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { memoize } from '../../../lib/values/memoize.ts';
import { newPatternBudget, PatternError, patternSize } from '../../../lib/values/pattern.ts';
import { CUSTOM_FIELD, type FieldComponent, type PicklistBody } from './bodies/custom-field.ts';
import { compileField, relationshipName } from './compile-field.ts';
import { linkFormulas } from './compile-formula.ts';
import { type Component, componentKey, componentsByObject, componentsOf } from './component.ts';
import { digitsOf, isFormula, onDelete, TYPED_ATTRIBUTES } from './field-attributes.ts';
import { checkFormulaAttributes, checkFormulas, formulaReferences } from './formula.ts';
import { type CheckContext, type Draft, defineKind, type Reference } from './kind.ts';
import { isCustom } from './names.ts';
import { checkPerObject } from './per-object.ts';
import { checkRollup, checkRollups, rollupReferences } from './rollup.ts';
import { isShipped } from './shipped-names.ts';
import { SYSTEM_FIELD_NAMES } from './system-fields.ts';
import { valueProblems } from './value-set.ts';

const FIELDS_PER_OBJECT_MAX = 500;
const MASTER_DETAILS_MAX = 2;
/** Characters of the default values of an object: a create of few bytes stores them all. */
const DEFAULTS_PER_OBJECT_MAX_CHARS = 262_144;
/** Characters that all texts of a record can have: a reader of a record reads all of it, and a page has 8 MiB. */
const TEXTS_PER_OBJECT_MAX_CHARS = 1_638_400;
/** Characters times the size of a pattern: a body has many texts, and matching them blocks the event loop. */
const PATTERN_STEPS_MAX = 1_000_000;
/** For the default values of all fields that a deployment checks. */
const DEFAULTS_STEPS_MAX = 20_000_000;
const defaultsBudget = memoize((_components: object) => newPatternBudget(DEFAULTS_STEPS_MAX));

export const customField = defineKind({
  ...CUSTOM_FIELD,
  memberFormat: '<Object>.<Field>',
  reversible: true,
  dependsOn: ['CustomObject', 'CustomField', 'ValueSet'],
  inTable: true,

  references({ object, referenceTo = [], picklist, currencyField, rollup, formula }) {
    const found: Reference[] = [{ type: 'CustomObject', fullName: object, pointer: '/object' }];
    for (const [i, name] of referenceTo.entries())
      found.push({ type: 'CustomObject', fullName: name, pointer: `/referenceTo/${i}` });
    if (picklist?.valueSet)
      found.push({ type: 'ValueSet', fullName: picklist.valueSet, pointer: '/picklist/valueSet' });
    const named = { '/picklist/controllingField': picklist?.controllingField, '/currencyField': currencyField };
    for (const [pointer, name] of Object.entries(named))
      if (name !== undefined)
        found.push({ type: 'CustomField', fullName: `${object}.${name}`, pointer, ownCheck: true });
    if (rollup) found.push(...rollupReferences(rollup));
    if (formula) found.push(...formulaReferences(object, formula));
    return found;
  },

  check(component, context) {
    checkName(component, context);
    checkAttributes(component, context);
    checkRelations(component, context);
    checkPicklist(component, context);
    checkRollup(component, context);
  },

  isAffected({ fullName, body }, changes) {
    const controller = body.picklist?.controllingField;
    return (
      changes.names(CUSTOM_FIELD).has(fullName) ||
      (controller !== undefined && changes.names(CUSTOM_FIELD).has(`${body.object}.${controller}`)) ||
      (body.rollup !== undefined && changes.objects(CUSTOM_FIELD).has(body.rollup.childObject))
    );
  },

  checkAll(context) {
    checkPerObject(context, CUSTOM_FIELD, 'fields', FIELDS_PER_OBJECT_MAX);
    checkMasterDetails(context);
    checkDefaults(context);
    checkTexts(context);
    checkRelationshipNames(context);
    checkMasterDetailCycles(context);
    checkControllingCircles(context);
    checkRollups(context);
    checkFormulas(context);
  },

  compile(component, draft, state) {
    const fields = draft.objects[component.body.object]?.fields;
    if (fields) fields[component.body.apiName] = compileField(component, state);
  },

  link(draft) {
    for (const object of Object.values(draft.objects)) linkFormulas(object, draft.tenant.timezone);
    for (const object of Object.values(draft.objects))
      for (const field of Object.values(object.fields)) linkParents(draft, object.apiName, field);
  },
});

/** Adds a field to the child relationships of the objects that it refers to. */
function linkParents(draft: Draft, objectApiName: string, field: FieldMeta): void {
  const { relationshipName: name, onDelete: action, referenceTo } = field;
  if (name === null) return;
  for (const parent of referenceTo)
    draft.objects[parent]?.childRelationships.push({
      relationshipName: name,
      objectApiName,
      field: field.apiName,
      onDelete: action,
    });
}

function checkMasterDetails(context: CheckContext): void {
  for (const list of componentsByObject(context.after, CUSTOM_FIELD).values()) {
    const masters = list.filter(({ body }) => isMasterDetail(body));
    const last = masters.at(-1);
    if (last && masters.length > MASTER_DETAILS_MAX)
      context.problem('LIMIT_EXCEEDED', last, '/fieldType', 'An object may have at most two masterDetail fields.', {
        details: { max: MASTER_DETAILS_MAX },
      });
  }
}

function checkDefaults(context: CheckContext): void {
  const charsOf = ({ defaultValue = '' }: FieldComponent['body']): number =>
    (typeof defaultValue === 'string' ? defaultValue : JSON.stringify(defaultValue)).length;
  checkChars(context, charsOf, DEFAULTS_PER_OBJECT_MAX_CHARS, '/defaultValue', 'default values');
}

function checkTexts(context: CheckContext): void {
  const charsOf = (body: FieldComponent['body']): number => {
    const { calculated, chars, maxChars = 0 } = fieldType(body.fieldType);
    return calculated ? 0 : (body.length ?? chars?.default ?? maxChars);
  };
  checkChars(context, charsOf, TEXTS_PER_OBJECT_MAX_CHARS, '/length', 'texts');
}

/** At most `max` characters of all fields of an object together; the field that passes the bound has the problem. */
function checkChars(
  context: CheckContext,
  charsOf: (body: FieldComponent['body']) => number,
  max: number,
  pointer: string,
  plural: string,
): void {
  for (const list of componentsByObject(context.after, CUSTOM_FIELD).values()) {
    let chars = 0;
    for (const field of list) {
      const before = chars;
      chars += charsOf(field.body);
      if (before > max || chars <= max) continue;
      const message = `The ${plural} of an object may have at most ${max} characters together.`;
      context.problem('LIMIT_EXCEEDED', field, pointer, message, { details: { max } });
    }
  }
}

function checkName(component: FieldComponent, context: CheckContext): void {
  const body = component.body;
  const { fullName } = component;
  const isKnown = context.before.has(componentKey('CustomField', fullName)) || isShipped('CustomField', fullName);
  if ([...SYSTEM_FIELD_NAMES].some((name) => name.toLowerCase() === body.apiName.toLowerCase()))
    context.problem('NAME_CONFLICT', component, '/apiName', `Every object has a field ${body.apiName} already.`);
  else if (!isKnown && !context.platform && !isCustom(body.apiName))
    context.problem('NAME_INVALID', component, '/apiName', 'The apiName of a custom field ends in `__c`.', {
      remedy: `Name it ${body.apiName}__c.`,
    });
  if (fieldType(body.fieldType).numbered && body.object.length + body.apiName.length > 57)
    context.problem(
      'NAME_INVALID',
      component,
      '/apiName',
      'The names of the object and of an autoNumber field may have at most 57 characters together.',
    );
}

function checkAttributes(component: FieldComponent, context: CheckContext): void {
  const body = component.body;
  const type = body.fieldType;
  const { attributes, needs = [], chars, bindType } = fieldType(type);
  const may: readonly string[] = attributes;
  const invalid = (pointer: string, message: string, remedy?: string): void =>
    context.problem('YAML_SCHEMA_INVALID', component, pointer, message, remedy ? { remedy } : {});
  for (const name of TYPED_ATTRIBUTES)
    if (Object.hasOwn(body, name) && !may.includes(name))
      invalid(`/${name}`, `A field of type ${type} has no ${name}.`);
  for (const name of needs) if (!Object.hasOwn(body, name)) invalid('', `A field of type ${type} needs ${name}.`);
  if (isFormula(body)) checkFormulaAttributes(body, invalid);

  if (chars && (body.length ?? 0) > chars.max)
    invalid('/length', `A field of type ${type} may hold at most ${chars.max} characters.`, 'Use longText for more.');
  const digits = digitsOf(fieldType(type), body);
  if (digits && digits.scale > digits.precision)
    invalid('/scale', `scale ${digits.scale} is greater than precision ${digits.precision}.`);
  const { minimum, maximum } = body;
  if (minimum !== undefined && maximum !== undefined && minimum > maximum)
    invalid('/minimum', 'minimum is greater than maximum.');
  if (bindType === 'bigint')
    for (const name of ['minimum', 'maximum'] as const)
      if (body[name] !== undefined && !Number.isSafeInteger(body[name]))
        invalid(`/${name}`, `${name} is not an integer.`);
  checkValues(component, context, invalid);
  const { currencyField } = body;
  if (typeof currencyField === 'string') {
    const target = context.fieldsOf(body.object).get(currencyField);
    if (!target || !fieldType(target.body.fieldType).holdsCurrencyCode)
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
  component: FieldComponent,
  { after }: CheckContext,
  invalid: (pointer: string, message: string) => void,
): void {
  const { pattern, defaultValue } = component.body;
  if (pattern !== undefined)
    try {
      const steps = patternSize(pattern) * (compileField(component, after).length ?? 0);
      if (steps > PATTERN_STEPS_MAX)
        invalid('/pattern', `To match the longest text takes ${steps} steps, and ${PATTERN_STEPS_MAX} are the most.`);
    } catch (error) {
      if (!(error instanceof PatternError)) throw error;
      invalid('/pattern', error.message);
      return;
    }
  if (defaultValue === undefined || !fieldType(component.body.fieldType).attributes.includes('defaultValue')) return;
  const field = compileField(component, after);
  const read = fieldType(field.fieldType).parseInput(defaultValue, field, '/defaultValue', defaultsBudget(after));
  if (!read.ok) invalid('/defaultValue', read.violation.message);
  else if (field.required && isBlank(field, read.value))
    invalid('/defaultValue', 'The field is required, and its default value is blank.');
}

function checkRelations(component: FieldComponent, context: CheckContext): void {
  const body = component.body;
  const { relation } = fieldType(body.fieldType);
  if (!relation) return;
  const action = onDelete(body);
  if (relation === 'master' && action === 'setNull')
    context.problem('YAML_SCHEMA_INVALID', component, '/onDelete', 'A masterDetail field is never empty.', {
      remedy: 'Use cascade or restrict.',
    });
  if (relation === 'reference' && body.required && action === 'setNull')
    context.problem('YAML_SCHEMA_INVALID', component, '/onDelete', 'A required reference cannot be emptied.', {
      remedy: 'Use restrict or cascade.',
    });
}

function checkPicklist(component: FieldComponent, context: CheckContext): void {
  const body = component.body;
  const { picklist } = body;
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
  if (!controller || !fieldType(controller.body.fieldType).controllingValues)
    context.problem(
      'REFERENCE_INVALID',
      component,
      '/picklist/controllingField',
      `${picklist.controllingField} is not a picklist or boolean field of ${body.object}.`,
    );
  if (picklist.controllingField === body.apiName) invalid('/controllingField', 'A picklist cannot control itself.');
  const valueSet = controller?.body.picklist?.valueSet;
  const isUnread = valueSet !== undefined && context.unread.has(componentKey('ValueSet', valueSet));
  if (controller && !isUnread) checkValidFor(component, picklist, controller, context);
}

/** A value that waits for something that the controlling field never says could never be chosen. */
function checkValidFor(
  component: FieldComponent,
  picklist: PicklistBody,
  controller: FieldComponent,
  context: CheckContext,
): void {
  const values =
    fieldType(controller.body.fieldType).controllingValues?.(compileField(controller, context.after)) ?? null;
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
  for (const field of componentsOf(context.after, CUSTOM_FIELD)) {
    const path = new Set<string>();
    const fields = context.fieldsOf(field.body.object);
    for (let name: string | undefined = field.body.apiName; name !== undefined; ) {
      if (path.has(name)) break;
      path.add(name);
      name = fields.get(name)?.body.picklist?.controllingField;
      if (name !== field.body.apiName || path.size === 1) continue;
      context.problem(
        'REFERENCE_INVALID',
        field,
        '/picklist/controllingField',
        'Picklists control each other in a cycle.',
      );
    }
  }
}

function checkRelationshipNames(context: CheckContext): void {
  const seen = new Map<string, Component>();
  for (const field of componentsOf(context.after, CUSTOM_FIELD)) {
    const name = relationshipName(field.body);
    for (const parent of field.body.referenceTo ?? []) {
      const other = seen.get(`${parent}.${name}`);
      if (other)
        context.problem(
          'NAME_CONFLICT',
          field,
          '/relationshipName',
          `${parent} already has child records called ${name}, by the field ${other.fullName}.`,
          { remedy: 'Give one of the two fields a relationshipName.' },
        );
      else seen.set(`${parent}.${name}`, field);
    }
  }
}

/** A record cannot be part of itself: the master of a master never leads back. */
function checkMasterDetailCycles(context: CheckContext): void {
  const masters = new Map<string, { to: string; field: Component }[]>();
  for (const field of componentsOf(context.after, CUSTOM_FIELD)) {
    if (!isMasterDetail(field.body)) continue;
    const from = field.body.object;
    const list = masters.get(from) ?? [];
    for (const to of field.body.referenceTo ?? []) list.push({ to, field });
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
        context.problem('REFERENCE_INVALID', field, '/referenceTo', 'Master and detail form a cycle.');
}
