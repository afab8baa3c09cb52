/** `access explain`: what allows or denies an operation on a record. */
import { Option } from '@commander-js/extra-typings';
import { OPERATIONS_EXPLAINED } from '../../contracts/data/explain.ts';
import { act, type Program } from '../command.ts';
import { userIdOf } from '../data/names.ts';

export function addAccess(program: Program): void {
  program
    .command('access')
    .description('who may do what')
    .command('explain')
    .description('show what allows or denies an operation on a record')
    .argument('<object>')
    .argument('<id>')
    .addOption(new Option('--op <operation>', 'the operation').choices(OPERATIONS_EXPLAINED).default('read' as const))
    .option('--field <name>', 'a field, with read, create and update')
    .option('--transition <key>', 'the transition, with --op transition')
    .option(
      '--user <user>',
      'for another user, by username, address or id; needs the scope setup:read and the permission metadataRead',
    )
    .action(
      act(async (run, objectApiName, id, { op, field, transition, user }) => {
        const api = await run.api();
        const answer = await api.call('data.access.explain', {
          path: { objectApiName, id },
          body: {
            operation: op,
            ...(field ? { field } : {}),
            ...(transition ? { transitionKey: transition } : {}),
            ...(user ? { userId: await userIdOf(api, user) } : {}),
          },
        });
        const { allowed, steps } = answer.body;
        run.output.result(answer, () => {
          const { output } = run;
          if (output.terminal.pretty)
            output.line(output.terminal.paint(allowed ? 'green' : 'red', allowed ? 'Allowed' : 'Denied'));
          output.table(
            [
              { title: 'Layer', whole: true },
              { title: 'Result', whole: true },
              { title: 'Granted by' },
              { title: 'Remedy' },
            ],
            steps.map(({ layer, result, grantedBy, remedy }) => [
              layer,
              result,
              grantedBy.map(({ kind, apiName }) => (apiName ? `${kind} ${apiName}` : kind)).join(', '),
              remedy ?? '',
            ]),
          );
        });
      }),
    );
}
