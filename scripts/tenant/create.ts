/** `tenant create`: a tenant with its domains and its first administrator. Every step may be repeated. */

import type { Command } from '@commander-js/extra-typings';
import { Option } from '@commander-js/extra-typings';
import { TENANT_TEMPLATES } from '../../contracts/metadata.ts';
import { findTenant } from './find.ts';
import { type Session, sentences } from './session.ts';
import { columns } from './text.ts';

const several = (value: string, values: string[] = []): string[] => [...values, value];

export function addCreate(program: Command, session: Session): void {
  program
    .command('create')
    .description('create a tenant, its domains and its first administrator; repeating it finishes what was interrupted')
    .requiredOption('--key <key>', 'short name that sign-in names and client ids begin with, such as lakeside')
    .requiredOption('--name <name>', 'name of the company')
    .addOption(
      new Option('--template <name>', 'what it starts with: the ERP, or the standard object User alone')
        .choices(TENANT_TEMPLATES)
        .default('erp' as const),
    )
    .option('--timezone <name>', 'time zone, such as Europe/London (UTC)')
    .option('--currency <code>', 'currency, such as GBP (EUR)')
    .option('--locale <tag>', 'language, such as en-GB (en-US)')
    .option('--domain <domain>', 'mail domain that the company has proved to own; may be given several times', several)
    .option('--admin <username>', 'mail address of the first administrator')
    .option('--admin-name <name>', 'name of the first administrator (the mail address)')
    .option('--json', 'print JSON')
    .action(async ({ json, key, name, template, timezone, currency, locale, domain = [], admin, adminName }) => {
      await session.require('metadata', 'auth', 'data');
      // Before there is a tenant: what can be known to fail later leaves none behind.
      await session.call('auth.domains.check', { key, domains: domain });
      const { created } = await session.call('metadata.tenants.create', {
        key,
        name,
        template,
        ...(timezone === undefined ? {} : { timezone }),
        ...(currency === undefined ? {} : { currency }),
        ...(locale === undefined ? {} : { locale }),
      });
      const { id: tenantId } = await findTenant(session, key);
      const administrator = await finished(key, async () => {
        for (const one of domain) await session.call('auth.domains.add', { tenantId, domain: one });
        return admin === undefined ? null : provision(session, tenantId, admin, adminName ?? admin);
      });
      session.show(
        { tenantId, key, template, created, domains: domain, administrator },
        { json },
        columns([
          ['tenant', `${key}, ${created ? 'created' : 'was there already'}`],
          ['id', tenantId],
          ['template', template],
          ['domains', domain.join(', ') || 'none'],
          ...(administrator
            ? [
                ['administrator', administrator.signInName],
                ['password link', administrator.url],
                ['valid', `${Math.round(administrator.validSeconds / 3_600)} hours, for one use`],
              ]
            : []),
        ]),
      );
    });
}

/** Optional parts of a tenant; the message of a failure says that the tenant exists. */
async function finished<T>(key: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new Error(
      [
        `The tenant ${key} is there, but what it was to have is not complete. Repeat the command once this is mended:`,
        ...sentences(error),
      ].join('\n  '),
      { cause: error },
    );
  }
}

/** The administrator's record and credentials, and a link with which they set their password. */
async function provision(session: Session, tenantId: string, username: string, displayName: string) {
  const user = { username, email: username, displayName, profileApiName: 'Administrator' };
  const { userIds } = await session.call('data.users.provision', { tenantId, users: [user] });
  const link = await session.call('auth.users.createLink', { username, tenantId });
  return { userId: userIds[username] ?? null, username, ...link };
}
