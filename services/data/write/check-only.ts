/**
 * Dry run of a mutation: the same steps in a transaction that is rolled back. What would change is noted on the way,
 * and a refusal of the content becomes the verdict. Source: docs/reference/records.md#dry-run.
 */

import { type PlatformError, type Violation, violation } from '../../../lib/errors/platform-error.ts';
import { VIOLATIONS_MAX } from '../../../lib/errors/violation-list.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import type { ObjectMeta } from '../../../lib/schema/snapshot.ts';
import type { Effect } from '../../../mixins/mutation/unit.ts';
import type { Write } from './write.ts';

/** Notes what a dry run would change in records of an object, and the event about it. */
export function noteEffect(
  write: Write,
  kind: Effect['kind'],
  object: ObjectMeta,
  record: { readonly id: string | null; readonly fields?: readonly string[]; readonly count?: number },
): void {
  if (!write.unit.checkOnly) return;
  const access = ownEntry(write.view.access.objects, object.apiName);
  // What the caller cannot see is not named.
  if (!access) return;
  const { id, count } = record;
  const fields = (record.fields ?? []).filter((name) => ownEntry(access.fields, name)?.read).sort();
  if (kind === 'update' && fields.length === 0) return;
  const effect = { objectApiName: object.apiName, id, fields, ...(count === undefined ? {} : { count }) };
  write.unit.effects.push({ kind, ...effect });
  if (object.features.events) write.unit.effects.push({ kind: 'event', ...effect });
}

/** 409 that are about the content of the request and not about its form or the caller's permissions. */
const CONFLICTS: ReadonlySet<string> = new Set([
  'UNIQUE_VALUE_CONFLICT',
  'DELETE_RESTRICTED',
  'DUPLICATE_RULE',
  'STATE_CONFLICT',
]);

/** The answer of a dry run whose steps all passed. `reply` is what the mutation itself would have answered. */
export function passed(write: Write, reply: OperationReply): OperationReply {
  // A new record gets its id when it is created, and a deleted one has no state to show.
  const record = write.mutation !== 'delete' && Buffer.isBuffer(reply.body) ? reply.body.toString() : 'null';
  const shown = write.mutation === 'create' ? record.replace(`"id":"${write.id}"`, '"id":null') : record;
  return answer(true, shown, [], [], write.unit.effects);
}

/** The answer of a dry run that was refused for its content; null: the refusal stays an error. */
export function refused(failure: PlatformError): OperationReply | null {
  if (failure.status !== 422 && !CONFLICTS.has(failure.code)) return null;
  if (failure.code === 'DUPLICATE_RULE') return answer(false, 'null', [], failure.details?.['rules'] ?? [], []);
  const { details = {}, code, message } = failure;
  const errors: readonly Violation[] = failure.errors?.length
    ? failure.errors.slice(0, VIOLATIONS_MAX)
    : [violation('', code, message, { params: { ...details } })];
  return answer(false, 'null', errors, [], []);
}

/** `record` is JSON already: numbers stay as the database wrote them. */
const answer = (
  valid: boolean,
  record: string,
  errors: readonly Violation[],
  duplicates: unknown,
  effects: readonly Effect[],
): OperationReply => ({
  status: 200,
  headers: {},
  body: Buffer.from(
    `{"checkOnly":true,"valid":${valid},"record":${record},"errors":${JSON.stringify(errors)},` +
      `"duplicates":${JSON.stringify(duplicates)},"effects":${JSON.stringify(effects)},"approvalRequired":false}`,
  ),
});
