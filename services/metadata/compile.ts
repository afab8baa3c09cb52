/** Components → the snapshot that the other services decide by. Pure. Source: docs/reference/metadata.md#snapshots. */
import type { ChildRelationship, ObjectMeta, Snapshot, TenantInfo } from '../../lib/schema/snapshot.ts';
import { linkFormulas } from './kinds/compile-formula.ts';
import type { Component, Draft, State } from './kinds/kind.ts';
import { findKind, kindOrder } from './kinds/registry.ts';
import { byCodePoint } from './kinds/schema.ts';

export function compileSnapshot(tenant: TenantInfo, version: number, state: State): Snapshot {
  const draft: Draft = {
    tenant,
    version,
    objects: {},
    profiles: {},
    permissionSets: {},
    roles: {},
    groups: {},
    externalClients: {},
  };
  const components = [...state.values()].sort(
    (a: Component, b: Component) => kindOrder(a.type) - kindOrder(b.type) || byCodePoint(a.fullName, b.fullName),
  );
  for (const component of components) findKind(component.type)?.compile?.(component, draft, state);
  for (const object of Object.values(draft.objects)) linkFormulas(object, draft.tenant.timezone);
  const children = childRelationships(Object.values(draft.objects));
  for (const [apiName, object] of Object.entries(draft.objects))
    draft.objects[apiName] = { ...object, childRelationships: children.get(apiName) ?? [] };
  return draft;
}

/** The fields that point to each object, as they are named on it. */
function childRelationships(objects: readonly ObjectMeta[]): ReadonlyMap<string, ChildRelationship[]> {
  const children = new Map<string, ChildRelationship[]>();
  for (const object of objects)
    for (const { apiName, relationshipName, referenceTo, onDelete } of Object.values(object.fields)) {
      if (relationshipName === null) continue;
      const child = { relationshipName, objectApiName: object.apiName, field: apiName, onDelete };
      for (const parent of referenceTo) children.set(parent, [...(children.get(parent) ?? []), child]);
    }
  return children;
}
