/**
 * Formula fields: nothing is stored, so their SQL stands wherever a column would be named, and where a record is held
 * in memory they are evaluated. Both give the same value, shaped like a field of the result's type; a formula that
 * cannot be computed for a record is null there. Pure. Source: docs/reference/field-types.md#formulas.
 */

import { countChars, TEXT_COLLATION } from '../schema/field-types/common.ts';
import { fieldType, valueTypeName } from '../schema/field-types/registry.ts';
import { ownEntry, requireField } from '../schema/lookup.ts';
import type { FieldMeta, FormulaMeta, ObjectMeta } from '../schema/snapshot.ts';
import { compare, exactOf, round } from '../values/decimal.ts';
import { memoize, memoizeByName } from '../values/memoize.ts';
import { identifier } from '../values/sql-text.ts';
import { checkExpression } from './check.ts';
import { evaluate, type Facts, isFailure, recordFacts } from './evaluate.ts';
import { type CompiledExpression, expressionSql, type SqlContext } from './sql.ts';
import { type Expression, isExact, type Schema, type Value } from './types.ts';
import { requireTypeOfField, typeOfField } from './values.ts';
import { nodesOf } from './walk.ts';

/** Longest text that a formula gives; a longer one is null. */
export const FORMULA_TEXT_MAX_CHARS = 4_000;

/** SQL of the value of a field of the row `alias`: its column, or the formula that stands in its place. */
export const columnSql = (field: FieldMeta, alias: string): string =>
  field.formula ? formulaSql(field.formula, alias) : `${alias}.${identifier(field.apiName)}`;

/** Context for compiling an expression over the row `alias` of an object. */
export const rowContext = (object: ObjectMeta, alias: string, timezone: string): SqlContext => ({
  column: (name) => columnSql(requireField(object, name), alias),
  fieldType: (name) => valueTypeName(requireField(object, name)),
  length: (name) => requireField(object, name).length,
  timezone,
});

const formulaSql = memoizeByName((formula: FormulaMeta, alias): string =>
  shapedSql(formula, compileFormula(formula, alias)),
);

const compileFormula = (formula: FormulaMeta, alias: string): CompiledExpression =>
  expressionSql(expressionOf(formula), {
    column: (name) => {
      const inner = formula.reads[name]?.formula;
      return inner ? formulaSql(inner, alias) : `${alias}.${identifier(name)}`;
    },
    fieldType: (name) => formula.reads[name]?.fieldType,
    length: (name) => formula.reads[name]?.length,
    timezone: formula.timezone,
  });

/** In parentheses, as the column for which it stands. */
function shapedSql(formula: FormulaMeta, { sql, chars }: CompiledExpression): string {
  const digits = digitsOf(formula);
  if (digits) {
    const number = `erp.expr_result(${sql}, ${digits.most}, ${digits.scale})`;
    return fieldType(formula.resultType).bindType === 'bigint' ? `(${number}::bigint)` : number;
  }
  if (formula.length === null) return `(${sql})`;
  const bounded = chars <= formula.length ? sql : `erp.expr_result(${sql}, ${formula.length})`;
  return `((${bounded}) COLLATE "${TEXT_COLLATION}")`;
}

/** Digits after the point and the largest number of a result; null when it is no number. */
function digitsOf({ resultType, precision, scale }: FormulaMeta): { most: string; scale: number } | null {
  if (fieldType(resultType).bindType === 'bigint') return { most: String(Number.MAX_SAFE_INTEGER), scale: 0 };
  if (precision === null || scale === null) return null;
  const nines = '9'.repeat(precision);
  const whole = nines.slice(scale) || '0';
  return { most: scale > 0 ? `${whole}.${nines.slice(0, scale)}` : whole, scale };
}

/** It was checked when it was deployed, so this only reads it again. */
const expressionOf = memoize((formula: FormulaMeta): Expression => {
  const schema: Schema = {
    object: '',
    fieldType: (name) => ownEntry(formula.reads, name)?.fieldType,
  };
  return checkExpression(formula.expression, schema, [requireTypeOfField(formula.resultType)]);
});

/** The stored fields that a field is computed from; a stored field is its own. */
export function storedInputsOf({ apiName, formula }: Pick<FieldMeta, 'apiName' | 'formula'>): ReadonlySet<string> {
  const names = new Set<string>();
  const visit = (name: string, of: FormulaMeta | null): void => {
    if (of === null) names.add(name);
    else for (const [read, inner] of Object.entries(of.reads)) visit(read, inner.formula);
  };
  visit(apiName, formula);
  return names;
}

/** Asks what time it is, by itself or by a formula that it names. */
const usesNow = memoize((formula: FormulaMeta): boolean => {
  for (const { op } of nodesOf(expressionOf(formula).root)) if (op === 'now') return true;
  return Object.values(formula.reads).some((read) => read.formula !== null && usesNow(read.formula));
});

/** A moment that is another one each time it is asked: no cursor would come to the end of an order by it. */
export const changesWithTime = ({ formula }: Pick<FieldMeta, 'formula'>): boolean =>
  formula !== null && typeOfField(formula.resultType) === 'dateTime' && usesNow(formula);

/** The stored fields that an expression depends on, those of the formulas that it names among them. */
export const storedFieldsOf = (object: ObjectMeta, { fields }: Expression): readonly string[] =>
  fields.flatMap((name) => [...storedInputsOf(requireField(object, name))]);

/**
 * Reads the fields of a record in memory, formulas included: `stored` gives the values of those that are stored. Each
 * formula is computed once, and only when its value is asked for.
 */
export function withFormulas(
  object: ObjectMeta,
  stored: (field: string) => Value,
  at: Pick<Facts, 'now' | 'timezone' | 'budget'>,
): (field: string) => Value {
  const known = new Map<string, Value>();
  return function read(name) {
    const { formula } = requireField(object, name);
    if (!formula) return stored(name);
    let value = known.get(name);
    if (value === undefined) known.set(name, (value = formulaValue(formula, read, at)));
    return value;
  };
}

function formulaValue(
  formula: FormulaMeta,
  record: (field: string) => Value,
  at: Pick<Facts, 'now' | 'timezone' | 'budget'>,
): Value {
  try {
    return shaped(formula, evaluate(expressionOf(formula), recordFacts(record, at)));
  } catch (error) {
    // Neither a busy machine nor what others have cost is a property of the record.
    if (!isFailure(error)) throw error;
    return null;
  }
}

function shaped(formula: FormulaMeta, value: Value): Value {
  if (value === null) return null;
  const digits = digitsOf(formula);
  if (digits && isExact(value)) {
    const number = round(value, digits.scale);
    const size = { ...number, units: number.units < 0n ? -number.units : number.units };
    return compare(size, exactOf(digits.most)!) > 0 ? null : number;
  }
  return typeof value === 'string' && formula.length !== null && countChars(value) > formula.length ? null : value;
}
