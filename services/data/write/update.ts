/**
 * Changing a record step by step, when update-at-once.ts cannot or did not: one statement claims the key, locks the
 * record and compares; after the checks a second one writes everything and travels together with COMMIT.
 */
import { type RecordOperation, requireObject } from '../../../lib/access/decide.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { etagOf } from '../sql.ts';
import { checkDependentPicklists, readBody } from './body.ts';
import { noteEffect } from './check-only.ts';
import { readLock, refuseDenied } from './checks.ts';
import { confirmedSql } from './duplicates.sql.ts';
import { checkDuplicates } from './duplicates.ts';
import { checkFiles } from './files.ts';
import { noticeOwner } from './notices.ts';
import { checkRecordType } from './record-types.ts';
import { resolveValues } from './references.ts';
import { movesItself } from './rollups.ts';
import { checkRules } from './rules.ts';
import { requireReach } from './sharing.ts';
import { checkStandard, completeBody, permitStandard, storeStandardSql } from './standard-objects.ts';
import { trailSql } from './trail.ts';
import {
  answerSql,
  changeSql,
  completeUnchangedSql,
  type LockedRow,
  type LockPlan,
  lockForUpdateSql,
  lockManySql,
  type ReplyRow,
  storedReplySql,
  storeSql,
  updateManySql,
} from './update.sql.ts';
import { validationFailed } from './violations.ts';
import type { FieldValue, Step, Write } from './write.ts';

const BEFORE_LOCK: readonly Step[] = [completeBody, readValues];

/** Checks of the locked record. */
const OF_LOCKED: readonly Step[] = [
  mayUpdate,
  refuseDenied,
  refuseUnreached,
  permitStandard,
  matchVersion,
  checkContent,
  checkStandard,
  checkFiles,
  checkRules,
  refuseContent,
  noticeOwner,
];

/** In the order of the checks of every mutation. */
export const UPDATE_STEPS: readonly Step[] = [
  ...BEFORE_LOCK,
  lockRecord,
  ...OF_LOCKED,
  checkDuplicates,
  keepWhenEqual,
  store,
];

const OF_PERMISSION: readonly Step[] = [mayUpdate, refuseUnreached, permitStandard];

/** The same for an operation that decides by itself who may change which record; the fields are those of its view. */
export const PERMITTED_UPDATE_STEPS = UPDATE_STEPS.filter((step) => !OF_PERMISSION.includes(step));

/** What can be read of an update before its record is locked. */
export async function readUpdate(write: Write): Promise<void> {
  for (const step of BEFORE_LOCK) await step(write);
}

/** Locks the records of updates, in the order of their ids; null: their bodies have not the same fields. */
export function lockMany(writes: readonly Write[]): Promise<LockedRow[]> | null {
  const statement = lockManySql(writes, { reads: [], sets: [], pending: [] }, operationOf);
  return statement && (writes[0]?.unit.tx.all<LockedRow>(statement) ?? null);
}

/** The checks of an update that may be stored together with others: no duplicate rule looks at it. */
export async function checkLocked(
  write: Write,
  row: LockedRow,
  steps: (steps: readonly Step[]) => readonly Step[],
): Promise<void> {
  if (!(await takeLock(write, row))) throw new Error('A part has no key that could have been used.');
  for (const step of steps(OF_LOCKED)) await step(write);
}

/** Stores updates of the same fields. */
export async function updateMany(writes: readonly [Write, ...Write[]]): Promise<void> {
  const { updated } = await writes[0].unit.tx.one<{ updated: number }>(updateManySql(writes));
  if (updated !== writes.length) throw new Error('A locked record was not there any more.');
}

export async function readValues(write: Write): Promise<void> {
  const read = await readBody(write.view, write.object, write.access, write.body, 'update', write.unit.budget);
  write.given = read.given;
  write.denied = read.denied;
  write.invalid.push(...read.invalid);
  if (Object.keys(write.body).length === 0 && !write.external)
    write.invalid.push(violation('', 'FIELD_REQUIRED', 'The body names no field to change.'));
}

/**
 * Claims the key, takes the row lock, looks references up and compares given values with stored ones: one round trip.
 */
