/**
 * Writes many records of one object in one transaction, each by the rules of a single write. A row that is refused leaves
 * the others as they are, or nothing is committed. Source: docs/reference/composite.md#records.
 */
import { hash } from 'node:crypto';
import type {
  RowError,
  RowOperation,
  RowResult,
  RowsToWrite,
  RowsWritten,
  RowToWrite,
} from '../../../contracts/data/row-writes.ts';
import type { ObjectAccess } from '../../../lib/access/types.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { OperationCall, OperationReply } from '../../../lib/operation.ts';
import { LongWork } from '../../../mixins/long-work.ts';
import type { IdempotencyKey } from '../../../mixins/mutation/key.ts';
import { runIdempotent } from '../../../mixins/mutation/mutate.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import { visibleObject } from '../object-access.ts';
import { assertFresh } from '../tenants.ts';
import type { Versions, View } from '../view.ts';
import { OPERATION_IDS } from '../write/check.ts';
import { lockStateSql } from '../write/checks.sql.ts';
import { inSavepoint, refusalOf, within } from '../write/parts.ts';
import { runWithin } from '../write/run-mutation.ts';
import { standardObject } from '../write/standard-objects.ts';
import { type TaskPlace, TaskSequence } from '../write/tasks.ts';
import { matchVersion } from '../write/update.ts';
import type { MutationDeps, Step, Write } from '../write/write.ts';
import { callOf, failed, formErrors, malformedRow, refusedRow, rolledBack } from './row.ts';
import { createSet, mayBeSet, type SetRow, type SetRun, type Stretch, updateSet, upsertSet } from './sets.ts';

/** A write of rows in progress. */
interface RowsRun {
  readonly deps: MutationDeps;
  readonly unit: Unit;
  readonly input: RowsToWrite;
  readonly sequence: TaskSequence;
}

/** Answers `data.rows.write`, the internal action whose parameters hold the key. */
export async function writeRowsOf(
  deps: MutationDeps,
  request: RequestContext,
  input: RowsToWrite & { readonly key: string },
): Promise<RowsWritten> {
  const { key: text, ...rows } = input;
  const key = keyOf(request, text, input.checkOnly);
  const operationId = OPERATION_IDS.get(input.operation) ?? '';
  const call = { operationId, path: { objectApiName: input.objectApiName }, query: {}, headers: {} };
  let results: readonly RowResult[] = [];
  try {
    const { body } = await writeRows(deps, request, call, rows, key, (undone) => {
      results = undone;
    });
    if (body !== null) return JSON.parse(String(body));
    throw new PlatformError('WRITE_CONTENTION', 'The job of these rows ended before they were written.', {
      retryAfterSeconds: 1,
    });
  } catch (error) {
    if (!(error instanceof PlatformError) || error.code !== 'COMPOSITE_FAILED') throw error;
    return { committed: false, results };
  }
}

/** The outcome under a key of writeRowsOf; null: there is none. Waits for a write in progress, and takes the key, so that no later one executes. */
export async function settleRows(
  { platform: { database } }: MutationDeps,
  request: RequestContext,
  text: string,
): Promise<RowsWritten | null> {
  const key = keyOf(request, text, false);
  const call = { operationId: 'data.rows.settle', path: {}, query: {}, headers: {} };
  const { body } = await runIdempotent({ database, request, call, key, service: 'data' }, (attempt) =>
    attempt.inUnit(async (unit) => (await unit.claim()) ?? unit.complete({ body: null })),
  );
  return body === null ? null : JSON.parse(String(body));
}

/** The key alone is the fingerprint: the file of a job does not change, so a key always names the same rows. */
const keyOf = ({ clientId, userId, requestId }: RequestContext, key: string, checkOnly: boolean): IdempotencyKey => ({
  clientId,
  userId,
  requestId,
  key,
  fingerprint: hash('sha256', key),
  checkOnly,
  part: false,
  isStep: true,
});

/** Answers RowsWritten. Throws COMPOSITE_FAILED when `allOrNone` and a row was refused: nothing is stored then. */
export async function writeRows(
  deps: MutationDeps,
  request: RequestContext,
  call: OperationCall & { path: { objectApiName: string } },
  input: RowsToWrite,
  key: IdempotencyKey,
  refused: (results: readonly RowResult[]) => void = () => {},
): Promise<OperationReply> {
  if (input.rows.length > LIMITS.rows_max)
    throw new PlatformError('TOO_MANY_ITEMS', `At most ${LIMITS.rows_max} rows are written at a time.`, {
      details: { max: LIMITS.rows_max },
    });
  const { database } = deps.platform;
  const reply = await runIdempotent({ database, request, call, key, service: 'data' }, (attempt) =>
    deps.tenants.withView(request.tenantId, request.userId, (view) =>
      attempt.inUnit(async (unit) => {
        const stored = await unit.claim();
        if (stored) return stored;
        const outcome = await written(deps, unit, view, input);
        if (outcome.committed || unit.checkOnly)
          return unit.complete({ body: request.dryRun ? { ...outcome, effects: unit.effects } : outcome });
        refused(outcome.results);
        throw new PlatformError('COMPOSITE_FAILED', 'A row was refused, so that none was stored.', {
          details: { results: outcome.results },
        });
      }),
    ),
  );
  const special = standardObject({ apiName: input.objectApiName });
  if (!key.checkOnly) await special?.committed(deps, request.tenantId);
  return reply;
}

