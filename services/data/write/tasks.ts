/** Several record writes in one unit, each with all steps of a write of its own: all are committed, or none. */
import type { Unit } from '../../../mixins/mutation/unit.ts';
import type { View } from '../view.ts';
import { standardObject } from './standard-objects.ts';
import { newWrite, runSteps, type Step, type Write } from './write.ts';

/** One of the writes, and what its steps begin with. */
interface RecordTask
  extends Pick<Write, 'mutation' | 'access' | 'id' | 'body'>,
    Partial<Pick<Write, 'call' | 'ifMatch' | 'usernameConflict' | 'invalid'>> {
  readonly steps: readonly Step[];
}

interface DoneTask {
  readonly id: string;
  /** Of the record as the task has left it; undefined: it is not there any more. */
  readonly etag: string | undefined;
}

/** Computed when its turn comes, from the tasks before it. */
type NextTask = (done: readonly DoneTask[]) => RecordTask;

interface TaskContext extends Pick<Write, 'deps' | 'call' | 'view'> {
  /** The last task commits the unit; else the caller does. */
  readonly commits?: boolean;
  /** Records that the unit changes besides the tasks, and before them. */
  readonly before?: number;
  /** Called with each write before its first step: its refusal may need it. */
  readonly begun?: (write: Write) => void;
}

/** The unit as a last task that commits sees it: with a tally of its own, which counts before the hooks run. */
function lastPart(unit: Unit): Unit {
  const tally = { records: 1 };
  return {
    ...unit,
    tally,
    commit: (statement, wrote) => {
      unit.tally.records += tally.records;
      return unit.commit(statement, wrote);
    },
  };
}

/** Runs the tasks one after the other. The first refusal is thrown, and with the unit all of them are rolled back. */
export async function runTasks(unit: Unit, context: TaskContext, tasks: readonly NextTask[]): Promise<void> {
  const { deps, call, commits = false, before = 0, begun } = context;
  const done: DoneTask[] = [];
  if (commits && tasks.length === 0) throw new Error('No task commits the unit.');
  const sequence = new TaskSequence(unit, context.view, { before, size: before + tasks.length });
  for (const [index, next] of tasks.entries()) {
    const isCommitting = commits && index === tasks.length - 1;
    await sequence.run(isCommitting ? lastPart(unit) : unit.part(), async (own, at) => {
      const { steps, ...task } = next(done);
      const write = newWrite({ call, ...task, ...at, unit: own, deps });
      begun?.(write);
      const { headers } = await runSteps(write, steps);
      done.push({ id: write.id, etag: headers?.['ETag'] });
      return [write, undefined];
    });
  }
}

/** What a task must know of those before it. */
export type TaskPlace = Pick<Write, 'view' | 'place' | 'created'>;

/** The tasks of one unit, one after the other. */
export class TaskSequence {
  readonly #unit: Unit;
  readonly #size: number;
  readonly #created: string[] = [];
  #view: View;
  #next: number;

  /** `before`: records that the unit changes besides the tasks, and before them; `size`: all of them. */
  constructor(unit: Unit, view: View, { before = 0, size }: { readonly before?: number; readonly size: number }) {
    this.#unit = unit;
    this.#view = view;
    this.#next = before;
    this.#size = size;
    unit.tally.records = before;
  }

  /** The view at the versions that the tasks so far have made. */
  get view(): View {
    return this.#view;
  }

  /** The place of the next task. */
  get place(): Write['place'] {
    return { index: this.#next, size: this.#size };
  }

  /** Tasks that were stored together with one statement. */
  count(records: number): void {
    this.#next += records;
    this.#unit.tally.records += records;
  }

  /** A record that a task has made. `position`: what it is known by when it is made again; default: the next one. */
  noteCreated(id: string, position: number = this.#created.length): void {
    this.#created[position] = id;
  }

  /**
   * Runs a task in `own`, a part of the unit. It counts when it succeeds. `work` returns its write, and its result. `position`
   * as for noteCreated.
   */
  async run<T>(
    own: Unit,
    work: (own: Unit, at: TaskPlace) => Promise<readonly [Write, T]>,
    position?: number,
  ): Promise<T> {
    const [write, result] = await work(own, { view: this.#view, place: this.place, created: [...this.#created] });
    this.#next++;
    // The last task, which commits, has counted itself before.
    if (own.key.part) this.#unit.tally.records += own.tally.records;
    if (write.mutation === 'create') this.noteCreated(write.id, position);
    if (this.#next < this.#size && standardObject(write.object)?.changesAccess)
      this.#view = await currentView(this.#unit, this.#view);
    return result;
  }
}

/**
 * The view at the version of permissions that the task has made, so that the next task is not taken for stale. Its
 * permissions stay those with which the request began.
 */
async function currentView({ tx, schema }: Unit, view: View): Promise<View> {
  const { accessVersion } = await tx.one<{ accessVersion: number }>({
    name: `access version ${schema}`,
    text: `SELECT access_version AS "accessVersion" FROM ${schema}._state`,
  });
  return { ...view, accessVersion, key: `${view.key} ${accessVersion}` };
}
