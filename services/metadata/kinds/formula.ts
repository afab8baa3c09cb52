/**
 * The formula of a CustomField: its expression against the fields of the object and the type of its result, formulas
 * over formulas without cycles, and bounds on what stands in a statement in their place.
 * Source: docs/reference/field-types.md#formulas.
 */

import { checkExpression, checkRecordExpression, RECORD_COST_MAX, recordCost } from '../../../lib/expression/check.ts';
import { type Expression, ExpressionError } from '../../../lib/expression/types.ts';
import { requireTypeOfField } from '../../../lib/expression/values.ts';
import { nodesOf } from '../../../lib/expression/walk.ts';
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import { CUSTOM_FIELD, type FieldBody, type FieldComponent, type FormulaBody } from './bodies/custom-field.ts';
import { compileFormula } from './compile-formula.ts';
import { componentKey, componentsByObject } from './component.ts';
import { expressionReferences } from './expression-names.ts';
import { checked, schemaOf } from './expressions.ts';
import { isFormula } from './field-attributes.ts';
import type { CheckContext, Problem, Reference } from './kind.ts';

/** Parts of a formula, with those of the formulas that it names in their place. */
const FORMULA_PARTS_MAX = 1_000;
/** Of all formulas of an object: each statement that shows a record has them all. */
const OBJECT_PARTS_MAX = 5_000;
const OBJECT_COST_MAX = 2 * RECORD_COST_MAX;
/** Formulas over formulas. */
const FORMULA_LEVELS_MAX = 5;

const POINTER = '/formula/expression';
export const formulaReferences = (object: string, { expression }: FormulaBody): Reference[] =>
  expressionReferences(object, expression, POINTER);

export function checkFormulaAttributes(
  body: FieldBody & { readonly formula: FormulaBody },
  invalid: (pointer: string, message: string, remedy?: string) => void,
): void {
  const { resultType } = body.formula;
  const { digits, attributes } = fieldType(resultType);
  for (const name of ['precision', 'scale'])
    if (Object.hasOwn(body, name) && !digits)
      invalid(`/${name}`, `A formula with a result of type ${resultType} has no ${name}.`);
  if (Object.hasOwn(body, 'currencyField') && !attributes.includes('currencyField'))
    invalid('/currencyField', `A formula with a result of type ${resultType} has no currencyField.`);
  const { precision, scale } = compileFormula(body);
  if (precision !== null && scale !== null && scale > precision)
    invalid('/scale', `scale ${scale} is greater than precision ${precision}.`);
}

/**
 * The expressions that a field is computed with: its own, and those of the formulas that it names; none when it is
 * stored.
 */
export function expressionsBehind(object: string, name: string, context: CheckContext): Expression[] {
  const found: Expression[] = [];
  const names = new Set([name]);
  for (const field of names) {
    const body = context.fieldsOf(object).get(field)?.body;
    if (!body?.formula) continue;
    try {
      const { expression: source, resultType } = body.formula;
      const expression = checkExpression(source, schemaOf(object, context), [requireTypeOfField(resultType)]);
      found.push(expression);
      for (const read of expression.fields) names.add(read);
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error; // its own check reports it
    }
  }
  return found;
}

/** Most units that each formula of an object costs, with those that it names; of one with mistakes, nothing is said. */
export function formulaCosts(object: string, context: CheckContext): (name: string) => number {
  const schema = schemaOf(object, context);
  const known = new Map<string, number>();
  return function costOf(name): number {
    let cost = known.get(name);
    if (cost !== undefined) return cost;
    known.set(name, 0); // where a cycle comes back to
    const [expression] = expressionsBehind(object, name, context);
    cost = expression ? recordCost(expression, { ...schema, cost: costOf }) : 0;
    known.set(name, cost);
    return cost;
  };
}

/** A field of an object is a formula that asks for `now` or `today`, or one over such a formula. */
export const dependsOnTime = (object: string, name: string, context: CheckContext): boolean =>
  expressionsBehind(object, name, context).some(({ root }) =>
    nodesOf(root).some((node) => node.op === 'now' || node.op === 'today'),
  );

/** Inputs of a consistent formula. */
interface Sized {
  readonly expression: Expression;
  readonly parts: number;
  readonly cost: number;
  readonly levels: number;
}

type FormulaComponent = FieldComponent & { readonly body: { readonly formula: FormulaBody } };

const isFormulaField = (field: FieldComponent): field is FormulaComponent => isFormula(field.body);

/** All formulas of the configuration to be: a change of one field can spoil the formula of another. */
export function checkFormulas(context: CheckContext): void {
  for (const [object, fields] of componentsByObject(context.after, CUSTOM_FIELD)) {
    if (!context.after.has(componentKey('CustomObject', object))) continue;
    const byName = new Map(fields.filter(isFormulaField).map((component) => [component.body.apiName, component]));
    if (byName.size > 0) new Formulas(object, byName, context).check();
  }
}

