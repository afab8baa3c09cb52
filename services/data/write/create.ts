/** Creating a record: every check, then one statement that writes everything or nothing. */

import { requireObject } from '../../../lib/access/decide.ts';
import type { PlatformError } from '../../../lib/errors/platform-error.ts';
import { assertFresh } from '../tenants.ts';
import { checkDependentPicklists, completeCreate, readBody } from './body.ts';
import { noteEffect } from './check-only.ts';
import { refuseDenied, refuseInvalid, replyOfKey } from './checks.ts';
import {
  createdFields,
  type InsertedRow,
  type InsertRow,
  insertManySql,
  insertSql,
  newRecordHeaders,
} from './create.sql.ts';
import { checkDuplicates } from './duplicates.ts';
import { checkFiles } from './files.ts';
import { checkRecordType } from './record-types.ts';
import { notFoundIn, referencesIn } from './references.ts';
import { checkRules } from './rules.ts';
import { parentDenied } from './sharing.ts';
import { checkStandard, completeBody, permitStandard } from './standard-objects.ts';
import { lockKey } from './upsert.ts';
import { validationFailed } from './violations.ts';
import type { Step, Write } from './write.ts';

/** In the order of the checks of every mutation; the key and the references are settled by the statement itself. */
const CREATE_CHECKS: readonly Step[] = [
  mayCreate,
  completeBody,
  readValues,
  refuseDenied,
  permitStandard,
  checkStandard,
  checkFiles,
  checkRules,
  refuseInvalid,
];

export const CREATE_STEPS: readonly Step[] = [...CREATE_CHECKS, lockKey, checkDuplicates, insert];

/** The checks of a create that may be stored together with others: no duplicate rule looks at it. */
export async function checkCreate(write: Write): Promise<void> {
  for (const step of CREATE_CHECKS) await step(write);
}

/** Stores creates of one shapeOfValues as parts of one transaction; why each was not stored, null: it was. */
export async function insertMany(writes: readonly [Write, ...Write[]]): Promise<(PlatformError | null)[]> {
  const rows = await writes[0].unit.tx.all<InsertedRow>(insertManySql(writes));
  return rows.map((row, index) => {
    const write = writes[index];
    if (!write) throw new Error('The statement has answered for more rows than it was given.');
    assertFresh(write.view, row.metadataVersion, row.accessVersion);
    if (row.denied) return parentDenied();
    if (row.made) return null;
    return validationFailed(notFoundIn(referencesIn(write.given), row.found));
  });
}

function mayCreate({ view, object }: Write): void {
  requireObject(view.access, object.apiName, 'create');
}

async function readValues(write: Write): Promise<void> {
  const { view, object, access, body, unit } = write;
  const given = await readBody(view, object, access, body, 'create', unit.budget);
  const read = completeCreate(view, object, access, body, given, unit.budget);
  write.given = read.given;
  write.denied = read.denied;
  write.invalid.push(
    ...read.invalid,
    ...checkDependentPicklists(access, read.given),
    ...checkRecordType(access, read.given),
  );
}

async function insert(write: Write): Promise<void> {
  const { view, object, unit } = write;
  const row = await unit.commit<InsertRow>(insertSql(write), ({ claimed }) => claimed);
  assertFresh(view, row.metadataVersion, row.accessVersion);
  if (row.denied) throw parentDenied();
  const missing = notFoundIn(referencesIn(write.given), row.found);
  if (missing.length) throw validationFailed(missing);
  if (!row.claimed || row.body === null) return replyOfKey(write);
  noteEffect(write, 'create', object, { id: null, fields: createdFields(write).map((field) => field.apiName) });
  write.reply = { status: 201, headers: newRecordHeaders(write), body: Buffer.from(row.body) };
}
