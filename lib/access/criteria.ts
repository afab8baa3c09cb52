/** Criteria of sharing rules: one checked expression, evaluated here or compiled into SQL. */
import { checkExpression } from '../expression/check.ts';
import { evaluate } from '../expression/evaluate.ts';
import { EvaluationError } from '../expression/functions.ts';
import { conditionSql } from '../expression/sql.ts';
import type { Expression } from '../expression/types.ts';
import { valueOfField } from '../expression/values.ts';
import { fieldOf } from '../snapshot/lookup.ts';
import type { FieldMeta, ObjectMeta, Snapshot } from '../snapshot/types.ts';

const known = new WeakMap<ObjectMeta, Map<string, Expression>>();

/** The criteria of an object, checked once per snapshot. A deployment has checked them before. */
export function criteriaOf(object: ObjectMeta, text: string): Expression {
  let ofObject = known.get(object);
  if (!ofObject) known.set(object, (ofObject = new Map()));
  let expression = ofObject.get(text);
  if (!expression) {
    const schema = { object: object.apiName, fieldType: (name: string) => fieldOf(object, name)?.fieldType };
    ofObject.set(text, (expression = checkExpression(text, schema, ['boolean'])));
  }
  return expression;
}

/** SQL of the criteria for WHERE: true where the record meets them. It names no parameter. */
export function criteriaSql(
  object: ObjectMeta,
  text: string,
  timezone: string,
  column: (field: string) => string,
): string {
  const field = (name: string): FieldMeta => object.fields[name]!;
  return conditionSql(criteriaOf(object, text), {
    column,
    fieldType: (name) => field(name).fieldType,
    length: (name) => field(name).length,
    timezone,
  }).sql;
}

/** True when the record meets the criteria; what cannot be evaluated is not met. */
export function meetsCriteria(
  object: ObjectMeta,
  text: string,
  values: Readonly<Record<string, unknown>>,
  { tenant }: Snapshot,
): boolean {
  try {
    const result = evaluate(
      criteriaOf(object, text),
      {
        record: (name) => valueOfField(object.fields[name]!.fieldType, values[name]),
        old: null,
        isChanged: () => false,
        user: {},
        hasPermission: () => false,
        inGroup: () => false,
        now: 0,
        timezone: tenant.timezone,
      },
      () => 0,
    );
    return result === true;
  } catch (error) {
    if (error instanceof EvaluationError) return false;
    throw error;
  }
}
