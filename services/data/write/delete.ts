/**
 * Deleting a record: what depends on it is found level by level and locked, then one statement moves everything to the
 * recycle bin and travels together with COMMIT.
 */

import { requireObject } from '../../../lib/access/decide.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { objectOf } from '../../../lib/schema/lookup.ts';
import type { FieldMeta, ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import { isNamed, noteEffect } from './check-only.ts';
import { readLock } from './checks.ts';
import {
  cascadeSql,
  deletionAt,
  dependentsSql,
  detachSql,
  type Ids,
  type Link,
  type LockedRow,
  linksTo,
  lockForDeleteSql,
  removeSql,
} from './delete.sql.ts';
import { requireReach } from './sharing.ts';
import { standardObject } from './standard-objects.ts';
import { matchVersion } from './update.ts';
import type { Step, Write } from './write.ts';

/** In the order of the checks of every mutation. */
export const DELETE_STEPS: readonly Step[] = deletionSteps();

/** `guard`: what else must hold before anything is removed. */
export function deletionSteps(...guard: readonly Step[]): readonly Step[] {
  return [lockRecord, mayDelete, refuseUnreached, matchVersion, ...guard, removeWithDependents];
}

/** More records than this are not deleted together with one. */
const CASCADE_MAX = LIMITS.delete_cascade_max;

async function lockRecord(write: Write): Promise<void> {
  const row = await write.unit.tx.one<LockedRow>(lockForDeleteSql(write));
  await readLock(write, row);
  write.reached = row.reached;
}

function refuseUnreached({ reached }: Write): void {
  requireReach(reached, 'delete');
}

function mayDelete({ view, object, access }: Write): void {
  const refusal = standardObject(object)?.deleteRefusal;
  if (refusal && !access.permission.delete)
    throw new PlatformError('OBJECT_PERMISSION_DENIED', refusal, {
      details: { objectApiName: object.apiName, operation: 'delete', layer: 'objectPermission' },
    });
  requireObject(view.access, object.apiName, 'delete');
}

async function removeWithDependents(write: Write): Promise<void> {
  // A record is deleted with its parent whatever its own sharing says; it is reported only if the user can see it.
  const hidden = new Set<string>();
  const doomed = await collectCascade(write, hidden);
  await refuseRestricted(write, doomed);
  await detach(write, doomed);
  await remove(write, doomed, hidden);
}

/** 409 when records depend on these that are not deleted with them. */
async function refuseRestricted(write: Write, doomed: Ids): Promise<void> {
  // How many of the dependents the user can see, by object.
  const restricted = new Map<string, number>();
  const counts: Promise<void>[] = [];
  for (const [object, ids] of doomed)
    for (const link of linksTo(write.view, object)) {
      if (link.onDelete !== 'restrict') continue;
      const asked = write.unit.tx.one<{ count: number; visible: number }>(dependentsSql(write, link, ids, doomed));
      const { apiName } = link.child;
      counts.push(
        asked.then(({ count, visible }) => {
          if (count) restricted.set(apiName, (restricted.get(apiName) ?? 0) + visible);
        }),
      );
    }
  await all(counts);
  if (restricted.size)
    throw new PlatformError('DELETE_RESTRICTED', 'Other records depend on this one; delete or change them first.', {
      // Objects and records that the caller cannot see are not reported.
      details: { dependents: visibleCounts(write, restricted) },
    });
}

const visibleCounts = (write: Write, counts: ReadonlyMap<string, number>) =>
  [...counts]
    .filter(([apiName, count]) => count > 0 && isNamed(write, apiName))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([objectApiName, count]) => ({ objectApiName, count }));

/** Waits for all, then throws the first failure: no statement is left running behind a rollback. */
async function all(promises: Promise<unknown>[]): Promise<void> {
  const failed = (await Promise.allSettled(promises)).find((result) => result.status === 'rejected');
  if (failed) throw failed.reason;
}

