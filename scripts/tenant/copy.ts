/** `tenant copy KEY --to KEY`: a sandbox. Source: docs/reference/moving-tenants.md#sandboxes. */
import { randomBytes } from 'node:crypto';
import type { Command } from '@commander-js/extra-typings';
import { made } from './moved.ts';
import type { Session } from './session.ts';

export function addCopy(program: Command, session: Session): void {
  program
    .command('copy')
    .description('make a sandbox of a tenant: its configuration and users, as the owner of the database (DATABASE_URL)')
    .argument('<key>')
    .requiredOption('--to <key>', 'key of the sandbox')
    .option('--name <name>', 'name of the sandbox (that of the tenant)')
    .option('--records', 'with all records')
    .option('--mask', 'with mail addresses and telephone numbers of records masked, as those of users always are')
    .option('--json', 'print JSON')
    .action(async (key, { to, name, records = false, mask = false, json }) => {
      const { asOwner, copyTenant, stoppable } = await import('./moving/commands.ts');
      const sandbox = { maskKey: randomBytes(32).toString('hex'), maskRecords: mask };
      const copied = await stoppable((stopped) =>
        asOwner('tenant copy', (database, blobs) =>
          copyTenant(
            database,
            key,
            { blobs, records, trail: false },
            { blobs, key: to, name, domains: false, sandbox },
            stopped,
          ),
        ),
      );
      session.show(copied, { json }, made(copied, 'a sandbox'));
    });
}
