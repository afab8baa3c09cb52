/**
 * The rollup of a CustomField as the snapshot has it: what its values are, and what they depend on.
 * Source: docs/reference/field-types.md#rollups.
 */
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import type { rollupEdges } from '../../../lib/schema/rollups.ts';
import type { FieldMeta, FieldTypeName } from '../../../lib/schema/snapshot.ts';
import { compileFormula } from './compile-formula.ts';
import { fieldsNamed } from './expression-names.ts';
import { digitsOf, fieldTypeOf, isFormula, isRollup } from './field-attributes.ts';
import { fieldMeta } from './field-meta.ts';
import { type Body, type Component, componentKey, type State } from './kind.ts';
import { SYSTEM_FIELD_NAMES, systemFields } from './system-fields.ts';

export interface RollupBody {
  readonly childObject: string;
  readonly referenceField: string;
  readonly function: 'count' | 'sum' | 'min' | 'max' | 'avg';
  readonly field?: string;
  readonly criteria?: string;
}

/** Rollups over rollups. */
export const ROLLUP_LEVELS_MAX = 5;
/** Digits that a sum has before the point beyond those of what is summed up: a million records never overflow. */
const SUM_DIGITS = 6;
const DIGITS_MAX = 30;
/** Of integers: 2^53 has sixteen digits. */
const INTEGER_DIGITS = 16;
const AVERAGE_SCALE = 2;

export const isNumber = (type: FieldTypeName): boolean => fieldType(type).rollup === 'numbers';

/** A type of values, with the digits of decimals. */
export interface ValueType {
  readonly type: FieldTypeName;
  readonly precision: number | null;
  readonly scale: number | null;
}

const INTEGER: ValueType = { type: 'integer', precision: null, scale: null };
export const rollupOf = (body: Body): RollupBody => body['rollup'] as unknown as RollupBody;
export const fieldOf = (state: State, object: string, name: string): Component | undefined =>
  state.get(componentKey('CustomField', `${object}.${name}`));

/** What the values of a field are; null when there is no such field, or none with values that a rollup can be over. */
export function valueTypeOf(state: State, object: string, name: string, depth: number): ValueType | null {
  const builtIn = systemFields();
  const body = Object.hasOwn(builtIn, name) ? undefined : fieldOf(state, object, name)?.body;
  const type = (Object.hasOwn(builtIn, name) ? builtIn[name]!.fieldType : body?.['fieldType']) as FieldTypeName;
  if (type === undefined) return null;
  if (body && isRollup({ body })) return resultOf(body, state, depth + 1);
  if (body && isFormula({ body })) {
    const { formula, precision, scale } = compileFormula(body);
    return fieldType(formula!.resultType).rollup ? { type: formula!.resultType, precision, scale } : null;
  }
  if (!fieldType(type).rollup) return null;
  return { type, ...(digitsOf(fieldType(type), body ?? {}) ?? { precision: null, scale: null }) };
}

/** What a rollup gives; null when that cannot be said because it does not hold together. */
export function resultOf(body: Body, state: State, depth = 0): ValueType | null {
  const rollup = rollupOf(body);
  if (rollup.function === 'count') return INTEGER;
  if (rollup.field === undefined || depth > ROLLUP_LEVELS_MAX) return null;
  const of = valueTypeOf(state, rollup.childObject, rollup.field, depth);
  if (!of || rollup.function === 'min' || rollup.function === 'max') return of;
  if (!isNumber(of.type)) return null;
  const whole = (of.precision ?? INTEGER_DIGITS) - (of.scale ?? 0) + (rollup.function === 'sum' ? SUM_DIGITS : 0);
  const least = rollup.function === 'sum' ? (of.scale ?? 0) : Math.max(of.scale ?? 0, AVERAGE_SCALE);
  const scale = (body['scale'] as number | undefined) ?? least;
  const precision = (body['precision'] as number | undefined) ?? Math.min(DIGITS_MAX, whole + scale);
  return { type: fieldType(of.type).digits ? of.type : 'decimal', precision, scale };
}

/** The rollup as the snapshot has it, with the digits of its values. */
export function compileRollup(body: Body, state: State): Pick<FieldMeta, 'rollup' | 'precision' | 'scale'> {
  const rollup = rollupOf(body);
  const result = resultOf(body, state) ?? INTEGER;
  const { reads, formulas } = fieldsRead(rollup, state);
  return {
    rollup: {
      childObject: rollup.childObject,
      referenceField: rollup.referenceField,
      function: rollup.function,
      field: rollup.field ?? null,
      criteria: rollup.criteria ?? null,
      resultType: result.type,
      reads,
      ...(formulas.length > 0 ? { formulas } : {}),
      cascades: cascades(fieldOf(state, rollup.childObject, rollup.referenceField)),
    },
    precision: result.precision,
    scale: result.scale,
  };
}

/** The stored fields of a child that a rollup is worked out from, and the formulas that it names. */
function fieldsRead({ childObject, referenceField, field, criteria }: RollupBody, state: State) {
  const named = [referenceField, ...(field === undefined ? [] : [field]), ...fieldsNamed(criteria ?? '')];
  const names = new Set(named);
  const formulas = new Set<string>();
  for (const name of names) {
    const body = fieldOf(state, childObject, name)?.body;
    if (!body || !isFormula({ body })) continue;
    formulas.add(name);
    // They are looked at in their turn.
    for (const read of fieldsNamed(compileFormula(body).formula!.expression)) names.add(read);
  }
  const isThere = (name: string): boolean =>
    SYSTEM_FIELD_NAMES.has(name) || fieldOf(state, childObject, name) !== undefined;
  return {
    reads: [...names].filter((name) => !formulas.has(name) && isThere(name)).sort(),
    formulas: [...new Set(named)].filter((name) => formulas.has(name)).sort(),
  };
}

/** As onDelete of the reference field says, or by default. */
function cascades(reference: Component | undefined): boolean {
  const given = reference?.body['onDelete'];
  return given === undefined
    ? reference !== undefined && fieldTypeOf(reference).relation === 'master'
    : given === 'cascade';
}

/** What `rollupEdges` reads of a configuration. */
export function rollupObjects(components: readonly Component[], state: State): Parameters<typeof rollupEdges>[0] {
  const objects: Record<string, { apiName: string; fields: Record<string, FieldMeta> }> = {};
  for (const { body } of components) {
    if (!body['rollup']) continue;
    const apiName = String(body['object']);
    const name = String(body['apiName']);
    objects[apiName] ??= { apiName, fields: {} };
    objects[apiName].fields[name] = fieldMeta({
      apiName: name,
      fieldType: 'rollup',
      label: name,
      ...compileRollup(body, state),
    });
  }
  return objects;
}

/** The rollup fields of a configuration. */
export const rollupsOf = (state: State): Component[] =>
  [...state.values()].filter(({ type, body }) => type === 'CustomField' && isRollup({ body }));
