/** Criteria of sharing rules: one checked expression, evaluated here or compiled into SQL. */
import { checkExpression } from '../expression/check.ts';
import { evaluate, recordFacts } from '../expression/evaluate.ts';
import { rowContext, withFormulas } from '../expression/formulas.ts';
import { EvaluationError } from '../expression/functions.ts';
import { conditionSql } from '../expression/sql.ts';
import type { Expression, Value } from '../expression/types.ts';
import { schemaOfObject, valueOfField } from '../expression/values.ts';
import { valueTypeName } from '../schema/field-types/registry.ts';
import { requireField } from '../schema/lookup.ts';
import type { ObjectMeta, Snapshot } from '../schema/snapshot.ts';
import { memoizeByName } from '../values/memoize.ts';

/** The criteria of an object, checked once per snapshot. A deployment has checked them before. */
export const criteriaOf = memoizeByName(
  (object: ObjectMeta, text): Expression => checkExpression(text, schemaOfObject(object), ['boolean']),
);

/** SQL of the criteria for WHERE, over the row `alias`: true where the record meets them. It names no parameter. */
export function criteriaSql(object: ObjectMeta, text: string, timezone: string, alias: string): string {
  const known = compiled(object, text);
  const form = `${alias} ${timezone}`;
  let sql = known.get(form);
  if (sql === undefined)
    known.set(form, (sql = conditionSql(criteriaOf(object, text), rowContext(object, alias, timezone)).sql));
  return sql;
}

/** Compiled once: sharing rules are part of every statement that writes a record. */
const compiled = memoizeByName((_object: ObjectMeta, _text) => new Map<string, string>());

/** True when the record meets the criteria; false when they cannot be evaluated. */
export function meetsCriteria(
  object: ObjectMeta,
  text: string,
  values: Readonly<Record<string, unknown>>,
  { tenant }: Snapshot,
): boolean {
  // Criteria and the formulas that they use do not depend on the current time.
  const at = { now: 0, timezone: tenant.timezone };
  const stored = (name: string): Value => valueOfField(valueTypeName(requireField(object, name)), values[name]);
  try {
    const facts = recordFacts(withFormulas(object, stored, at), at);
    return evaluate(criteriaOf(object, text), facts, () => 0) === true;
  } catch (error) {
    if (error instanceof EvaluationError) return false;
    throw error;
  }
}
