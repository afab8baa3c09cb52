/** Who one is, what one may use, and what there is: `whoami`, `limits`, `scopes`, `capabilities`. */
import { act, type Program } from '../command.ts';

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
}
