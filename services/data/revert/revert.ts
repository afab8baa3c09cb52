/**
 * Reverts an agent run: record by record, each in a transaction of its own, until all are done or the time is up. What
 * has been done is read from the audit trail, so that a call that goes on where another one ended, or died, does
 * nothing twice and answers for all. Reasons: docs/decisions/revert-of-runs.md.
 */

import { type RevertResult, SKIP_REASONS, type SkipReason } from '../../../contracts/data/agent-runs.ts';
import type { RecordName } from '../../../contracts/data.ts';
import type { OperationInput } from '../../../contracts/operations.ts';
import { holdsPermission, permissionDenied } from '../../../lib/access/system-permission.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import { recordKey } from '../../../lib/schema/record-key.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { failKeySql } from '../../../mixins/mutation/key.sql.ts';
import { type IdempotencyKey, idempotencyKey, storedReply } from '../../../mixins/mutation/key.ts';
import { runIdempotent } from '../../../mixins/mutation/mutate.ts';
import { requireApi } from '../object-access.ts';
import { visibleRecords } from '../trail/of-requests.ts';
import type { View } from '../view.ts';
import type { MutationDeps } from '../write/write.ts';
import { compensate, type Outcome, type Revert } from './compensate.ts';
import {
  type ChangedRecord,
  changedRecordsStatement,
  dependsStatement,
  sharedRecordsStatement,
  skippedStatement,
  wasThere,
} from './revert.sql.ts';

export interface RevertDeps extends MutationDeps {
  /** How it is with a run; null: there is none. */
  readonly runState: (tenantId: string, runId: string) => Promise<{ readonly status: string } | null>;
}

export type RevertInput = OperationInput<'agent.runs.revert'>;

/** Time that must remain of a request when the last record is begun. */
const RESERVE_MS = 10_000;

export function revertRun(deps: RevertDeps, caller: RequestContext, call: RevertInput): Promise<OperationReply> {
  const { database } = deps.platform;
  const agentRunId = call.path.runId.toLowerCase();
  const request = contextOf(caller, agentRunId);
  const key = idempotencyKey(call, request);
  const until = performance.now() + Math.min(LIMITS.revert_time_ms, request.deadline - platformTime() - RESERVE_MS);
  return runIdempotent({ database, request, call, key, service: 'data' }, async ({ inUnit }) => {
    await authorize(deps, caller, agentRunId);
    const stored = await takeUpKey(deps, request, key);
    if (stored) return stored;
    const result = await revertUntil({ deps, request, key, agentRunId }, until);
    const reply = { status: 201, body: result };
    // Without a stored answer the same request goes on.
    if (result.remaining > 0) return reply;
    return inUnit(async (unit) => {
      const known = await unit.claim();
      if (known) return known;
      const [reverted, skipped] = [result.reverted.length, result.skipped.length];
      unit.audit({ changes: { reverted: { from: null, to: reverted }, skipped: { from: null, to: skipped } } });
      unit.emit({ type: 'agent.run.reverted', data: { runId: agentRunId, reverted, skipped } });
      return unit.complete(reply);
    });
  });
}

/** The context of the person who reverts. What it leaves in the trail is found by the run that it is about. */
function contextOf(caller: RequestContext, agentRunId: string): RequestContext {
  return isUuid(agentRunId) ? { ...caller, aboutRunId: agentRunId } : caller;
}

const ENDED: readonly string[] = ['COMPLETED', 'FAILED', 'CANCELED', 'EXPIRED'];

function requireOverseer(view: View): void {
  requireApi(view);
  if (!holdsPermission(view.access.system, 'approveAgentActions')) throw permissionDenied('approveAgentActions');
}

async function authorize({ tenants, runState }: RevertDeps, caller: RequestContext, runId: string): Promise<void> {
  const { tenantId, userId } = caller;
  requireOverseer(await tenants.view(tenantId, userId));
  if (!caller.person || caller.agentRunId !== null)
    throw new PlatformError('APPROVAL_ACTOR_NOT_HUMAN', 'Only a person can revert a run, outside of a run.');
  const run = isUuid(runId) ? await runState(tenantId, runId) : null;
  if (!run) throw new PlatformError('RUN_NOT_FOUND', 'The run does not exist, or you have no access to it.');
  if (!ENDED.includes(run.status))
    throw new PlatformError('STATE_CONFLICT', 'The run is still active. Complete or cancel it first.', {
      details: { currentState: run.status, allowed: [...ENDED] },
    });
}

