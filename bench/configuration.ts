/**
 * How long configuration of a real size takes, and what others notice of it: `node bench/configuration.ts`. Starts an
 * instance of its own on an empty database and takes a generated project through validate, deploy, retrieve, a deploy
 * that changes nothing, one that changes 1,500 components, and the rollback of that. See README.md in this folder.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { readConfig } from '../config/env.ts';
import { call } from '../contracts/call.ts';
import { start } from '../main.ts';
import { freePort, startEmbeddedDatabase } from '../mixins/database/embedded.ts';
import { signIn } from '../scripts/sign-in.ts';
import {
  BUSINESS,
  changedComponents,
  filesOf,
  generateProject,
  LARGE,
  multiplied,
  type Sizes,
} from '../test/support/generated-project.ts';
import { wholePackage } from '../test/support/metadata-tenant.ts';

const { values: options } = parseArgs({
  options: {
    size: { type: 'string', default: 'large' },
    seed: { type: 'string', default: '1' },
    changes: { type: 'string', default: '1500' },
    out: { type: 'string' },
  },
});
const PASSWORD = 'a long enough password';
const LIST = '/data/User?take=50';
const LIST_EVERY_MS = 50;
/** Members of one retrieve. */
const PART = 2_000;

/** Two tenants: one is configured, the other one works. */
async function makeTenants(databaseUrl: string, folder: string): Promise<void> {
  const running = await start({
    ...readConfig({ DATABASE_URL: databaseUrl, PORT: '0', LOG_LEVEL: 'warn', SEED_DEMO: 'false', DATA_DIR: folder }),
  });
  for (const key of ['configured', 'other']) {
    const { tenantId } = await call(running.broker, 'metadata.tenants.create', { template: 'empty', key, name: key });
    await call(running.broker, 'auth.domains.add', { tenantId, domain: `${key}.example` });
    const users = Array.from({ length: 60 }, (_, i) => ({
      username: `user${i}@${key}.example`,
      email: `user${i}@${key}.example`,
      displayName: `User ${i}`,
      profileApiName: 'Administrator',
      ...(i === 0 ? { password: PASSWORD } : {}),
    }));
    await call(running.broker, 'data.users.provision', { tenantId, users }, { timeout: 60_000 });
  }
  await running.stop();
}

class Instance {
  readonly baseUrl: string;
  readonly #child: ChildProcess;

  private constructor(baseUrl: string, child: ChildProcess) {
    this.baseUrl = baseUrl;
    this.#child = child;
  }

  static async start(databaseUrl: string, folder: string): Promise<Instance> {
    const port = await freePort();
    const baseUrl = `http://127.0.0.1:${port}`;
    const child = spawn(process.execPath, [join(import.meta.dirname, '..', 'main.ts')], {
      env: {
        ...process.env,
        DATABASE_URL: databaseUrl,
        DATA_DIR: folder,
        PORT: String(port),
        BASE_URL: baseUrl,
        LOG_LEVEL: 'warn',
        SEED_DEMO: 'false',
        RATE_CONNECTION_UNITS: '100000000',
        RATE_TENANT_UNITS: '100000000',
        RATE_DAILY_UNITS: '10000000000',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await new Promise<void>((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`The instance ended with ${code} before it was ready.`)));
      child.stdout.on('data', (chunk: Buffer) => {
        if (chunk.includes('ready ')) resolve();
        else process.stderr.write(chunk);
      });
    });
    return new Instance(baseUrl, child);
  }

  /** Milliseconds of the longest turn of the event loop in the last one to two minutes, and the memory of the process in MiB. */
  async health(): Promise<{ wall: number; cpu: number; mib: number }> {
    const text = await (await fetch(`${this.baseUrl}/metrics`)).text();
    const value = (name: string): number => {
      const line = text.split('\n').find((one) => one.startsWith(name));
      return Number(line?.split(' ').at(-1) ?? Number.NaN);
    };
    return {
      wall: value('erp_event_loop_longest_turn_seconds{clock="wall"}') * 1_000,
      cpu: value('erp_event_loop_longest_turn_seconds{clock="processor"}') * 1_000,
      mib: value('process_resident_memory_bytes') / 1024 / 1024,
    };
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGTERM');
    await ended;
  }
}

interface Reply {
  readonly status: number;
  readonly text: string;
}