class Formulas {
  readonly #object: string;
  readonly #formulas: ReadonlyMap<string, FormulaComponent>;
  readonly #context: CheckContext;
  readonly #expressions = new Map<string, Expression>();
  /** null: it has a mistake, which has been reported. */
  readonly #sized = new Map<string, Sized | null>();

  constructor(object: string, formulas: ReadonlyMap<string, FormulaComponent>, context: CheckContext) {
    this.#object = object;
    this.#formulas = formulas;
    this.#context = context;
  }

  check(): void {
    const schema = schemaOf(this.#object, this.#context);
    for (const [name, component] of this.#formulas) {
      const { expression, resultType } = component.body.formula;
      const found = checked(component, this.#context, POINTER, () =>
        checkRecordExpression(expression, schema, [requireTypeOfField(resultType)]),
      );
      if (found) this.#expressions.set(name, found);
    }
    let [parts, cost] = [0, 0];
    for (const name of this.#expressions.keys()) {
      const before = { parts, cost };
      const sized = this.#size(name, []);
      parts += sized?.parts ?? 0;
      cost += sized?.cost ?? 0;
      const isWithin = before.cost <= OBJECT_COST_MAX && before.parts <= OBJECT_PARTS_MAX;
      if (isWithin && cost > OBJECT_COST_MAX && parts <= OBJECT_PARTS_MAX)
        this.#exceeds(
          name,
          OBJECT_COST_MAX,
          `The formulas of an object may cost at most ${OBJECT_COST_MAX} units together for one record.`,
        );
      if (isWithin && parts > OBJECT_PARTS_MAX)
        this.#exceeds(
          name,
          OBJECT_PARTS_MAX,
          `The formulas of an object may have at most ${OBJECT_PARTS_MAX} parts together.`,
        );
    }
  }

  #size(name: string, path: readonly string[]): Sized | null {
    const known = this.#sized.get(name);
    if (known !== undefined) return known;
    const expression = this.#expressions.get(name);
    if (!expression) return null;
    let result: Sized | null = { expression, parts: 0, cost: 0, levels: 1 };
    const within = [...path, name];
    const costs = new Map<string, number>();
    for (const node of nodesOf(expression.root)) {
      result &&= { ...result, parts: result.parts + 1 };
      if (node.op !== 'field' || !this.#formulas.has(node.field)) continue;
      if (within.includes(node.field)) {
        this.#cycle(within.slice(within.indexOf(node.field)), name, node.start);
        result = null;
        continue;
      }
      const inner = this.#size(node.field, within);
      if (inner) costs.set(node.field, inner.cost);
      result = result &&
        inner && {
          ...result,
          parts: result.parts + inner.parts,
          levels: Math.max(result.levels, inner.levels + 1),
        };
    }
    const schema = schemaOf(this.#object, this.#context);
    const cost = (field: string): number => costs.get(field) ?? 0;
    if (result) result = this.#bounded(name, { ...result, cost: recordCost(expression, { ...schema, cost }) });
    this.#sized.set(name, result);
    return result;
  }

  #cycle(names: readonly string[], name: string, start: number): void {
    const message =
      names.length === 1
        ? 'The formula names its own field.'
        : `The formulas form a cycle: ${[...names, names[0]].join(', ')}.`;
    this.#problem('EXPRESSION_INVALID', name, message, { offset: start });
  }

  #bounded(name: string, sized: Sized): Sized | null {
    const limits: readonly [number, number, string][] = [
      [sized.levels, FORMULA_LEVELS_MAX, `Formulas over formulas may have at most ${FORMULA_LEVELS_MAX} levels.`],
      [
        sized.parts,
        FORMULA_PARTS_MAX,
        `With the formulas that it names in their place it has ${sized.parts} parts, and ${FORMULA_PARTS_MAX} are the most.`,
      ],
      [
        sized.cost,
        RECORD_COST_MAX,
        `With the formulas that it names it can cost ${Math.ceil(sized.cost)} units for one record, and ${RECORD_COST_MAX} are the most.`,
      ],
    ];
    const passed = limits.find(([size, max]) => size > max);
    if (!passed) return sized;
    this.#exceeds(name, passed[1], passed[2]);
    return null;
  }

  #exceeds(name: string, max: number, message: string): void {
    this.#problem('LIMIT_EXCEEDED', name, message, { details: { max } });
  }

  #problem(code: Problem['code'], name: string, message: string, more: Parameters<CheckContext['problem']>[4]): void {
    const component = this.#formulas.get(name);
    if (component) this.#context.problem(code, component, POINTER, message, more);
  }
}
