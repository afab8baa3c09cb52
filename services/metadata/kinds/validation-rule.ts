/** ValidationRule: a condition under which a record of an object is refused. */
import { Type } from 'typebox';
import { checkExpression } from '../../../lib/expression/check.ts';
import { CUSTOM_FIELD } from './bodies/custom-field.ts';
import { componentKey, componentType } from './component.ts';
import { expressionReferences } from './expression-names.ts';
import { checked, schemaOf } from './expressions.ts';
import { defineKind, type Reference } from './kind.ts';
import { checkPerObject } from './per-object.ts';
import { API_NAME, apiName, expression, optional, shownFlag } from './schema.ts';
import { SYSTEM_FIELD_NAMES } from './system-fields.ts';

const RULES_PER_OBJECT_MAX = 100;

export const VALIDATION_RULE = componentType('ValidationRule', {
  apiName: apiName('Stable name; errors name it as `<Object>.<Rule>`.'),
  object: apiName('The object that it belongs to.'),
  active: shownFlag(true, 'Records are held to it.'),
  condition: expression('Expression; a record for which it is true is refused.'),
  errorField: optional(
    Type.String({ pattern: API_NAME, description: 'The field that the error points to; none: the record.' }),
  ),
  message: Type.String({
    minLength: 1,
    maxLength: 1_000,
    pattern: '\\S',
    description: 'The message for a write of such a record.',
  }),
});

export const validationRule = defineKind({
  ...VALIDATION_RULE,
  memberFormat: '<Object>.<Rule>',
  reversible: true,
  dependsOn: ['CustomObject', 'CustomField'],

  references(body) {
    const { object, errorField, condition } = body;
    const found: Reference[] = [{ type: 'CustomObject', fullName: object, pointer: '/object' }];
    const fullName = `${object}.${errorField}`;
    if (errorField !== undefined && !SYSTEM_FIELD_NAMES.has(errorField))
      found.push({ type: 'CustomField', fullName, pointer: '/errorField', access: 'read' });
    const named = expressionReferences(object, condition, '/condition');
    return [...found, ...named.filter((reference) => reference.fullName !== fullName)];
  },

  check(component, context) {
    const { object, condition } = component.body;
    if (!context.after.has(componentKey('CustomObject', object))) return;
    checked(component, context, '/condition', () => checkExpression(condition, schemaOf(object, context), ['boolean']));
  },

  isAffected: ({ body }, changes) => changes.objects(CUSTOM_FIELD).has(body.object),

  checkAll: (context) => checkPerObject(context, VALIDATION_RULE, 'validation rules', RULES_PER_OBJECT_MAX),

  compile(component, draft) {
    const { object, apiName: name, active, condition, errorField, message } = component.body;
    draft.objects[object]?.validationRules.push({
      apiName: name,
      active,
      condition,
      errorField: errorField ?? null,
      message,
    });
  },
});
