/**
 * `npm run --silent limits -- [--tenant demo [connection=6000 …]]`: shows the limits that the operator has set for tenants
 * of a running platform, or sets some. Source: docs/reference/limits.md.
 */
import { parseArgs } from 'node:util';
import { joinPlatform } from './join.ts';
import { LIMITS_HELP, LimitsUsage, tenantLimits } from './tenant-limits.ts';

const USAGE = `Usage: npm run --silent limits -- [--tenant KEY [NAME=VALUE … | lift]]\n\n${LIMITS_HELP}`;

function readArguments(): { tenant: string | undefined; assignments: string[]; help: boolean } {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { tenant: { type: 'string' }, help: { type: 'boolean', default: false } },
    });
    return { tenant: values.tenant, assignments: positionals, help: values.help };
  } catch (error) {
    throw new LimitsUsage(error instanceof Error ? error.message : String(error));
  }
}

try {
  const { tenant, assignments, help } = readArguments();
  if (help) {
    console.log(USAGE);
    process.exit(0);
  }
  const { broker, leave } = await joinPlatform('limits');
  try {
    await broker.waitForServices('metadata', 10_000, 100);
    console.log(await tenantLimits(broker, tenant, assignments));
  } finally {
    await leave();
  }
  process.exit(0);
} catch (error) {
  console.error(`limits: ${error instanceof Error ? error.message : error}`);
  if (error instanceof LimitsUsage) console.error(USAGE);
  process.exit(1);
}
