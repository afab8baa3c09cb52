/** Summary of an imported or copied tenant, with the remaining steps. */
import type { Imported } from './moving/import.ts';
import { columns } from './text.ts';

/** Settings of the original's operator that this operator has to provide now. */
const given = (limits: Imported['limits']): string =>
  Object.entries(limits)
    .filter(([, limit]) => limit !== null)
    .map(([name, limit]) => `${name}=${limit}`)
    .join(' ') || 'those of the deployment';

export function made(
  { key, name, tenantId, domains, limits, users, rows, newUserIds, clients, identityProviders }: Imported,
  how: string,
): string[] {
  const records = Object.entries(rows).reduce(
    (sum, [part, count]) => sum + (part.startsWith('records/') ? count : 0),
    0,
  );
  return [
    ...columns([
      ['tenant', `${key}, ${name}, ${how}`],
      ['id', tenantId],
      ['domains', domains.join(', ') || 'none'],
      ['limits', given(limits)],
      ['records', String(records)],
      ['users', `${users}${newUserIds ? ', with new ids' : ''}`],
    ]),
    '',
    'No user has a password yet: docs/reference/moving-tenants.md says how users get in.',
    ...(clients.length > 0 ? [`These clients need a new secret: ${clients.join(', ')}.`] : []),
    ...(identityProviders.length > 0
      ? [`These OpenID providers need their secret again: ${identityProviders.join(', ')}.`]
      : []),
  ];
}
