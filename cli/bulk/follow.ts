/** Waits for a bulk job, and shows what became of it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { OperationOutput } from '../../contracts/operations.ts';
import type { Run } from '../command.ts';
import { EXIT, Failure } from '../failure.ts';
import type { Answer } from '../http/api.ts';
import { openProgress } from '../output/progress.ts';
import { plain } from '../output/table.ts';

export type Job = OperationOutput<'bulk.jobs.get'>;

const ENDED: ReadonlySet<string> = new Set(['COMPLETED', 'FAILED', 'CANCELED']);
export const hasEnded = ({ state }: { state: string }): boolean => ENDED.has(state);
/** Asking once per second costs nothing. */
const ASK_EVERY_MS = 1_000;

const TEXTS: Readonly<Record<string, string>> = {
  QUEUED: 'Waiting',
  PROCESSING: 'Processing',
  CANCELING: 'Canceling',
};

/** Asks for a job until it has ended. */
export async function follow(run: Run, jobId: string): Promise<Answer<Job>> {
  const api = await run.api();
  const progress = openProgress(run.output);
  try {
    for (;;) {
      const answer = await api.call('bulk.jobs.get', { path: { jobId } });
      const { state, counts } = answer.body;
      if (hasEnded(answer.body)) return answer;
      progress.update(TEXTS[state] ?? state, counts.processed, counts.total ?? 0);
      await sleep(ASK_EVERY_MS);
    }
  } finally {
    progress.end();
  }
}

export function showJob(run: Run, answer: Answer<Job>): void {
  const { jobId, operation, objectApiName, state, checkOnly, counts, createdAt, finishedAt, error } = answer.body;
  run.output.result(answer, () => {
    run.output.pairs([
      ['job', jobId],
      ['what', `${operation} ${objectApiName}${checkOnly ? ' (dry run)' : ''}`],
      ['state', state],
      ['created', createdAt],
      ...(finishedAt ? [['finished', finishedAt] as const] : []),
      ...(counts.total === null ? [] : [['rows', String(counts.total)] as const]),
      ['succeeded', String(counts.succeeded)],
      ['failed', String(counts.failed)],
      ...(counts.unprocessed ? [['unprocessed', String(counts.unprocessed)] as const] : []),
      ...(error ? [['error', `${error.code}: ${error.message}`] as const] : []),
    ]);
  });
}

/** The failure of a command whose job did not do everything; null: it has. */
export function outcomeOf({ jobId, state, counts, error }: Job): Failure | null {
  if (state === 'COMPLETED' && counts.failed === 0) return null;
  const why =
    state === 'COMPLETED'
      ? `${counts.failed} of ${counts.total ?? counts.processed} rows failed.`
      : error
        ? `${plain(error.message)} (${error.code})`
        : `It is ${state}.`;
  const code = error?.code ?? (state === 'COMPLETED' ? 'ROWS_FAILED' : state);
  return new Failure(code, EXIT.job, `Job ${jobId}: ${why}`, { body: { code, message: why, jobId, counts } });
}
