/** ListView: columns, filters and order of a list of records, in the form that the data API takes. */

import type { FieldAccess } from '../../../lib/access/types.ts';
import { ExpressionError } from '../../../lib/expression/types.ts';
import { isObject, membersOf } from '../../../lib/json/objects.ts';
import { sortable } from '../../../lib/query/capabilities.ts';
import { ConditionReader } from '../../../lib/query/conditions.ts';
import { planConditions } from '../../../lib/query/plan.ts';
import type { NamingView } from '../../../lib/query/types.ts';
import { Violations } from '../../../lib/query/violations.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import type { ObjectMeta, ObjectPermission } from '../../../lib/schema/snapshot.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { memoizeByName } from '../../../lib/values/memoize.ts';
import { CUSTOM_FIELD } from './bodies/custom-field.ts';
import { CUSTOM_OBJECT } from './bodies/custom-object.ts';
import { LIST_VIEW, type ListViewComponent } from './bodies/list-view.ts';
import { compileField } from './compile-field.ts';
import { linkFormulas } from './compile-formula.ts';
import { compileObject } from './compile-object.ts';
import { findComponent } from './component.ts';
import { type CheckContext, defineKind, type Reference } from './kind.ts';
import { checkPerObject } from './per-object.ts';
import { fieldReference, screensOf } from './screens.ts';

const LIST_VIEWS_PER_OBJECT_MAX = 100;
/** A client sends them in an address. */
const FILTERS_MAX_BYTES = 16_384;

export const listView = defineKind({
  ...LIST_VIEW,
  memberFormat: '<Object>.<ListView>',
  reversible: true,
  dependsOn: ['CustomObject', 'CustomField', 'Role', 'Group'],

  references({ object, columns, filters, sort = [], sharedWith = {} }) {
    const { roles = [], groups = [] } = sharedWith;
    const named = (type: string, names: readonly string[], key: string): Reference[] =>
      names.map((fullName, i) => ({ type, fullName, pointer: `/sharedWith/${key}/${i}` }));
    return [
      { type: 'CustomObject', fullName: object, pointer: '/object' },
      ...columns.flatMap((name, i) => fieldReference(object, name, `/columns/${i}`)),
      ...(filters?.conditions ?? []).flatMap(({ field, operator, value }, i) => [
        ...fieldReference(object, field, `/filters/conditions/${i}/field`),
        ...(operator === 'in_related' ? relatedReferences(value, `/filters/conditions/${i}/value`) : []),
      ]),
      ...sort.flatMap(({ id }, i) => fieldReference(object, id, `/sort/${i}/id`)),
      ...named('Role', roles, 'roles'),
      ...named('Group', groups, 'groups'),
    ];
  },

  check(component, context) {
    checkFilters(component, context);
    checkSort(component, context);
  },

  isAffected({ body }, changes) {
    const changed = changes.objects(CUSTOM_FIELD);
    const related = (body.filters?.conditions ?? []).some(
      ({ operator, value }) =>
        operator === 'in_related' && isObject(value) && changed.has(String(value['objectApiName'])),
    );
    return related || changed.has(body.object);
  },

  checkAll(context) {
    checkPerObject(context, LIST_VIEW, 'list views', LIST_VIEWS_PER_OBJECT_MAX);
  },

  compile({ body }, draft) {
    const { roles = [], groups = [] } = body.sharedWith ?? {};
    screensOf(draft, body.object).listViews.push({
      apiName: body.apiName,
      label: body.label,
      columns: body.columns,
      filters: body.filters ?? null,
      sort: body.sort ?? [],
      sharedWith: { roles, groups },
    });
  },
});

