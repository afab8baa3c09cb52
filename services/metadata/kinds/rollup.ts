/**
 * The rollup of a CustomField: what it is over, what its values are, and everything that could make it wrong later.
 * Source: docs/reference/field-types.md#rollups.
 */
import { checkRecordExpression } from '../../../lib/expression/check.ts';
import { levelsOf, type RollupEdge, rollupEdges, waysOf } from '../../../lib/schema/rollups.ts';
import type { FieldMeta, FieldTypeName } from '../../../lib/schema/snapshot.ts';
import { checked, expressionReferences, fieldsNamed, schemaOf } from './expressions.ts';
import { DECIMAL_DEFAULTS } from './field-attributes.ts';
import { fieldMeta } from './field-meta.ts';
import { asksTheTime, compileFormula, expressionsBehind, formulaCosts } from './formula.ts';
import { type Body, type CheckContext, type Component, componentKey, type Reference, type State } from './kind.ts';
import { SYSTEM_FIELD_NAMES, systemFields } from './system-fields.ts';

interface RollupBody {
  readonly childObject: string;
  readonly referenceField: string;
  readonly function: 'count' | 'sum' | 'min' | 'max' | 'avg';
  readonly field?: string;
  readonly criteria?: string;
}

const ROLLUPS_PER_OBJECT_MAX = 25;
const ROLLUP_LEVELS_MAX = 5;
/** Each way to a rollup is looked up in the statement that writes a child. */
const ROLLUP_WAYS_MAX = 50;

/** Digits that a sum has before the point beyond those of what is summed up: a million records never overflow. */
const SUM_DIGITS = 6;
const DIGITS_MAX = 30;
/** Of integers: 2^53 has sixteen digits. */
const INTEGER_DIGITS = 16;
const AVERAGE_SCALE = 2;

const ORDERED: ReadonlySet<FieldTypeName> = new Set(['integer', 'decimal', 'currency', 'percent', 'date', 'dateTime']);
const isNumber = (type: FieldTypeName): boolean => ORDERED.has(type) && type !== 'date' && type !== 'dateTime';

/** A type of values, with the digits of decimals. */
export interface ValueType {
  readonly type: FieldTypeName;
  readonly precision: number | null;
  readonly scale: number | null;
}

const INTEGER: ValueType = { type: 'integer', precision: null, scale: null };
export const rollupOf = (body: Body): RollupBody => body['rollup'] as unknown as RollupBody;
const fieldOf = (state: State, object: string, name: string): Component | undefined =>
  state.get(componentKey('CustomField', `${object}.${name}`));

/** What the values of a field are; null when there is no such field, or none with values that a rollup can be over. */
function valueTypeOf(state: State, object: string, name: string, depth: number): ValueType | null {
  const builtIn = systemFields();
  const body = Object.hasOwn(builtIn, name) ? undefined : fieldOf(state, object, name)?.body;
  const type = (Object.hasOwn(builtIn, name) ? builtIn[name]!.fieldType : body?.['fieldType']) as FieldTypeName;
  if (type === 'rollup') return resultOf(body!, state, depth + 1);
  if (type === 'formula' && body!['formula']) {
    const { formula, precision, scale } = compileFormula(body!);
    return ORDERED.has(formula!.resultType) ? { type: formula!.resultType, precision, scale } : null;
  }
  if (!ORDERED.has(type)) return null;
  const digits = DECIMAL_DEFAULTS[type];
  if (!digits) return { type, precision: null, scale: null };
  const precision = Number(body!['precision'] ?? digits.precision);
  return { type, precision, scale: Number(body!['scale'] ?? Math.min(digits.scale, precision)) };
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
  return { type: of.type === 'integer' ? 'decimal' : of.type, precision, scale };
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
    if (body?.['fieldType'] !== 'formula' || !body['formula']) continue;
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
  return given === undefined ? reference?.body['fieldType'] === 'masterDetail' : given === 'cascade';
}

