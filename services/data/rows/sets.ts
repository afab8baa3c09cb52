/**
 * Rows that are stored together: their checks are those of single writes, and what the database decides takes one
 * statement for all rows whose bodies have the same fields. Rows that the database refuses are found by halves.
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
  /** It needs no ETag. */
  readonly lastWins: boolean;
  /** Of an upsert. */
  readonly external?: ExternalKey;
}

export interface SetRun {
  readonly deps: MutationDeps;
  readonly unit: Unit;
  readonly sequence: TaskSequence;
  readonly access: ObjectAccess;
  /** The steps of a row that needs no ETag. */
  readonly withoutVersion: (steps: readonly Step[]) => readonly Step[];
}

type Pending = readonly [SetRow, Write];
/** Outcomes by index of the row. */
type Outcomes = Map<number, RowResult>;

/** The first rows; those without an outcome are to be written by themselves, before the rows behind them. */
export interface Stretch {
  readonly outcomes: ReadonlyMap<number, RowResult>;
  /** Index of the first row behind them. */
  readonly end: number;
}

/** True when nothing else looks at the records of the object one by one. */
export const mayBeSet = ({ unit, access: { object } }: SetRun): boolean =>
  unit.request.agentRunId === null && !standardObject(object);

export async function createSet(run: SetRun, rows: readonly SetRow[]): Promise<Stretch> {
  const { together, end } = firstStretch(run, rows, () => null);
  const outcomes: Outcomes = new Map();
  await storeSet(run, outcomes, together, []);
  return { outcomes, end };
}

export async function updateSet(run: SetRun, rows: readonly SetRow[]): Promise<Stretch> {
  // A record that is changed twice is changed again afterwards.
  const { together, end } = firstStretch(run, rows, ({ call }) => call.path['id'] ?? null);
  const outcomes: Outcomes = new Map();
  await storeSet(run, outcomes, [], together);
  return { outcomes, end };
}

/**
 * The rows that may be stored together: one that has files or a confirmation of duplicates, or the record of an earlier one,
 * may not. Under duplicate rules they end before the first such row, which those behind it are to be compared with.
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

/** Stores what can be stored together, and notes the outcomes. */
async function storeSet(
  run: SetRun,
  outcomes: Outcomes,
  creates: readonly SetRow[],
  updates: readonly SetRow[],
): Promise<void> {
  const made = await checked(run, outcomes, creates, 'create', checkCreate);
  // A row may name another one by an external id, which is there when the rows before it are stored.
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

/** Of writes in their order, those that must find what the others have stored. */
async function writtenApart(ready: readonly Pending[]): Promise<ReadonlySet<Write>> {
  const apart = new Set<Write>();
  // The first of several rows has a unique value, whatever the order in which shapes are stored.
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

/** Updates whose records are locked, and which pass the checks and change something; the others have an outcome then. */
async function lockedUpdates(run: SetRun, outcomes: Outcomes, rows: readonly SetRow[]): Promise<Pending[]> {
  const locked: Pending[] = [];
  // In the order of their ids, as others lock them.
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

/** Creates and updates, as the external ids of the rows say. */
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
  // The second row with a key changes what the first has made.
  const { together, end } = firstStretch(run, [...keys.keys()], (row) => keys.get(row)?.value);
  const keyed = together.flatMap((row) => {
    const key = keys.get(row);
    return key ? [{ row, key }] : [];
  });
  // Without an index that keeps it unique, each is looked for while others wait.
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

/** Writes of the rows that pass the checks; the others have an outcome then. */
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
    // What rules may cost is for each record.
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
 * Does the work for all writes at once. When the database refuses it, for one half and then the other, down to single
 * rows: of n rows of which k are refused, about k × log n attempts fail. `work`: what was stored, or why not; null: the row is not
 * done yet.
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
    // Each wait is as long again: the rows are written by themselves.
    if (isLockTimeout(error)) return;
    if (group.length === 1) {
      const [{ index, call }, write] = only;
      // Another request was faster: the row by itself finds out what has become of it.
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
