/** Work that no request waits for, such as a round of a job, begins a trace of its own. */
import { type Work, workOn } from '../watchdog/work.ts';
import { type Attributes, failureName, tracing } from './tracing.ts';

/** Runs `task` as `work`, in a span where something is traced. */
export function traceWork<T>(work: Work, task: () => Promise<T>, attributes: Attributes = {}): Promise<T> {
  const span = tracing()?.begin({ name: work.label, kind: 'internal', attributes });
  if (!span) return workOn(work, task);
  const { label, requestId } = work;
  const ended = workOn({ label, requestId, traceparent: span.traceparent }, task);
  ended.then(
    () => span.end(),
    (error) => span.end(failureName(error)),
  );
  return ended;
}
