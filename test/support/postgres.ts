/**
 * PostgreSQL servers that are copied, recovered and replicated with the programs of a whole PostgreSQL, as the operator of a
 * platform has it. The npm packages bring the server alone.
 */
import { execFile, execFileSync, type StdioOptions, spawn } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { freePort } from '../../mixins/database/embedded.ts';

const PROGRAMS = ['initdb', 'postgres', 'pg_ctl', 'pg_dump', 'pg_restore', 'pg_basebackup'];

/** The folder of the programs: of PG_BIN, or of the newest version that Debian has installed; null: there is none. */
export function postgresPrograms(): string | null {
  const installed = globSync('/usr/lib/postgresql/*/bin').sort(
    (a, b) => Number(b.split('/')[4]) - Number(a.split('/')[4]),
  );
  const folders = [...(process.env['PG_BIN'] ? [process.env['PG_BIN']] : []), ...installed];
  return folders.find((folder) => PROGRAMS.every((name) => existsSync(join(folder, name)))) ?? null;
}

/** PostgreSQL does not run as root. */
const account: { uid?: number; gid?: number } = process.getuid?.() === 0 ? accountOf('postgres') : {};

function accountOf(name: string): { uid: number; gid: number } {
  const id = (flag: string): number => Number(execFileSync('id', [flag, name], { stdio: ['ignore', 'pipe', 'pipe'] }));
  return { uid: id('-u'), gid: id('-g') };
}

/** Servers in folders of their own below one that goes at the end, all with the database `erp` and the user `postgres`. */
export class Servers {
  readonly #bin: string;
  readonly #root = mkdtempSync(join(tmpdir(), 'erp-copies-'));
  readonly #running = new Set<Server>();

  constructor() {
    const bin = postgresPrograms();
    if (bin === null)
      throw new Error('Install PostgreSQL with its programs (Debian: apt install postgresql), or name them in PG_BIN.');
    this.#bin = bin;
    if (account.uid !== undefined) execFileSync('chown', [`${account.uid}:${account.gid}`, this.#root]);
    chmodSync(this.#root, 0o755);
  }

  /** The path of a file or folder that the servers may write. */
  path(name: string): string {
    return join(this.#root, name);
  }

  /** Runs a program of PostgreSQL as the account of the servers. */
  async run(program: string, ...args: string[]): Promise<string> {
    const { stdout } = await promisify(execFile)(join(this.#bin, program), args, {
      ...account,
      cwd: this.#root,
      env: { LANG: 'C', PATH: process.env['PATH'] },
      maxBuffer: 64 * 1024 * 1024,
    });
    return stdout;
  }

  /** `prepare` may change the files of the server before its first start. */
  async create(
    name: string,
    settings: readonly string[] = [],
    prepare: (folder: string) => void = () => {},
  ): Promise<Server> {
    await this.run(
      'initdb',
      '-D',
      this.path(name),
      '-U',
      'postgres',
      '--auth=trust',
      '--encoding=UTF8',
      '--locale=C',
      '-N',
    );
    prepare(this.path(name));
    const server = await this.start(name, await freePort(), settings);
    await server.query('CREATE DATABASE erp', 'postgres');
    return server;
  }

  /** Starts a server on a folder that is there. */
  async start(name: string, port: number, settings: readonly string[] = []): Promise<Server> {
    const all = [
      'listen_addresses=127.0.0.1',
      'unix_socket_directories=',
      'shared_buffers=64MB',
      'max_connections=200',
      'max_locks_per_transaction=256',
      'synchronous_commit=off',
      'jit=off',
      ...settings,
    ];
    const stdio: StdioOptions = 'ignore';
    const child = spawn(
      join(this.#bin, 'postgres'),
      [
        '-D',
        this.path(name),
        '-p',
        String(port),
        ...all.flatMap((setting) => ['-c', setting]),
        '-c',
        'logging_collector=on',
      ],
      { ...account, cwd: this.#root, env: { LANG: 'C', PATH: process.env['PATH'] }, stdio },
    );
    const server = new Server(port, {
      stop: async (signal) => {
        this.#running.delete(server);
        if (child.exitCode !== null || child.signalCode !== null) return;
        const gone = new Promise((resolve) => child.once('exit', resolve));
        child.kill(signal);
        await gone;
      },
    });
    this.#running.add(server);
    await server.ready(() => child.exitCode === null && child.signalCode === null);
    return server;
  }

  /** A base backup of a server, as the folder of another one; further settings of its own. */
  async baseBackup(source: Server, name: string, options: readonly string[] = []): Promise<void> {
    await this.run(
      'pg_basebackup',
      '-d',
      source.url('postgres'),
      '-D',
      this.path(name),
      '--checkpoint=fast',
      '--no-sync',
      ...options,
    );
  }

  /** The folder of a server that is stopped, as that of another one. */
  copy(from: string, to: string): void {
    execFileSync('cp', ['-a', this.path(from), this.path(to)]);
  }

  configure(name: string, settings: readonly string[], signal: 'recovery.signal' | 'standby.signal'): void {
    appendFileSync(join(this.path(name), 'postgresql.auto.conf'), `${settings.join('\n')}\n`);
    writeFileSync(join(this.path(name), signal), '');
  }

  /** A file in the folder of a server, readable for it alone. */
  write(path: string, text: string): void {
    writeFileSync(path, text, { mode: 0o600 });
    if (account.uid !== undefined) chownSync(path, account.uid, account.gid ?? account.uid);
  }

  folder(name: string): string {
    mkdirSync(this.path(name));
    if (account.uid !== undefined) execFileSync('chown', [`${account.uid}:${account.gid}`, this.path(name)]);
    return this.path(name);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#running].map((server) => server.stop('SIGQUIT')));
    rmSync(this.#root, { recursive: true, force: true });
  }
}

export class Server {
  readonly port: number;
  readonly stop: (signal: NodeJS.Signals) => Promise<void>;

  constructor(port: number, process: { stop(signal: NodeJS.Signals): Promise<void> }) {
    this.port = port;
    this.stop = process.stop;
  }

  url(database = 'erp'): string {
    return `postgres://postgres:unused@127.0.0.1:${this.port}/${database}`;
  }

  async query<R extends pg.QueryResultRow = Record<string, unknown>>(text: string, database = 'erp'): Promise<R[]> {
    const client = new pg.Client({ connectionString: this.url(database), application_name: 'test support' });
    await client.connect();
    try {
      const results: pg.QueryResult<R> | pg.QueryResult<R>[] = await client.query<R>(text);
      return [results].flat().at(-1)!.rows;
    } finally {
      await client.end();
    }
  }

  /** Waits until it answers. */
  async ready(isAlive: () => boolean): Promise<void> {
    for (const end = Date.now() + 30_000; ; await pause(50)) {
      try {
        await this.query('SELECT 1', 'postgres');
        return;
      } catch (error) {
        if (!isAlive() || Date.now() > end) throw error;
      }
    }
  }
}
