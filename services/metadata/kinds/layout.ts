/** Layout: what a screen shows of a record, for users of which profile and records of which type. */
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import { memoize } from '../../../lib/values/memoize.ts';
import { CUSTOM_FIELD } from './bodies/custom-field.ts';
import { LAYOUT, type LayoutComponent } from './bodies/layout.ts';
import { relationshipName } from './compile-field.ts';
import { componentsByObject, componentsOf, type State } from './component.ts';
import { type CheckContext, defineKind, type Reference } from './kind.ts';
import { checkPerObject } from './per-object.ts';
import { fieldReference, hasField, screensOf } from './screens.ts';

const LAYOUTS_PER_OBJECT_MAX = 50;

export const layout = defineKind({
  ...LAYOUT,
  memberFormat: '<Object>.<Layout>',
  reversible: true,
  dependsOn: ['CustomObject', 'CustomField', 'RecordType', 'Profile'],

  references({ object, sections, assignments = [] }) {
    return [
      { type: 'CustomObject', fullName: object, pointer: '/object' },
      ...sections.flatMap(({ columns }, i) =>
        columns.flatMap((fields, j) =>
          fields.flatMap((name, k) => fieldReference(object, name, `/sections/${i}/columns/${j}/${k}`)),
        ),
      ),
      ...assignments.flatMap(({ profile, recordType }, i): Reference[] => {
        const at = `/assignments/${i}`;
        return [
          ...(profile === undefined ? [] : [{ type: 'Profile', fullName: profile, pointer: `${at}/profile` }]),
          ...(recordType === undefined
            ? []
            : [{ type: 'RecordType', fullName: `${object}.${recordType}`, pointer: `${at}/recordType` }]),
        ];
      }),
    ];
  },

  check(component, context) {
    checkFields(component, context);
    checkRelatedLists(component, context);
  },

  /** Related lists are named after fields of other objects. */
  isAffected: ({ body }, changes) => (body.relatedLists ?? []).length > 0 && changes.names(CUSTOM_FIELD).size > 0,

  checkAll(context) {
    checkPerObject(context, LAYOUT, 'layouts', LAYOUTS_PER_OBJECT_MAX);
    for (const layouts of componentsByObject(context.after, LAYOUT).values()) checkAssignments(layouts, context);
  },

  compile({ body }, draft) {
    screensOf(draft, body.object).layouts.push({
      apiName: body.apiName,
      label: body.label ?? body.apiName,
      sections: body.sections,
      relatedLists: (body.relatedLists ?? []).map((list) => ({ ...list, label: list.label ?? null })),
      assignments: (body.assignments ?? []).map(({ profile = null, recordType = null }) => ({ profile, recordType })),
    });
  },
});

/** A form has one place for each value. */
function checkFields(component: LayoutComponent, context: CheckContext): void {
  const places = new Set<string>();
  for (const [i, { columns }] of component.body.sections.entries())
    for (const [j, fields] of columns.entries())
      for (const [k, name] of fields.entries()) {
        if (places.has(name))
          context.problem(
            'REFERENCE_INVALID',
            component,
            `/sections/${i}/columns/${j}/${k}`,
            `The layout has the field ${name} already.`,
          );
        places.add(name);
      }
}

function checkRelatedLists(component: LayoutComponent, context: CheckContext): void {
  const { object, relatedLists = [] } = component.body;
  const known = relationshipsOf(context.after).get(object);
  const names = new Set<string>();
  for (const [i, { relationshipName: name, columns }] of relatedLists.entries()) {
    const at = `/relatedLists/${i}`;
    const wrong = (pointer: string, message: string, remedy?: string): void =>
      context.problem(
        'REFERENCE_INVALID',
        component,
        `${at}${pointer}`,
        message,
        remedy === undefined ? {} : { remedy },
      );
    if (names.has(name)) wrong('/relationshipName', `The layout has the related list ${name} already.`);
    names.add(name);
    const child = known?.get(name);
    if (child === undefined) {
      const others = [...(known?.keys() ?? [])].slice(0, 20);
      const remedy = others.length > 0 ? `Name one of those it has: ${others.join(', ')}.` : undefined;
      wrong('/relationshipName', `${object} has no child relationship ${name}.`, remedy);
      continue;
    }
    for (const [j, field] of columns.entries())
      if (!hasField(child, field, context)) wrong(`/columns/${j}`, `${child} has no field ${field}.`);
  }
}

/** The child objects of each object, by the names of their relationships. */
const relationshipsOf = memoize((state: State): ReadonlyMap<string, ReadonlyMap<string, string>> => {
  const found = new Map<string, Map<string, string>>();
  for (const { body } of componentsOf(state, CUSTOM_FIELD)) {
    if (!fieldType(body.fieldType).relation) continue;
    for (const parent of body.referenceTo ?? []) {
      const children = found.get(parent) ?? new Map<string, string>();
      found.set(parent, children.set(relationshipName(body), body.object));
    }
  }
  return found;
});

/** No two layouts of an object apply to the same users and records. */
function checkAssignments(layouts: readonly LayoutComponent[], context: CheckContext): void {
  const taken = new Map<string, LayoutComponent>();
  for (const component of layouts) {
    const { assignments = [] } = component.body;
    const places = assignments.length > 0 ? assignments : [{}];
    for (const [i, place] of places.entries()) {
      const key = JSON.stringify([place.profile ?? null, place.recordType ?? null]);
      const other = taken.get(key);
      taken.set(key, other ?? component);
      if (!other) continue;
      const [pointer, message] =
        assignments.length > 0
          ? [`/assignments/${i}`, `${other.fullName} applies to the same users and records.`]
          : ['', `${other.fullName} has no assignments either, and applies wherever no other layout does.`];
      context.problem('NAME_CONFLICT', component, pointer, message, { remedy: 'Assign one of the two elsewhere.' });
    }
  }
}
