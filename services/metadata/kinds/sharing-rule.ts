/** SharingRule: opens records of an object, by their owners or by what stands in them, to a role or a group. */
import { Type } from 'typebox';
import { checkExpression, checkRecordExpression, RECORD_COST_MAX, recordCost } from '../../../lib/expression/check.ts';
import { ExpressionError } from '../../../lib/expression/types.ts';
import { CUSTOM_FIELD } from './bodies/custom-field.ts';
import { CUSTOM_OBJECT } from './bodies/custom-object.ts';
import { type ComponentOf, componentKey, componentsByObject, componentType, findComponent } from './component.ts';
import { expressionReferences } from './expression-names.ts';
import { checked, schemaOf } from './expressions.ts';
import { dependsOnTime, formulaCosts } from './formula.ts';
import { type CheckContext, defineKind, type Reference } from './kind.ts';
import { checkPerObject } from './per-object.ts';
import { API_NAME, apiName, expression, group, optional } from './schema.ts';

export const SHARING_RULES_PER_OBJECT_MAX = 100;
const OBJECT_COST_MAX = 2 * RECORD_COST_MAX;

const principal = (description: string, role: string, options: Record<string, unknown> = {}) =>
  group(
    {
      role: optional(Type.String({ pattern: API_NAME, description: role })),
      group: optional(Type.String({ pattern: API_NAME, description: 'The members of this group.' })),
    },
    description,
    options,
  );

export const SHARING_RULE = componentType('SharingRule', {
  apiName: apiName('Stable name; explanations of access name it as `<Object>.<Rule>`.'),
  object: apiName('The object that it belongs to.'),
  kind: Type.Enum(['owner', 'criteria'], { description: 'What decides: who owns a record, or what stands in it.' }),
  from: optional(principal('owner: whose records; a role or a group.', 'The users who hold this role.')),
  criteria: optional(expression('criteria: expression over `record`; records for which it is true are opened.')),
  to: principal('To whom: a role or a group.', 'The users of this role and of those above it.', {
    'x-erp-always': true,
  }),
  access: Type.Enum(['read', 'readWrite'], { description: 'See the records, or change them as well.' }),
});

type RuleComponent = ComponentOf<typeof SHARING_RULE>;

export const sharingRule = defineKind({
  ...SHARING_RULE,
  memberFormat: '<Object>.<Rule>',
  reversible: true,
  dependsOn: ['CustomObject', 'CustomField', 'Role', 'Group'],
  inTable: true,

  references(body) {
    const { object, from, to, criteria } = body;
    const found: Reference[] = [{ type: 'CustomObject', fullName: object, pointer: '/object' }];
    for (const [key, who] of [['from', from] as const, ['to', to] as const]) {
      if (who?.role !== undefined) found.push({ type: 'Role', fullName: who.role, pointer: `/${key}/role` });
      if (who?.group !== undefined) found.push({ type: 'Group', fullName: who.group, pointer: `/${key}/group` });
    }
    return [...found, ...expressionReferences(object, criteria ?? '', '/criteria')];
  },

  check(component, context) {
    checkForm(component, context);
    checkObject(component, context);
    checkCriteria(component, context);
  },

  isAffected: ({ body }, changes) => changes.objects(CUSTOM_FIELD).has(body.object),

  checkAll(context) {
    checkPerObject(context, SHARING_RULE, 'sharing rules', SHARING_RULES_PER_OBJECT_MAX);
    checkCosts(context);
  },

  compile(component, draft) {
    const { object, apiName: name, kind, from, criteria, to, access } = component.body;
    draft.objects[object]?.sharingRules.push({
      apiName: name,
      kind,
      from: from ?? null,
      criteria: criteria ?? null,
      to,
      access,
    });
  },
});

/** The criteria of an object stand in one condition, which the database asks about each record. */
function checkCosts(context: CheckContext): void {
  for (const [object, rules] of componentsByObject(context.after, SHARING_RULE)) {
    if (!context.after.has(componentKey('CustomObject', object))) continue;
    const schema = {
      ...schemaOf(object, context),
      variables: ['record'] as const,
      cost: formulaCosts(object, context),
    };
    let cost = 0;
    for (const rule of rules) {
      const before = cost;
      try {
        const { criteria } = rule.body;
        if (criteria !== undefined) cost += recordCost(checkExpression(criteria, schema, ['boolean']), schema);
      } catch (error) {
        if (!(error instanceof ExpressionError)) throw error; // its own check reports it
      }
      if (before > OBJECT_COST_MAX || cost <= OBJECT_COST_MAX) continue;
      const message = `The criteria of an object cost ${OBJECT_COST_MAX} units for one record together at most.`;
      context.problem('LIMIT_EXCEEDED', rule, '/criteria', message, { details: { max: OBJECT_COST_MAX } });
    }
  }
}

/** What the two kinds need and do not take, and that a principal is one. */
function checkForm(component: RuleComponent, context: CheckContext): void {
  const { kind, from, to, criteria } = component.body;
  const wrong = (pointer: string, message: string): void =>
    context.problem('YAML_SCHEMA_INVALID', component, pointer, message);
  if (kind === 'owner') {
    if (from === undefined) wrong('', 'A rule of kind owner says whose records: from.');
    if (criteria !== undefined) wrong('/criteria', 'A rule of kind owner has no criteria.');
  } else {
    if (criteria === undefined) wrong('', 'A rule of kind criteria needs criteria.');
    if (from !== undefined) wrong('/from', 'A rule of kind criteria has no from.');
  }
  for (const [key, who] of [['from', from] as const, ['to', to] as const])
    if (who && (who.role === undefined) === (who.group === undefined))
      wrong(`/${key}`, `${key} names a role or a group, one of the two.`);
}

function checkObject(component: RuleComponent, context: CheckContext): void {
  const { object } = component.body;
  const found = findComponent(context.after, CUSTOM_OBJECT, object)?.body;
  if (!found) return;
  if (object === 'User')
    context.problem('REFERENCE_INVALID', component, '/object', 'Users are not shared: permissions say who reads them.');
  else if (found.sharingDefault === 'controlledByParent')
    context.problem(
      'REFERENCE_INVALID',
      component,
      '/object',
      `Records of ${object} follow their parent (controlledByParent) and have no sharing rules of their own.`,
      { remedy: 'Write the rule for the parent object.' },
    );
}

function checkCriteria(component: RuleComponent, context: CheckContext): void {
  const { object, criteria } = component.body;
  if (criteria === undefined || !context.after.has(componentKey('CustomObject', object))) return;
  // Compiled into every statement on the object: it looks at the stored record and at nothing else.
  const schema = { ...schemaOf(object, context), variables: ['record'] as const, cost: formulaCosts(object, context) };
  const found = checked(component, context, '/criteria', () => checkRecordExpression(criteria, schema, ['boolean']));
  const timed = found?.fields.find((name) => dependsOnTime(object, name, context));
  if (timed !== undefined)
    context.problem('EXPRESSION_INVALID', component, '/criteria', `${timed} depends on the time.`, {
      remedy: 'Name fields whose values are stored, or formulas over such fields.',
      offset: criteria.indexOf(timed),
    });
}
