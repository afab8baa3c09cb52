/**
 * SharingRule: opens records of an object, by their owners or by what stands in them, to a role or a group, or to the
 * user that a field of them refers to.
 */
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
import { SYSTEM_FIELD_NAMES } from './system-fields.ts';

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
  kind: Type.Enum(['owner', 'criteria', 'reference'], {
    description: 'Selects records by owner, by field values, or by the user in a field.',
  }),
  from: optional(principal('owner: whose records; a role or a group.', 'The users who hold this role.')),
  criteria: optional(expression('criteria: expression over `record`; records for which it is true are opened.')),
  through: optional(
    Type.String({
      pattern: API_NAME,
      description:
        'reference: a reference field of the object. The record is opened to the user that the field refers to, ' +
        'or to the owner of the record that it refers to.',
    }),
  ),
  to: optional(
    principal('owner, criteria: to whom, a role or a group.', 'The users of this role and of those above it.'),
  ),
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
    const { object, from, to, criteria, through } = body;
    const found: Reference[] = [{ type: 'CustomObject', fullName: object, pointer: '/object' }];
    for (const [key, who] of [['from', from] as const, ['to', to] as const]) {
      if (who?.role !== undefined) found.push({ type: 'Role', fullName: who.role, pointer: `/${key}/role` });
      if (who?.group !== undefined) found.push({ type: 'Group', fullName: who.group, pointer: `/${key}/group` });
    }
    if (through !== undefined && !SYSTEM_FIELD_NAMES.has(through))
      found.push({
        type: 'CustomField',
        fullName: `${object}.${through}`,
        pointer: '/through',
        access: 'read',
      });
    return [...found, ...expressionReferences(object, criteria ?? '', '/criteria')];
  },

  check(component, context) {
    checkForm(component, context);
    checkObject(component, context);
    checkCriteria(component, context);
    checkThrough(component, context);
  },

  isAffected: ({ body }, changes) =>
    changes.objects(CUSTOM_FIELD).has(body.object) ||
    (body.kind === 'reference' && changes.names(CUSTOM_OBJECT).size > 0),

  checkAll(context) {
    checkPerObject(context, SHARING_RULE, 'sharing rules', SHARING_RULES_PER_OBJECT_MAX);
    checkCosts(context);
  },

  compile(component, draft) {
    const { object, apiName: name, kind, from, criteria, through, to, access } = component.body;
    draft.objects[object]?.sharingRules.push({
      apiName: name,
      kind,
      from: from ?? null,
      criteria: criteria ?? null,
      ...(through === undefined ? {} : { through }),
      to: to ?? {},
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
      const message = `The criteria of an object may cost at most ${OBJECT_COST_MAX} units together for one record.`;
      context.problem('LIMIT_EXCEEDED', rule, '/criteria', message, { details: { max: OBJECT_COST_MAX } });
    }
  }
}

/** The properties that each kind needs and does not take; a principal is one role or one group. */
function checkForm(component: RuleComponent, context: CheckContext): void {
  const { kind, from, to } = component.body;
  const wrong = (pointer: string, message: string): void =>
    context.problem('YAML_SCHEMA_INVALID', component, pointer, message);
  for (const property of ['from', 'criteria', 'through', 'to'] as const) {
    const isSet = component.body[property] !== undefined;
    const needed = PROPERTIES[kind].includes(property);
    if (needed && !isSet) wrong('', `A rule of kind ${kind} needs ${property}.`);
    if (isSet && !needed) wrong(`/${property}`, `A rule of kind ${kind} has no ${property}.`);
  }
  for (const [key, who] of [['from', from] as const, ['to', to] as const])
    if (who && (who.role === undefined) === (who.group === undefined))
      wrong(`/${key}`, `${key} names a role or a group, one of the two.`);
}

const PROPERTIES: Readonly<Record<RuleComponent['body']['kind'], readonly string[]>> = {
  owner: ['from', 'to'],
  criteria: ['criteria', 'to'],
  reference: ['through'],
};

/** The field is a reference of the object that refers to users, or to records that have owners of their own. */
function checkThrough(component: RuleComponent, context: CheckContext): void {
  const { object, through } = component.body;
  if (through === undefined) return;
  const wrong = (message: string): void => context.problem('REFERENCE_INVALID', component, '/through', message);
  if (SYSTEM_FIELD_NAMES.has(through)) {
    wrong(`${through} cannot be used in a rule of kind reference: name a reference field of your own.`);
    return;
  }
  const field = findComponent(context.after, CUSTOM_FIELD, `${object}.${through}`)?.body;
  if (!field) return;
  const [target] = field.referenceTo ?? [];
  if (field.fieldType !== 'reference' && field.fieldType !== 'masterDetail')
    wrong(`${object}.${through} is no reference field.`);
  else if (
    target !== undefined &&
    findComponent(context.after, CUSTOM_OBJECT, target)?.body.sharingDefault === 'controlledByParent'
  )
    wrong(`Records of ${target} follow their parent (controlledByParent): their owner does not reach them.`);
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
