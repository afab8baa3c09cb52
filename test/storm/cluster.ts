/**
 * The platform as an operator runs it, on one machine: PostgreSQL, NATS with TLS and a user per identity, two processes
 * of what callers wait for. Each process reaches database and bus through links of its own, has a clock of its own, and
 * is started again when it ends, as Kubernetes does.
 */

import { execFile, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { ALL_SERVICES, SERVICES, type ServiceName } from '../../config/services.ts';
import { type EmbeddedDatabase, freePort, startEmbeddedDatabase } from '../../mixins/database/embedded.ts';
import { startSecureNats } from '../support/nats.ts';
import { type ServiceProcess, startProcess } from '../support/processes.ts';
import { Link, type LinkState } from './link.ts';

/** Two of everything, in as few processes as separate faults allow. */
export const MEMBERS: Readonly<Record<string, readonly ServiceName[]>> = {
  'gateway-1': ['gateway'],
  'gateway-2': ['gateway'],
  'data-1': ['data'],
  'data-2': ['data'],
  'metadata-1': ['metadata'],
  'metadata-2': ['metadata'],
  'auth-1': ['auth', 'ratelimit'],
  'auth-2': ['auth', 'ratelimit'],
  'agent-1': ['agent', 'analytics'],
  'files-1': ['files', 'bulk', 'events'],
  'files-2': ['files', 'bulk', 'events'],
};

/** Making the demo tenants. */
const START_PATIENCE_MS = 300_000;
const AGAIN_AFTER_MS = 500;
const READY_EVERY_MS = 250;
const READY_WAIT_MS = 1_000;
const LOOK_EVERY_MS = 2_000;
/** Looks in a minute. */
const A_MINUTE = 60_000 / LOOK_EVERY_MS;
/** The data folder of a storm with full disks. */
const DISK_BYTES = 6 * 1024 ** 3;
const MIB = 1024 ** 2;
const SETTINGS = ['shared_buffers=128MB', 'max_wal_size=512MB', 'max_connections=400'];
const run = promisify(execFile);
const identityOf = (services: readonly ServiceName[]): string => [...services].sort().join('+');

/** One process, whichever runs under its name at the moment. */
export class Member {
  readonly name: string;
  readonly services: readonly ServiceName[];
  readonly port: number;
  readonly links: Readonly<Record<'database' | 'bus', Link>>;
  readonly #clock: string;
  readonly #start: (member: Member) => Promise<ServiceProcess>;
  readonly past: ServiceProcess[] = [];
  /** A gateway that answers that it is ready. */
  ready = false;
  /** Times that it ended before it was ready, in the middle of faults. */
  failedStarts = 0;
  /** Bytes of memory, every few seconds while it ran. */
  readonly memories: number[] = [];
  process: ServiceProcess | null = null;
  #ended = false;

  constructor(
    name: string,
    given: {
      services: readonly ServiceName[];
      port: number;
      links: Member['links'];
      clock: string;
      start: (member: Member) => Promise<ServiceProcess>;
    },
  ) {
    this.name = name;
    this.services = given.services;
    this.port = given.port;
    this.links = given.links;
    this.#clock = given.clock;
    this.#start = given.start;
    this.setClock(0);
  }

  get isGateway(): boolean {
    return this.services.includes('gateway');
  }

  get clock(): string {
    return this.#clock;
  }

  /** The difference of its wall clock from the machine's, in milliseconds. */
  setClock(offset: number): void {
    writeFileSync(this.#clock, String(offset));
  }

  /** Starts it, again and again until it is ready: it may be in the middle of other faults. */
  async start(): Promise<void> {
    while (!this.#ended) {
      try {
        this.process = await this.#start(this);
        return;
      } catch (error) {
        if (!this.past.length && !this.failedStarts) throw error;
        this.failedStarts++;
        await pause(AGAIN_AFTER_MS);
      }
    }
  }

  /** Its output is kept until the storm is over. */
  #forget(): ServiceProcess | null {
    const { process } = this;
    if (process) this.past.push(process);
    this.process = null;
    this.ready = false;
    return process;
  }

  async kill(): Promise<void> {
    await this.#forget()?.kill();
  }

  async terminate(): Promise<number | null> {
    // It is the current one until it is gone: it may still finish requests.
    const code = await this.process?.stop();
    this.#forget();
    return code ?? null;
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    if (this.process) process.kill(this.process.pid, signal);
  }

  end(): void {
    this.#ended = true;
  }

  /** Of all processes that ran under this name. */
  output(): string {
    return [...this.past, ...(this.process ? [this.process] : [])].map((one) => one.output()).join('\n');
  }

  /** The most memory it had, in bytes. */
  get memory(): number {
    return this.memories.reduce((most, bytes) => Math.max(most, bytes), 0);
  }

  /** Its memory in the middle of the first and of the last minute. */
  get memoryTrend(): [first: number, last: number] {
    const middle = (bytes: number[]): number => bytes.sort((a, b) => a - b)[bytes.length >> 1] ?? 0;
    return [middle(this.memories.slice(0, A_MINUTE)), middle(this.memories.slice(-A_MINUTE))];
  }

  /** Memory of its services together may be, as their declarations say. */
  get memoryLimit(): number {
    const mebibytes = (text: string): number => Number.parseInt(text, 10) * (text.endsWith('Gi') ? 1024 : 1);
    return (
      this.services.reduce((sum, name) => sum + mebibytes(SERVICES[name].kubernetes.limits.memory), 0) * 1024 * 1024
    );
  }
}

export class Cluster {
  readonly baseUrl: string;
  #database: EmbeddedDatabase;
  readonly nats: Awaited<ReturnType<typeof startSecureNats>>;
  readonly folder: string;
  readonly members: readonly Member[];
  readonly password: string;
  /** Must not be in a log. */
  readonly secrets: readonly string[];
  readonly #entrance: Link;
  readonly #mounted: boolean;
  readonly #timers: NodeJS.Timeout[] = [];
  /** Processes that ended without having been asked to. */
  readonly crashes: string[] = [];
  #turn = 0;

  private constructor(given: {
    folder: string;
    mounted: boolean;
    database: EmbeddedDatabase;
    nats: Cluster['nats'];
    members: readonly Member[];
    entrance: Link;
    password: string;
    secrets: readonly string[];
  }) {
    this.folder = given.folder;
    this.#mounted = given.mounted;
    this.#database = given.database;
    this.nats = given.nats;
    this.members = given.members;
    this.#entrance = given.entrance;
    this.baseUrl = `http://127.0.0.1:${given.entrance.port}`;
    this.password = given.password;
    this.secrets = given.secrets;
  }

  /** `smallDisk`: the database's folder is a file system of its own that can be filled, where this user may mount one. */
  static async start({ smallDisk }: { smallDisk: boolean }): Promise<Cluster> {
    const folder = await mkdtemp(join(tmpdir(), 'erp-storm-'));
    const mounted = smallDisk && mount(folder);
    // Also when this program ends at once: the processes end along with it.
    process.once('exit', () => remove(folder, mounted));
    const names = Object.keys(MEMBERS);
    const secret = randomBytes(32).toString('base64url');
    const password = randomBytes(12).toString('base64url');
    const nats = await startSecureNats([...new Set(Object.values(MEMBERS).map(identityOf))]);
    const database = await startEmbeddedDatabase(folder, { settings: SETTINGS });
    const portOf = (url: string): number => Number(new URL(url).port);
    let cluster: Cluster | undefined;
    const databasePort = (): number => portOf((cluster?.database ?? database).url);
    const entrance = await Link.open(() => cluster!.gateway().port);
    const baseUrl = `http://127.0.0.1:${entrance.port}`;
    const through = (url: string, link: Link): string => {
      const address = new URL(url);
      address.port = String(link.port);
      return address.toString().replace(/\/$/, '');
    };
    const start = (member: Member): Promise<ServiceProcess> => {
      const bus = nats.environment(identityOf(member.services));
      return startProcess({
        services: [...member.services].sort(),
        databaseUrl: through(database.url, member.links.database),
        natsUrl: through(nats.url, member.links.bus),
        patience: member.past.length ? 60_000 : START_PATIENCE_MS,

        env: {
          ...bus,
          NATS_URL: through(bus['NATS_URL']!, member.links.bus),
          BASE_URL: baseUrl,
          PLATFORM_SECRET: secret,
          DEMO_PASSWORD: password,
          DATA_DIR: join(folder, member.name),
          FILES_URL: pathToFileURL(join(folder, 'contents')).href,
          WEBHOOK_PRIVATE_HOSTS: '127.0.0.1',
          STORM_CLOCK: member.clock,
          NODE_OPTIONS: `--import=${join(import.meta.dirname, 'clock.ts')}`,
          ...(member.isGateway ? { PORT: String(member.port) } : { HEALTH_PORT: String(member.port) }),
        },
      });
    };
    const members = await Promise.all(
      names.map(
        async (name) =>
          new Member(name, {
            services: MEMBERS[name]!,
            port: await freePort(),
            links: { database: await Link.open(databasePort), bus: await Link.open(() => portOf(nats.url)) },
            clock: join(folder, `${name}.clock`),
            start,
          }),
      ),
    );
    const secrets = [secret, password, new URL(database.url).password];
    cluster = new Cluster({ folder, mounted, database, nats, members, entrance, password, secrets });
    try {
      await seed(database.url, { PLATFORM_SECRET: secret, DEMO_PASSWORD: password, DATA_DIR: join(folder, 'seed') });
      await Promise.all(members.map((member) => member.start()));
      cluster.#watch();
      await cluster.whole();
      return cluster;
    } catch (error) {
      await cluster.stop({ keep: false });
      throw error;
    }
  }

  get database(): EmbeddedDatabase {
    return this.#database;
  }

  get diskCanBeFull(): boolean {
    return this.#mounted;
  }

  get gateways(): readonly Member[] {
    return this.members.filter((member) => member.isGateway);
  }

  /** One gateway after the other among those that are ready. */
  gateway(): Member {
    const ready = this.gateways.filter((member) => member.ready);
    const among = ready.length ? ready : this.gateways;
    return among[this.#turn++ % among.length]!;
  }

  member(name: string): Member {
    return this.members.find((member) => member.name === name)!;
  }

  setDatabaseLinks(state: LinkState): void {
    for (const { links } of this.members) links.database.set(state);
  }

  /** Makes the file system of the database as small as what is on it: there is no room left. */
  fillDisk(): void {
    const { blocks, bavail, bsize } = statfsSync(this.folder);
    // It grows meanwhile, and cannot be made smaller than it is.
    for (let more = 0; !resize(this.folder, (blocks - bavail) * bsize + more); more += MIB);
  }

  freeDisk(): void {
    resize(this.folder, DISK_BYTES);
  }

  /** A copy of the database's folder, made while it stands still. */
  async backUp(): Promise<void> {
    await this.#withoutDatabase(() => copy(join(this.folder, 'postgres'), join(this.folder, 'backup')));
  }

  /** Puts the copy back as docs/guides/operators.md#after-a-restore says: with every process stopped, and a new epoch begun. */
  async restore(): Promise<void> {
    await Promise.all(this.members.map((member) => member.terminate()));
    await this.#withoutDatabase(() => copy(join(this.folder, 'backup'), join(this.folder, 'postgres')));
    await run(process.execPath, ['scripts/restored.ts'], { env: { DATABASE_URL: this.database.url } });
    await Promise.all(this.members.map((member) => member.start()));
  }

  async #withoutDatabase(work: () => Promise<void>): Promise<void> {
    this.setDatabaseLinks('reset');
    await this.database.stop();
    await work();
    this.#database = await startEmbeddedDatabase(this.folder, { settings: SETTINGS });
    this.setDatabaseLinks('whole');
  }

  /** Resolves when every process runs and says that it is ready. */
  async whole(patienceMs = 120_000): Promise<void> {
    const end = performance.now() + patienceMs;
    for (const member of this.members)
      while (!(member.process && (await isReady(member)))) {
        if (performance.now() > end)
          throw new Error(`${member.name} is not ready ${patienceMs / 1_000} s after the last fault.`);
        await pause(READY_EVERY_MS);
      }
  }

  async stop({ keep }: { keep: boolean }): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    for (const member of this.members) {
      member.end();
      member.signal('SIGCONT');
    }
    await Promise.all(this.members.map((member) => member.kill()));
    await this.nats.stop();
    await this.database.stop();
    this.#entrance.close();
    for (const { links } of this.members) for (const link of Object.values(links)) link.close();
    if (keep) kept.add(this.folder);
    remove(this.folder, this.#mounted);
  }

  #watch(): void {
    for (const member of this.gateways)
      this.#timers.push(
        setInterval(() => void isReady(member).then((ready) => (member.ready = ready)), READY_EVERY_MS),
      );
    this.#timers.push(
      setInterval(() => {
        for (const member of this.members) {
          const bytes = memoryOf(member.process?.pid);
          if (bytes > 0) member.memories.push(bytes);
          const crash = member.process?.crash();
          if (!crash) continue;
          this.crashes.push(crash);
          void member.kill().then(() => member.start());
        }
      }, LOOK_EVERY_MS),
    );
  }
}

