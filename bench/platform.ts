/** Starts what is measured: versions of the platform with their data, and the limit. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ALL_SERVICES, type ServiceName } from '../config/services.ts';
import { tenantSchema } from '../lib/context.ts';
import { identifier } from '../lib/values/sql-text.ts';
import type { Database } from '../mixins/database/database.ts';
import { freePort } from '../mixins/database/embedded.ts';
import { INVOICES, loadPlain, loadTenant, rowId } from './dataset.ts';
import { pidOf } from './load.ts';
import { type createBenchTenant, root, tokenFor } from './tenant.ts';
import { limitTarget, platformTarget, type Target } from './workloads.ts';

/** Data folder of benchmarks. */
export const work = join(root, 'bench', '.work');

/** A version of the platform, its database, and how the report calls it. */
export interface Version {
  readonly root: string;
  readonly databaseUrl: string;
  readonly database: Database;
  readonly suffix: string;
}
const children: ChildProcess[] = [];

/** Starts a process of ours and waits for its ready line. */
async function launch(folder: string, file: string, env: Record<string, string>): Promise<number> {
  const child = spawn(process.execPath, [join(folder, file)], {
    cwd: folder,
    env: { ...process.env, LOG_LEVEL: 'warn', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  await new Promise<void>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`${file} ended with ${code} before it was ready`)));
    child.stdout.on('data', (chunk: Buffer) => {
      if (chunk.includes('ready ')) resolve();
      else process.stderr.write(chunk);
    });
  });
  return pidOf(child);
}

export async function stopChildren(): Promise<void> {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGTERM');
    await new Promise((resolve) => child.once('exit', resolve));
  }
}

/** Tenant, objects, user and rows; once per data folder and version. */
export async function prepare({ root: folder, databaseUrl, database, suffix }: Version): Promise<void> {
  const done = join(work, `prepared${suffix.replaceAll(' ', '-')}`);
  if (existsSync(done)) return;
  console.error(`preparing 10,000 accounts and 200,000 invoices${suffix}, once`);
  // Each version makes its tenant with its own code.
  const module = (await import(join(folder, 'bench', 'tenant.ts'))) as { createBenchTenant: typeof createBenchTenant };
  const { tenantId, userId } = await module.createBenchTenant(databaseUrl);
  await loadPlain(database);
  await loadTenant(database, `"${tenantSchema(tenantId)}"`, userId);
  writeFileSync(done, tenantId);
}

export async function startPlatform(
  { root: folder, databaseUrl, suffix }: Version,
  mode: 'one' | 'nats',
  workloads: readonly string[],
): Promise<Target> {
  const port = await freePort();
  const baseUrl = `http://127.0.0.1:${port}`;
  const common = {
    DATABASE_URL: databaseUrl,
    PORT: String(port),
    BASE_URL: baseUrl,
    SEED_DEMO: 'false',
    RATE_CONNECTION_UNITS: '100000000',
    RATE_TENANT_UNITS: '100000000',
    RATE_DAILY_UNITS: '10000000000',
    CONCURRENCY: '10000',
    CONCURRENCY_COSTLY: '10000',
    DATA_DIR: join(work, `data${suffix.replaceAll(' ', '-')}`),
  };
  if (mode === 'one') {
    const pid = await launch(folder, 'main.ts', common);
    return platformTarget(`one process${suffix}`, baseUrl, [pid], await tokenFor(baseUrl), workloads);
  }
  const natsPort = await freePort();
  const nats = spawn('nats-server', ['-a', '127.0.0.1', '-p', String(natsPort)], { stdio: 'ignore' });
  children.push(nats);
  const apart = { ...common, NATS_URL: `nats://127.0.0.1:${natsPort}` };
  const pids = [pidOf(nats)];
  // Those on the path of a measured request have a process of their own; the gateway comes last and sees the others.
  const alone: readonly ServiceName[] = ['metadata', 'data', 'gateway'];
  const others = ALL_SERVICES.filter((service) => !alone.includes(service)).join(',');
  for (const services of [others, ...alone])
    pids.push(await launch(folder, 'main.ts', { ...apart, SERVICES: services }));
  return platformTarget(`over NATS${suffix}`, baseUrl, pids, await tokenFor(baseUrl), workloads);
}

export async function startLimit(databaseUrl: string): Promise<Target> {
  const port = await freePort();
  const pid = await launch(root, 'bench/limit-server.ts', { DATABASE_URL: databaseUrl, PORT: String(port) });
  return limitTarget(`http://127.0.0.1:${port}`, pid);
}

/** The quoted schema of the tenant with the invoices. */
export const invoiceSchema = async (database: Database): Promise<string> =>
  database.login(async (tx) => {
    const text = `SELECT table_schema AS schema FROM information_schema.tables WHERE table_name = 'BenchInvoice__c'`;
    return identifier((await tx.one<{ schema: string }>({ text })).schema);
  });

/** Rows written by an earlier run are removed, so that every run meets the same tables. */
export async function reset(database: Database, versions: readonly Version[]): Promise<void> {
  await database.query('DELETE FROM bench.invoice WHERE id > 200000');
  await database.query('VACUUM ANALYZE bench.invoice');
  for (const version of versions) {
    const schema = await invoiceSchema(version.database);
    const invoices = `${schema}."BenchInvoice__c"`;
    // Row 200,000 is dated October 2025; what a run created carries the time of the run.
    await version.database.query(`DELETE FROM ${invoices} WHERE id > $1`, [rowId(INVOICES)]);
    await version.database.query(`UPDATE ${invoices} SET "recordVersion" = 1 WHERE "recordVersion" > 1`);
    await version.database.query(
      `TRUNCATE ${schema}._history, ${schema}._audit, ${schema}._outbox, ${schema}._idempotency`,
    );
    await version.database.query(`VACUUM ANALYZE ${invoices}`);
  }
}
