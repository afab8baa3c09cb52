/** Components → the snapshot that the other services decide by. Pure. Source: docs/reference/metadata.md#snapshots. */
import type { ChildRelationship, FieldMeta, ObjectMeta, Snapshot, TenantInfo } from '../../lib/schema/snapshot.ts';
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
  for (const object of Object.values(draft.objects))
    for (const field of Object.values(object.fields)) addChild(draft.objects, object, field);
  return draft;
}

function addChild(objects: Record<string, ObjectMeta>, object: ObjectMeta, field: FieldMeta): void {
  if (field.relationshipName === null) return;
  for (const parent of field.referenceTo)
    (objects[parent]?.childRelationships as ChildRelationship[] | undefined)?.push({
      relationshipName: field.relationshipName,
      objectApiName: object.apiName,
      field: field.apiName,
      onDelete: field.onDelete,
    });
}
