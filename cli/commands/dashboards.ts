/** `dashboards`: drafts, publication and widgets. */
import type { OperationInput } from '../../contracts/operations.ts';
import { act, addGroup, type Group, type Program, type Run } from '../command.ts';
import { readData, wholeNumber } from '../data/assignments.ts';
import type { Answer } from '../http/api.ts';
import { valueText } from '../output/values.ts';

const BODY = 'JSON: {…}, @file, or - for standard input';

interface DashboardBody {
  dashboardId: string;
  name: string;
  revision: number;
}

export function addDashboards(program: Program): void {
  const dashboards = addGroup(program, 'dashboards', 'dashboards and their widgets');
  addReads(dashboards);
  addChanges(dashboards);
}

function addReads(dashboards: Group): void {
  dashboards
    .command('list')
    .description('list the dashboards that you can open')
    .option('--search <words>', 'in their names')
    .option('--page <number>', 'page of the list', wholeNumber)
    .action(
      act(async (run, { search, page }) => {
        const answer = await (await run.api()).call('analytics.dashboards.list', {
          query: { ...(search ? { search } : {}), ...(page ? { page } : {}) },
        });
        run.output.result(answer, () =>
          run.output.table(
            [
              { title: 'Id', whole: true },
              { title: 'Name' },
              { title: 'Revision', right: true },
              { title: 'Widgets', right: true },
            ],
            answer.body.records.map(({ dashboardId, name, revision, widgetCount }) => [
              dashboardId,
              name,
              String(revision),
              String(widgetCount),
            ]),
          ),
        );
      }),
    );
  dashboards
    .command('get')
    .description('print a dashboard as JSON')
    .argument('<id>')
    .action(
      act(async (run, dashboardId) => {
        const answer = await (await run.api()).call('analytics.dashboards.get', { path: { dashboardId } });
        run.output.result(answer, () => run.output.data(JSON.stringify(answer.body, null, 2)));
      }),
    );
  dashboards
    .command('run-widget')
    .description('show the result of a widget, over the records that you can see')
    .argument('<id>')
    .argument('<widget>', 'its key')
    .option('--data <json>', `conditions and limit, ${BODY}`)
    .action(
      act(async (run, dashboardId, widgetKey, { data }) => {
        type Body = NonNullable<OperationInput<'analytics.dashboards.widgets.run'>['body']>;
        const answer = await (await run.api()).call('analytics.dashboards.widgets.run', {
          path: { dashboardId, widgetKey },
          ...(data === undefined ? {} : { body: await readData<Body>(data) }),
        });
        const { columns, rows, truncated, accessNotes } = answer.body;
        run.output.result(answer, () => {
          run.output.table(
            columns.map(({ label, role }) => ({ title: label, right: role === 'measure' })),
            rows.map((row) => row.map(valueText)),
          );
          for (const { message } of accessNotes) run.output.note(message);
          if (truncated) run.output.note('There are more rows than shown.');
        });
      }),
    );
}

function addChanges(dashboards: Group): void {
  dashboards
    .command('create')
    .description('create a draft')
    .requiredOption('--data <json>', BODY)
    .action(
      act(async (run, { data }) => {
        type Body = OperationInput<'analytics.dashboards.create'>['body'];
        const body = await readData<Body>(data);
        show(
          run,
          'Created',
          await (await run.api()).call('analytics.dashboards.create', { body }, { what: 'The creation' }),
        );
      }),
    );
  dashboards
    .command('update')
    .description('change the draft; what is not named stays')
    .argument('<id>')
    .requiredOption('--data <json>', BODY)
    .option('--revision <number>', 'change this revision only (default: the present one)', wholeNumber)
    .action(
      act(async (run, dashboardId, { data, revision }) => {
        type Body = OperationInput<'analytics.dashboards.update'>['body'];
        const body = await readData<Body>(data);
        const expectedRevision = body.expectedRevision ?? revision ?? (await revisionOf(run, dashboardId));
        const input = { path: { dashboardId }, body, headers: { expectedRevision } };
        show(
          run,
          'Changed',
          await (await run.api()).call('analytics.dashboards.update', input, { what: 'The change' }),
        );
      }),
    );
  dashboards
    .command('publish')
    .description('publish the draft')
    .argument('<id>')
    .option('--comment <text>', 'why')
    .option('--revision <number>', 'publish this revision only (default: the present one)', wholeNumber)
    .action(
      act(async (run, dashboardId, { comment, revision }) => {
        const expectedRevision = revision ?? (await revisionOf(run, dashboardId));
        const input = { path: { dashboardId }, body: { expectedRevision, ...(comment ? { comment } : {}) } };
        show(
          run,
          'Published',
          await (await run.api()).call('analytics.dashboards.publish', input, { what: 'The publication' }),
        );
      }),
    );
  dashboards
    .command('delete')
    .description('delete a dashboard')
    .argument('<id>')
    .option('--revision <number>', 'delete this revision only (default: the present one)', wholeNumber)
    .action(
      act(async (run, dashboardId, { revision }) => {
        const expectedRevision = revision ?? (await revisionOf(run, dashboardId));
        const input = { path: { dashboardId }, headers: { expectedRevision } };
        const answer = await (await run.api()).call('analytics.dashboards.delete', input, { what: 'The deletion' });
        run.output.result(answer, () => run.output.line(`Deleted ${dashboardId}`));
      }),
    );
}

async function revisionOf(run: Run, dashboardId: string): Promise<number> {
  const { body } = await (await run.api()).call('analytics.dashboards.get', { path: { dashboardId } });
  return body.revision;
}

function show({ output }: Run, what: string, answer: Answer<DashboardBody>): void {
  const { dashboardId, name, revision } = answer.body;
  output.result(answer, () =>
    output.line(output.terminal.pretty ? `${what} ${name}, revision ${revision}: ${dashboardId}` : dashboardId),
  );
}