async function written(deps: MutationDeps, unit: Unit, view: View, input: RowsToWrite): Promise<RowsWritten> {
  const access = visibleObject(view, input.objectApiName);
  const { object, permission } = access;
  if (input.conflictPolicy === 'lastWriteWins' && !permission.modifyAll)
    throw new PlatformError('OBJECT_PERMISSION_DENIED', 'To write without ETags, you need modifyAll on the object.', {
      details: { objectApiName: object.apiName, operation: input.operation, layer: 'objectPermission' },
    });
  // Locked until the end, so that no row is refused by a view that is out of date.
  const versions = await unit.tx.one<Versions>(lockStateSql(unit.schema, object));
  assertFresh(view, versions.metadataVersion, versions.accessVersion);
  const { rows, allOrNone } = input;
  const run: RowsRun = {
    deps: within(deps, unit.tx),
    unit,
    input,
    sequence: new TaskSequence(unit, view, { size: rows.length }),
  };
  const results: RowResult[] = [];
  const work = new LongWork();
  for (let end = 0; end < rows.length; ) {
    const stretch = await writeSet(run, access, end);
    end = Math.min(stretch.end, rows.length);
    for (const row of rows.slice(results.length, end)) {
      if (work.isLong) await work.turn();
      const index = results.length;
      results.push(stretch.outcomes.get(index) ?? (await writeRow(run, row, index)));
    }
  }
  if (!allOrNone || !results.some(failed)) return { committed: !unit.checkOnly, results };
  return { committed: false, results: results.map((result) => (failed(result) ? result : rolledBack(result))) };
}

/** Writes rows from `first` on together, as far as possible. */
async function writeSet(
  { deps, unit, sequence, input }: RowsRun,
  access: ObjectAccess,
  first: number,
): Promise<Stretch> {
  const run: SetRun = { deps, unit, sequence, access, withoutVersion };
  const write = SETS[input.operation];
  const none = { outcomes: new Map(), end: input.rows.length };
  if (!write || !mayBeSet(run)) return none;
  const rows = input.rows.flatMap((row, index): SetRow[] => {
    if (index < first) return [];
    if (formErrors(input, row).length > 0) return [];
    const lastWins = input.conflictPolicy === 'lastWriteWins' && row.ifMatch === undefined;
    return [{ index, call: callOf(input, row), lastWins }];
  });
  return rows.length > 1 ? write(run, rows) : none;
}

const SETS: Readonly<Record<RowOperation, typeof createSet | null>> = {
  create: createSet,
  update: updateSet,
  upsert: upsertSet,
  delete: null,
};

/** Writes a row singly. `shown`: the duplicates that were reported by a first attempt, and are now confirmed. */
async function writeRow(
  run: RowsRun,
  row: RowToWrite,
  index: number,
  shown: RowError | null = null,
): Promise<RowResult> {
  const { deps, unit, input, sequence } = run;
  const malformed = formErrors(input, row);
  if (malformed.length > 0) return malformedRow(index, malformed);
  const call = callOf(input, row);
  const lastWins = input.conflictPolicy === 'lastWriteWins' && row.ifMatch === undefined;
  let write: Write | null = null;
  try {
    const one = async (own: Unit, { view, place, created }: TaskPlace): Promise<readonly [Write, RowResult]> => {
      const begun = (begins: Write): void => {
        write = begins;
      };
      const part = { place, created, begun, ...(lastWins ? { steps: withoutVersion } : {}) };
      const versions = lastWins ? [[]] : [];
      const reply = await runWithin(own, { deps, view, part }, input.operation, call, ...versions);
      if (!write) throw new Error('The row was not written.');
      return [write, doneRow(index, write, reply, shown)];
    };
    return await inSavepoint(unit, () => sequence.run(unit.part(), one, index));
  } catch (error) {
    const refusal = await refusalOf(deps, sequence.view, call, write, error);
    const { code, message, details } = refusal;
    const duplicateConfirmation = details?.['confirmationToken'];
    if (input.duplicatePolicy !== 'report' || typeof duplicateConfirmation !== 'string' || shown)
      return refusedRow(index, row.id ?? null, refusal);
    const detail = { rules: details?.['rules'] };
    return writeRow(run, { ...row, duplicateConfirmation }, index, { code, message, detail });
  }
}

const withoutVersion = (steps: readonly Step[]): readonly Step[] => steps.filter((step) => step !== matchVersion);

function doneRow(index: number, write: Write, { headers }: OperationReply, shown: RowError | null): RowResult {
  const created = write.mutation === 'create';
  return {
    index,
    id: created && write.unit.checkOnly ? null : write.id,
    status: created ? 201 : 200,
    etag: headers?.['ETag'] ?? null,
    created,
    errors: shown ? [shown] : [],
  };
}
