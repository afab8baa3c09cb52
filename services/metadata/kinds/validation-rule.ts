/** ValidationRule: a condition under which a record of an object is refused. */
import { Type } from 'typebox';
import { checkExpression, EXPRESSION_MAX_CHARS, type Schema } from '../../../lib/expression/check.ts';
import { ExpressionError } from '../../../lib/expression/types.ts';
import { valueTypeName } from '../../../lib/field-types/registry.ts';
import type { FieldTypeName, ValidationRuleMeta } from '../../../lib/snapshot/types.ts';
import { compileField } from './custom-field.ts';
import { type Body, type CheckContext, componentKey, type Kind, type Reference } from './kind.ts';
import { checkPerObject } from './per-object.ts';
import { API_NAME, apiName, optional, shownFlag } from './schema.ts';
import { SYSTEM_FIELD_NAMES, systemFields } from './system-fields.ts';

export interface RuleBody extends Body {
  readonly apiName: string;
  readonly object: string;
  readonly active: boolean;
  readonly condition: string;
  readonly errorField?: string;
  readonly message: string;
}

export const RULES_PER_OBJECT_MAX = 100;

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
      condition: Type.String({
        minLength: 1,
        maxLength: EXPRESSION_MAX_CHARS,
        pattern: '\\S',
        description: 'Expression; a record for which it is true is refused.',
      }),
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
    const field = (name: string, pointer: string, ownCheck = false): void => {
      if (!SYSTEM_FIELD_NAMES.has(name))
        found.push({ type: 'CustomField', fullName: `${object}.${name}`, pointer, ...(ownCheck ? { ownCheck } : {}) });
    };
    if (errorField !== undefined) field(errorField, '/errorField');
    for (const name of fieldsNamed(condition)) if (name !== errorField) field(name, '/condition', true);
    for (const fullName of groupsNamed(condition))
      found.push({ type: 'Group', fullName, pointer: '/condition', ownCheck: true });
    return found;
  },

  check(component, context) {
    const { object, condition } = component.body as RuleBody;
    if (!context.after.has(componentKey('CustomObject', object))) return;
    try {
      checkExpression(condition, schemaOf(object, context), ['boolean']);
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      for (const { start, message, remedy } of error.mistakes)
        context.problem('EXPRESSION_INVALID', component, '/condition', message, {
          ...(remedy === null ? {} : { remedy }),
          offset: start,
        });
    }
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

/** Fields that a condition seems to name, also in one that does not hold together. */
export function fieldsNamed(condition: string): Set<string> {
  const names = [...condition.matchAll(/\b(?:record|old)\s*\.\s*([A-Za-z]\w*)(?!\w|\s*\()/g)].map((match) => match[1]!);
  return new Set(names);
}

const groupsNamed = (condition: string): Set<string> =>
  new Set([...condition.matchAll(/\binGroup\s*\(\s*["']([A-Za-z]\w*)["']/g)].map((match) => match[1]!));

/** The fields of an object in the configuration to be, as expressions see them. */
export function schemaOf(object: string, context: CheckContext): Schema {
  const builtIn = systemFields();
  const custom = context.fieldsOf(object);
  const nameField = context.after.get(componentKey('CustomObject', object))!.body['nameField'] as {
    fieldType: FieldTypeName;
  };
  return {
    object,
    hasGroup: (name) => context.after.has(componentKey('Group', name)),
    fieldType: (name) => {
      if (name === 'name') return nameField.fieldType;
      if (Object.hasOwn(builtIn, name)) return builtIn[name]!.fieldType;
      const field = custom.get(name);
      return field && valueTypeName(compileField(field, context.after));
    },
    length: (name) => {
      const field = custom.get(name);
      return field ? compileField(field, context.after).length : null;
    },
  };
}