export async function lockRecord(write: Write, plan: LockPlan = { reads: [], sets: [], pending: [] }): Promise<void> {
  const { unit, given } = write;
  await takeLock(write, await unit.tx.one<LockedRow>(lockForUpdateSql(write, plan, operationOf(given))));
}

/** False: the key had been used before. */
async function takeLock(write: Write, row: LockedRow): Promise<boolean> {
  if (!(await readLock(write, row))) return false;
  write.reached = row.reached;
  write.stored = row.stored;
  Object.assign(write, resolveValues(write, write.given, row));
  return true;
}

/** Changing the owner needs more of the record's sharing than other changes. */
const operationOf = (given: readonly FieldValue[]): RecordOperation =>
  given.some((item) => item.field.apiName === 'ownerId') ? 'changeOwner' : 'update';

export function refuseUnreached({ reached, changed }: Write): void {
  requireReach(reached, operationOf(changed));
}

function mayUpdate({ view, object }: Write): void {
  requireObject(view.access, object.apiName, 'update');
}

export function matchVersion({ ifMatch, recordVersion, external }: Write): void {
  const current = etagOf(recordVersion);
  if (external && ifMatch.length === 0) return;
  if (ifMatch.includes(current)) return;
  throw new PlatformError('ETAG_MISMATCH', 'The record has changed since it was read: read it again and reconcile.', {
    details: { currentETag: current },
  });
}

function checkContent(write: Write): void {
  const { access, given, stored } = write;
  write.invalid.push(...checkDependentPicklists(access, given, stored), ...checkRecordType(access, given, stored));
}

function refuseContent({ invalid }: Write): void {
  if (invalid.length) throw validationFailed(invalid);
}

/** Nothing differs: nothing is committed but the key, the ETag stays. */
async function keepWhenEqual(write: Write): Promise<void> {
  if (write.changed.length) return;
  const headers = { ETag: etagOf(write.recordVersion) };
  write.unit.tally.records = 0;
  const { body } = await write.unit.commit<ReplyRow>(completeUnchangedSql(write, headers));
  write.reply = { status: 200, headers, body: Buffer.from(body) };
}

/** SQL of the answer as text, of the row `alias`. */
type Answer = (sql: Sql, alias: string) => string;

/**
 * The end of a write that changed one record: `ctes` make `updated`, the record in its new version. The answer, which
 * stands under the key from now on, shows it as it is after the write.
 */
export async function storeAndAnswer(
  write: Write,
  sql: Sql,
  ctes: readonly string[],
  { status, version, answer }: { status: 200 | 201; version: number; answer: Answer },
): Promise<OperationReply> {
  const { tx, commit } = write.unit;
  if (!movesItself(write)) {
    const headers = { ETag: etagOf(version) };
    const { body } = await commit<ReplyRow>(storeSql(write, sql, ctes, { status, headers, answer }));
    return { status, headers, body: Buffer.from(body) };
  }
  // Its rollups follow when the statement has ended that changes it. Both statements travel together.
  tx.gather();
  void tx.query(sql.statement(`WITH ${ctes.join(',\n')}\nSELECT FROM updated`));
  const { body, etag } = await commit<ReplyRow & { etag: string }>(storedReplySql(write, { status, answer }));
  return { status, headers: { ETag: etag }, body: Buffer.from(body) };
}

async function store(write: Write): Promise<void> {
  const { object, changed } = write;
  const sql = new Sql();
  const version = write.recordVersion + 1;
  const ctes = [
    ...changeSql(write, sql, version),
    ...trailSql(write, sql.for(write), object, { kind: 'update', from: 'change', transactionSize: write.place.size }),
    ...confirmedSql(write, sql.for(write), 'change'),
    ...storeStandardSql(write, sql, 'change'),
  ];
  const answer: Answer = (_sql, alias) => `${answerSql(write, alias)}::text`;
  const reply = await storeAndAnswer(write, sql, ctes, { status: 200, version, answer });
  noteEffect(write, 'update', object, { id: write.id, fields: changed.map(({ field }) => field.apiName) });
  write.reply = reply;
}
