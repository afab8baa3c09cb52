/** `tenant delete KEY --confirm KEY`, `tenant undelete KEY` and `tenant deletions [KEY]`. */

import type { Command } from '@commander-js/extra-typings';
import { InvalidArgumentError } from '@commander-js/extra-typings';
import { DELETION_GRACE_DAYS, type TenantDeletion } from '../../contracts/metadata.ts';
import type { Session } from './session.ts';
import { showTenant } from './show.ts';

const { default: USUAL_DAYS, max: DAYS_MAX } = DELETION_GRACE_DAYS;

function days(text: string): number {
  const number = Number(text);
  if (!/^\d{1,3}$/.test(text) || number > DAYS_MAX)
    throw new InvalidArgumentError(`It must be a whole number of days from 0 to ${DAYS_MAX}.`);
  return number;
}

export function addDelete(program: Command, session: Session): void {
  program
    .command('delete')
    .description('suspend a tenant at once, and erase it after a grace period in which undelete takes that back')
    .argument('<key>')
    .requiredOption('--confirm <key>', 'the key once more')
    .option('--grace-days <days>', `days until it is erased, ${USUAL_DAYS} unless given; 0: within minutes`, days)
    .option('--json', 'print JSON')
    .action(async (key, { confirm, graceDays, ...options }) => {
      await session.require('metadata');
      const given = { key, confirm, ...(graceDays === undefined ? {} : { graceDays }) };
      showTenant(session, await session.call('metadata.tenants.delete', given), options);
    });
}

export function addUndelete(program: Command, session: Session): void {
  program
    .command('undelete')
    .description('take a deletion back, until the erasure begins')
    .argument('<key>')
    .option('--json', 'print JSON')
    .action(async (key, options) => {
      await session.require('metadata');
      showTenant(session, await session.call('metadata.tenants.undelete', { key }), options);
    });
}

export function addDeletions(program: Command, session: Session): void {
  program
    .command('deletions')
    .description('show the proofs of erased tenants: what was removed, when, and that nothing is left')
    .argument('[key]')
    .option('--check', 'look once more, in all tables, for what is left of them')
    .option('--json', 'print JSON')
    .action(async (key, { check, ...options }) => {
      await session.require('metadata');
      const proofs = await session.call('metadata.tenants.listDeletions', key === undefined ? {} : { key });
      const shown: (TenantDeletion & { checkedAgain?: TenantDeletion['remaining'] })[] = [];
      for (const proof of proofs)
        shown.push(
          check && proof.finishedAt
            ? {
                ...proof,
                checkedAgain: (await session.call('metadata.tenants.findTraces', { tenantId: proof.tenantId }))
                  .remaining,
              }
            : proof,
        );
      session.show(shown, options, shown.length > 0 ? shown.flatMap(linesOf) : ['No tenant was erased.']);
      const left = shown.filter((one) => Object.keys({ ...one.remaining, ...one.checkedAgain }).length > 0);
      if (left.length > 0) throw new Error(`Something is left of ${left.map((one) => one.key).join(', ')}.`);
    });
}

function linesOf(proof: TenantDeletion & { checkedAgain?: TenantDeletion['remaining'] }): string[] {
  const { key, name, tenantId, dueAt, begunAt, finishedAt, removed, rolesRemoved, tablesChecked } = proof;
  const rows = Object.values(removed).reduce((sum, count) => sum + count, 0);
  const left = (found: TenantDeletion['remaining']): string =>
    Object.entries(found ?? {})
      .map(([table, count]) => `${table} ${count}`)
      .join(', ') || 'nothing is left';
  return [
    `${key} (${name}, ${tenantId})`,
    `  due ${dueAt}, begun ${begunAt}, ${finishedAt ? `ended ${finishedAt}` : 'under way'}`,
    `  removed: ${rows} rows of ${Object.keys(removed).length} tables, its schema${rolesRemoved === false ? '; its roles stay, another database of the server uses them' : ' and its roles'}`,
    ...Object.entries(removed)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([table, count]) => `    ${table}  ${count}`),
    ...(tablesChecked === null ? [] : [`  looked for its id in ${tablesChecked} tables: ${left(proof.remaining)}`]),
    ...(proof.checkedAgain === undefined ? [] : [`  looked once more now: ${left(proof.checkedAgain)}`]),
  ];
}
