/** The tenant that benchmarks work in: its objects, its user, a token of that user. */
import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { ServiceBroker } from 'moleculer';
import { readConfig } from '../config/env.ts';
import { call } from '../contracts/call.ts';
import { start } from '../main.ts';
import { METADATA } from './dataset.ts';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const USER = 'bench@bench.example';
const PASSWORD = 'bench-password';

/** Creates it on a running platform, by its own engine. */
export async function addBenchTenant(broker: ServiceBroker): Promise<{ tenantId: string; userId: string }> {
  const { tenantId } = await call(broker, 'metadata.tenants.create', {
    template: 'empty',
    key: 'bench',
    name: 'Bench',
  });
  await call(broker, 'auth.domains.add', { tenantId, domain: 'bench.example' });
  await call(broker, 'metadata.templates.deploy', { tenantId, files: METADATA });
  const { userIds } = await call(broker, 'data.users.provision', {
    tenantId,
    users: [{ username: USER, email: USER, displayName: 'Bench', profileApiName: 'Administrator', password: PASSWORD }],
  });
  return { tenantId, userId: userIds[USER]! };
}

/** Creates it on a database without a running platform. */
export async function createBenchTenant(databaseUrl: string): ReturnType<typeof addBenchTenant> {
  const running = await start({
    ...readConfig({ DATABASE_URL: databaseUrl, PORT: '0', LOG_LEVEL: 'warn', SEED_DEMO: 'false' }),
  });
  const created = await addBenchTenant(running.broker);
  await running.stop();
  return created;
}

/** Signs the user in, as an application would. */
export async function tokenFor(baseUrl: string): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(root, 'scripts', 'token.ts'), '--user', USER, '--base-url', baseUrl],
    { env: { ...process.env, DEMO_PASSWORD: PASSWORD } },
  );
  return stdout.trim();
}
