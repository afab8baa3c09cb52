/** Checks that several mutations share. */

import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { Sql } from '../../../mixins/database/sql.ts';
import { claimKeySql } from '../../../mixins/mutation/key.sql.ts';
import { answerOf, findKey } from '../../../mixins/mutation/key.ts';
import { assertFresh, recordNotFound } from '../tenants.ts';
import { missingReferences } from './references.ts';
import { validationFailed } from './violations.ts';
import type { Write } from './write.ts';

/** CTE s: the versions, locked. A write of a user changes them. */
export const stateSql = ({ object, schema }: Write): string =>
  `s AS MATERIALIZED (SELECT metadata_version AS m, access_version AS a FROM ${schema}._state FOR ${object.apiName === 'User' ? 'UPDATE' : 'SHARE'})`;

/** SQL condition on s: the versions are those of the view. */
export const freshSql = ({ view }: Write, { bind }: Sql): string =>
  `s.m = ${bind(view.metadataVersion, 'integer')} AND s.a = ${bind(view.accessVersion, 'integer')}`;

/** CTEs s and k, the claimed key, with which a statement begins that locks the record; its row is for readLock. */
export const claimSql = (write: Write, sql: Sql): string =>
  `${stateSql(write)},
    k AS (${claimKeySql(write.schema, write.key, sql.bind, `FROM s WHERE ${freshSql(write, sql)}`, null)})`;

/**
 * Reads the row that begins with versions, claimed keys and the locked record's version. False: the key had been used
 * before, and `reply` is what it stands for.
 */
export async function readLock(write: Write, row: readonly unknown[]): Promise<boolean> {
  assertFresh(write.view, row[0], row[1]);
  if (row[2] === 0) {
    await replyOfKey(write);
    return false;
  }
  if (row[3] === null) throw recordNotFound();
  write.recordVersion = row[3] as number;
  return true;
}

/** The reply that a key stands for which could not be claimed. */
export async function replyOfKey(write: Write): Promise<void> {
  write.reply = answerOf(await findKey(write.tx, write.key), write.key);
  if (!write.reply) throw new PlatformError('WRITE_CONTENTION', 'The idempotency key changed hands; try again.');
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
