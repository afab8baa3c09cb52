/** `tenant suspend KEY --reason …` and `tenant resume KEY`. */
import type { Command } from '@commander-js/extra-typings';
import type { Session } from './session.ts';
import { showTenant } from './show.ts';

export function addSuspend(program: Command, session: Session): void {
  program
    .command('suspend')
    .description('end all work in a tenant within seconds; nothing of it is lost, and resume brings everything back')
    .argument('<key>')
    .requiredOption('--reason <text>', "why, for the tenant's audit trail")
    .option('--json', 'print JSON')
    .action(async (key, { reason, ...options }) => {
      await session.require('metadata');
      showTenant(session, await session.call('metadata.tenants.suspend', { key, reason }), options);
    });
}

export function addResume(program: Command, session: Session): void {
  program
    .command('resume')
    .description('take a suspension back')
    .argument('<key>')
    .option('--json', 'print JSON')
    .action(async (key, options) => {
      await session.require('metadata');
      showTenant(session, await session.call('metadata.tenants.resume', { key }), options);
    });
}
