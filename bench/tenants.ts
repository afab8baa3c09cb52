/**
 * Many tenants in one database: `node bench/tenants.ts --tenants 200`. Provisions them with the ERP template while the
 * services run apart over NATS, touches every one of them, and prints what docs/scaling.md reports: time per tenant,
 * memory of each service before and after, and the latency of lists that jump from tenant to tenant.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { ServiceBroker } from 'moleculer';
import { brokerOptions } from '../config/broker.ts';
import { readConfig } from '../config/env.ts';
import { ALL_SERVICES } from '../config/services.ts';
import { BUS_POLICY } from '../contracts/bus.ts';
import { call } from '../contracts/call.ts';
import { uuidv7 } from '../lib/values/ids.ts';
import { natsBus } from '../mixins/bus/nats-bus.ts';
import { freePort, startEmbeddedDatabase } from '../mixins/database/embedded.ts';
import { templateFiles } from '../templates/seed.ts';
import { ensureWrk, pidOf, runLoad } from './load.ts';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { values: options } = parseArgs({
  options: { tenants: { type: 'string', default: '200' }, seconds: { type: 'string', default: '10' } },
});
const count = Number(options.tenants);
const PASSWORD = 'bench-password';
const children = new Map<string, ChildProcess>();

const rssMiB = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
const memory = (): Record<string, string> =>
  Object.fromEntries(
    [...children]
      .filter(([name]) => name !== 'nats')
      .map(([name, child]) => [name, `${rssMiB(pidOf(child)).toFixed(0)} MiB`]),
  );
const quantile = (values: number[], q: number): number =>
  values.sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))] ?? Number.NaN;

ensureWrk();
const work = mkdtempSync(join(tmpdir(), 'tenants-'));
const embedded = await startEmbeddedDatabase(work);
const natsPort = await freePort();
const port = await freePort();
const baseUrl = `http://127.0.0.1:${port}`;
const env = {
  ...process.env,
  DATABASE_URL: embedded.url,
  NATS_URL: `nats://127.0.0.1:${natsPort}`,
  PORT: String(port),
  BASE_URL: baseUrl,
  SEED_DEMO: 'false',
  LOG_LEVEL: 'warn',
  DATA_DIR: work,
  RATE_ANONYMOUS_REQUESTS: '100000000',
  RATE_CONNECTION_UNITS: '100000000',
  RATE_TENANT_UNITS: '100000000',
};
let broker: ServiceBroker | undefined;
try {
  children.set('nats', spawn('nats-server', ['-a', '127.0.0.1', '-p', String(natsPort)], { stdio: 'ignore' }));
  // The gateway comes last and sees the others.
  for (const name of ALL_SERVICES.toReversed()) {
    const child = spawn(process.execPath, [join(root, 'main.ts')], {
      env: { ...env, SERVICES: name },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.set(name, child);
    await new Promise<void>((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`${name} ended with ${code}`)));
      child.stdout?.on('data', (chunk: Buffer) => chunk.includes('ready ') && resolve());
    });
  }
  const config = readConfig({ NATS_URL: env.NATS_URL, LOG_LEVEL: 'silent' }, { operator: 'bench' });
  broker = new ServiceBroker({ ...brokerOptions(config), transporter: natsBus(config, BUS_POLICY) });
  await broker.start();
  await broker.waitForServices(['metadata', 'data', 'auth']);
  console.log('memory before', memory());
  const files = await templateFiles('erp');
  const took: number[] = [];
  const tenants: { tenantId: string; user: string }[] = [];
  for (let i = 1; i <= count; i++) {
    const user = `admin@tenant${i}.example`;
    const started = performance.now();
    const { tenantId } = await call(broker, 'metadata.tenants.create', {
      template: 'empty',
      key: `tenant${i}`,
      name: `Tenant ${i}`,
    });
    await call(broker, 'auth.domains.add', { tenantId, domain: `tenant${i}.example` });
    await call(broker, 'metadata.templates.deploy', { tenantId, files }, { timeout: 60_000 });
    took.push(performance.now() - started);
    const { userIds } = await call(broker, 'data.users.provision', {
      tenantId,
      users: [
        { username: user, email: user, displayName: `Admin ${i}`, profileApiName: 'Administrator', password: PASSWORD },
      ],
    });
    const owner = userIds[user]!;
    await call(broker, 'data.samples.load', {
      tenantId,
      objectApiName: 'Account',
      columns: ['id', 'ownerId', 'createdAt', 'createdById', 'updatedAt', 'updatedById', 'name'],
      rows: Array.from({ length: 60 }, (_, k) => {
        const now = new Date(1_760_000_000_000 + k * 60_000).toISOString();
        return [uuidv7(1_760_000_000_000 + k * 60_000), owner, now, owner, now, owner, `Customer ${k} of tenant ${i}`];
      }),
    });
    tenants.push({ tenantId, user });
    if (i % 20 === 0) console.log(`${i} tenants, ${quantile(took.slice(-20), 0.5).toFixed(0)} ms each`);
  }
  console.log(
    `provisioning: first ${took[0]?.toFixed(0)} ms, p50 ${quantile([...took], 0.5).toFixed(0)} ms, p99 ${quantile([...took], 0.99).toFixed(0)} ms`,
  );
  const requests = [];
  const first: number[] = [];
  for (const { user } of tenants) {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [join(root, 'scripts', 'token.ts'), '--user', user, '--base-url', baseUrl],
      {
        env: { ...process.env, DEMO_PASSWORD: PASSWORD },
      },
    );
    const request = {
      path: '/api/v1/data/Account?take=50&fields=id,name,ownerId',
      headers: { authorization: `Bearer ${stdout.trim()}` },
    };
    const started = performance.now();
    const response = await fetch(baseUrl + request.path, request);
    const page = (await response.json()) as { records: unknown[] };
    if (page.records.length !== 50)
      throw new Error(`${user}: ${response.status} ${JSON.stringify(page).slice(0, 200)}`);
    first.push(performance.now() - started);
    requests.push(request);
  }
  console.log(
    `first list of each tenant: p50 ${quantile(first, 0.5).toFixed(1)} ms, p99 ${quantile(first, 0.99).toFixed(1)} ms`,
  );
  await runLoad(baseUrl, requests, 16, Number(options.seconds)); // every connection meets every tenant once
  for (const connections of [1, 16]) {
    const among = await runLoad(baseUrl, requests, connections, Number(options.seconds));
    const alone = await runLoad(baseUrl, requests.slice(0, 1), connections, Number(options.seconds));
    const line = (name: string, r: typeof among): string =>
      `${name} c=${connections}: ${r.rps.toFixed(0)} lists/s, p50 ${r.p50.toFixed(2)} ms, p99 ${r.p99.toFixed(2)} ms, ${r.errors} errors`;
    console.log(line(`among ${count} tenants`, among));
    console.log(line('in one tenant', alone));
  }
  console.log('memory after', memory());
} finally {
  await broker?.stop();
  for (const child of [...children.values()].reverse()) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGTERM');
    await new Promise((resolve) => child.once('exit', resolve));
  }
  await embedded.stop();
  rmSync(work, { recursive: true, force: true });
}
