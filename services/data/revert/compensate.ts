/**
 * Takes back what an agent run has done to one record, in one transaction: with the steps of a restore, an update and a
 * delete, so that all rules of such writes apply to who reverts.
 */

import type { SkipReason } from '../../../contracts/data/agent-runs.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { parseJson } from '../../../lib/json/parse.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { fieldOf, ownEntry } from '../../../lib/schema/lookup.ts';
import { isWritable } from '../../../lib/schema/record-types.ts';
import type { ObjectMeta } from '../../../lib/schema/snapshot.ts';
import type { IdempotencyKey } from '../../../mixins/mutation/key.ts';
import { type Attempt, runPart } from '../../../mixins/mutation/mutate.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import { etagOf } from '../sql.ts';
import { assertFresh } from '../tenants.ts';
import type { View } from '../view.ts';
import { recordError } from '../write/constraint-errors.ts';
import { deletionSteps } from '../write/delete.ts';
import { isNeeded } from '../write/restore.sql.ts';
import { restoreSteps } from '../write/restore.ts';
import { standardObject } from '../write/standard-objects.ts';
import { runTasks } from '../write/tasks.ts';
import { matchVersion, UPDATE_STEPS } from '../write/update.ts';
import type { MutationCall, MutationDeps, Step, Write } from '../write/write.ts';
import {
  type ChangedRecord,
  dependsStatement,
  REVERT_OPERATION,
  type RecordState,
  repointStatement,
  stateStatement,
  wasThere,
} from './revert.sql.ts';

/** A revert in progress. */
export interface Revert {
  readonly deps: MutationDeps;
  /** Of the person who reverts; its run is the one that is reverted, so that the trail shows both together. */
  readonly request: Unit['request'];
  readonly key: IdempotencyKey;
  readonly agentRunId: string;
}

/**
 * Outcome of a record; null: it is as before the run. undefined: it is back, but without a reference to what is not
 * there, or not yet: to be looked at again.
 */
export type Outcome = SkipReason | null | undefined;

type Compensation = 'restore' | 'update' | 'delete';

interface Plan {
  /** The values from before the run. */
  readonly body: Readonly<Record<string, unknown>>;
  /** References of a deleted record without which it comes back: what they name is not there. */
  readonly lost: readonly string[];
  /** Ids of created records that are deleted as well, and may refer to this one. */
  readonly companions: readonly string[];
}

const stepsOf = (compensation: Compensation, plan: Plan): readonly Step[] => {
  if (compensation === 'update') return UPDATE_STEPS;
  if (compensation === 'delete') return deletionSteps(refuseDependents(plan.companions));
  return restoreSteps(matchVersion, repoint(plan));
};

/**
 * A child that the run moved below a permanently deleted record returns to its former parent: it
 * could not come back first and be moved then. The restore itself leaves out what is lost, and the trail then has it.
 */
const repoint =
  ({ body, lost }: Plan) =>
  async ({ unit, object, id }: Write): Promise<void> => {
    const statement = repointStatement(unit.schema, object, id, body, lost);
    if (statement) await unit.tx.query(statement);
  };

/** A created record stays when others refer to it. */
const refuseDependents =
  (companions: readonly string[]) =>
  async (write: Write): Promise<void> => {
    const statement = dependsStatement(write.view, write, companions, false);
    if (!statement) return;
    const { depends } = await write.unit.tx.one<{ depends: boolean }>(statement);
    if (depends) throw new PlatformError('DELETE_RESTRICTED', 'Other records depend on this one.');
  };

/** Retries for a record that is changed concurrently. */
const LOOKS_MAX = 3;

/** Reverts the record. Errors that are not about the record are thrown. `companions`: see Plan. */
export async function compensate(
  revert: Revert,
  record: ChangedRecord,
  companions: readonly string[],
): Promise<Outcome> {
  if (record.transitioned) return 'STATE_CHANGED';
  for (let look = 1; ; look++)
    try {
      return await tryToCompensate(revert, record, companions);
    } catch (error) {
      if (!(error instanceof PlatformError)) throw error;
      if (error.code === 'ETAG_MISMATCH' && look < LOOKS_MAX) continue;
      const reason = reasonOf(error);
      if (reason === null) throw error;
      return reason;
    }
}

async function tryToCompensate(revert: Revert, record: ChangedRecord, companions: readonly string[]): Promise<Outcome> {
  const { deps, request, key } = revert;
  const { database } = deps.platform;
  const { objectApiName, id } = record;
  const call: MutationCall = { operationId: REVERT_OPERATION, path: { objectApiName, id }, query: {}, headers: {} };
  let view: View | undefined;
  let outcome: Outcome = null;
  await runPart(
    {
      database,
      request,
      call,
      key: { ...key, part: true },
      service: 'data',
      toError: (error) => recordError(view, call, error),
    },
    (attempt) =>
      deps.tenants.withView(request.tenantId, request.userId, async (current) => {
        view = current;
        outcome = await compensateOnce(revert, current, attempt, call, record, companions);
        return { body: null };
      }),
  );
  return outcome;
}

