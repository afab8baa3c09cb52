/** `tenant export KEY --to FILE`. Source: docs/reference/moving-tenants.md. */
import type { Command } from '@commander-js/extra-typings';
import type { Session } from './session.ts';
import { columns } from './text.ts';

export function addExport(program: Command, session: Session): void {
  program
    .command('export')
    .description('write a tenant to a file that import reads, as the owner of the database (DATABASE_URL)')
    .argument('<key>')
    .requiredOption('--to <file>', 'the file, which must not be there yet; - for standard output')
    .option('--json', 'print JSON')
    .action(async (key, { to, json }) => {
      const { asOwner, exportToFile, stoppable } = await import('./moving/commands.ts');
      const { head, bytes, sha256 } = await stoppable((stopped) =>
        asOwner('tenant export', (database, blobs) =>
          exportToFile(database, key, to, stopped, { blobs, records: true, trail: true }),
        ),
      );
      const lines = columns([
        ['tenant', `${head.tenant.key}, as of ${head.exportedAt}`],
        ['file', to],
        ['bytes', String(bytes)],
        ['sha256', sha256],
        ['audit trail', `ends at ${head.audit.position}:${head.audit.hash}`],
      ]);
      // Standard output is the file.
      if (to === '-') for (const line of lines) session.note(line);
      else
        session.show({ key, file: to, bytes, sha256, exportedAt: head.exportedAt, audit: head.audit }, { json }, lines);
    });
}
