/** `tenant list`. */

import type { Command } from '@commander-js/extra-typings';
import type { TenantDescription } from '../../contracts/metadata.ts';
import type { Session } from './session.ts';
import { columns } from './text.ts';

const PAGE = 500;

export function addList(program: Command, session: Session): void {
  program
    .command('list')
    .description('list all tenants')
    .option('--json', 'print JSON')
    .action(async (options) => {
      await session.require('metadata');
      const found: TenantDescription[] = [];
      for (;;) {
        const after = found.at(-1)?.id;
        const page = await session.call('metadata.tenants.describe', { take: PAGE, ...(after ? { after } : {}) });
        found.push(...page);
        if (page.length < PAGE) break;
      }
      const rows = found.map(({ key, id, state, name }) => [key, id, state, name]);
      session.show(found, options, columns([['KEY', 'ID', 'STATE', 'NAME'], ...rows]));
    });
}
