/**
 * The current work of the process: it tells the watchdog which work blocked the event loop, the log which request a line
 * belongs to, and calls carry it to other processes. A mark costs some 60 ns: it is set wherever a request goes on after
 * it has waited (for its body, a call, an answer of the database).
 */
import { AsyncLocalStorage } from 'node:async_hooks';

/** A request, an action call or a job. The label may become known while the work goes on. */
export interface Work {
  /** An operationId, or the name of an action, an event or a queue: never a caller's text. */
  readonly label: string;
  readonly requestId: string | null;
  /** The span of a trace that the work is, or what caused it (W3C Trace Context); absent: there is no trace. */
  readonly traceparent?: string | undefined;
}

/** A stretch of time, and the work whose mark began it. */
interface Stretch {
  readonly work: Work;
  /** Until the next mark, or the end of the time that was asked about. */
  readonly ms: number;
}

const MARKS = 256;

const storage = new AsyncLocalStorage<Work>();
const works: (Work | undefined)[] = new Array(MARKS);
const times = new Float64Array(MARKS);
let marked = 0;

/** Runs `task` and what follows from it as `work`. */
export function workOn<T>(work: Work, task: () => T): T {
  return storage.run(work, () => {
    mark();
    return task();
  });
}

/** The same, unless it is part of a work that is known already, such as the request that made the call. */
export function workWithin<T>(work: Work, task: () => T): T {
  if (!storage.getStore()) return workOn(work, task);
  mark();
  return task();
}

/** The current work; undefined for the process's own. */
export const currentWork = (): Work | undefined => storage.getStore();

/** The current work goes on now. */
export function mark(): void {
  const work = storage.getStore();
  if (!work) return;
  const at = marked++ % MARKS;
  works[at] = work;
  times[at] = performance.now();
}

/**
 * Work between two moments of `performance.now()`, longest first. Of very many short stretches only the last are
 * known.
 */
export function stretchesBetween(from: number, to: number): Stretch[] {
  const found: Stretch[] = [];
  let end = to;
  for (let n = 1; n <= Math.min(marked, MARKS); n++) {
    const at = (marked - n) % MARKS;
    const work = works[at];
    const begin = times[at] ?? 0;
    if (!work || begin < from) break;
    if (begin > to) continue;
    found.push({ work, ms: end - begin });
    end = begin;
  }
  return found.sort((a, b) => b.ms - a.ms);
}
