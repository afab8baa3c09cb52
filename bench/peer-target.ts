/**
 * The platform as a target of a comparison harness that measures several products side by side. The harness has the
 * tables `account` and `invoice` of this benchmark in a PostgreSQL server of its own and loads a module like this from
 * its folder of targets; there, one line is enough: `export { default } from '<this file>'`. README.md says more.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { join } from 'node:path';
import { tenantSchema } from '../lib/context.ts';
import { Database } from '../mixins/database/database.ts';
import { INVOICES, loadTenant, rowId } from './dataset.ts';
import { type LoadRequest, pidOf } from './load.ts';
import { invoiceSchema } from './platform.ts';
import { createBenchTenant, root, tokenFor } from './tenant.ts';
import { platformTarget, WORKLOADS } from './workloads.ts';

const PORT = 18_131;
const DATABASE = 'bench_platform';
const SERVER = `postgres://postgres@127.0.0.1:${process.env['BENCH_PG_PORT'] ?? 55_432}`;
const DATABASE_URL = `${SERVER}/${DATABASE}`;

interface Row {
  [column: string]: unknown;
}

let child: ChildProcess | undefined;
const workloads: Record<string, { readonly requests: LoadRequest[]; check(body: never): unknown }> = {};

async function onDatabase<T>(url: string, work: (database: Database) => Promise<T>): Promise<T> {
  const database = new Database(url, { size: 2, applicationName: 'bench' });
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

const WRITES = 20_000;
let runs = 0;

function withNewKeys(list: readonly LoadRequest[]): LoadRequest[] {
  const run = `${Date.now()}-${++runs}`;
  return Array.from({ length: WRITES }, (_, k) => {
    const request = list[k % list.length]!;
    return { ...request, headers: { ...request.headers, 'idempotency-key': `bench-${run}-${k}` } };
  });
}

/** Values that the harness compares: row and field counts, the first number, and checks of filter and order. */
const shapeOf = (rows: Row[], total?: number): unknown => ({
  rows: rows.length,
  fields: Object.keys(rows[0] ?? {}).length,
  firstNumber: rows[0]?.['name'],
  allMatch: rows.every(
    (row, k) =>
      row['Status__c'] === 'overdue' &&
      Number(row['Amount__c']) >= 5000 &&
      (k === 0 || Number(rows[k - 1]?.['Amount__c']) >= Number(row['Amount__c'])),
  ),
  total,
});

export default {
  name: 'platform',
  describe: 'this platform in one process: token, scopes, rate limiter, permissions, history, audit, events',
  db: DATABASE,
  workloads,

  /** Database, tenant and rows, once. */
  async setup(): Promise<void> {
    const made = await onDatabase(`${SERVER}/postgres`, async (server) => {
      const found = await server.query('SELECT FROM pg_database WHERE datname = $1', [DATABASE]);
      if (found.rowCount > 0) return false;
      await server.query(`CREATE DATABASE ${DATABASE} TEMPLATE bench_base`);
      return true;
    });
    if (!made) return;
    const { tenantId, userId } = await createBenchTenant(DATABASE_URL);
    await onDatabase(DATABASE_URL, (database) => loadTenant(database, `"${tenantSchema(tenantId)}"`, userId, 'public'));
  },

  async start({ logFile }: { logFile: string }): Promise<{ baseUrl: string; pid: number }> {
    const baseUrl = `http://127.0.0.1:${PORT}`;
    child = spawn(process.execPath, [join(root, 'main.ts')], {
      env: {
        ...process.env,
        DATABASE_URL,
        PORT: String(PORT),
        BASE_URL: baseUrl,
        SEED_DEMO: 'false',
        LOG_LEVEL: 'warn',
        DATA_DIR: join(root, 'bench', '.work'),
      },
      stdio: ['ignore', 'pipe', openSync(logFile, 'a')],
    });
    await new Promise<void>((resolve, reject) => {
      child?.once('exit', (code) => reject(new Error(`the platform ended with ${code}; see ${logFile}`)));
      child?.stdout?.on('data', (chunk: Buffer) => chunk.includes('ready ') && resolve());
    });
    const { requests } = await platformTarget('platform', baseUrl, [], await tokenFor(baseUrl), Object.keys(WORKLOADS));
    for (const [name, list] of Object.entries(requests))
      workloads[name] = {
        // The harness numbers paths and bodies, not headers: a write gets new keys each time it is asked for.
        get requests() {
          return name === 'W5' || name === 'W6' ? withNewKeys(list) : list;
        },
        check: (body: never) => {
          const answer = body as Row & { records?: Row[]; total?: number };
          if (name === 'W5') return { ok: answer['Account__c'] === rowId(4711) };
          if (name === 'W6') return { ok: String(answer['Notes__c']).startsWith('changed') };
          return name === 'W4' ? shapeOf([answer]) : shapeOf(answer.records ?? [], answer.total);
        },
      };
    return { baseUrl, pid: pidOf(child) };
  },

  async stop(): Promise<void> {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGTERM');
    await new Promise((resolve) => child?.once('exit', resolve));
  },

  /** The rows that a run made go away again, and what it left behind. */
  cleanup: (): Promise<void> =>
    onDatabase(DATABASE_URL, async (database) => {
      const schema = await invoiceSchema(database);
      await database.query(`DELETE FROM ${schema}."BenchInvoice__c" WHERE id > $1`, [rowId(INVOICES)]);
      await database.query(`UPDATE ${schema}."BenchInvoice__c" SET "recordVersion" = 1 WHERE "recordVersion" > 1`);
      await database.query(`TRUNCATE ${schema}._history, ${schema}._audit, ${schema}._outbox, ${schema}._idempotency`);
      await database.query(`VACUUM ANALYZE ${schema}."BenchInvoice__c"`);
    }),
};
