/** `tenant rename KEY --name …`. */
import type { Command } from '@commander-js/extra-typings';
import type { Session } from './session.ts';
import { showTenant } from './show.ts';

export function addRename(program: Command, session: Session): void {
  program
    .command('rename')
    .description('give a tenant another name; its key is for good, because sign-in names and client ids begin with it')
    .argument('<key>')
    .requiredOption('--name <name>', 'the new name')
    .option('--json', 'print JSON')
    .action(async (key, { name, ...options }) => {
      await session.require('metadata');
      showTenant(session, await session.call('metadata.tenants.rename', { key, name }), options);
    });
}
