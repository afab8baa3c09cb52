/**
 * Stores rows together: their checks are those of single writes, while one statement stores all rows whose bodies have the same
 * fields. When the database refuses a statement, the rows to blame are found by bisection.
 */

import type { RowResult } from '../../../contracts/data/row-writes.ts';
import type { ObjectAccess } from '../../../lib/access/types.ts';
import type { PlatformError } from '../../../lib/errors/platform-error.ts';
import { newRequestBudget } from '../../../lib/expression/evaluate.ts';
import { membersOf } from '../../../lib/json/objects.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { LongWork } from '../../../mixins/long-work.ts';
import { isLockTimeout } from '../../../mixins/mutation/errors.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import { etagOf } from '../sql.ts';
import { shapeOfValues } from '../write/create.sql.ts';
import { checkCreate, insertMany } from '../write/create.ts';
import { activeRules } from '../write/duplicate-rules.ts';
import { possibleDuplicates } from '../write/duplicates-together.ts';
import { namesFiles } from '../write/files.ts';
import { endsTransaction, inSavepoint, refusalOf } from '../write/parts.ts';
import { movesItself } from '../write/rollups.ts';
import { standardObject } from '../write/standard-objects.ts';
import type { TaskSequence } from '../write/tasks.ts';
import { checkLocked, lockMany, readUpdate, updateMany } from '../write/update.ts';
import { externalKey, findManySql } from '../write/upsert.ts';
import {
  type ExternalKey,
  type FoundRecord,
  type MutationCall,
  type MutationDeps,
  newWrite,
  parseIfMatch,
  type Step,
  type Write,
} from '../write/write.ts';
import { refusedRow } from './row.ts';

/** A row that is well-formed. */
export interface SetRow {
  readonly index: number;
  readonly call: MutationCall;
  /** It needs no ETag: the last write wins. */
  readonly lastWins: boolean;
  /** Of an upsert. */
  readonly external?: ExternalKey;
}

export interface SetRun {
  readonly deps: MutationDeps;
  readonly unit: Unit;
  readonly sequence: TaskSequence;
  readonly access: ObjectAccess;
  /** The steps without the comparison of the ETag. */
  readonly withoutVersion: (steps: readonly Step[]) => readonly Step[];
}

type Pending = readonly [SetRow, Write];
/** Outcomes by index of the row. */
type Outcomes = Map<number, RowResult>;

/** The outcomes of the first rows. Rows without one must be written singly, before any row after `end`. */
export interface Stretch {
  readonly outcomes: ReadonlyMap<number, RowResult>;
  /** Index of the first row after them. */
  readonly end: number;
}

/** False where each record needs a step of its own: under an agent run, and for standard objects. */
export const mayBeSet = ({ unit, access: { object } }: SetRun): boolean =>
  unit.request.agentRunId === null && !standardObject(object);

export async function createSet(run: SetRun, rows: readonly SetRow[]): Promise<Stretch> {
  const { together, end } = firstStretch(run, rows, () => null);
  const outcomes: Outcomes = new Map();
  await storeSet(run, outcomes, together, []);
  return { outcomes, end };
}

export async function updateSet(run: SetRun, rows: readonly SetRow[]): Promise<Stretch> {
  // The second change of a record must find the first.
  const { together, end } = firstStretch(run, rows, ({ call }) => call.path['id'] ?? null);
  const outcomes: Outcomes = new Map();
  await storeSet(run, outcomes, [], together);
  return { outcomes, end };
}

/**
 * The rows that may be stored together. A row with files, with a confirmation of duplicates, or with the record of an earlier row
 * must be written singly. Under duplicate rules the stretch ends with the first such row, because later rows are compared with it.
 */
function firstStretch(
  { access: { object } }: SetRun,
  rows: readonly SetRow[],
  recordOf: (row: SetRow) => unknown,
): { readonly together: readonly SetRow[]; readonly end: number } {
  const records = new Set<unknown>();
  const isApart = (row: SetRow): boolean => {
    const { body, headers } = row.call;
    if (headers.duplicateConfirmation !== undefined || namesFiles({ object, body: membersOf(body) })) return true;
    const record = recordOf(row);
    return record !== null && (records.has(record) || !records.add(record));
  };
  const whole = Number.POSITIVE_INFINITY;
  if (activeRules(object).length === 0) return { together: rows.filter((row) => !isApart(row)), end: whole };
  const place = rows.findIndex(isApart);
  const first = rows[place];
  return first ? { together: rows.slice(0, place), end: first.index + 1 } : { together: rows, end: whole };
}