/**
 * Leaves the key in a state in which the same request may take it up again. Answers what is stored under it, or null
 * when the request has work to do.
 */
function takeUpKey(
  { platform }: RevertDeps,
  request: RequestContext,
  key: IdempotencyKey,
): Promise<OperationReply | null> {
  return platform.database.tenant(request.tenantId, async (tx) => {
    const sql = new Sql();
    if (await tx.first(sql.statement(failKeySql(tx.schema, sql.for(key).of, false)))) return null;
    return storedReply(tx, key);
  });
}

/** A record of the run. `outcome`: undefined while it is not known. */
interface Item {
  readonly record: ChangedRecord;
  readonly visible: boolean;
  outcome: Outcome;
  /** The reason in the last entry of the trail that a call with this key has made about it; null: there is none. */
  noted: string | null;
  /** It was tried again after the last record that could be reverted: nothing has changed for it since. */
  settled: boolean;
}

/** Reasons that may be gone when other records have been reverted. */
const DEPENDENT: ReadonlySet<SkipReason> = new Set(['DEPENDENTS_EXIST', 'VALIDATION_FAILED', 'UNIQUE_VALUE_CONFLICT']);

const isUnknown = ({ outcome }: Item): boolean => outcome === undefined;

/** Another record was in its way, and may not be any more. */
const isBlocked = ({ visible, outcome, settled }: Item): boolean =>
  visible && !settled && !!outcome && DEPENDENT.has(outcome);

const isOpen = (item: Item): boolean => isUnknown(item) || isBlocked(item);

const isRestored = ({ outcome, record }: Item): boolean =>
  !outcome && record.last === 'delete' && wasThere(record.first);

async function revertUntil(revert: Revert, until: number): Promise<RevertResult> {
  const { items, shared } = await changesOf(revert);
  const notes = new Notes(revert);
  // A call that has nothing but repetitions to do gets further, however little time it has.
  const end = items.some(isUnknown) ? until : Math.max(until, performance.now() + RESERVE_MS / 2);
  try {
    for (const item of items) if (!item.visible && item.noted === null) await notes.add(item);
    await tryAll(revert, items, end, notes);
  } finally {
    await notes.write();
  }
  return resultOf(items, shared);
}

/**
 * Tries records as long as that helps and time is left: first those of which it is not known what becomes of them, then
 * those that were in the way of each other.
 */
async function tryAll(revert: Revert, items: readonly Item[], until: number, notes: Notes): Promise<void> {
  /** Records retried since the last one that could be reverted. */
  const repeated = new Set<Item>();
  let begun = false;
  const isOver = (): boolean => begun && performance.now() >= until;
  while (!isOver()) {
    const unknown = items.filter(isUnknown);
    const open = unknown.length > 0 ? unknown : items.filter(isBlocked);
    if (open.length === 0) break;
    const companions = unknown.length > 0 ? [] : await referringToEachOther(revert, items, until);
    let restores = false;
    for (const item of open) {
      if (isOver()) break;
      begun = true;
      item.outcome = await compensate(revert, item.record, companions);
      restores ||= isRestored(item);
      if (!item.outcome) {
        for (const other of items) other.settled = false;
        repeated.clear();
      } else if (unknown.length > 0) await notes.add(item);
      else {
        item.settled = true;
        repeated.add(item);
      }
    }
    if (restores) forgetGone(items);
  }
  // The second note of a record tells the next call that it need not begin with that one again.
  const remains = items.some(isOpen);
  for (const item of repeated) if (remains || item.outcome !== item.noted) await notes.add(item);
}

/** A record that was missing may be back: a record that is restored brings along what was deleted with it. */
function forgetGone(items: readonly Item[]): void {
  for (const item of items)
    if (item.outcome === null && item.record.last === 'delete' && !wasThere(item.record.first))
      item.outcome = undefined;
}

