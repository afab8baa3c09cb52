/** `agent`: runs of agents, and decisions about what they ask for. */
import type { OperationInput } from '../../contracts/operations.ts';
import { act, addGroup, type Group, type Program, type Run } from '../command.ts';
import { readData, wholeNumber } from '../data/assignments.ts';
import type { Answer } from '../http/api.ts';

const BODY = 'JSON: {…}, @file, or - for standard input';

export function addAgent(program: Program): void {
  const agent = addGroup(program, 'agent', 'runs of agents, and approvals');
  addRuns(agent.command('runs').description('the work of agents in the name of a person'));
  addApprovals(agent.command('approvals').description('what agents ask for, and what people decide'));
}

function addRuns(runs: Group): void {
  runs
    .command('create')
    .description('begin a run')
    .requiredOption('--data <json>', BODY)
    .action(
      act(async (run, { data }) => {
        const body = await readData<OperationInput<'agent.runs.create'>['body']>(data);
        showRun(run, await (await run.api()).call('agent.runs.create', { body }, { what: 'The run' }));
      }),
    );
  runs
    .command('list')
    .description('list runs, newest first')
    .option('--take <number>', 'runs per page', wholeNumber)
    .option('--cursor <cursor>', 'go on where an earlier page ended')
    .action(
      act(async (run, { take, cursor }) => {
        const answer = await (await run.api()).call('agent.runs.list', {
          query: { ...(take ? { take } : {}), ...(cursor ? { cursor } : {}) },
        });
        run.output.result(answer, () => {
          run.output.table(
            [{ title: 'Id', whole: true }, { title: 'Status' }, { title: 'Agent' }, { title: 'Goal' }],
            answer.body.records.map(({ runId, status, agentKey, goal }) => [runId, status, agentKey, goal]),
          );
          if (answer.body.nextCursor) run.output.note(`There are more: --cursor ${answer.body.nextCursor}`);
        });
      }),
    );
  runs
    .command('get')
    .description('show a run')
    .argument('<id>')
    .action(
      act(async (run, runId) => {
        showRun(run, await (await run.api()).call('agent.runs.get', { path: { runId } }));
      }),
    );
  runs
    .command('complete')
    .description('end a run with its outcome')
    .argument('<id>')
    .requiredOption('--data <json>', BODY)
    .action(
      act(async (run, runId, { data }) => {
        const body = await readData<OperationInput<'agent.runs.complete'>['body']>(data);
        showRun(run, await (await run.api()).call('agent.runs.complete', { path: { runId }, body }));
      }),
    );
  runs
    .command('cancel')
    .description('stop a run')
    .argument('<id>')
    .action(
      act(async (run, runId) => {
        showRun(run, await (await run.api()).call('agent.runs.cancel', { path: { runId } }));
      }),
    );
}

interface RunBody {
  runId: string;
  status: string;
  goal: string;
}

function showRun({ output }: Run, answer: Answer<RunBody>): void {
  const { runId, status, goal } = answer.body;
  output.result(answer, () =>
    output.pairs([
      ['run', runId],
      ['status', status],
      ['goal', goal],
    ]),
  );
}

function addApprovals(approvals: Group): void {
  approvals
    .command('list')
    .description('list approvals, newest first')
    .option('--take <number>', 'approvals per page', wholeNumber)
    .option('--cursor <cursor>', 'go on where an earlier page ended')
    .action(
      act(async (run, { take, cursor }) => {
        const answer = await (await run.api()).call('agent.approvals.list', {
          query: { ...(take ? { take } : {}), ...(cursor ? { cursor } : {}) },
        });
        run.output.result(answer, () => {
          run.output.table(
            [{ title: 'Id', whole: true }, { title: 'Status' }, { title: 'Operation' }, { title: 'Until' }],
            answer.body.records.map(({ approvalId, status, operationId, expiresAt }) => [
              approvalId,
              status,
              operationId,
              expiresAt,
            ]),
          );
          if (answer.body.nextCursor) run.output.note(`There are more: --cursor ${answer.body.nextCursor}`);
        });
      }),
    );
  approvals
    .command('show')
    .description('print an approval with its request and preview as JSON')
    .argument('<id>')
    .action(
      act(async (run, approvalId) => {
        const answer = await (await run.api()).call('agent.approvals.get', { path: { approvalId } });
        run.output.result(answer, () => run.output.data(JSON.stringify(answer.body, null, 2)));
      }),
    );
  for (const decision of ['approve', 'reject'] as const)
    approvals
      .command(decision)
      .description(decision === 'approve' ? 'allow what was asked for, once' : 'refuse it')
      .argument('<id>')
      .requiredOption('--fingerprint <text>', 'of the request that you have read: `erp agent approvals show <id>`')
      .option('--comment <text>', 'why')
      .action(
        act(async (run, approvalId, { fingerprint, comment }) => {
          const answer = await (await run.api()).call(
            'agent.approvals.decide',
            { path: { approvalId }, body: { decision, fingerprint, ...(comment ? { comment } : {}) } },
            { what: 'The decision' },
          );
          run.output.result(answer, () => run.output.line(`${answer.body.status} ${approvalId}`));
        }),
      );
}
