/** ValidationRule: a condition under which a record of an object is refused. */
import { Type } from 'typebox';
import { checkExpression } from '../../../lib/expression/check.ts';
import type { ValidationRuleMeta } from '../../../lib/schema/snapshot.ts';
import { expressionReferences } from './expression-names.ts';
import { checked, schemaOf } from './expressions.ts';
import { type Body, componentKey, type Kind, type Reference } from './kind.ts';
import { checkPerObject } from './per-object.ts';
import { API_NAME, apiName, expression, optional, shownFlag } from './schema.ts';
import { SYSTEM_FIELD_NAMES } from './system-fields.ts';

interface RuleBody extends Body {
  readonly apiName: string;
  readonly object: string;
  readonly active: boolean;
  readonly condition: string;
  readonly errorField?: string;
  readonly message: string;
}

const RULES_PER_OBJECT_MAX = 100;

export const validationRule: Kind = {
  type: 'ValidationRule',
  memberFormat: '<Object>.<Rule>',
  pathPattern: 'objects/{object}/validationRules/{apiName}.yaml',
  child: true,
  reversible: true,
  schema: Type.Object(
    {
      type: Type.Literal('ValidationRule'),
      apiName: apiName('Stable name; errors tell it as `<Object>.<Rule>`.'),
      object: apiName('The object that it belongs to.'),
      active: optional(shownFlag(true, 'Records are held to it.')),
      condition: expression('Expression; a record for which it is true is refused.'),
      errorField: optional(
        Type.String({ pattern: API_NAME, description: 'The field that the error points to; none: the record.' }),
      ),
      message: Type.String({
        minLength: 1,
        maxLength: 1_000,
        pattern: '\\S',
        description: 'Told to whoever writes such a record.',
      }),
    },
    { additionalProperties: false },
  ),

  references(body) {
    const { object, errorField, condition } = body as RuleBody;
    const found: Reference[] = [{ type: 'CustomObject', fullName: object, pointer: '/object' }];
    const fullName = `${object}.${errorField}`;
    if (errorField !== undefined && !SYSTEM_FIELD_NAMES.has(errorField))
      found.push({ type: 'CustomField', fullName, pointer: '/errorField' });
    const named = expressionReferences(object, condition, '/condition');
    return [...found, ...named.filter((reference) => reference.fullName !== fullName)];
  },

  check(component, context) {
    const { object, condition } = component.body as RuleBody;
    if (!context.after.has(componentKey('CustomObject', object))) return;
    checked(component, context, '/condition', () => checkExpression(condition, schemaOf(object, context), ['boolean']));
  },

  checkAll: (context) => checkPerObject(context, 'ValidationRule', 'validation rules', RULES_PER_OBJECT_MAX),

  compile(component, draft) {
    const { object, apiName: name, active, condition, errorField, message } = component.body as RuleBody;
    (draft.objects[object]?.validationRules as ValidationRuleMeta[] | undefined)?.push({
      apiName: name,
      active,
      condition,
      errorField: errorField ?? null,
      message,
    });
  },
};
