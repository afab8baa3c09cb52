/**
 * Layouts and list views as one user gets them: of what they name, only what the user reads. Pure.
 * Source: docs/reference/screens.md.
 */
import type { Access, ObjectAccess } from '../../../lib/access/types.ts';
import { sortable } from '../../../lib/query/capabilities.ts';
import { ConditionReader } from '../../../lib/query/conditions.ts';
import { planConditions } from '../../../lib/query/plan.ts';
import { Violations } from '../../../lib/query/violations.ts';
import { type Labels, PLURAL } from '../../../lib/schema/labels.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import type { LayoutMeta, ListViewMeta } from '../../../lib/schema/snapshot.ts';

/** The layouts that the user's profile gets, for records of which types; the one for all others comes first. */
export function describeLayouts(access: Access, object: ObjectAccess, labels: Labels): object[] {
  const { apiName, recordTypes } = object.object;
  const layouts = ownEntry(access.snapshot.screens, apiName)?.layouts ?? [];
  if (layouts.length === 0) return [];
  const { profileApiName } = access.principal;
  const general = layoutFor(layouts, profileApiName, null);
  const typesOf = Map.groupBy(recordTypes, (type) => layoutFor(layouts, profileApiName, type.apiName));
  return layouts
    .filter((layout) => layout === general || typesOf.has(layout))
    .sort((a, b) => Number(b === general) - Number(a === general))
    .map((layout) => ({
      apiName: layout.apiName,
      label: labels.of('Layout', `${apiName}.${layout.apiName}`, layout.label),
      default: layout === general,
      recordTypes: (typesOf.get(layout) ?? []).map((type) => type.apiName),
      sections: describeSections(layout, object, labels),
      relatedLists: describeRelatedLists(layout, access, object, labels),
    }));
}

/** An assignment by user and record type precedes one by user alone, and that precedes one by record type alone. */
function layoutFor(layouts: readonly LayoutMeta[], profile: string, recordType: string | null): LayoutMeta | undefined {
  const assigned = (to: string | null, of: string | null): LayoutMeta | undefined =>
    layouts.find(({ assignments }) => assignments.some((one) => one.profile === to && one.recordType === of));
  return (
    (recordType === null ? undefined : assigned(profile, recordType)) ??
    assigned(profile, null) ??
    (recordType === null ? undefined : assigned(null, recordType)) ??
    layouts.find(({ assignments }) => assignments.length === 0)
  );
}

const reads = ({ fields }: ObjectAccess, name: string): boolean => ownEntry(fields, name)?.read === true;

/** Columns stay where they are; a section without fields is none. */
const describeSections = ({ apiName, sections }: LayoutMeta, object: ObjectAccess, labels: Labels): object[] =>
  sections
    .map(({ label, columns }) => ({
      label: labels.of('Layout', `${object.object.apiName}.${apiName}`, label, label),
      columns: columns.map((fields) => fields.filter((name) => reads(object, name))),
    }))
    .filter(({ columns }) => columns.some((fields) => fields.length > 0));

function describeRelatedLists(
  { apiName, relatedLists }: LayoutMeta,
  access: Access,
  { object }: ObjectAccess,
  labels: Labels,
): object[] {
  return relatedLists.flatMap(({ relationshipName, label, columns }) => {
    const relationship = object.childRelationships.find((one) => one.relationshipName === relationshipName);
    const child = relationship && ownEntry(access.objects, relationship.objectApiName);
    if (!child || !reads(child, relationship.field)) return [];
    const shown = columns.filter((name) => reads(child, name));
    if (shown.length === 0) return [];
    const { objectApiName, field } = relationship;
    const heading =
      label === null
        ? labels.of('CustomObject', objectApiName, child.object.labelPlural, PLURAL)
        : labels.of('Layout', `${object.apiName}.${apiName}`, label, label);
    return [{ relationshipName, label: heading, objectApiName, field, columns: shown }];
  });
}

/**
 * The list views that the user is offered. One whose filters the user could not send is left out: what it lists would
 * tell what stands in fields that are hidden.
 */
export function describeListViews(access: Access, object: ObjectAccess, labels: Labels): object[] {
  const listViews = ownEntry(access.snapshot.screens, object.object.apiName)?.listViews ?? [];
  return listViews.flatMap((listView) => {
    const columns = listView.columns.filter((name) => reads(object, name));
    if (columns.length === 0 || !isOffered(listView, access) || !takes(listView, access, object)) return [];
    const { apiName, label, filters, sort } = listView;
    const sorted = sort.filter(({ id }) => {
      const field = object.object.fields[id];
      return reads(object, id) && field !== undefined && sortable(field);
    });
    const name = labels.of('ListView', `${object.object.apiName}.${apiName}`, label);
    return [{ apiName, label: name, columns, filters, sort: sorted }];
  });
}

const isOffered = ({ sharedWith: { roles, groups } }: ListViewMeta, { memberships }: Access): boolean =>
  roles.length + groups.length === 0 ||
  roles.some((role) => memberships.roles.includes(role)) ||
  groups.some((group) => memberships.groups.has(group));

/** True when a list of the user accepts the filters, by the rules of lists; the current day makes no difference. */
function takes({ filters }: ListViewMeta, access: Access, { object }: ObjectAccess): boolean {
  if (filters === null) return true;
  const problems = new Violations();
  const group = new ConditionReader(problems).group(filters, '/filters');
  planConditions(group, [], object, { access, now: 0, timezone: access.snapshot.tenant.timezone }, problems);
  return problems.list.length === 0;
}
