/**
 * The rollup of a CustomField as the snapshot has it: what its values are, and what they depend on.
 * Source: docs/reference/field-types.md#rollups.
 */
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import type { rollupEdges } from '../../../lib/schema/rollups.ts';
import type { FieldMeta, FieldTypeName } from '../../../lib/schema/snapshot.ts';
import { CUSTOM_FIELD, type FieldBody, type FieldComponent, type RollupBody } from './bodies/custom-field.ts';
import { compileFormula } from './compile-formula.ts';
import { componentsOf, findComponent, type State } from './component.ts';
import { fieldsNamed } from './expression-names.ts';
import { digitsOf, isFormula, isRollup, onDelete } from './field-attributes.ts';
import { fieldMeta } from './field-meta.ts';
import { SYSTEM_FIELD_NAMES, systemFields } from './system-fields.ts';

/** Rollups over rollups. */
export const ROLLUP_LEVELS_MAX = 5;
/** Digits that a sum has before the point beyond those of what is summed up: a million records never overflow. */
const SUM_DIGITS = 6;
/** Of a sum whose precision is not declared. */
const SUM_PRECISION_MAX = 30;
/** Of integers: 2^53 has sixteen digits. */
const INTEGER_DIGITS = 16;
const AVERAGE_SCALE = 2;

export const isNumber = (type: FieldTypeName): boolean => fieldType(type).rollup === 'numbers';

/** A type of values, with the digits of decimals. */
interface ValueType {
  readonly type: FieldTypeName;
  readonly precision: number | null;
  readonly scale: number | null;
}

const INTEGER: ValueType = { type: 'integer', precision: null, scale: null };
/** A field's declaration of its rollup. */
type Declared = Pick<FieldBody, 'precision' | 'scale'> & { readonly rollup: RollupBody };
export type RollupComponent = FieldComponent & { readonly body: { readonly rollup: RollupBody } };

export const fieldOf = (state: State, object: string, name: string): FieldComponent | undefined =>
  findComponent(state, CUSTOM_FIELD, `${object}.${name}`);

/** Type of a field's values; null when there is no such field, or none that a rollup supports. */
export function valueTypeOf(state: State, object: string, name: string, depth: number): ValueType | null {
  const builtIn = systemFields();
  const body = Object.hasOwn(builtIn, name) ? undefined : fieldOf(state, object, name)?.body;
  const type = body?.fieldType ?? (Object.hasOwn(builtIn, name) ? builtIn[name]?.fieldType : undefined);
  if (type === undefined) return null;
  if (body && isRollup(body)) return resultOf(body, state, depth + 1);
  if (body && isFormula(body)) {
    const { formula, precision, scale } = compileFormula(body);
    return fieldType(formula.resultType).rollup ? { type: formula.resultType, precision, scale } : null;
  }
  if (!fieldType(type).rollup) return null;
  return { type, ...(digitsOf(fieldType(type), body ?? {}) ?? { precision: null, scale: null }) };
}

/** Result type of a rollup; null when the rollup is inconsistent. */
export function resultOf({ rollup, ...declared }: Declared, state: State, depth = 0): ValueType | null {
  if (rollup.function === 'count') return INTEGER;
  if (rollup.field === undefined || depth > ROLLUP_LEVELS_MAX) return null;
  const of = valueTypeOf(state, rollup.childObject, rollup.field, depth);
  if (!of || rollup.function === 'min' || rollup.function === 'max') return of;
  if (!isNumber(of.type)) return null;
  const whole = (of.precision ?? INTEGER_DIGITS) - (of.scale ?? 0) + (rollup.function === 'sum' ? SUM_DIGITS : 0);
  const least = rollup.function === 'sum' ? (of.scale ?? 0) : Math.max(of.scale ?? 0, AVERAGE_SCALE);
  const scale = declared.scale ?? least;
  const precision = declared.precision ?? Math.min(SUM_PRECISION_MAX, whole + scale);
  return { type: fieldType(of.type).digits ? of.type : 'decimal', precision, scale };
}

/** The rollup as the snapshot has it, with the digits of its values. */
export function compileRollup(body: Declared, state: State): Pick<FieldMeta, 'rollup' | 'precision' | 'scale'> {
  const { rollup } = body;
  const result = resultOf(body, state) ?? INTEGER;
  const { reads, formulas } = fieldsRead(rollup, state);
  const reference = fieldOf(state, rollup.childObject, rollup.referenceField);
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
      cascades: reference !== undefined && onDelete(reference.body) === 'cascade',
    },
    precision: result.precision,
    scale: result.scale,
  };
}

/** The stored fields of a child that a rollup is computed from, and the formulas that it names. */
function fieldsRead({ childObject, referenceField, field, criteria }: RollupBody, state: State) {
  const named = [referenceField, ...(field === undefined ? [] : [field]), ...fieldsNamed(criteria ?? '')];
  const names = new Set(named);
  const formulas = new Set<string>();
  for (const name of names) {
    const body = fieldOf(state, childObject, name)?.body;
    if (!body || !isFormula(body)) continue;
    formulas.add(name);
    // They are looked at in their turn.
    for (const read of fieldsNamed(body.formula.expression)) names.add(read);
  }
  const isThere = (name: string): boolean =>
    SYSTEM_FIELD_NAMES.has(name) || fieldOf(state, childObject, name) !== undefined;
  return {
    reads: [...names].filter((name) => !formulas.has(name) && isThere(name)).sort(),
    formulas: [...new Set(named)].filter((name) => formulas.has(name)).sort(),
  };
}

/** The part of a configuration that `rollupEdges` reads. */
export function rollupObjects(components: readonly RollupComponent[], state: State): Parameters<typeof rollupEdges>[0] {
  const objects: Record<string, { apiName: string; fields: Record<string, FieldMeta> }> = {};
  for (const { body } of components) {
    const { object, apiName, fieldType: type } = body;
    objects[object] ??= { apiName: object, fields: {} };
    objects[object].fields[apiName] = fieldMeta({
      apiName,
      fieldType: type,
      label: apiName,
      ...compileRollup(body, state),
    });
  }
  return objects;
}

/** The rollup fields of a configuration. */
export const rollupsOf = (state: State): RollupComponent[] =>
  componentsOf(state, CUSTOM_FIELD).filter((field): field is RollupComponent => isRollup(field.body));
