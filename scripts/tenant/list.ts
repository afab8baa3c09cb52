/** `tenant list`. */
import type { Tenant } from './find.ts';
import type { Program } from './program.ts';
import type { Session } from './session.ts';
import { columns } from './text.ts';

const PAGE = 500;

export function addList(program: Program, session: Session): void {
  program
    .command('list')
    .description('list all tenants')
    .option('--json', 'print JSON')
    .action(async (options) => {
      await session.require('metadata');
      const found: Tenant[] = [];
      for (;;) {
        const after = found.at(-1)?.id;
        const page = await session.call('metadata.tenants.list', { take: PAGE, ...(after ? { after } : {}) });
        found.push(...page);
        if (page.length < PAGE) break;
      }
      const rows = found.map(({ key, id, suspended, name }) => [key, id, suspended ? 'suspended' : 'active', name]);
      session.show(found, options, columns([['KEY', 'ID', 'STATE', 'NAME'], ...rows]));
    });
}
