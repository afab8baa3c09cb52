/** `tenant show KEY`, and what other commands show of a tenant that they have changed. */

import type { Command } from '@commander-js/extra-typings';
import type { TenantDescription } from '../../contracts/metadata.ts';
import { RATE_LIMIT_NAMES } from '../../lib/schema/snapshot.ts';
import { noTenant } from './find.ts';
import type { Session } from './session.ts';
import { columns } from './text.ts';

export function addShow(program: Command, session: Session): void {
  program
    .command('show')
    .description('show one tenant')
    .argument('<key>')
    .option('--json', 'print JSON')
    .action(async (key, options) => {
      await session.require('metadata', 'auth');
      const [tenant] = await session.call('metadata.tenants.describe', { key });
      if (!tenant) throw noTenant(key);
      const { domains } = await session.call('auth.domains.list', { tenantId: tenant.id });
      session.show(
        { ...tenant, domains },
        options,
        columns([...rowsOf(tenant), ['domains', domains.join(', ') || 'none']]),
      );
    });
}

/** The tenant as it is now, after a change. */
export function showTenant(session: Session, tenant: TenantDescription, options: { json?: true | undefined }): void {
  session.show(tenant, options, columns(rowsOf(tenant)));
}

function rowsOf(tenant: TenantDescription): string[][] {
  const limits = RATE_LIMIT_NAMES.flatMap((name) =>
    tenant.operatorLimits[name] === null ? [] : [`${name}=${tenant.operatorLimits[name]}`],
  );
  return [
    ['key', tenant.key],
    ['name', tenant.name],
    ['id', tenant.id],
    ['state', tenant.state],
    ...(tenant.suspension ? [['suspended', `since ${tenant.suspension.at}: ${tenant.suspension.reason ?? ''}`]] : []),
    ...(tenant.deleteAt ? [['erased', `from ${tenant.deleteAt} on`]] : []),
    ...(tenant.templatePending ? [['template', 'not deployed yet: repeat its creation']] : []),
    ['created', tenant.createdAt],
    ['region', tenant.region],
    ['edition', tenant.sandbox ? `${tenant.edition}, sandbox` : tenant.edition],
    ['locale', tenant.locale],
    ['timezone', tenant.timezone],
    ['currency', tenant.currency],
    ['limits', limits.join(' ') || 'those of the deployment'],
    ['configuration', `version ${tenant.metadataVersion}`],
  ];
}
