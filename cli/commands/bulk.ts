/** `bulk`: the jobs that import and export records. */
import { LIMITS } from '../../lib/limits.ts';
import { follow, outcomeOf, showJob } from '../bulk/follow.ts';
import { act, addGroup, type Program } from '../command.ts';
import { wholeNumber } from '../data/assignments.ts';

export function addBulk(program: Program): void {
  const bulk = addGroup(program, 'bulk', 'jobs that import and export records');
  bulk
    .command('list')
    .description('list jobs, newest first')
    .option('--take <number>', `jobs per page (default: ${LIMITS.take_default})`, wholeNumber)
    .option('--cursor <cursor>', 'go on where an earlier page ended')
    .action(
      act(async (run, { take, cursor }) => {
        const answer = await (await run.api()).call('bulk.jobs.list', {
          query: { ...(take ? { take } : {}), ...(cursor ? { cursor } : {}) },
        });
        run.output.result(answer, () => {
          run.output.table(
            [
              { title: 'Id', whole: true },
              { title: 'State' },
              { title: 'What' },
              { title: 'Succeeded' },
              { title: 'Failed' },
            ],
            answer.body.records.map(({ jobId, state, operation, objectApiName, counts }) => [
              jobId,
              state,
              `${operation} ${objectApiName}`,
              String(counts.succeeded),
              String(counts.failed),
            ]),
          );
          if (answer.body.nextCursor) run.output.note(`There are more: --cursor ${answer.body.nextCursor}`);
        });
      }),
    );
  bulk
    .command('show')
    .description('show a job; with --wait, when it has ended')
    .argument('<id>')
    .action(
      act(async (run, jobId) => {
        const answer = run.options.wait
          ? await follow(run, jobId)
          : await (await run.api()).call('bulk.jobs.get', { path: { jobId } });
        showJob(run, answer);
        const failure = run.options.wait ? outcomeOf(answer.body) : null;
        if (failure) throw failure;
      }),
    );
  bulk
    .command('cancel')
    .description('cancel a job; rows that were written stay')
    .argument('<id>')
    .action(
      act(async (run, jobId) => {
        const answer = await (await run.api()).call('bulk.jobs.cancel', { path: { jobId } });
        showJob(run, run.options.wait ? await follow(run, jobId) : answer);
      }),
    );
  bulk
    .command('delete')
    .description('delete a job with its results; records stay')
    .argument('<id>')
    .action(
      act(async (run, jobId) => {
        const answer = await (await run.api()).call('bulk.jobs.delete', { path: { jobId } });
        run.output.result(answer, () => run.output.line(run.output.terminal.pretty ? `Deleted ${jobId}` : jobId));
      }),
    );
}
