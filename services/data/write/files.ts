/** Values of fields that hold files: a user can give a record only a file that they can read. */
import { violation } from '../../../lib/errors/platform-error.ts';
import { isFile } from '../../../lib/schema/field-types/registry.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import { fileFields, type HeldFileRow, holdFilesSql, type SeenFileRow, seenFilesSql } from '../files/files.sql.ts';
import { recordsOf } from '../files/files.ts';
import { checkedRow } from '../read/versions.ts';
import { pointerTo } from './violations.ts';
import type { Write } from './write.ts';

/** The body gives the record a file: what that takes is more than one statement. */
export const namesFiles = ({ object, body }: Pick<Write, 'object' | 'body'>): boolean =>
  fileFields(object).some(({ apiName }) => (ownEntry(body, apiName) ?? null) !== null);

/** Step: holds the files that the record is about to have. A file that the user cannot read is like an unknown one. */
export async function checkFiles(write: Write): Promise<void> {
  if (fileFields(write.object).length === 0) return;
  const { unit, view, mutation, invalid } = write;
  const named = (mutation === 'create' ? write.given : write.changed).filter(
    ({ field, value }) => value !== null && isFile(field),
  );
  if (named.length === 0) return;
  const { request, tx } = unit;
  const ids = [...new Set(named.map(({ value }) => String(value)))];
  unit.actAs({ service: 'data' });
  const held = await tx.all<HeldFileRow>(holdFilesSql(request.tenantId, ids));
  unit.actAs('tenant');
  const readable = new Set(held.flatMap((row) => (row.createdById === request.userId ? row.fileId : [])));
  const files = [...Map.groupBy(held, ({ fileId }) => fileId)].flatMap(([fileId, rows]) => {
    if (readable.has(fileId)) return [];
    const records = rows.flatMap(({ objectApiName, recordId }) =>
      objectApiName !== null && recordId !== null ? [{ objectApiName, recordId }] : [],
    );
    return [{ fileId, records }];
  });
  if (files.length > 0) {
    const rows = await tx.all<SeenFileRow>(seenFilesSql(view, files, request.deniedObjects));
    checkedRow(view, rows);
    for (const { fileId } of recordsOf(rows)) readable.add(fileId);
  }
  for (const { field, value } of named)
    if (!readable.has(String(value)))
      invalid.push(
        violation(pointerTo(field.apiName), 'REFERENCE_NOT_FOUND', `${field.apiName} names no file you can read.`, {
          field: field.apiName,
        }),
      );
}
