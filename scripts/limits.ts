/**
 * `npm run --silent limits -- [--tenant demo [connection=6000 …]]`: shows the limits that the operator has set for tenants
 * of a running platform, or sets some. Source: docs/reference/limits.md.
 */
import { readArguments, refuse } from './arguments.ts';
import { joinPlatform, requireServices } from './join.ts';
import { LIMITS_HELP, LimitsUsage, tenantLimits } from './tenant-limits.ts';

const COMMAND = {
  name: 'limits',
  usage: `npm run --silent limits -- [--tenant KEY [NAME=VALUE … | lift]]\n\n${LIMITS_HELP}`,
};

try {
  const { values, positionals } = readArguments(COMMAND, {
    allowPositionals: true,
    options: { tenant: { type: 'string' } },
  });
  const { broker, leave } = await joinPlatform('limits');
  try {
    await requireServices(broker, 'metadata');
    console.log(await tenantLimits(broker, values.tenant, positionals));
  } finally {
    await leave();
  }
  process.exit(0);
} catch (error) {
  if (error instanceof LimitsUsage) refuse(COMMAND, error.message);
  console.error(`limits: ${error instanceof Error ? error.message : error}`);
  process.exit(1);
}