/** Stores the rows that can be stored together, and notes their outcomes. */
async function storeSet(
  run: SetRun,
  outcomes: Outcomes,
  creates: readonly SetRow[],
  updates: readonly SetRow[],
): Promise<void> {
  const made = await checked(run, outcomes, creates, 'create', checkCreate);
  // A row that names another row by its external id needs that row to be stored first.
  const namesOwn = made.some(([, { given, object }]) =>
    given.some(({ lookup }) => lookup?.targets.some((target) => target.object.apiName === object.apiName)),
  );
  if (namesOwn && activeRules(run.access.object).length > 0) return;
  const locked = await lockedUpdates(run, outcomes, updates);
  const ready = [...(namesOwn ? [] : made), ...locked].sort(([a], [b]) => a.index - b.index);
  const apart = await writtenApart(ready);
  const together = ready.filter(([, write]) => !apart.has(write));
  const isNew = ([, { mutation }]: Pending): boolean => mutation === 'create';
  for (const group of Map.groupBy(together.filter(isNew), ([, write]) => shapeOfValues(write)).values())
    await byHalves(run, outcomes, group, async (some, rows) => {
      const refusals = await insertMany(some);
      let made = 0;
      const results = some.map((write, place) => {
        const refusal = refusals[place] ?? null;
        if (refusal) return refusal;
        made++;
        run.sequence.noteCreated(write.id, rows[place]?.index);
        return { id: write.unit.checkOnly ? null : write.id, status: 201, etag: etagOf(1), created: true };
      });
      run.sequence.count(made);
      return results;
    });
  const shapes = Map.groupBy(
    together.filter((pending) => !isNew(pending)),
    ([, { changed }]) => changed.map(({ field, value }) => `${field.apiName}${value === null ? '-' : ''}`).join(),
  );
  for (const same of shapes.values())
    await byHalves(run, outcomes, same, async (some) => {
      await updateMany(some);
      run.sequence.count(some.length);
      return some.map((write) => ({
        id: write.id,
        status: 200,
        etag: etagOf(write.recordVersion + 1),
        created: false,
      }));
    });
}

/** Of writes in their order, those that must be written singly, after the others. */
async function writtenApart(ready: readonly Pending[]): Promise<ReadonlySet<Write>> {
  const apart = new Set<Write>();
  // The first of several rows gets a unique value, whatever the order in which shapes are stored.
  const taken = new Set<string>();
  for (const [, write] of ready) {
    const stored = write.mutation === 'create' ? write.given : write.changed;
    const values = stored.flatMap(({ field, value }) =>
      field.unique && value !== null ? [`${field.apiName} ${String(value).toLowerCase()}`] : [],
    );
    if (values.some((value) => taken.has(value)) || (write.mutation === 'update' && movesItself(write)))
      apart.add(write);
    for (const value of values) taken.add(value);
  }
  const [first, ...others] = ready.map(([, write]) => write);
  return first ? apart.union(await possibleDuplicates([first, ...others])) : apart;
}

/** Locks the records of updates. Answers those that pass the checks and change something; notes the outcomes of the others. */
async function lockedUpdates(run: SetRun, outcomes: Outcomes, rows: readonly SetRow[]): Promise<Pending[]> {
  const locked: Pending[] = [];
  // Ordered by id, like all locks of records, so that writes do not deadlock.
  const ordered = rows.toSorted((a, b) => ((a.call.path['id'] ?? '') < (b.call.path['id'] ?? '') ? -1 : 1));
  const read = await checked(run, outcomes, ordered, 'update', readUpdate);
  for (const group of Map.groupBy(read, ([, write]) => shapeOfValues(write)).values())
    await byHalves(run, outcomes, group, async (some, rows) => {
      const found = lockMany(some);
      if (!found) throw new Error('Rows of one shape have several statements.');
      const answers = await found;
      const results: (Stored | PlatformError | null)[] = [];
      for (const [place, write] of some.entries()) {
        const [row, answer] = [rows[place], answers[place]];
        if (!row || !answer) throw new Error('The statement has not answered for each row.');
        const steps = row.lastWins ? run.withoutVersion : (own: readonly Step[]) => own;
        results.push(
          await checkLocked(write, answer, steps).then(
            () => {
              if (write.changed.length > 0) locked.push([row, write]);
              return write.changed.length > 0
                ? null
                : { id: write.id, status: 200, etag: etagOf(write.recordVersion), created: false };
            },
            async (error: unknown) => {
              const refusal = await refusalOf(run.deps, run.sequence.view, write.call, write, error);
              return write.external && refusal.code === 'RECORD_NOT_FOUND' ? null : refusal;
            },
          ),
        );
      }
      return results;
    });
  return locked.filter(([{ index }]) => !outcomes.has(index));
}

