/** Identity, limits, scopes and capabilities: `whoami`, `limits`, `scopes`, `capabilities`. */
import { act, type Program } from '../command.ts';
import { valueText } from '../output/values.ts';

export function addIdentity(program: Program): void {
  program
    .command('whoami')
    .description('show the person, tenant and connection behind the token')
    .action(
      act(async (run) => {
        const answer = await (await run.api()).call('me.identity.get', {});
        const { tenant, user, connection } = answer.body;
        const { profileName, baseUrl } = await run.session();
        run.output.result(answer, () =>
          run.output.pairs([
            ['user', `${user.displayName} <${user.username}>`],
            ['tenant', tenant.name],
            ['profile', profileName ?? '(token from ERP_TOKEN)'],
            ['base URL', baseUrl],
            ['client', connection.clientName],
            ['scopes', connection.scopes.join(' ')],
            ['token expires', connection.tokenExpiresAt ?? 'not known'],
          ]),
        );
      }),
    );
  addLimits(program);
  addDescriptions(program);
}

function addLimits(program: Program): void {
  program
    .command('limits')
    .description('show what may be used, and what is left of it')
    .action(
      act(async (run) => {
        const answer = await (await run.api()).call('me.limits.get', {});
        const { policies, concurrency, storage } = answer.body;
        const { output } = run;
        output.result(answer, () => {
          output.table(
            [{ title: 'Policy' }, ...['Limit', 'Used', 'Left', 'Seconds'].map((title) => ({ title, right: true }))],
            policies.map(({ name, limit, used, remaining, windowSeconds }) =>
              [name, limit, used, remaining, windowSeconds].map((value) => String(value ?? '')),
            ),
          );
          if (output.terminal.pretty) output.line();
          output.pairs([
            ['at the same time', `${concurrency.limit}, costly ones ${concurrency.costlyLimit}`],
            ['storage', `${storage.usedBytes} bytes${storage.limitBytes === null ? '' : ` of ${storage.limitBytes}`}`],
          ]);
        });
      }),
    );
}

function addDescriptions(program: Program): void {
  program
    .command('scopes')
    .description('list what a sign-in can be used for')
    .action(
      act(async (run) => {
        const answer = await (await run.api()).call('schema.scopes.list', {});
        run.output.result(answer, () =>
          run.output.table(
            [{ title: 'Scope', whole: true }, { title: 'Meaning' }],
            answer.body.map(({ scope, description }) => [scope, description]),
          ),
        );
      }),
    );
  program
    .command('capabilities')
    .description('list the operations of the platform with risk and cost')
    .action(
      act(async (run) => {
        const answer = await (await run.api()).call('schema.capabilities.get', {});
        run.output.result(answer, () => {
          const operations = answer.body.operations.map((row) => new Map(Object.entries(row)));
          run.output.table(
            [
              { title: 'Operation', whole: true },
              { title: 'Method' },
              { title: 'Path' },
              { title: 'Risk' },
              { title: 'Cost', right: true },
            ],
            operations.map((row) =>
              ['operationId', 'method', 'path', 'risk', 'cost'].map((name) => valueText(row.get(name))),
            ),
          );
        });
      }),
    );
}