export function rollupReferences(body: Body): Reference[] {
  const { childObject, referenceField, field, criteria } = rollupOf(body);
  const found: Reference[] = [{ type: 'CustomObject', fullName: childObject, pointer: '/rollup/childObject' }];
  const add = (name: string, pointer: string): void => {
    if (!SYSTEM_FIELD_NAMES.has(name)) found.push({ type: 'CustomField', fullName: `${childObject}.${name}`, pointer });
  };
  add(referenceField, '/rollup/referenceField');
  if (field !== undefined) add(field, '/rollup/field');
  return [...found, ...expressionReferences(childObject, criteria ?? '', '/rollup/criteria')];
}

export function checkRollup(component: Component, context: CheckContext): void {
  const { body } = component;
  if (!body['rollup']) return;
  const rollup = rollupOf(body);
  if (!context.after.has(componentKey('CustomObject', rollup.childObject))) return;
  checkReferenceField(component, rollup, context);
  checkRolledField(component, rollup, context);
  if (rollup.criteria !== undefined) checkCriteria(component, rollup.childObject, rollup.criteria, context);
}

/**
 * What stands against a figure over a field of the child, or one that asks it, because nothing would say that it has
 * changed; null: it is stored, or a formula over fields that are.
 */
function notFollowed(child: string, name: string, context: CheckContext): string | null {
  if (asksTheTime(child, name, context)) return `${name} depends on the time.`;
  const isRollup = (field: string): boolean => fieldOf(context.after, child, field)?.body['fieldType'] === 'rollup';
  const rollup = expressionsBehind(child, name, context)
    .flatMap(({ fields }) => fields)
    .find(isRollup);
  return rollup === undefined ? null : `${name} is a formula over ${rollup}, which is a rollup.`;
}

const FOLLOWED = 'Name fields that are stored, or formulas over such fields.';

/** Over the record of the child alone: what it says changes when the record does, and never by itself. */
function checkCriteria(component: Component, child: string, criteria: string, context: CheckContext): void {
  const pointer = '/rollup/criteria';
  const schema = { ...schemaOf(child, context), variables: ['record'] as const, cost: formulaCosts(child, context) };
  const found = checked(component, context, pointer, () => checkRecordExpression(criteria, schema, ['boolean']));
  for (const name of found?.fields ?? []) {
    const reason = notFollowed(child, name, context);
    if (reason !== null)
      context.problem('EXPRESSION_INVALID', component, pointer, reason, {
        remedy: FOLLOWED,
        offset: criteria.indexOf(name),
      });
  }
}

function checkReferenceField(component: Component, rollup: RollupBody, context: CheckContext): void {
  const { referenceField, childObject } = rollup;
  const field = fieldOf(context.after, childObject, referenceField);
  const targets = (field?.body['referenceTo'] ?? []) as string[];
  const parent = String(component.body['object']);
  if (!field && !SYSTEM_FIELD_NAMES.has(referenceField)) return;
  if (targets.includes(parent)) return;
  context.problem(
    'REFERENCE_INVALID',
    component,
    '/rollup/referenceField',
    `${childObject}.${referenceField} is no reference or masterDetail field that points to ${parent}.`,
  );
}

