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
  let { view } = context;
  const done: DoneTask[] = [];
  const created: string[] = [];
  if (commits && tasks.length === 0) throw new Error('No task commits the unit.');
  unit.tally.records = before;
  for (const [index, next] of tasks.entries()) {
    const isLast = index === tasks.length - 1;
    const isCommitting = commits && isLast;
    const own = isCommitting ? lastPart(unit) : unit.part();
    const place = { index: before + index, size: before + tasks.length };
    const { steps, ...task } = next(done);
    const write = newWrite({ call, ...task, unit: own, deps, view, place, created: [...created] });
    begun?.(write);
    const { headers } = await runSteps(write, steps);
    if (!isCommitting) unit.tally.records += own.tally.records;
    if (write.mutation === 'create') created.push(write.id);
    done.push({ id: write.id, etag: headers?.['ETag'] });
    if (!isLast && standardObject(write.object)?.changesAccess) view = await currentView(unit, view);
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