/** Makes the demo tenants in one process, which is faster than in eleven. */
async function seed(databaseUrl: string, env: Record<string, string>): Promise<void> {
  const seeding = await startProcess({
    services: ALL_SERVICES,
    databaseUrl,
    natsUrl: '',
    env,
    patience: START_PATIENCE_MS,
  });
  await seeding.stop();
}

const isReady = (member: Member): Promise<boolean> =>
  fetch(`http://127.0.0.1:${member.port}/readyz`, { signal: AbortSignal.timeout(READY_WAIT_MS) }).then(
    async (answer) => {
      await answer.text();
      return answer.ok;
    },
    () => false,
  );

/** Only root may, and not in every container. */
const mount = (folder: string): boolean =>
  spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_BYTES}`, 'erp-storm', folder], { stdio: 'ignore' }).status ===
  0;

async function copy(from: string, to: string): Promise<void> {
  rmSync(to, { recursive: true, force: true });
  await run('cp', ['--archive', from, to]);
}

const kept = new Set<string>();

function remove(folder: string, mounted: boolean): void {
  if (kept.has(folder) || !existsSync(folder)) return;
  if (mounted) spawnSync('umount', ['--lazy', folder], { stdio: 'ignore' });
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

const resize = (folder: string, bytes: number): boolean =>
  spawnSync('mount', ['-o', `remount,size=${bytes}`, folder], { stdio: 'ignore' }).status === 0;

/** Bytes of a process in memory; 0 where the machine does not say so. */
function memoryOf(pid: number | undefined): number {
  try {
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}