function checkRolledField(component: Component, rollup: RollupBody, context: CheckContext): void {
  const { body } = component;
  const invalid = (pointer: string, message: string, remedy?: string): void =>
    context.problem('YAML_SCHEMA_INVALID', component, pointer, message, remedy ? { remedy } : {});
  const { field, childObject } = rollup;
  if (rollup.function === 'count' || rollup.function === 'min' || rollup.function === 'max')
    for (const name of ['precision', 'scale'])
      if (Object.hasOwn(body, name))
        invalid(`/${name}`, `Only a rollup of sum or avg has ${name}; the others take that of their field.`);
  if (rollup.function === 'count') {
    if (field !== undefined) invalid('/rollup/field', 'count counts records and takes no field.');
    return;
  }
  if (field === undefined) {
    invalid('/rollup', `The function ${rollup.function} needs a field.`);
    return;
  }
  const known = SYSTEM_FIELD_NAMES.has(field) || fieldOf(context.after, childObject, field);
  if (!known) return;
  const of = valueTypeOf(context.after, childObject, field, 0);
  const fits = of !== null && (rollup.function === 'min' || rollup.function === 'max' || isNumber(of.type));
  if (!fits) {
    context.problem(
      'REFERENCE_INVALID',
      component,
      '/rollup/field',
      `${rollup.function} is not possible over ${childObject}.${field}.`,
      {
        remedy:
          rollup.function === 'min' || rollup.function === 'max'
            ? 'Take a field with numbers, dates or date-times.'
            : 'Take a field with numbers.',
      },
    );
    return;
  }
  const reason = notFollowed(childObject, field, context);
  if (reason !== null) context.problem('REFERENCE_INVALID', component, '/rollup/field', reason, { remedy: FOLLOWED });
  const result = resultOf(body, context.after);
  if (!result || result.precision === null || result.scale === null) return;
  if (result.scale > result.precision)
    invalid('/scale', `scale ${result.scale} is greater than precision ${result.precision}.`);
  if (rollup.function === 'sum' && result.scale < (of.scale ?? 0))
    invalid('/scale', `A sum keeps all decimals of its field, which has ${of.scale}.`, `Use scale ${of.scale}.`);
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

/** Limits and circles over all rollups of the configuration. */
export function checkRollups(context: CheckContext): void {
  const components = rollupsOf(context.after);
  const byObject = Map.groupBy(components, (component) => String(component.body['object']));
  for (const list of byObject.values())
    if (list.length > ROLLUPS_PER_OBJECT_MAX)
      context.problem(
        'LIMIT_EXCEEDED',
        list.at(-1)!,
        '/fieldType',
        `An object has ${ROLLUPS_PER_OBJECT_MAX} rollups at most.`,
        { details: { max: ROLLUPS_PER_OBJECT_MAX } },
      );
  const edges = rollupEdges(rollupObjects(components, context.after));
  for (const [edge, levels] of levelsOf(edges)) {
    if (levels <= ROLLUP_LEVELS_MAX) continue;
    for (const { apiName } of edge.fields) {
      const component = fieldOf(context.after, edge.parent, apiName)!;
      if (levels === Number.POSITIVE_INFINITY)
        context.problem('REFERENCE_INVALID', component, '/rollup', 'Rollups over rollups form a circle.');
      else
        context.problem(
          'LIMIT_EXCEEDED',
          component,
          '/rollup',
          `Rollups over rollups have ${ROLLUP_LEVELS_MAX} levels at most.`,
          { details: { max: ROLLUP_LEVELS_MAX } },
        );
    }
  }
  if ([...levelsOf(edges).values()].every(Number.isFinite)) checkWays(edges, context);
}

function checkWays(edges: readonly RollupEdge[], context: CheckContext): void {
  const ways = waysOf(edges);
  for (const [child, own] of Map.groupBy(edges, (edge) => edge.child)) {
    const count = own.reduce((sum, edge) => sum + ways.get(edge)!, 0);
    if (count <= ROLLUP_WAYS_MAX) continue;
    const [{ parent, fields }] = own as [RollupEdge];
    context.problem(
      'LIMIT_EXCEEDED',
      fieldOf(context.after, parent, fields[0]!.apiName)!,
      '/rollup',
      `A change of ${child} would reach rollups in ${count} ways, from parent to parent, and ${ROLLUP_WAYS_MAX} are the most.`,
      { details: { max: ROLLUP_WAYS_MAX } },
    );
  }
}

/** The rollup fields of a configuration. */
export const rollupsOf = (state: State): Component[] =>
  [...state.values()].filter(
    ({ type, body }) => type === 'CustomField' && body['fieldType'] === 'rollup' && body['rollup'],
  );