/** Finds the records of the rows by external id, then creates those that are missing and updates the others. */
export async function upsertSet(run: SetRun, rows: readonly SetRow[]): Promise<Stretch> {
  const { access, unit, deps, sequence } = run;
  const outcomes: Outcomes = new Map();
  const keys = new Map<SetRow, Omit<ExternalKey, 'found'>>();
  for (const row of rows)
    try {
      keys.set(row, externalKey(access, row.call));
    } catch (error) {
      outcomes.set(row.index, refusedRow(row.index, null, await refusalOf(deps, sequence.view, row.call, null, error)));
    }
  // The second row with a key updates the record of the first.
  const { together, end } = firstStretch(run, [...keys.keys()], (row) => keys.get(row)?.value);
  const keyed = together.flatMap((row) => {
    const key = keys.get(row);
    return key ? [{ row, key }] : [];
  });
  // Without a unique index each row must be looked up under a lock of its own.
  if (!keyed[0]?.key.field.unique) return { outcomes, end };
  const found = await unit.tx.all<FoundRecord | { id: null }>(
    findManySql(
      sequence.view,
      access.object,
      keyed.map(({ key }) => key),
    ),
  );
  const creates: SetRow[] = [];
  const updates: SetRow[] = [];
  for (const [place, { row, key }] of keyed.entries()) {
    const record = found[place];
    const { call } = row;
    if (record?.id)
      updates.push({
        ...row,
        call: { ...call, path: { ...call.path, id: record.id } },
        external: { ...key, found: record },
      });
    else if (call.headers.ifMatch === undefined) creates.push({ ...row, external: { ...key, found: null } });
  }
  await storeSet(run, outcomes, creates, updates);
  return { outcomes, end };
}

type Stored = Omit<RowResult, 'index' | 'errors'>;

/** Answers the writes that pass the checks, and notes the outcomes of the others. */
async function checked(
  { deps, unit, sequence, access }: SetRun,
  outcomes: Outcomes,
  rows: readonly SetRow[],
  mutation: 'create' | 'update',
  check: (write: Write) => Promise<void>,
): Promise<Pending[]> {
  const passed: Pending[] = [];
  const work = new LongWork();
  for (const row of rows) {
    if (work.isLong) await work.turn();
    const { call, index, external = null } = row;
    const { headers, body, path } = call;
    const id = mutation === 'create' ? uuidv7() : (path['id'] ?? '');
    // The budget of rules is per record.
    const own = { ...unit.part(), budget: newRequestBudget() };
    const write = newWrite({
      unit: own,
      deps,
      mutation,
      call,
      view: sequence.view,
      access,
      id,
      body: membersOf(body),
      external,
      place: sequence.place,
    });
    try {
      const needsNone = mutation === 'create' || row.lastWins || (external && headers.ifMatch === undefined);
      const ifMatch = needsNone ? [] : parseIfMatch(headers.ifMatch);
      const ready = { ...write, ifMatch };
      await check(ready);
      passed.push([row, ready]);
    } catch (error) {
      outcomes.set(
        index,
        refusedRow(index, path['id'] ?? null, await refusalOf(deps, sequence.view, call, write, error)),
      );
    }
  }
  return passed;
}

/**
 * Does the work for all writes at once. When the database refuses it, bisects: with k bad rows among n, about k × log n attempts
 * fail. `work` answers for each row what was stored, a refusal, or null if the row must be written singly.
 */
async function byHalves(
  run: SetRun,
  outcomes: Outcomes,
  group: readonly Pending[],
  work: (
    writes: readonly [Write, ...Write[]],
    rows: readonly SetRow[],
  ) => Promise<readonly (Stored | PlatformError | null)[]>,
): Promise<void> {
  const [first, ...others] = group.map(([, write]) => Object.assign(write, { place: run.sequence.place }));
  if (!first) return;
  const writes = [first, ...others] as const;
  try {
    const rows = group.map(([row]) => row);
    const results = await inSavepoint(run.unit, () => work(writes, rows));
    for (const [place, [{ index }]] of group.entries()) {
      const result = results[place];
      if (result instanceof Error) outcomes.set(index, refusedRow(index, null, result));
      else if (result) outcomes.set(index, { index, ...result, errors: [] });
    }
  } catch (error) {
    const [only] = group;
    if (endsTransaction(error) || !only) throw error;
    // Bisection would wait as long again with each attempt: these rows are written singly.
    if (isLockTimeout(error)) return;
    if (group.length === 1) {
      const [{ index, call }, write] = only;
      // Another request was faster: written singly, the row finds its record.
      if (write.external) return;
      const refusal = await refusalOf(run.deps, run.sequence.view, call, write, error);
      outcomes.set(index, refusedRow(index, call.path['id'] ?? null, refusal));
      return;
    }
    const half = Math.ceil(group.length / 2);
    await byHalves(run, outcomes, group.slice(0, half), work);
    await byHalves(run, outcomes, group.slice(half), work);
  }
}
