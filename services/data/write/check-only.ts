/**
 * Dry run of a mutation: the same steps in a transaction that is rolled back. What would change is noted on the way.
 * Source: docs/reference/records.md#dry-run.
 */

import type { OperationReply } from '../../../lib/operation.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import type { ObjectMeta } from '../../../lib/schema/snapshot.ts';
import type { Effect } from '../../../mixins/mutation/unit.ts';
import { approving } from '../../../mixins/mutation/verdict.ts';
import type { Write } from './write.ts';

/** True when an answer may name the object: the caller can see it and no policy denies the check. */
export const isNamed = ({ view, unit }: Write, objectApiName: string): boolean =>
  ownEntry(view.access.objects, objectApiName) !== undefined && !unit.request.deniedObjects?.includes(objectApiName);

/** Notes what a dry run would change in records of an object, and the event about it. */
export function noteEffect(
  write: Write,
  kind: Effect['kind'],
  object: ObjectMeta,
  record: { readonly id: string | null; readonly fields?: readonly string[]; readonly count?: number },
): void {
  if (!write.unit.checkOnly) return;
  const access = ownEntry(write.view.access.objects, object.apiName);
  if (!access || !isNamed(write, object.apiName)) return;
  const { id, count } = record;
  const fields = (record.fields ?? []).filter((name) => ownEntry(access.fields, name)?.read).sort();
  if (kind === 'update' && fields.length === 0) return;
  const effect = { objectApiName: object.apiName, id, fields, ...(count === undefined ? {} : { count }) };
  write.unit.effects.push({ kind, ...effect });
  if (object.features.events) write.unit.effects.push({ kind: 'event', ...effect });
}

/** The answer of a dry run whose steps all passed. `reply` is what the mutation itself would have answered. */
export function passed(write: Write, reply: OperationReply): OperationReply {
  // A new record gets its id when it is created, and a deleted one has no state to show.
  const record = write.mutation !== 'delete' && Buffer.isBuffer(reply.body) ? reply.body.toString() : 'null';
  const shown = write.mutation === 'create' ? record.replace(`"id":"${write.id}"`, '"id":null') : record;
  return approving(write.unit.request, shown, write.unit.effects);
}