/** Ids of records that are to be deleted and that nothing refers to but each other. */
async function referringToEachOther(
  { deps, request }: Revert,
  items: readonly Item[],
  until: number,
): Promise<readonly string[]> {
  const isCreated = ({ outcome, record }: Item): boolean => outcome === 'DEPENDENTS_EXIST' && !wasThere(record.first);
  let group = items.filter(isCreated).map(({ record }) => record);
  const view = await deps.tenants.view(request.tenantId, request.userId);
  for (let before = -1; before !== group.length; ) {
    before = group.length;
    const ids = group.map(({ id }) => id);
    for (const record of group) {
      if (performance.now() >= until) return [];
      const object = ownEntry(view.access.objects, record.objectApiName)?.object;
      const statement = object && dependsStatement(view, { object, id: record.id }, ids, true);
      const found =
        statement &&
        (await deps.platform.database.tenant(request.tenantId, (tx) => tx.one<{ depends: boolean }>(statement)));
      if (!object || found?.depends) group = group.filter((item) => item !== record);
    }
  }
  return group.map(({ id }) => id);
}

interface Changes {
  readonly items: readonly Item[];
  /** Records that the caller can see and whose sharing the run has changed. */
  readonly shared: readonly RecordName[];
}

/** The run's changes whose outcome is known. */
function changesOf({ deps, request, key, agentRunId }: Revert): Promise<Changes> {
  const { tenants, platform } = deps;
  const max = LIMITS.revert_records_max;
  return tenants.withView(request.tenantId, request.userId, async (view) => {
    requireOverseer(view);
    const [records, shared] = await platform.database.tenant(request.tenantId, (tx) =>
      Promise.all([
        tx.all<ChangedRecord>(changedRecordsStatement(view, agentRunId, key, max + 1)),
        tx.all<RecordName>(sharedRecordsStatement(view, agentRunId, max)),
      ]),
    );
    if (records.length > max)
      throw new PlatformError('TOO_MANY_ITEMS', `The run has changed more than ${max} records.`, { details: { max } });
    const visible = await visibleRecords(platform.database, view, [...records, ...shared]);
    const seen = new Set(visible.map(recordKey));
    return {
      items: records.map((record) => {
        const isSeen = seen.has(recordKey(record));
        const { noted, settled } = record;
        return { record, visible: isSeen, outcome: knownOutcome(record, isSeen), noted, settled };
      }),
      shared: shared.filter((record) => seen.has(recordKey(record))),
    };
  });
}

/** The record's outcome in an earlier call; undefined: none yet. */
function knownOutcome(record: ChangedRecord, visible: boolean): Outcome {
  if (!visible) return 'RECORD_NOT_FOUND';
  if (isUndone(record)) return null;
  return SKIP_REASONS.find((reason) => reason === record.noted);
}

/** Reverts have done all that the run's changes of the record ask for. */
function isUndone({ first, last, updated, owed, undone }: ChangedRecord): boolean {
  const before = wasThere(first);
  const needed = [
    ...(before ? [] : ['delete']),
    ...(before && last === 'delete' ? ['restore'] : []),
    ...(updated && first !== 'create' ? ['update'] : []),
  ];
  return !owed && needed.length > 0 && needed.every((kind) => undone.some((done) => done === kind));
}

function resultOf(items: readonly Item[], shared: readonly RecordName[]): RevertResult {
  const nameOf = ({ record: { objectApiName, id } }: Item): RecordName => ({ objectApiName, id });
  return {
    reverted: items.filter(({ outcome }) => outcome === null).map(nameOf),
    skipped: [
      ...items.flatMap((item) => {
        const { outcome } = item;
        if (!outcome || isBlocked(item)) return [];
        const named = outcome === 'RECORD_NOT_FOUND' ? { objectApiName: null, id: null } : nameOf(item);
        return [{ ...named, reason: outcome }];
      }),
      ...shared.map(({ objectApiName, id }) => ({ objectApiName, id, reason: 'SHARING_CHANGED' as const })),
    ],
    remaining: items.filter(isOpen).length,
  };
}

const NOTES_MAX = 200;

/** Skipped records, for the audit trail: the next call with the same key does not try them again. */
class Notes {
  readonly #revert: Revert;
  #items: Item[] = [];

  constructor(revert: Revert) {
    this.#revert = revert;
  }

  async add(item: Item): Promise<void> {
    item.noted = item.outcome ?? null;
    this.#items.push(item);
    if (this.#items.length >= NOTES_MAX) await this.write();
  }

  async write(): Promise<void> {
    const items = this.#items;
    this.#items = [];
    const { deps, request } = this.#revert;
    for (const [reason, skipped] of Map.groupBy(items, ({ outcome }) => outcome)) {
      if (!reason) continue;
      const records = skipped.map(({ record }) => record);
      await deps.platform.database.tenant(request.tenantId, (tx) =>
        tx.query(skippedStatement(this.#revert, reason, records)),
      );
    }
  }
}
