/** `tenant import FILE`. Source: docs/reference/moving-tenants.md. */

import type { Command } from '@commander-js/extra-typings';
import { made } from './moved.ts';
import type { Session } from './session.ts';
import { columns } from './text.ts';

export function addImport(program: Command, session: Session): void {
  program
    .command('import')
    .description('make a tenant of a file that export wrote, as the owner of the database (DATABASE_URL)')
    .argument('<file>', '- for standard input')
    .option('--key <key>', 'another key than the one in the file')
    .option('--name <name>', 'another name')
    .option('--without-domains', 'leave the mail domains to the tenant that has them')
    .option('--check', 'only see whether the file is whole; needs no database')
    .option('--json', 'print JSON')
    .action(async (file, { key, name, withoutDomains, check, json }) => {
      const { asOwner, checkFile, importFromFile, stoppable } = await import('./moving/commands.ts');
      if (check) {
        const { head, sha256 } = await stoppable((stopped) => checkFile(file, stopped));
        const { tenant, exportedAt } = head;
        session.show(
          { key: tenant.key, name: tenant.name, exportedAt, sha256 },
          { json },
          columns([
            ['tenant', `${tenant.key}, ${tenant.name}, as of ${exportedAt}`],
            ['file', 'whole'],
            ['sha256', sha256],
          ]),
        );
        return;
      }
      const imported = await stoppable((stopped) =>
        asOwner('tenant import', (database, blobs, region) =>
          importFromFile(database, file, { blobs, key, name, region, domains: !withoutDomains }, stopped),
        ),
      );
      session.show(imported, { json }, made(imported, 'imported'));
    });
}
