/** `composite`: several changes in one request. */
import type { OperationInput } from '../../contracts/operations.ts';
import { act, addGroup, type Program } from '../command.ts';
import { readData } from '../data/assignments.ts';

export function addComposite(program: Program): void {
  addGroup(program, 'composite', 'several changes of records in one request')
    .command('run')
    .description('carry out the requests of a file, all or none unless it says otherwise')
    .argument('<json>', 'the request as JSON: {…}, @file, or - for standard input')
    .action(
      act(async (run, json) => {
        const given = await readData<OperationInput<'composite.requests.execute'>['body']>(json);
        const body = run.options.dryRun ? { ...given, checkOnly: true } : given;
        const api = await run.api();
        const answer = await api.call(
          'composite.requests.execute',
          { body },
          { what: 'The request', saysDryRun: true, decimalsAsText: !run.output.json },
        );
        run.output.result(answer, () => {
          if (!answer.body.committed) run.output.note('It would be done. Nothing was changed.');
          run.output.table(
            [{ title: 'Part' }, { title: 'Status' }, { title: 'Id', whole: true }],
            answer.body.results.map(({ referenceId, status, body: result }) => [
              referenceId,
              String(status),
              result && 'id' in result ? String(result['id']) : '',
            ]),
          );
        });
      }),
    );
}