const caller =
  (baseUrl: string, token: string) =>
  async (method: string, path: string, body?: unknown): Promise<Reply> => {
    const response = await fetch(`${baseUrl}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'idempotency-key': randomUUID(),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, text: await response.text() };
  };
type Call = ReturnType<typeof caller>;

async function succeeded(answer: Promise<Reply>, status = 200): Promise<string> {
  const reply = await answer;
  if (reply.status !== status) throw new Error(`HTTP ${reply.status}: ${reply.text.slice(0, 500)}`);
  return reply.text;
}

/** Waits for the end of a deployment; looks at the list, whose answers are short. */
async function follow(configure: Call, accepted: string): Promise<void> {
  const { deploymentId }: { deploymentId: string } = JSON.parse(accepted);
  for (;;) {
    await pause(100);
    const {
      records,
    }: {
      records: { deploymentId: string; status: string; error: unknown }[];
    } = JSON.parse(await succeeded(configure('GET', '/metadata/deployments?take=1')));
    const found = records.find((one) => one.deploymentId === deploymentId);
    if (found?.status === 'SUCCEEDED') return;
    if (found && ['FAILED', 'CANCELED'].includes(found.status)) throw new Error(JSON.stringify(found.error));
  }
}

/** The other tenant's lists while something else happens: one begins every 50 ms, whatever became of those before. */
function listing(other: Call) {
  const times: number[] = [];
  const asked: Promise<void>[] = [];
  let failed = 0;
  const timer = setInterval(() => {
    const begun = performance.now();
    asked.push(
      other('GET', LIST).then(({ status }) => {
        if (status === 200) times.push(performance.now() - begun);
        else failed++;
      }),
    );
  }, LIST_EVERY_MS);
  return async (): Promise<number[]> => {
    clearInterval(timer);
    await Promise.all(asked);
    if (failed > 0) console.error(`${failed} lists of the other tenant failed`);
    return times.sort((a, b) => a - b);
  };
}

const at = (times: readonly number[], part: number): number => times[Math.floor(times.length * part)] ?? Number.NaN;
const ms = (value: number): string => (Number.isNaN(value) ? '–' : value.toFixed(0));
const mib = (bytes: number): string => (bytes / 1024 / 1024).toFixed(1);

const SIZES: Readonly<Record<string, Sizes>> = { business: BUSINESS, large: LARGE, largest: multiplied(LARGE, 2) };
const sizes = SIZES[options.size] ?? LARGE;
const project = generateProject(sizes, options.seed);
const files = filesOf(project);
const changed = filesOf(changedComponents(project, Number(options.changes), options.seed));
const requestOf = (given: Record<string, string>) => ({ files: given, package: wholePackage(given) });

const folder = mkdtempSync(join(tmpdir(), 'erp-configuration-'));
const embedded = await startEmbeddedDatabase(folder);
const rows: string[] = [];
let instance: Instance | undefined;
try {
  console.error(`${project.size} components, ${mib(Buffer.byteLength(JSON.stringify(files)))} MiB`);
  await makeTenants(embedded.url, folder);
  const running = (instance = await Instance.start(embedded.url, folder));
  const { baseUrl } = running;
  const signedIn = async (user: string): Promise<Call> =>
    caller(baseUrl, (await signIn({ baseUrl, user, password: PASSWORD })).access_token);
  const configure = await signedIn('user0@configured.example');
  const other = await signedIn('user0@other.example');

  /** One row of the table; `work` says what it gave. */
  const step = async (name: string, work: () => Promise<string>): Promise<void> => {
    await pause(1_000);
    await running.health();
    const ended = listing(other);
    const begun = performance.now();
    const gave = await work().catch((error: unknown) => String(error).slice(0, 200));
    const took = performance.now() - begun;
    const times = await ended();
    const { wall, cpu, mib: memory } = await running.health();
    const cells = [
      (took / 1_000).toFixed(1),
      ms(wall),
      ms(cpu),
      ms(at(times, 0.5)),
      ms(at(times, 0.99)),
      ms(memory),
      gave,
    ];
    rows.push(`| ${name} | ${cells.join(' | ')} |`);
    console.error(rows.at(-1));
  };
  const deploy = async (body: object): Promise<{ deploymentId: string; gave: string }> => {
    const accepted = await succeeded(configure('POST', '/metadata/deploy', body), 202);
    await follow(configure, accepted);
    const { deploymentId }: { deploymentId: string } = JSON.parse(accepted);
    const answer = await succeeded(configure('GET', `/metadata/deployments/${deploymentId}`));
    const { creates, updates, noops } = JSON.parse(answer).changes;
    const counts = `${creates?.length} created, ${updates?.length} changed, ${noops?.length} as they were`;
    return { deploymentId, gave: `${counts}; deployment ${mib(answer.length)} MiB` };
  };
  const validate = async (given: Record<string, string>): Promise<string> => {
    const answer = await succeeded(configure('POST', '/metadata/validate', requestOf(given)));
    const { valid, blocked }: { valid: boolean; blocked: unknown[] } = JSON.parse(answer);
    if (!valid) throw new Error(JSON.stringify(blocked.slice(0, 3)));
    return `answer ${mib(answer.length)} MiB`;
  };

  await step('nothing', async () => {
    await pause(5_000);
    return '';
  });
  await step('validate', () => validate(files));
  await step('deploy', async () => (await deploy(requestOf(files))).gave);
  await step(`retrieve in parts of ${PART}`, async () => {
    const all = Object.entries(files);
    let parts = 0;
    for (let from = 0; from < all.length; from += PART, parts++) {
      const part = Object.fromEntries(all.slice(from, from + PART));
      const answer = await succeeded(configure('POST', '/metadata/retrieve', { package: wholePackage(part) }));
      const retrieved = JSON.parse(answer).files;
      for (const [path, text] of Object.entries(part))
        if (retrieved[path] !== text) throw new Error(`${path} is not as it was deployed.`);
    }
    return `${parts} parts, equal byte for byte`;
  });
  await step('validate again', () => validate(files));
  await step('deploy again', async () => (await deploy(requestOf(files))).gave);
  await step(`validate ${options.changes} changes`, () => validate(changed));
  let last = '';
  await step(`deploy ${options.changes} changes`, async () => {
    const { deploymentId, gave } = await deploy(requestOf(changed));
    last = deploymentId;
    return gave;
  });
  await step('roll back', async () => (await deploy({ rollback: { deploymentId: last } })).gave);
} finally {
  await instance?.stop();
  await embedded.stop();
  rmSync(folder, { recursive: true, force: true });
}

const report = [
  `${new Date().toISOString().slice(0, 10)}, ${cpus().length} x ${cpus()[0]?.model.trim()}, Node ${process.version}; ` +
    `${project.size} components in as many files.`,
  '',
  '| step | s | longest turn ms | of processor time | other p50 ms | other p99 ms | memory MiB | gave |',
  '| --- | --: | --: | --: | --: | --: | --: | --- |',
  ...rows,
  '',
].join('\n');
console.log(report);
if (options.out) writeFileSync(options.out, report);