/** Names used by a condition on related records; malformed ones are reported by the check. */
function relatedReferences(value: unknown, pointer: string): Reference[] {
  const { objectApiName: object, field, conditions } = membersOf(value);
  if (typeof object !== 'string') return [];
  const named = (name: unknown, at: string): Reference[] =>
    typeof name === 'string' ? fieldReference(object, name, at) : [];
  return [
    { type: 'CustomObject', fullName: object, pointer: `${pointer}/objectApiName` },
    ...named(field, `${pointer}/field`),
    ...(Array.isArray(conditions) ? conditions : []).flatMap((condition: unknown, i) =>
      isObject(condition) ? named(condition['field'], `${pointer}/conditions/${i}/field`) : [],
    ),
  ];
}

/** The grammar of the data API, and that fields, operators and values fit each other. */
function checkFilters(component: ListViewComponent, context: CheckContext): void {
  const { object: name, filters } = component.body;
  if (filters === undefined) return;
  if (Buffer.byteLength(JSON.stringify(filters)) > FILTERS_MAX_BYTES) {
    const message = `The filters of a list view may have at most ${FILTERS_MAX_BYTES} bytes of JSON.`;
    context.problem('LIMIT_EXCEEDED', component, '/filters', message, { details: { max: FILTERS_MAX_BYTES } });
    return;
  }
  const form = new Violations();
  const group = new ConditionReader(form).group(filters, '/filters');
  for (const { pointer, message } of form.list) context.problem('YAML_SCHEMA_INVALID', component, pointer, message);
  const object = objectOf(context, name);
  if (form.list.length > 0 || group === null || object === null) return;
  const fit = new Violations();
  planConditions(group, [], object, viewOf(component, context), fit);
  for (const { code, pointer, message } of fit.list)
    if (!isMissing(code, pointer)) context.problem('REFERENCE_INVALID', component, pointer, message);
}

/** References report what is not there. */
const isMissing = (code: string, pointer: string): boolean =>
  code === 'FILTER_FIELD_UNKNOWN' || (code === 'FILTER_VALUE_INVALID' && pointer.endsWith('/value/objectApiName'));

function checkSort(component: ListViewComponent, context: CheckContext): void {
  const object = objectOf(context, component.body.object);
  const names = new Set<string>();
  for (const [i, { id }] of (component.body.sort ?? []).entries()) {
    const field = object && ownEntry(object.fields, id);
    const wrong = (message: string): void => context.problem('REFERENCE_INVALID', component, `/sort/${i}/id`, message);
    if (names.has(id)) wrong('A field can be named only once in sort.');
    else if (field && !sortable(field)) wrong(`Records cannot be sorted by ${id}.`);
    names.add(id);
  }
}

/** A principal who sees everything of the objects that the filters name, in the planned configuration. */
function viewOf(component: ListViewComponent, context: CheckContext): NamingView {
  const named = (component.body.filters?.conditions ?? []).flatMap(({ value }) =>
    isObject(value) && typeof value['objectApiName'] === 'string' ? [value['objectApiName']] : [],
  );
  const objects: Record<string, NamingView['access']['objects'][string]> = Object.create(null);
  for (const name of new Set([component.body.object, ...named])) {
    const object = objectOf(context, name);
    if (object === null) continue;
    const fields: Record<string, FieldAccess> = Object.create(null);
    for (const field of Object.keys(object.fields)) fields[field] = { read: true, edit: false };
    objects[name] = { object, fields, permission: READING, readable: Object.values(object.fields) };
  }
  return { access: { objects }, now: platformTime(), timezone: 'UTC' };
}

const READING: ObjectPermission = {
  create: false,
  read: true,
  update: false,
  delete: false,
  viewAll: true,
  modifyAll: false,
};

/** An object of the configuration to be; null: it is not there, or a formula of it has mistakes of its own. */
const objectOf = memoizeByName((context: CheckContext, name): ObjectMeta | null => {
  const component = findComponent(context.after, CUSTOM_OBJECT, name);
  if (!component) return null;
  const object = compileObject(component);
  for (const field of context.fieldsOf(name).values())
    object.fields[field.body.apiName] = compileField(field, context.after);
  try {
    linkFormulas(object, 'UTC');
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return null;
  }
  return object;
});
