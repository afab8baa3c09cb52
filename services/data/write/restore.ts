/**
 * Bringing a deleted record back, with everything that was deleted with it. It comes back as it was: rules and
 * duplicates are not checked. Source: docs/reference/records.md#restoring.
 */

import { READ_RECORD } from '../../../contracts/data/records.ts';
import { addressOf } from '../../../contracts/operations.ts';
import { requireObject } from '../../../lib/access/decide.ts';
import { type Violation, violation } from '../../../lib/errors/platform-error.ts';
import { objectOf, ownEntry } from '../../../lib/schema/lookup.ts';
import type { FieldMeta, ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { etagOf, storedFields } from '../sql.ts';
import { noteEffect } from './check-only.ts';
import { readLock } from './checks.ts';
import { type Ids, type LockedRow, linksTo } from './delete.sql.ts';
import {
  completeSql,
  deletedWithSql,
  deletionSql,
  type GoneRow,
  goneSql,
  isNeeded,
  lockDeletedSql,
  lockParentsSql,
  referencesOf,
  restoredSql,
  restoreSql,
  visibleCountSql,
} from './restore.sql.ts';
import { requireReach } from './sharing.ts';
import { pointerTo, validationFailed } from './violations.ts';
import type { Step, Write } from './write.ts';

/** In the order of the checks of every mutation. */
export const RESTORE_STEPS: readonly Step[] = restoreSteps();

/** `guard`: what else must hold before the record is brought back. */
export function restoreSteps(...guard: readonly Step[]): readonly Step[] {
  return [lockDeleted, mayRestore, refuseUnreached, ...guard, bringBack];
}

/** Claims the key and locks the deleted record. Of two restores one finds it gone. */
async function lockDeleted(write: Write): Promise<void> {
  const row = await write.unit.tx.one<LockedRow>(lockDeletedSql(write));
  if (!(await readLock(write, row))) return;
  write.reached = row.reached;
}

function mayRestore({ view, object }: Write): void {
  requireObject(view.access, object.apiName, 'delete');
}

function refuseUnreached({ reached }: Write): void {
  requireReach(reached, 'delete');
}

async function bringBack(write: Write): Promise<void> {
  const { object, unit } = write;
  const returning = await collect(write);
  const parents = lockParentsSql(write, returning);
  if (parents) await unit.tx.query(parents);
  const gone = await goneReferences(write, returning);
  await unit.tx.query(restoreSql(write, returning, gone));
  // Rollups of the record have been computed again by now.
  const { recordVersion, body } = await unit.tx.one<{ recordVersion: number; body: string }>(restoredSql(write));
  const headers = {
    ETag: etagOf(recordVersion),
    Location: addressOf(READ_RECORD, { objectApiName: object.apiName, id: write.id }),
  };
  await noteEffects(write, returning);
  unit.tally.records = [...returning.values()].reduce((sum, ids) => sum + ids.size, 0);
  await unit.commit(completeSql(write, headers, body));
  write.reply = { status: 201, headers, body: Buffer.from(body) };
}

/**
 * The returning records, locked: with the root of a deletion everything that was deleted with it, with another record of it
 * what would have been deleted with that one. The record itself comes first. Objects that are gone stay gone.
 */
async function collect(write: Write): Promise<Ids> {
  const { view, unit } = write;
  const object = objectOf(view.snapshot, write.object.apiName) ?? write.object;
  const found = new Map<ObjectMeta, Set<string>>([[object, new Set([write.id])]]);
  const add = (of: ObjectMeta | undefined, id: string): boolean => {
    const ids = (of && found.get(of)) ?? new Set();
    if (!of || ids.has(id)) return false;
    found.set(of, ids.add(id));
    return true;
  };
  const deletion = await unit.tx.all<{ rootId: string; object: string; recordId: string }>(deletionSql(write));
  const rootId = deletion[0]?.rootId ?? write.id;
  if (rootId === write.id) {
    for (const item of deletion) add(objectOf(view.snapshot, item.object), item.recordId);
    return found;
  }
  const queue: [ObjectMeta, string[]][] = [[object, [write.id]]];
  for (const [parent, ids] of queue)
    for (const link of linksTo(view, parent)) {
      if (link.onDelete !== 'cascade') continue;
      const rows = await unit.tx.all<{ recordId: string }>(deletedWithSql(write, rootId, link, ids));
      const fresh = rows.map(({ recordId }) => recordId).filter((id) => add(link.child, id));
      if (fresh.length) queue.push([link.child, fresh]);
    }
  return found;
}

/**
 * Ids that the returning records refer to and that are not there, by field. What is there is locked until the end. 422
 * when a record cannot be without them: it needs a value, or it belongs to what is gone.
 */
async function goneReferences(write: Write, returning: Ids): Promise<ReadonlyMap<FieldMeta, readonly string[]>> {
  const asked = [...returning].flatMap(([object, ids]) =>
    referencesOf(object).map((field) => ({ object, field, ids })),
  );
  const gone = new Map<FieldMeta, readonly string[]>();
  if (asked.length === 0) return gone;
  const rows = await write.unit.tx.all<GoneRow>(goneSql(write, returning, asked));
  const violations: Violation[] = [];
  for (const { index, refs, ofRoot } of rows) {
    const item = asked[index];
    if (!refs || !item) continue;
    const { object, field } = item;
    gone.set(field, refs);
    if (isNeeded(field)) violations.push(missing(write, object, field, ofRoot));
  }
  if (violations.length) throw validationFailed(violations);
  return gone;
}

/** A field that the caller cannot read is not named. */
function missing(write: Write, object: ObjectMeta, field: FieldMeta, ofRoot: boolean): Violation {
  const readable = ownEntry(ownEntry(write.view.access.objects, object.apiName)?.fields ?? {}, field.apiName)?.read;
  const name = readable ? field.apiName : null;
  const message = 'A record that this one belongs to is gone; restore that one first.';
  return violation(ofRoot && name !== null ? pointerTo(name) : '', 'REFERENCE_NOT_FOUND', message, {
    field: name,
    params: name === null ? {} : { objectApiName: object.apiName },
  });
}

/** For a dry run: the record, and how many of those the caller can see come back with it. */
async function noteEffects(write: Write, returning: Ids): Promise<void> {
  const { view, object, unit } = write;
  if (!unit.checkOnly) return;
  noteEffect(write, 'create', object, { id: write.id, fields: storedFields(object).map((field) => field.apiName) });
  for (const [child, ids] of returning) {
    if (!ownEntry(view.access.objects, child.apiName)) continue;
    const others = [...ids].filter((id) => id !== write.id);
    const { count } = await unit.tx.one<{ count: number }>(visibleCountSql(write, child, others));
    if (count) noteEffect(write, 'create', child, { id: null, count });
  }
}
