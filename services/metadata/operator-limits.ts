/**
 * Limits of a tenant that the operator sets: the one way in which a tenant gets more than the deployment's defaults.
 */
import type { MetadataActions } from '../../contracts/metadata.ts';
import { RATE_LIMIT_MAX } from '../../contracts/ratelimit.ts';
import { PlatformError, violation } from '../../lib/errors/platform-error.ts';
import { RATE_LIMIT_NAMES, type RateLimitOverrides } from '../../lib/schema/snapshot.ts';
import type { Database } from '../../mixins/database/database.ts';
import { writeOperatorEntry } from './operator-entry.ts';
import { findTenant } from './store.ts';

type SetLimits = MetadataActions['metadata.tenants.setLimits'];
type TenantLimits = SetLimits['result'];

const NONE: RateLimitOverrides = { connection: null, tenant: null, daily: null, concurrency: null };

/**
 * Sets the named limits, or takes them back where they are null; the others stay. Leaves an entry in the tenant's
 * trail.
 */
export async function setOperatorLimits(
  database: Database,
  { key, limits, liftOwn = false }: SetLimits['params'],
): Promise<TenantLimits> {
  const given = checked(limits, liftOwn);
  const tenant = await database.shared('metadata', null, (tx) => findTenant(tx, { key: String(key) }));
  if (!tenant) throw new PlatformError('PARAMETER_INVALID', 'There is no tenant of this key.');
  return database.shared('metadata', tenant.id, async (tx) => {
    const row = await tx.one<{ limits: RateLimitOverrides; own: RateLimitOverrides }>({
      text: 'SELECT operator_limits AS limits, rate_limits AS own FROM metadata.tenants WHERE id = $1 FOR UPDATE',
      values: [tenant.id],
    });
    const after: RateLimitOverrides = { ...row.limits, ...given };
    const own = liftOwn ? NONE : row.own;
    await tx.query({
      text: 'UPDATE metadata.tenants SET operator_limits = $2, rate_limits = $3 WHERE id = $1',
      values: [tenant.id, JSON.stringify(after), JSON.stringify(own)],
    });
    const changes = { ...changesOf(row.limits, after), ...changesOf(row.own, own, 'rateLimits.') };
    await writeOperatorEntry(tx, tenant.id, 'metadata.tenants.setLimits', changes);
    return { tenantId: tenant.id, key: tenant.key, name: tenant.name, limits: after };
  });
}

/** Tenants for which the operator has set a limit, in the order of their ids. */
export function listOperatorLimits(
  database: Database,
  { after, take }: { after: string | undefined; take: number },
): Promise<TenantLimits[]> {
  return database.shared('metadata', null, async (tx) => {
    const { rows } = await tx.query<TenantLimits>({
      text: `SELECT id AS "tenantId", key, name, operator_limits AS limits FROM metadata.tenants
        WHERE ($1::uuid IS NULL OR id > $1) AND jsonb_strip_nulls(operator_limits) <> '{}' ORDER BY id LIMIT $2`,
      values: [after ?? null, take],
    });
    return rows;
  });
}

/** All violations at once: the input was typed by a person. */
function checked(limits: SetLimits['params']['limits'] | undefined, liftOwn: boolean): Partial<RateLimitOverrides> {
  const given = Object.entries(limits ?? {});
  const known = new Set<string>(RATE_LIMIT_NAMES);
  const errors = given.flatMap(([name, value]) =>
    !known.has(name)
      ? [
          violation(
            `/limits/${name}`,
            'PARAMETER_INVALID',
            `There is no limit ${name}: ${RATE_LIMIT_NAMES.join(', ')}.`,
          ),
        ]
      : value === null || (Number.isInteger(value) && value >= 1 && value <= RATE_LIMIT_MAX)
        ? []
        : [violation(`/limits/${name}`, 'PARAMETER_INVALID', `${name} must be an integer from 1, or null.`)],
  );
  if (given.length === 0 && !liftOwn)
    errors.push(violation('/limits', 'PARAMETER_INVALID', 'Name at least one limit.'));
  if (errors.length > 0) throw new PlatformError('PARAMETER_INVALID', 'The limits cannot be set.', { errors });
  return Object.fromEntries(given);
}

const changesOf = (from: RateLimitOverrides, to: RateLimitOverrides, prefix = ''): object =>
  Object.fromEntries(
    RATE_LIMIT_NAMES.flatMap((name) =>
      from[name] === to[name] ? [] : [[prefix + name, { from: from[name], to: to[name] }]],
    ),
  );
