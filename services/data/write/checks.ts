/** Checks that several mutations share. */

import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { storedReply } from '../../../mixins/mutation/key.ts';
import { recordNotFound } from '../object-access.ts';
import { assertFresh } from '../tenants.ts';
import type { ClaimRow } from './checks.sql.ts';
import { missingReferences } from './references.ts';
import { validationFailed } from './violations.ts';
import type { Write } from './write.ts';

/** The result of a statement that claims the key and locks the record. */
export interface LockRow extends ClaimRow {
  /** null: there is no such record that the user can see. */
  readonly recordVersion: number | null;
}

/** False: the key had been used before, and `reply` is the stored one. */
export async function readLock(write: Write, row: LockRow): Promise<boolean> {
  assertFresh(write.view, row.metadataVersion, row.accessVersion);
  if (!row.claimed) {
    await replyOfKey(write);
    return false;
  }
  if (row.recordVersion === null) throw recordNotFound();
  write.recordVersion = row.recordVersion;
  return true;
}

/** Sets `write.reply` to the reply stored under a key that could not be claimed. */
export async function replyOfKey(write: Write): Promise<void> {
  write.reply = await storedReply(write.unit.tx, write.unit.key);
}

/** 403 when a readable field may not be edited: permission comes before content. */
export function refuseDenied({ denied }: Write): void {
  if (denied.length === 0) return;
  throw new PlatformError('FIELD_PERMISSION_DENIED', 'Some fields may be read but not edited.', {
    errors: [...denied],
    details: { layer: 'fieldPermission' },
  });
}

/** 422 with all violations, those included that only the database can find. */
export async function refuseInvalid(write: Write): Promise<void> {
  if (write.invalid.length === 0) return;
  throw validationFailed([...write.invalid, ...(await missingReferences(write))]);
}
