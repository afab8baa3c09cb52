/** An object as files of its records see it. Source: docs/reference/bulk.md#columns. */
import type { ObjectColumns } from '../../../contracts/data/columns.ts';
import type { Access, ObjectAccess } from '../../../lib/access/types.ts';
import type { CellForm } from '../../../lib/cells/cells.ts';
import type { Asker } from '../../../lib/context.ts';
import { isReference, typeOf } from '../../../lib/schema/field-types/registry.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { visibleObject } from '../object-access.ts';
import { fromCurrentView } from './objects.ts';
import type { ReadDeps } from './read.ts';

export const describeColumns = (
  deps: ReadDeps,
  asker: Asker,
  { objectApiName }: { objectApiName: string },
): Promise<ObjectColumns> =>
  fromCurrentView(deps, asker, (view) => columnsOf(view.access, visibleObject(view, objectApiName)));

function columnsOf(access: Access, { readable, fields, permission }: ObjectAccess): ObjectColumns {
  const { create, read, update, delete: remove, modifyAll } = permission;
  return {
    columns: readable.map((field) => ({
      apiName: field.apiName,
      form: formOf(field),
      edit: ownEntry(fields, field.apiName)?.edit === true,
      file: field.fieldType === 'file',
      externalId: field.externalId,
      keys: isReference(field) ? field.referenceTo.flatMap((name) => keysOf(ownEntry(access.objects, name))) : [],
    })),
    may: { create, read, update, delete: remove, modifyAll },
  };
}

const keysOf = (target: ObjectAccess | undefined): string[] =>
  target?.readable.filter(({ externalId }) => externalId).map(({ apiName }) => apiName) ?? [];

/** The form of a field's values in cells. */
export function formOf(field: FieldMeta): CellForm {
  const { bindType, expressionType } = typeOf(field);
  if (bindType === 'jsonb') return 'json';
  if (expressionType === 'number' || expressionType === 'date' || expressionType === 'boolean') return expressionType;
  return expressionType === 'list:text' ? 'list' : 'text';
}
