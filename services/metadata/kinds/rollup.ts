/**
 * The rollup of a CustomField: what it is over, what its values are, and everything that could make it wrong later.
 * Source: docs/reference/field-types.md#rollups.
 */
import { checkRecordExpression } from '../../../lib/expression/check.ts';
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import { levelsOf, type RollupEdge, rollupEdges, waysOf } from '../../../lib/schema/rollups.ts';
import type { FieldComponent, RollupBody } from './bodies/custom-field.ts';
import {
  fieldOf,
  isNumber,
  ROLLUP_LEVELS_MAX,
  resultOf,
  rollupObjects,
  rollupsOf,
  valueTypeOf,
} from './compile-rollup.ts';
import { componentKey } from './component.ts';
import { expressionReferences } from './expression-names.ts';
import { checked, schemaOf } from './expressions.ts';
import { dependsOnTime, expressionsBehind, formulaCosts } from './formula.ts';
import type { CheckContext, Reference } from './kind.ts';
import { SYSTEM_FIELD_NAMES } from './system-fields.ts';

const ROLLUPS_PER_OBJECT_MAX = 25;
/** Each way to a rollup is looked up in the statement that writes a child. */
const ROLLUP_WAYS_MAX = 50;

export function rollupReferences({ childObject, referenceField, field, criteria }: RollupBody): Reference[] {
  const found: Reference[] = [{ type: 'CustomObject', fullName: childObject, pointer: '/rollup/childObject' }];
  const add = (name: string, pointer: string): void => {
    if (!SYSTEM_FIELD_NAMES.has(name))
      found.push({ type: 'CustomField', fullName: `${childObject}.${name}`, pointer, access: 'read' });
  };
  add(referenceField, '/rollup/referenceField');
  if (field !== undefined) add(field, '/rollup/field');
  return [...found, ...expressionReferences(childObject, criteria ?? '', '/rollup/criteria')];
}

export function checkRollup(component: FieldComponent, context: CheckContext): void {
  const { rollup } = component.body;
  if (!rollup) return;
  if (!context.after.has(componentKey('CustomObject', rollup.childObject))) return;
  checkReferenceField(component, rollup, context);
  checkRolledField(component, rollup, context);
  if (rollup.criteria !== undefined) checkCriteria(component, rollup.childObject, rollup.criteria, context);
}

/**
 * Refuses a rollup over a field of the child, or with a condition on it, when nothing would report that it has
 * changed; null: it is stored, or a formula over fields that are.
 */
function notFollowed(child: string, name: string, context: CheckContext): string | null {
  if (dependsOnTime(child, name, context)) return `${name} depends on the time.`;
  const isRollupField = (field: string): boolean => {
    const component = fieldOf(context.after, child, field);
    return component !== undefined && fieldType(component.body.fieldType).calculated === 'rollup';
  };
  const rollup = expressionsBehind(child, name, context)
    .flatMap(({ fields }) => fields)
    .find(isRollupField);
  return rollup === undefined ? null : `${name} is a formula over ${rollup}, which is a rollup.`;
}

const FOLLOWED = 'Name fields that are stored, or formulas over such fields.';

/** Over the record of the child alone: what it says changes when the record does, and never by itself. */
function checkCriteria(component: FieldComponent, child: string, criteria: string, context: CheckContext): void {
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

function checkReferenceField(component: FieldComponent, rollup: RollupBody, context: CheckContext): void {
  const { referenceField, childObject } = rollup;
  const field = fieldOf(context.after, childObject, referenceField);
  const targets = field?.body.referenceTo ?? [];
  const parent = component.body.object;
  if (!field && !SYSTEM_FIELD_NAMES.has(referenceField)) return;
  if (targets.includes(parent)) return;
  context.problem(
    'REFERENCE_INVALID',
    component,
    '/rollup/referenceField',
    `${childObject}.${referenceField} is no reference or masterDetail field that points to ${parent}.`,
  );
}

function checkRolledField(component: FieldComponent, rollup: RollupBody, context: CheckContext): void {
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
  const result = resultOf({ ...body, rollup }, context.after);
  if (!result || result.precision === null || result.scale === null) return;
  if (result.scale > result.precision)
    invalid('/scale', `scale ${result.scale} is greater than precision ${result.precision}.`);
  if (rollup.function === 'sum' && result.scale < (of.scale ?? 0))
    invalid('/scale', `A sum keeps all decimals of its field, which has ${of.scale}.`, `Use scale ${of.scale}.`);
}

/** Limits and cycles over all rollups of the configuration. */
export function checkRollups(context: CheckContext): void {
  const components = rollupsOf(context.after);
  const byObject = Map.groupBy(components, (component) => component.body.object);
  for (const list of byObject.values()) {
    const last = list.at(-1);
    if (last && list.length > ROLLUPS_PER_OBJECT_MAX)
      context.problem(
        'LIMIT_EXCEEDED',
        last,
        '/fieldType',
        `An object may have at most ${ROLLUPS_PER_OBJECT_MAX} rollups.`,
        { details: { max: ROLLUPS_PER_OBJECT_MAX } },
      );
  }
  const edges = rollupEdges(rollupObjects(components, context.after));
  for (const [edge, levels] of levelsOf(edges)) {
    if (levels <= ROLLUP_LEVELS_MAX) continue;
    for (const { apiName } of edge.fields) {
      const component = fieldOf(context.after, edge.parent, apiName);
      if (!component) continue;
      if (levels === Number.POSITIVE_INFINITY)
        context.problem('REFERENCE_INVALID', component, '/rollup', 'Rollups over rollups form a cycle.');
      else
        context.problem(
          'LIMIT_EXCEEDED',
          component,
          '/rollup',
          `Rollups over rollups may have at most ${ROLLUP_LEVELS_MAX} levels.`,
          { details: { max: ROLLUP_LEVELS_MAX } },
        );
    }
  }
  if ([...levelsOf(edges).values()].every(Number.isFinite)) checkWays(edges, context);
}

function checkWays(edges: readonly RollupEdge[], context: CheckContext): void {
  const ways = waysOf(edges);
  for (const [child, own] of Map.groupBy(edges, (edge) => edge.child)) {
    const count = own.reduce((sum, edge) => sum + (ways.get(edge) ?? 0), 0);
    if (count <= ROLLUP_WAYS_MAX) continue;
    const [component] = own.flatMap(({ parent, fields }) =>
      fields.flatMap(({ apiName }) => fieldOf(context.after, parent, apiName) ?? []),
    );
    if (!component) continue;
    context.problem(
      'LIMIT_EXCEEDED',
      component,
      '/rollup',
      `A change of ${child} would reach rollups in ${count} ways, from parent to parent, and ${ROLLUP_WAYS_MAX} are the most.`,
      { details: { max: ROLLUP_WAYS_MAX } },
    );
  }
}
