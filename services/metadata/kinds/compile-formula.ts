/** The formula of a CustomField as the snapshot has it. Source: docs/reference/field-types.md#formulas. */
import { checkRecordExpression } from '../../../lib/expression/check.ts';
import { FORMULA_TEXT_MAX_CHARS, resultOf } from '../../../lib/expression/formulas.ts';
import { expressionSql } from '../../../lib/expression/sql.ts';
import type { Expression } from '../../../lib/expression/types.ts';
import { schemaOfObject } from '../../../lib/expression/values.ts';
import { fieldType, valueTypeName } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta, FieldTypeName, FormulaMeta, ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { digitsOf } from './field-attributes.ts';
import type { Body } from './kind.ts';

interface FormulaBody {
  readonly expression: string;
  readonly resultType: FieldTypeName;
}

export const formulaOf = (body: Body): FormulaBody => body['formula'] as unknown as FormulaBody;

/** The field's own part of the snapshot; linkFormulas adds what depends on other fields. */
export function compileFormula(body: Body): Pick<FieldMeta, 'formula' | 'precision' | 'scale' | 'length'> {
  const { expression, resultType } = formulaOf(body);
  const { precision, scale } = digitsOf(fieldType(resultType), body) ?? { precision: null, scale: null };
  const length = resultOf(resultType) === 'text' ? FORMULA_TEXT_MAX_CHARS : null;
  return {
    formula: { expression, resultType, precision, scale, length, timezone: '', reads: {} },
    precision,
    scale,
    length,
  };
}

/** Gives each formula of a configuration that holds together what it reads, and its field the length of its texts. */
export function linkFormulas(object: ObjectMeta, timezone: string): void {
  const fields = object.fields as Record<string, FieldMeta>;
  const linked = new Set<string>();
  const link = (name: string): FieldMeta => {
    const field = fields[name]!;
    if (!field.formula || linked.has(name)) return field;
    linked.add(name);
    const { expression: source, resultType } = field.formula;
    const expression = checkRecordExpression(source, schemaOfObject(object), [resultOf(resultType)]);
    const reads = Object.fromEntries(
      expression.fields.map((read) => {
        const { length, formula } = link(read);
        return [read, { fieldType: valueTypeName(fields[read]!), length, formula }];
      }),
    );
    const length = expression.type === 'text' ? textLength(expression, reads) : null;
    const formula: FormulaMeta = { ...field.formula, length, timezone, reads };
    return (fields[name] = { ...field, length, formula });
  };
  for (const name of Object.keys(fields)) link(name);
}

function textLength(expression: Expression, reads: FormulaMeta['reads']): number {
  const { chars } = expressionSql(expression, {
    column: () => 'r.c',
    fieldType: (name) => reads[name]!.fieldType,
    length: (name) => reads[name]!.length,
    timezone: 'UTC',
  });
  return Math.min(Math.max(chars, 1), FORMULA_TEXT_MAX_CHARS);
}
