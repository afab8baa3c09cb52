/** The formula of a CustomField as the snapshot has it. Source: docs/reference/field-types.md#formulas. */
import { checkExpression } from '../../../lib/expression/check.ts';
import { FORMULA_TEXT_MAX_CHARS } from '../../../lib/expression/formulas.ts';
import { expressionSql } from '../../../lib/expression/sql.ts';
import type { Expression } from '../../../lib/expression/types.ts';
import { requireTypeOfField, schemaOfObject } from '../../../lib/expression/values.ts';
import { fieldType, valueTypeName } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta, FormulaMeta } from '../../../lib/schema/snapshot.ts';
import type { FieldBody, FormulaBody } from './bodies/custom-field.ts';
import { digitsOf } from './field-attributes.ts';

/** The field's own part of the snapshot; linkFormulas adds what depends on other fields. */
export function compileFormula(
  body: Pick<FieldBody, 'precision' | 'scale'> & { readonly formula: FormulaBody },
): Pick<FieldMeta, 'precision' | 'scale' | 'length'> & { readonly formula: FormulaMeta } {
  const { expression, resultType } = body.formula;
  const { precision, scale } = digitsOf(fieldType(resultType), body) ?? { precision: null, scale: null };
  const length = requireTypeOfField(resultType) === 'text' ? FORMULA_TEXT_MAX_CHARS : null;
  return {
    formula: { expression, resultType, precision, scale, length, timezone: '', reads: {} },
    precision,
    scale,
    length,
  };
}

/** Gives each formula of a configuration that holds together what it reads, and its field the length of its texts. */
export function linkFormulas(
  object: { readonly apiName: string; readonly fields: Record<string, FieldMeta> },
  timezone: string,
): void {
  const linked = new Map<string, FieldMeta>();
  const link = (name: string, field: FieldMeta): FieldMeta => {
    const known = linked.get(name);
    if (known || !field.formula) return known ?? field;
    linked.set(name, field);
    const { expression: source, resultType } = field.formula;
    const expression = checkExpression(source, schemaOfObject(object), [requireTypeOfField(resultType)]);
    const reads = Object.fromEntries(
      expression.fields.flatMap((read) => {
        const stored = object.fields[read];
        if (!stored) return [];
        const { length, formula } = link(read, stored);
        return [[read, { fieldType: valueTypeName(stored), length, formula }]];
      }),
    );
    const length = expression.type === 'text' ? textLength(expression, reads) : null;
    const result = { ...field, length, formula: { ...field.formula, length, timezone, reads } };
    object.fields[name] = result;
    linked.set(name, result);
    return result;
  };
  for (const [name, field] of Object.entries(object.fields)) link(name, field);
}

function textLength(expression: Expression, reads: FormulaMeta['reads']): number {
  const { chars } = expressionSql(expression, {
    column: () => 'r.c',
    fieldType: (name) => reads[name]?.fieldType,
    length: (name) => reads[name]?.length,
    timezone: 'UTC',
  });
  return Math.min(Math.max(chars, 1), FORMULA_TEXT_MAX_CHARS);
}