async function compensateOnce(
  { deps, request, agentRunId }: Revert,
  view: View,
  attempt: Attempt,
  call: MutationCall,
  record: ChangedRecord,
  companions: readonly string[],
): Promise<Outcome> {
  const { tenantId } = request;
  const { id } = record;
  const access = ownEntry(view.access.objects, record.objectApiName);
  if (!access) return 'RECORD_NOT_FOUND';
  const { object } = access;
  const state = await deps.platform.database.tenant(tenantId, (tx) =>
    tx.one<RecordState>(stateStatement(view, object, agentRunId, record)),
  );
  assertFresh(view, state.metadataVersion, state.accessVersion);
  const version = state.version ?? state.deletedVersion;
  if (version === null) return 'RECORD_NOT_FOUND';
  if (state.changedSince) return 'CHANGED_SINCE';
  const plan = { body: bodyOf(object, state.before), lost: lostOf(object, record, state), companions };
  const body = updateOf(plan, record, state);
  const compensations = compensationsOf(record, state, body);
  if (compensations.length === 0) return null;
  const special = standardObject(object);
  const task = { mutation: 'update', call, body, external: null } as const;
  // Asked before a connection is taken: another service needs one, too.
  const usernameConflict = (await special?.usernameConflict(deps, tenantId, id, access, task)) ?? null;
  const begin = { access, id, body, usernameConflict };
  await attempt.inUnit(async (unit) => {
    await runTasks(
      unit,
      { deps, call, view, commits: true },
      compensations.map((mutation) => (done) => {
        const ifMatch = [done.at(-1)?.etag ?? etagOf(version)];
        return { ...begin, mutation, ifMatch, steps: stepsOf(mutation, plan) };
      }),
    );
    return { body: null };
  });
  await special?.committed(deps, tenantId);
  return plan.lost.length > 0 ? undefined : null;
}

/** Writes that bring the record back to its state before the run, in this order. */
function compensationsOf(
  { first }: ChangedRecord,
  { version }: RecordState,
  body: Readonly<Record<string, unknown>>,
): readonly Compensation[] {
  const [before, isThere] = [wasThere(first), version !== null];
  // A record in the recycle bin again, or never created, is as before.
  if (!before && !isThere) return [];
  const changed = Object.keys(body).length > 0;
  return [
    ...(isThere ? [] : (['restore'] as const)),
    ...(changed && first !== 'create' ? (['update'] as const) : []),
    ...(before ? [] : (['delete'] as const)),
  ];
}

/** A record that comes back can do without references that need not have a value. */
function lostOf(object: ObjectMeta, { first }: ChangedRecord, { version, gone }: RecordState): string[] {
  if (version !== null || !wasThere(first)) return [];
  return gone.filter((name) => {
    const field = fieldOf(object, name);
    return field && !isNeeded(field);
  });
}

/** Values that the update sets: none that are lost, and for records going to the recycle bin no reference to missing ones. */
function updateOf({ body, lost }: Plan, { first }: ChangedRecord, { gone }: RecordState): Record<string, unknown> {
  const left = wasThere(first) ? lost : gone;
  return Object.fromEntries(Object.entries(body).filter(([name]) => !left.includes(name)));
}

/** The values from before the run of fields that are still there and that callers can write. */
function bodyOf(object: ObjectMeta, before: RecordState['before']): Record<string, unknown> {
  const body: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(before ?? {})) {
    const field = fieldOf(object, name);
    if (field && isWritable(object, field)) body[name] = parseJson(value, LIMITS.json_depth_max);
  }
  return body;
}

const REASONS: Readonly<Record<string, SkipReason>> = {
  ETAG_MISMATCH: 'CHANGED_SINCE',
  DELETE_RESTRICTED: 'DEPENDENTS_EXIST',
  SCOPE_INSUFFICIENT: 'NOT_PERMITTED',
  OBJECT_PERMISSION_DENIED: 'NOT_PERMITTED',
  FIELD_PERMISSION_DENIED: 'NOT_PERMITTED',
  RECORD_ACCESS_DENIED: 'NOT_PERMITTED',
  RECORD_NOT_FOUND: 'RECORD_NOT_FOUND',
  OBJECT_NOT_FOUND: 'RECORD_NOT_FOUND',
  VALIDATION_FAILED: 'VALIDATION_FAILED',
  UNIQUE_VALUE_CONFLICT: 'UNIQUE_VALUE_CONFLICT',
  DUPLICATE_RULE: 'DUPLICATE_RULE',
  WRITE_CONTENTION: 'WRITE_CONTENTION',
};

/** Why a record cannot be reverted; null: the error is about something else. */
function reasonOf({ code, errors = [] }: PlatformError): SkipReason | null {
  // The run has changed a field that this person cannot see.
  if (code === 'VALIDATION_FAILED' && errors.some((item) => item.code === 'FIELD_UNKNOWN')) return 'NOT_PERMITTED';
  return ownEntry(REASONS, code) ?? null;
}
