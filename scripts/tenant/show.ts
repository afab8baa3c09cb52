/** `tenant show KEY`. */
import { RATE_LIMIT_NAMES } from '../../lib/schema/snapshot.ts';
import { findTenant } from './find.ts';
import type { Program } from './program.ts';
import type { Session } from './session.ts';
import { columns } from './text.ts';

export function addShow(program: Program, session: Session): void {
  program
    .command('show')
    .description('show one tenant')
    .argument('<key>')
    .option('--json', 'print JSON')
    .action(async (key, options) => {
      const tenant = await findTenant(session, key);
      await session.require('auth');
      const { domains } = await session.call('auth.domains.list', { tenantId: tenant.id });
      const limits = RATE_LIMIT_NAMES.flatMap((name) =>
        tenant.operatorLimits[name] === null ? [] : [`${name}=${tenant.operatorLimits[name]}`],
      );
      session.show(
        { ...tenant, domains },
        options,
        columns([
          ['key', tenant.key],
          ['name', tenant.name],
          ['id', tenant.id],
          ['state', tenant.suspended ? 'suspended' : 'active'],
          ['domains', domains.join(', ') || 'none'],
          ['region', tenant.region],
          ['edition', tenant.sandbox ? `${tenant.edition}, sandbox` : tenant.edition],
          ['locale', tenant.locale],
          ['timezone', tenant.timezone],
          ['currency', tenant.currency],
          ['limits', limits.join(' ') || 'those of the deployment'],
          ['configuration', `version ${tenant.metadataVersion}`],
        ]),
      );
    });
}
