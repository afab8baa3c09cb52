/** The limits that the operator sets for tenants, as typed on a command line or in the console. */
import type { ServiceBroker } from 'moleculer';
import { call } from '../contracts/call.ts';
import type { MetadataActions } from '../contracts/metadata.ts';
import { RATE_LIMIT_NAMES, type RateLimitOverrides } from '../lib/schema/snapshot.ts';
import { noTenant } from './tenant/find.ts';

export const LIMITS_HELP = `Limits of tenants in place of the deployment's own; without a tenant, those that are set.
  connection=UNITS    cost units in 60 s of one user through one client
  tenant=UNITS        cost units in 60 s of the whole tenant
  daily=UNITS         cost units in 24 h of the whole tenant
  concurrency=NUMBER  requests in flight of one user through one client
  …=default           takes the limit back
  lift                what the tenant's own settings narrow does not hold until its next deployment`;

/** The arguments were not understood; the message says which. */
export class LimitsUsage extends Error {}

const PAGE = 500;
const LIFT = 'lift';

const isLimit = (name: string | undefined): name is keyof RateLimitOverrides =>
  RATE_LIMIT_NAMES.some((known) => known === name);

/** Sets what `assignments` say for the tenant, else shows what is set. Answers the lines to print. */
export async function tenantLimits(
  broker: ServiceBroker,
  key: string | undefined,
  assignments: readonly string[],
): Promise<string> {
  if (assignments.length > 0) {
    if (key === undefined) throw new LimitsUsage('Name the tenant.');
    const limits = Object.fromEntries(assignments.filter((word) => word !== LIFT).map(readAssignment));
    const liftOwn = assignments.includes(LIFT);
    return line(await call(broker, 'metadata.tenants.setLimits', { key, limits, liftOwn }));
  }
  const found: TenantLimits[] = [];
  for (;;) {
    const after = found.at(-1)?.tenantId;
    const page = await call(
      broker,
      'metadata.tenants.listLimits',
      after === undefined ? { take: PAGE } : { after, take: PAGE },
    );
    found.push(...page);
    if (page.length < PAGE) break;
  }
  const shown = found.filter((one) => key === undefined || one.key === key);
  if (key !== undefined && shown.length === 0 && !(await call(broker, 'metadata.tenants.get', { key })))
    throw noTenant(key);
  return shown.length > 0 ? shown.map(line).join('\n') : 'No limits are set: those of the deployment hold.';
}

type TenantLimits = MetadataActions['metadata.tenants.setLimits']['result'];

function readAssignment(text: string): [keyof RateLimitOverrides, number | null] {
  const [name, value = ''] = text.split('=');
  if (!isLimit(name) || !/^(default|[1-9]\d{0,12})$/.test(value))
    throw new LimitsUsage(
      `${text} is not NAME=NUMBER, NAME=default or lift; the names are ${RATE_LIMIT_NAMES.join(', ')}.`,
    );
  return [name, value === 'default' ? null : Number(value)];
}

const line = ({ key, limits }: TenantLimits): string =>
  `${key}: ${RATE_LIMIT_NAMES.map((name) => `${name}=${limits[name] ?? 'default'}`).join(' ')}`;