/** Ids by object of everything that is deleted, locked in id order within an object. The record itself comes first. */
async function collectCascade(write: Write, hidden: Set<string>): Promise<Map<ObjectMeta, Set<string>>> {
  const root = objectOf(write.view.snapshot, write.object.apiName) ?? write.object;
  const doomed = new Map<ObjectMeta, Set<string>>([[root, new Set([write.id])]]);
  let total = 1;
  let level = new Map<ObjectMeta, string[]>([[root, [write.id]]]);
  while (level.size) {
    const next = new Map<ObjectMeta, string[]>();
    const add = (child: ObjectMeta, rows: readonly { id: string; visible: boolean }[]): void => {
      const known = doomed.get(child) ?? new Set();
      const fresh = rows.map(({ id }) => id).filter((id) => !known.has(id));
      if (fresh.length === 0) return;
      for (const { id, visible } of rows) if (!visible) hidden.add(id);
      for (const id of fresh) known.add(id);
      doomed.set(child, known);
      next.set(child, [...(next.get(child) ?? []), ...fresh]);
      total += fresh.length;
    };
    const found: Promise<void>[] = [];
    for (const [object, ids] of level)
      for (const link of linksTo(write.view, object)) {
        if (link.onDelete !== 'cascade') continue;
        const statement = cascadeSql(write, link, ids, CASCADE_MAX + 1);
        const rows = write.unit.tx.all<{ id: string; visible: boolean }>(statement);
        found.push(rows.then((children) => add(link.child, children)));
      }
    await all(found);
    if (total > CASCADE_MAX + 1)
      throw new PlatformError('TOO_MANY_ITEMS', 'Too many records depend on this one to delete them together.', {
        details: { max: CASCADE_MAX },
      });
    level = next;
  }
  return doomed;
}

/** Clears references to the deleted records in records that stay. */
async function detach(write: Write, doomed: Ids): Promise<void> {
  const detached: { link: Link; ids: ReadonlySet<string> }[] = [];
  for (const [object, ids] of doomed)
    for (const link of linksTo(write.view, object)) if (link.onDelete === 'setNull') detached.push({ link, ids });
  const statements: Promise<unknown>[] = [];
  for (const [child, links] of Map.groupBy(detached, ({ link }) => link.child)) {
    // A field may be reached over several parents of the cascade; each field is set once.
    const references = new Map<FieldMeta, string[]>();
    for (const { link, ids } of links) references.set(link.field, [...(references.get(link.field) ?? []), ...ids]);
    const fields = [...references.keys()].map((field) => field.apiName);
    const counted = write.unit.tx.one<{ count: number }>(detachSql(write, child, references, doomed));
    statements.push(
      counted.then(({ count }) => {
        write.unit.tally.records += count;
        if (count) noteEffect(write, 'update', child, { id: null, count, fields });
      }),
    );
  }
  await all(statements);
}

async function remove(write: Write, doomed: Ids, hidden: ReadonlySet<string>): Promise<void> {
  const { object } = write;
  const deletion = deletionAt(new Date(platformTime()));
  const counts = new Map<string, number>();
  for (const [{ apiName }, ids] of doomed) counts.set(apiName, [...ids].filter((id) => !hidden.has(id)).length);
  for (const ids of doomed.values()) write.unit.tally.records += ids.size;
  // The record itself is not one of those that were deleted with it, and is counted already.
  write.unit.tally.records--;
  counts.set(object.apiName, (counts.get(object.apiName) ?? 1) - 1);
  const cascaded = visibleCounts(write, counts);
  const body = JSON.stringify({
    id: write.id,
    objectApiName: object.apiName,
    deleted: true,
    deletedAt: formatTimestamp(deletion.deletedAt),
    restorableUntil: formatTimestamp(deletion.restorableUntil),
    cascaded,
  });
  await write.unit.commit(removeSql(write, doomed, deletion, body));
  noteEffect(write, 'delete', object, { id: write.id });
  for (const { objectApiName, count } of cascaded) {
    const child = write.view.snapshot.objects[objectApiName];
    if (child) noteEffect(write, 'delete', child, { id: null, count });
  }
  write.reply = { status: 200, headers: {}, body: Buffer.from(body) };
}
