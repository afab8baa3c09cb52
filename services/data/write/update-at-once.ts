/**
 * Changing a record by one statement, where nothing but the database decides between the lock and the change. It does
 * everything or nothing, and after nothing the steps of update.ts find out why: whatever is refused or repeated, and
 * all waiting for others, is theirs.
 */

import type { OperationReply } from '../../../lib/operation.ts';
import { isFile } from '../../../lib/schema/field-types/registry.ts';
import { waitedForWriter } from '../../../mixins/mutation/errors.ts';
import { etagOf } from '../sql.ts';
import { assertFresh } from '../tenants.ts';
import { controlledFields } from './body.ts';
import { mayAskDuplicates } from './duplicates.ts';
import { typedFields } from './record-types.ts';
import { hasFollowers } from './rollups.ts';
import { hasRules } from './rules.ts';
import { standardObject } from './standard-objects.ts';
import { readValues } from './update.ts';
import { type AtOnceRow, updateAtOnceSql } from './update-at-once.sql.ts';
import type { Write } from './write.ts';

/** Null: nothing was done. */
export async function updateAtOnce(write: Write): Promise<OperationReply | null> {
  if (!canRunAsSingleStatement(write)) return null;
  await readValues(write);
  if (!isPlain(write)) return null;
  const row = await write.unit.commit<AtOnceRow>(updateAtOnceSql(write)).catch((error: unknown) => {
    if (waitedForWriter(error)) return null;
    throw error;
  });
  if (!row) return null;
  assertFresh(write.view, row.metadataVersion, row.accessVersion);
  if (!row.claimed || row.body === null || row.recordVersion === null) return null;
  return { status: 200, headers: { ETag: etagOf(row.recordVersion) }, body: Buffer.from(row.body) };
}

const canRunAsSingleStatement = (write: Write): boolean =>
  !standardObject(write.object) && write.access.permission.update && !hasRules(write.object) && !hasFollowers(write);

/** The body is valid by itself, whatever is stored. */
const isPlain = (write: Write): boolean =>
  write.given.length > 0 &&
  write.invalid.length === 0 &&
  write.denied.length === 0 &&
  !mayAskDuplicates(write, write.given) &&
  write.given.every((item) => item.lookup === null && (item.value === null || !isFile(item.field))) &&
  typedFields(write.object, write.given).length === 0 &&
  controlledFields(write.object, write.given).length === 0;
