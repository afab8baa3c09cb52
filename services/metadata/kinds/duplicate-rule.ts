/** DuplicateRule: when two records of an object are so similar that a write of the second reports the first. */
import { Type } from 'typebox';
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import { methodsOf } from '../../../lib/schema/matching.ts';
import type { FieldTypeName } from '../../../lib/schema/snapshot.ts';
import { CUSTOM_FIELD } from './bodies/custom-field.ts';
import { CUSTOM_OBJECT } from './bodies/custom-object.ts';
import { type BodyOf, type Component, componentType, findComponent } from './component.ts';
import { type CheckContext, defineKind, type Reference } from './kind.ts';
import { checkPerObject } from './per-object.ts';
import { API_NAME, apiName, group, label, optional, shownChoice, shownFlag, shownNumber } from './schema.ts';
import { SYSTEM_FIELD_NAMES, systemFields } from './system-fields.ts';

const DUPLICATE_RULES_PER_OBJECT_MAX = 20;
const MATCH_ITEMS_MAX = 10;
/** Of weights and thresholds: what is nearly nothing would be lost when it is worked with. */
const LEAST = 0.001;

export const DUPLICATE_RULE = componentType('DuplicateRule', {
  apiName: apiName('Stable name; answers name it as `<Object>.<Rule>`.'),
  object: apiName('The object whose records are compared.'),
  label: optional(label('For people; made of the apiName when there is none.')),
  active: shownFlag(true, 'Records are held to it.'),
  action: shownChoice(['confirm', 'block'], 'confirm', 'A match must be confirmed, or cannot be stored at all.'),
  scope: shownChoice(['visible', 'all'], 'visible', 'Records that count: those the user can read, or all of them.'),
  revealHiddenCount: shownFlag(false, 'The number of matches that the user cannot read is reported.'),
  threshold: shownNumber(1, {
    minimum: LEAST,
    maximum: 1,
    description: `Least weighted mean of the similarities, from ${LEAST} to 1.`,
  }),
  match: Type.Array(
    group(
      {
        field: Type.String({ pattern: API_NAME, description: 'A field of the object.' }),
        method: shownChoice(
          ['exact', 'normalized', 'fuzzy'],
          'exact',
          'Equal; equal but for case, accents, punctuation and white space; similar.',
        ),
        weight: shownNumber(1, {
          minimum: LEAST,
          maximum: 1_000,
          description: `What the field counts among the others, from ${LEAST} to 1,000.`,
        }),
      },
      'One field and how its values are compared.',
    ),
    { minItems: 1, maxItems: MATCH_ITEMS_MAX, description: 'The fields that make records alike.' },
  ),
});

type DuplicateRuleBody = BodyOf<typeof DUPLICATE_RULE>;

export const duplicateRule = defineKind({
  ...DUPLICATE_RULE,
  memberFormat: '<Object>.<Rule>',
  reversible: true,
  dependsOn: ['CustomObject', 'CustomField'],
  inTable: true,

  references(body) {
    const { object, match } = body;
    const found: Reference[] = [{ type: 'CustomObject', fullName: object, pointer: '/object' }];
    for (const [index, { field }] of match.entries())
      if (!SYSTEM_FIELD_NAMES.has(field))
        found.push({
          type: 'CustomField',
          fullName: `${object}.${field}`,
          pointer: `/match/${index}/field`,
          access: 'read',
        });
    return found;
  },

  check(component, context) {
    const { object, active, match } = component.body;
    const owner = findComponent(context.after, CUSTOM_OBJECT, object);
    if (!owner) return;
    if (active && owner.body.features.duplicates !== true)
      context.warning(
        'UNPUBLISHED_OBJECT',
        component,
        '/object',
        `The rule does nothing until features.duplicates of ${object} is true.`,
      );
    const seen = new Set<string>();
    for (const [index, item] of match.entries()) {
      const type = typeOfField(object, item.field, context);
      if (type !== undefined) checkItem(component, context, index, item, type);
      if (seen.has(item.field))
        context.problem(
          'YAML_SCHEMA_INVALID',
          component,
          `/match/${index}/field`,
          `Duplicate field ${item.field} in the rule.`,
        );
      seen.add(item.field);
    }
  },

  isAffected: ({ body }, changes) => changes.objects(CUSTOM_FIELD).has(body.object),

  checkAll: (context) => checkPerObject(context, DUPLICATE_RULE, 'duplicate rules', DUPLICATE_RULES_PER_OBJECT_MAX),

  compile(component, draft) {
    const body = component.body;
    draft.objects[body.object]?.duplicateRules.push({
      apiName: body.apiName,
      label: body.label ?? inWords(body.apiName),
      active: body.active,
      action: body.action,
      scope: body.scope,
      revealHiddenCount: body.revealHiddenCount,
      threshold: body.threshold,
      match: body.match,
    });
  },
});

/** Undefined: there is no such field, which the references say. */
function typeOfField(object: string, field: string, context: CheckContext): FieldTypeName | undefined {
  if (field === 'name') return findComponent(context.after, CUSTOM_OBJECT, object)?.body.nameField.fieldType;
  if (field === 'ownerId') return systemFields()[field]?.fieldType;
  // System fields differ from record to record, or say nothing about them.
  if (SYSTEM_FIELD_NAMES.has(field)) return 'id';
  return context.fieldsOf(object).get(field)?.body.fieldType;
}

function checkItem(
  component: Component,
  context: CheckContext,
  index: number,
  { field, method }: DuplicateRuleBody['match'][number],
  type: FieldTypeName,
): void {
  const methods = fieldType(type).writable ? methodsOf(type) : [];
  if (methods.includes(method)) return;
  if (methods.length === 0)
    context.problem(
      'REFERENCE_INVALID',
      component,
      `/match/${index}/field`,
      `The values of ${field} (${type}) cannot be compared.`,
    );
  else
    context.problem(
      'REFERENCE_INVALID',
      component,
      `/match/${index}/method`,
      `${field} is ${type} and is compared by: ${methods.join(', ')}.`,
      { remedy: `Use method: ${methods[0]}.` },
    );
}

/** `SameTaxId` → `Same tax id`. */
function inWords(name: string): string {
  const words = name
    .replaceAll('_', ' ')
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .trim()
    .toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
